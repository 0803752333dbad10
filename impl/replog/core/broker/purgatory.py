"""The two queues of waiting requests of a leader: produces that wait for HW, fetches that wait for records.

    acks=all produce --HW reaches its end--> answered      --timeout--> REQUEST_TIMED_OUT, the records stay
    empty fetch      --something to read---> records       --timeout--> an empty reply with today's HW

Theory: rules A4, A6 and I7 of the project's Kafka reference (DelayedProduce, DelayedFetch).

Invariant: a request that waits is answered once, or is dropped with the process.  Not here: when HW moves
(`leader`).
"""

from __future__ import annotations

from replog.core.broker import isr
from replog.core.broker.state import Leading, ReplicaState, WaitingFetch, WaitingProduce
from replog.core.effects import Effect, Send, SetTimer, Timer
from replog.core.messages import FetchReply, FetchRequest, ProduceReply
from replog.core.types import NO_EPOCH, Batch, Error


def complete_produces(state: ReplicaState, leading: Leading, out: list[Effect]) -> None:
    """Answer the waiting produces that HW has reached (A4)."""
    done = [waiting for waiting in leading.produces if state.log.hw >= waiting.required]
    if done:
        leading.produces = [waiting for waiting in leading.produces if state.log.hw < waiting.required]
        out.extend(produce_verdict(state, leading, waiting) for waiting in done)


def produce_verdict(state: ReplicaState, leading: Leading, waiting: WaitingProduce) -> Send:
    """Return the reply to a produce that HW has passed: success, or committed under too small an ISR (A4)."""
    # Checked again at completion: the ISR may have shrunk below the minimum while the produce waited. The
    # record is committed nevertheless, so the producer must not conclude from the error that it is absent.
    enough = state.effective_min_isr() <= len(isr.maximal_isr(state, leading))
    error = Error.NONE if enough else Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return Send(waiting.source, ProduceReply(waiting.correlation, error, waiting.base_offset))


def expire_produces(leading: Leading, now_ms: int, out: list[Effect]) -> None:
    """Time out the waiting produces that are due; re-arm for the first that is not (clocks may jump back)."""
    # A timeout does not decide about the record: it stays in the log and may commit later. A producer without
    # idempotence that retries now writes it twice (B13).
    late = [waiting for waiting in leading.produces if waiting.deadline_ms <= now_ms]
    out.extend(Send(w.source, ProduceReply(w.correlation, Error.REQUEST_TIMED_OUT, -1)) for w in late)
    if late:
        leading.produces = [waiting for waiting in leading.produces if waiting.deadline_ms > now_ms]
    if leading.produces:
        # Timers are one-shot and not tied to a request, so the handler of one must arm the next.
        first = min(waiting.deadline_ms for waiting in leading.produces)
        out.append(SetTimer(Timer.PRODUCE_TIMEOUT, first - now_ms))


def complete_fetches(state: ReplicaState, leading: Leading, out: list[Effect]) -> None:
    """Answer the waiting fetches for which there are now records, with the current HW (I7)."""
    if not leading.fetches:
        return
    still: list[WaitingFetch] = []
    for waiting in leading.fetches:
        request = waiting.request
        # The limit of now, not of the time of the request: the fetch waits for just those records that have
        # arrived since.
        end = state.log.leo if request.is_from_follower else state.log.hw
        batches = state.log.read(request.fetch_offset, end, request.max_bytes)
        if batches:
            out.append(Send(waiting.source, _served(state, request, batches)))
        else:
            still.append(waiting)
    leading.fetches = still


def expire_fetches(state: ReplicaState, leading: Leading, token: int, now_ms: int, out: list[Effect]) -> None:
    """Answer the waiting fetches whose timer has fired or whose deadline has passed, without records."""
    # By token as well as by time: a clock that jumped back must not hold the request forever.
    late = [w for w in leading.fetches if w.token == token or w.deadline_ms <= now_ms]
    if late:
        leading.fetches = [w for w in leading.fetches if w.token != token and w.deadline_ms > now_ms]
        out.extend(Send(w.source, _served(state, w.request, ())) for w in late)


def refuse_stale(leading: Leading, epoch: int, out: list[Effect]) -> None:
    """Refuse the fetches that have been waiting since an earlier epoch (A22)."""
    # A consumer that sends no epoch may keep waiting; it is not fenced on arrival either.
    stale = [w for w in leading.fetches if w.request.leader_epoch not in (NO_EPOCH, epoch)]
    leading.fetches = [w for w in leading.fetches if w.request.leader_epoch in (NO_EPOCH, epoch)]
    error = Error.FENCED_LEADER_EPOCH
    out.extend(Send(w.source, FetchReply(w.request.correlation, error)) for w in stale)


def _served(state: ReplicaState, request: FetchRequest, batches: tuple[Batch, ...]) -> FetchReply:
    return FetchReply(request.correlation, Error.NONE, state.log.hw, state.log.log_start, batches)
