"""The whole state of one replica of a partition as plain values: copied whole, compared whole.

`ReplicaState` is the content of a snapshot.  The modules `leader`, `isr` and `follower` are functions on it;
`replica` owns the control flow.  `copy` is shallow where values are frozen, so rewinding costs about as
much as handling an event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from replog.core.log.logview import LogView
from replog.core.messages import FetchRequest
from replog.core.protocol import CURRENT, Protocol
from replog.core.types import NO_EPOCH, NO_LEADER, BrokerImage, Role


@dataclass(frozen=True, slots=True)
class Config:
    """Configuration; defaults are Kafka's where Kafka has one (W7 of the reference), times milliseconds."""

    min_isr: int = 1
    lag_ms: int = 30_000
    fetch_wait_ms: int = 500
    fetch_timeout_ms: int = 2_000
    fetch_backoff_ms: int = 1_000
    fetch_max_bytes: int = 1 << 20
    alter_retry_ms: int = 1_000
    hw_checkpoint_ms: int = 5_000
    flush_messages: int = 0
    """Flush after this many records; 0 leaves it to the operating system, as Kafka's default does."""
    max_batch_bytes: int = 1 << 20
    retention_bytes: int = -1
    """Delete the oldest batches while the others have as many bytes (A35); -1 keeps all.

    Kafka deletes by segments, which the core does not know.
    """
    retention_check_ms: int = 300_000
    resign_ms: int = 0
    """How late a group coordinator resigns: behind all events that wait when it leads no more."""
    follower_read: bool = False
    """Serve consumers from followers, up to the follower's HW (KIP-392)."""


@dataclass(slots=True)
class Remote:
    """A leader's view of one follower; `leo` is -1 until its first fetch in this leadership."""

    leo: int = -1
    last_fetch_ms: int = 0
    last_fetch_leader_leo: int = 0
    last_caught_up_ms: int = 0
    broker_epoch: int = -1
    log_start: int = -1

    def copy(self) -> Remote:
        """Return an independent copy."""
        # Field by field, as below: `replace` is several times slower, and a gate copies replicas for each
        # probe.
        return Remote(
            self.leo,
            self.last_fetch_ms,
            self.last_fetch_leader_leo,
            self.last_caught_up_ms,
            self.broker_epoch,
            self.log_start,
        )


@dataclass(frozen=True, slots=True)
class PendingIsr:
    """An ISR change in flight: the committed ISR and the proposed one.

    `correlation` ties the reply to its last attempt; `broker_epochs` are those of the incarnations that it
    was proposed for, one for each member (-1: not known).
    """

    committed: tuple[int, ...]
    proposed: tuple[int, ...]
    correlation: int
    broker_epochs: tuple[int, ...]

    @property
    def is_expansion(self) -> bool:
        """Return whether this is an expansion, not a shrink."""
        return len(self.proposed) > len(self.committed)


@dataclass(frozen=True, slots=True)
class WaitingProduce:
    """An acks=all produce that waits for HW to reach `required`."""

    source: int
    correlation: int
    required: int
    base_offset: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class WaitingFetch:
    """A fetch without records to return, held back until there are some, or until its deadline.

    `token` is that of its timer.
    """

    source: int
    request: FetchRequest
    deadline_ms: int
    token: int


@dataclass(frozen=True, slots=True)
class WaitingDelete:
    """A deletion that waits until the other replicas' logs start at `offset` or later."""

    source: int
    correlation: int
    offset: int
    deadline_ms: int


@dataclass(slots=True)
class Leading:
    """The state that exists only while a replica leads; `leso` is its LEO when its epoch began."""

    leso: int
    isr: tuple[int, ...]
    pending: PendingIsr | None = None
    remotes: dict[int, Remote] = field(default_factory=dict)
    produces: list[WaitingProduce] = field(default_factory=list)
    fetches: list[WaitingFetch] = field(default_factory=list)
    deletes: list[WaitingDelete] = field(default_factory=list)

    def copy(self) -> Leading:
        """Return an independent copy."""
        remotes = {follower: remote.copy() for follower, remote in self.remotes.items()}
        return Leading(
            self.leso,
            self.isr,
            self.pending,
            remotes,
            self.produces.copy(),
            self.fetches.copy(),
            self.deletes.copy(),
        )


class FetchPhase(Enum):
    """The kinds of requests that a follower sends its leader."""

    FETCHING = "fetching"
    TRUNCATING = "truncating"
    ASKING_END = "asking-end"
    ASKING_START = "asking-start"


@dataclass(slots=True)
class Following:
    """The fetcher of a follower: at most one request in flight.

    `asked_epoch` is the epoch of the next request for an end.
    """

    phase: FetchPhase
    in_flight: int = -1
    in_flight_offset: int = -1
    asked_epoch: int = NO_EPOCH
    has_failed: bool = False

    def copy(self) -> Following:
        """Return an independent copy."""
        return Following(self.phase, self.in_flight, self.in_flight_offset, self.asked_epoch, self.has_failed)


@dataclass(slots=True)
class ReplicaState:
    """The state of one replica of one partition."""

    broker_id: int
    partition: str = "t-0"
    config: Config = field(default_factory=Config)
    protocol: Protocol = CURRENT
    log: LogView = field(default_factory=LogView)
    role: Role = Role.NONE
    leader_id: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = -1
    replicas: tuple[int, ...] = ()
    broker_epoch: int = -1
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    leading: Leading | None = None
    following: Following | None = None
    correlation: int = 0
    min_isr: int = 0
    """min.insync.replicas, where the metadata has it."""
    elr: tuple[int, ...] = ()
    """The eligible leader replicas of the last metadata, as old as what it says of the brokers."""

    def copy(self) -> ReplicaState:
        """Return a snapshot that shares only frozen values."""
        return ReplicaState(
            self.broker_id,
            self.partition,
            self.config,
            self.protocol,
            self.log.copy(),
            self.role,
            self.leader_id,
            self.leader_epoch,
            self.partition_epoch,
            self.replicas,
            self.broker_epoch,
            # Shared: a metadata image is never changed, only replaced.
            self.brokers,
            None if self.leading is None else self.leading.copy(),
            None if self.following is None else self.following.copy(),
            self.correlation,
            self.min_isr,
            self.elr,
        )

    def next_correlation(self) -> int:
        """Return a number that this incarnation has not used."""
        self.correlation += 1
        return self.correlation

    def effective_min_isr(self) -> int:
        """Return min.insync.replicas, capped by the number of replicas."""
        # A topic with fewer replicas than the minimum could not be written to at all.
        return min(self.min_isr or self.config.min_isr, max(len(self.replicas), 1))
