"""The recorder of a process that serves: a line for each step of each of its partitions.

    {"t": 81273..., "at": 1, "partition": "orders-0", "event": "serve", "message": "2/17...", "after": {...}}

What a step is and shows is as in recordings of simulations (`replog.sim.recording`), except that a fetch is
counted (`hear`) before it is served, and HW is gathered before its checkpoint.  `t` is the monotonic clock of
the machine in nanoseconds when the step began: after what it has received was sent, and before what it sends.
A line is written when its records are on the disk, before the messages that tell of it: who is killed
in between has taken a step without a line, which the state at the next start shows.

Not here: the order of the lines of several processes (`merging`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic_ns
from zlib import crc32

from replog.core.broker.broker import Broker
from replog.core.broker.replica import Replica
from replog.core.controller.state import ControllerState, Registration
from replog.core.effects import Effect, Event, Fired, Of, Received, Send, Timer, TimerOf
from replog.core.messages import (
    AlterPartitionReply,
    FetchReply,
    FetchRequest,
    ForPartition,
    MetadataUpdate,
    ProduceRequest,
)
from replog.core.types import CONTROLLER, Batch, BrokerState, Role
from replog.run.opaque import Encoded
from replog.run.serve.controlling import Controlling
from replog.run.serve.host import GROUPS, Host
from replog.sim.cluster.node import Alarm, Delivery, Node
from replog.sim.cluster.storage import MemoryStorage
from replog.sim.recording import record_state
from replog.sim.recording.record import LASTING, VERDICTS
from replog.sim.recording.record_state import Before, message_of

Facts = dict[str, object]
COUNTED = ("waits", "records")


class Lines:
    """The file of one process; what it has written outlives the process."""

    def __init__(self, folder: Path, at: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = "controller" if at == CONTROLLER else f"broker-{at}"
        self._file = os.open(folder / f"{name}.ndjson", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._at = at

    def write(self, t: int, partition: str, event: str, **facts: object) -> None:
        """Write a line."""
        line = {"t": t, "at": self._at, "partition": partition, "event": event, **facts}
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")


class LogSums:
    """A CRC over a log, batch by batch; only what has changed is computed."""

    def __init__(self) -> None:
        self._sums: list[tuple[Batch, int]] = []

    def of(self, batches: list[Batch]) -> int:
        """Return the CRC over the epochs, counts and records of all batches."""
        sums = self._sums
        del sums[len(batches) :]
        while sums and sums[-1][0] != batches[len(sums) - 1]:
            sums.pop()
        crc = sums[-1][1] if sums else 0
        for batch in batches[len(sums) :]:
            body = batch.body.crc if isinstance(batch.body, Encoded) else crc32(batch.content)
            crc = crc32(b"%d:%d:%d;" % (batch.epoch, batch.count, body), crc)
            sums.append((batch, crc))
        return crc


class Watched:
    """A replica that is recorded, and what its recorder has to remember."""

    def __init__(self, broker: Broker, replica: Replica) -> None:
        self.state = replica.state
        self.sums = LogSums()
        self.gathered = -1
        self.is_gathered = False
        # In the form in which a recorder of simulations looks at a replica.
        me = replica.state.broker_id
        self._node = Node(me, MemoryStorage(), Broker(broker.membership, replica))

    def look(self, event: Event) -> Before:
        """Return the state before an event."""
        me = self.state.broker_id
        if isinstance(event, Received):
            return record_state.look(self._node, Delivery(event.source, me, event.message, 0))
        assert isinstance(event, Fired)
        return record_state.look(self._node, Alarm(me, event.timer, event.token, 0))

    def has_applied(self, before: Before) -> bool:
        """Return whether metadata have changed its role."""
        return record_state.applied(self._node) != before.applied

    def shown(self) -> Facts:
        """Return what a line shows of its state."""
        state, log = self.state, self.state.log
        shown: Facts = {
            "role": state.role.value, "epoch": state.leader_epoch, "leo": log.leo, "hw": log.hw,
            "epochs": [list(entry) for entry in log.epochs.entries], "crc": self.sums.of(log.batches),
        }  # fmt: skip
        if state.leading is not None:
            pending = state.leading.pending
            shown["isr"] = sorted(state.leading.isr)
            shown["remote"] = {str(f): remote.leo for f, remote in sorted(state.leading.remotes.items())}
            shown["version"] = state.partition_epoch
            shown["proposed"] = None if pending is None else sorted(pending.proposed)
            shown["fenced"] = sorted(
                b for b, known in state.brokers.items() if known.state is not BrokerState.ACTIVE
            )
        return shown


class BrokerRecorder:
    """The steps of a broker; `message` is the name of the request that it is handed next."""

    def __init__(self, folder: Path, broker: Broker, broker_id: int) -> None:
        self.message = ""
        self._broker = broker
        self._replicas: dict[str, Watched] = {}
        self._lines = Lines(folder, broker_id)
        self._t, self._now_ms = monotonic_ns(), 0
        self._lines.write(self._t, "", "start")

    def recovered(self, replica: Replica) -> None:
        """Record a replica's log as it was found at the start."""
        name, log = replica.state.partition, replica.state.log
        self._replicas[name] = Watched(self._broker, replica)
        self._lines.write(monotonic_ns(), name, "recover", leo=log.leo, hw=log.hw)

    def checkpointed(self) -> None:
        """Record that the gathered high watermarks are on the disk."""
        self._t = monotonic_ns()
        for watched in self._replicas.values():
            if watched.is_gathered:
                watched.is_gathered = False
                self._emit(watched, "checkpoint")

    def handle(self, event: Event, now_ms: int, perform: Callable[[Effect], None]) -> None:
        """Have the broker handle an event, and record what it has done."""
        self._t, self._now_ms = monotonic_ns(), now_ms
        looks = [(each, inner, each.look(inner)) for each, inner in self._concerned(event)]
        effects = self._broker.handle(event, now_ms)
        lasting = [
            number for number, each in enumerate(effects)
            if isinstance(each.effect if isinstance(each, Of) else each, LASTING)
        ]  # fmt: skip
        commit = lasting[-1] + 1 if lasting else 0
        for effect in effects[:commit]:
            perform(effect)
        for watched, inner, before in looks:
            self._record(watched, inner, before, record_state.own_effects(effects, watched.state.partition))
        for effect in effects[commit:]:
            perform(effect)

    def _concerned(self, event: Event) -> list[tuple[Watched, Event]]:
        """Return the replicas that an event concerns, each with the event as it is for a single replica."""
        inner: Event
        if isinstance(event, TimerOf):
            name, inner = event.partition, event.fired
        elif isinstance(event, Received) and isinstance(event.message, ForPartition):
            name, inner = event.message.partition, Received(event.source, event.message.message)
        elif isinstance(event, Received) and isinstance(event.message, MetadataUpdate):
            return [(watched, event) for watched in self._live()]
        else:
            return []
        return [(watched, inner) for watched in self._live() if watched.state.partition == name]

    def _live(self) -> list[Watched]:
        here = self._broker.replicas
        self._replicas = {name: watched for name, watched in self._replicas.items() if name in here}
        return [*self._replicas.values()]

    def _record(self, watched: Watched, event: Event, before: Before, effects: list[Effect]) -> None:
        state = watched.state
        match event:
            case Fired(Timer.HW_CHECKPOINT) if state.role is not Role.NONE:
                if watched.gathered != state.log.hw:
                    watched.gathered, watched.is_gathered = state.log.hw, True
                    self._emit(watched, "gather")
            case Fired(Timer.ISR_CHECK):
                pending = None if state.leading is None else state.leading.pending
                if pending is not None and before.pending is None:
                    gone = [member for member in before.isr if member not in pending.proposed]
                    self._emit(watched, "shrink", gone=gone)
            case Fired():
                pass
            case _:
                assert isinstance(event, Received)
                self._received(watched, event, before)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, FetchRequest):
                asked = effect.message
                facts = message_of(state.broker_id, asked.correlation)
                self._emit(watched, "fetch", to=effect.to, offset=asked.fetch_offset, **facts)
            if isinstance(event, Received) and isinstance(effect, Send) and effect.to == event.source:
                self._answered(watched, event, effect)
        if isinstance(event, Received) and isinstance(event.message, FetchRequest):
            self._heard(watched, event.message, effects, event.source)

    def _received(self, watched: Watched, event: Received, before: Before) -> None:
        state = watched.state
        match event.message:
            case MetadataUpdate(images):
                version = images[-1].version
                if watched.has_applied(before):
                    kind = "lead" if state.role is Role.LEADER else "follow"
                    self._emit(watched, kind, epoch=state.leader_epoch, metadata=version)
                elif state.role is Role.LEADER and state.brokers != before.brokers:
                    self._emit(watched, "brokers", metadata=version)
            case ProduceRequest(acks=acks):
                if state.log.leo > before.leo:
                    self._emit(watched, "produce", count=state.log.leo - before.leo, acks=acks)
            case FetchReply() as reply:
                if record_state.was_taken(reply, before, state.following):
                    message = message_of(state.broker_id, reply.correlation)
                    self._emit(watched, "apply", source=event.source, **message)
            case AlterPartitionReply() as reply:
                if record_state.was_settled(reply, before, state):
                    self._emit(watched, "settle", **message_of(state.broker_id, reply.correlation))

    def _heard(self, watched: Watched, request: FetchRequest, effects: list[Effect], source: int) -> None:
        """Record that a fetch was counted."""
        if request.is_from_follower and request.max_wait_ms > 0:
            kind = record_state.served_as(request, _to_follower(effects, source, request.replica_id))
            if kind in COUNTED:
                self._emit(watched, "hear", follower=request.replica_id, offset=request.fetch_offset,
                           message=self.message)  # fmt: skip

    def _answered(self, watched: Watched, event: Received, effect: Send) -> None:
        """Record the answer to a fetch that does not wait."""
        request, reply = event.message, effect.message
        if not (isinstance(request, FetchRequest) and isinstance(reply, FetchReply)):
            return
        if request.is_from_follower and request.max_wait_ms <= 0 and not reply.error:
            end = reply.batches[-1].next_offset if reply.batches else request.fetch_offset
            self._emit(watched, "serve", follower=request.replica_id, offset=request.fetch_offset, end=end,
                       diverges=reply.diverging is not None, message=self.message)  # fmt: skip

    def _emit(self, watched: Watched, event: str, **facts: object) -> None:
        state = watched.state
        if state.leading is not None:
            facts["late"] = record_state.late_followers(state, self._now_ms)
        self._lines.write(self._t, state.partition, event, **facts, after=watched.shown())


