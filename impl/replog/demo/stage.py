"""A demo's stage: three brokers on real files, two producers, a consumer, and what is printed of them.

    stage.chapter("...")          a heading; what is done to the cluster follows
    stage.run(400)                simulated time passes, each change is a line
    stage.end_chapter()           a table of all logs

Time is simulated, files are real. Not here: what happens (`story`), the drawing (`screen`), the judgement
(`verdict`).
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from replog.core.broker.state import Config
from replog.core.messages import Message
from replog.core.protocol import Protocol
from replog.core.types import NO_LEADER, Role
from replog.demo.clients import LedgerConsumer, LedgerProducer
from replog.demo.files import BrokerFiles
from replog.demo.screen import Screen
from replog.demo.verdict import Ending, Log, Verdict, judge
from replog.sim.cluster.node import Call, Client, Network, Node
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.world import START_MS, World

BROKERS = 3
SESSION_MS = 3_000
LAG_MS = 4_000
BAR_WIDTH = 26
CONFIG = Config(lag_ms=LAG_MS, fetch_timeout_ms=1_000, fetch_backoff_ms=300, hw_checkpoint_ms=5_000)


Link = tuple[int, int]
"""The address that sends, and the one that does not receive."""


@dataclass(slots=True)
class Cables(Network):
    """A network that takes 2 ms, and cables between brokers, and to the controller, that can be cut."""

    cut: set[Link] = field(default_factory=set)

    def delays(self, source: int, to: int, message: Message) -> Iterable[int]:
        """Lose what is sent over a cut cable; clients get through."""
        del message
        return () if (source, to) in self.cut else (2,)

    def cut_between(self, broker: int, *peers: int) -> None:
        """Cut both directions between a broker and each of these peers."""
        self.cut |= {(broker, peer) for peer in peers} | {(peer, broker) for peer in peers}


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """The last known state of a broker, so that changes are noticed."""

    role: Role = Role.NONE
    epoch: int = -1
    end: int = 0


class Stage:
    """One performance: the cluster, its clients, and what a story does to them."""

    def __init__(self, path: str, rules: Protocol, screen: Screen, *, skips_metadata: bool = False) -> None:
        self._screen = screen
        self._path = path
        self.cables = Cables()
        storages = (BrokerFiles(self._folder(number)) for number in count())
        options = WorldOptions(
            BROKERS, 2, rules, CONFIG, SESSION_MS, skips_metadata, make_storage=lambda: next(storages)
        )
        self.world = World(options, self.cables)
        self.producer = LedgerProducer("order", -1, self.leader)
        self.stubborn = LedgerProducer("click", 1, lambda: 0, interval_ms=60, is_active=False)
        self.consumer = LedgerConsumer(self.leader)
        self._seen = {broker: BrokerStatus() for broker in range(BROKERS)}
        self._image = self.world.image

    def _folder(self, broker: int) -> str:
        return f"{self._path}/broker-{broker}"

    def leader(self) -> int:
        """Return who leads by the controller's word."""
        return self.world.image.leader

    def others(self, broker: int) -> list[int]:
        """Return the other brokers, in their order."""
        return [other for other in range(BROKERS) if other != broker]

    def calm_days(self) -> None:
        """Start all brokers and clients: the first chapter of every story."""
        self.chapter("Three brokers, one partition, min.insync.replicas 2.")
        for broker in range(BROKERS):
            self.world.restart(broker)
        clients: tuple[Client, ...] = (self.producer, self.stubborn, self.consumer)
        for number, client in enumerate(clients):
            self.world.start_client(-10 - number, client, 10)
        self.run(7_600)
        self.end_chapter()

    def click(self, broker: int, duration_ms: int) -> None:
        """Write records with acks=1 to one broker, whoever leads."""
        self.stubborn.find_broker = lambda: broker
        self.stubborn.is_active = True
        self.run(duration_ms)
        self.stubborn.is_active = False

    def elect(self, broker: int) -> None:
        """Make a broker the preferred leader, and hold that election."""
        others = (replica for replica in self.world.image.replicas if replica != broker)
        self.world.reassign((broker, *others))
        self.world.elect_preferred()

    def replace_disk(self, broker: int) -> None:
        """Give a broker whose process has ended an empty directory."""
        shutil.rmtree(self._folder(broker))

    def last_days(self, duration_ms: int) -> None:
        """Let the cluster work, stop the producers, and let the last records be copied."""
        self.run(duration_ms)
        self.producer.is_active = False
        self.run(1_500)
        self.end_chapter()

    def reckoning(self) -> Verdict:
        """Stop all brokers, read their files, and compare with what the clients hold in their hands."""
        leader, hw = self._serving()
        for node in self.world.nodes.values():
            self.world.stop(node.broker_id)
        # From the files, not from memory: the verdict is about what would be there tomorrow.
        logs = [self._files_of(node) for node in self.world.nodes.values()]
        return judge(self.producer.promised, self.consumer.read, Ending(leader, hw, logs))

    def _serving(self) -> tuple[int, int]:
        """Return who leads, by the controller's word and its own, and its HW; `NO_LEADER` if none does."""
        image = self.world.image
        broker = None if image.leader == NO_LEADER else self.world.nodes[image.leader].broker
        if broker is None or broker.state.role is not Role.LEADER:
            return NO_LEADER, 0
        return (
            (image.leader, broker.state.log.hw)
            if broker.state.leader_epoch == image.leader_epoch
            else (NO_LEADER, 0)
        )

    def _files_of(self, node: Node) -> Log:
        """Read what a stopped broker left, and leave it as it was."""
        assert isinstance(node.storage, BrokerFiles)
        recovered = node.storage.recover()
        batches = node.storage.read(tuple(recovered.log.batches))
        # A look is a start like any other. The marker it used up is put back, so a later `dump` finds a clean
        # stop.
        node.storage.close(recovered.previous_broker_epoch)
        return {
            offset: (batch.epoch, batch.content)
            for batch in batches
            for offset in range(batch.base_offset, batch.next_offset)
        }

    def chapter(self, text: str) -> None:
        """Print the heading of a chapter."""
        self._screen.say(f"--- {text}")

    def end_chapter(self) -> None:
        """Print the table of all logs."""
        self._screen.keep(self._table())

    def run(self, duration_ms: int) -> None:
        """Let simulated time pass, reporting each change."""
        rung: list[None] = []
        self.world.schedule(duration_ms, Call(lambda: rung.append(None)))
        while not rung and self.world.step():
            self._notice()
            self._screen.frame(self.world.now_ms, self._table())

    def _say(self, text: str) -> None:
        self._screen.say(f"{(self.world.now_ms - START_MS) / 1000:7.2f} s  {text}")

    def _notice(self) -> None:
        """Say what changed since the last step: elections, ISR, roles, truncations."""
        before, now = self._image, self.world.image
        self._image = now
        if (now.leader, now.leader_epoch) != (before.leader, before.leader_epoch):
            who = f"broker {now.leader} leads" if now.leader >= 0 else "no leader"
            doubt = ", recovering" if now.is_recovering else ""
            self._say(f"controller: {who}, epoch {now.leader_epoch}, ISR {_set(now.isr)}{doubt}")
        elif now.isr != before.isr:
            self._say(f"controller: ISR {_set(before.isr)} -> {_set(now.isr)}")
        for broker, node in self.world.nodes.items():
            seen = self._look(node)
            if seen != self._seen[broker]:
                self._tell_broker(broker, self._seen[broker], seen)
                self._seen[broker] = seen

    def _look(self, node: Node) -> BrokerStatus:
        if node.broker is None:
            return BrokerStatus(Role.NONE, -1, node.storage.end())
        state = node.broker.state
        return BrokerStatus(state.role, state.leader_epoch, state.log.leo)

    def _tell_broker(self, broker: int, before: BrokerStatus, now: BrokerStatus) -> None:
        if now.end < before.end:
            self._say(f"broker {broker}: truncates its log, {before.end} -> {now.end}")
        if now.role is not before.role and now.role is not Role.NONE:
            self._say(f"broker {broker}: {now.role.value} in epoch {now.epoch}, LEO {now.end}")

    def _table(self) -> list[str]:
        """Return the state of the cluster, one line a broker, 79 columns at most."""
        image = self.world.image
        longest = max(self._look(node).end for node in self.world.nodes.values())
        leader = str(image.leader) if image.leader >= 0 else "none"
        epochs = f"leader epoch {image.leader_epoch}, partition epoch {image.partition_epoch}"
        counts = f"acknowledged {len(self.producer.promised)}, consumed {len(self.consumer.read)}"
        return [
            f"  leader {leader}, {epochs}, ISR {_set(image.isr)}",
            f"  {counts}",
            "  broker role      LEO   HW  = below HW, - not, . down   epochs as epoch@start",
            *(self._row(node, longest) for node in self.world.nodes.values()),
        ]

    def _row(self, node: Node, longest: int) -> str:
        seen = self._look(node)
        if node.broker is None:
            bar = _bar(0, seen.end, longest).replace("-", ".")
            return f"  {node.broker_id:>6} {'down':8}{seen.end:>5}    -  {bar}"
        log = node.broker.state.log
        epochs = " ".join(f"{epoch}@{start}" for epoch, start in log.epochs.entries)
        role = seen.role.value if seen.role is not Role.NONE else "starting"
        bar = _bar(log.hw, log.leo, longest)
        return f"  {node.broker_id:>6} {role:8}{log.leo:>5}{log.hw:>5}  {bar} {epochs}"


def _bar(hw: int, end: int, longest: int) -> str:
    """Draw a log to the scale of the longest: below HW, then not, then missing."""
    scale = BAR_WIDTH / max(longest, BAR_WIDTH)
    low, high = int(hw * scale), int(end * scale)
    # At least one mark for uncommitted records, however long the log is.
    if end > hw and high == low:
        high = low + 1
    return ("=" * low + "-" * (high - low))[:BAR_WIDTH].ljust(BAR_WIDTH)


def _set(brokers: Iterable[int]) -> str:
    return "{" + ",".join(map(str, sorted(brokers))) + "}"
