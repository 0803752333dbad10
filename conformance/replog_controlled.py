"""A controller of replog and all that it decides about, stepped by hand: common to the bindings of clusters.

The system under test is replog's controller, and a core and a disk for each broker.  It performs the cores'
effects and moves an action's messages, of which one fetch of each follower is in flight; it decides nothing
about the protocol.  Timers fire when an action requires it, at one fixed time.

A snapshot is taken for each step and restored for each call that is tried, most of which are refused by
reading the state.  So snapshots share controllers, cores and disks; one of these is copied at its first
use.

Specs count the records of a log up to each epoch; what such a log cannot express is `OutsideSpec`.

Not here: brokers, disks and other messages (`replog_cluster`, `replog_partition`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Generic, TypeVar

from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerState, expire_session
from replog.core.effects import Append, Effect, Fired, Received, Send, SetTimer, Timer
from replog.core.log.logview import LogView
from replog.core.messages import (
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
    Message,
    ProduceRequest,
)
from replog.core.types import Batch, BrokerState, PartitionImage, Role
from specchk.conform.contract.binding import Accepted, Answer, Impossible, OutsideSpec, Refused, action
from specchk.conform.contract.ruled import Copied, CopyingBinding
from specchk.ir.program import Program

P = TypeVar("P", bound=Copied)
M = TypeVar("M")
C = TypeVar("C", bound=Any)
PARTITION = "t-0"
NOW_MS, LONG_AGO_MS = 1_000_000, 0
CLIENT, OPERATOR = -100, -101
NOBODY: frozenset[int] = frozenset()
DOWN = Impossible("no process runs there")


class Shared(Generic[P]):
    """Parts of a cluster, each of which is copied at its first use after a snapshot.

    Invariant: no part is run that is not its cluster's own, so that snapshots may share the others.
    """

    __slots__ = ("_own", "_parts")

    def __init__(self, parts: Iterable[P]) -> None:
        self._parts = tuple(parts)
        self._own = frozenset(range(len(self._parts)))

    def __getitem__(self, number: int) -> P:
        """Return a part, for handling events."""
        if number not in self._own:
            self[number] = self._parts[number].copy()
        return self._parts[number]

    def __setitem__(self, number: int, part: P) -> None:
        self._parts = (*self._parts[:number], part, *self._parts[number + 1 :])
        self._own |= {number}

    @property
    def seen(self) -> Sequence[P]:
        """The parts, for reading only."""
        return self._parts

    @property
    def own(self) -> Collection[int]:
        """The numbers of the parts that no other cluster shares."""
        return self._own

    def copy(self) -> Shared[P]:
        """Return a snapshot; from then on neither cluster owns any part."""
        twin: Shared[P] = Shared.__new__(Shared)
        twin._parts, twin._own = self._parts, NOBODY
        self._own = NOBODY
        return twin


@dataclass(frozen=True, slots=True)
class FetchInFlight:
    """A follower's request in flight to the broker `to` or, once there is a reply, back from it."""

    to: int
    request: FetchRequest | ListOffsetsRequest
    reply: FetchReply | ListOffsetsReply | None = None


