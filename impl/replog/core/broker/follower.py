"""A replica that follows: fetch, append, and truncate records that the leader does not have.

    become follower --> [truncating: request an epoch's end, cut, repeat]    --> fetching <--> diverging: cut
                                                                                     |
                                                          out of range: request the leader's end, its start

Theory: rules A5, A8, A9, A19, A21, A35 of the project's Kafka reference (AbstractFetcherThread,
ReplicaFetcherThread); KIP-101, KIP-279, KIP-595.  Since 2.8 a new follower truncates nothing at first:
its fetch carries the epoch of its last record, and the leader's reply gives the point of divergence.  Older
methods are switches (`Truncation`).

Invariants: one request in flight; a reply changes the log only if it answers that request at an unchanged
LEO (P19); HW never passes the LEO.  Not here: the leader's side (`leader`).
"""

from __future__ import annotations

from replog.core.broker.deletion import advance_start
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
    """Follow `image.leader`, or no leader (A19); the caller has checked that the image is new."""
    # Compared before the state takes the new values: the two answers decide whether to check for divergence.
    is_new_epoch = image.leader_epoch > state.leader_epoch
    has_new_leader = image.leader != state.leader_id
    state.role, state.leading, state.leader_epoch = Role.FOLLOWER, None, image.leader_epoch
    if image.leader == NO_LEADER:
        state.following = None
    # A fresh fetcher for each epoch: an answer to the old one no longer matches a request in flight, so it
    # cannot be applied to the new epoch (B10, P19).
    elif is_new_epoch or has_new_leader:
        state.following = Following(FetchPhase.FETCHING)
        # The same leader id does not mean the same log: it may have followed another leader, and cut, in an
        # epoch that this replica never saw (B6).
        if has_new_leader or state.protocol.truncate_when is TruncateWhen.EVERY_EPOCH:
            start_truncation(state, state.following, out)
        out.append(SetTimer(Timer.SEND_FETCH, 0))


def start_truncation(state: ReplicaState, following: Following, out: list[Effect]) -> None:
    """Perform, or prepare, the truncation that the current rules require of a new follower."""
    rules, log = state.protocol.truncation, state.log
    # HW is behind what this replica acknowledged: the leader may have committed records above it. Cutting
    # there without an answer from the leader is the flaw that KIP-101 fixed (B1).
    if rules is Truncation.HW:
        truncate(state, log.hw, out)
    elif rules is Truncation.FETCH:
        # Records without a known epoch cannot be compared. Nothing but HW is left then, as in Kafka.
        if log.last_epoch == NO_EPOCH and log.leo > log.hw:
            truncate(state, log.hw, out)
    elif rules is not Truncation.NONE:
        ask_epoch(state, following, out)


def ask_epoch(state: ReplicaState, following: Following, out: list[Effect]) -> None:
    """Continue the truncation with the log's last epoch, or truncate to HW if there is none."""
    # From the newest epoch down: each answer that names an epoch unknown here cuts the newest entries, so the
    # next request is about an older epoch and the loop ends (P23).
    following.asked_epoch = state.log.last_epoch
    if following.asked_epoch != NO_EPOCH:
        following.phase = FetchPhase.TRUNCATING
        return
    truncate(state, state.log.hw, out)
    following.phase = FetchPhase.FETCHING


def send_request(state: ReplicaState, following: Following, out: list[Effect]) -> None:
    """Send the request of the current phase, unless one is in flight (A5)."""
    # One request at a time: a second fetch from the same LEO would be answered with records that the first
    # reply has already appended.
    if following.in_flight != -1 or following.has_failed:
        return
    correlation = state.next_correlation()
    # The offset is kept beside the number. A truncation between request and reply makes the reply fit a log
    # that is no more, though the request was the right one.
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
            # Of the last record, or of an entry at the LEO. The leader compares logs by it before it sends a
            # record.
            state.log.last_epoch if carries_epoch else NO_EPOCH,
            state.broker_epoch,
            state.config.fetch_wait_ms,
            state.config.fetch_max_bytes,
            state.log.log_start,
        )
    elif following.phase is FetchPhase.TRUNCATING:
        message = EpochEndRequest(correlation, me, epoch, following.asked_epoch)
    else:
        which = LATEST if following.phase is FetchPhase.ASKING_END else EARLIEST
        message = ListOffsetsRequest(correlation, me, epoch, which)
    out.append(Send(state.leader_id, message))
    out.append(SetTimer(Timer.FETCH_TIMEOUT, state.config.fetch_timeout_ms, correlation))


