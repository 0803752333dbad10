"""The stage of a demo: three brokers on real files, producers, consumers, and the output about them.

    with stage.chapter("..."):    a heading; at the end a table of all logs
        stage.run(400)            simulated time passes, each change is a line

Time is simulated, files are real.  A topic has one partition, or several, which the brokers lead in turns.
A story is about the leader of the first one; the others lose a leader or a follower by it.

Not here: what happens (`story`), one partition (`part`), the drawing (`tables`, `screen`), the judgement
(`verdict`).
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from replog.core.broker.state import Config
from replog.core.controller.placement import assign
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
TOPIC = "t"
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

    def __init__(
        self, path: str, rules: Protocol, screen: Screen, *, skips_metadata: bool = False, partitions: int = 1
    ) -> None:
        self._screen = screen
        self._path = path
        self.cables = Cables()
        # By Kafka's rule, with its two random numbers 0: broker 0 is the first replica of the first.
        placed = assign(range(BROKERS), partitions, BROKERS)
        several = {f"{TOPIC}-{number}": replicas for number, replicas in enumerate(placed)}
        storages = (self._files(b, n, partitions) for b in count() for n in range(partitions))
        options = WorldOptions(
            BROKERS, 2, rules, CONFIG, SESSION_MS, skips_metadata, make_storage=lambda: next(storages),
            partitions=several if partitions > 1 else {},
        )  # fmt: skip
        self.world = World(options, self.cables)
        # Of several partitions each has records of its own, so that one in the wrong place is detected.
        self.parts = [
            StagedPartition(self.world, name, "order" if partitions == 1 else f"order of {name}")
            for name in self.world.partitions
        ]
        self.stubborn = LedgerProducer("click", 1, lambda: 0, interval_ms=60, is_active=False)

    def _folder(self, broker: int) -> str:
        return f"{self._path}/broker-{broker}"

    def _files(self, broker: int, number: int, partitions: int) -> BrokerFiles:
        """Return the log directory of a broker; for several partitions, one for each."""
        folder = self._folder(broker)
        return BrokerFiles(folder if partitions == 1 else f"{folder}/data-{number}", (TOPIC, number))

    def brokers(self) -> list[int]:
        """Return all brokers: the leader of the first partition, and the others in order."""
        leader = self.parts[0].leader()
        return [leader, *(broker for broker in range(BROKERS) if broker != leader)]

    def calm_days(self) -> None:
        """Start all brokers and clients: the first chapter of every story."""
        number = len(self.parts)
        partitions = "one partition" if number == 1 else f"{number} partitions"
        with self.chapter(f"Three brokers, {partitions}, min.insync.replicas 2."):
            for broker in range(BROKERS):
                self.world.restart(broker)
            for place, part in enumerate(self.parts):
                name = "" if number == 1 else part.name
                self.world.start_client(-10 - 3 * place, part.producer, 10, name)
                if place == 0:
                    self.world.start_client(-11, self.stubborn, 10, name)
                self.world.start_client(-12 - 3 * place, part.consumer, 10, name)
            if number > 1:
                self._spread_leaders()
            self.run(7_600)

    def _spread_leaders(self) -> None:
        """Make each partition's first replica its leader: the first broker that was up leads all of them."""
        self.run(500)
        for part in self.parts:
            self.world.focus = part.name
            self.world.elect_preferred()
        self.world.focus = self.parts[0].name

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
        for part in self.parts:
            part.producer.is_active = False
        self.run(1_500)

    def reckonings(self) -> Mapping[str, Verdict]:
        """Stop all brokers, read their files, and compare them with the clients' ledgers."""
        serving = [part.serving() for part in self.parts]
        for node in self.world.nodes.values():
            self.world.stop(node.broker_id)
        return {part.name: part.judge(ends) for part, ends in zip(self.parts, serving, strict=True)}

    @contextmanager
    def chapter(self, text: str) -> Iterator[None]:
        """Print the heading of a chapter, and at its end the table of all logs."""
        self._screen.say(f"--- {text}")
        yield
        self._screen.keep(table_of(self.parts))

    def run(self, duration_ms: int) -> None:
        """Let simulated time pass, reporting each change."""
        rung: list[None] = []
        self.world.schedule(duration_ms, Call(lambda: rung.append(None)))
        while not rung and self.world.step():
            for part in self.parts:
                for line in part.news():
                    self._say(line if len(self.parts) == 1 else f"{part.name}  {line}")
            self._screen.frame(self.world.now_ms, table_of(self.parts))

    def _say(self, text: str) -> None:
        self._screen.say(f"{(self.world.now_ms - START_MS) / 1000:7.2f} s  {text}")
