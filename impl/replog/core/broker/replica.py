"""One replica of one partition: the module that owns the control flow.

    replica = Replica(ReplicaState(broker_id=1, ...))
    out = replica.receive(2, FetchRequest(...), now_ms)      # effects, to be performed in order

Each entry point takes one event and returns the effects.  The handling is in `leader`, `isr` and
`follower`; this module only selects the handler, by role and after fencing.

Invariants: an image older than the one in force changes nothing (A18, A19); a request is fenced before its
content is read, except a produce, which carries no leader epoch (A1).  A message that this replica
has not requested, or cannot answer, is ignored or refused with Kafka's error: none of them raises.
"""

from __future__ import annotations

from replog.core.broker import deletion, follower, isr, leader, purgatory
from replog.core.broker.state import ReplicaState
from replog.core.effects import Delete, Effect, Send, SetTimer, StoreHighWatermark, Timer
from replog.core.messages import (
    AlterPartitionReply,
    DeleteRecordsReply,
    DeleteRecordsRequest,
    EpochEndReply,
    EpochEndRequest,
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
    Message,
    ProduceReply,
    ProduceRequest,
)
from replog.core.types import NO_EPOCH, NO_LEADER, UNDEFINED, Error, MetadataImage, PartitionImage, Role


class Replica:
    """The state of one replica, and the only functions that change it."""

    __slots__ = ("state",)

    def __init__(self, state: ReplicaState) -> None:
        self.state = state

    def copy(self) -> Replica:
        """Return a snapshot that can be run on its own."""
        return Replica(self.state.copy())

    def start(self) -> list[Effect]:
        """Arm the periodic timers; a runner does this first with a new replica."""
        config = self.state.config
        retains = config.retention_bytes >= 0
        return [
            SetTimer(Timer.ISR_CHECK, max(config.lag_ms // 2, 1)),
            SetTimer(Timer.HW_CHECKPOINT, config.hw_checkpoint_ms),
            *([SetTimer(Timer.RETENTION, config.retention_check_ms)] if retains else ()),
        ]

    def apply(self, metadata: MetadataImage, broker_epoch: int, now_ms: int) -> list[Effect]:
        """Apply the controller's metadata about brokers, and about this partition if it changed."""
        state, out = self.state, list[Effect]()
        # Fencing and broker epochs change without a new partition image, and eligibility depends on them.
        state.brokers, state.broker_epoch = metadata.brokers, broker_epoch
        image = metadata.partitions.get(state.partition)
        state.elr = () if image is None else image.elr
        # Strictly newer: an ISR change that this leader proposed arrives twice, as reply and as metadata.
        if image is not None and image.partition_epoch > state.partition_epoch:
            self._change(image, now_ms, out)
        return out

    def _change(self, image: PartitionImage, now_ms: int, out: list[Effect]) -> None:
        """Follow a newer partition image: as leader, follower, or follower without a leader (A18, A19)."""
        state = self.state
        state.partition_epoch, state.replicas = image.partition_epoch, image.replicas
        state.min_isr = image.min_isr
        if image.leader == state.broker_id:
            leader.become(state, image, now_ms, out)
        else:
            if state.leading is not None:
                # Waiting clients are answered before the state is lost; otherwise they would wait for their
                # timeouts.
                leader.resign(state.leading, out)
            if state.broker_id not in image.replicas:
                self._leave(out)
                return
            follower.become(state, image, out)
        # Last, because `follower.become` compares the old leader with the new one.
        state.leader_id = image.leader

    def _leave(self, out: list[Effect]) -> None:
        """Stop being a replica of the partition: delete the log, and forget its leader (A34)."""
        state = self.state
        state.role, state.leading, state.following = Role.NONE, None, None
        # As if it had never been one: added again, it begins like any new follower.
        state.leader_id, state.leader_epoch = NO_LEADER, NO_EPOCH
        state.log.reset(0)
        out.append(Delete())

    def receive(self, source: int, message: Message, now_ms: int) -> list[Effect]:
        """Handle one message of a client, a broker or the controller."""
        out: list[Effect] = []
        match message:
            case FetchRequest():
                self._fetch(source, message, now_ms, out)
            case FetchReply():
                # A reply that arrives after a change of role is dropped: its state no longer exists.
                if self.state.following is not None:
                    follower.on_fetch_reply(self.state, self.state.following, message, out)
            case ProduceRequest():
                self._produce(source, message, now_ms, out)
            case DeleteRecordsRequest():
                self._delete(source, message, now_ms, out)
            case AlterPartitionReply():
                self._altered(message, now_ms, out)
            case EpochEndRequest() | ListOffsetsRequest():
                self._lookup(source, message, out)
            case EpochEndReply():
                if self.state.following is not None:
                    follower.on_epoch_end(self.state, self.state.following, message, out)
            case ListOffsetsReply():
                if self.state.following is not None:
                    follower.on_list_offsets(self.state, self.state.following, message, out)
            case _:
                pass
        return out

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        """Handle one timer that this replica has set."""
        out: list[Effect] = []
        state, leading, following = self.state, self.state.leading, self.state.following
        if timer is Timer.ISR_CHECK:
            if leading is not None:
                # Half the lag limit as period: a dead follower leaves after at most 1.5 times the limit
                # (I11).
                isr.maybe_shrink(state, leading, now_ms, out)
            # Armed in every role. A broker that becomes a leader later would otherwise never check.
            out.append(SetTimer(Timer.ISR_CHECK, max(state.config.lag_ms // 2, 1)))
        elif timer is Timer.HW_CHECKPOINT:
            if state.role is not Role.NONE:  # Kafka: only partitions that are online are checkpointed
                out.append(StoreHighWatermark(state.log.hw))
            out.append(SetTimer(Timer.HW_CHECKPOINT, state.config.hw_checkpoint_ms))
        elif timer is Timer.RETENTION:
            if state.role is not Role.NONE:
                deletion.retain(state, out)
            out.append(SetTimer(Timer.RETENTION, state.config.retention_check_ms))
        elif following is not None:
            if timer is Timer.SEND_FETCH:
                follower.send_request(state, following, out)
            elif timer is Timer.FETCH_TIMEOUT:
                follower.on_timeout(state, following, token, out)
        elif leading is not None:
            self._fire_leading(timer, token, now_ms, out)
        return out

    def _fire_leading(self, timer: Timer, token: int, now_ms: int, out: list[Effect]) -> None:
        """Handle the timers that concern only a leader."""
        leading = self.state.leading
        assert leading is not None
        if timer is Timer.FETCH_WAIT:
            purgatory.expire_fetches(self.state, leading, token, now_ms, out)
        elif timer is Timer.PRODUCE_TIMEOUT:
            purgatory.expire_produces(leading, now_ms, out)
        elif timer is Timer.DELETE_TIMEOUT:
            deletion.expire(leading, now_ms, out)
        elif timer is Timer.ALTER_RETRY:
            pending = leading.pending
            # The number distinguishes a retry that is still due from one of a proposal answered meanwhile.
            if pending is not None and pending.correlation == token:
                isr.retry(self.state, leading, pending, out)

    def _produce(self, source: int, request: ProduceRequest, now_ms: int, out: list[Effect]) -> None:
        """Check the preconditions of a produce, in Kafka's order (A1), and let the leader handle it."""
        leading = self.state.leading
        if request.acks not in (-1, 0, 1):
            error = Error.INVALID_REQUIRED_ACKS
        elif self.state.partition_epoch < 0:
            error = Error.UNKNOWN_TOPIC_OR_PARTITION
        elif leading is None:
            error = Error.NOT_LEADER_OR_FOLLOWER
        else:
            leader.on_produce(self.state, leading, source, request, now_ms, out)
            return
        # acks=0 has no reply, not even an error: the producer does not read one.
        if request.acks != 0:
            out.append(Send(source, ProduceReply(request.correlation, error, -1)))

    def _delete(self, source: int, request: DeleteRecordsRequest, now_ms: int, out: list[Effect]) -> None:
        """Delete records on the leader (A35); the request carries no leader epoch."""
        leading = self.state.leading
        if leading is None:
            known = self.state.partition_epoch >= 0
            error = Error.NOT_LEADER_OR_FOLLOWER if known else Error.UNKNOWN_TOPIC_OR_PARTITION
            out.append(Send(source, DeleteRecordsReply(request.correlation, error, -1)))
            return
        deletion.on_request(self.state, leading, source, request, now_ms, out)

    def _fetch(self, source: int, request: FetchRequest, now_ms: int, out: list[Effect]) -> None:
        """Fence a fetch and serve it as the leader, or a consumer's as a follower (A6, A22, KIP-392)."""
        state = self.state
        # Before anything is read or counted. A fetch of another epoch describes a log that may have been cut
        # since, so neither its offset nor the records for it mean anything here (B8).
        error = self._refusal(request.leader_epoch, state.protocol.fences_fetch)
        if error is Error.NONE and state.leading is not None:
            leader.on_fetch(state, state.leading, source, request, now_ms, out)
            return
        may_read = state.config.follower_read and not request.is_from_follower and state.role is Role.FOLLOWER
        if error is Error.NONE and may_read:
            out.append(Send(source, self._read_as_follower(request)))
            return
        refusal = Error.NOT_LEADER_OR_FOLLOWER if error is Error.NONE else error
        out.append(Send(source, FetchReply(request.correlation, refusal)))

    def _read_as_follower(self, request: FetchRequest) -> FetchReply:
        """Serve a consumer from a follower's log, up to the follower's HW (A30)."""
        log = self.state.log
        if not log.log_start <= request.fetch_offset <= log.leo:
            return FetchReply(request.correlation, Error.OFFSET_OUT_OF_RANGE)
        # A follower's HW is never above the true one, so the reader sees less than at the leader, not more
        # (B29).
        batches = log.read(request.fetch_offset, log.hw, request.max_bytes)
        return FetchReply(request.correlation, Error.NONE, log.hw, log.log_start, batches)

    def _refusal(self, epoch: int, fences: bool) -> Error:
        """Return why a request of `epoch` is refused, or `NONE` if it is not (A22)."""
        if self.state.partition_epoch < 0:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        # The partition exists, and this broker is no replica of it: no epoch to compare with.
        if self.state.role is Role.NONE:
            return Error.NOT_LEADER_OR_FOLLOWER
        return leader.fence(self.state, epoch) if fences else Error.NONE

    def _lookup(self, source: int, request: EpochEndRequest | ListOffsetsRequest, out: list[Effect]) -> None:
        """Answer a query about the leader's log: the end of an epoch, or one end of the log (A20, A30)."""
        state = self.state
        is_epoch_end = isinstance(request, EpochEndRequest)
        # A leader of an older epoch would name a point up to which only its own, dead history agrees (B7).
        fences = state.protocol.fences_truncation if is_epoch_end else state.protocol.fences_fetch
        error = self._refusal(request.leader_epoch, fences)
        if error is Error.NONE and state.leading is None:
            error = Error.NOT_LEADER_OR_FOLLOWER
        end, offset = UNDEFINED, -1
        if error is Error.NONE and state.leading is not None:
            if isinstance(request, EpochEndRequest):
                end = state.log.epochs.end_offset_for(request.epoch, state.log.leo, state.protocol.truncation)
            else:
                error, offset = leader.list_offset(state, state.leading, request)
        if is_epoch_end:
            out.append(Send(source, EpochEndReply(request.correlation, error, end)))
        else:
            out.append(Send(source, ListOffsetsReply(request.correlation, error, offset)))

    def _altered(self, reply: AlterPartitionReply, now_ms: int, out: list[Effect]) -> None:
        """Process the controller's answer to an ISR proposal; HW may move (A13, A7d)."""
        leading = self.state.leading
        if leading is None or not isr.on_reply(self.state, leading, reply, out):
            return
        if self.state.protocol.hw_on_alter_ok:
            # The member that left may be the one HW waited for. No other event might come: its fetches have
            # stopped, and producers wait for HW (B23).
            leader.advance_hw(self.state, leading, now_ms, out)