def on_timeout(state: ReplicaState, following: Following, correlation: int, out: list[Effect]) -> None:
    """Abandon an unanswered request and send a new one."""
    # A timer is never cancelled; one of an answered request finds another number in flight.
    if following.in_flight == correlation:
        following.in_flight = -1
        send_request(state, following, out)


def take_reply(state: ReplicaState, following: Following, correlation: int, phase: FetchPhase) -> bool:
    """Return whether a reply answers the request in flight, in its phase and at the current LEO (A8)."""
    if following.in_flight != correlation:
        return False
    # Even if the reply is dropped below: it has arrived, and a new request need not wait for the timeout.
    following.in_flight = -1
    return following.phase is phase and following.in_flight_offset == state.log.leo


def on_error(state: ReplicaState, following: Following, error: Error, out: list[Effect]) -> None:
    """React to an error reply.

    Stop until new metadata, request the ends of the leader's log, or try again later.
    """
    # A newer leader exists, and only metadata can name it. Retries would be refused in the same way.
    if error is Error.FENCED_LEADER_EPOCH:
        following.has_failed = True
    elif error is Error.OFFSET_OUT_OF_RANGE:
        following.phase = FetchPhase.ASKING_END
        out.append(SetTimer(Timer.SEND_FETCH, 0))
    else:
        out.append(SetTimer(Timer.SEND_FETCH, state.config.fetch_backoff_ms))


def on_fetch_reply(state: ReplicaState, following: Following, reply: FetchReply, out: list[Effect]) -> None:
    """Append the leader's records, or truncate those that the leader does not have (A8)."""
    is_mine = take_reply(state, following, reply.correlation, FetchPhase.FETCHING)
    if not is_mine and state.protocol.checks_response:
        # The fetcher would stall if a reply that is dropped had been the only event to come.
        if following.in_flight == -1:
            out.append(SetTimer(Timer.SEND_FETCH, 0))
        return
    if reply.error is not Error.NONE:
        on_error(state, following, reply.error, out)
        return
    if reply.diverging is not None:
        # The leader's HW may lie above the point where the logs part. Taking it before the cut exposes
        # records of a dead history to readers of this follower (B12); the switch brings that back.
        if state.protocol.hw_on_diverge:
            state.log.assign_hw(reply.high_watermark)
        truncate_by_answer(state, reply.diverging, out)
    # A reply that does not continue the log comes from a faulty peer. Nothing is written, and the pause keeps
    # the two from spinning.
    elif not append(state, reply.batches, out):
        out.append(SetTimer(Timer.SEND_FETCH, state.config.fetch_backoff_ms))
        return
    else:
        # After the append, since HW is clamped to the LEO: the other order would cut the leader's HW down to
        # the old LEO and cost one more round.
        update_hw(state, reply)
        # Last: not above HW, which may have risen only now.
        advance_start(state, reply.log_start, out)
    out.append(SetTimer(Timer.SEND_FETCH, 0))


def update_hw(state: ReplicaState, reply: FetchReply) -> None:
    """Take the leader's HW as far as the own log reaches, up or down (A8, I6)."""
    state.log.assign_hw(reply.high_watermark)


def append(state: ReplicaState, batches: tuple[Batch, ...], out: list[Effect]) -> bool:
    """Append batches as given; if they do not continue the log, return False and append nothing.

    On disk each epoch's entry comes right before its first record, never ahead of an earlier epoch's records.
    """
    expected = state.log.leo
    # A deletion may end inside a batch, which is sent whole. A follower that starts there with an
    # empty log, starts at the batch instead; the log start follows with the reply.
    begins_inside = bool(batches) and batches[0].base_offset < expected < batches[0].next_offset
    if begins_inside and state.log.log_start == expected:
        expected = batches[0].base_offset
    # All are checked before the first is appended: a half-appended reply would leave a LEO that no leader
    # sent.
    first = expected
    for batch in batches:
        if batch.base_offset != expected or batch.count <= 0 or batch.epoch < 0:
            return False
        expected = batch.next_offset
    if first < state.log.leo:
        state.log.reset(first)
        out.extend((Reset(first), StoreEpochs(())))
    written = 0
    for number, batch in enumerate(batches):
        if state.log.append(batch):
            # What came before belongs to earlier epochs and goes first. One entry ahead of an older epoch's
            # records would, after a crash in between, claim offsets that those records were to have.
            if number > written:
                out.append(Append(batches[written:number]))
            out.append(StoreEpochs(tuple(state.log.epochs.entries)))
            written = number
    if batches:
        out.append(Append(batches[written:]))
        flush_by_policy(state, out)
    return True