@dataclass(slots=True)
class ControlledCluster(ABC):
    """A partition's controller and messages at one moment; kinds of clusters add the brokers.

    The fetches in flight are replaced and never changed, so snapshots share them.
    """

    _controller: Controller
    fetches: Mapping[int, Any] = field(default_factory=dict, kw_only=True)
    """By follower: its request and, once that is served, the reply."""
    committed: tuple[int, ...] = field(default=(), kw_only=True)
    """The leader epoch of each record below the highest HW that a leader has had, deleted ones included."""
    has_own_controller: bool = field(default=True, kw_only=True)
    """Not after a snapshot, until the controller handles an event."""

    @property
    def controller(self) -> Controller:
        """Return the controller, for handling events."""
        if not self.has_own_controller:
            self._controller, self.has_own_controller = self._controller.copy(), True
        return self._controller

    @property
    def registry(self) -> ControllerState:
        """Return the controller's state, for reading."""
        return self._controller.state

    @property
    def image(self) -> PartitionImage:
        """Return the controller's metadata of the partition."""
        return self._controller.state.partitions[PARTITION]

    def is_fenced(self, broker: int) -> bool:
        """Return whether the controller has fenced a broker."""
        return self._controller.state.brokers[broker].state is BrokerState.FENCED

    def decide(self, source: int, message: Message) -> Message | None:
        """Let the controller handle a message; return its reply.  Metadata is applied later."""
        effects = self.controller.handle(Received(source, message), NOW_MS)
        self.note_metadata()
        return next((e.message for e in effects if isinstance(e, Send) and e.to == source), None)

    def expire_session(self, broker: int) -> None:
        """Expire a broker's session now, and no other."""
        expire_session(self.controller.state, broker, NOW_MS)
        self.controller.handle(Fired(Timer.SESSION_CHECK), NOW_MS)
        self.note_metadata()

    @abstractmethod
    def note_metadata(self) -> None:
        """Remember the controller's decision, until it is applied."""

    @abstractmethod
    def state(self, broker: int) -> ReplicaState | None:
        """Return the state of a broker's replica, None if no process runs: for reading, and before events.

        Most tries are refused by reading the state, for which nothing needs to be copied.
        """

    @abstractmethod
    def replica(self, broker: int) -> Replica:
        """Return the core of a running broker, for handling events."""

    @abstractmethod
    def disk(self, broker: int) -> Any:
        """Return the disk of a broker, for effects."""

    @abstractmethod
    def put(self, broker: int, sent: Send) -> None:
        """Put a broker's message in flight if the spec has it, or note it."""

    def receive(self, broker: int, source: int, message: Message) -> list[Effect]:
        """Let a broker handle a message; its effects are performed, and returned for inspection."""
        return self.perform(broker, self.replica(broker).receive(source, message, NOW_MS))

    def fire(self, broker: int, timer: Timer, token: int = 0) -> list[Effect]:
        """Let a broker's timer ring."""
        return self.perform(broker, self.replica(broker).fire(timer, token, NOW_MS))

    def perform(self, broker: int, effects: list[Effect]) -> list[Effect]:
        """Perform the effects of a broker's core, and return them; the caller fires its timers."""
        for effect in effects:
            if isinstance(effect, Send):
                self.put(broker, effect)
            elif not isinstance(effect, SetTimer):
                self.disk(broker).perform(effect)
        state = self.replica(broker).state
        log = state.log
        if state.role is Role.LEADER and log.hw > len(self.committed):
            written = epochs_of(state)[: log.hw - log.log_start]
            self.committed = (*self.committed[: log.log_start], *written)
        return effects

    def put_fetch(self, follower: int, fetch: Any) -> None:
        """Put a fetch of a broker in flight."""
        self.fetches = {**self.fetches, follower: fetch}

    def take_fetch(self, follower: int) -> Any:
        """Remove a broker's fetch from those in flight, and return it; None if there is none."""
        taken = self.fetches.get(follower)
        if taken is not None:
            self.fetches = {broker: fetch for broker, fetch in self.fetches.items() if broker != follower}
        return taken


