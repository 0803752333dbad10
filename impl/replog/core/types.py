"""The basic types of the protocol: errors, batches, and the controller's metadata on partitions and brokers.

Every value here is frozen: it may sit in two logs, a message and a snapshot at once.  Offsets are 0-based,
every "end" is exclusive, and -1 means "none" exactly where Kafka's wire protocol uses -1.

Not here: bytes.  `Batch.body` is opaque to the core, which reads nothing of it but its length; a runner may
put the records there, or a handle to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol

NO_LEADER = -1
"""The leader id of a partition that has none."""
METADATA_HISTORY = 64
"""The versions of the metadata that the controller keeps; a broker further behind gets the newest alone."""
CONTROLLER = -1
"""The address of the controller, of a quorum the first one.

Brokers are addressed by their id (>= 0), clients by any other negative number.
"""
CONSUMER = -1
"""The replica id of a fetch that does not come from a follower."""
NO_EPOCH = -1
"""An epoch that is unknown or absent."""
NO_PRODUCER = -1
"""The producer id of a batch without idempotence."""
BATCH_OVERHEAD_BYTES = 61
"""The header of a v2 record batch: what a batch weighs beside its body."""


class Error(IntEnum):
    """Kafka's error codes, limited to those that this core, or the store below it, can return."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    UNKNOWN_MEMBER_ID = 25
    INVALID_REPLICA_ASSIGNMENT = 39
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    INVALID_RECORD = 87
    INVALID_UPDATE_VERSION = 95
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108


class Role(Enum):
    """The role of a replica according to its own metadata.

    `NONE` until the first metadata after a start, and when there is no leader.
    """

    NONE = "none"
    FOLLOWER = "follower"
    LEADER = "leader"


class BrokerState(Enum):
    """The controller's view of a registered broker."""

    FENCED = "fenced"
    ACTIVE = "active"
    SHUTTING_DOWN = "shutting-down"


class Body(Protocol):
    """The records of a batch, or a runner's handle to them; two are equal if their bytes are."""

    def __len__(self) -> int:
        """Return the number of bytes, which a handle provides without reading them."""


@dataclass(frozen=True, slots=True)
class Batch:
    """`count` records at consecutive offsets, written in one leader epoch.

    A producer sends it with `base_offset` 0 and `epoch` -1; the leader stamps both, and they never change
    afterwards. `producer_id` -1 means no idempotence; otherwise its records carry the sequence numbers
    first_seq, first_seq+1, ...
    """

    base_offset: int
    epoch: int
    count: int
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_EPOCH
    first_seq: int = -1
    body: Body = b""

    @property
    def content(self) -> bytes:
        """Return the bytes of the body, from a message, or from a log whose runner has no handles."""
        assert isinstance(self.body, bytes), "the body is on the disk"
        return self.body

    @property
    def next_offset(self) -> int:
        """Return the offset after the last record."""
        return self.base_offset + self.count

    @property
    def size_bytes(self) -> int:
        """Return the batch's size for a fetch's limit in bytes."""
        return BATCH_OVERHEAD_BYTES + len(self.body)


@dataclass(frozen=True, slots=True, order=True)
class EpochEnd:
    """The end of a leader epoch, in an answer.

    The epoch answered for, and the offset after its last record.
    """

    epoch: int
    end_offset: int

    @property
    def is_undefined(self) -> bool:
        """Return whether there is no answer."""
        return self.end_offset < 0


UNDEFINED = EpochEnd(-1, -1)


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """The controller's record of one partition.

    `partition_epoch` grows by one with every change of any field.  `last_known_leader` is set while none
    leads, under KIP-966: the last one that did.  `min_isr` is min.insync.replicas once it was changed; 0 is
    the configuration of brokers and controller.  `adding` and `removing` are the replicas, among `replicas`,
    that a reassignment in progress (A34) adds and removes; `replicas` then has those of its target first.
    `created` is the version of the metadata that announced the partition, no other one of its name.
    """

    replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    is_recovering: bool = False
    last_known_leader: int = NO_LEADER
    min_isr: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    created: int = 0

    @property
    def is_reassigning(self) -> bool:
        """Return whether a reassignment is in progress."""
        return bool(self.adding or self.removing)


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """One broker in the view of every broker.

    The epoch of its incarnation, and whether it may lead or join an ISR.
    """

    broker_epoch: int
    state: BrokerState


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """All metadata at one version of the controller's log.

    `partitions` and `brokers` are read, never changed.
    """

    version: int
    partitions: dict[str, PartitionImage]
    brokers: dict[int, BrokerImage]


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One record of the controllers' log: the metadata after a change, and the controller that made it.

    `term` is the controller epoch of the active controller that appended it.  `incarnations` are those of the
    registered brokers; a controller needs them to recognize a repeated registration.
    """

    term: int
    image: MetadataImage
    incarnations: dict[int, int]
