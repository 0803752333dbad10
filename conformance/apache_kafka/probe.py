"""What a replica of a running broker has: its log, its HW, and whether it is in a leader epoch.

Since 2.4 a fetch as replica -3 (Kafka's "future local replica") reads any replica, leader or follower, up
to its log's end, and changes nothing: Kafka counts fetches of replicas that have a number.  Before, a fetch
as replica -2 reads any replica up to its HW; the log's end is in its files, which any process of the
machine reads as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.apache_kafka.batches import Batch, parse_batches
from conformance.apache_kafka.cluster import Cluster
from conformance.apache_kafka.nodes import NotYet
from conformance.apache_kafka.schemas import Fields
from conformance.apache_kafka.wire import Api
from msgspec import Struct

_FUTURE_REPLICA, _DEBUGGING = -3, -2
_FIRST_EXACT = (2, 4)
_ANY_EPOCH = -1
_MAX_BYTES = 1 << 20
_NONE = 0


class StoredRecord(Struct, frozen=True):
    """A record: its offset, the leader epoch of its batch (None before 0.11) and its value."""

    offset: int
    epoch: int | None
    value: bytes


class ReplicaState(Struct, frozen=True):
    """A replica's log and HW."""

    records: tuple[StoredRecord, ...]
    hw: int

    @property
    def leo(self) -> int:
        """The log's end."""
        return self.records[-1].offset + 1 if self.records else 0


def replica_state(cluster: Cluster, broker: int, topic: str) -> ReplicaState:
    """A replica's state; raises NotYet where the broker refuses, and OSError where it fails."""
    if cluster.plan.release.numbers < _FIRST_EXACT:
        hw = _fetch(cluster, broker, topic, _DEBUGGING, 0, _ANY_EPOCH)["HighWatermark"]
        return ReplicaState(tuple(_records(_stored(cluster, broker, topic))), hw)
    records: list[StoredRecord] = []
    while True:
        offset = records[-1].offset + 1 if records else 0
        answer = _fetch(cluster, broker, topic, _FUTURE_REPLICA, offset, _ANY_EPOCH)
        batches = list(parse_batches(answer["Records"] or b""))
        if not batches:
            return ReplicaState(tuple(records), answer["HighWatermark"])
        records += _records(batches)


def is_in_epoch(cluster: Cluster, broker: int, topic: str, epoch: int) -> bool:
    """Whether a replica, leader or follower, is in this leader epoch; since 2.4, which compares it."""
    answer = _answer(cluster, broker, topic, _FUTURE_REPLICA, 0, epoch)
    return bool(answer["ErrorCode"] == _NONE)


def latest_offset(cluster: Cluster, broker: int, topic: str) -> tuple[int, int]:
    """The answer to ListOffsets for the latest offset: error code, offset."""
    partition = {"PartitionIndex": 0, "Timestamp": -1}
    topics = [{"Name": topic, "Partitions": [partition]}]
    request = {"ReplicaId": -1, "Topics": topics}
    answer = cluster.call(broker, Api.LIST_OFFSETS, 1, request)["Topics"][0]["Partitions"][0]
    return answer["ErrorCode"], answer["Offset"]


def consumed(cluster: Cluster, broker: int, topic: str) -> list[bytes]:
    """The values that a consumer reads from a leader, from the first offset on."""
    values: list[bytes] = []
    offset = 0
    while True:
        answer = _fetch(cluster, broker, topic, -1, offset, _ANY_EPOCH)
        records = list(_records(list(parse_batches(answer["Records"] or b""))))
        if not records:
            return values
        values += [record.value for record in records]
        offset = records[-1].offset + 1


def _fetch(cluster: Cluster, broker: int, topic: str, replica: int, offset: int, epoch: int) -> Fields:
    answer = _answer(cluster, broker, topic, replica, offset, epoch)
    if answer["ErrorCode"] != _NONE:
        raise NotYet(f"broker {broker} answers a fetch of {topic} with error {answer['ErrorCode']}")
    return answer


def _answer(cluster: Cluster, broker: int, topic: str, replica: int, offset: int, epoch: int) -> Fields:
    numbers = cluster.plan.release.numbers
    version = 11 if numbers >= _FIRST_EXACT else 4 if numbers >= (0, 11) else 3
    partition: Fields = {"Partition": 0, "FetchOffset": offset, "PartitionMaxBytes": _MAX_BYTES}
    if version == 11:
        partition["CurrentLeaderEpoch"] = epoch
    topics = [{"Topic": topic, "Partitions": [partition]}]
    request = {"ReplicaId": replica, "MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": _MAX_BYTES, "Topics": topics}
    answer = cluster.call(broker, Api.FETCH, version, request)
    return dict(answer["Responses"][0]["Partitions"][0])


def _stored(cluster: Cluster, broker: int, topic: str) -> list[Batch]:
    folder = cluster.log_folder(broker) / f"{topic}-0"
    return [batch for path in sorted(folder.glob("*.log")) for batch in parse_batches(path.read_bytes())]


def _records(batches: list[Batch]) -> Iterator[StoredRecord]:
    for batch in batches:
        for record in () if batch.control else batch.records():
            yield StoredRecord(record.offset, batch.epoch, record.value or b"")