def _to_follower(effects: list[Effect], client: int, follower: int) -> list[Effect]:
    """Return effects in which what is sent to a connection is sent to the follower behind it."""
    return [
        Send(follower, each.message) if isinstance(each, Send) and each.to == client else each
        for each in effects
    ]


class ControllerRecorder:
    """The decisions of a controller; `t` is when the present one began."""

    def __init__(self, folder: Path, state: ControllerState) -> None:
        self._lines = Lines(folder, CONTROLLER)
        self._state = state
        self._t = 0
        self._brokers: Mapping[int, Registration] = {}
        self._replicas: dict[str, tuple[int, ...]] = {}
        self.begin()
        self._events([("start", {})])

    def begin(self) -> None:
        """Look at the state before a decision."""
        self._t = monotonic_ns()
        self._brokers = dict(self._state.brokers)
        self._replicas = {name: image.replicas for name, image in self._state.partitions.items()}

    def decided(self, effects: list[Effect]) -> None:
        """Record a decision that is on the disk; of several steps only the last one shows its state."""
        events: list[tuple[str, Facts]] = []
        for broker, known in sorted(self._state.brokers.items()):
            old = self._brokers.get(broker)
            was_active = old is not None and old.state is BrokerState.ACTIVE
            is_active = known.state is BrokerState.ACTIVE
            if was_active != is_active:
                events.append(("unfence" if is_active else "fence", {"broker": broker}))
            if old is None or known.broker_epoch != old.broker_epoch:
                events.append(("register", {"broker": broker}))
        self._events(events)
        for name, image in self._state.partitions.items():
            if name not in self._replicas:
                self._event(name, "create", replicas=image.replicas, min_isr=self._state.config.min_isr)
            elif image.replicas != self._replicas[name]:
                self._event(name, "reassign")
        for effect in effects:
            match effect:
                case Send(to, ForPartition(name, AlterPartitionReply(correlation, error))) if (
                    error in VERDICTS
                ):
                    facts = message_of(to, correlation)
                    self._event(name, "judge", leader=to, verdict=VERDICTS[error], **facts)

    def _events(self, events: list[tuple[str, Facts]]) -> None:
        for name in self._replicas.keys() & self._state.partitions.keys():
            for number, (event, facts) in enumerate(events, 1):
                self._event(name, event, **facts, **({} if number == len(events) else {"after": {}}))

    def _event(self, name: str, event: str, **facts: object) -> None:
        if name == GROUPS:
            return
        image = self._state.partitions[name]
        facts["metadata"] = self._state.version
        facts.setdefault("after", {
            "epoch": image.leader_epoch, "leader": image.leader, "isr": sorted(image.isr),
            "version": image.partition_epoch, "fenced": sorted(
                b for b, known in self._state.brokers.items() if known.state is not BrokerState.ACTIVE
            ),
        })  # fmt: skip
        self._lines.write(self._t, name, event, **facts)


def watch(folder: Path, running: Host | Controlling) -> None:
    """Record what runs in this process."""
    if isinstance(running, Host):
        running.watcher = BrokerRecorder(folder, running.broker, running.settings.broker_id)
    else:
        running.watcher = ControllerRecorder(folder, running.state)
