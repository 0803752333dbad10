"""The leader's part of a replica: produce, fetch, high watermark.

Theory: rules A1-A7, A18, A22, A30 of the project's Kafka reference (kafka.cluster.Partition, ReplicaManager);
worked examples F1-F3.  The two rounds of HW, in one picture:

    produce m -> L.leo=1   fetch(0) -> remote=0, reply m, hw 0   fetch(1) -> remote=1, L.hw=1, reply hw 1

Invariants: on a leader HW only rises (I2), never past min(own LEO, LEOs of the maximal ISR); a reply leaves
after the effects that make it true.

Choices where the reference leaves one: a reply with records carries the HW read *before* this fetch was
counted, a reply that waited carries the HW at completion (I7).  A second fetch of one follower replaces its
waiting one.

Not here: waiting requests (`purgatory`), the members of the ISR (`isr`), the follower's use of a reply
(`follower`), dispatch (`replica`).
"""

from __future__ import annotations

from dataclasses import replace

from replog.core.broker import deletion, isr, purgatory
from replog.core.broker.state import Leading, Remote, ReplicaState, WaitingFetch, WaitingProduce
from replog.core.effects import Append, Effect, Flush, Send, SetTimer, StoreEpochs, Timer
from replog.core.messages import (
    LATEST,
    DeleteRecordsReply,
    FetchReply,
    FetchRequest,
    ListOffsetsRequest,
    ProduceReply,
    ProduceRequest,
)
from replog.core.protocol import EpochEntryWhen, Truncation
from replog.core.types import NO_EPOCH, Batch, EpochEnd, Error, PartitionImage, Role


def become(state: ReplicaState, image: PartitionImage, now_ms: int, out: list[Effect]) -> None:
    """Lead as `image` determines (A18); the caller has checked that the image is new."""
    old = state.leading
    state.role, state.following = Role.LEADER, None
    if old is not None and image.leader_epoch == state.leader_epoch:
        # Only the ISR or the replica list changed. The epoch continues, so LEOs and waiting requests stay
        # valid; a pending proposal is obsolete: this image has its outcome already, or has made it stale.
        old.isr, old.pending = image.isr, None
        # A broker that is no longer a replica is forgotten: it may return as a new one, empty (B25).
        old.remotes = {f: remote for f, remote in old.remotes.items() if f in image.replicas}
        leading = old
    else:
        leading = _begin_epoch(state, old, image, now_ms, out)
    # HW is computed in every case: any image can shrink the ISR, and the replica that held HW back may be the
    # one that left (A7c). A replica added by this image has LEO -1, which counts once it is in the ISR.
    for replica in image.replicas:
        if replica != state.broker_id:
            leading.remotes.setdefault(replica, Remote())
    advance_hw(state, leading, now_ms, out)


def _begin_epoch(
    state: ReplicaState, old: Leading | None, image: PartitionImage, now_ms: int, out: list[Effect]
) -> Leading:
    """Start a new leader epoch: its start offset, its entry in the cache, the state of the followers."""
    log = state.log
    # The LEO of this moment bounds what earlier epochs wrote. No follower joins the ISR below it (B5): HW may
    # still be far behind, so reaching HW alone proves nothing about those records.
    leading = Leading(leso=log.leo, isr=image.isr)
    if old is not None:
        # Produces stay: the records are still in this log and may commit in the new epoch. Fetches were
        # fenced against the old epoch, so their senders must send them again.
        leading.produces, leading.fetches = old.produces, old.fetches
        leading.deletes = old.deletes
        purgatory.refuse_stale(leading, image.leader_epoch, out)
    for follower in image.replicas:
        if follower == state.broker_id:
            continue
        # A new leader has no state of its followers: LEOs of an earlier leadership may be above what they
        # hold after a truncation (I8). A leader that stayed leader can keep them, because its log was never
        # cut.
        known = old.remotes.get(follower) if old is not None and state.protocol.keeps_remote_leo else None
        remote = Remote() if known is None else known
        # ISR members get a full lag interval from now. Otherwise the first ISR check of a new leader would
        # remove all of them before they could fetch.
        in_sync_ms = now_ms if follower in image.isr else 0
        remote.last_caught_up_ms = remote.last_fetch_ms = in_sync_ms
        remote.last_fetch_leader_leo = log.leo
        leading.remotes[follower] = remote
    state.leading, state.leader_epoch = leading, image.leader_epoch
    # The entry is stored before any record of the epoch can be. A leader that never writes must still be able
    # to give the start of its epoch; without the entry its followers fall back to their HW (B4).
    if state.protocol.epoch_entry is EpochEntryWhen.ON_BECOME_LEADER and log.epochs.assign(
        image.leader_epoch, log.leo
    ):
        out.append(StoreEpochs(tuple(log.epochs.entries)))
    return leading


