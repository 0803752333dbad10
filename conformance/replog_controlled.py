"""A controller of replog and all that it decides about, stepped by hand: common to the bindings of clusters.

The system under test is replog's controller, and a core and a disk for each broker.  It performs the cores'
effects and moves an action's messages; it decides nothing about the protocol.  Timers fire when an action
requires it, at one fixed time.

A snapshot is taken for each step and restored for each call that is tried, most of which are refused by
reading the state.  So snapshots share controllers, cores and disks; one of these is copied at its first
use.

Specs count the records of a log up to each epoch; what such a log cannot express is `OutsideSpec`.

Not here: brokers and their messages (`replog_cluster`, `replog_partition`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from replog.core.broker.state import ReplicaState
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerState, expire_session
from replog.core.effects import Effect, Fired, Received, Send, Timer
from replog.core.log.logview import LogView
from replog.core.messages import FetchReply, Message
from replog.core.types import BrokerState, PartitionImage
from specchk.conform.contract.binding import Accepted, Answer, OutsideSpec, Refused
from specchk.conform.contract.ruled import Copied, CopyingBinding
from specchk.ir.program import Program

P = TypeVar("P", bound=Copied)
M = TypeVar("M")
C = TypeVar("C", bound=Any)
PARTITION = "t-0"
NOW_MS, LONG_AGO_MS = 1_000_000, 0
CLIENT, OPERATOR = -100, -101
NOBODY: frozenset[int] = frozenset()


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


@dataclass(slots=True)
class ControlledCluster(ABC):
    """A partition's controller at one moment; kinds of clusters add the brokers."""

    _controller: Controller
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


class ControlledBinding(CopyingBinding[C]):
    """A binding to such clusters, whose brokers are the elements of the spec's first sort."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.names: tuple[str, ...] = program.sorts[0].members

    def id(self, name: str) -> int:
        """Return a broker's number."""
        return self.names.index(name)


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


def sent(effects: Iterable[Effect], kind: type[M]) -> list[M]:
    """Return the messages of a kind among the effects."""
    return [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def taken_or(is_done: bool, otherwise: str) -> Answer:
    """Return that a step was accepted, or was refused for a reason."""
    return Accepted() if is_done else Refused(otherwise)
