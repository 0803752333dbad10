"""The common part of all tracings of replog: brokers, messages, leaders' clocks.

A message, identified in the specs by its content, is sent, counted, answered and accepted once each, in this
order; its sender's numbers increase.  A broker is a number in a recording, and a name in a spec.

Most events of a recording show what another one has shown, so everything built from its values is kept: calls
and sets of brokers.

The bounds that the recording's number of elections, crashes, ... requires of the model are counted
beforehand (`constants`), so no bound of the model is in the way.

Not here: what brokers show of themselves, and the events of one spec alone (`tracing`, `start_tracing`).
"""

from __future__ import annotations

import marshal
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, Call, ImpossibleEvent, SeenTogether, Tracing, Ways, event
from specchk.ir.program import Program

CONTROLLER = -1
MOST_KEPT = 1 << 12  # sets, calls and ways: many times those of recordings, whose sets have several orders
# For each bound of a model the events that use it up.
FAULTS = MappingProxyType({
    "MaxCrashes": ("crash", "power-loss"), "MaxPowerLosses": ("power-loss",), "MaxFences": ("fence",),
    "MaxShrinks": ("shrink",),
})  # fmt: skip
Field = tuple[str, str]  # a name, and an expression of the spec


def single(name: str, action: str, broker: str = "at") -> Any:
    """Return the method for an event that is one step of the broker in one of its fields."""

    @event(name)
    def method(tracing: ClusterTracing, found: Event) -> Call:
        return tracing.call(action, found[broker])

    return method


@lru_cache(MOST_KEPT)
def call_of(action: str, *arguments: Any) -> Call:
    """Return a step."""
    return Call(action, arguments)


@lru_cache(MOST_KEPT)
def with_or_without(passed: Call, *calls: Call) -> Ways:
    """Return the ways of steps before which time may have passed."""
    return Ways((calls, (passed, *calls)))


@lru_cache(maxsize=16)
def kept_sets(names: tuple[str, ...]) -> dict[bytes, frozenset[str]]:
    """The sets of brokers with these names, by the bytes of their numbers."""
    del names
    return {}