def resign(leading: Leading, out: list[Effect]) -> None:
    """Reply to every waiting request: this replica no longer leads (A4)."""
    error = Error.NOT_LEADER_OR_FOLLOWER
    out.extend(Send(w.source, ProduceReply(w.correlation, error, -1)) for w in leading.produces)
    out.extend(Send(w.source, FetchReply(w.request.correlation, error)) for w in leading.fetches)
    out.extend(Send(w.source, DeleteRecordsReply(w.correlation, error, -1)) for w in leading.deletes)


def on_produce(
    state: ReplicaState,
    leading: Leading,
    source: int,
    request: ProduceRequest,
    now_ms: int,
    out: list[Effect],
) -> None:
    """Handle a produce to the leader (A1 after the leader check, A2, A3)."""
    # All refusals come before the append: a record cannot be taken back once a follower may have fetched it.
    error = check_produce(state, leading, request)
    if error is not Error.NONE:
        _refuse_produce(source, request, error, out)
        return
    batch = request.batch
    duplicate = state.log.producers.duplicate_of(batch) if batch.producer_id >= 0 else None
    # A retry is answered with the place of the first copy. With acks=all it waits like the original: the
    # first copy may not be committed yet.
    if duplicate is not None:
        finish_produce(state, leading, source, request, duplicate.base_offset, now_ms, out)
        return
    error = state.log.producers.check(batch) if batch.producer_id >= 0 else Error.NONE
    if error is not Error.NONE:
        _refuse_produce(source, request, error, out)
        return
    base = state.log.leo
    # Append, then HW, then the reply. A sole ISR member commits by its own append, so HW must be computed
    # after it; the reply comes last because the process may die between any two effects, and a lost reply is
    # retried while a reply without its record would promise one that is lost.
    append(state, stamp(state, batch), out)
    advance_hw(state, leading, now_ms, out)
    # Followers that wait at the old LEO are served at once, not at their deadline: their next fetch is what
    # moves HW, so each millisecond here is latency of acks=all.
    purgatory.complete_fetches(state, leading, out)
    finish_produce(state, leading, source, request, base, now_ms, out)


def check_produce(state: ReplicaState, leading: Leading, request: ProduceRequest) -> Error:
    """Return the first reason to refuse a produce, apart from its producer's state, in Kafka's order (A1)."""
    batch = request.batch
    # The committed ISR counts, not the maximal one: a member that is only proposed may be refused. acks 0 and
    # 1 promise no copies and are not gated.
    if request.acks == -1 and len(leading.isr) < state.effective_min_isr():
        return Error.NOT_ENOUGH_REPLICAS
    # Offsets are the leader's to give; a producer that sends others is broken or is replaying a fetched
    # batch.
    if batch.base_offset != 0 or batch.count <= 0:
        return Error.INVALID_RECORD
    if batch.producer_id >= 0 and (batch.producer_epoch < 0 or batch.first_seq < 0):
        return Error.INVALID_RECORD
    if batch.size_bytes > state.config.max_batch_bytes:
        return Error.MESSAGE_TOO_LARGE
    return Error.NONE


def stamp(state: ReplicaState, batch: Batch) -> Batch:
    """Stamp a producer's batch with its place: the LEO, and the leader's epoch."""
    return replace(batch, base_offset=state.log.leo, epoch=state.leader_epoch)


def append(state: ReplicaState, batch: Batch, out: list[Effect]) -> None:
    """Append a stamped batch.

    Epoch entry first, then the records, then a flush if the policy requires one (A3).
    """
    # The entry is on disk before its first record. After a crash in between a start finds an entry at the
    # log's end and drops it; the other order leaves a record of unknown epoch.
    if state.log.append(batch):
        out.append(StoreEpochs(tuple(state.log.epochs.entries)))
    out.append(Append((batch,)))
    flush_by_policy(state, out)


def flush_by_policy(state: ReplicaState, out: list[Effect]) -> None:
    """Flush when enough records have gathered, before the reply that acknowledges them."""
    limit = state.config.flush_messages
    if limit and state.log.unflushed >= limit:
        state.log.unflushed = 0
        out.append(Flush())