def on_epoch_end(state: ReplicaState, following: Following, reply: EpochEndReply, out: list[Effect]) -> None:
    """Truncate by the leader's answer; repeat the request if this log lacks the epoch of the answer (A21)."""
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
    """Return to the leader's log: truncate to its end, or start over at its start (A9)."""
    phase = following.phase
    if phase not in (FetchPhase.ASKING_END, FetchPhase.ASKING_START):
        return
    if not take_reply(state, following, reply.correlation, phase):
        return
    if reply.error is not Error.NONE or reply.offset < 0:
        on_error(state, following, reply.error, out)
        return
    # The leader's log is at least as long, so the fetch was refused at the other end: its start has moved
    # past this LEO.
    if phase is FetchPhase.ASKING_END and reply.offset >= state.log.leo:
        following.phase = FetchPhase.ASKING_START
    else:
        if phase is FetchPhase.ASKING_END:
            # The leader is shorter, and its log is the standard, even after an unclean election (I27).
            truncate(state, reply.offset, out)
        elif reply.offset > state.log.leo:
            # The log and the leader's no longer touch. A hole is not allowed, so nothing here can be kept.
            state.log.reset(reply.offset)
            out.extend((Reset(reply.offset), StoreEpochs(())))
        following.phase = FetchPhase.FETCHING
    out.append(SetTimer(Timer.SEND_FETCH, 0))


def truncation_point(state: ReplicaState, end: EpochEnd) -> tuple[int, bool]:
    """Return where to truncate by the leader's answer, and whether the answer is final (A21)."""
    log = state.log
    # The leader has no epoch at or below the one in question. HW is the last common ground; it may lie below
    # committed records, which is why today's leaders always have an answer (B4).
    if end.is_undefined:
        return log.hw, True
    # KIP-101's reply has an offset only; it may belong to an older epoch than was meant (B3).
    if end.epoch == NO_EPOCH:
        return min(end.end_offset, log.leo), True
    # The leader's answer may name an older epoch than the request did. The logs agree at most up to where
    # both end that epoch, so each side's end is needed.
    own = log.epochs.end_offset_for(end.epoch, log.leo, state.protocol.truncation)
    if own.is_undefined:
        return min(end.end_offset, log.leo), True
    # This log lacks the epoch the leader named. Cut to the known part, and request the end of the next older
    # one.
    if own.epoch != end.epoch:
        return min(own.end_offset, log.leo), False
    return min(own.end_offset, end.end_offset, log.leo), True


def truncate_by_answer(state: ReplicaState, end: EpochEnd, out: list[Effect]) -> bool:
    """Truncate by the leader's answer; return whether the logs are now certain to agree."""
    offset, is_last_word = truncation_point(state, end)
    truncate(state, offset, out)
    return is_last_word


def truncate(state: ReplicaState, offset: int, out: list[Effect]) -> None:
    """Truncate the log at `offset`, then its epoch cache; below its start, restart it at `offset`.

    In that order on disk too, and entries at LEO go as well.
    """
    log = state.log
    # After an unclean election a leader may end before this log starts. Nothing of it is kept then, and it
    # continues at that end, as in Kafka; at its own start its fetches would be out of range forever.
    if offset < log.log_start:
        log.reset(offset)
        out.extend((Reset(offset), StoreEpochs(())))
        return
    cut = log.truncate_to(offset)
    if cut:
        out.append(Truncate(offset))
    # An entry at the LEO has no record. If it stayed, the next fetch would carry an epoch that
    # the leader does not have, and diverge at the same offset forever (B23).
    also_cache = cut or state.protocol.truncates_cache_always
    # Records first, then their entries: a crash in between leaves an entry too many at the end, which a start
    # drops; the other order leaves records without one.
    if also_cache and log.epochs.truncate_from_end(log.leo if cut else offset):
        out.append(StoreEpochs(tuple(log.epochs.entries)))
