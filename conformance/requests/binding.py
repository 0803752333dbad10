"""requests.spec and replog: one broker's answers to producers, a follower and a consumer.

The system is a replica with the timers that it has set, and what it did in the last step.  A tick of the spec
is `TICK_MS`.  Answers are compared with the requests that are open, and the disk with memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

from replog.core.broker import leader, purgatory
from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, Leading, ReplicaState
from replog.core.effects import (
    Append,
    Effect,
    Flush,
    Send,
    SetTimer,
    StoreEpochs,
    StoreHighWatermark,
    Timer,
)
from replog.core.messages import (
    LATEST,
    AlterPartitionReply,
    AlterPartitionRequest,
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
    Message,
    ProduceReply,
    ProduceRequest,
)
from replog.core.protocol import CURRENT, EpochEntryWhen
from replog.core.types import (
    BATCH_OVERHEAD_BYTES,
    CONSUMER,
    CONTROLLER,
    NO_EPOCH,
    Batch,
    BrokerImage,
    BrokerState,
    Error,
    MetadataImage,
    PartitionImage,
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
    restore,
    snapshot,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import RuledBinding

BROKER, FOLLOWER, PRODUCER, READER = 0, 1, -100, -101
PARTITION, TICK_MS, EVER_MS = "t-0", 1_000, 10**15
SOURCES = MappingProxyType({"copier": FOLLOWER, "reader": READER})
WHO = MappingProxyType({FOLLOWER: "copier", READER: "reader"})
PERIODIC = MappingProxyType({"isr_check": Timer.ISR_CHECK, "hw_checkpoint": Timer.HW_CHECKPOINT})
WAITS = (Timer.FETCH_WAIT, Timer.PRODUCE_TIMEOUT)
ERRORS = MappingProxyType({
    Error.NONE: "ok", Error.NOT_ENOUGH_REPLICAS: "not_enough", Error.REQUEST_TIMED_OUT: "timed_out",
    Error.NOT_LEADER_OR_FOLLOWER: "not_leader", Error.FENCED_LEADER_EPOCH: "old_epoch",
    Error.UNKNOWN_LEADER_EPOCH: "new_epoch", Error.OFFSET_OUT_OF_RANGE: "out_of_range",
    Error.OFFSET_NOT_AVAILABLE: "not_available",
})  # fmt: skip


@dataclass(slots=True)
class Server:
    """A broker, its timers, its disk, the requests that it has not answered, and its last step."""

    replica: Replica
    now_ms: int = 0
    alarms: list[tuple[int, Timer, int]] = field(default_factory=list)
    records: list[Batch] = field(default_factory=list)
    epochs: tuple[tuple[int, int], ...] = ((0, 0),)
    open: set[tuple[int, int]] = field(default_factory=set)
    requests: int = 0
    metadata: int = 0
    proposal: AlterPartitionRequest | None = None
    out: tuple[Any, ...] = ()

    def copy(self) -> Server:
        """Return an independent copy."""
        return replace(
            self, replica=self.replica.copy(), alarms=self.alarms.copy(), records=self.records.copy(),
            open=self.open.copy(),
        )  # fmt: skip

    @property
    def leading(self) -> Leading | None:
        """Return what it has as a leader."""
        return self.replica.state.leading

    def number(self, source: int) -> int:
        """Return the correlation of a new request."""
        self.requests += 1
        self.open.add((source, self.requests))
        return self.requests

    def receive(self, source: int, message: Message) -> None:
        """Handle a message, and perform what comes of it."""
        self.perform(self.replica.receive(source, message, self.now_ms))

    def apply(self, isr_then: tuple[int, ...], leads: int, epoch: int, follower: BrokerState) -> None:
        """Let the broker apply metadata that has changed."""
        self.metadata += 1
        image = PartitionImage((BROKER, FOLLOWER), leads, epoch, self.metadata, isr_then)
        self._apply(image, follower)

    def apply_brokers(self, follower: BrokerState) -> None:
        """Let the broker apply metadata that is news on the other broker alone."""
        state = self.replica.state
        isr_then = () if state.leading is None else state.leading.isr
        self._apply(PartitionImage((BROKER, FOLLOWER), BROKER, state.leader_epoch, self.metadata, isr_then),
                    follower)  # fmt: skip

    def _apply(self, image: PartitionImage, follower: BrokerState) -> None:
        brokers = {BROKER: BrokerImage(1, BrokerState.ACTIVE), FOLLOWER: BrokerImage(2, follower)}
        metadata = MetadataImage(self.metadata, {PARTITION: image}, brokers)
        self.perform(self.replica.apply(metadata, 1, self.now_ms))

    def perform(self, effects: Iterable[Effect]) -> None:
        """Note what the broker did, in its order."""
        seen = [self._meaning(effect) for effect in effects]
        self.out = (*self.out, *(one for one in seen if one is not None))

    def _meaning(self, effect: Effect) -> Any:
        match effect:
            case Append(batches=batches):
                self.records.extend(batches)
                return ("Write", {"size": sum(batch.count for batch in batches)})
            case Flush():
                return ("Flush", {})
            case StoreEpochs(entries=entries):
                self.epochs = entries
                return ("Note", {"epoch": entries[-1][0] if entries else NO_EPOCH})
            case StoreHighWatermark(offset=offset):
                return ("Checkpoint", {"hw": offset})
            case SetTimer(timer=timer, delay_ms=delay_ms, token=token):
                if timer in WAITS or timer in PERIODIC.values():
                    self.alarms.append((self.now_ms + delay_ms, timer, token))
                return None
            case Send(to=to, message=message):
                return self._sent(to, message)
            case _:
                raise OutsideSpec(f"the broker does {effect}")

    def _sent(self, to: int, message: Any) -> Any:
        if isinstance(message, AlterPartitionRequest):
            self.proposal = message
            return ("Propose", {})
        if (to, message.correlation) not in self.open:
            raise OutsideSpec(f"an answer to no request of {to}: {message}")
        self.open.discard((to, message.correlation))
        error = ERRORS.get(message.error, message.error.name)
        match message:
            case ProduceReply(base_offset=base):
                return ("Produced", {"error": error, "base": _known(base)})
            case ListOffsetsReply(offset=offset):
                return ("Listed", {"error": error, "offset": _known(offset)})
            case FetchReply(high_watermark=hw, batches=batches):
                records = sum(batch.count for batch in batches)
                return ("Fetched", {"who": WHO[to], "error": error, "hw": _known(hw), "records": records})
            case _:
                raise OutsideSpec(f"the broker sends {message}")

    def let_ring(self) -> None:
        """Fire what is due, the earliest first, in the order in which it was set."""
        for _ in range(100):
            due = [alarm for alarm in self.alarms if alarm[1] in WAITS and alarm[0] <= self.now_ms]
            if not due:
                return
            first = min(due, key=lambda alarm: alarm[0])
            self.alarms.remove(first)
            self.perform(self.replica.fire(first[1], first[2], self.now_ms))
        raise OutsideSpec("timers ring without end")


class RequestsBinding(RuledBinding[Server]):
    """Requests, metadata and time, and whatever one replica of replog does about them."""

    spec, model = "../../spec/requests.spec", "waiting"
    smoke = (At("small_isr"),)
    gate = (
        At("waiting"),
        At("copying"),
        At("small_isr"),
        At("elections"),
        At("noted_with_the_first_record"),
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
        BadCode("a produce waits without a timer", leader.finish_produce,
                "out.append(SetTimer(Timer.PRODUCE_TIMEOUT, request.timeout_ms))", "pass", "waiting"),
        BadCode("the check of the ISR ends", Replica.fire,
                "out.append(SetTimer(Timer.ISR_CHECK, max(state.config.lag_ms // 2, 1)))", "pass", "waiting"),
        BadCode("who is proposed counts", leader.check_produce, "len(leading.isr)",
                "len(isr.maximal_isr(state, leading))", "small_isr"),
    )  # fmt: skip
    rules: ClassVar[MappingProxyType[str, Any]] = MappingProxyType({
        "wakes_consumers": True, "resigns_aloud": True, "commits_whole": True, "maximal": True,
    })  # fmt: skip

    def start(self) -> Server:
        """A leader of epoch 0 that has heard nothing of its follower."""
        c = self.constants
        config = Config(
            min_isr=c["min_isr"], lag_ms=EVER_MS, flush_messages=int(c["flushes"]), follower_read=True
        )
        when = EpochEntryWhen.ON_BECOME_LEADER if c["notes_first"] else EpochEntryWhen.ON_FIRST_WRITE
        state = ReplicaState(BROKER, PARTITION, config, replace(CURRENT, epoch_entry=when))
        state.log.epochs.assign(0, 0)
        server = Server(Replica(state))
        server.perform(server.replica.start())
        server.apply((BROKER, FOLLOWER), BROKER, 0, BrokerState.ACTIVE)
        return server

    @snapshot
    def keep(self, server: Server) -> Server:
        """A copy, which nobody changes."""
        return server.copy()

    @restore
    def back(self, kept: Server) -> Server:
        """Another copy, to run on."""
        return kept.copy()

    @action("produce")
    def produce(self, server: Server, acks: str, size: int) -> Answer:
        """A batch arrives; the disk has room for so many records."""
        twin = server.copy()
        self._produce(twin, acks, size)
        leading = twin.leading
        if twin.replica.state.log.leo > self.constants["MaxLeo"] or (
            leading is not None and len(leading.produces) > self.constants["MaxWaiting"]
        ):
            return Impossible("no more records, or waiting producers, in this model")
        self._produce(server, acks, size)
        return Accepted()

    def _produce(self, server: Server, acks: str, size: int) -> None:
        server.out = ()
        # So many bytes that a limit of bytes is a number of records.
        batch = Batch(0, -1, size, body=bytes((size - 1) * BATCH_OVERHEAD_BYTES))
        number = server.number(PRODUCER)
        server.receive(PRODUCER, ProduceRequest(number, batch, -1 if acks == "all" else 1, 2 * TICK_MS))

    def _fetch(self, server: Server, who: str, epoch: int | None, offset: int, *, waits: bool) -> None:
        server.out = ()
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

    @action("list_latest")
    def list_latest(self, server: Server, epoch: int | None) -> Answer:
        """A consumer requests the end of what it may read."""
        if not self.constants["consumers"]:
            return Impossible("no consumers in this model")
        server.out = ()
        known = NO_EPOCH if epoch is None else epoch
        server.receive(READER, ListOffsetsRequest(server.number(READER), CONSUMER, known, LATEST))
        return Accepted()

    @action("tick")
    def tick(self, server: Server) -> Answer:
        """Time passes, and the timers of waiting requests ring."""
        if server.leading is None or not (server.leading.produces or server.leading.fetches):
            return Impossible("nobody waits")
        server.out, server.now_ms = (), server.now_ms + TICK_MS
        server.let_ring()
        return Accepted()

    @action("ring")
    def ring(self, server: Server, timer: str) -> Answer:
        """The one timer of its kind rings."""
        armed = [alarm for alarm in server.alarms if alarm[1] is PERIODIC[timer]]
        if len(armed) != 1:
            return Refused(f"{len(armed)} of these timers are set")
        server.out = ()
        server.alarms.remove(armed[0])
        server.perform(server.replica.fire(PERIODIC[timer], armed[0][2], server.now_ms))
        return Accepted()

    @action("fence_follower")
    def fence_follower(self, server: Server) -> Answer:
        """Metadata arrives in which the follower is fenced, and not in the ISR."""
        if not self.constants["changes"]:
            return Impossible("no such changes in this model")
        if server.leading is None or _place(server) == "fenced":
            return Impossible("it leads no more, or the follower is fenced already")
        server.out = ()
        server.apply((BROKER,), BROKER, server.replica.state.leader_epoch, BrokerState.FENCED)
        return Accepted()

    @action("unfence_follower")
    def unfence_follower(self, server: Server) -> Answer:
        """Metadata arrives in which the follower lives, and is not in the ISR yet."""
        if server.leading is None or _place(server) != "fenced":
            return Impossible("it leads no more, or the follower is not fenced")
        server.out = ()
        server.apply_brokers(BrokerState.ACTIVE)
        return Accepted()

    @action("settle")
    def settle(self, server: Server, granted: bool) -> Answer:
        """The controller's answer to the proposal arrives."""
        if server.leading is None or server.leading.pending is None or server.proposal is None:
            return Impossible("nothing is proposed")
        server.out = ()
        number, state = server.proposal.correlation, server.replica.state
        if granted:
            server.metadata += 1
            members = BROKER, FOLLOWER
            reply = AlterPartitionReply(number, Error.NONE, state.leader_epoch, server.metadata, members)
        else:
            reply = AlterPartitionReply(number, Error.INELIGIBLE_REPLICA)
        server.receive(CONTROLLER, reply)
        return Accepted()

    @action("settle_by_metadata")
    def settle_by_metadata(self, server: Server, granted: bool) -> Answer:
        """Metadata arrives before that answer."""
        if server.leading is None or server.leading.pending is None:
            return Impossible("nothing is proposed")
        server.out = ()
        isr_then = (BROKER, FOLLOWER) if granted else (BROKER,)
        follower = BrokerState.ACTIVE if granted else BrokerState.FENCED
        server.apply(isr_then, BROKER, server.replica.state.leader_epoch, follower)
        return Accepted()

    @action("lead")
    def lead(self, server: Server, with_follower: bool) -> Answer:
        """Metadata arrives in which the broker leads the next epoch."""
        epoch = server.replica.state.leader_epoch + 1
        if epoch > self.constants["MaxEpoch"]:
            return Impossible("no more elections in this model")
        server.out = ()
        isr_then = (BROKER, FOLLOWER) if with_follower else (BROKER,)
        server.apply(isr_then, BROKER, epoch, BrokerState.ACTIVE if with_follower else BrokerState.FENCED)
        return Accepted()

    @action("follow")
    def follow(self, server: Server) -> Answer:
        """Metadata arrives in which the other broker leads."""
        epoch = server.replica.state.leader_epoch + 1
        if epoch > self.constants["MaxEpoch"] or server.leading is None:
            return Impossible("no more elections in this model, or it follows already")
        server.out = ()
        server.apply((BROKER, FOLLOWER), FOLLOWER, epoch, BrokerState.ACTIVE)
        return Accepted()

    @project
    def state(self, server: Server) -> dict[str, Any]:
        """The replica's state and what it did last."""
        state, leading = server.replica.state, server.leading
        if list(server.epochs) != state.log.epochs.entries or server.records != state.log.batches:
            raise OutsideSpec("the disk has other records, or epochs, than memory")
        known = -1 if leading is None else leading.remotes[FOLLOWER].leo
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
                {"base": one.base_offset, "end": one.required,
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
    """Return what the follower is to a leader; to a follower it is nothing."""
    leading, brokers = server.leading, server.replica.state.brokers
    if leading is None:
        return "fenced"
    if leading.pending is not None:
        return "joining"
    if FOLLOWER in leading.isr:
        return "member"
    return "returning" if brokers[FOLLOWER].state is BrokerState.ACTIVE else "fenced"


def _known(offset: int) -> int:
    """Return an offset, 0 for none, as in the spec."""
    return max(offset, 0)