def finish_produce(
    state: ReplicaState,
    leading: Leading,
    source: int,
    request: ProduceRequest,
    base_offset: int,
    now_ms: int,
    out: list[Effect],
) -> None:
    """Answer now (acks 1, or already committed), wait for HW (acks all), or never answer (acks 0)."""
    if request.acks == 0:
        return
    if request.acks == 1:
        out.append(Send(source, ProduceReply(request.correlation, Error.NONE, base_offset)))
        return
    # HW is exclusive: the batch is committed when HW has reached the offset after its last record.
    required = base_offset + request.batch.count
    deadline = now_ms + request.timeout_ms
    waiting = WaitingProduce(source, request.correlation, required, base_offset, deadline)
    # A duplicate, or a sole ISR member: there is nothing to wait for, and no later event would answer it.
    if state.log.hw >= required:
        out.append(purgatory.produce_verdict(state, leading, waiting))
        return
    leading.produces.append(waiting)
    out.append(SetTimer(Timer.PRODUCE_TIMEOUT, request.timeout_ms))


def _refuse_produce(source: int, request: ProduceRequest, error: Error, out: list[Effect]) -> None:
    """Refuse a produce; acks=0 gets no reply (Kafka closes the connection instead)."""
    if request.acks != 0:
        out.append(Send(source, ProduceReply(request.correlation, error, -1)))


def candidate_hw(state: ReplicaState, leading: Leading, now_ms: int) -> int:
    """Return the smallest LEO among the replicas that HW depends on, this one included.

    -1 if one is unknown (A7).
    """
    # The controller may already have committed the proposal in flight. HW waits for the members of both sets,
    # so every one of them can be elected without loss (B14).
    must_have = isr.maximal_isr(state, leading)
    # The leader's own LEO is part of the minimum (I1): with an ISR of one it alone decides.
    lowest = state.log.leo
    for follower, remote in leading.remotes.items():
        if remote.leo >= lowest:
            continue
        # The second case is about progress, not safety (I3): a lone leader that takes writes would otherwise
        # run away from a follower that is about to rejoin, and HW would pass it at every attempt.
        if follower in must_have or (
            state.protocol.waits_for_caught_up
            and isr.is_caught_up(state, remote, now_ms)
            and isr.is_eligible(state, follower, remote)
        ):
            lowest = remote.leo
    return lowest


def advance_hw(state: ReplicaState, leading: Leading, now_ms: int, out: list[Effect]) -> None:
    """Raise HW if the rules allow, and answer the produces and fetches it passes (A7)."""
    # Below the minimum a record would be committed on fewer copies than promised. ELR relies on this: a
    # former member has everything committed only because HW has not moved since it left (B15).
    if not state.protocol.hw_under_min_isr and len(leading.isr) < state.effective_min_isr():
        return
    # The minimum can fall below HW, for instance after an election, when the followers' LEOs are unknown. HW
    # cannot: its records were acknowledged and read (I2).
    if state.log.raise_hw(candidate_hw(state, leading, now_ms)):
        purgatory.complete_produces(state, leading, out)
        purgatory.complete_fetches(state, leading, out)


def on_fetch(
    state: ReplicaState, leading: Leading, source: int, request: FetchRequest, now_ms: int, out: list[Effect]
) -> None:
    """Handle a fetch to the leader, after fencing: check, read, record its LEO, answer or wait (A6)."""
    reply = check_fetch(state, request)
    if reply is not None:
        # A diverging fetch names an offset in another history. Counting it as an acknowledgement would let a
        # follower with the wrong records into the ISR (B9); the switch brings that flaw back.
        if reply.diverging is not None and state.protocol.updates_on_diverge and request.is_from_follower:
            count_follower(state, leading, request, now_ms, out)
        out.append(Send(source, reply))
        return
    # Read before this fetch is counted, as Kafka does. The reply then carries an old HW, which is safe: a
    # follower's HW is only a lower bound (I7).
    hw_before = state.log.hw
    # Followers read uncommitted records, because their copies are what commits them; consumers never do.
    end = state.log.leo if request.is_from_follower else hw_before
    batches = state.log.read(request.fetch_offset, end, request.max_bytes)
    if request.is_from_follower:
        # The offset acknowledges all before it (I15): a follower fetches from its LEO, and only after its
        # append.
        error = count_follower(state, leading, request, now_ms, out)
        if error is not Error.NONE:
            out.append(Send(source, FetchReply(request.correlation, error)))
            return
    if batches or request.max_wait_ms <= 0:
        out.append(
            Send(source, FetchReply(request.correlation, Error.NONE, hw_before, state.log.log_start, batches))
        )
        return
    # One fetch of a follower is in flight at a time, so an older one was given up by its sender. Keeping both
    # would answer the dead one first and leave the live one without records.
    leading.fetches = [w for w in leading.fetches if w.source != source]
    # A number of this replica's own: those of two senders may be the same.
    token = state.next_correlation()
    leading.fetches.append(WaitingFetch(source, request, now_ms + request.max_wait_ms, token))
    out.append(SetTimer(Timer.FETCH_WAIT, request.max_wait_ms, token))


