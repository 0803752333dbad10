"""A world that records the actions of its brokers and its controller, one event at each commit point.

An event is committed when it can no longer be taken back: in memory when it was handled, on disk when
its records are written (a process that dies before has done nothing), a request when the network has
it.  Events are numbered for each broker, and messages by the requester and its number, so that
order never rests on a clock.

    {"at": 1, "seq": 7, "event": "append", "from": 0, "message": "1/2000004", "after": {"hw": 3, ...}}

`after` is a part of the state that the event leaves behind: role, leader epoch, LEO, HW, the epochs'
start offsets, a CRC over the whole log; of a leader its ISR, what it proposes and who is fenced by its
metadata; of the controller its word on the partition and who is fenced.  Clocks are not written down, but
what a leader's clock makes of its followers is: `late` has those that were not caught up for too long.

Not here: what is done to the world (`record_run`), and the meaning of the events to a reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from types import MappingProxyType

from replog.core import messages
from replog.core.controller.state import Registration
from replog.core.effects import AdvanceStart, Append, Effect, Reset, Send, StoreHighWatermark, Timer, Truncate
from replog.core.types import CONTROLLER, BrokerState, Error, Role
from replog.sim.cluster.node import Alarm, Delivery, Item, Network, Node, event_of
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.storage import Storage
from replog.sim.cluster.views import NodeView
from replog.sim.cluster.world import World
from replog.sim.recording import record_state
from replog.sim.recording.record_state import Before, Checksums, message_of, own_effects, own_item

RecordedEvent = dict[str, object]
Emit = Callable[[RecordedEvent], None]
LASTING = (AdvanceStart, Append, Reset, Truncate, StoreHighWatermark)
"""What an event is committed with; an epoch entry without a record would go at the next start."""
VERDICTS = MappingProxyType({Error.NONE: "granted", Error.INELIGIBLE_REPLICA: "refused"})
"""Answers to a proposal that change something; others say that it came too late."""


class RecordedWorld(World):
    """A world whose events go to `emit`, once `is_recording`.

    Its network keeps to what connections and a metadata log would do: of a follower only one fetch
    request is under way (when it repeats one, chance decides which of the two is lost), a dead process is
    neither received from nor registered any more, sessions end one at a time, and metadata is read from
    the log: what arrives is the newest of its leader epoch.  Of several partitions the first is recorded.
    """

    requests: tuple[type[messages.FetchRequest | messages.ListOffsetsRequest], ...] = (messages.FetchRequest,)
    """What counts as a fetch of a follower."""

    def __init__(self, options: WorldOptions, network: Network, random: Random, emit: Emit) -> None:
        self.emit_to, self.random, self.is_recording = emit, random, False
        self.up: set[int] = set()
        self._numbers: dict[int, int] = {}
        self._checksums = Checksums()
        self._before: Before | None = None
        self.fences_joining = False
        """Whether the session of who is proposed next ends while the proposal is under way."""
        super().__init__(options, network)
        self.first = next(iter(self.partitions))
        self.recorded = self.first if len(self.partitions) > 1 else ""
        """The name that messages and effects of the recorded partition have."""

    def emit(self, at: int, event: str, **facts: object) -> None:
        """Record one event, with the state after it unless `after` is given."""
        if not self.is_recording:
            return
        self._numbers[at] = self._numbers.get(at, 0) + 1
        if "after" not in facts:
            facts["after"] = self._state(at)
        node = self.nodes.get(at)
        if node and node.broker and node.broker.state.leading is not None:
            facts["late"] = self._late(node)
        self.emit_to({"at": at, "seq": self._numbers[at], "event": event, **facts})

    def clock_of(self, node: Node) -> int:
        """Return the local time of a node."""
        return self.now_ms + node.clock_offset_ms

    def _late(self, node: Node) -> list[int]:
        assert node.broker is not None
        return record_state.late_followers(node.broker.state, self.clock_of(node))

    def _state(self, at: int) -> RecordedEvent:
        if at == CONTROLLER:
            return record_state.controller_state(self.image, self.controller.state)
        broker = self.nodes[at].broker
        if broker is None:
            return {}
        return record_state.broker_state(broker.replica.state, self._disk(at), self._checksums)

    def _disk(self, broker: int) -> Storage:
        return NodeView(self.nodes[broker], self.first).storage

    def _execute(self, item: Item) -> None:
        if isinstance(item, Delivery) and isinstance(item.message, messages.MetadataUpdate):
            update = self._newest(item)
            if update is None:
                return
            item = update
        self._before = None
        own = own_item(item, self.recorded)
        if own is not None:
            node = self.nodes.get(own.to if isinstance(own, Delivery) else own.owner)
            if node is not None and node.broker is not None:
                self._before = record_state.look(node, own)
        super()._execute(item)

    def _perform(self, node: Node, effects: list[Effect]) -> None:
        """Perform the effects that commit an event, record it, and perform the rest.

        Who dies before has done nothing: what was to last is not on disk.
        """
        before, self._before = self._before, None
        if before is None or node.broker is None or not self.is_recording:
            super()._perform(node, effects)
            return
        # An event has happened once its last lasting effect is on disk: a crash before leaves no trace of
        # it, a crash after leaves all of it. The line is written between the two.
        lasting = [
            i for i, each in enumerate(effects) for own in own_effects([each], self.recorded)
            if isinstance(own, LASTING)
        ]  # fmt: skip
        commit = lasting[-1] + 1 if lasting else 0
        life = node.incarnation
        super()._perform(node, effects[:commit])
        # Dead before the commit point: nothing has happened, and nothing is written down.
        if node.incarnation == life:
            self._handled(node, before, own_effects(effects, self.recorded))
            super()._perform(node, effects[commit:])

    def _handled(self, node: Node, before: Before, effects: list[Effect]) -> None:
        """Find the events in one handled message or alarm, and record them."""
        assert node.broker is not None
        me, state = node.broker_id, node.broker.replica.state
        match before.item:
            case Alarm(timer=timer):
                self._rang(node, before, timer)
            case Delivery(message=messages.MetadataUpdate()):
                if record_state.applied(node) != before.applied:
                    event = "lead" if state.role is Role.LEADER else "follow"
                    self.emit(me, event, epoch=state.leader_epoch)
                elif state.role is Role.LEADER and state.brokers != before.brokers:
                    self.emit(me, "brokers")
            case Delivery(message=messages.ProduceRequest()):
                if state.log.leo > before.leo:
                    self.emit(me, "produce", count=state.log.leo - before.leo)
            case Delivery(source=source, message=messages.FetchReply() as reply):
                if record_state.was_taken(reply, before, state.following):
                    self.emit(me, "apply", **message_of(me, reply.correlation), source=source)
            case Delivery(message=messages.AlterPartitionReply() as reply):
                if record_state.was_settled(reply, before, state):
                    self.emit(me, "settle")
            case Delivery(message=messages.FetchRequest() as request):
                self._served(node, request, effects)
        self._answered(node, before, effects)

    def _rang(self, node: Node, before: Before, timer: Timer) -> None:
        assert node.broker is not None
        state = node.broker.replica.state
        pending = None if state.leading is None else state.leading.pending
        if timer is Timer.ISR_CHECK and pending is not None and before.pending is None:
            gone = [member for member in before.isr if member not in pending.proposed]
            self.emit(node.broker_id, "shrink", gone=gone)
        news = before.hw_checkpoint != state.log.hw and state.role is not Role.NONE
        if timer is Timer.HW_CHECKPOINT and news:
            self.emit(node.broker_id, "checkpoint")

    def _served(self, node: Node, request: messages.FetchRequest, effects: list[Effect]) -> None:
        """Record that a follower's fetch was counted: it was answered, or it waits."""
        kind = record_state.served_as(request, effects)
        if request.is_from_follower and kind in ("waits", "diverges", "records"):
            facts = message_of(request.replica_id, request.correlation)
            self.emit(node.broker_id, "serve", follower=request.replica_id, offset=request.fetch_offset,
                      reply=kind, **facts)  # fmt: skip

    def _answered(self, node: Node, before: Before | None, effects: list[Effect]) -> None:
        """Record the answers to fetches that have waited."""
        asked = before.item if before is not None and isinstance(before.item, Delivery) else None
        for effect in effects:
            match effect:
                case Send(to, messages.FetchReply(correlation, Error.NONE) as reply) if to in self.nodes:
                    if asked is None or not record_state.is_answer(to, reply, asked):
                        self.emit(node.broker_id, "answer", follower=to, **message_of(to, correlation))

    def send(self, source: int, to: int, message: object) -> None:
        """Hand a message to the network; at most one of a follower's fetches is in flight."""
        whole = message
        if isinstance(message, messages.ForPartition) and message.partition == self.recorded:
            message = message.message
        if not isinstance(message, self.requests) or message.replica_id < 0:
            super().send(source, to, whole)  # type: ignore[arg-type]  # every other message
            return
        # Held: at a broker that is stopped for a while, which reads its connections later.
        older = [e for e in self.pending() if self._is_fetch_of(e[2], source)]
        nodes = self.nodes.values()
        held = [n for n in nodes if any(self._is_fetch_of(item, source) for item in n.held or ())]
        # The spec has one fetch of a follower under way. Of an older and a newer one either may be it, so
        # that late and lost requests are both recorded.
        if (older or held) and self.random.random() < 0.5:
            return
        lost = self.counters.lost
        super().send(source, to, whole)  # type: ignore[arg-type]
        # Only now do older requests go: if the network loses this one, the older may still arrive.
        if self.counters.lost == lost:
            for entry in older:
                self.drop(entry)
            for node in held:
                node.held = [item for item in node.held or () if not self._is_fetch_of(item, source)]
            facts = message_of(source, message.correlation)
            self.emit(source, "fetch", to=to, **self._shown_of(message), **facts)

    def _is_fetch_of(self, item: Item, source: int) -> bool:
        own = own_item(item, self.recorded)
        return isinstance(own, Delivery) and own.source == source and isinstance(own.message, self.requests)

    def _shown_of(self, message: messages.FetchRequest | messages.ListOffsetsRequest) -> RecordedEvent:
        return {"offset": message.fetch_offset} if isinstance(message, messages.FetchRequest) else {}

    def _newest(self, item: Delivery) -> Delivery | None:
        """Return the newest metadata of the leader epoch of an update; None if it comes too late."""
        node = self.nodes.get(item.to)
        assert isinstance(item.message, messages.MetadataUpdate)
        if node is None or node.broker is None or not self.is_recording:
            return item
        image = item.message.images[-1]
        # Older than this incarnation, whose broker epoch is the version that announced it: a start begins
        # behind that.
        if image.version < node.broker.membership.broker_epoch:
            return None
        epoch = image.partitions[self.first].leader_epoch
        for known in reversed(self.controller.state.history):
            if self.first in known.partitions and known.partitions[self.first].leader_epoch == epoch:
                return replace(item, message=messages.MetadataUpdate((known,)))
        return None

    def crash(self, broker_id: int) -> None:
        """Kill a process, as in any world."""
        self._end(broker_id, "crash")
        super().crash(broker_id)

    def lose_power(self, broker_id: int, choose: Callable[[int], int]) -> None:
        """Cut a node's power, as in any world; if it has nothing to lose, record a crash."""
        storage = self._disk(broker_id)
        self._end(broker_id, "crash" if storage.flushed() == storage.end() else "power-loss")
        super().lose_power(broker_id, choose)

    def flush(self, broker_id: int) -> None:
        """Have the operating system write back a running broker's page cache."""
        node = self.nodes[broker_id]
        if node.broker is not None and node.broker.replica.state.role is not Role.NONE:
            disk = self._disk(broker_id)
            is_news = disk.flushed() != disk.end()
            node.storage.flush()
            if is_news:
                self.emit(broker_id, "flush")

    def _end(self, broker_id: int, event: str) -> None:
        """End a process: of its messages, only fetches and proposals may still arrive."""
        for entry in self.pending():
            item = entry[2]
            message = item.message if isinstance(item, Delivery) and item.source == broker_id else None
            # Else a broker that is dead would be alive to the controller, which no event explains.
            if isinstance(message, messages.HeartbeatRequest | messages.RegisterRequest):
                self.drop(entry)
        if broker_id in self.up:
            self.up.discard(broker_id)
            self.emit(broker_id, event, after={})

    def fence(self, broker_id: int) -> None:
        """Expire a session, as in any world."""
        before = dict(self.controller.state.brokers)
        super().fence(broker_id)
        self._decided(before)

    def elect(self, broker_id: int) -> None:
        """Make a broker the preferred leader, and hold the election."""
        image = self.image
        others = tuple(replica for replica in image.replicas if replica != broker_id)
        # The preferred leader is the first replica, so their order is what an operator would change.
        self.controller.state.partitions[self.first] = replace(image, replicas=(broker_id, *others))
        self.elect_preferred()
        if self.image.leader_epoch != image.leader_epoch:
            self.emit(CONTROLLER, "elect", broker=self.image.leader)

    def _execute_outside(self, target: int, item: Delivery | Alarm) -> None:
        if target != CONTROLLER:
            super()._execute_outside(target, item)
            return
        self.counters.steps += 1
        if isinstance(item, Alarm):
            self._keep_all_but_one()
        own = own_item(item, self.recorded)
        if isinstance(own, Delivery) and isinstance(own.message, messages.AlterPartitionRequest):
            self._fence_joining(own.message)
        before = dict(self.controller.state.brokers)
        effects = self.controller.handle(event_of(item), self.now_ms)
        self._decided(before)
        if isinstance(own, Delivery) and isinstance(own.message, messages.AlterPartitionRequest):
            self._judged(own.source, own_effects(effects, self.recorded))
        self.perform_for(CONTROLLER, effects)

    def _fence_joining(self, proposal: messages.AlterPartitionRequest) -> None:
        joining = [member for member, _ in proposal.new_isr if member not in self.image.isr]
        if joining and self.fences_joining:
            self.fences_joining = False
            self.fence(joining[0])

    def _keep_all_but_one(self) -> None:
        """Let only one of several expired sessions end in this check, as Kafka's controller does."""
        state, timeout_ms = self.controller.state, self.options.session_timeout_ms
        oldest_ms = self.now_ms - timeout_ms
        late = [b for b, known in sorted(state.brokers.items())
                if known.state is not BrokerState.FENCED and known.last_seen_ms < oldest_ms]  # fmt: skip
        for broker in late[1:]:
            state.brokers[broker] = replace(state.brokers[broker], last_seen_ms=oldest_ms)

    def _decided(self, before: Mapping[int, Registration]) -> None:
        """Find the controller's changes to sessions; of several steps only the last one shows its state."""
        events: list[tuple[str, int]] = []
        for broker, known in sorted(self.controller.state.brokers.items()):
            old = before.get(broker)
            was_fenced = old is None or old.state is BrokerState.FENCED
            is_fenced = known.state is BrokerState.FENCED
            if was_fenced != is_fenced:
                events.append(("fence" if is_fenced else "unfence", broker))
            if old is None or known.broker_epoch != old.broker_epoch:
                events.append(("register", broker))
                self.up.add(broker)
        for number, (event, broker) in enumerate(events, 1):
            # The state after several steps at once is the last one's; those between were never there to be
            # seen.
            shown: RecordedEvent = {} if number == len(events) else {"after": {}}
            self.emit(CONTROLLER, event, broker=broker, **shown)

    def _judged(self, source: int, effects: list[Effect]) -> None:
        """Record that a proposal was granted, or refused because of its members."""
        for effect in effects:
            match effect:
                case Send(_, messages.AlterPartitionReply(error=error)) if error in VERDICTS:
                    self.emit(CONTROLLER, "judge", leader=source, verdict=VERDICTS[error])
