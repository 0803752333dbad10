"""A cluster of replog whose records are deleted: cores, files, a controller, and what is in flight.

The binding's system.  It performs the cores' effects and moves what an action moves; it decides nothing about
the protocol.  Metadata waits, by leader epoch, until a broker is to apply it; the leader of the latest epoch
applies what is news in it at once.

What the spec leaves out has one value here: followers outside of the ISR fetch seldom, so that HW does not
wait for them (I3).
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
    DeleteRecordsReply,
    FetchReply,
    FetchRequest,
    HeartbeatRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
    Message,
    RegisterRequest,
)
from replog.core.protocol import Protocol
from replog.core.types import (
    CONTROLLER,
    BrokerImage,
    BrokerState,
    Error,
    MetadataImage,
    PartitionImage,
    Role,
)
from replog.sim.disks.stored import StoreStorage

PARTITION = "t-0"
NOW_MS, LONG_AGO_MS = 1_000_000, 0


@dataclass(frozen=True, slots=True)
class StartFetch:
    """A request of a follower in flight; once it is served, the reply."""

    epoch: int
    to: int
    request: FetchRequest | ListOffsetsRequest
    reply: FetchReply | ListOffsetsReply | None = None


@dataclass(slots=True)
class Trimming:
    """All of it at one moment."""

    controller: Controller
    brokers: list[Replica]
    disks: list[StoreStorage]
    metadata: dict[int, MetadataImage] = field(default_factory=dict)
    """The controller's last word in each leader epoch."""
    fetches: dict[int, StartFetch] = field(default_factory=dict)
    requested: dict[int, int] = field(default_factory=dict)
    """What clients wait for that have requested a deletion, by leader."""
    committed: tuple[int, ...] = ()
    """The leader epoch of each record below the highest HW that a leader has had, deleted ones included."""
    deleted: int = 0
    fences: int = 0
    shrinks: int = 0
    own: set[int] = field(default_factory=set)
    """Whose disk no copy shares."""

    def copy(self) -> Trimming:
        """Return an independent copy; disks are copied when they are written to."""
        self.own.clear()
        return Trimming(
            self.controller.copy(), [broker.copy() for broker in self.brokers], [*self.disks],
            {**self.metadata}, {**self.fetches}, {**self.requested}, self.committed, self.deleted,
            self.fences, self.shrinks,
        )  # fmt: skip

    @property
    def image(self) -> PartitionImage:
        """Return the controller's word on the partition."""
        return self.controller.state.partitions[PARTITION]

    def is_fenced(self, broker: int) -> bool:
        """Tell whether the controller takes a broker for dead."""
        return self.controller.state.brokers[broker].state is BrokerState.FENCED

    def leads(self, broker: int) -> bool:
        """Tell whether a broker leads in the latest epoch."""
        state = self.brokers[broker].state
        return state.leading is not None and state.leader_epoch == self.image.leader_epoch

    def ask(self, source: int, message: Message) -> Message | None:
        """Let the controller handle a message; return its reply."""
        effects = self.controller.handle(Received(source, message), NOW_MS)
        self._note()
        return next((e.message for e in effects if isinstance(e, Send) and e.to == source), None)

    def expire_session(self, broker: int) -> None:
        """Let a broker's session be over by now, and no other."""
        brokers = self.controller.state.brokers
        for other, known in brokers.items():
            brokers[other] = replace(known, last_seen_ms=-NOW_MS if other == broker else NOW_MS)
        self.controller.handle(Fired(Timer.SESSION_CHECK), NOW_MS)
        self._note()

    def heartbeat(self, broker: int) -> None:
        """Let a broker report that it has applied all that there is."""
        state = self.controller.state
        self.ask(broker, HeartbeatRequest(broker, state.brokers[broker].broker_epoch, state.version))

    def _note(self) -> None:
        state = self.controller.state
        known = {b: BrokerImage(r.broker_epoch, r.state) for b, r in state.brokers.items()}
        image = MetadataImage(state.version, {PARTITION: self.image}, known)
        self.metadata[self.image.leader_epoch] = image

    def tell_leader(self) -> None:
        """Let the leader of the latest epoch apply what is news in it."""
        if self.leads(self.image.leader):
            self.apply(self.image.leader, self.image.leader_epoch)

    def apply(self, broker: int, epoch: int) -> None:
        """Let a broker apply the metadata of one leader epoch."""
        self._date_fetches(broker, LONG_AGO_MS)
        image = self.metadata[epoch]
        epoch_of = self.controller.state.brokers[broker].broker_epoch
        self._perform(broker, self.brokers[broker].apply(image, epoch_of, NOW_MS))

    def receive(self, broker: int, source: int, message: Message) -> list[Effect]:
        """Let a broker handle a message; its effects are performed, and returned to look at."""
        self._date_fetches(broker, LONG_AGO_MS)
        return self._perform(broker, self.brokers[broker].receive(source, message, NOW_MS))

    def fire(self, broker: int, timer: Timer, token: int = 0) -> list[Effect]:
        """Let a broker's timer ring."""
        return self._perform(broker, self.brokers[broker].fire(timer, token, NOW_MS))

    def find_late(self, leader: int, follower: int) -> bool:
        """Let a leader check its followers, this one long behind; return whether it left the ISR."""
        leading = self.brokers[leader].state.leading
        assert leading is not None
        self._date_fetches(leader, NOW_MS)
        leading.remotes[follower].last_caught_up_ms = LONG_AGO_MS
        self.fire(leader, Timer.ISR_CHECK)
        return follower not in leading.isr

    def _date_fetches(self, leader: int, when_ms: int) -> None:
        leading = self.brokers[leader].state.leading
        for remote in () if leading is None else leading.remotes.values():
            remote.last_caught_up_ms = remote.last_fetch_ms = when_ms

    def _perform(self, broker: int, effects: list[Effect]) -> list[Effect]:
        state = self.brokers[broker].state
        proposals: list[AlterPartitionRequest] = []
        for effect in effects:
            match effect:
                case Send(to=to, message=FetchRequest() | ListOffsetsRequest() as request):
                    self.fetches[broker] = StartFetch(state.leader_epoch, to, request)
                case Send(message=AlterPartitionRequest() as request):
                    proposals.append(request)
                case Send(message=DeleteRecordsReply(error=error)):
                    offset = self.requested.pop(broker)
                    self.deleted = max(self.deleted, offset if error is Error.NONE else 0)
                case Send() | SetTimer():
                    pass
                case _:
                    self._write(broker, effect)
        self._note_committed(state)
        for proposal in proposals:
            reply = self.ask(broker, proposal)
            assert isinstance(reply, AlterPartitionReply)
            self._perform(broker, self.brokers[broker].receive(CONTROLLER, reply, NOW_MS))
        return effects

    def _write(self, broker: int, effect: Effect) -> None:
        if broker not in self.own:
            self.disks[broker] = self.disks[broker].copy()
            self.own.add(broker)
        self.disks[broker].perform(effect)

    def _note_committed(self, state: ReplicaState) -> None:
        log = state.log
        if state.role is Role.LEADER and log.hw > len(self.committed):
            written = tuple(epoch for epoch, _ in log.cells())
            self.committed = (*self.committed[: log.log_start], *written[: log.hw - log.log_start])


def new_cluster(brokers: int, first: int, rules: Protocol) -> Trimming:
    """Return a cluster with an empty partition, led by one broker, that all have heard of."""
    controller = Controller(ControllerState(ControllerConfig(1), rules))
    replicas = (first, *(broker for broker in range(brokers) if broker != first))
    controller.state.partitions[PARTITION] = PartitionImage(replicas, first, 0, 0, replicas)
    cores = [Replica(ReplicaState(broker, PARTITION, Config(), rules)) for broker in range(brokers)]
    cluster = Trimming(controller, cores, [StoreStorage() for _ in cores])
    each: tuple[Callable[[int], object], ...] = (
        lambda broker: cluster.ask(broker, RegisterRequest(broker, 1)),
        cluster.heartbeat,
        lambda broker: cluster.apply(broker, 0),
    )
    for step in each:
        for broker in range(brokers):
            step(broker)
    return cluster