def check_fetch(state: ReplicaState, request: FetchRequest) -> FetchReply | None:
    """Return the reply that ends a fetch early: unknown replica, divergence, out of range.

    None if there is none (A6.2-4).
    """
    log, correlation = state.log, request.correlation
    # The metadata of one of the two is behind. UNKNOWN_LEADER_EPOCH makes the follower retry, as it should if
    # it is this replica's that is old.
    if request.is_from_follower and request.replica_id not in state.replicas:
        known = request.leader_epoch >= 0
        return FetchReply(correlation, Error.UNKNOWN_LEADER_EPOCH if known else Error.NOT_LEADER_OR_FOLLOWER)
    if request.last_fetched_epoch >= 0 and state.protocol.truncation is Truncation.FETCH:
        # The epoch of the follower's last record is compared before its offset: a log with another history
        # may well have the right length (B3).
        end = log.epochs.end_offset_for(request.last_fetched_epoch, log.leo)
        if end.is_undefined:
            return FetchReply(correlation, Error.OFFSET_OUT_OF_RANGE)
        if request.fetch_offset < log.log_start:
            return FetchReply(correlation, Error.OFFSET_OUT_OF_RANGE)
        # Either the leader never had that epoch, or its records of it end before the follower's do.
        if end.epoch < request.last_fetched_epoch or end.end_offset < request.fetch_offset:
            return _diverging(state, correlation, end)
    if not log.log_start <= request.fetch_offset <= log.leo:
        return FetchReply(correlation, Error.OFFSET_OUT_OF_RANGE)
    return None


def _diverging(state: ReplicaState, correlation: int, end: EpochEnd) -> FetchReply:
    """Return the answer to a fetch whose log is not a prefix of this one."""
    return FetchReply(correlation, Error.NONE, state.log.hw, state.log.log_start, (), end)


def count_follower(
    state: ReplicaState, leading: Leading, request: FetchRequest, now_ms: int, out: list[Effect]
) -> Error:
    """Take a follower's fetch offset as its LEO; it may join the ISR, and HW may move (A6.5-7)."""
    follower = request.replica_id
    remote = leading.remotes.setdefault(follower, Remote())
    broker = state.brokers.get(follower)
    if (
        # A fetch of an earlier incarnation may be still under way. Its offset describes a log that this
        # broker has possibly lost since, so it must not count (KIP-903, B18).
        state.protocol.checks_broker_epoch
        and broker is not None
        and request.broker_epoch != -1
        and request.broker_epoch < broker.broker_epoch
    ):
        return Error.NOT_LEADER_OR_FOLLOWER
    remote.broker_epoch = request.broker_epoch
    remote.log_start = request.log_start
    # LEO first, then the ISR, then HW: the expansion needs the new LEO, and HW computed before it could pass
    # the follower in this very step, which then would have to catch up again.
    changed = isr.note_fetch(state, remote, request.fetch_offset, state.log.leo, now_ms)
    isr.maybe_expand(state, leading, follower, remote, out)
    if changed:
        advance_hw(state, leading, now_ms, out)
    deletion.complete(state, leading, out)
    return Error.NONE


def list_offset(state: ReplicaState, leading: Leading, request: ListOffsetsRequest) -> tuple[Error, int]:
    """Return one end of the log.

    A consumer's LATEST is HW, unavailable until this epoch's start is committed.
    """
    log = state.log
    if request.which != LATEST:
        return Error.NONE, log.log_start
    if request.replica_id >= 0:
        return Error.NONE, log.leo
    # A new leader's HW may be behind the one that clients saw under the old leader. Hiding it until the
    # epoch's start is committed keeps LATEST from going backwards (KIP-207, B20).
    if log.hw < leading.leso:
        return Error.OFFSET_NOT_AVAILABLE, -1
    return Error.NONE, log.hw


def fence(state: ReplicaState, epoch: int) -> Error:
    """Compare a request's leader epoch with this replica's (A22); an absent epoch (-1) is not checked."""
    # An older epoch means that the sender must catch up, a newer one that this replica must. Only equality
    # shows that both refer to the same leadership.
    if epoch != NO_EPOCH and epoch < state.leader_epoch:
        return Error.FENCED_LEADER_EPOCH
    if epoch != NO_EPOCH and epoch > state.leader_epoch:
        return Error.UNKNOWN_LEADER_EPOCH
    return Error.NONE
