"""requests.spec and replog: one broker's answers to producers, a follower and a consumer.

The system is a replica with the timers that it has set, and its actions in the last step.  A tick of the spec
is `TICK_MS`.  Answers are compared with the requests that are open, and the disk with memory.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

from request_server import (
    BROKER,
    FOLLOWER,
    PARTITION,
    PERIODIC,
    PRODUCER,
    READER,
    SOURCES,
    TICK_MS,
    WHO,
    Server,
)

from replog.core.broker import leader, purgatory
from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, ReplicaState
from replog.core.effects import Timer
from replog.core.messages import (
    LATEST,
    AlterPartitionReply,
    FetchRequest,
    ListOffsetsRequest,
    ProduceRequest,
)
from replog.core.protocol import CURRENT, EpochEntryWhen
from replog.core.types import (
    BATCH_OVERHEAD_BYTES,
    CONSUMER,
    CONTROLLER,
    NO_EPOCH,
    Batch,
    BrokerState,
    Error,
    Role,
)
from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Impossible,
    OutsideSpec,
    Refused,
    action,
    project,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import CopyingBinding

EVER_MS = 10**15
ACKS = MappingProxyType({"zero": 0, "one": 1, "all": -1})
UNSURE = (
    Error.UNKNOWN_TOPIC_OR_PARTITION, Error.FENCED_LEADER_EPOCH, Error.INVALID_UPDATE_VERSION,
    Error.INVALID_REQUEST, Error.NEW_LEADER_ELECTED, Error.NOT_CONTROLLER,
)  # fmt: skip
"""Answers to a proposal after which the controller may have it or not."""


class RequestsBinding(CopyingBinding[Server]):
    """Requests, metadata and time, and the reactions of one replica of replog."""

    spec, model = "../../spec/requests.spec", "waiting"
    smoke = (At("producers_alone"),)
    gate = (
        At("waiting"),
        At("copying"),
        At("small_isr"),
        At("elections"),
        At("noted_with_the_first_record"),
        At("two_readers"),
    )
    controls = (
        BadSpec("a higher HW wakes no consumer", "waiting", {"wakes_consumers": "false"}),
        BadSpec("who resigns is silent", "elections", {"resigns_aloud": "false"}),
        BadSpec("a batch is committed with its first record", "copying", {"commits_whole": "false"}),
        BadSpec("HW waits for the committed ISR alone", "copying", {"maximal": "false"}),
        BadCode("no flush before the answer", leader.append, "    flush_by_policy(state, out)", "    pass",
                "copying"),
        BadCode("records before their epoch", leader.append, "    out.append(Append((batch,)))",
                "    out.insert(0, Append((batch,)))", "noted_with_the_first_record"),
        BadCode("a fetch waits twice", leader.on_fetch, "if w.source != source", "if True", "waiting"),
        BadCode("fetches outlive their epoch", purgatory.refuse_stale, "not in (NO_EPOCH, epoch)",
                "in ()", "elections"),
        BadSpec("one consumer waits at a time", "two_readers", {"one_place": "true"}),
        BadCode("a produce waits without a timer", leader.finish_produce,
                "out.append(SetTimer(Timer.PRODUCE_TIMEOUT, request.timeout_ms))", "pass", "waiting"),
        BadCode("the check of the ISR ends", Replica.fire,
                "out.append(SetTimer(Timer.ISR_CHECK, max(state.config.lag_ms // 2, 1)))", "pass", "waiting"),
        BadCode("who is proposed counts", leader.check_produce, "len(leading.isr)",
                "len(isr.maximal_isr(state, leading))", "small_isr"),
        BadCode("acks=0 is answered", leader.finish_produce, "if request.acks == 0:", "if False:", "waiting"),
        BadCode("acks=0 has the error of who leads no more", Replica._produce, "if request.acks != 0:",
                "if True:", "elections"),
        BadCode("acks=0 requires the least ISR", leader.check_produce, "request.acks == -1",
                "request.acks != 1", "small_isr"),
    )  # fmt: skip
    rules = MappingProxyType({
        "one_place": False, "wakes_consumers": True, "resigns_aloud": True, "commits_whole": True,
        "maximal": True,
    })  # fmt: skip

    def start(self) -> Server:
        """A leader of epoch 0 that has received nothing from its follower."""
        c = self.constants
        config = Config(
            min_isr=c["min_isr"], lag_ms=EVER_MS, flush_messages=int(c["flushes"]), follower_read=True
        )
        when = EpochEntryWhen.ON_BECOME_LEADER if c["notes_first"] else EpochEntryWhen.ON_FIRST_WRITE
        state = ReplicaState(BROKER, PARTITION, config, replace(CURRENT, epoch_entry=when))
        state.log.epochs.assign(0, 0)
        server = Server(Replica(state))
        server.perform(server.replica.start())
        begun = server.out
        server.apply((BROKER, FOLLOWER), BROKER, 0, BrokerState.ACTIVE)
        server.out = begun + server.out
        return server

    @action("produce")
    def produce(self, server: Server, acks: str, size: int) -> Answer:
        """A batch arrives; the disk has space for this many records."""
        # So many bytes that a limit of bytes is a number of records.
        batch = Batch(0, -1, size, body=bytes((size - 1) * BATCH_OVERHEAD_BYTES))
        # An answer to acks=0 answers no request.
        number = server.unanswered() if acks == "zero" else server.number(PRODUCER)
        server.receive(PRODUCER, ProduceRequest(number, batch, ACKS[acks], 2 * TICK_MS))
        leading = server.leading
        # Whether there was space shows now: a replica that refuses a batch writes nothing.
        if server.state.log.leo > self.constants["MaxLeo"] or (
            leading is not None and len(leading.produces) > self.constants["MaxWaiting"]
        ):
            return Impossible("no more records, or waiting producers, in this model")
        return Accepted()

    def _fetch(self, server: Server, who: str, epoch: int | None, offset: int, *, waits: bool) -> None:
        source = SOURCES[who]
        server.receive(
            source,
            FetchRequest(
                server.number(source),
                FOLLOWER if who == "copier" else CONSUMER,
                NO_EPOCH if epoch is None else epoch,
                offset,
                broker_epoch=2 if who == "copier" else -1,
                max_wait_ms=TICK_MS if waits else 0,
                max_bytes=self.constants["room"] * BATCH_OVERHEAD_BYTES,
            ),
        )

    @action("copy")
    def copy(self, server: Server, epoch: int | None, offset: int, waits: bool) -> Answer:
        """The follower fetches."""
        self._fetch(server, "copier", epoch, offset, waits=waits)
        return Accepted()

    @action("read")
    def read(self, server: Server, epoch: int | None, offset: int, waits: bool) -> Answer:
        """A consumer fetches."""
        if not self.constants["consumers"]:
            return Impossible("no consumers in this model")
        self._fetch(server, "reader", epoch, offset, waits=waits)
        return Accepted()

    @action("read_too")
    def read_too(self, server: Server, offset: int) -> Answer:
        """Another consumer fetches, and waits."""
        if not self.constants["two_consumers"]:
            return Impossible("one consumer in this model")
        self._fetch(server, "other", None, offset, waits=True)
        return Accepted()

    @action("list_latest")
    def list_latest(self, server: Server, epoch: int | None) -> Answer:
        """A consumer requests the end of the visible records."""
        if not self.constants["consumers"]:
            return Impossible("no consumers in this model")
        known = NO_EPOCH if epoch is None else epoch
        server.receive(READER, ListOffsetsRequest(server.number(READER), CONSUMER, known, LATEST))
        return Accepted()

    @action("tick")
    def tick(self, server: Server) -> Answer:
        """Time passes, and the timers of waiting requests ring."""
        if server.leading is None or not (server.leading.produces or server.leading.fetches):
            return Impossible("nobody waits")
        server.now_ms += TICK_MS
        server.let_ring()
        return Accepted()

    @action("ring_early")
    def ring_early(self, server: Server) -> Answer:
        """The timer of waiting produces rings before its time."""
        armed = [alarm for alarm in server.alarms if alarm[1] is Timer.PRODUCE_TIMEOUT]
        if server.leading is None or not server.leading.produces:
            return Impossible("no producer waits")
        first = min(armed)
        place, others = server.alarms.index(first), len(server.alarms) - 1
        server.ring(first)
        # Of timers that ring at the same time it stays the one that was set first.
        server.alarms[place:place] = server.alarms[others:]
        del server.alarms[others + 1 :]
        return Accepted()

    @action("ring")
    def ring(self, server: Server, timer: str) -> Answer:
        """The one timer of its kind rings."""
        armed = [alarm for alarm in server.alarms if alarm[1] is PERIODIC[timer]]
        if len(armed) != 1:
            return Refused(f"{len(armed)} of these timers are set")
        server.ring(armed[0])
        return Accepted()

    @action("fence_follower")
    def fence_follower(self, server: Server) -> Answer:
        """Metadata arrives in which the follower is fenced, and not in the ISR."""
        if not self.constants["changes"]:
            return Impossible("no such changes in this model")
        if server.leading is None or _place(server) == "fenced":
            return Impossible("it leads no more, or the follower is fenced already")
        server.apply((BROKER,), BROKER, server.state.leader_epoch, BrokerState.FENCED)
        return Accepted()

    @action("unfence_follower")
    def unfence_follower(self, server: Server) -> Answer:
        """Metadata arrives in which the follower is active, and not in the ISR yet."""
        if server.leading is None or _place(server) != "fenced":
            return Impossible("it leads no more, or the follower is not fenced")
        server.apply_brokers(BrokerState.ACTIVE)
        return Accepted()

    @action("settle")
    def settle(self, server: Server, granted: bool) -> Answer:
        """The controller's answer to the proposal arrives."""
        if server.leading is None or server.leading.pending is None or server.proposal is None:
            return Impossible("nothing is proposed")
        number, state = server.proposal.correlation, server.state
        if granted:
            server.metadata += 1
            members = BROKER, FOLLOWER
            reply = AlterPartitionReply(number, Error.NONE, state.leader_epoch, server.metadata, members)
        else:
            reply = AlterPartitionReply(number, Error.INELIGIBLE_REPLICA)
        server.receive(CONTROLLER, reply)
        return Accepted()

    @action("leave_open", ways=tuple(error.name for error in UNSURE))
    def leave_open(self, server: Server, way: str) -> Answer:
        """An answer arrives that does not decide."""
        if server.leading is None or server.leading.pending is None or server.proposal is None:
            return Impossible("nothing is proposed")
        server.receive(CONTROLLER, AlterPartitionReply(server.proposal.correlation, Error[way]))
        return Accepted()

    @action("settle_by_metadata")
    def settle_by_metadata(self, server: Server, granted: bool) -> Answer:
        """Metadata arrives before that answer."""
        if server.leading is None or server.leading.pending is None:
            return Impossible("nothing is proposed")
        isr_then = (BROKER, FOLLOWER) if granted else (BROKER,)
        follower = BrokerState.ACTIVE if granted else BrokerState.FENCED
        server.apply(isr_then, BROKER, server.state.leader_epoch, follower)
        return Accepted()

    @action("lead")
    def lead(self, server: Server, with_follower: bool) -> Answer:
        """Metadata arrives in which the broker leads the next epoch."""
        epoch = server.state.leader_epoch + 1
        if epoch > self.constants["MaxEpoch"]:
            return Impossible("no more elections in this model")
        isr_then = (BROKER, FOLLOWER) if with_follower else (BROKER,)
        server.apply(isr_then, BROKER, epoch, BrokerState.ACTIVE if with_follower else BrokerState.FENCED)
        return Accepted()

    @action("follow")
    def follow(self, server: Server) -> Answer:
        """Metadata arrives in which the other broker leads."""
        epoch = server.state.leader_epoch + 1
        if epoch > self.constants["MaxEpoch"] or server.leading is None:
            return Impossible("no more elections in this model, or it follows already")
        server.apply((BROKER, FOLLOWER), FOLLOWER, epoch, BrokerState.ACTIVE)
        return Accepted()

    @project
    def state(self, server: Server) -> dict[str, Any]:
        """The replica's state and its last actions."""
        state, leading = server.state, server.leading
        if list(server.epochs) != state.log.epochs.entries or server.records != state.log.batches:
            raise OutsideSpec("the disk has other records, or epochs, than memory")
        periodic = [timer for _, timer, _ in server.alarms if timer in PERIODIC.values()]
        if len(periodic) != len(PERIODIC):
            raise OutsideSpec(f"these timers are set: {periodic}")
        for waiting in [] if leading is None else leading.produces:
            if not any(a[1] is Timer.PRODUCE_TIMEOUT and a[0] <= waiting.deadline_ms for a in server.alarms):
                raise OutsideSpec("no timer will ring for a produce that waits")
        known = -1 if leading is None else leading.remotes[FOLLOWER].leo
        # The HW for which a produce waits is determined by the time of its answer, not by the leader's state.
        ends = {batch.base_offset: batch.next_offset for batch in state.log.batches}
        return {
            "role": "leader" if state.role is Role.LEADER else "follower",
            "epoch": state.leader_epoch,
            "start": 0 if leading is None else leading.leso,
            "log": [batch.count for batch in state.log.batches],
            "noted": dict(state.log.epochs.entries),
            "hw": state.log.hw,
            "place": _place(server),
            "known": None if known < 0 else known,
            "produces": [] if leading is None else [
                {"base": one.base_offset, "end": ends.get(one.base_offset, one.base_offset),
                 "left": (one.deadline_ms - server.now_ms) // TICK_MS} for one in leading.produces
            ],
            "reads": [] if leading is None else [
                {"who": WHO[one.source], "offset": one.request.fetch_offset,
                 "epoch": None if one.request.leader_epoch == NO_EPOCH else one.request.leader_epoch}
                for one in leading.fetches
            ],
            "out": server.out,
        }  # fmt: skip


def _place(server: Server) -> str:
    """Return the leader's view of the follower; on a follower there is none."""
    leading, brokers = server.leading, server.state.brokers
    if leading is None:
        return "fenced"
    if leading.pending is not None:
        return "joining"
    if FOLLOWER in leading.isr:
        return "member"
    return "returning" if brokers[FOLLOWER].state is BrokerState.ACTIVE else "fenced"
