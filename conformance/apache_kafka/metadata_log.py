"""The metadata log of a quorum (KRaft): what its controllers have decided on every partition, in one order.

It lies in each controller's and each broker's folder: records since the last snapshot, and a snapshot of
what was before.  A broker's copy may end earlier than the controllers'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from conformance.apache_kafka.batches import parse_batches, read_uvarint
from conformance.apache_kafka.schemas import Fields, Schemas, decode
from msgspec import Struct, structs

METADATA_LOG = "__cluster_metadata-0"
_UNCHANGED = -2
_CLEANUP_OF_TOPIC = 2, "cleanup.policy"
_OFFSET_DIGITS = 20


class Decision(Struct, frozen=True):
    """A partition as the controller has it.

    `place` orders decisions: an offset of the metadata log, or a version.
    """

    place: int
    leader: int
    epoch: int
    isr: frozenset[int]
    version: int
    elr: frozenset[int] = frozenset()
    replicas: tuple[int, ...] = ()
    topic_id: bytes | None = None


class Decisions(Struct):
    """The last decision on each partition, and the topics whose records are compacted."""

    partitions: dict[tuple[str, int], Decision]
    compacted: set[str]


def metadata_records(folder: Path, schemas: Schemas) -> Iterator[tuple[int, str, Fields]]:
    """The records of a metadata log: their offsets, names and fields; those of the snapshot first."""
    snapshot = max(folder.glob("*-*.checkpoint"), default=None)
    begin = int(snapshot.name[:_OFFSET_DIGITS]) if snapshot else 0
    if snapshot is not None:
        yield from ((begin - 1, name, fields) for _, name, fields in _records(snapshot, schemas))
    for path in sorted(folder.glob("*.log")):
        yield from (record for record in _records(path, schemas) if record[0] >= begin)


def _records(path: Path, schemas: Schemas) -> Iterator[tuple[int, str, Fields]]:
    for batch in parse_batches(path.read_bytes()):
        for record in () if batch.control else batch.records():
            yield record.offset, *decode_metadata(schemas, record.value or b"")


def decode_metadata(schemas: Schemas, value: bytes) -> tuple[str, Fields]:
    """A record of the metadata log.

    Its name and fields.  Its value begins with a frame, its key and its version.
    """
    _, at = read_uvarint(value, 0)
    key, at = read_uvarint(value, at)
    version, at = read_uvarint(value, at)
    layout = schemas.record(key, version)
    return layout.name, decode(layout, value, at)


def read_decisions(records: Iterable[tuple[int, str, Fields]]) -> Decisions:
    """What has been decided by the end of these records."""
    decisions = Decisions({}, set())
    topics: dict[bytes, str] = {}
    for offset, name, fields in records:
        if name == "TopicRecord":
            topics[fields["TopicId"]] = fields["Name"]
        elif name == "RemoveTopicRecord":
            topic = topics.pop(fields["TopicId"])
            decisions.partitions = {
                key: each for key, each in decisions.partitions.items() if key[0] != topic
            }
        elif name == "ConfigRecord" and (fields["ResourceType"], fields["Name"]) == _CLEANUP_OF_TOPIC:
            decisions.compacted.discard(fields["ResourceName"])
            if "compact" in (fields["Value"] or ""):
                decisions.compacted.add(fields["ResourceName"])
        elif name == "PartitionRecord":
            decisions.partitions[topics[fields["TopicId"]], fields["PartitionId"]] = _first(offset, fields)
        elif name == "PartitionChangeRecord":
            key = topics[fields["TopicId"]], fields["PartitionId"]
            decisions.partitions[key] = _changed(decisions.partitions[key], offset, fields)
    return decisions


def _first(offset: int, fields: Fields) -> Decision:
    return Decision(
        place=offset,
        leader=fields["Leader"],
        epoch=fields["LeaderEpoch"],
        isr=frozenset(fields["Isr"]),
        version=fields["PartitionEpoch"],
        elr=frozenset(fields.get("EligibleLeaderReplicas") or ()),
        replicas=tuple(fields["Replicas"]),
        topic_id=fields["TopicId"],
    )


def _changed(decision: Decision, offset: int, fields: Fields) -> Decision:
    # PartitionRegistration.merge: each change is a partition epoch, each that names a leader a leader epoch.
    has_leader = fields["Leader"] != _UNCHANGED
    isr, elr = fields["Isr"], fields.get("EligibleLeaderReplicas")
    return structs.replace(
        decision,
        place=offset,
        leader=fields["Leader"] if has_leader else decision.leader,
        epoch=decision.epoch + has_leader,
        isr=decision.isr if isr is None else frozenset(isr),
        version=decision.version + 1,
        elr=decision.elr if elr is None else frozenset(elr),
        replicas=decision.replicas if fields["Replicas"] is None else tuple(fields["Replicas"]),
    )
