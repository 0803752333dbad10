"""A cluster of replog for stepping by hand: cores, disks, a controller, and messages that wait for delivery.

The binding's system under test.  It is the environment of the cores: it performs their effects, holds the
messages in flight (one fetch for each follower, one ISR proposal for each leader, as in the spec),
and keeps the values of the spec's ghost variables, from the cores' answers.  It decides
nothing about the protocol.

Not simulated: timers fire when an action requires it, at one fixed time; clients only produce.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from replog.core import messages
from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, ReplicaState
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState
from replog.core.effects import Send
from replog.core.protocol import Protocol
from replog.core.types import CONTROLLER, Error, MetadataImage
from replog.sim.cluster.storage import MemoryStorage, Storage
from replog_controlled import NOBODY, NOW_MS, PARTITION, ControlledCluster, FetchInFlight, Shared, epochs_of

CORRELATIONS_PER_INCARNATION = 1_000_000


@dataclass(frozen=True, slots=True)
class Rules:
    """The parameters of a cluster: the cores' rules, and the in-sync replicas that acks=all needs."""

    brokers: int
    first_leader: int
    min_isr: int
    protocol: Protocol
    disk: Callable[[], Storage] = MemoryStorage
    boot: Callable[[Storage, ReplicaState], Replica] = lambda _, state: Replica(state)


@dataclass(frozen=True, slots=True)
class AlterInFlight:
    """An ISR proposal in flight, or its reply; `newcomers` are the replicas that it would add."""

    request: messages.AlterPartitionRequest
    newcomers: tuple[int, ...]
    reply: messages.AlterPartitionReply | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """The events of the environment so far, for which the models have budgets."""

    crashes: int = 0
    losses: int = 0
    fences: int = 0
    shrinks: int = 0


@dataclass(slots=True)
class Node:
    """One machine: a disk, a process if one runs, and the broker epochs of its incarnations so far."""

    storage: Storage
    process: Replica | None
    broker_epochs: tuple[int, ...] = ()
    registered_at: int = 0
    """The leader epoch when this incarnation registered: it hears of no earlier one."""
    applied_version: int = -1

    def copy(self) -> Node:
        """Return an independent copy."""
        process = None if self.process is None else self.process.copy()
        storage = self.storage.copy()
        return Node(storage, process, self.broker_epochs, self.registered_at, self.applied_version)

    def is_as(self, other: Node) -> bool:
        """Return whether two machines run equal processes on equal disks; False if one of them runs none."""
        process, known = self.process, other.process
        return (
            process is not None
            and known is not None
            and process.state == known.state
            and self.storage == other.storage
            and self.registered_at == other.registered_at
        )


class Nodes(Shared[Node]):
    """The machines of a cluster, whose snapshots leave it its own."""

    __slots__ = ()

    def copy(self) -> Nodes:
        """Return a snapshot, which does not own any machine yet."""
        twin = Nodes.__new__(Nodes)
        twin._parts, twin._own = self._parts, NOBODY
        if self._own:  # which run here, and may be in another state later
            nodes = enumerate(self._parts)
            twin._parts = tuple([node.copy() if broker in self._own else node for broker, node in nodes])
        return twin


