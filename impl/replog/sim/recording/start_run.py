"""Recorded simulation runs in which records are deleted from the front of logs: from a seed to a recording.

    lines = record_starts(7, "delete")     a client deletes records
    lines = record_starts(7, "retain")     each broker keeps a few only, on the real store

Events are the causes of moving a log start, and the effects:

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

Faults are those of a reader that knows no lost page cache: lost and late messages, links cut between two
brokers, crashes of a process, sessions that expire under a live broker, preferred elections, leaders that
miss an epoch, followers that lag.  The rules are the defaults, `Protocol()`; min.insync.replicas is 1.

Not here: other recordings (`record`, `record_run`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from replog.core import messages
from replog.core.broker import isr
from replog.core.broker.state import ReplicaState
from replog.core.controller.state import Registration
from replog.core.effects import Effect, Received, Send, Timer
from replog.core.messages import LATEST
from replog.core.types import CONTROLLER, BrokerState, Error
from replog.sim.cluster.clients import Cleaner, ClientObserver
from replog.sim.cluster.node import Call, Delivery, Item, Network, Node
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.world import World
from replog.sim.disks.stored import StoreStorage
from replog.sim.faults.profiles import Profile
from replog.sim.oracles.pace import MAX_EVENTS
from replog.sim.recording.record import RecordedEvent, RecordedWorld
from replog.sim.recording.record_run import WEATHER, RecordedRun
from replog.sim.recording.record_state import Before, message_of, served_as

TAKEN = (Error.NONE, Error.OFFSET_OUT_OF_RANGE)
CLEANER = -50
_DELETE = replace(WEATHER, name="delete", about="a client deletes the oldest records", deletes=True)
_RETAIN = replace(
    WEATHER, name="retain", about="each broker deletes what is more than it has to keep",
    uses_store=True, retention_bytes=300,
)  # fmt: skip
WEATHERS = MappingProxyType({weather.name: weather for weather in (_DELETE, _RETAIN)})
"""By name, as of the profiles of simulations."""


class StartWorld(RecordedWorld):
    """A world of brokers that delete records, whose events are passed to `emit_to`."""

    requests = (messages.FetchRequest, messages.ListOffsetsRequest)
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
        hidden = ("flushed", "version", "proposed")
        kept = {name: value for name, value in shown.items() if name not in hidden}
        return kept | _front_of(broker.replica.state)

    def _late(self, node: Node) -> list[int]:
        """Return the followers outside the ISR for which HW does not wait: late or ineligible ones."""
        assert node.broker is not None
        state, now_ms = node.broker.state, self.clock_of(node)
        remotes = {} if state.leading is None else state.leading.remotes
        return sorted(
            follower for follower, remote in remotes.items()
            if not (isr.is_caught_up(state, remote, now_ms) and isr.is_eligible(state, follower, remote))
        )  # fmt: skip

    def may_go(self, broker: int) -> bool:
        """Return whether a broker may die or be fenced: another one can lead, and all others are there."""
        states = [known.state for known in self.controller.state.brokers.values()]
        is_whole = self.up == set(self.nodes) and BrokerState.FENCED not in states
        return is_whole and any(member != broker for member in self.image.isr)

    # What one step of a reader is, in one moment.

    def _execute(self, item: Item) -> None:
        if self.is_recording and isinstance(item, Delivery) and self._is_in_vain(item):
            self.counters.lost += 1
            return
        if not isinstance(item, Call):
            node = self.nodes.get(item.to if isinstance(item, Delivery) else item.owner)
            if node is not None and node.broker is not None:
                self._front = _front(node.broker.state)
        super()._execute(item)

    def _is_in_vain(self, item: Delivery) -> bool:
        """Return whether a lost request would have had no effect, for a reader, at its receiver."""
        node, message = self.nodes.get(item.to), item.message
        if node is None or node.broker is None:
            return False
        state = node.broker.state
        if isinstance(message, messages.DeleteRecordsRequest):
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
        if not (isinstance(effect, Send) and isinstance(effect.message, messages.AlterPartitionRequest)):
            return [effect]
        if not self._leads_now(node.broker.state):
            return []
        out, others = list[Effect](), list[Effect]()
        for answer in self.controller.handle(Received(node.broker_id, effect.message), self.now_ms):
            if isinstance(answer, Send) and isinstance(answer.message, messages.AlterPartitionReply):
                out += node.broker.handle(Received(CONTROLLER, answer.message), self.clock_of(node))
            else:
                others.append(answer)
        self.perform_for(CONTROLLER, others)
        return out

    def _keep_all_but_one(self) -> None:
        """Do not let the session of a live broker expire; that of a dead one does."""
        brokers = self.controller.state.brokers
        for broker in self.up:
            brokers[broker] = replace(brokers[broker], last_seen_ms=self.now_ms)

    def _decided(self, before: Mapping[int, Registration]) -> None:
        """Notify the leader of metadata in its epoch, and record the controller's actions."""
        leader = self.nodes.get(self.image.leader)
        news: list[Effect] | None = None
        if self.is_recording and leader is not None and leader.broker is not None:
            known = leader.broker.membership.metadata_version
            if self._leads_now(leader.broker.state) and known < self.controller.state.version:
                update = messages.MetadataUpdate((self.controller.state.history[-1],))
                news = leader.broker.handle(Received(CONTROLLER, update), self.clock_of(leader))
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
        if isinstance(message, messages.FetchReply | messages.ListOffsetsReply):
            is_idle = state.following is not None and state.following.in_flight == -1
            if message.error in TAKEN and before.in_flight == message.correlation and is_idle:
                self.emit(me, "apply", **message_of(me, message.correlation))
            return
        if isinstance(message, messages.ListOffsetsRequest) and _is_followers(message):
            facts = message_of(message.replica_id, message.correlation)
            self.emit(me, "list", follower=message.replica_id, **facts)
        elif isinstance(message, messages.DeleteRecordsRequest) and _front(state) != self._front:
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

    def _served(self, node: Node, request: messages.FetchRequest, effects: list[Effect]) -> None:
        """Record that a follower's fetch was answered, or waits."""
        kind = served_as(request, effects)
        if request.is_from_follower and kind != "refused":
            self.emit(node.broker_id, "serve", follower=request.replica_id, reply=kind,
                      **message_of(request.replica_id, request.correlation))  # fmt: skip

    def _shown_of(self, message: messages.FetchRequest | messages.ListOffsetsRequest) -> RecordedEvent:
        """Return the recorded view of a request."""
        if isinstance(message, messages.ListOffsetsRequest):
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
    return isinstance(message, StartWorld.requests) and message.replica_id >= 0