class ControlledBinding(CopyingBinding[C]):
    """A binding to such clusters, whose brokers are the elements of the spec's first sort."""

    acks: int
    """For which replicas a producer waits."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.names: tuple[str, ...] = program.sorts[0].members
        self.epochs = range(self.constants["MaxEpoch"] + 1)

    def id(self, name: str) -> int:
        """Return a broker's number."""
        return self.names.index(name)

    @action("produce")
    def produce(self, cluster: C, leader: str) -> Answer:
        """One record, by a producer that is not idempotent."""
        broker = self.id(leader)
        if cluster.state(broker) is None:
            return DOWN
        effects = cluster.receive(broker, CLIENT, ProduceRequest(1, Batch(0, -1, 1), self.acks, 1_000))
        return taken_or(any(isinstance(effect, Append) for effect in effects), "nothing was appended")

    @action("send_fetch")
    def send_fetch(self, cluster: C, follower: str) -> Answer:
        """The fetcher's timer rings; a follower that still waits for a lost answer abandons it."""
        broker = self.id(follower)
        state = cluster.state(broker)
        if state is None:
            return DOWN
        if broker in cluster.fetches:
            return Impossible("its last request is still in flight")
        waits_for = -1 if state.following is None else state.following.in_flight
        timer = Timer.SEND_FETCH if waits_for == -1 else Timer.FETCH_TIMEOUT
        cluster.fire(broker, timer, max(waits_for, 0))
        return taken_or(broker in cluster.fetches, "it sends no request")

    def request_of(self, cluster: C, follower: str, leader: str) -> Any:
        """Return a follower's fetch that is on its way to a broker; None if there is none."""
        slot = cluster.fetches.get(self.id(follower))
        return slot if slot is not None and slot.reply is None and slot.to == self.id(leader) else None

    def served(self, cluster: C, leader: int, follower: int, request: Message) -> Any:
        """Deliver a request, and return the reply, which comes without records when the wait is over."""
        effects = cluster.receive(leader, follower, request)
        if not (replies := sent(effects, FetchReply | ListOffsetsReply)):
            (wait,) = (e for e in effects if isinstance(e, SetTimer) and e.timer is Timer.FETCH_WAIT)
            replies = sent(cluster.fire(leader, Timer.FETCH_WAIT, wait.token), FetchReply)
        (reply,) = replies
        return reply

    @action("apply_response")
    def apply_response(self, cluster: C, follower: str) -> Answer:
        """The response arrives; it was accepted if the follower no longer waits for it."""
        broker = self.id(follower)
        slot, state = cluster.fetches.get(broker), cluster.state(broker)
        if slot is None or slot.reply is None:
            return Impossible("no response is on its way")
        if state is None:
            return DOWN
        was_waiting = state.following is not None and state.following.in_flight == slot.reply.correlation
        cluster.receive(broker, slot.to, slot.reply)
        following = cluster.state(broker).following
        if not was_waiting or following is None or following.in_flight != -1:
            return Refused("it is not the answer that the follower waits for")
        cluster.take_fetch(broker)
        return Accepted()

    @action("lose_fetch")
    def lose_fetch(self, cluster: C, follower: str) -> Answer:
        """The network loses the request or the response."""
        is_there = cluster.take_fetch(self.id(follower)) is not None
        return Accepted() if is_there else Impossible("nothing is in flight")


def date_fetch(replica: Replica, follower: int, when_ms: int) -> None:
    """Set the time at which a follower last fetched, and was caught up."""
    assert replica.state.leading is not None
    remote = replica.state.leading.remotes[follower]
    remote.last_caught_up_ms = remote.last_fetch_ms = when_ms


def epochs_of(state: ReplicaState) -> tuple[int, ...]:
    """Return the leader epoch of each record of a replica's log."""
    return tuple(epoch for epoch, _ in state.log.cells())


def ends_of(written: Sequence[int], epochs: range, start: int = 0) -> dict[int, int]:
    """Return for each epoch the end of its records and of all earlier ones, in a log from `start` on."""
    if list(written) != sorted(written):
        raise OutsideSpec(f"the epochs of the records fall: {written}")
    return {epoch: start + bisect_right(written, epoch) for epoch in epochs}


def log_of(log: LogView, epochs: range) -> dict[str, Any]:
    """Return a log as a value of the spec; its epoch cache has to fit its records."""
    start = log.log_start
    # Of every broker in every state, and most logs begin at 0: `cells` takes longer.
    if start:
        written = [epoch for epoch, _ in log.cells()]
    else:
        written = [batch.epoch for batch in log.batches for _ in range(batch.count)]
    if len(written) != log.leo - start:
        raise OutsideSpec(f"a log from {start} to {log.leo} has {len(written)} records")
    for epoch, first in log.epochs.entries:
        if first != start + bisect_left(written, epoch):
            raise OutsideSpec(f"the epoch cache has epoch {epoch} start at {first} of a log {written}")
    ends = ends_of(written, epochs, start)
    return {"ends": ends, "cached": {epoch for epoch, _ in log.epochs.entries}}


def body_of(reply: FetchReply, offset: int) -> tuple[str, dict[str, Any]]:
    """Return a reply to a fetch from an offset as a value of the spec: where logs diverge, or records."""
    if reply.diverging is not None:
        return "Diverging", {"epoch": reply.diverging.epoch, "end": reply.diverging.end_offset}
    written = {batch.epoch for batch in reply.batches}
    if len(written) > 1:
        raise OutsideSpec(f"a response has records of the epochs {sorted(written)}")
    end = reply.batches[-1].next_offset if reply.batches else offset
    return "Records", {"of": min(written, default=None), "end": end, "hw": reply.high_watermark}


def sent(effects: Iterable[Effect], kind: type[M] | UnionType) -> list[M]:
    """Return the messages of a kind, or of a union of kinds, among the effects."""
    return [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def taken_or(is_done: bool, otherwise: str) -> Answer:
    """Return that a step was accepted, or was refused for a reason."""
    return Accepted() if is_done else Refused(otherwise)
