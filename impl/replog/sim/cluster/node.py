"""The parts of a world: machines, events for them, counts, and interfaces of network and clients.

Not here: when each item happens (`world`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from replog.core.broker.broker import Broker
from replog.core.effects import Effect, Event, Fired, Received, Timer, TimerOf
from replog.core.messages import Message
from replog.sim.cluster.storage import Storage


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message in flight; it is lost if `incarnation` of the receiver has ended."""

    source: int
    to: int
    message: Message
    incarnation: int


@dataclass(frozen=True, slots=True)
class Alarm:
    """A timer that will fire at `owner`, if its `incarnation` still lives."""

    owner: int
    timer: Timer
    token: int
    incarnation: int
    partition: str = ""
    """Of several partitions the one that set it."""


@dataclass(frozen=True, slots=True)
class Call:
    """An action that the runner has scheduled: a fault, the end of one, a client's next request."""

    action: Callable[[], None]


Item = Delivery | Alarm | Call


@dataclass(slots=True)
class Node:
    """One machine: its disk, its clock, and a broker process if one runs."""

    broker_id: int
    storage: Storage
    broker: Broker | None = None
    incarnation: int = 0
    clock_offset_ms: int = 0
    effects_left: int = -1
    held: list[Item] | None = None


@dataclass(slots=True)
class Counters:
    """Counts of a world's events, by kind; no event depends on them.

    `truncations` are those of a file, `stops` the clean ones.
    """

    steps: int = 0
    lost: int = 0
    crashes: int = 0
    crashes_mid_effects: int = 0
    stops: int = 0
    disk_failures: int = 0
    truncations: int = 0


def event_of(item: Delivery | Alarm) -> Event:
    """Return the event of an item for a core."""
    if isinstance(item, Delivery):
        return Received(item.source, item.message)
    fired = Fired(item.timer, item.token)
    return TimerOf(item.partition, fired) if item.partition else fired


class Client(Protocol):
    """A producer or consumer: handles a reply, returns effects like a core."""

    def receive(self, message: Message, now_ms: int) -> list[Effect]:
        """Process a reply."""

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        """Process an alarm."""


class Network:
    """The arrival times of the copies of a message: a perfect network, and the interface of others."""

    def delays(self, source: int, to: int, message: Message) -> Iterable[int]:
        """Return the delay in milliseconds of every copy that arrives; none if the message is lost."""
        del source, to, message
        return (0,)
