"""isr_timing.spec and replog: when a follower leaves and rejoins the ISR, and the controller is notified.

The system is a leader and a follower of replog and one clock; a unit of the spec is 2.5 s.  The leader checks
its ISR when its own timer rings.  An ISR change is granted at once, since replication.spec
covers the time in between, and recorded in a `Propagator`, which brokers had while these changes went through
ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from replog.core.broker import isr
from replog.core.broker.propagation import TICK_MS, Propagator
from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, Leading, ReplicaState
from replog.core.effects import Effect, Send, SetTimer, Timer
from replog.core.messages import (
    AlterPartitionReply,
    AlterPartitionRequest,
    FetchReply,
    FetchRequest,
    ProduceRequest,
)
from replog.core.types import (
    BATCH_OVERHEAD_BYTES,
    CONTROLLER,
    Batch,
    BrokerImage,
    BrokerState,
    Error,
    MetadataImage,
    PartitionImage,
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

LEADER, FOLLOWER, CLIENT = 0, 1, -100
PARTITION, OTHER = "t-0", "t-1"
LOST, ALL = "lost", "all"
RECORDS = MappingProxyType({"one": 1, "two": 2, ALL: 1_000})
# replog's defaults; the period of the check is half of the lag, in any case.
TODAY = MappingProxyType({
    "rule": "previous_fetch", "hw_waits": True, "propagation_period": 1, "propagation_blackout": 2,
    "propagation_interval": 24, "propagation_needs_both": False,
})  # fmt: skip
SMALL = MappingProxyType({"MaxTime": "5", "MaxOffset": "1"})


@dataclass(slots=True)
class Pair:
    """Two brokers and a clock; `leo_at` is the spec's ghost: the log's end when the clock reached a time."""

    leader: Replica
    follower: Replica
    now_ms: int = 0
    check_due_ms: int = 0
    propagator: Propagator = field(default_factory=lambda: Propagator(0, 0))
    leo_at: dict[int, int] = field(default_factory=dict)

    def copy(self) -> Pair:
        """Return an independent copy."""
        brokers = self.leader.copy(), self.follower.copy()
        return Pair(*brokers, self.now_ms, self.check_due_ms, self.propagator, dict(self.leo_at))

    @property
    def leading(self) -> Leading:
        """Return the leader's state as a leader."""
        assert self.leader.state.leading is not None
        return self.leader.state.leading

    def apply(self, version: int, image: PartitionImage, follower: BrokerState) -> None:
        """Make both brokers apply metadata in which the follower is active, or fenced."""
        brokers = {LEADER: BrokerImage(1, BrokerState.ACTIVE), FOLLOWER: BrokerImage(2, follower)}
        for replica in (self.leader, self.follower):
            epoch = brokers[replica.state.broker_id].broker_epoch
            replica.apply(MetadataImage(version, {PARTITION: image}, brokers), epoch, self.now_ms)

    def perform(self, effects: list[Effect]) -> None:
        """Set the leader's timer, and grant its proposals."""
        for effect in effects:
            match effect:
                case SetTimer(timer=Timer.ISR_CHECK, delay_ms=delay_ms):
                    self.check_due_ms = self.now_ms + delay_ms
                case Send(message=AlterPartitionRequest() as request):
                    members = tuple(member for member, _ in request.new_isr)
                    epochs = request.leader_epoch, request.partition_epoch + 1
                    granted = AlterPartitionReply(request.correlation, Error.NONE, *epochs, members)
                    self.leader.receive(CONTROLLER, granted, self.now_ms)
                    # Granted before the leader does anything else, so no proposal is ever pending in these
                    # models.
                    self.propagator = self.propagator.changed(PARTITION, self.now_ms)
                case _:
                    pass

    def fetch(self, records: int) -> FetchReply:
        """Let the follower fetch, and the leader answer with at most this many records."""
        following = self.follower.state.following
        assert following is not None
        # A request in flight has a lost reply: another is sent after its timeout.
        lost = following.in_flight
        timer = Timer.SEND_FETCH if lost == -1 else Timer.FETCH_TIMEOUT
        (request,) = _messages(self.follower.fire(timer, max(lost, 0), self.now_ms), FetchRequest)
        # Records of the models are empty, so a limit of bytes is a number of records.
        request = replace(request, max_bytes=records * BATCH_OVERHEAD_BYTES)
        effects = self.leader.receive(FOLLOWER, request, self.now_ms)
        self.perform(effects)
        (reply,) = _messages(effects, FetchReply)
        return reply


