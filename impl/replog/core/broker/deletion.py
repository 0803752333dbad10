"""Deletion of records at the front of a log: by a client's request, by retention, and after the leader.

    leader    log start 3   <-- delete(3)            waits until low watermark = 3, then answers
    follower  log start 0   <-- reply, log start 3   log start 3   --> fetch, log start 3

Theory: rule A35 of the project's Kafka reference (KIP-107, Partition.deleteRecordsOnLeader,
DelayedDeleteRecords, UnifiedLog.deleteOldSegments).

Invariants: no log starts above its HW, so that deleted records were committed; a client with an answer
finds no record before its offset on any replica that may lead.  Not here: a follower that has fallen behind
the leader's log start (`follower`, A9).
"""

from __future__ import annotations

from replog.core.broker import isr
from replog.core.broker.state import Leading, ReplicaState, WaitingDelete
from replog.core.effects import AdvanceStart, Effect, Send, SetTimer, Timer
from replog.core.messages import LATEST, DeleteRecordsReply, DeleteRecordsRequest
from replog.core.types import BrokerState, Error


def advance_start(state: ReplicaState, offset: int, out: list[Effect]) -> None:
    """Move the log start forward to `offset`, or to HW if that is lower."""
    if state.log.advance_start(offset):
        out.append(AdvanceStart(state.log.log_start))


def on_request(
    state: ReplicaState,
    leading: Leading,
    source: int,
    request: DeleteRecordsRequest,
    now_ms: int,
    out: list[Effect],
) -> None:
    """Delete records, and answer when all replicas that are live or may lead have deleted them."""
    log = state.log
    offset = log.hw if request.offset == LATEST else request.offset
    # A record above HW may still be the only copy that the next leader needs.
    if not 0 <= offset <= log.hw:
        out.append(Send(source, DeleteRecordsReply(request.correlation, Error.OFFSET_OUT_OF_RANGE, -1)))
        return
    advance_start(state, offset, out)
    leading.deletes.append(WaitingDelete(source, request.correlation, offset, now_ms + request.timeout_ms))
    complete(state, leading, out)
    if leading.deletes:
        out.append(SetTimer(Timer.DELETE_TIMEOUT, request.timeout_ms))


def low_watermark(state: ReplicaState, leading: Leading) -> int:
    """Return the least log start of the replicas that are live or may lead, -1 if one is unknown."""
    others = (remote.log_start for f, remote in leading.remotes.items() if _counts(state, leading, f))
    return min((state.log.log_start, *others))


def _counts(state: ReplicaState, leading: Leading, follower: int) -> bool:
    known = state.brokers.get(follower)
    if known is not None and known.state is not BrokerState.FENCED:
        return True
    # An absent replica may be elected as soon as it is back, without a fetch in between, if it is an eligible
    # leader replica, or if a proposal with it is granted late.
    may_lead = (*isr.maximal_isr(state, leading), *state.elr)
    return state.protocol.join_needs_start and follower in may_lead


def complete(state: ReplicaState, leading: Leading, out: list[Effect]) -> None:
    """Answer the deletions that all replicas that are live or may lead have made."""
    if not leading.deletes:
        return
    low = low_watermark(state, leading)
    done = [waiting for waiting in leading.deletes if waiting.offset <= low]
    leading.deletes = [waiting for waiting in leading.deletes if waiting.offset > low]
    out.extend(Send(w.source, DeleteRecordsReply(w.correlation, Error.NONE, low)) for w in done)


def expire(leading: Leading, now_ms: int, out: list[Effect]) -> None:
    """Time out the deletions that are due; the records are deleted on this replica nevertheless."""
    late = [waiting for waiting in leading.deletes if waiting.deadline_ms <= now_ms]
    leading.deletes = [waiting for waiting in leading.deletes if waiting.deadline_ms > now_ms]
    error = Error.REQUEST_TIMED_OUT
    out.extend(Send(w.source, DeleteRecordsReply(w.correlation, error, -1)) for w in late)
    if leading.deletes:
        first = min(waiting.deadline_ms for waiting in leading.deletes)
        out.append(SetTimer(Timer.DELETE_TIMEOUT, first - now_ms))


def retain(state: ReplicaState, out: list[Effect]) -> None:
    """Delete the oldest batches beyond `retention_bytes`, on every replica, in any role."""
    log = state.log
    spare = sum(batch.size_bytes for batch in log.batches) - state.config.retention_bytes
    start = log.log_start
    for batch in log.batches:
        spare -= batch.size_bytes
        if spare < 0 or batch.next_offset > log.hw:
            break
        start = batch.next_offset
    advance_start(state, start, out)
