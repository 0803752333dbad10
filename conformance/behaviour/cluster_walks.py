"""Random walks of a cluster: requests of any client or operator, any fault, and altered messages.

A seed decides the cluster (rules, sizes, times, disks) and every action.  The simulator's runs look for
broken promises, so they leave out what Kafka does not survive, and their clients behave well.  Here nothing
is promised: messages are repeated, late, altered or for another process, numbers are just beside the right
ones, and timers are short, so that hundreds of steps meet what takes the simulator hours.

Requests name offsets near the ends that answers have shown: a walk reads no internal state of a broker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from lying_network import LyingNetwork, altered
from observed_world import ObservedClients, ObservedWorld, who
from walk_clients import CLIENT, WalkClients

from replog.core.broker.state import Config
from replog.core.effects import Received
from replog.core.messages import (
    ElectRequest,
    ProduceRequest,
)
from replog.core.protocol import preset
from replog.core.types import CONTROLLER, METADATA_HISTORY, NO_LEADER, Batch
from replog.sim.cluster.clients import Consumer, Producer
from replog.sim.cluster.node import Delivery, Item, Node
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.storage import MemoryStorage, StorageError
from replog.sim.cluster.world import OPERATOR, PARTITION
from replog.sim.disks.stored import StoreStorage
from replog.store.files.config import LogConfig
from specchk.conform.contract.behaviours import RunWatch


class Walk:
    """One walk; `on_files` gives the brokers replog's store, with segments of a few batches."""

    def __init__(self, watch: RunWatch, seed: int, on_files: bool, protocol: str) -> None:
        self.watch = watch
        self.random = Random(seed)  # noqa: S311  # chance that must be repeatable
        self.network = LyingNetwork(self.random)
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
        self.clients = WalkClients(self.world, self.network, self.random)
        self._begin()

    def _begin(self) -> None:
        """Start all brokers and, in some walks, a well-behaved producer and consumer."""
        for node in self.world.nodes.values():
            node.clock_offset_ms = self.random.randrange(-5, 5) * 100
            self.world.restart(node.broker_id)
        if self.random.random() < 0.5:
            clients, choose = self.clients, self.random.randrange
            observer = ObservedClients(self.watch)
            producer = Producer(-30, -1, True, 60, clients.leader, choose, observer, 300, 600)
            consumer = Consumer(-31, clients.leader, choose, observer, 250)
            self.world.start_client(-30, producer, 200)
            self.world.start_client(-31, consumer, 200)

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
        """Take an action; an exception of the implementation is noted, and its process has ended."""
        for _ in range(times):
            try:
                action()
            except Exception as error:  # of any kind, it is an output of the implementation
                self.watch.note("replog", "raises", error=type(error).__name__, text=str(error))
                for node in self.world.running():
                    self.world.crash(node.broker_id)

    def _few(self) -> None:
        for _ in range(self.random.choice((1, 3, 6, 12, 25))):
            self.world.step()

    def _node(self) -> Node:
        return self.world.nodes[self.random.randrange(len(self.world.nodes))]

    def _crash(self) -> None:
        self._end(self.world.crash)

    def _end(self, how: Callable[[int], object]) -> None:
        """End a process; usually its session also ends, so that a start need not wait for that."""
        broker = self._node().broker_id
        how(broker)
        if self.random.random() < 0.7:
            self.world.fence(broker)

    def _crash_between_effects(self) -> None:
        self._node().effects_left = self.random.randrange(6)

    def _cut_power(self) -> None:
        self._end(lambda broker: self.world.lose_power(broker, self.random.randrange))

    def _depose(self) -> None:
        """Cut the leader off, with records that no other broker receives, and let another one lead."""
        old = self.world.image.leader
        if old == NO_LEADER:
            return
        peers = [peer for peer in (*self.world.nodes, CONTROLLER) if peer != old]
        cut = [peer for peer in peers if self.random.random() < 0.8]
        self.network.cut |= {(old, peer) for peer in cut} | {(peer, old) for peer in cut}
        for _ in range(self.random.randrange(4)):
            self.clients.produce_to(old)
        self._few()
        self.world.fence(old)
        self._few()
        self.clients.produce()

    def _fall_behind(self) -> None:
        """Cut a broker off, or kill it, while records are written, committed and perhaps deleted."""
        late = self._node().broker_id
        peers = [peer for peer in (*self.world.nodes, CONTROLLER) if peer != late]
        if self.random.random() < 0.5:
            self.network.cut |= {(late, peer) for peer in peers} | {(peer, late) for peer in peers}
        else:
            self.world.crash(late)
        self.world.fence(late)
        for _ in range(self.random.choice((1, 2, 4))):
            self.clients.produce()
            self._few()
        if self.random.random() < 0.6:
            self.clients.delete_all()
        self._few()

    def _heal(self) -> None:
        self.network.cut.clear()
        if self.world.image.leader == NO_LEADER and self.random.random() < 0.4:
            self.clients.elect_any()

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
        """Replace a replica and the controller by copies, after giving the originals other events."""
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
        """Cut the link between two nodes, in one direction or in both."""
        one, other = self.random.sample([*self.world.nodes, CONTROLLER], 2)
        self.network.cut |= {(one, other), (other, one)} if self.random.random() < 0.5 else {(one, other)}

    def _miss_metadata(self) -> None:
        """Let a broker, usually the leader, miss the controller's decisions."""
        self.network.cut.add((CONTROLLER, self.clients.leader()))

    def _lose(self) -> None:
        """Lose every message of one kind in flight."""
        kinds = list(self._sent().values())
        for entry in self.random.choice(kinds) if kinds else ():
            self.world.drop(entry)

    def _sent(self) -> dict[str, list[tuple[int, int, Item]]]:
        """Return the messages in flight, by kind."""
        kinds: dict[str, list[tuple[int, int, Item]]] = {}
        for entry in self.world.pending():
            if isinstance(entry[2], Delivery):
                kinds.setdefault(type(entry[2].message).__name__, []).append(entry)
        return kinds

    def _miss_a_history(self) -> None:
        """Let a broker miss more versions of the metadata than the controller keeps."""
        late = self._node().broker_id
        self.network.cut.add((CONTROLLER, late))
        for turn in range(METADATA_HISTORY + self.random.choice((-1, 0, 1))):
            self.clients.configure(1 + turn % 2)
            self.world.step()
        self.network.cut.discard((CONTROLLER, late))

    def _change_while_many_wait(self) -> None:
        """Let requests wait at the leader, and change the leader, the ISR, or the minimum."""
        self.clients.wait()
        self._few()
        ways = (self._fence_leader, self._fence, self._depose, self._crash, self._shut_down)
        clients = self.clients
        change = self.random.choice((*ways, clients.operate, clients.operate, clients.prefer))
        change()
        self._few()

    def _fence_leader(self) -> None:
        """Let the leader's session expire; it may lead again at once."""
        self.world.fence(self.clients.leader())

    def _black_out(self) -> None:
        """End all processes, with or without their page caches; no session remains."""
        for broker in self.world.nodes:
            if self.random.random() < 0.6:
                self.world.lose_power(broker, self.random.randrange)
            else:
                self.world.crash(broker)
            self.world.fence(broker)
        self._start()

    def _pick(self) -> None:
        """Execute a pending event out of order, or drop it."""
        pending = self.world.pending()
        if pending:
            entry: tuple[int, int, Item] = pending[self.random.randrange(min(len(pending), 12))]
            (self.world.drop if self.random.random() < 0.1 else self.world.take)(entry)

    def _tamper(self) -> None:
        """Alter messages in flight, but keep the numbers for which the receiver waits."""
        for entries in self._sent().values():
            due_ms, serial, item = self.random.choice(entries)
            if isinstance(item, Delivery) and self.random.random() < 0.6:
                self.world.drop((due_ms, serial, item))
                message = altered(item.message, self.random)
                self.world.schedule(due_ms - self.world.now_ms, replace(item, message=message))

    def _repeat(self) -> None:
        """Send an old message again, unchanged or altered in one or two places."""
        old = self.network.old()
        if old is None:
            return
        source, to, message = old
        for _ in range(self.random.choice((0, 1, 1, 2))):
            message = altered(message, self.random)
        self.world.send(source, to, message)