class ClusterTracing(Tracing, ABC):
    """Events of brokers that fetch, lead and answer; `stages` has the order of a message's events.

    `rooms` are the numbers to multiples of which bounds are rounded up, so that recordings share programs.
    """

    rooms: ClassVar[Mapping[str, int]]
    stages: ClassVar[Mapping[str, int]] = MappingProxyType({"fetch": 0, "serve": 1, "answer": 2, "apply": 3})

    def __init__(self, program: Program, recording: Recording) -> None:
        super().__init__(program, recording)
        self.names = program.sorts[0].members
        epochs = next(one.value for one in program.constants if one.name == "MaxEpoch")
        self.epochs = range(int(str(epochs)) + 1)
        self.taken = frozenset(e["message"] for e in recording.events if e["event"] == "apply")
        self._last: dict[str, str] = {}  # of each message, its last event
        self._numbers: dict[int, int] = {}
        self._others: dict[str, int] = {}  # of each message, the broker that is asked
        self._sets = kept_sets(self.names)

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        """The constants that the header determines, and bounds of elections, records and faults."""
        header, kinds = recording.header, [one["event"] for one in recording.events]
        shown = [one.get("after", {}) for one in recording.events]
        # Each change of the partition is an event of the controller; those that do not show it count as one.
        ruled = [one.get("after", {}) for one in recording.events if one["at"] == CONTROLLER]
        # A batch may have several records, as with producers of other clients.
        produced = sum(int(one.get("count", 1)) for one in recording.events if one["event"] == "produce")
        most = {name: sum(map(kinds.count, faults)) + 1 for name, faults in FAULTS.items()}
        most["MaxOffset"] = _most(shown, "leo") + produced
        for name, field in (("MaxEpoch", "epoch"), ("MaxVersion", "version")):
            most[name] = _most(shown, field) + sum(field not in one for one in ruled) + 1
        return {
            "Broker": str(header["brokers"]),
            "first_leader": f"b{int(header['first_leader']) + 1}",
            "one_record": "true",
            # At least one step: a recording without records has the room, and the program, of the others.
            **{name: str(max(-(-most[name] // step), 1) * step) for name, step in cls.rooms.items()},
        }

    def after(self, found: Event) -> SeenTogether:
        """The recorded state of brokers and the controller."""
        shown, seen = found.get("after"), list[tuple[Field, Any]]()
        if shown:
            seen += self.controller(shown) if found["at"] == CONTROLLER else self.broker(found, shown)
        elif shown is not None and found["at"] != CONTROLLER:
            seen.append((("status", f"status[{self.me(found)}]"), "down"))
        seen += self.message(found)
        return SeenTogether(tuple([field for field, _ in seen]), [value for _, value in seen])

    @abstractmethod
    def controller(self, shown: Mapping[str, Any]) -> Iterator[tuple[Field, Any]]:
        """The recorded state of the controller."""

    @abstractmethod
    def broker(self, found: Event, shown: Mapping[str, Any]) -> Iterator[tuple[Field, Any]]:
        """The recorded state of a running broker."""

    @abstractmethod
    def message(self, found: Event) -> Iterator[tuple[Field, Any]]:
        """The recorded content of a message that the event is about."""

    def name(self, number: Any) -> str:
        """Return a broker's name in the spec."""
        if not isinstance(number, int) or not 0 <= number < len(self.names):
            raise ImpossibleEvent(f"there is no broker {number!r}")
        return self.names[number]

    def me(self, found: Event) -> str:
        """The name of the broker that recorded an event."""
        return self.name(found["at"])

    def set_of(self, numbers: Iterable[Any]) -> frozenset[str]:
        """Return the names of some brokers."""
        # By their bytes, which differ where a number is a truth or a fraction.
        key = marshal.dumps(numbers, 2)
        known = self._sets.get(key)
        if known is None:
            if len(self._sets) == MOST_KEPT:
                self._sets.clear()
            known = self._sets[key] = frozenset(map(self.name, numbers))
        return known

    def call(self, action: str, *brokers: Any) -> Call:
        """Return a step of some brokers."""
        return call_of(action, *map(self.name, brokers))

    def gone(self, found: Event) -> list[str]:
        """The replicas that are to leave the ISR, all of which are late."""
        gone = [self.name(broker) for broker in found["gone"]]
        if not self.set_of(found.get("late", found["gone"])).issuperset(gone):
            raise ImpossibleEvent(f"of the replicas {found['gone']} only {found['late']} are late")
        return gone

    def in_time(self, found: Event, *calls: Call) -> Ways:
        """Steps of a leader, with or without the passage of time for its followers."""
        late = self.set_of(found["late"]) if "late" in found else ANY
        return with_or_without(call_of("pass_time", self.me(found), late), *calls)

    def stage(self, found: Event) -> None:
        """Check that a message passes through its stages in order, once, between its asker and one other."""
        message, stage = found["message"], self.stages[found["event"]]
        asker, number = map(int, message.split("/"))
        own, other = ("follower", "at") if stage in (1, 2) else ("at", "to" if stage == 0 else "source")
        if other in found and found[other] != self._others.setdefault(message, found[other]):
            raise ImpossibleEvent(f"the message {message} is between {asker} and {self._others[message]}")
        if found[own] != asker:
            raise ImpossibleEvent(f"the message {message} is not one of broker {found[own]}")
        if stage == 0:
            if number <= self._numbers.get(asker, 0):
                raise ImpossibleEvent(f"the message {message} is sent after {asker}/{self._numbers[asker]}")
            self._numbers[asker] = number
        last = self._last.get(message)
        before = -1 if last is None else self.stages[last]
        is_next = before in (1, 2) if stage == 3 else before == stage - 1
        if not is_next:
            when = "before it was sent" if last is None else f"after its `{last}`"
            raise ImpossibleEvent(f"the message {message} has its `{found['event']}` {when}")
        if stage in (1, 3) and number != self._numbers[asker]:  # an answer may also be for nobody
            raise ImpossibleEvent(f"the message {message} is not the last one of broker {asker}")
        self._last[message] = found["event"]

    @event("fetch")
    def fetch(self, found: Event) -> Call:
        """A request that is in the network."""
        self.stage(found)
        return self.call("send_fetch", found["at"])

    @event("serve")
    def serve(self, found: Event) -> Ways:
        """The leader accepts the request, or refuses it as out of range."""
        self.stage(found)
        return self.in_time(found, self.call("serve_fetch", found["at"], found["follower"]))

    @event("answer")
    def answer(self, found: Event) -> Ways:
        """A waiting fetch is answered; for nobody, if the follower never takes the answer."""
        self.stage(found)
        step = self.call("complete_fetch", found["at"], found["follower"])
        return Ways(((step,),) if found["message"] in self.taken else ((),))

    @event("apply")
    def apply(self, found: Event) -> Call:
        """The follower processes an answer."""
        self.stage(found)
        return self.call("apply_response", found["at"])

    elect = single("elect", "elect", "broker")  # as an operator wants
    unfence = single("unfence", "unfence_broker", "broker")
    register = single("register", "restart", "broker")  # a new incarnation is admitted
    checkpoint = single("checkpoint", "checkpoint_hw")
    crash = single("crash", "crash")

    def lost(self, found: Event) -> Call:
        """The silent step in which its sender's last message is lost."""
        return self.call("lose_fetch", found["at"])


def _most(shown: Iterable[Mapping[str, Any]], name: str) -> int:
    """The largest number that events record in a field."""
    return max([value for one in shown if isinstance(value := one.get(name), int)], default=0)
