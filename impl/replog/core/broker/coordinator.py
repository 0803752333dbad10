"""The group coordinator: a replica of the log of consumer groups that serves the owners while it leads.

    owner -> JoinGroup, OffsetCommit    one record each, answered once HW has passed it
    owner -> OffsetFetch                answered from the records below HW, to the owner named in them
    complete                            a timer, after HW has moved: answers the requests below HW
    resign                              a timer, after a leadership has ended: the other requests get an error
    new leader -> itself                its log, read from the disk

Theory: A31, A32 and coordinator.spec; CoordinatorRuntime of Kafka (HighWatermarkListener,
scheduleUnloadOperation).  The next write is checked against all written records, committed or not; answers
contain only committed state.  A coordinator without the generation of a request refuses it, so a replaced
coordinator cannot give an old position to a new owner.

Invariants: the groups are those of the replica's log, up to its end (`written`) and up to HW (`committed`);
an answer without an error is given for a record in the leader epoch in which it was written.

Not here: which consumer reads which partition, sessions of members, and several partitions of this log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from replog.core import messages
from replog.core.broker import leader, purgatory
from replog.core.broker.groups import Commit, Generation, Groups, records_of
from replog.core.broker.replica import Replica
from replog.core.broker.state import Leading, ReplicaState
from replog.core.effects import Effect, Send, SetTimer, Timer
from replog.core.messages import GroupLog, GroupReply, GroupRequest, Message
from replog.core.types import NO_EPOCH, Batch, Error, MetadataImage

Deferred = messages.JoinGroupReply | messages.CommitReply


@dataclass(frozen=True, slots=True)
class Waiting:
    """An answer that becomes due when HW has passed `end`, if this replica still leads in `epoch`."""

    source: int
    reply: Deferred
    epoch: int
    end: int


class Coordinator:
    """The state of a coordinator in addition to its replica's log, and its pending replies."""

    __slots__ = ("_armed", "_behind", "committed", "epoch", "is_loaded", "waiting", "written")

    def __init__(self) -> None:
        self.epoch = NO_EPOCH
        """The leader epoch that it coordinates in, `NO_EPOCH` if none."""
        self.is_loaded = False
        """Whether it has read its log in this epoch."""
        self.written = Groups()
        self.committed = Groups()
        self.waiting: tuple[Waiting, ...] = ()
        # What HW has yet to pass: each record with the offset after it.
        self._behind: tuple[tuple[int, Commit | Generation], ...] = ()
        self._armed: frozenset[Timer] = frozenset()

    def copy(self) -> Coordinator:
        """Return an independent copy."""
        twin = Coordinator()
        twin.epoch, twin.is_loaded, twin.waiting = self.epoch, self.is_loaded, self.waiting
        twin._behind = self._behind
        twin.written, twin.committed = self.written.copy(), self.committed.copy()
        twin._armed = self._armed
        return twin

    def receive(
        self, state: ReplicaState, source: int, request: GroupRequest, now_ms: int, out: list[Effect]
    ) -> None:
        """Answer a request of an owner, or write it to the log and defer its answer."""
        leading = state.leading
        if leading is None or not self.is_loaded:
            error = Error.NOT_COORDINATOR if leading is None else Error.COORDINATOR_LOAD_IN_PROGRESS
            out.append(Send(source, _refusal(request, error)))
            return
        match request:
            case messages.PositionRequest():
                out.append(Send(source, self._position(request)))
            case messages.JoinGroupRequest():
                generation = self.written.next_generation(request.group, request.member)
                joined = messages.JoinGroupReply(request.correlation, Error.NONE, generation.number)
                self._write(state, leading, source, joined, generation, now_ms, out)
            case messages.CommitRequest():
                commit = Commit(request.group, request.partition, request.offset, state.leader_epoch)
                error = self.written.check(commit, request.member, request.generation)
                if error is Error.NONE:
                    reply = messages.CommitReply(request.correlation, Error.NONE)
                    self._write(state, leading, source, reply, commit, now_ms, out)
                else:
                    out.append(Send(source, messages.CommitReply(request.correlation, error)))

    def _position(self, request: messages.PositionRequest) -> messages.PositionReply:
        """Look up the committed offset, for the owner of a committed generation."""
        error = self.committed.owner_error(request.group, request.member, request.generation)
        offset = self.committed.position(request.group, request.partition)
        known = -1 if offset is None or error is not Error.NONE else offset
        return messages.PositionReply(request.correlation, error, known)

    def _write(
        self,
        state: ReplicaState,
        leading: Leading,
        source: int,
        reply: Deferred,
        record: Commit | Generation,
        now_ms: int,
        out: list[Effect],
    ) -> None:
        """Append a record, with the durability of acks=all, and defer the answer until HW has passed it."""
        batch = Batch(0, -1, 1, body=record.to_body())
        # Of everything that a leader refuses, before anything is taken.
        error = leader.check_produce(state, leading, messages.ProduceRequest(0, batch, -1, 0))
        if error is not Error.NONE:
            # As Kafka words it to the client of a coordinator (CoordinatorOperationExceptionHelper).
            is_short = error is Error.NOT_ENOUGH_REPLICAS
            out.append(Send(source, failed(reply, Error.COORDINATOR_NOT_AVAILABLE if is_short else error)))
            return
        leader.append(state, leader.stamp(state, batch), out)
        leader.advance_hw(state, leading, now_ms, out)
        purgatory.complete_fetches(state, leading, out)
        self.written.take(record)
        self._behind = (*self._behind, (state.log.leo, record))
        self.wait(state, source, reply)

    def wait(self, state: ReplicaState, source: int, reply: Deferred) -> None:
        """Defer an answer until the last record written by the leader is committed."""
        self.waiting = (*self.waiting, Waiting(source, reply, state.leader_epoch, state.log.leo))

    def follow(self, state: ReplicaState, out: list[Effect]) -> None:
        """Follow an event of the replica: a change of its leadership, its log or its HW."""
        epoch = NO_EPOCH if state.leading is None else state.leader_epoch
        if epoch != self.epoch:
            # The loaded state is that of a log that others have extended since, or will extend.
            self.epoch, self.is_loaded, self._behind = epoch, False, ()
            self.written, self.committed = Groups(), Groups()
            if state.leading is not None:
                out.append(Send(state.broker_id, GroupLog(epoch, tuple(state.log.batches))))
        while self._behind and self._behind[0][0] <= state.log.hw:
            self.committed.take(self._behind[0][1])
            self._behind = self._behind[1:]
        if any(_is_due(one, state) for one in self.waiting):
            self._arm(Timer.COMPLETE_COMMITS, 0, out)
        # Behind all events that wait already; that of a new HW passes them (KAFKA-20634).
        if any(_is_over(one, state) for one in self.waiting):
            self._arm(Timer.RESIGN, state.config.resign_ms, out)

    def _arm(self, timer: Timer, delay_ms: int, out: list[Effect]) -> None:
        if timer not in self._armed:
            self._armed |= {timer}
            out.append(SetTimer(timer, delay_ms))

    def load(self, log: GroupLog) -> None:
        """Build the groups from the log; there is no other writer in this epoch."""
        if log.leader_epoch != self.epoch or self.is_loaded:
            return
        self.is_loaded, self._behind = True, tuple(records_of(log.batches))
        self.written = Groups.replay(record for _, record in self._behind)

    def complete(self, state: ReplicaState, out: list[Effect]) -> None:
        """Send the answers whose records are below HW."""
        self._armed -= {Timer.COMPLETE_COMMITS}
        done = [one for one in self.waiting if _is_due(one, state)]
        out.extend(Send(one.source, one.reply) for one in done)
        self.waiting = tuple(one for one in self.waiting if not _is_due(one, state))

    def resign(self, state: ReplicaState, out: list[Effect]) -> None:
        """Reply with an error to requests that wait for a record of a past epoch: others may truncate it."""
        self._armed -= {Timer.RESIGN}
        over = [one for one in self.waiting if _is_over(one, state)]
        out.extend(Send(one.source, failed(one.reply, Error.NOT_COORDINATOR)) for one in over)
        self.waiting = tuple(one for one in self.waiting if not _is_over(one, state))