def _of_clients(name: str) -> Callable[[Walk], None]:
    def action(walk: Walk) -> None:
        getattr(walk.clients, name)()

    action.__name__ = name
    return action


ACTIONS: dict[Callable[[Walk], None], float] = {
    _of_clients("produce"): 36,
    _of_clients("consume"): 12,
    _of_clients("look_up"): 5,
    _of_clients("delete_records"): 3,
    _of_clients("operate"): 5,
    Walk._repeat: 7,
    Walk._pick: 6,
    Walk._lose: 4,
    Walk._tamper: 6,
    Walk._change_while_many_wait: 6,
    Walk._start: 12,
    Walk._resume: 8,
    Walk._heal: 10,
    Walk._flush: 2,
    Walk._jump: 1,
    Walk._go_on_as_copies: 2,
    Walk._depose: 5,
    Walk._fall_behind: 4,
    Walk._crash: 3,
    Walk._crash_between_effects: 3,
    Walk._cut_power: 3,
    Walk._black_out: 1,
    Walk._pause: 2,
    Walk._fence: 1,
    Walk._shut_down: 3,
    Walk._fail_disk: 1,
    Walk._cut_links: 3,
    Walk._miss_metadata: 2,
    Walk._miss_a_history: 0.25,
}
FAULTS = frozenset(list(ACTIONS)[list(ACTIONS).index(Walk._depose) + 1 :])
