"""A world that records deletions from the front of logs: the causes of moving a log start, and the effects.

    delete time-out retain         a client's request, the end of its patience, a broker's retention
    fetch serve list answer apply  a fetch or a request for an end of the log: sent, counted, answered, taken
    produce shrink                 records; laggards that left the ISR
    elect fence unfence register   the controller
    lead follow                    metadata is applied
    checkpoint crash

A reader of these recordings knows some things as one step, so here each is one moment.  An ISR proposal is
judged and answered at once.  A leader learns at once what the controller decides in its epoch, and its HW
is then shown with the decision.  A deposed leader receives no fetches.  One broker at a time is dead or
fenced, and never the last one that may lead.

Not here: what is done to the world (`start_run`), and other recordings (`record`).
"""

from __future__ import annotations

from dataclasses import replace

from replog.core.broker import isr
from replog.core.broker.state import ReplicaState
from replog.core.effects import Effect, Received, Send, Timer
from replog.core.messages import (
    LATEST,
    AlterPartitionReply,
    AlterPartitionRequest,
    DeleteRecordsRequest,
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
    MetadataUpdate,
)
from replog.core.types import CONTROLLER, BrokerState, Error
from replog.sim.cluster.node import Alarm, Delivery, Item, Node
from replog.sim.cluster.world import World
from replog.sim.recording.record import RecordedEvent, RecordedWorld
from replog.sim.recording.record_looks import Before, Decided, message_of

TAKEN = (Error.NONE, Error.OFFSET_OUT_OF_RANGE)


