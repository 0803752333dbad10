"""Messages between the controllers of a quorum: votes, and fetches of the metadata log.

`NotController` is for brokers.

Theory: KIP-595 (Vote and Fetch between the voters of a quorum), A36 of the project's Kafka reference.

Not here: what else brokers exchange with them (`messages`).
"""

from __future__ import annotations

from dataclasses import dataclass

from replog.core.types import EpochEnd, MetadataRecord


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a controller's log: the number of its records, and the term of the last one."""

    end: int
    term: int


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """A controller stands for election in `term`, with this log."""

    term: int
    log: LogEnd


@dataclass(frozen=True, slots=True)
class VoteReply:
    """The answer of a voter, and its current term."""

    term: int
    is_granted: bool


@dataclass(frozen=True, slots=True)
class MetadataFetch:
    """A controller requests the records after its own log; this acknowledges all records before them."""

    term: int
    log: LogEnd


@dataclass(frozen=True, slots=True)
class MetadataFetchReply:
    """Records after `log`, the end in the request, and the number of committed records.

    Or, instead of records, where the logs diverge: the end of a term in the active controller's log.
    """

    term: int
    log: LogEnd
    records: tuple[MetadataRecord, ...]
    committed: int
    diverging: EpochEnd | None = None


@dataclass(frozen=True, slots=True)
class NotController:
    """The sender is not the active controller; `active` is the one it knows for its term."""

    active: int


QuorumMessage = VoteRequest | VoteReply | MetadataFetch | MetadataFetchReply