@dataclass(slots=True)
class Cluster(ControlledCluster):
    """The whole cluster at one moment; `copy` is a snapshot that can be run on its own.

    The mappings are replaced and never changed, so snapshots share them.
    """

    rules: Rules
    nodes: Nodes
    metadata: Mapping[int, MetadataImage] = field(default_factory=dict)
    """For each leader epoch its last version."""
    alters: Mapping[int, AlterInFlight] = field(default_factory=dict)
    spent: Spent = Spent()
    acked: tuple[int, ...] = ()
    """The leader epoch of each record up to the last one that a producer was told to be safe."""

    def copy(self) -> Self:
        """Return a snapshot."""
        self.has_own_controller = False  # from now on neither cluster owns it
        return type(self)(
            self._controller, self.rules, self.nodes.copy(), self.metadata, self.alters, self.spent,
            self.acked, fetches=self.fetches, committed=self.committed, has_own_controller=False,
        )  # fmt: skip

    def state(self, broker: int) -> ReplicaState | None:
        """Return the state of a broker's replica, None if no process runs."""
        process = self.nodes.seen[broker].process
        return None if process is None else process.state

    def replica(self, broker: int) -> Replica:
        """Return the running process of a broker."""
        process = self.nodes[broker].process
        assert process is not None
        return process

    def disk(self, broker: int) -> Storage:
        """Return the disk of a broker's machine."""
        return self.nodes[broker].storage

    def running(self, broker: int) -> ReplicaState:
        """Return the state of a running replica, which events will change."""
        return self.replica(broker).state

    def apply_metadata(self, broker: int, epoch: int) -> None:
        """Make a broker apply the last metadata of a leader epoch."""
        self._apply(broker, self.metadata[epoch])

    def apply_partition(self, broker: int, epoch: int) -> None:
        """Make a broker apply metadata without new information on brokers.

        Only the partition has a version that a replica could compare, and a metadata log never goes back.
        """
        self._apply(broker, replace(self.metadata[epoch], brokers=self.running(broker).brokers))

    def _apply(self, broker: int, update: MetadataImage) -> None:
        node = self.nodes[broker]
        node.applied_version = max(node.applied_version, update.version)
        self.perform(broker, self.replica(broker).apply(update, node.broker_epochs[-1], NOW_MS))

    def put(self, broker: int, sent: Send) -> None:
        """Put a message in flight if it has a slot; the caller that serves a fetch handles the reply."""
        state = self.running(broker)
        match sent.message:
            case messages.FetchRequest() as request:
                self.put_fetch(broker, FetchInFlight(sent.to, request))
            case messages.AlterPartitionRequest() as request:
                assert state.leading is not None
                members = tuple(member for member, _ in request.new_isr)
                newcomers = tuple(m for m in members if m not in state.leading.isr)
                self.put_alter(broker, AlterInFlight(request, newcomers))
            case messages.ProduceReply(error=Error.NONE, base_offset=base) if base >= len(self.acked):
                self.acked = epochs_of(state)[: base + 1]
            case _:
                pass

    def note_metadata(self) -> None:
        """Remember the metadata as the last ones of their leader epoch."""
        epoch, last = self.image.leader_epoch, self.registry.history[-1]
        if self.metadata.get(epoch) is not last:
            self.metadata = {**self.metadata, epoch: last}

    def put_alter(self, leader: int, alter: AlterInFlight) -> None:
        """Put a proposal of a broker in flight."""
        self.alters = {**self.alters, leader: alter}

    def take_alter(self, leader: int) -> None:
        """Remove a broker's proposal from those in flight."""
        self.alters = {broker: alter for broker, alter in self.alters.items() if broker != leader}

    def heartbeat(self, broker: int) -> None:
        """Send the controller a broker's heartbeat, with the metadata version it has applied."""
        node = self.nodes.seen[broker]
        self.decide(broker, messages.HeartbeatRequest(broker, node.broker_epochs[-1], node.applied_version))

    def register(self, broker: int) -> Error:
        """Start a process on the contents of the disk, if the controller admits it as a new incarnation."""
        node = self.nodes.seen[broker]
        incarnation = len(node.broker_epochs) + 1
        disk = node.storage.copy()
        recovered = disk.recover()
        request = messages.RegisterRequest(broker, incarnation, recovered.previous_broker_epoch)
        reply = self.decide(broker, request)
        assert isinstance(reply, messages.RegisterReply)
        if reply.error is not Error.NONE:
            return reply.error
        config = Config(min_isr=self.rules.min_isr, follower_read=True)
        correlation = incarnation * CORRELATIONS_PER_INCARNATION
        state = ReplicaState(
            broker, PARTITION, config, self.rules.protocol, recovered.log, correlation=correlation
        )
        process = self.rules.boot(disk, state)
        epochs = (*node.broker_epochs, reply.broker_epoch)
        self.nodes[broker] = Node(disk, process, epochs, self.image.leader_epoch)
        return Error.NONE

    def end_process(self, broker: int) -> None:
        """Remove a process, and the messages in flight to it."""
        self.nodes[broker].process = None
        slot = self.fetches.get(broker)
        if slot is not None and slot.reply is not None:
            self.take_fetch(broker)


C = TypeVar("C", bound=Cluster)


def new_cluster(rules: Rules, kind: type[C] = Cluster) -> C:
    """Return a cluster with an empty partition, led by `first_leader` in epoch 0, known to all brokers."""
    brokers = [rules.first_leader, *(b for b in range(rules.brokers) if b != rules.first_leader)]
    controller = Controller(ControllerState(ControllerConfig(rules.min_isr), rules.protocol))
    controller.create_partition(PARTITION, tuple(range(rules.brokers)))
    cluster = kind(controller, rules, Nodes(Node(rules.disk(), None) for _ in brokers))
    for broker in brokers:
        error = cluster.register(broker)
        assert error is Error.NONE
        cluster.nodes[broker].applied_version = cluster.registry.version
        cluster.heartbeat(broker)
    for broker in brokers:
        cluster.apply_metadata(broker, 0)
    assert CONTROLLER not in cluster.fetches
    return cluster
