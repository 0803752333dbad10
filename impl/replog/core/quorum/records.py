"""The controllers' log as a list of records: where two logs agree, and the state that a log represents.

    record   1  2  3  4
    c1       1  1  2  2      the term of each record
    c2       1  1  1         ends (3, term 1): diverges from c1, whose term 1 ends after two records

Theory: KIP-595; the log matching property of Raft.  Two records with the same index and term are the same,
and so is all before them.

Of the controller's state the log has registrations, fencing and partitions.  Sessions, and how far each
broker has applied the metadata, are soft: brokers report them again with their next heartbeat, and get a full
session first.

Not here: appending, and commitment (`node`).
"""

from __future__ import annotations

from collections.abc import Sequence

from replog.core.controller.state import ControllerConfig, ControllerState, Registration
from replog.core.protocol import Protocol
from replog.core.quorum_messages import LogEnd
from replog.core.types import EpochEnd, MetadataImage, MetadataRecord

Log = Sequence[MetadataRecord]


def end_of(log: Log) -> LogEnd:
    """Return the end of a log."""
    return LogEnd(len(log), log[-1].term if log else 0)


def has(log: Log, end: LogEnd) -> bool:
    """Return whether a log contains the log with this end."""
    return end.end == 0 or (end.end <= len(log) and log[end.end - 1].term == end.term)


def is_as_new(candidate: LogEnd, own: LogEnd) -> bool:
    """Return whether a candidate's log has all committed records, as far as the own log shows."""
    return (candidate.term, candidate.end) >= (own.term, own.end)


def end_of_term(log: Log, term: int) -> EpochEnd:
    """Return the newest term up to `term` in a log, and where its records end."""
    end = sum(record.term <= term for record in log)
    return EpochEnd(log[end - 1].term if end else 0, end)


def images_of(log: Log, after_version: int) -> tuple[MetadataImage, ...]:
    """Return the metadata after a version, oldest first, each version once; after -1, only the newest."""
    # A new controller's own record repeats the metadata that it found.
    later = {r.image.version: r.image for r in log if r.image.version > after_version}
    images = tuple(later.values())
    return images if after_version >= 0 else images[-1:]


def record_of(state: ControllerState, term: int) -> MetadataRecord:
    """Return the record of the last change of a state."""
    incarnations = {broker: known.incarnation for broker, known in state.brokers.items()}
    return MetadataRecord(term, state.history[-1], incarnations)


def restored(
    record: MetadataRecord, config: ControllerConfig, protocol: Protocol, now_ms: int
) -> ControllerState:
    """Return the state after a record, in which every broker has just sent a heartbeat."""
    brokers = {
        broker: Registration(record.incarnations[broker], known.broker_epoch, known.state, now_ms)
        for broker, known in record.image.brokers.items()
    }
    return ControllerState(config, protocol, brokers, dict(record.image.partitions), [record.image])
