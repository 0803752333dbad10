"""A broker of requests.spec, with its timers, its disk, and its actions in the last step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from replog.core import messages
from replog.core.broker.replica import Replica
from replog.core.broker.state import Leading, ReplicaState
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
from replog.core.types import (
    NO_EPOCH,
    Batch,
    BrokerImage,
    BrokerState,
    Error,
    MetadataImage,
    PartitionImage,
)
from specchk.conform.contract.binding import (
    OutsideSpec,
)

BROKER, FOLLOWER, PRODUCER, READER, OTHER = 0, 1, -100, -101, -102
PARTITION, TICK_MS = "t-0", 1_000
SOURCES = MappingProxyType({"copier": FOLLOWER, "reader": READER, "other": OTHER})
WHO = MappingProxyType({number: who for who, number in SOURCES.items()})
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
    """A broker, its timers, its disk, the requests that it has not answered, and its last step.

    The replica of a copy is copied at its first event: most tries are impossible by its state.
    """

    _replica: Replica
    now_ms: int = 0
    alarms: list[tuple[int, Timer, int]] = field(default_factory=list)
    records: list[Batch] = field(default_factory=list)
    epochs: tuple[tuple[int, int], ...] = ((0, 0),)
    open: set[tuple[int, int]] = field(default_factory=set)
    requests: int = 0
    metadata: int = 0
    proposal: messages.AlterPartitionRequest | None = None
    out: tuple[Any, ...] = ()
    _has_own_replica: bool = True

    def copy(self) -> Server:
        """Return an independent copy."""
        # Spelled out: `replace` takes longer than all that is copied, and a server is copied for each probe.
        replica = self._replica.copy() if self._has_own_replica else self._replica
        return Server(
            replica, self.now_ms, self.alarms.copy(), self.records.copy(), self.epochs, self.open.copy(),
            self.requests, self.metadata, self.proposal, self.out, False,
        )  # fmt: skip

    @property
    def replica(self) -> Replica:
        """Return the replica, for handling events."""
        if not self._has_own_replica:
            self._replica = self._replica.copy()
            self._has_own_replica = True
        return self._replica

    @property
    def state(self) -> ReplicaState:
        """Return the replica's state, for reading."""
        return self._replica.state

    @property
    def leading(self) -> Leading | None:
        """Return its state as a leader, for reading."""
        return self._replica.state.leading

    def number(self, source: int) -> int:
        """Return the correlation of a new request."""
        number = self.unanswered()
        self.open.add((source, number))
        return number

    def unanswered(self) -> int:
        """Return the correlation of a new request that has no answer."""
        self.requests += 1
        return self.requests

    def receive(self, source: int, message: messages.Message) -> None:
        """Handle a message, and perform the effects."""
        self.perform(self.replica.receive(source, message, self.now_ms))

    def apply(self, isr_then: tuple[int, ...], leads: int, epoch: int, follower: BrokerState) -> None:
        """Make the broker apply changed metadata."""
        self.metadata += 1
        image = PartitionImage((BROKER, FOLLOWER), leads, epoch, self.metadata, isr_then)
        self._apply(image, follower)

    def apply_brokers(self, follower: BrokerState) -> None:
        """Make the broker apply metadata with new information only on the other broker."""
        state = self.state
        isr_then = () if state.leading is None else state.leading.isr
        self._apply(PartitionImage((BROKER, FOLLOWER), BROKER, state.leader_epoch, self.metadata, isr_then),
                    follower)  # fmt: skip

    def _apply(self, image: PartitionImage, follower: BrokerState) -> None:
        brokers = {BROKER: BrokerImage(1, BrokerState.ACTIVE), FOLLOWER: BrokerImage(2, follower)}
        metadata = MetadataImage(self.metadata, {PARTITION: image}, brokers)
        self.perform(self.replica.apply(metadata, 1, self.now_ms))

    def perform(self, effects: Iterable[Effect]) -> None:
        """Record the broker's actions, in order: its last step's."""
        seen = [self._meaning(effect) for effect in effects]
        self.out = tuple(one for one in seen if one is not None)

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
        if isinstance(message, messages.AlterPartitionRequest):
            self.proposal = message
            return ("Propose", {})
        if (to, message.correlation) not in self.open:
            raise OutsideSpec(f"an answer to no request of {to}: {message}")
        self.open.discard((to, message.correlation))
        error = ERRORS.get(message.error, message.error.name)
        match message:
            case messages.ProduceReply(base_offset=base):
                return ("Produced", {"error": error, "base": _known(base)})
            case messages.ListOffsetsReply(offset=offset):
                return ("Listed", {"error": error, "offset": _known(offset)})
            case messages.FetchReply(high_watermark=hw, batches=batches):
                records = sum(batch.count for batch in batches)
                return ("Fetched", {"who": WHO[to], "error": error, "hw": _known(hw), "records": records})
            case _:
                raise OutsideSpec(f"the broker sends {message}")

    def let_ring(self) -> None:
        """Fire the due timers, the earliest first, in the order in which they were set."""
        out: tuple[Any, ...] = ()
        for _ in range(100):
            due = [alarm for alarm in self.alarms if alarm[1] in WAITS and alarm[0] <= self.now_ms]
            if not due:
                self.out = out
                return
            self.ring(min(due, key=lambda alarm: alarm[0]))
            out += self.out
        raise OutsideSpec("timers ring without end")

    def ring(self, alarm: tuple[int, Timer, int]) -> None:
        """Fire a timer."""
        self.alarms.remove(alarm)
        _, timer, token = alarm
        self.perform(self.replica.fire(timer, token, self.now_ms))


def _known(offset: int) -> int:
    """Return an offset in the spec's form, 0 for none."""
    return max(offset, 0)
