"""Messages on the wire, between clients, brokers and the controller.

The fields are those of Kafka's requests and responses that carry meaning (Fetch v12, Produce v7,
DeleteRecords v2, OffsetForLeaderEpoch v3, ListOffsets v5, AlterPartition v3, AlterPartitionReassignments,
BrokerRegistration, BrokerHeartbeat, JoinGroup, OffsetCommit, OffsetFetch).
`correlation` pairs a reply with its request; it is unique within one incarnation of the sender.  Fields are
as a peer wrote them: nothing here is validated.
"""

from __future__ import annotations

from dataclasses import dataclass

from replog.core.quorum_messages import NotController, QuorumMessage
from replog.core.types import CONSUMER, NO_EPOCH, Batch, EpochEnd, Error, MetadataImage

LATEST = -1
"""ListOffsets: the end of the log (for a consumer: the high watermark)."""
EARLIEST = -2
"""ListOffsets: the first offset still kept."""


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """Append `batch`.

    `acks` is 0, 1 or -1 (all of the ISR).  It carries no leader epoch: a zombie accepts it (A1).
    """

    correlation: int
    batch: Batch
    acks: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class ProduceReply:
    """`base_offset` is the batch's place (also of a duplicate), -1 with an error that appended nothing."""

    correlation: int
    error: Error
    base_offset: int


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Request records from `fetch_offset`.

    From a follower it also *is* the acknowledgement of all before it (I15), and `log_start` is its own.
    """

    correlation: int
    replica_id: int
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int = NO_EPOCH
    broker_epoch: int = -1
    max_wait_ms: int = 0
    max_bytes: int = 1 << 20
    log_start: int = 0

    @property
    def is_from_follower(self) -> bool:
        """Return whether a follower sent this fetch, not a consumer."""
        return self.replica_id > CONSUMER


@dataclass(frozen=True, slots=True)
class FetchReply:
    """Records and the sender's HW and log start.

    Or, instead of records, where the follower's log diverges.
    """

    correlation: int
    error: Error
    high_watermark: int = -1
    log_start: int = -1
    batches: tuple[Batch, ...] = ()
    diverging: EpochEnd | None = None


@dataclass(frozen=True, slots=True)
class DeleteRecordsRequest:
    """Delete all records before `offset`; `LATEST` is the high watermark."""

    correlation: int
    offset: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class DeleteRecordsReply:
    """`low_watermark` is the least log start of the replicas that are live or may lead, -1 with an error."""

    correlation: int
    error: Error
    low_watermark: int


@dataclass(frozen=True, slots=True)
class EpochEndRequest:
    """OffsetForLeaderEpoch: request the end of `epoch` in the leader's log."""

    correlation: int
    replica_id: int
    leader_epoch: int
    epoch: int


@dataclass(frozen=True, slots=True)
class EpochEndReply:
    """The answer from the leader's epoch cache; `UNDEFINED` if it has none."""

    correlation: int
    error: Error
    end: EpochEnd


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest:
    """Request one end of the log (`LATEST` or `EARLIEST`)."""

    correlation: int
    replica_id: int
    leader_epoch: int
    which: int


@dataclass(frozen=True, slots=True)
class ListOffsetsReply:
    """The requested offset, -1 with an error."""

    correlation: int
    error: Error
    offset: int


@dataclass(frozen=True, slots=True)
class AlterPartitionRequest:
    """The leader proposes an ISR: members, each with its broker epoch in the leader's view (-1: unknown)."""

    correlation: int
    partition: str
    broker_id: int
    broker_epoch: int
    leader_epoch: int
    partition_epoch: int
    new_isr: tuple[tuple[int, int], ...]
    is_recovering: bool = False


@dataclass(frozen=True, slots=True)
class AlterPartitionReply:
    """The state of the partition after the request; valid only with `Error.NONE`."""

    correlation: int
    error: Error
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisterRequest:
    """A broker process registers.

    `previous_broker_epoch` comes from its clean-shutdown marker, or is -1.
    """

    broker_id: int
    incarnation: int
    previous_broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class RegisterReply:
    """The broker epoch of this incarnation, -1 with an error."""

    incarnation: int
    error: Error
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class HeartbeatRequest:
    """Extend the session; report the metadata version applied; request a controlled shutdown."""

    broker_id: int
    broker_epoch: int
    metadata_version: int
    wants_shutdown: bool = False


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The controller's view of the broker; `should_shut_down` grants a controlled shutdown."""

    broker_epoch: int
    error: Error
    is_fenced: bool
    should_shut_down: bool


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """Request every metadata version after `after_version`."""

    broker_id: int
    after_version: int


