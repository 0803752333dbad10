"""A replica that follows: fetch, append, and cut away what the leader does not have.

    become follower --> [truncating: ask where my epoch ends, cut, ask again] --> fetching <--> diverging: cut
                                                                                     |
                                                          out of range: ask the leader's end, its start

Theory: rules A5, A8, A9, A19, A21 of the project's Kafka reference (AbstractFetcherThread,
ReplicaFetcherThread); KIP-101, KIP-279, KIP-595.  Since 2.8 a follower cuts nothing when it becomes one:
its fetch carries the epoch of its last record, and the leader's reply says where the logs part.  The older
ways are switches (`Truncation`).

Invariants: one request in flight; a reply changes the log only if it answers that request at an unchanged
LEO (P19); HW never passes the LEO.  Not here: the leader's side (`leader`).
"""

from __future__ import annotations

from replog.core.broker.leader import flush_by_policy
from replog.core.broker.state import FetchPhase, Following, ReplicaState
from replog.core.effects import Append, Effect, Reset, Send, SetTimer, StoreEpochs, Timer, Truncate
from replog.core.messages import (
    EARLIEST,
    LATEST,
    EpochEndReply,
    EpochEndRequest,
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
)
from replog.core.protocol import TruncateWhen, Truncation
from replog.core.types import NO_EPOCH, NO_LEADER, Batch, EpochEnd, Error, PartitionImage, Role


def become(state: ReplicaState, image: PartitionImage, out: list[Effect]) -> None:
    """Follow `image.leader`, or nobody (A19); the caller has checked that the image is news."""
    is_new_epoch = image.leader_epoch > state.leader_epoch
    has_new_leader = image.leader != state.leader_id
    state.role, state.leading, state.leader_epoch = Role.FOLLOWER, None, image.leader_epoch
    if image.leader == NO_LEADER:
        state.following = None
    elif is_new_epoch or has_new_leader:
        state.following = Following(FetchPhase.FETCHING)
        if has_new_leader or state.protocol.truncate_when is TruncateWhen.EVERY_EPOCH:
            start_truncation(state, state.following, out)
        out.append(SetTimer(Timer.SEND_FETCH, 0))


def start_truncation(state: ReplicaState, following: Following, out: list[Effect]) -> None:
    """Do, or prepare, what the rules in force ask of a new follower."""
    rules, log = state.protocol.truncation, state.log
    if rules is Truncation.HW:
        truncate(state, log.hw, out)
    elif rules is Truncation.FETCH:
        if log.last_epoch == NO_EPOCH and log.leo > log.hw:
            truncate(state, log.hw, out)
    elif rules is not Truncation.NONE:
        ask_epoch(state, following, out)


def ask_epoch(state: ReplicaState, following: Following, out: list[Effect]) -> None:
    """Go on truncating with the log's last epoch, or fall back to HW where there is none."""
    following.asked_epoch = state.log.last_epoch
    if following.asked_epoch != NO_EPOCH:
        following.phase = FetchPhase.TRUNCATING
        return
    truncate(state, state.log.hw, out)
    following.phase = FetchPhase.FETCHING


def send_request(state: ReplicaState, following: Following, out: list[Effect]) -> None:
    """Send the request of the current phase, unless one is in flight (A5)."""
    if following.in_flight != -1 or following.has_failed:
        return
    correlation = state.next_correlation()
    following.in_flight, following.in_flight_offset = correlation, state.log.leo
    me, epoch = state.broker_id, state.leader_epoch
    message: FetchRequest | EpochEndRequest | ListOffsetsRequest
    if following.phase is FetchPhase.FETCHING:
        carries_epoch = state.protocol.truncation is Truncation.FETCH
        message = FetchRequest(
            correlation,
            me,
            epoch,
            state.log.leo,
            state.log.last_epoch if carries_epoch else NO_EPOCH,
            state.broker_epoch,
            state.config.fetch_wait_ms,
            state.config.fetch_max_bytes,
        )
    elif following.phase is FetchPhase.TRUNCATING:
        message = EpochEndRequest(correlation, me, epoch, following.asked_epoch)
    else:
        which = LATEST if following.phase is FetchPhase.ASKING_END else EARLIEST
        message = ListOffsetsRequest(correlation, me, epoch, which)
    out.append(Send(state.leader_id, message))
    out.append(SetTimer(Timer.FETCH_TIMEOUT, state.config.fetch_timeout_ms, correlation))


def on_timeout(state: ReplicaState, following: Following, correlation: int, out: list[Effect]) -> None:
    """Give up on a request without an answer and send a new one."""
    if following.in_flight == correlation:
        following.in_flight = -1
        send_request(state, following, out)


def take_reply(state: ReplicaState, following: Following, correlation: int, phase: FetchPhase) -> bool:
    """Tell whether a reply is the one waited for, in the phase and at the LEO it was asked for (A8)."""
    if following.in_flight != correlation:
        return False
    following.in_flight = -1
    return following.phase is phase and following.in_flight_offset == state.log.leo


def on_error(state: ReplicaState, following: Following, error: Error, out: list[Effect]) -> None:
    """React to a refusal.

    Stop until new metadata, look for the ends of the leader's log, or try again later.
    """
    if error is Error.FENCED_LEADER_EPOCH:
        following.has_failed = True
    elif error is Error.OFFSET_OUT_OF_RANGE:
        following.phase = FetchPhase.ASKING_END
        out.append(SetTimer(Timer.SEND_FETCH, 0))
    else:
        out.append(SetTimer(Timer.SEND_FETCH, state.config.fetch_backoff_ms))


