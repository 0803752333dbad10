"""A cluster of replog whose partition moves: cores, disks, a controller, and what is in flight between them.

The binding's system.  It performs the cores' effects and moves what an action moves; it decides nothing about
the protocol.  Metadata waits, by partition epoch, until a broker is to apply it, and may be skipped.

Two things that the spec leaves out have one value here.  Metadata has nothing on brokers that are fenced, so
that a leader proposes whoever fetches, and the controller refuses (replication.spec has the leader's own
check).  And followers outside of the ISR fetch seldom, so that HW does not wait for them (I3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, ReplicaState
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState
from replog.core.effects import Effect, Fired, Received, Send, SetTimer, Timer
from replog.core.messages import (
    AlterPartitionReply,
    AlterPartitionRequest,
    FetchReply,
    FetchRequest,
    HeartbeatRequest,
    Message,
    RegisterRequest,
)
from replog.core.protocol import Protocol
from replog.core.types import BrokerImage, BrokerState, MetadataImage, PartitionImage, Role
from replog.sim.cluster.storage import MemoryStorage

PARTITION = "t-0"
NOW_MS, LONG_AGO_MS = 1_000_000, 0


@dataclass(frozen=True, slots=True)
class Fetch:
    """A fetch in flight: by whom, as it was then, and to whom; once it is served, the reply."""

    sender: ReplicaState
    to: int
    request: FetchRequest
    reply: FetchReply | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to the cluster; the models have budgets for it."""

    reassignments: int = 0
    fences: int = 0
    shrinks: int = 0
    elections: int = 0


@dataclass(slots=True)
class Moving:
    """All of it at one moment."""

    controller: Controller
    brokers: list[Replica]
    disks: list[MemoryStorage]
    target: frozenset[int]
    metadata: dict[int, PartitionImage] = field(default_factory=dict)
    """What the controller has decided, by partition epoch."""
    applied: dict[int, int] = field(default_factory=dict)
    fetches: dict[int, Fetch] = field(default_factory=dict)
    proposals: dict[int, AlterPartitionRequest] = field(default_factory=dict)
    answers: dict[int, AlterPartitionReply] = field(default_factory=dict)
    """To proposals that were granted, until the metadata of the change, which has the same, is applied."""
    committed: tuple[int, ...] = ()
    """The leader epoch of each record below the highest HW that a leader has had."""
    spent: Done = Done()

    def copy(self) -> Moving:
        """Return an independent copy."""
        return Moving(
            self.controller.copy(), [broker.copy() for broker in self.brokers],
            [disk.copy() for disk in self.disks], self.target, {**self.metadata}, {**self.applied},
            {**self.fetches}, {**self.proposals}, {**self.answers}, self.committed, self.spent,
        )  # fmt: skip

    @property
    def image(self) -> PartitionImage:
        """Return the controller's word on the partition."""
        return self.controller.state.partitions[PARTITION]

    def is_fenced(self, broker: int) -> bool:
        """Tell whether the controller takes a broker for dead."""
        return self.controller.state.brokers[broker].state is BrokerState.FENCED

    def put_first(self, broker: int) -> None:
        """Let a replica be the first in the order of the assignment, as an operator may have wanted it."""
        others = tuple(replica for replica in self.image.replicas if replica != broker)
        if len(others) < len(self.image.replicas):
            ordered = replace(self.image, replicas=(broker, *others))
            self.controller.state.partitions[PARTITION] = ordered

    def ask(self, source: int, message: Message) -> Message | None:
        """Let the controller handle a message; return its reply."""
        effects = self.controller.handle(Received(source, message), NOW_MS)
        self.metadata.setdefault(self.image.partition_epoch, self.image)
        return next((e.message for e in effects if isinstance(e, Send) and e.to == source), None)

    def expire_session(self, broker: int) -> None:
        """Let a broker's session be over by now, and no other."""
        brokers = self.controller.state.brokers
        for other, known in brokers.items():
            brokers[other] = replace(known, last_seen_ms=-NOW_MS if other == broker else NOW_MS)
        self.controller.handle(Fired(Timer.SESSION_CHECK), NOW_MS)
        self.metadata.setdefault(self.image.partition_epoch, self.image)

    def heartbeat(self, broker: int) -> None:
        """Let a broker report that it has applied all that there is."""
        state = self.controller.state
        epoch = state.brokers[broker].broker_epoch
        self.ask(broker, HeartbeatRequest(broker, epoch, state.version))

    def apply(self, broker: int, version: int) -> None:
        """Let a broker apply the partition's metadata of one version."""
        registered = self.controller.state.brokers
        known = {b: BrokerImage(r.broker_epoch, BrokerState.ACTIVE) for b, r in registered.items()}
        update = MetadataImage(version, {PARTITION: self.metadata[version]}, known)
        self._perform(broker, self.brokers[broker].apply(update, known[broker].broker_epoch, NOW_MS))
        self.applied[broker] = version
        self.proposals.pop(broker, None)
        self.answers.pop(broker, None)

    def receive(self, broker: int, source: int, message: Message) -> list[Effect]:
        """Let a broker handle a message; its effects are performed, and returned to look at."""
        self.date_fetches(broker, LONG_AGO_MS)
        return self._perform(broker, self.brokers[broker].receive(source, message, NOW_MS))

    def fire(self, broker: int, timer: Timer, token: int = 0) -> list[Effect]:
        """Let a broker's timer ring."""
        return self._perform(broker, self.brokers[broker].fire(timer, token, NOW_MS))

    def date_fetches(self, leader: int, when_ms: int) -> None:
        """Set when the followers of a leader last fetched, and were caught up."""
        leading = self.brokers[leader].state.leading
        for remote in () if leading is None else leading.remotes.values():
            remote.last_caught_up_ms = remote.last_fetch_ms = when_ms

    def _perform(self, broker: int, effects: list[Effect]) -> list[Effect]:
        state = self.brokers[broker].state
        for effect in effects:
            match effect:
                case Send(to=to, message=FetchRequest() as request):
                    self.fetches[broker] = Fetch(state.copy(), to, request)
                case Send(message=AlterPartitionRequest() as request):
                    self.proposals[broker] = request
                case Send() | SetTimer():
                    pass
                case _:
                    self.disks[broker].perform(effect)
        if state.role is Role.LEADER and state.log.hw > len(self.committed):
            self.committed = epochs_of(state)[: state.log.hw]
        return effects


def epochs_of(state: ReplicaState) -> tuple[int, ...]:
    """Return the leader epoch of each record of a replica's log."""
    return tuple(epoch for epoch, _ in state.log.cells())


def new_cluster(brokers: int, replicas: tuple[int, ...], min_isr: int, rules: Protocol) -> Moving:
    """Return a cluster with an empty partition, led by the first replica, that all have heard of."""
    controller = Controller(ControllerState(ControllerConfig(min_isr), rules))
    image = PartitionImage(replicas, replicas[0], 0, 0, replicas)
    controller.state.partitions[PARTITION] = image
    config = Config(min_isr=min_isr)
    cores = [Replica(ReplicaState(broker, PARTITION, config, rules)) for broker in range(brokers)]
    disks = [MemoryStorage() for _ in cores]
    cluster = Moving(controller, cores, disks, frozenset(replicas), {0: image})
    each: tuple[Callable[[int], object], ...] = (
        lambda broker: cluster.ask(broker, RegisterRequest(broker, 1)),
        cluster.heartbeat,
        lambda broker: cluster.apply(broker, 0),
    )
    for step in each:
        for broker in range(brokers):
            step(broker)
    return cluster
