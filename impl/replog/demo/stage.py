"""The stage of a demo: three brokers on real files, producers, consumers, and the output about them.

    with stage.chapter("..."):    a heading; at the end a table of all logs
        stage.run(400)            simulated time passes, each change is a line

Time is simulated, files are real.

Not here: what happens (`story`), the partition (`part`), the drawing (`tables`, `screen`), the judgement
(`verdict`).
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from replog.core.broker.state import Config
from replog.core.messages import Message
from replog.core.protocol import Protocol
from replog.demo.clients import LedgerProducer
from replog.demo.files import BrokerFiles
from replog.demo.part import StagedPartition
from replog.demo.screen import Screen
from replog.demo.tables import table_of
from replog.demo.verdict import Verdict
from replog.sim.cluster.node import Call, Network
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.world import START_MS, World

BROKERS = 3
KEY = ("t", 0)
SESSION_MS = 3_000
LAG_MS = 4_000
CONFIG = Config(lag_ms=LAG_MS, fetch_timeout_ms=1_000, fetch_backoff_ms=300, hw_checkpoint_ms=5_000)


@dataclass(slots=True)
class Cables(Network):
    """A network with a delay of 2 ms, and cables between brokers, and to the controller, that can be cut."""

    cut: set[tuple[int, int]] = field(default_factory=set)

    def delays(self, source: int, to: int, message: Message) -> Iterable[int]:
        """Lose messages over a cut cable; clients are not affected."""
        del message
        return () if (source, to) in self.cut else (2,)

    def cut_between(self, broker: int, *peers: int) -> None:
        """Cut both directions between a broker and each of these peers."""
        self.cut |= {(broker, peer) for peer in peers} | {(peer, broker) for peer in peers}


class Stage:
    """One performance: the cluster, its clients, and the events of a story."""

    def __init__(self, path: str, rules: Protocol, screen: Screen, *, skips_metadata: bool = False) -> None:
        self._screen = screen
        self._path = path
        self.cables = Cables()
        storages = (BrokerFiles(self._folder(broker), KEY) for broker in count())
        options = WorldOptions(
            BROKERS, 2, rules, CONFIG, SESSION_MS, skips_metadata, make_storage=lambda: next(storages)
        )
        self.world = World(options, self.cables)
        self.part = StagedPartition(self.world)
        self.stubborn = LedgerProducer("click", 1, lambda: 0, interval_ms=60, is_active=False)

    def _folder(self, broker: int) -> str:
        return f"{self._path}/broker-{broker}"

    def brokers(self) -> list[int]:
        """Return all brokers: the leader, and the others in order."""
        leader = self.part.leader()
        return [leader, *(broker for broker in range(BROKERS) if broker != leader)]

    def calm_days(self) -> None:
        """Start all brokers and clients: the first chapter of every story."""
        with self.chapter("Three brokers, one partition, min.insync.replicas 2."):
            for broker in range(BROKERS):
                self.world.restart(broker)
            for address, client in (
                (-10, self.part.producer),
                (-11, self.stubborn),
                (-12, self.part.consumer),
            ):
                self.world.start_client(address, client, 10)
            self.run(7_600)

    def click(self, broker: int, duration_ms: int) -> None:
        """Write records with acks=1 to one broker, whether or not it leads."""
        self.stubborn.find_broker = lambda: broker
        self.stubborn.is_active = True
        self.run(duration_ms)
        self.stubborn.is_active = False

    def elect(self, broker: int) -> None:
        """Make a broker the preferred leader, and hold the election."""
        others = (replica for replica in self.world.image.replicas if replica != broker)
        self.world.reassign((broker, *others))
        self.world.elect_preferred()

    def replace_disk(self, broker: int) -> None:
        """Give a broker whose process has ended an empty directory."""
        shutil.rmtree(self._folder(broker))

    def last_days(self, duration_ms: int) -> None:
        """Let the cluster work, stop the producers, and wait until the last records are copied."""
        self.run(duration_ms)
        self.part.producer.is_active = False
        self.run(1_500)

    def reckoning(self) -> Verdict:
        """Stop all brokers, read their files, and compare them with the clients' ledgers."""
        serving = self.part.serving()
        for node in self.world.nodes.values():
            self.world.stop(node.broker_id)
        return self.part.judge(serving)

    @contextmanager
    def chapter(self, text: str) -> Iterator[None]:
        """Print the heading of a chapter, and at its end the table of all logs."""
        self._screen.say(f"--- {text}")
        yield
        self._screen.keep(table_of(self.part))

    def run(self, duration_ms: int) -> None:
        """Let simulated time pass, reporting each change."""
        rung: list[None] = []
        self.world.schedule(duration_ms, Call(lambda: rung.append(None)))
        while not rung and self.world.step():
            for line in self.part.news():
                self._say(line)
            self._screen.frame(self.world.now_ms, table_of(self.part))

    def _say(self, text: str) -> None:
        self._screen.say(f"{(self.world.now_ms - START_MS) / 1000:7.2f} s  {text}")
