"""The folders of several brokers, judged together: promises of replication.spec that folders can break.

- *log-matching*: two replicas have the same batches below both high watermarks; members of the ISR, and
  eligible leaders, below the highest one.
- *committed*: each of those members has everything below the highest high watermark (candidates_complete).
- *identity*: each assigned replica has a folder, of the topic that the controller knows.
- *undecided-epoch*: no batch is of an epoch later than the controller's last one.

Who is in an ISR is in the metadata log, and so only with KRaft.  After an unclean election a loss is
expected, and named: folders do not show what was allowed.

Not here: what is wrong within one folder (folders).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from conformance.apache_kafka.folders import Broker, Fault, Replica, read_broker
from conformance.apache_kafka.metadata_log import (
    METADATA_LOG,
    Decision,
    Decisions,
    metadata_records,
    read_decisions,
)
from conformance.apache_kafka.schemas import Schemas
from msgspec import Struct


class Judgement(Struct):
    """What was read, and all faults; `place` is the end of the metadata log, None without one."""

    brokers: list[Broker]
    place: int | None
    faults: list[Fault]

    def __str__(self) -> str:
        replicas = [replica for broker in self.brokers for replica in broker.replicas.values()]
        batches = sum(len(replica.marks) for replica in replicas)
        known = "ISRs unknown" if self.place is None else f"ISRs by the metadata log up to {self.place}"
        numbers = ", ".join(broker.number for broker in self.brokers)
        read = f"brokers {numbers}: {len(replicas)} replicas, {batches} batches, {known}"
        return f"{read}; faults: {len(self.faults) or 'none'}"


def judge(folders: Sequence[Path], schemas: Schemas | None) -> Judgement:
    """Judge the log directories of brokers; the metadata log needs schemas.  Raises NoFolder."""
    brokers = [read_broker(folder) for folder in folders]
    place, decisions = _decisions(brokers, schemas)
    faults: list[Fault] = []
    for key in sorted({key for broker in brokers for key in broker.replicas} | set(decisions.partitions)):
        replicas = {each.number: each.replicas[key] for each in brokers if key in each.replicas}
        decision, is_compacted = decisions.partitions.get(key), key[0] in decisions.compacted
        if place is None:
            is_compacted = key[0].startswith("__")
        for replica in replicas.values():
            for begin, end in () if is_compacted else replica.gaps:
                replica.blame("offsets", f"there is no record of offsets {begin} to {end - 1}")
            faults += replica.faults
        name = f"{key[0]}-{key[1]}"
        if decision is not None:
            faults += _identity(name, replicas, decision, {each.number for each in brokers})
        faults += _together(name, replicas, decision, is_compacted)
    return Judgement(brokers, place, faults)


def _decisions(brokers: Sequence[Broker], schemas: Schemas | None) -> tuple[int | None, Decisions]:
    """The decisions of the longest copy of the metadata log, and its last offset."""
    if schemas is None:
        return None, read_decisions(())
    copies = [list(metadata_records(broker.path / METADATA_LOG, schemas)) for broker in brokers]
    longest = max(copies, key=lambda records: records[-1][0] if records else -1)
    return longest[-1][0] if longest else None, read_decisions(longest)


def _identity(
    name: str, replicas: Mapping[str, Replica], decision: Decision, given: set[str]
) -> Iterator[Fault]:
    for number in sorted({str(each) for each in decision.replicas} & given - set(replicas)):
        yield Fault(name, number, "identity", "it is assigned this partition, and has no folder of it")
    assert decision.topic_id is not None
    topic_id = base64.urlsafe_b64encode(decision.topic_id).decode().rstrip("=")
    for number, replica in replicas.items():
        if replica.topic_id not in (None, topic_id):
            text = f"its folder is of topic {replica.topic_id}, and the controller's of {topic_id}"
            yield Fault(name, number, "identity", text)
        late = next((mark for mark in replica.marks if (mark.epoch or 0) > decision.epoch), None)
        if late is not None:
            text = (
                f"offset {late.base} is of epoch {late.epoch}, and the controller's last is {decision.epoch}"
            )
            yield Fault(name, number, "undecided-epoch", text)


def _together(
    name: str, replicas: Mapping[str, Replica], decision: Decision | None, is_compacted: bool
) -> Iterator[Fault]:
    # A high watermark beyond its own log's end is a fault already, and says nothing of the others.
    told = [replica for replica in replicas.values() if replica.hw <= replica.end]
    highest = max(told, key=lambda replica: replica.hw, default=None)
    if highest is None:
        return
    candidates = set() if decision is None else {str(each) for each in decision.isr | decision.elr}
    for number in sorted(candidates & set(replicas)):
        if replicas[number].end < highest.hw:
            text = (
                f"it may lead, and ends at {replicas[number].end}; broker {highest.broker} has high watermark"
            )
            yield Fault(name, number, "committed", f"{text} {highest.hw}")
    for one, other in combinations(replicas.values(), 2):
        are_candidates = {one.broker, other.broker} <= candidates
        bound = highest.hw if are_candidates else min(one.hw, other.hw)
        offset = _difference(one, other, min(bound, one.end, other.end), is_compacted)
        if offset is not None:
            text = f"brokers {one.broker} and {other.broker} differ at offset {offset}, which is committed"
            yield Fault(name, "", "log-matching", text)


def _difference(one: Replica, other: Replica, bound: int, is_compacted: bool) -> int | None:
    """The first offset below `bound` at which two logs differ; of compacted ones the epochs are compared."""
    start = max(one.start, other.start)
    first, second = (
        {mark.base: mark for mark in each.marks if mark.last >= start and mark.base < bound}
        for each in (one, other)
    )
    for base in sorted(first.keys() | second.keys()):
        mine, its = first.get(base), second.get(base)
        if is_compacted:
            if mine is not None and its is not None and mine.epoch != its.epoch:
                return base
        elif mine != its:
            return max(base, start)
    return None