class StartRun(RecordedRun):
    """One run; `events` are the events recorded so far."""

    format = "replog-start-recording/1"
    faults = ("crash", "cut", "cut", "cut", "expire", "elect", "elect", "miss")

    def __init__(self, seed: int, weather: Profile, max_events: int) -> None:
        super().__init__(seed, weather=weather, max_events=max_events)
        if weather.deletes:
            choose, observer = self.random.randrange, ClientObserver()
            cleaner = Cleaner(CLEANER, self._find_leader, choose, self._choose_offset, observer, 500, 2_000)
            self.world.start_client(CLEANER, cleaner, choose(2_000))

    def _make_world(self, options: WorldOptions) -> RecordedWorld:
        self.min_isr = 1
        storage = StoreStorage if self.weather.uses_store else options.make_storage
        config = replace(options.config, retention_check_ms=1_000)
        mine = replace(options, min_isr=1, config=config, make_storage=storage)
        return StartWorld(mine, Network(), self.random, self.events.append)

    def _choose_offset(self) -> int:
        """Return an offset up to which a leader could delete, most of the time."""
        leader = self.world.nodes.get(self.world.image.leader)
        if leader is None or leader.broker is None:
            return 1
        log = leader.broker.state.log
        return log.log_start + 1 + self.random.randrange(max(log.hw - log.log_start, 1))

    def _inject(self, fault: str, node: Node) -> None:
        assert isinstance(self.world, StartWorld)
        if fault not in ("crash", "expire") or self.world.may_go(node.broker_id):
            super()._inject(fault, node)

    def _peers(self) -> tuple[int, ...]:
        return tuple(self.world.nodes)


def record_starts(seed: int, profile: str = "delete", max_events: int = MAX_EVENTS) -> list[str]:
    """Return a recording, line by line; an exception of a core is passed on to the caller."""
    return StartRun(seed, WEATHERS[profile], max_events).lines()