@dataclass(frozen=True, slots=True)
class MetadataUpdate:
    """Consecutive metadata versions, oldest first; a snapshot if `images` starts later than requested."""

    images: tuple[MetadataImage, ...]


@dataclass(frozen=True, slots=True)
class ElectRequest:
    """An operator requests the preferred leader, or any live replica.

    The latter (`is_unclean`) only where no clean candidate is left.
    """

    correlation: int
    partition: str
    is_unclean: bool = False


@dataclass(frozen=True, slots=True)
class ElectReply:
    """The outcome of an `ElectRequest`."""

    correlation: int
    error: Error


@dataclass(frozen=True, slots=True)
class ConfigureRequest:
    """An operator changes min.insync.replicas of a partition."""

    correlation: int
    partition: str
    min_isr: int


@dataclass(frozen=True, slots=True)
class ConfigureReply:
    """The outcome of a `ConfigureRequest`."""

    correlation: int
    error: Error


@dataclass(frozen=True, slots=True)
class ReassignRequest:
    """AlterPartitionReassignments: an operator requests these replicas, the preferred leader first.

    None cancels the reassignment in progress.
    """

    correlation: int
    partition: str
    target: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class ReassignReply:
    """The outcome of a `ReassignRequest`: whether it was accepted, not whether it has ended."""

    correlation: int
    error: Error


@dataclass(frozen=True, slots=True)
class JoinGroupRequest:
    """A consumer becomes the owner of a group, and fences every earlier one (A31)."""

    correlation: int
    group: str
    member: int


@dataclass(frozen=True, slots=True)
class JoinGroupReply:
    """The generation in which the consumer owns the group, -1 with an error."""

    correlation: int
    error: Error
    generation: int


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """OffsetCommit: the owner of a group commits `offset` as the place to continue in `partition`."""

    correlation: int
    group: str
    partition: str
    offset: int
    member: int
    generation: int


@dataclass(frozen=True, slots=True)
class CommitReply:
    """The outcome of a `CommitRequest`; without an error it is as durable as acknowledged records."""

    correlation: int
    error: Error


@dataclass(frozen=True, slots=True)
class PositionRequest:
    """OffsetFetch: the owner of a group requests where to continue in `partition`."""

    correlation: int
    group: str
    partition: str
    member: int
    generation: int


@dataclass(frozen=True, slots=True)
class PositionReply:
    """The last committed offset, -1 if there is none or with an error."""

    correlation: int
    error: Error
    offset: int


@dataclass(frozen=True, slots=True)
class GroupLog:
    """The log of groups at the start of a leader's epoch; the leader sends it to itself, to read it."""

    leader_epoch: int
    batches: tuple[Batch, ...]


GroupRequest = JoinGroupRequest | CommitRequest | PositionRequest
GroupReply = JoinGroupReply | CommitReply | PositionReply


ControlMessage = (
    AlterPartitionRequest
    | AlterPartitionReply
    | RegisterRequest
    | RegisterReply
    | HeartbeatRequest
    | HeartbeatReply
    | MetadataRequest
    | MetadataUpdate
    | ElectRequest
    | ElectReply
    | ConfigureRequest
    | ConfigureReply
    | ReassignRequest
    | ReassignReply
    | NotController
)
"""What brokers and operators exchange with the controller."""
PartitionMessage = (
    ProduceRequest
    | ProduceReply
    | FetchRequest
    | FetchReply
    | DeleteRecordsRequest
    | DeleteRecordsReply
    | EpochEndRequest
    | EpochEndReply
    | ListOffsetsRequest
    | ListOffsetsReply
    | GroupRequest
    | GroupReply
    | GroupLog
    | ControlMessage
)


@dataclass(frozen=True, slots=True)
class ForPartition:
    """A message about one partition, between parties that have several."""

    partition: str
    message: Message


@dataclass(frozen=True, slots=True)
class OfTerm:
    """A message of a broker with the newest term known to it, or of a controller with its own term."""

    term: int
    message: Message


Message = PartitionMessage | ForPartition | OfTerm | QuorumMessage