class GroupReplica(Replica):
    """A replica of the log of groups, with a coordinator that is active while the replica leads."""

    __slots__ = ("coordinator",)

    def __init__(self, state: ReplicaState, coordinator: Coordinator | None = None) -> None:
        super().__init__(state)
        self.coordinator = Coordinator() if coordinator is None else coordinator

    def copy(self) -> GroupReplica:
        """Return a snapshot that can be run on its own."""
        return GroupReplica(self.state.copy(), self.coordinator.copy())

    def apply(self, metadata: MetadataImage, broker_epoch: int, now_ms: int) -> list[Effect]:
        """Apply the controller's metadata; the coordinator then loads its log, or resigns."""
        out = super().apply(metadata, broker_epoch, now_ms)
        self.coordinator.follow(self.state, out)
        return out

    def receive(self, source: int, message: Message, now_ms: int) -> list[Effect]:
        """Handle one message, of a group's owner or of any other sender."""
        out: list[Effect] = []
        if isinstance(message, GroupRequest):
            self.coordinator.receive(self.state, source, message, now_ms, out)
        elif isinstance(message, GroupLog):
            if source == self.state.broker_id:
                self.coordinator.load(message)
        else:
            out = super().receive(source, message, now_ms)
        self.coordinator.follow(self.state, out)
        return out

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        """Handle a timer of the coordinator or of the replica."""
        out: list[Effect] = []
        if timer is Timer.COMPLETE_COMMITS:
            self.coordinator.complete(self.state, out)
        elif timer is Timer.RESIGN:
            self.coordinator.resign(self.state, out)
        else:
            out = super().fire(timer, token, now_ms)
        self.coordinator.follow(self.state, out)
        return out


def _is_due(one: Waiting, state: ReplicaState) -> bool:
    # Not by the offset alone, where the record may be another one by now: this broker may have cut its own
    # since, and HW rises again while it follows (KAFKA-20634).
    return state.log.hw >= one.end and not (state.protocol.completes_as_leader and _is_over(one, state))


def _is_over(one: Waiting, state: ReplicaState) -> bool:
    return state.leading is None or state.leader_epoch != one.epoch


def failed(reply: Deferred, error: Error) -> GroupReply:
    """Return an answer as the same answer with an error."""
    if isinstance(reply, messages.JoinGroupReply):
        return replace(reply, error=error, generation=-1)
    return replace(reply, error=error)


def _refusal(request: GroupRequest, error: Error) -> GroupReply:
    match request:
        case messages.PositionRequest():
            return messages.PositionReply(request.correlation, error, -1)
        case messages.JoinGroupRequest():
            return messages.JoinGroupReply(request.correlation, error, -1)
    return messages.CommitReply(request.correlation, error)
