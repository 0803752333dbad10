"""Events in, effects out: the whole interface of the core.

A runner (`run.serve.host`, `sim.cluster.world`) delivers one event at a time with the local clock's
reading, and performs the returned effects *in order*.  It may die between any two of them: the core puts
them in the order in which that is safe (an epoch entry before the records of that epoch, records before the
reply that promises them).

Timers are one-shot and never cancelled: a fired timer whose `token` is no longer current is ignored by its
owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from replog.core.messages import Message
from replog.core.types import Batch, MetadataRecord


class Timer(Enum):
    """The reasons for which the core sets timers."""

    SEND_FETCH = "send-fetch"
    FETCH_TIMEOUT = "fetch-timeout"
    FETCH_WAIT = "fetch-wait"
    PRODUCE_TIMEOUT = "produce-timeout"
    DELETE_TIMEOUT = "delete-timeout"
    RETENTION = "retention"
    ISR_CHECK = "isr-check"
    ALTER_RETRY = "alter-retry"
    HW_CHECKPOINT = "hw-checkpoint"
    COMPLETE_COMMITS = "complete-commits"
    RESIGN = "resign"
    HEARTBEAT = "heartbeat"
    SESSION_CHECK = "session-check"
    QUORUM = "quorum"


@dataclass(frozen=True, slots=True)
class Received:
    """Event: a message arrived from the peer at `source`."""

    source: int
    message: Message


@dataclass(frozen=True, slots=True)
class Fired:
    """Event: a timer set earlier is due."""

    timer: Timer
    token: int = 0


@dataclass(frozen=True, slots=True)
class TimerOf:
    """Event: a timer of one of several partitions is due."""

    partition: str
    fired: Fired


Event = Received | Fired | TimerOf


@dataclass(frozen=True, slots=True)
class Send:
    """Effect: hand a message to the network, which may lose, delay, duplicate or reorder it."""

    to: int
    message: Message


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Effect: deliver `Fired(timer, token)` after `delay_ms`."""

    timer: Timer
    delay_ms: int
    token: int = 0


@dataclass(frozen=True, slots=True)
class Append:
    """Effect: write these batches at the end of the log, to the page cache (no fsync: I5)."""

    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class Flush:
    """Effect: fsync the log; the effects that follow must not happen before it is done."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Effect: remove every batch with a record at or after `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class AdvanceStart:
    """Effect: let the log start at `offset`, durably, with the entry of its epoch.

    Batches and entries before it may be dropped.
    """

    offset: int


@dataclass(frozen=True, slots=True)
class Reset:
    """Effect: remove the whole log; the next record is at `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Effect: remove the partition with all its files and checkpoints; this broker is not a replica of it."""


@dataclass(frozen=True, slots=True)
class StoreEpochs:
    """Effect: replace the leader-epoch checkpoint with these (epoch, start offset) entries, durably (I22)."""

    entries: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class StoreHighWatermark:
    """Effect: replace this partition's entry in the replication-offset checkpoint."""

    offset: int


@dataclass(frozen=True, slots=True)
class ShutDown:
    """Effect: a controlled shutdown was granted.

    Flush, write the checkpoints and the clean marker, and stop.
    """


@dataclass(frozen=True, slots=True)
class StoreVote:
    """Effect of a controller: write its term, and its vote in it (0: none), durably."""

    term: int
    vote: int


@dataclass(frozen=True, slots=True)
class StoreRecords:
    """Effect of a controller: cut its log to `start` records and append these, durably."""

    start: int
    records: tuple[MetadataRecord, ...]


@dataclass(frozen=True, slots=True)
class Of:
    """Effect of one of several partitions of a broker: an effect for its disk or its timers."""

    partition: str
    effect: PartitionEffect


PartitionEffect = (
    SetTimer | Append | Flush | Truncate | AdvanceStart | Reset | Delete | StoreEpochs | StoreHighWatermark
)

Effect = Send | Of | PartitionEffect | ShutDown | StoreVote | StoreRecords