def on_fetch_reply(state: ReplicaState, following: Following, reply: FetchReply, out: list[Effect]) -> None:
    """Append what the leader sent, or cut what it does not have (A8)."""
    is_mine = take_reply(state, following, reply.correlation, FetchPhase.FETCHING)
    if not is_mine and state.protocol.checks_response:
        if following.in_flight == -1:
            out.append(SetTimer(Timer.SEND_FETCH, 0))
        return
    if reply.error is not Error.NONE:
        on_error(state, following, reply.error, out)
        return
    if reply.diverging is not None:
        if state.protocol.hw_on_diverge:
            state.log.assign_hw(reply.high_watermark)
        truncate_by_answer(state, reply.diverging, out)
    elif not append(state, reply.batches, out):
        out.append(SetTimer(Timer.SEND_FETCH, state.config.fetch_backoff_ms))
        return
    else:
        update_hw(state, reply)
        state.log.advance_start(reply.log_start)
    out.append(SetTimer(Timer.SEND_FETCH, 0))


def update_hw(state: ReplicaState, reply: FetchReply) -> None:
    """Take the leader's HW as far as the own log reaches, up or down (A8, I6)."""
    state.log.assign_hw(reply.high_watermark)


def append(state: ReplicaState, batches: tuple[Batch, ...], out: list[Effect]) -> bool:
    """Append batches as given; False, and nothing appended, if they do not continue the log.

    On disk each epoch's entry comes right before its first record, never ahead of an earlier epoch's records.
    """
    expected = state.log.leo
    for batch in batches:
        if batch.base_offset != expected or batch.count <= 0 or batch.epoch < 0:
            return False
        expected = batch.next_offset
    written = 0
    for number, batch in enumerate(batches):
        if state.log.append(batch):
            if number > written:
                out.append(Append(batches[written:number]))
            out.append(StoreEpochs(tuple(state.log.epochs.entries)))
            written = number
    if batches:
        out.append(Append(batches[written:]))
        flush_by_policy(state, out)
    return True


def on_epoch_end(state: ReplicaState, following: Following, reply: EpochEndReply, out: list[Effect]) -> None:
    """Cut by the leader's answer, and ask again where it was about an epoch this log does not know (A21)."""
    if not take_reply(state, following, reply.correlation, FetchPhase.TRUNCATING):
        return
    if reply.error is not Error.NONE:
        on_error(state, following, reply.error, out)
        return
    if truncate_by_answer(state, reply.end, out):
        following.phase = FetchPhase.FETCHING
    else:
        ask_epoch(state, following, out)
    out.append(SetTimer(Timer.SEND_FETCH, 0))


def on_list_offsets(
    state: ReplicaState, following: Following, reply: ListOffsetsReply, out: list[Effect]
) -> None:
    """Find a place inside the leader's log: cut to its end, or start over at its start (A9)."""
    phase = following.phase
    if phase not in (FetchPhase.ASKING_END, FetchPhase.ASKING_START):
        return
    if not take_reply(state, following, reply.correlation, phase):
        return
    if reply.error is not Error.NONE or reply.offset < 0:
        on_error(state, following, reply.error, out)
        return
    if phase is FetchPhase.ASKING_END and reply.offset >= state.log.leo:
        following.phase = FetchPhase.ASKING_START
    else:
        if phase is FetchPhase.ASKING_END:
            truncate(state, reply.offset, out)
        elif reply.offset > state.log.leo:
            state.log.reset(reply.offset)
            out.extend((Reset(reply.offset), StoreEpochs(())))
        following.phase = FetchPhase.FETCHING
    out.append(SetTimer(Timer.SEND_FETCH, 0))


def truncation_point(state: ReplicaState, end: EpochEnd) -> tuple[int, bool]:
    """Return where to cut by the leader's answer, and whether that is the last word (A21)."""
    log = state.log
    if end.is_undefined:
        return log.hw, True
    if end.epoch == NO_EPOCH:
        return min(end.end_offset, log.leo), True
    own = log.epochs.end_offset_for(end.epoch, log.leo, state.protocol.truncation)
    if own.is_undefined:
        return min(end.end_offset, log.leo), True
    if own.epoch != end.epoch:
        return min(own.end_offset, log.leo), False
    return min(own.end_offset, end.end_offset, log.leo), True


def truncate_by_answer(state: ReplicaState, end: EpochEnd, out: list[Effect]) -> bool:
    """Cut by the leader's answer; tell whether the logs agree now for certain."""
    offset, is_last_word = truncation_point(state, end)
    truncate(state, offset, out)
    return is_last_word


def truncate(state: ReplicaState, offset: int, out: list[Effect]) -> None:
    """Cut the log at `offset`, then its epoch cache.

    In that order on disk too, and entries at LEO go as well.
    """
    log = state.log
    cut = log.truncate_to(offset)
    if cut:
        out.append(Truncate(offset))
    also_cache = cut or state.protocol.truncates_cache_always
    if also_cache and log.epochs.truncate_from_end(log.leo if cut else offset):
        out.append(StoreEpochs(tuple(log.epochs.entries)))
