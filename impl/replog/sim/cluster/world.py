"""A cluster in one process: brokers, controller, clients, network, clocks; the caller chooses every step.

    world = World(WorldOptions(brokers=3, min_isr=2))
    world.step()                       # the next event by time; or pick one yourself:
    world.take(world.pending()[0])     # ... any pending delivery or alarm
    world.crash(1); world.restart(1); world.fence(1)

All that is going to happen is one heap of (due, serial, item).  Serials make the order total, so a world is
a function of its options, the network policy's seed and the calls made on it.  A node dies between two
effects when its `effects_left` runs out.

Messages belong to connections: one to an incarnation that has died is lost with it (as with TCP), one from it
may still arrive.  What arrives out of order came over several; but no copy of an ISR
proposal arrives after one that was sent later has been refused (`connections`).

The controller is one that does not fail, or several (`quorum`); then `controller` shows what is committed.

Not here: chance (`faults`), what is right (`oracles`), the free-running loop (`run`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from heapq import heappop, heappush

from replog.core.broker.broker import Broker
from replog.core.broker.coordinator import GroupReplica
from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState, expire_session
from replog.core.effects import (
    Effect,
    Fired,
    Of,
    Received,
    Send,
    SetTimer,
    ShutDown,
    StoreHighWatermark,
    Timer,
    Truncate,
)
from replog.core.messages import ElectRequest, ForPartition, Message, ReassignRequest
from replog.core.quorum.records import record_of
from replog.core.types import CONTROLLER, PartitionImage, Role
from replog.run.storage import StorageError
from replog.sim.cluster import connections
from replog.sim.cluster.node import Alarm, Call, Client, Counters, Delivery, Item, Network, Node, event_of
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.quorum import Quorum, addresses
from replog.sim.cluster.several import SeveralStorage, recovered_by_name
from replog.sim.cluster.storage import Storage

PARTITION = "t-0"
START_MS = 1_000_000
"""Clocks do not begin at 0, where "never" and "long ago" look alike."""
CORRELATIONS_PER_INCARNATION = 1_000_000
OPERATOR = -99
"""The address of the operator, who requests preferred elections and reassignments."""


class Observer:
    """An observer of every step; by default it does nothing."""

    def changed(self, world: World, node: Node) -> None:
        """Note that a node has handled an event."""

    def decided(self, world: World) -> None:
        """Note the cluster after an event of the controller."""


class World:
    """A cluster at one moment, and the ways to advance it."""

    def __init__(
        self, options: WorldOptions, network: Network | None = None, observer: Observer | None = None
    ) -> None:
        self.options = options
        self.network = Network() if network is None else network
        self.observer = Observer() if observer is None else observer
        self.now_ms = START_MS
        self.counters = Counters()
        self.clients: dict[int, Client] = {}
        self.replies: list[tuple[int, Message]] = []
        held = tuple(range(options.replicas or options.brokers))
        self.partitions = dict(options.partitions) or {PARTITION: held}
        self.focus = next(iter(self.partitions))
        """The partition that an operator looks at: `image`, elections and reassignments are its."""
        self.readers: dict[int, str] = {}
        """Of a client, which of several partitions it reads or writes."""
        self.nodes = {b: Node(b, self._make_storage()) for b in range(options.brokers)}
        self._heap: list[tuple[int, int, Item]] = []
        self._serial = 0
        self._taken: set[int] = set()
        settings = ControllerConfig(options.min_isr, options.session_timeout_ms)
        self.controller = Controller(ControllerState(settings, options.protocol))
        # Before any broker runs, as if an earlier cluster had created it: nobody leads until the first one
        # registers.
        for name, replicas in self.partitions.items():
            self.controller.create_partition(name, replicas)
        self.controllers = addresses(options.controllers)
        self.quorum: Quorum | None = None
        if options.controllers == 1:
            self.perform_for(CONTROLLER, self.controller.start())
        else:
            self.quorum = Quorum(
                self.controllers, settings, options.protocol, record_of(self.controller.state, 1),
                self.send, self.schedule, lambda: self.now_ms,
            )  # fmt: skip
            self.quorum.start()

    def _note_decisions(self) -> None:
        if self.quorum is not None:
            self.controller = self.quorum.view()
        self.observer.decided(self)

    def _make_storage(self) -> Storage:
        make = self.options.make_storage
        several = len(self.partitions) > 1
        return SeveralStorage({name: make() for name in self.partitions}) if several else make()

    @property
    def image(self) -> PartitionImage:
        """Return the controller's current metadata on the partition; if several, on the one in focus."""
        return self.controller.state.partitions[self.focus]

    def pending(self) -> list[tuple[int, int, Item]]:
        """Return all possible next events as (due, serial, item), in order of time."""
        return sorted(entry for entry in self._heap if entry[1] not in self._taken)

    def running(self) -> Iterator[Node]:
        """Yield the nodes with a living process, by id."""
        return (node for _, node in sorted(self.nodes.items()) if node.broker is not None)

    def step(self) -> bool:
        """Execute the next event by time; return False if there is none."""
        while self._heap:
            due, serial, item = heappop(self._heap)
            # Taken or dropped earlier. Removing an entry from the middle of a heap would cost a search.
            if serial in self._taken:
                self._taken.discard(serial)
                continue
            # Time never goes back: an item that was due before another was taken by hand is merely late.
            self.now_ms = max(self.now_ms, due)
            self._execute(item)
            return True
        return False

    def take(self, entry: tuple[int, int, Item]) -> None:
        """Execute a pending item now, whatever its time."""
        self.drop(entry)
        self._execute(entry[2])

    def drop(self, entry: tuple[int, int, Item]) -> None:
        """Remove a pending item: a message is lost, an alarm never rings."""
        self._taken.add(entry[1])

    def schedule(self, delay_ms: int, item: Item) -> None:
        """Schedule an item."""
        self._serial += 1
        heappush(self._heap, (self.now_ms + max(delay_ms, 0), self._serial, item))

    def send(self, source: int, to: int, message: Message) -> None:
        """Hand a message to the network."""
        node = self.nodes.get(to)
        # Fixed when the message is sent: the connection is to the process that runs now.
        incarnation = 0 if node is None else node.incarnation
        if self.quorum is not None and to in self.quorum.hosts:
            incarnation = self.quorum.hosts[to].incarnation
        # Its leader rolls back, and a copy that is granted later would change the ISR behind its back.
        attempt = connections.refused(message)
        if attempt is not None:
            for entry in [entry for entry in self._heap if connections.is_copy(entry[2], to, attempt)]:
                self.drop(entry)
        # What a broker sends to itself goes over no network.
        delays = (0,) if source == to else tuple(self.network.delays(source, to, message))
        for delay_ms in delays:
            self.schedule(delay_ms, Delivery(source, to, message, incarnation))
        self.counters.lost += not delays

    def _execute(self, item: Item) -> None:
        if isinstance(item, Call):
            item.action()
            return
        target = item.to if isinstance(item, Delivery) else item.owner
        node = self.nodes.get(target)
        if node is None:
            self._execute_outside(target, item)
            return
        if node.broker is None or node.incarnation != item.incarnation:
            return
        # A paused process keeps its connections: what reaches it waits in its buffers and is not lost.
        if node.held is not None:
            node.held.append(item)
            return
        self.counters.steps += 1
        # Each machine has its own clock, wrong by an offset. Timers run by the world's: a duration is right
        # even where the date is not.
        effects = node.broker.handle(event_of(item), self.now_ms + node.clock_offset_ms)
        # Before the effects: the state in memory has to keep the promises even if the process dies now.
        self.observer.changed(self, node)
        self._perform(node, effects)

    def _execute_outside(self, target: int, item: Delivery | Alarm) -> None:
        """Deliver an item to a controller or to a client."""
        if target in self.controllers:
            self.counters.steps += 1
            if self.quorum is not None:
                self.quorum.execute(item)
            else:
                self.perform_for(CONTROLLER, self.controller.handle(event_of(item), self.now_ms))
            self._note_decisions()
            return
        client = self.clients.get(target)
        if client is not None and isinstance(item, Delivery):
            reply = item.message.message if isinstance(item.message, ForPartition) else item.message
            self.perform_for(target, client.receive(reply, self.now_ms))
        elif client is not None and isinstance(item, Alarm):
            self.perform_for(target, client.fire(item.timer, item.token, self.now_ms))
        elif isinstance(item, Delivery):
            self.replies.append((target, item.message))

    def _perform(self, node: Node, effects: list[Effect]) -> None:
        """Perform a node's effects in order; the node may die between any two."""
        for effect in effects:
            # Between two effects, never inside of one. A write that is torn is the disk's business.
            if node.effects_left == 0:
                self.counters.crashes_mid_effects += 1
                self.crash(node.broker_id)
                return
            node.effects_left -= node.effects_left > 0
            if isinstance(effect, SetTimer):
                self._arm(node, effect)
            elif isinstance(effect, Of) and isinstance(effect.effect, SetTimer):
                self._arm(node, effect.effect, effect.partition)
            elif isinstance(effect, ShutDown):
                self.stop(node.broker_id)
                return
            else:
                try:
                    self._perform_on_disk(node, effect)
                except StorageError:
                    self.counters.disk_failures += 1
                    # Kafka halts when its last log directory fails. The effects that follow, replies among
                    # them, are not performed.
                    self.crash(node.broker_id)
                    return

    def _perform_on_disk(self, node: Node, effect: Effect) -> None:
        """Perform an effect that needs the disk, such as sending batches whose bodies are there."""
        if isinstance(effect, Send):
            self.send(node.broker_id, effect.to, node.storage.with_bodies(effect.message))
            return
        node.storage.perform(effect)
        self.counters.truncations += isinstance(effect.effect if isinstance(effect, Of) else effect, Truncate)

    def _arm(self, node: Node, timer: SetTimer, partition: str = "") -> None:
        alarm = Alarm(node.broker_id, timer.timer, timer.token, node.incarnation, partition)
        self.schedule(timer.delay_ms, alarm)

    def perform_for(self, owner: int, effects: list[Effect]) -> None:
        """Perform the effects of the controller or of a client, which have no disk."""
        partition = self.readers.get(owner)
        for effect in effects:
            if isinstance(effect, Send):
                message = effect.message if partition is None else ForPartition(partition, effect.message)
                self.send(owner, effect.to, message)
            elif isinstance(effect, SetTimer):
                self.schedule(effect.delay_ms, Alarm(owner, effect.timer, effect.token, 0))

    def start_client(self, address: int, client: Client, delay_ms: int = 0, partition: str = "") -> None:
        """Add a client, if there are several partitions for this one, and wake it for the first time."""
        self.clients[address] = client
        if partition:
            self.readers[address] = partition
        self.schedule(delay_ms, Alarm(address, Timer.SEND_FETCH, 0, 0))

    def restart(self, broker_id: int) -> None:
        """Start a process on a node without one: recover the disk, register, wait for metadata."""
        node = self.nodes[broker_id]
        assert node.broker is None, "a process is running"
        try:
            recovered = recovered_by_name(node.storage, next(iter(self.partitions)))
        except StorageError:
            self.counters.disk_failures += 1
            return
        # Again, as at the end of the last process: what was sent while none ran has the number of then, and
        # must not reach this one.
        node.incarnation += 1
        node.effects_left, node.held = -1, None
        config = replace(self.options.config, min_isr=self.options.min_isr)
        # Numbers start far from those of the earlier process, so a late reply to it matches no request of
        # this one.
        number = node.incarnation * CORRELATIONS_PER_INCARNATION
        replicas = [
            (GroupReplica if name == self.options.groups else Replica)(
                ReplicaState(broker_id, name, config, self.options.protocol, known.log, correlation=number)
            )
            for name, known in recovered.items()
        ]
        # Stopped cleanly if all of it was.
        marker = min(known.previous_broker_epoch for known in recovered.values())
        member = Membership(broker_id, node.incarnation, marker, self.options.coalesces_metadata)
        node.broker = Broker(member, *replicas, contact=self.quorum.contact() if self.quorum else None)
        # What a start has recovered is checked like any other state.
        self.observer.changed(self, node)
        self._perform(node, node.broker.start())

    def crash(self, broker_id: int) -> None:
        """Kill a process; its memory is lost, its disk keeps the page cache."""
        node = self.nodes[broker_id]
        if node.broker is not None:
            self.counters.crashes += 1
            node.storage.crash()
        self._end_process(node)

    def lose_power(self, broker_id: int, choose: Callable[[int], int]) -> None:
        """Kill a process and lose as much unflushed data as `choose` determines."""
        node = self.nodes[broker_id]
        self.counters.crashes += node.broker is not None
        node.storage.lose_power(choose)
        self._end_process(node)

    def stop(self, broker_id: int) -> None:
        """End a process cleanly, after a controlled shutdown was granted."""
        node = self.nodes[broker_id]
        if node.broker is not None:
            try:
                for name, replica in node.broker.replicas.items():
                    if replica.state.role is not Role.NONE:  # as Kafka does, and its timer (A25)
                        stored = StoreHighWatermark(replica.state.log.hw)
                        node.storage.perform(stored if len(self.partitions) == 1 else Of(name, stored))
                node.storage.close(node.broker.membership.broker_epoch)
                self.counters.stops += 1
            # The marker is written last: a stop that fails before it counts as unclean.
            except StorageError:
                self.counters.disk_failures += 1
                # The process ends all the same, and with it its lock on the directory.
                node.storage.crash()
        self._end_process(node)

    def shut_down(self, broker_id: int) -> None:
        """Begin a controlled shutdown."""
        node = self.nodes[broker_id]
        if node.broker is not None:
            self._perform(node, node.broker.shut_down())

    def pause(self, broker_id: int) -> None:
        """Freeze a process: messages and alarms for it wait."""
        node = self.nodes[broker_id]
        if node.broker is not None and node.held is None:
            node.held = []

    def resume(self, broker_id: int) -> None:
        """Thaw a process, which then handles waiting messages at once."""
        node = self.nodes[broker_id]
        held, node.held = node.held or [], None
        # In their order: of equal times the serials decide.
        for item in held:
            self.schedule(0, item)

    def fence(self, broker_id: int) -> None:
        """Expire a broker's session now, and no other."""
        if self.quorum is not None:
            self.quorum.fence(broker_id)
            self._note_decisions()
        elif expire_session(self.controller.state, broker_id, self.now_ms):
            effects = self.controller.handle(Fired(Timer.SESSION_CHECK), self.now_ms)
            # The periodic check is armed already; a second timer would double its rate for the rest of the
            # run.
            self.perform_for(CONTROLLER, [e for e in effects if not isinstance(e, SetTimer)])
            self._note_decisions()

    def elect_preferred(self) -> None:
        """Elect the preferred leader, as if an operator had requested it."""
        self._operate(ElectRequest(0, self.focus))

    def reassign(self, target: tuple[int, ...] | None) -> None:
        """Request these replicas, or cancel the request, as an operator."""
        self._operate(ReassignRequest(0, self.focus, target))

    def _operate(self, request: ElectRequest | ReassignRequest) -> None:
        received = Received(OPERATOR, request)
        if self.quorum is not None:
            self.quorum.operate(received)
        else:
            self.perform_for(CONTROLLER, self.controller.handle(received, self.now_ms))
        self._note_decisions()

    def _end_process(self, node: Node) -> None:
        node.broker, node.held, node.effects_left = None, None, -1
        # Messages that are under way to the dead process are lost with its connections.
        node.incarnation += 1