class IsrTimingBinding(CopyingBinding[Pair]):
    """The spec's clock, and the behaviour of replog's brokers as it advances."""

    spec, model = "../../spec/isr_timing.spec", "one_batch_behind"
    smoke = (At("one_batch_behind", {"MaxTime": "2", "MaxOffset": "2"}),)
    gate = (
        At("one_batch_behind"),
        At("steady", {"MaxTime": "4", "MaxOffset": "4"}),
        At("returning", {"MaxTime": "4", "MaxOffset": "3"}),
        At("propagation_minute"),
    )
    controls = (
        BadSpec("the ISR is checked once a lag", "today", {"expiration_period": "2", **SMALL}),
        BadSpec("both conditions of a notification are needed", "propagation_minute",
                {"propagation_needs_both": "true"}),
        BadCode("a sign of life is enough", isr.note_fetch, "fetch_offset >= leader_leo:", "True:",
                "today", SMALL),
        BadCode("caught up is who fetches the end", isr.note_fetch, "remote.last_fetch_ms)",
                "remote.last_caught_up_ms)", "one_batch_behind"),
        BadCode("who is at the end is late", isr.is_caught_up, "remote.leo == state.log.leo or ", "",
                "today", SMALL),
        BadCode("returns below HW", isr.may_join, "remote.leo < state.log.hw", "False", "today", SMALL),
        BadCode("a lag between two checks", Replica.fire, "config.lag_ms // 2", "config.lag_ms",
                "today", SMALL),
        BadCode("quiet is not enough", Propagator.tick, "is_quiet or is_late", "is_late",
                "propagation_minute"),
        BadCode("churn is never reported", Propagator.tick, "is_quiet or is_late", "is_quiet",
                "propagation_minute"),
    )  # fmt: skip
    rules = TODAY

    def also_other(self) -> Iterator[str]:
        """A check of the ISR at other times than twice in the permitted lag."""
        if self.constants["lag_time_max"] != 2 * self.constants["expiration_period"]:
            yield "expiration_period"

    def start(self) -> Pair:
        """A leader that has received a fetch from its follower at time 0, which has nothing to fetch."""
        config = Config(lag_ms=self.constants["lag_time_max"] * TICK_MS, fetch_wait_ms=0)
        brokers = (Replica(ReplicaState(broker, PARTITION, config)) for broker in (LEADER, FOLLOWER))
        pair = Pair(*brokers, leo_at=dict.fromkeys(range(self.constants["MaxTime"] + 1), 0))
        pair.perform(pair.leader.start())
        is_member = self.constants["starts_in_isr"]
        isr_then = (LEADER, FOLLOWER) if is_member else (LEADER,)
        image = PartitionImage((LEADER, FOLLOWER), LEADER, 0, 0, isr_then)
        # Fenced while it fetches for the first time, or that fetch would bring it back at once.
        pair.apply(0, image, BrokerState.ACTIVE if is_member else BrokerState.FENCED)
        self._take(pair, pair.fetch(RECORDS[ALL]))
        pair.apply(1, image, BrokerState.ACTIVE)
        return pair

    @action("tick")
    def tick(self, pair: Pair) -> Answer:
        """A unit of time passes; the due tasks run, that of notifications first."""
        if pair.now_ms == self.constants["MaxTime"] * TICK_MS:
            return Impossible("no more time in this model")
        if self.constants["steady_follower"] and pair.leading.remotes[FOLLOWER].last_fetch_ms != pair.now_ms:
            return Impossible("a steady follower fetches first")
        pair.now_ms += TICK_MS
        pair.propagator, _ = pair.propagator.tick(pair.now_ms)
        # More than once in a unit, where the period of the check is shorter.
        while pair.check_due_ms <= pair.now_ms:
            pair.perform(pair.leader.fire(Timer.ISR_CHECK, 0, pair.now_ms))
        pair.leo_at[pair.now_ms // TICK_MS] = pair.leader.state.log.leo
        return Accepted()

    @action("produce")
    def produce(self, pair: Pair) -> Answer:
        """A producer that waits only for the leader."""
        if pair.leader.state.log.leo == self.constants["MaxOffset"]:
            return Impossible("no more records in this model")
        pair.perform(pair.leader.receive(CLIENT, ProduceRequest(1, Batch(0, -1, 1), 1, 1_000), pair.now_ms))
        return Accepted()

    @action("fetch", ways=(LOST, *RECORDS))
    def fetch(self, pair: Pair, way: str) -> Answer:
        """The follower fetches; the reply is lost, or contains any part of the remaining records."""
        steady = self.constants["steady_follower"]
        reply = pair.fetch(RECORDS[ALL if steady or way == LOST else way])
        if reply.error is not Error.NONE:
            return Refused(reply.error.name)
        if steady or way != LOST:
            self._take(pair, reply)
        return Accepted()

    def _take(self, pair: Pair, reply: FetchReply) -> None:
        pair.follower.receive(LEADER, reply, pair.now_ms)

    @action("isr_changes")
    def isr_changes(self, pair: Pair) -> Answer:
        """The ISR of another partition changes."""
        pair.propagator = pair.propagator.changed(OTHER, pair.now_ms)
        return Accepted()

    @project
    def state(self, pair: Pair) -> dict[str, Any]:
        """Offsets unchanged, times in units."""
        remote, log, sent = pair.leading.remotes[FOLLOWER], pair.leader.state.log, pair.propagator
        return {
            "now": _units(pair.now_ms), "leo": log.leo, "hw": log.hw,
            "follower_leo": pair.follower.state.log.leo, "in_isr": FOLLOWER in pair.leading.isr,
            "remote_leo": remote.leo, "last_fetch_time": _units(remote.last_fetch_ms),
            "last_fetch_leader_leo": remote.last_fetch_leader_leo,
            "last_caught_up": _units(remote.last_caught_up_ms),
            "change_pending": bool(sent.waiting), "last_change": _units(sent.last_change_ms),
            "last_propagation": _units(sent.last_sent_ms), "leo_at": pair.leo_at,
        }  # fmt: skip


def _units(moment_ms: int) -> int:
    if moment_ms % TICK_MS:
        raise OutsideSpec(f"something happened at {moment_ms} ms, between two units of time")
    return moment_ms // TICK_MS


def _messages(effects: list[Effect], kind: type[Any]) -> list[Any]:
    return [
        effect.message for effect in effects if isinstance(effect, Send) and isinstance(effect.message, kind)
    ]
