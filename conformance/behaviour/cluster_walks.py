"""Random walks of a cluster: any client's request, any operator's, any fault, and messages that lie.

A seed decides the cluster (rules, sizes, times, disks) and every action.  The simulator's runs look for
broken promises, so they leave out what Kafka does not survive, and their clients behave well.  Here nothing
is promised: messages are repeated, late, altered or for another process, numbers are just beside the right
ones, and timers are short, so that hundreds of steps meet what takes the simulator hours.

Requests name offsets near the ends that answers have shown: a walk reads nothing from inside of a broker.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from lying_network import Delays, altered
from observed_world import ObservedWorld, who

from replog.core.broker.state import Config
from replog.core.effects import Received
from replog.core.log.producer import SEQUENCE_LIMIT
from replog.core.messages import (
    ConfigureRequest,
    DeleteRecordsRequest,
    ElectRequest,
    EpochEndRequest,
    FetchRequest,
    ListOffsetsRequest,
    Message,
    ProduceRequest,
    ReassignRequest,
)
from replog.core.protocol import preset
from replog.core.types import CONTROLLER, NO_LEADER, Batch
from replog.sim.cluster.node import Item, Node
from replog.sim.cluster.storage import MemoryStorage, StorageError
from replog.sim.cluster.world import OPERATOR, PARTITION, WorldOptions
from replog.sim.disks.stored import StoreStorage
from replog.store.files.config import LogConfig
from specchk.conform.contract.behaviours import RunWatch

CLIENT = -10
PRODUCERS = (7, 8, 9)


class Walk:
    """One walk; `on_files` gives the brokers replog's store, with segments of a few batches."""

    def __init__(self, watch: RunWatch, seed: int, on_files: bool, protocol: str = "kafka-4.1") -> None:
        self.watch = watch
        self.random = Random(seed)  # noqa: S311  # chance that must be repeatable
        self.network = Delays(self.random)
        choice = self.random.choice
        segments = LogConfig(segment_bytes=choice((300, 700)), index_interval_bytes=choice((90, 200)))
        options = WorldOptions(
            brokers=choice((3, 3, 4)),
            replicas=3,
            min_isr=choice((1, 2, 2)),
            protocol=preset(protocol),
            config=self._config(),
            session_timeout_ms=choice((3_000, 5_000)),
            coalesces_metadata=choice((False, False, True)),
            make_storage=StoreStorage if on_files else MemoryStorage,
        )
        self.world = ObservedWorld(watch, options, self.network, None, segments)
        self.correlation = 0
        # Of one the numbers are about to wrap.
        self.sequences = {producer: (0, 0 if producer != 9 else SEQUENCE_LIMIT - 5) for producer in PRODUCERS}
        self.last = dict.fromkeys(PRODUCERS, (0, 1))
        for node in self.world.nodes.values():
            node.clock_offset_ms = self.random.randrange(-500, 500)
            self.world.restart(node.broker_id)

    def _config(self) -> Config:
        choice = self.random.choice
        return Config(
            lag_ms=choice((500, 1_400)),
            fetch_wait_ms=choice((100, 400)),
            fetch_timeout_ms=choice((300, 900)),
            fetch_backoff_ms=choice((50, 200)),
            fetch_max_bytes=choice((1, 150, 400)),
            alter_retry_ms=choice((150, 400)),
            hw_checkpoint_ms=choice((700, 1_900)),
            flush_messages=choice((0, 0, 1, 3)),
            max_batch_bytes=choice((130, 1 << 20)),
            retention_bytes=choice((-1, -1, 300)),
            retention_check_ms=choice((700, 1_900)),
            follower_read=choice((False, True)),
        )

    def run(self, actions: int) -> None:
        """Take `actions` actions, with a few events after each."""
        self._let(self._few, 60)
        # In some walks faults are rare, so that what takes several rounds comes about, too.
        rarer = self.random.choice((1, 2, 5))
        weights = [weight / (rarer if kind in FAULTS else 1) for kind, weight in ACTIONS.items()]
        for kind in self.random.choices(list(ACTIONS), weights, k=actions):
            self.watch.step(kind.__name__.strip("_").replace("_", " "))
            self._let(partial(kind, self), 1)
            self._let(self._few, 1)
        self.world.note_end()

    def _let(self, action: Callable[[], object], times: int) -> None:
        """Do something; what an implementation raises is noted, and its process is gone."""
        for _ in range(times):
            try:
                action()
            except Exception as error:  # whatever it is, it leaves the implementation
                self.watch.note("replog", "raises", error=type(error).__name__, text=str(error))
                for node in self.world.running():
                    self.world.crash(node.broker_id)

    def _few(self) -> None:
        for _ in range(self.random.choice((1, 3, 6, 12, 25))):
            self.world.step()

    def _node(self) -> Node:
        return self.world.nodes[self.random.randrange(len(self.world.nodes))]

    def _leader(self) -> int:
        """Return who leads, mostly."""
        leader = self.world.image.leader
        return self._node().broker_id if leader == NO_LEADER or self.random.random() < 0.15 else leader

    def _near(self) -> int:
        """Return an offset near the ends that were shown."""
        return max(self.random.choice((0, 0, self.network.end // 2, *[self.network.end] * 3))
                   + self.random.choice((0, 0, 0, 1, -1, 2, -2)), -2)  # fmt: skip

    def _epoch(self) -> int:
        """Return the leader epoch, or one beside it, or none."""
        epoch = self.world.image.leader_epoch
        return self.random.choice((-1, *[epoch] * 4, epoch - 1, epoch + 1))

    def _request(self, to: int, make: Callable[[int], Message]) -> None:
        self.correlation += 1
        self.world.send(CLIENT - self.random.randrange(2), to, make(self.correlation))

    def _produce(self) -> None:
        for _ in range(self.random.choice((1, 2, 3))):
            self._produce_to(self._leader())

    def _produce_to(self, broker: int) -> None:
        random = self.random
        count = random.choice((1, 1, 2, 3))
        producer, epoch, first = -1, -1, -1
        if random.random() < 0.6:
            producer, epoch, first, count = self._numbered(count)
        body = b"%d" % self.correlation * random.choice((1, 1, 4, 30))
        base = 0 if random.random() < 0.98 else 3
        if random.random() < 0.01:
            count = 0
        batch = Batch(base, -1, count, producer, epoch, first, body)
        acks = random.choice((-1, -1, -1, 1, 1, 0, 2 if random.random() < 0.1 else -1))
        timeout_ms = random.choice((40, 300, 2_000))
        self._request(broker, lambda number: ProduceRequest(number, batch, acks, timeout_ms))

    def _numbered(self, count: int) -> tuple[int, int, int, int]:
        """Return producer id, epoch, first number and count: the next ones, old ones, or wrong ones."""
        random = self.random
        producer = random.choice(PRODUCERS)
        epoch, following = self.sequences[producer]
        draw = random.random()
        if draw < 0.2:
            first, old = self.last[producer]
            return producer, epoch, first, old
        if draw < 0.27:
            return producer, epoch, (following - random.randrange(9)) % SEQUENCE_LIMIT, count
        if draw < 0.31:
            return producer, max(epoch - 1, -1), following, count
        if draw < 0.37:
            epoch, following = epoch + 1, random.choice((0, 0, 0, 1))
        elif draw < 0.41:
            following += 1
        self.last[producer] = following, count
        self.sequences[producer] = epoch, (following + count) % SEQUENCE_LIMIT
        return producer, epoch, following, count

    def _consume(self) -> None:
        random = self.random
        to = self._node().broker_id if random.random() < 0.4 else self._leader()
        epoch, offset = self._epoch(), self._near()
        wait_ms, most = random.choice((0, 0, 50, 400)), random.choice((1, 150, 300, 1 << 20))
        replica = -1 if random.random() < 0.85 else self._node().broker_id
        self._request(
            to,
            lambda number: FetchRequest(
                number, replica, epoch, offset, random.choice((-1, epoch, epoch - 1)),
                max_wait_ms=wait_ms, max_bytes=most,
            ),
        )  # fmt: skip

    def _look_up(self) -> None:
        epoch, of = self._epoch(), self._epoch()
        if self.random.random() < 0.5:
            which = self.random.choice((-1, -2, -1, -2, 5))
            replica = self.random.choice((-1, self._node().broker_id))
            self._request(self._leader(), lambda number: ListOffsetsRequest(number, replica, epoch, which))
        else:
            of -= self.random.choice((0, 0, 1, 2, 3))
            replica = self._node().broker_id
            self._request(self._leader(), lambda number: EpochEndRequest(number, replica, epoch, of))

    def _delete_records(self) -> None:
        offset, timeout_ms = (
            self.random.choice((-1, self._near(), self._near() // 2)),
            self.random.choice((30, 900)),
        )
        self._request(self._leader(), lambda number: DeleteRecordsRequest(number, offset, timeout_ms))

    def _operate(self) -> None:
        random = self.random
        name = PARTITION if random.random() < 0.96 else "none-0"
        self.correlation += 1
        draw, number = random.random(), self.correlation
        if draw < 0.35:
            message: Message = ElectRequest(number, name, random.random() < 0.3)
        elif draw < 0.55:
            message = ConfigureRequest(number, name, random.choice((0, 1, 2, 2, 3, 4)))
        else:
            every = [*self.world.nodes, *([9] if random.random() < 0.05 else [])]
            target = tuple(random.sample(every, random.choice((1, 2, 3, 3))))
            message = ReassignRequest(number, name, None if draw < 0.65 else target)
        self.world.send(OPERATOR, CONTROLLER, message)

    def _crash(self) -> None:
        self._end(self.world.crash)

    def _end(self, how: Callable[[int], object]) -> None:
        """End a process, whose session then mostly ends, too: a start need not wait for that."""
        broker = self._node().broker_id
        how(broker)
        if self.random.random() < 0.7:
            self.world.fence(broker)

    def _crash_between_effects(self) -> None:
        self._node().effects_left = self.random.randrange(6)

    def _cut_power(self) -> None:
        self._end(lambda broker: self.world.lose_power(broker, self.random.randrange))

    def _depose(self) -> None:
        """Cut the leader off, with records that nobody else gets, and let another one lead."""
        old = self.world.image.leader
        if old == NO_LEADER:
            return
        peers = [peer for peer in (*self.world.nodes, CONTROLLER) if peer != old]
        cut = [peer for peer in peers if self.random.random() < 0.8]
        self.network.cut |= {(old, peer) for peer in cut} | {(peer, old) for peer in cut}
        for _ in range(self.random.randrange(4)):
            self._produce_to(old)
        self._few()
        self.world.fence(old)
        self._few()
        self._produce()

    def _heal(self) -> None:
        self.network.cut.clear()
        if self.world.image.leader == NO_LEADER and self.random.random() < 0.4:
            self.correlation += 1
            self.world.send(OPERATOR, CONTROLLER, ElectRequest(self.correlation, PARTITION, is_unclean=True))

    def _start(self) -> None:
        for node in self.world.nodes.values():
            if node.broker is None and self.random.random() < 0.8:
                node.storage.arm(-1, 0)
                self.world.restart(node.broker_id)

    def _pause(self) -> None:
        self.world.pause(self._node().broker_id)

    def _resume(self) -> None:
        for broker in self.world.nodes:
            self.world.resume(broker)

    def _fence(self) -> None:
        self.world.fence(self._node().broker_id)

    def _shut_down(self) -> None:
        self.world.shut_down(self._node().broker_id)

    def _fail_disk(self) -> None:
        self._node().storage.arm(self.random.randrange(9), self.random.randrange(3))

    def _flush(self) -> None:
        node = self._node()
        try:
            node.storage.flush()
        except StorageError:
            self.world.crash(node.broker_id)

    def _jump(self) -> None:
        self._node().clock_offset_ms = self.random.randrange(-3_000, 3_000)

    def _go_on_as_copies(self) -> None:
        """Replace a replica and the controller by copies, after the originals were given something else."""
        node = self._node()
        if node.broker is None:
            return
        state = node.broker.state
        batch = Batch(0, -1, 1, 7, 9, 0, b"into the original")
        original, node.broker.replica = node.broker.replica, node.broker.replica.copy()
        self.watch.note(who(node.broker_id), "copy", same=state.log == node.broker.state.log)
        effects = original.receive(CLIENT, ProduceRequest(1, batch, 1, 50), self.world.now_ms)
        self.watch.note(who(node.broker_id), "original", effects=tuple(effects))
        controller, self.world.controller = self.world.controller, self.world.controller.copy()
        effects = controller.handle(Received(OPERATOR, ElectRequest(1, PARTITION)), self.world.now_ms)
        self.watch.note("controller", "original", effects=tuple(effects))

    def _cut_links(self) -> None:
        pair = self.random.sample([*self.world.nodes, CONTROLLER], 2)
        self.network.cut |= {(pair[0], pair[1]), (pair[1], pair[0])} if self.random.random() < 0.7 else set()

    def _pick(self) -> None:
        """Let something happen out of order, or never."""
        pending = self.world.pending()
        if pending:
            entry: tuple[int, int, Item] = pending[self.random.randrange(min(len(pending), 12))]
            (self.world.drop if self.random.random() < 0.1 else self.world.take)(entry)

    def _repeat(self) -> None:
        """Send an old message again, as it was or altered."""
        if not self.network.sent:
            return
        source, to, message = self.network.sent[self.random.randrange(len(self.network.sent))]
        if self.random.random() < 0.6:
            message = altered(message, self.random)
        self.world.send(source, to, message)


ACTIONS: dict[Callable[[Walk], None], int] = {
    Walk._produce: 40,
    Walk._consume: 12,
    Walk._look_up: 5,
    Walk._delete_records: 3,
    Walk._operate: 5,
    Walk._repeat: 6,
    Walk._pick: 8,
    Walk._start: 12,
    Walk._resume: 8,
    Walk._heal: 10,
    Walk._flush: 2,
    Walk._jump: 1,
    Walk._go_on_as_copies: 3,
    Walk._depose: 5,
    Walk._crash: 3,
    Walk._crash_between_effects: 3,
    Walk._cut_power: 3,
    Walk._pause: 2,
    Walk._fence: 1,
    Walk._shut_down: 3,
    Walk._fail_disk: 1,
    Walk._cut_links: 3,
}
FAULTS = frozenset(list(ACTIONS)[list(ACTIONS).index(Walk._depose) + 1 :])


def walk(seed: int, on_files: bool, protocol: str, actions: int, watch: RunWatch) -> None:
    """Take one walk."""
    Walk(watch, seed, on_files, protocol).run(actions)
