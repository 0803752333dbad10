"""The demo's story, played by one cluster under today's or yesterday's rules.

    1  three brokers, a producer with acks=all, a consumer; all replicas in sync
    2  the leader's cables are cut: it still accepts acks=1 records, which no follower copies
    3  kill -9 the leader; a follower bounces at the same moment (one rack, one power strip)
    4  the controller elects another leader; producers continue
    5  the old leader comes back, finds where its log diverges, cuts, copies, rejoins the ISR
    6  every acknowledged record is looked up in the files of the leader, and of the others

Under the rules up to 0.10 (`hw-truncation`) the bounced follower cuts its log at its checkpointed high
watermark, is elected, and step 6 finds acknowledged records missing (KIP-101; B1 of the project's Kafka
reference). Today it is not in the ISR after the bounce, and no replica cuts at a high watermark.

Time is simulated, files are real. Not here: the drawing (`screen.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from replog.core.broker.state import Config
from replog.core.messages import Message
from replog.core.protocol import Protocol
from replog.core.types import CONTROLLER, NO_LEADER, Role
from replog.demo.clients import LedgerConsumer, LedgerProducer
from replog.demo.files import BrokerFiles
from replog.demo.screen import Screen
from replog.demo.verdict import Ending, Log, Verdict, judge
from replog.sim.cluster.node import Call, Client, Network, Node
from replog.sim.cluster.world import START_MS, World, WorldOptions

BROKERS = 3
SESSION_MS = 3_000
LAG_MS = 4_000
BAR_WIDTH = 26
CONFIG = Config(lag_ms=LAG_MS, fetch_timeout_ms=1_000, fetch_backoff_ms=300, hw_checkpoint_ms=5_000)


@dataclass(slots=True)
class Cables(Network):
    """A network that takes 2 ms, and brokers that can be cut off."""

    cut_off: set[int] = field(default_factory=set)

    def delays(self, source: int, to: int, message: Message) -> Iterable[int]:
        """Lose what goes between brokers, or to the controller, over a cut cable; clients get through."""
        del message
        is_inside = source >= CONTROLLER and to >= CONTROLLER
        return () if is_inside and self.cut_off & {source, to} else (2,)


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """The last known state of a broker, so that changes are noticed."""

    role: Role = Role.NONE
    epoch: int = -1
    end: int = 0


class Story:
    """One performance; `tell` is all of it."""

    def __init__(self, path: str, rules: Protocol, screen: Screen) -> None:
        self._screen = screen
        self._cables = Cables()
        storages = (BrokerFiles(f"{path}/broker-{number}") for number in count())
        options = WorldOptions(BROKERS, 2, rules, CONFIG, SESSION_MS, make_storage=lambda: next(storages))
        self.world = World(options, self._cables)
        self.producer = LedgerProducer("order", -1, self._leader)
        self.stubborn = LedgerProducer("click", 1, lambda: 0, interval_ms=60, is_active=False)
        self.consumer = LedgerConsumer(self._leader)
        self._seen = {broker: BrokerStatus() for broker in range(BROKERS)}
        self._image = self.world.image

    def _leader(self) -> int:
        return self.world.image.leader

    def tell(self) -> Verdict:
        """Play all chapters; return what became of the promises."""
        self._calm_days()
        self._the_cut()
        self._the_crash()
        self._the_return()
        return self._the_reckoning()

    def _calm_days(self) -> None:
        self._chapter("Three brokers, one partition, min.insync.replicas 2.")
        for broker in range(BROKERS):
            self.world.restart(broker)
        clients: tuple[Client, ...] = (self.producer, self.stubborn, self.consumer)
        for number, client in enumerate(clients):
            self.world.start_client(-10 - number, client, 10)
        self._run(7_600)
        self._end_chapter()

    def _the_cut(self) -> None:
        leader = self._leader()
        self._chapter(f"Broker {leader}, the leader, is cut off. It still accepts records with acks=1.")
        self._cables.cut_off.add(leader)
        self.stubborn.find_broker = lambda: leader
        self.stubborn.is_active = True
        self._run(400)
        self.stubborn.is_active = False
        self._end_chapter()

    def _the_crash(self) -> None:
        leader = self._leader()
        follower = next(b for b in self.world.image.replicas if b != leader)
        self._chapter(f"kill -9 broker {leader}; broker {follower} restarts at the same moment.")
        self.world.crash(leader)
        # Both at one moment: the follower comes back with a checkpointed HW that is behind, and the leader,
        # which could correct it, is out of reach.
        self.world.crash(follower)
        self._cables.cut_off.clear()
        self._run(50)
        self.world.restart(follower)
        self._run(14_000)
        self._end_chapter()

    def _the_return(self) -> None:
        gone = next(node.broker_id for node in self.world.nodes.values() if node.broker is None)
        self._chapter(f"Broker {gone} returns with the log that it had when it was killed.")
        self.world.restart(gone)
        self._run(6_000)
        self.producer.is_active = False
        self._run(1_500)
        self._end_chapter()

    def _the_reckoning(self) -> Verdict:
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
        recovered = node.storage.recover()
        # A look is a start like any other. The marker it used up is put back, so a later `dump` finds a clean
        # stop.
        node.storage.close(recovered.previous_broker_epoch)
        return {
            offset: (batch.epoch, batch.body)
            for batch in recovered.log.batches
            for offset in range(batch.base_offset, batch.next_offset)
        }

    def _chapter(self, text: str) -> None:
        self._screen.say(f"--- {text}")

    def _end_chapter(self) -> None:
        self._screen.keep(self._table())

    def _run(self, duration_ms: int) -> None:
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
            return f"  {node.broker_id:>6} {'killed':8}{seen.end:>5}    -  {bar}"
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