class StartWorld(RecordedWorld):
    """A world of brokers that delete records, whose events are passed to `emit_to`."""

    requests = (FetchRequest, ListOffsetsRequest)
    _front = (0, 0)
    """Of the broker that handles something: its log start before, and how many deletions waited."""

    def _state(self, at: int) -> RecordedEvent:
        shown = super()._state(at)
        broker = None if at == CONTROLLER else self.nodes[at].broker
        if broker is None:
            leader = self.nodes[self.image.leader].broker if at == CONTROLLER else None
            if leader is not None and self._leads_now(leader.state):
                shown["leader_hw"] = leader.state.log.hw
            return {name: value for name, value in shown.items() if name != "version"}
        # What a reader has no word for is not shown: flushes, and proposals, which are over at once.
        kept = {
            name: value for name, value in shown.items() if name not in ("flushed", "version", "proposed")
        }
        return kept | _front_of(broker.replica.state)

    def _late(self, node: Node) -> list[int]:
        """Return the followers outside the ISR for which HW does not wait: late or ineligible ones."""
        assert node.broker is not None
        state, now_ms = node.broker.state, self.now_ms + node.clock_offset_ms
        remotes = {} if state.leading is None else state.leading.remotes
        return sorted(
            follower for follower, remote in remotes.items()
            if not (isr.is_caught_up(state, remote, now_ms) and isr.is_eligible(state, follower, remote))
        )  # fmt: skip

    def is_whole(self) -> bool:
        """Return whether every broker runs and none is fenced, so that one may be lost."""
        states = [known.state for known in self.controller.state.brokers.values()]
        return self.up == set(self.nodes) and BrokerState.FENCED not in states

    def may_go(self, broker: int) -> bool:
        """Return whether a broker may die or be fenced: another one can lead, and all others are there."""
        return self.is_whole() and any(member != broker for member in self.image.isr)

    # What one step of a reader is, in one moment.

    def _execute(self, item: Item) -> None:
        if self.is_recording and isinstance(item, Delivery) and self._is_in_vain(item):
            self.counters.lost += 1
            return
        node = self.nodes.get(item.to) if isinstance(item, Delivery) else None
        if isinstance(item, Alarm):
            node = self.nodes.get(item.owner)
        if node is not None and node.broker is not None:
            self._front = _front(node.broker.state)
        super()._execute(item)

    def _is_in_vain(self, item: Delivery) -> bool:
        """Return whether a lost request would have had no effect, for a reader, at its receiver."""
        node, message = self.nodes.get(item.to), item.message
        if node is None or node.broker is None:
            return False
        state = node.broker.state
        if isinstance(message, DeleteRecordsRequest):
            # One request waits at a leader at a time, and it is for records that are there.
            return bool(_front(state)[1]) or message.offset <= state.log.log_start
        return _is_followers(message) and not self._leads_now(state)

    def _leads_now(self, state: ReplicaState) -> bool:
        return state.leading is not None and state.leader_epoch == self.image.leader_epoch

    def _perform(self, node: Node, effects: list[Effect]) -> None:
        if self._before is not None and node.broker is not None and self.is_recording:
            effects = [done for effect in effects for done in self._settled(node, effect)]
        super()._perform(node, effects)

    def _settled(self, node: Node, effect: Effect) -> list[Effect]:
        """Return an effect, or the result of the proposal that it is; one of a deposed leader is lost."""
        assert node.broker is not None
        if not (isinstance(effect, Send) and isinstance(effect.message, AlterPartitionRequest)):
            return [effect]
        if not self._leads_now(node.broker.state):
            return []
        out: list[Effect] = []
        answers = self.controller.handle(Received(node.broker_id, effect.message), self.now_ms)
        for answer in answers:
            if isinstance(answer, Send) and isinstance(answer.message, AlterPartitionReply):
                out += node.broker.handle(Received(CONTROLLER, answer.message), self._clock(node))
        self.perform_for(CONTROLLER, [a for a in answers if not _is_verdict(a)])
        return out

    def _clock(self, node: Node) -> int:
        return self.now_ms + node.clock_offset_ms

    def _keep_all_but_one(self) -> None:
        """Do not let the session of a live broker expire; that of a dead one does."""
        brokers = self.controller.state.brokers
        for broker in self.up:
            brokers[broker] = replace(brokers[broker], last_seen_ms=self.now_ms)

    def _decided(self, before: Decided) -> None:
        """Notify the leader of metadata in its epoch, and record the controller's actions."""
        leader = self.nodes.get(self.image.leader)
        news: list[Effect] | None = None
        if self.is_recording and leader is not None and leader.broker is not None:
            known = leader.broker.membership.metadata_version
            if self._leads_now(leader.broker.state) and known < self.controller.state.version:
                update = MetadataUpdate((self.controller.state.history[-1],))
                news = leader.broker.handle(Received(CONTROLLER, update), self._clock(leader))
        super()._decided(before)
        if news is not None and leader is not None:
            World._perform(self, leader, news)
            self._answered(leader, None, news)

    # What is written down.

    def _handled(self, node: Node, before: Before, effects: list[Effect]) -> None:
        item = before.item
        assert node.broker is not None
        me, state = node.broker_id, node.broker.state
        message = item.message if isinstance(item, Delivery) else None
        if isinstance(message, FetchReply | ListOffsetsReply):
            is_idle = state.following is not None and state.following.in_flight == -1
            if message.error in TAKEN and before.in_flight == message.correlation and is_idle:
                self.emit(me, "apply", **message_of(me, message.correlation))
            return
        if isinstance(message, ListOffsetsRequest) and _is_followers(message):
            facts = message_of(message.replica_id, message.correlation)
            self.emit(me, "list", follower=message.replica_id, **facts)
        elif isinstance(message, DeleteRecordsRequest) and _front(state) != self._front:
            self.emit(me, "delete", to=message.offset)
        else:
            super()._handled(node, before, effects)

    def _rang(self, node: Node, before: Before, timer: Timer) -> None:
        assert node.broker is not None
        me, state = node.broker_id, node.broker.state
        gone = [] if state.leading is None else [m for m in before.isr if m not in state.leading.isr]
        if timer is Timer.ISR_CHECK and gone:
            self.emit(me, "shrink", gone=gone)
        elif timer is Timer.RETENTION and state.log.log_start != self._front[0]:
            self.emit(me, "retain", to=state.log.log_start)
        elif timer is Timer.DELETE_TIMEOUT and _front(state) != self._front:
            self.emit(me, "time-out")
        elif timer is Timer.HW_CHECKPOINT:
            super()._rang(node, before, timer)

    def _served(self, node: Node, request: FetchRequest, effects: list[Effect]) -> None:
        """Record that a follower's fetch was answered, or waits."""
        replies = [e.message for e in effects if isinstance(e, Send) and e.to == request.replica_id]
        mine = [r for r in replies if isinstance(r, FetchReply) and r.correlation == request.correlation]
        if not request.is_from_follower or (mine and mine[0].error not in TAKEN):
            return
        kind = "waits" if not mine else "diverges" if mine[0].diverging else "records"
        if mine and mine[0].error is not Error.NONE:
            kind = "out-of-range"
        self.emit(node.broker_id, "serve", follower=request.replica_id, reply=kind,
                  **message_of(request.replica_id, request.correlation))  # fmt: skip

    def _shown_of(self, message: FetchRequest | ListOffsetsRequest) -> RecordedEvent:
        """Return the recorded view of a request."""
        if isinstance(message, ListOffsetsRequest):
            return {"asks": "end" if message.which == LATEST else "start"}
        return {"asks": "records", "offset": message.fetch_offset, "start": message.log_start}


def _front(state: ReplicaState) -> tuple[int, int]:
    return state.log.log_start, 0 if state.leading is None else len(state.leading.deletes)


def _front_of(state: ReplicaState) -> RecordedEvent:
    """Return the recorded view of a broker's log start, and of the requests that wait for it."""
    shown: RecordedEvent = {"start": state.log.log_start}
    if state.following is not None:
        shown["phase"] = state.following.phase.value
    if state.leading is not None:
        shown["starts"] = {str(f): remote.log_start for f, remote in sorted(state.leading.remotes.items())}
        shown["deletes"] = [waiting.offset for waiting in state.leading.deletes]
    return shown


def _is_followers(message: object) -> bool:
    return isinstance(message, FetchRequest | ListOffsetsRequest) and message.replica_id >= 0


def _is_verdict(effect: Effect) -> bool:
    return isinstance(effect, Send) and isinstance(effect.message, AlterPartitionReply)
