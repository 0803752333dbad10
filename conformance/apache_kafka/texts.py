"""How a cluster's answers and states are shown beside the spec's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.apache_kafka.batches import parse_batches
from conformance.apache_kafka.schemas import Fields
from msgspec import Struct

ERRORS = {
    1: "OFFSET_OUT_OF_RANGE",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    19: "NOT_ENOUGH_REPLICAS",
    20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
    83: "ELIGIBLE_LEADERS_NOT_AVAILABLE",
    95: "INVALID_UPDATE_VERSION",
    107: "INELIGIBLE_REPLICA",
    108: "NEW_LEADER_ELECTED",
}


class View(Struct, frozen=True):
    """A broker beside the spec's: a line each, and whether they agree."""

    broker: int
    spec: str
    kafka: str

    @property
    def agrees(self) -> bool:
        """Whether the cluster is where the spec is."""
        return self.spec == self.kafka


def error_text(code: int) -> str:
    """An error code by Kafka's name for it."""
    return ERRORS.get(code, f"error {code}")


def isr_text(isr: frozenset[int]) -> str:
    """A set of brokers."""
    return "{" + ", ".join(f"b{broker}" for broker in sorted(isr)) + "}"


def controller_text(leader: int | None, isr: frozenset[int]) -> str:
    """What a controller has decided."""
    return f"{'nobody' if leader is None else f'b{leader}'} leads, ISR {isr_text(isr)}"


def read_text(leader: int, values: Sequence[bytes]) -> str:
    """What a consumer reads from a leader."""
    texts = " ".join(value.decode(errors="replace") for value in values)
    return f"a consumer reads {texts or 'nothing'} from b{leader}"


def answer_text(partition: Fields | None) -> str:
    """What a response has of the partition; in an incremental one, None is nothing new."""
    if partition is None:
        return "nothing new"
    if partition["ErrorCode"]:
        return error_text(partition["ErrorCode"])
    return ", ".join(_answer_parts(partition))


def _answer_parts(partition: Fields) -> Iterator[str]:
    if "HighWatermark" not in partition:
        epoch = f"epoch {partition['LeaderEpoch']}" if "LeaderEpoch" in partition else "it"  # since KIP-279
        yield f"{epoch} ends at {partition['EndOffset']}"
        return
    diverging = partition.get("DivergingEpoch") or {}
    if diverging.get("EndOffset", -1) >= 0:
        yield f"diverging, epoch {diverging['Epoch']} ends at {diverging['EndOffset']}"
    records = [record for batch in parse_batches(partition["Records"] or b"") for record in batch.records()]
    if records:
        yield f"records {', '.join((record.value or b'').decode(errors='replace') for record in records)}"
    yield f"HW {partition['HighWatermark']}"
