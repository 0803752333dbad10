"""fetcher.spec and replog: a follower's requests, its reactions to answers, and the order of its effects.

The system is a replica that follows, its timers, and its disk as its effects have made it.  Answers are made
up as the spec's parameters have them, with the number of the request in flight, or that of an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from replog.core.broker import follower
from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, FetchPhase, Following, ReplicaState
from replog.core.effects import (
    Append,
    Effect,
    Flush,
    Reset,
    Send,
    SetTimer,
    StoreEpochs,
    Timer,
    Truncate,
)
from replog.core.messages import (
    LATEST,
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
    Message,
)
from replog.core.types import (
    NO_EPOCH,
    NO_LEADER,
    Batch,
    BrokerImage,
    BrokerState,
    EpochEnd,
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
    action,
    project,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import CopyingBinding

BROKER, PARTITION, NOW_MS = 0, "t-0", 1_000_000
LEADERS = MappingProxyType({"first": 1, "second": 2})
NAMES = MappingProxyType({1: "first", 2: "second"})
PHASES = MappingProxyType({
    FetchPhase.FETCHING: "fetching", FetchPhase.ASKING_END: "wants_end",
    FetchPhase.ASKING_START: "wants_start",
})  # fmt: skip
ERRORS = MappingProxyType({
    "old_epoch": Error.FENCED_LEADER_EPOCH, "new_epoch": Error.UNKNOWN_LEADER_EPOCH,
    "not_leader": Error.NOT_LEADER_OR_FOLLOWER, "out_of_range": Error.OFFSET_OUT_OF_RANGE,
    "storage": Error.KAFKA_STORAGE_ERROR,
})  # fmt: skip
BROKERS = {broker: BrokerImage(broker + 1, BrokerState.ACTIVE) for broker in (BROKER, *NAMES)}
NOTHING = Impossible("no request is in flight in this phase")


@dataclass(slots=True)
class Disk:
    """The contents of the disk after the effects so far."""

    start: int = 0
    records: list[Batch] = field(default_factory=list)
    epochs: tuple[tuple[int, int], ...] = ()

    def copy(self) -> Disk:
        """Return an independent copy."""
        return Disk(self.start, self.records.copy(), self.epochs)


@dataclass(slots=True)
class Copier:
    """A follower at one moment; `shown` is the spec's ghost, the leader's HW in the last answer."""

    replica: Replica
    disk: Disk = field(default_factory=Disk)
    wakes: int = 0
    timeouts: frozenset[int] = frozenset()
    metadata: int = 0
    shown: int = 0
    failed_in: int | None = None
    out: tuple[Any, ...] = ()

    def copy(self) -> Copier:
        """Return an independent copy."""
        return Copier(
            self.replica.copy(), self.disk.copy(), self.wakes, self.timeouts, self.metadata, self.shown,
            self.failed_in, self.out,
        )  # fmt: skip

    @property
    def following(self) -> Following | None:
        """Return the fetcher."""
        return self.replica.state.following

    @property
    def phase(self) -> str:
        """Return the kind of its next request."""
        return "idle" if self.following is None else PHASES[self.following.phase]

    @property
    def in_flight(self) -> int:
        """Return the number of the request in flight, -1 if there is none."""
        return -1 if self.following is None else self.following.in_flight

    @property
    def asked(self) -> bool:
        """Return whether a request is in flight."""
        return self.in_flight != -1

    def apply(self, leader: int, epoch: int) -> None:
        """Make the broker apply metadata with this leader."""
        self.metadata += 1
        image = PartitionImage((1, 2, BROKER), leader, epoch, self.metadata, (1, 2))
        metadata = MetadataImage(self.metadata, {PARTITION: image}, BROKERS)
        self.perform(self.replica.apply(metadata, 1, NOW_MS))

    def fire(self, timer: Timer, token: int) -> None:
        """Let a timer ring."""
        self.perform(self.replica.fire(timer, token, NOW_MS))

    def receive(self, message: Message) -> None:
        """Handle an answer of the leader."""
        self.perform(self.replica.receive(self.replica.state.leader_id, message, NOW_MS))

    def perform(self, effects: Iterable[Effect]) -> None:
        """Perform the follower's effects, in order, and record the epoch in which the fetcher has stopped.

        The fetcher itself does not record that.
        """
        meanings = [self._performed(effect) for effect in effects]
        self.out = tuple(one for one in meanings if one is not None)
        if self.following is None or not self.following.has_failed:
            self.failed_in = None
        elif self.failed_in is None:
            self.failed_in = self.replica.state.leader_epoch

    def _performed(self, effect: Effect) -> Any:
        disk = self.disk
        match effect:
            case Append(batches=batches):
                disk.records.extend(batches)
                return ("Write", {"records": sum(batch.count for batch in batches)})
            case StoreEpochs(entries=entries):
                disk.epochs = entries
                return ("Note", {"entries": len(entries)})
            case Truncate(offset=offset):
                disk.records = [batch for batch in disk.records if batch.next_offset <= offset]
                return ("Cut", {"offset": offset})
            case Reset(offset=offset):
                disk.start, disk.records = offset, []
                return ("Reset", {"offset": offset})
            case Flush():
                return ("Flush", {})
            case SetTimer(timer=Timer.SEND_FETCH, delay_ms=delay_ms):
                self.wakes += 1
                return ("Wake", {"soon": delay_ms == 0})
            case SetTimer(timer=Timer.FETCH_TIMEOUT, token=token):
                self.timeouts = self.timeouts | {token}
                return None
            case Send(to=to, message=FetchRequest() as request):
                last = None if request.last_fetched_epoch == NO_EPOCH else request.last_fetched_epoch
                return ("Fetch", {"to": NAMES[to], "epoch": request.leader_epoch,
                                  "offset": request.fetch_offset, "last": last})  # fmt: skip
            case Send(to=to, message=ListOffsetsRequest() as request):
                return ("List", {"to": NAMES[to], "epoch": request.leader_epoch,
                                 "is_end": request.which == LATEST})  # fmt: skip
            case _:
                raise OutsideSpec(f"the follower does {effect}")


class FetcherBinding(CopyingBinding[Copier]):
    """Answers and metadata of any kind, and replog's reactions as a follower."""

    spec, model = "../../spec/fetcher.spec", "two_leaders"
    smoke = (At("two_leaders", {"MaxLeo": "1", "MaxEpoch": "0"}),)
    gate = (At("two_leaders"),)
    controls = (
        BadSpec("a fetcher outlives its epoch", "two_leaders", {"own_fetcher": "false"}),
        BadSpec("records before their epoch", "two_leaders", {"notes_first": "false"}),
        BadSpec("HW never descends", "two_leaders", {"hw_descends": "false"}),
        BadCode("a leader that is behind is given up", follower.on_error,
                "if error is Error.FENCED_LEADER_EPOCH", "if error is not Error.OFFSET_OUT_OF_RANGE",
                "two_leaders"),
        BadCode("two requests in flight", follower.send_request, "following.in_flight != -1 or ", "",
                "two_leaders"),
        BadCode("a timer of an answered request counts", follower.on_timeout,
                "following.in_flight == correlation", "True", "two_leaders"),
        BadCode("followers do not flush", follower.append, "flush_by_policy(state, out)", "pass",
                "two_leaders"),
        BadCode("entries outlive a cut", follower.truncate, "if also_cache and ", "if not cut and ",
                "two_leaders"),
        BadCode("nothing follows a late answer", follower.on_fetch_reply, "if following.in_flight == -1:",
                "if False:", "two_leaders"),
    )  # fmt: skip
    rules = MappingProxyType({"own_fetcher": True, "retries": True, "notes_first": True, "hw_descends": True})

    def start(self) -> Copier:
        """A follower of the first leader, with an empty log."""
        config = Config(flush_messages=int(self.constants["flushes"]))
        copier = Copier(Replica(ReplicaState(BROKER, PARTITION, config)))
        copier.apply(LEADERS["first"], 0)
        return copier

    @action("wake")
    def wake(self, copier: Copier) -> Answer:
        """A timer for the next request rings."""
        if not copier.wakes:
            return Impossible("no such timer is set")
        copier.wakes -= 1
        copier.fire(Timer.SEND_FETCH, 0)
        return Accepted()

    @action("time_out")
    def time_out(self, copier: Copier, is_current: bool) -> Answer:
        """The timer of the request in flight rings, or that of an earlier request."""
        if not is_current:
            # Numbers begin at 1, so this is none of the request in flight.
            copier.fire(Timer.FETCH_TIMEOUT, 0)
            return Accepted()
        if not copier.asked:
            return Impossible("no request is in flight")
        copier.fire(Timer.FETCH_TIMEOUT, copier.in_flight)
        return Accepted()

    @action("take_nothing")
    def take_nothing(self, copier: Copier, hw: int) -> Answer:
        """An answer without records."""
        return self._take(copier, (), hw)

    @action("take_records")
    def take_records(self, copier: Copier, epoch: int, records: int, hw: int) -> Answer:
        """An answer with records of one epoch."""
        return self._take(copier, (epoch,) * records, hw)

    @action("take_two_epochs")
    def take_two_epochs(self, copier: Copier, epoch: int, following: int, hw: int) -> Answer:
        """An answer with the last record of an epoch and the first of the next."""
        if epoch >= following:
            return Impossible("epochs follow each other")
        return self._take(copier, (epoch, following), hw)

    def _take(self, copier: Copier, epochs: tuple[int, ...], hw: int) -> Answer:
        log = copier.replica.state.log
        if not copier.asked or copier.phase != "fetching":
            return NOTHING
        of_log = [batch.epoch for batch in log.batches[-1:]]
        if log.leo + len(epochs) > self.constants["MaxLeo"] or copier.wakes == 2:
            return Impossible("no more records, or timers, in this model")
        if epochs and (epochs[-1] > copier.replica.state.leader_epoch or of_log > [epochs[0]]):
            return Impossible("no leader has such a log")
        copier.shown = hw
        batches = tuple(Batch(log.leo + number, epoch, 1) for number, epoch in enumerate(epochs))
        copier.receive(FetchReply(copier.in_flight, Error.NONE, hw, 0, batches))
        return Accepted()

    @action("take_gap")
    def take_gap(self, copier: Copier) -> Answer:
        """An answer with records from a later offset."""
        if not copier.asked or copier.phase != "fetching":
            return NOTHING
        if copier.wakes == 2:
            return Impossible("no more timers in this model")
        batch = Batch(copier.replica.state.log.leo + 1, 0, 1)
        copier.receive(FetchReply(copier.in_flight, Error.NONE, 0, 0, (batch,)))
        return Accepted()

    @action("take_stale")
    def take_stale(self, copier: Copier) -> Answer:
        """An answer to an earlier request, with a record."""
        if not copier.asked and (copier.phase == "idle" or copier.wakes == 2):
            return Impossible("no fetcher, or no more timers in this model")
        batch = Batch(copier.replica.state.log.leo, copier.replica.state.leader_epoch, 1)
        copier.receive(FetchReply(0, Error.NONE, self.constants["MaxLeo"], 0, (batch,)))
        return Accepted()

    @action("take_error")
    def take_error(self, copier: Copier, error: str) -> Answer:
        """An answer with an error."""
        is_fetch = copier.phase == "fetching"
        if not copier.asked or not (is_fetch or error != "out_of_range"):
            return NOTHING
        if copier.wakes == 2 and error != "old_epoch":
            return Impossible("no more timers in this model")
        number = copier.in_flight
        refusal = (
            FetchReply(number, ERRORS[error]) if is_fetch else ListOffsetsReply(number, ERRORS[error], -1)
        )
        copier.receive(refusal)
        return Accepted()

    @action("diverges")
    def diverges(self, copier: Copier, epoch: int, end: int) -> Answer:
        """An answer with the end of an epoch at the leader."""
        if not copier.asked or copier.phase != "fetching":
            return NOTHING
        if epoch not in dict(copier.replica.state.log.epochs.entries) or copier.wakes == 2:
            return Impossible("no such epoch, or no more timers in this model")
        reply = FetchReply(
            copier.in_flight, Error.NONE, self.constants["MaxLeo"], 0, (), EpochEnd(epoch, end)
        )
        copier.receive(reply)
        return Accepted()

    @action("listed")
    def listed(self, copier: Copier, offset: int) -> Answer:
        """An answer with one end of the leader's log."""
        if not copier.asked or copier.phase == "fetching":
            return NOTHING
        if copier.wakes == 2:
            return Impossible("no more timers in this model")
        copier.receive(ListOffsetsReply(copier.in_flight, Error.NONE, offset))
        return Accepted()

    @action("change_isr")
    def change_isr(self, copier: Copier) -> Answer:
        """Metadata arrives with another ISR."""
        copier.apply(copier.replica.state.leader_id, copier.replica.state.leader_epoch)
        return Accepted()

    @action("elect")
    def elect(self, copier: Copier, leader: str | None) -> Answer:
        """Metadata arrives with another epoch."""
        epoch = copier.replica.state.leader_epoch + 1
        if epoch > self.constants["MaxEpoch"] or (leader is not None and copier.wakes == 2):
            return Impossible("no more elections, or timers, in this model")
        copier.apply(NO_LEADER if leader is None else LEADERS[leader], epoch)
        return Accepted()

    @project
    def state(self, copier: Copier) -> dict[str, Any]:
        """The follower's state, and its last actions."""
        state, log, disk = copier.replica.state, copier.replica.state.log, copier.disk
        if (disk.start, disk.records, list(disk.epochs)) != (log.log_start, log.batches, log.epochs.entries):
            raise OutsideSpec("the disk has another log, or other epochs, than memory")
        if copier.asked and copier.in_flight not in copier.timeouts:
            raise OutsideSpec("a request has no timer")
        return {
            "epoch": state.leader_epoch,
            "leader": NAMES.get(state.leader_id),
            "phase": copier.phase,
            "asked": copier.asked,
            "failed": copier.failed_in,
            "wakes": copier.wakes,
            "start": log.log_start,
            "log": [batch.epoch for batch in log.batches],
            "hw": log.hw,
            "shown": copier.shown,
            "out": copier.out,
        }
