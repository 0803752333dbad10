"""Is a recording a behaviour of the spec?  Candidate-set search, event by event.

The candidates are all states in which the spec can be after the events so far.  An event takes each
candidate by the actions it names, and keeps those states that agree with all it shows.  What is not
logged stays unknown: it is what candidates differ in.

Silent steps are first taken only where no candidate can continue: taken at every event they would
multiply the candidates.  That may choose wrongly: of two candidates one continues without a silent step,
and the other, which needs one, was the right one.  So a recording that is blocked in this way is
followed once more with silent steps of every candidate at every event (`Haste.EAGER`), and only what that
search does not explain either is reported.  Both take at most `Tracing.most_silent` silent steps in a row.

A recording is accepted iff candidates are left after its last event.  Otherwise `blocked` says at
which event, with the candidates before it (see `nearmiss` for why each could not go on).  Where the
candidates are too many to be followed there is no verdict: `gave_up` has the reason.

Theory: trace validation as in Cirstea, Kuppe, Merz, "Validating Traces of Distributed Programs Against
TLA+ Specifications" (2024); theirs gives the question to a model checker, here only named successors
are computed, so the cost is that of the events and not of the spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import itemgetter
from typing import Any, NamedTuple

from specchk.compile.instantiate import Instance
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import (
    ANY,
    LASTING_ARGS,
    Call,
    ImpossibleEvent,
    Meaning,
    Repeated,
    Seen,
    TracedStep,
    Tracing,
)
from specchk.conform.contract.values import LASTING
from specchk.conform.recordings.called import CalledInstances
from specchk.conform.recordings.fields import Fields
from specchk.ir.types import Map
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Faulty, Stepper
from specchk.meaning.values import State, Values, show

# Eight times what a campaign accepts (`MOST_AT_ONCE`): up to here a recording is explained to its end and its
# campaign called vacuous, beyond it is given up.
MOST_CANDIDATES = 4_096
MOST_COMPARED = 8  # states that are compared in pairs
READ_AHEAD = 512  # events


_UNSEEN = object()
_VALUE = itemgetter(2)  # of a `Seen`


class Haste(Enum):
    """When silent steps are taken: where nothing else explains an event, or at every event."""

    LAZY = "lazy"
    EAGER = "eager"


@dataclass(frozen=True, slots=True)
class Blocked:
    """Where a recording stops being a behaviour: the event, and the candidates before it."""

    number: int
    event: Event
    meaning: Meaning | None
    candidates: tuple[State, ...]
    reason: str = ""


@dataclass(slots=True)
class Explained:
    """How far a recording was explained, and how surely: sizes of the candidate sets, silent steps.

    `acted` counts the events that no explanation takes for no step at all.  `is_idle` is whether silent
    steps alone explain the events; then the recording says nothing.
    """

    consumed: int = 0
    most: int = 1
    total: int = 0
    silent: int = 0
    acted: int = 0
    is_idle: bool = True
    gave_up: str = ""
    blocked: Blocked | None = None
    seen: dict[str, set[Any]] = field(default_factory=dict)


class TakenEvent(NamedTuple):
    """An event taken: the states after it, the silent steps before it, and the states it was tried in."""

    after: tuple[State, ...]
    silent: int
    tried: tuple[State, ...]


@dataclass(slots=True)
class Trail:
    """Results of a search for the next one: the candidates around each event."""

    around: list[tuple[tuple[State, ...], tuple[State, ...]]] = field(default_factory=list)

    def after(self, number: int, before: tuple[State, ...]) -> tuple[State, ...] | None:
        """The candidates after an event by no silent step, if known; for most events they are the same."""
        if number > len(self.around) or self.around[number - 1][0] != before:
            return None
        return self.around[number - 1][1]


class Compared:
    """Up to two texts of each field's values: enough to show that it is compared with what changes."""

    def __init__(self, seen: dict[str, set[Any]]) -> None:
        self._seen = seen
        self._first: dict[str, Any] = {}
        self._changing: set[str] = set()

    def add(self, seen: Sequence[Seen]) -> None:
        """Note what an event shows."""
        changing, firsts = self._changing, self._first
        for name, _, value in seen:
            if name in changing:
                continue
            first = firsts.get(name, _UNSEEN)
            # Most values are the first one again, and a text of them takes longer.
            if first is not value and (first.__class__ is not value.__class__ or first != value):
                firsts.setdefault(name, value)
                self._add(name, value)

    def _add(self, name: str, value: Any) -> None:
        values = self._seen.setdefault(name, set())
        values.add(repr(value))
        if len(values) > 1:
            self._changing.add(name)


class TooMany(Exception):
    """The recording shows so little that the candidates cannot be followed."""


def _meanings(tracing: Tracing, events: Sequence[Event]) -> Iterator[Meaning]:
    """The meaning of each event; raises what the tracing does, at the event for which it does."""
    # Some ahead: in turns with steps of the spec reading takes nearly twice as long, since the code of
    # neither stays in the processor's caches.
    read: list[Meaning] = []
    try:
        for event in events:
            meaning = tracing.meaning(event)
            read.append(meaning)
            if len(read) == READ_AHEAD or not _lasts(meaning):
                yield from read
                read.clear()
    except Exception:
        yield from read  # the events before it are explained first
        raise
    yield from read


def _lasts(meaning: Meaning) -> bool:
    """Whether a tracing that reads on cannot change a value of the meaning."""
    # In C as far as can be, since it is for each field of each event.
    if not LASTING.issuperset(map(type, map(_VALUE, meaning.seen))):
        return False
    for way in meaning.ways:
        for step in way:
            args = step.call.args if isinstance(step, Repeated) else step.args
            if not LASTING_ARGS.issuperset(map(type, args)):
                return False
    return True


def distinct(states: Sequence[State], known: Sequence[State] = ()) -> tuple[State, ...]:
    """The states that are not among those known, each once, in their order."""
    # Mostly there are one or two.  A hash reads hundreds of numbers, and is not kept; a comparison of two
    # states ends where they differ, and skips what they share.
    if len(states) + len(known) > MOST_COMPARED:
        others = dict.fromkeys(known)
        return tuple(dict.fromkeys(state for state in states if state not in others))
    kept: list[State] = []
    for state in states:
        if state not in kept and state not in known:
            kept.append(state)
    return tuple(kept)


class Uncounted(Stepper):
    """A stepper that counts no coverage in expressions, since a recording is not a search."""

    def make_evaluator(self) -> Evaluator:
        """The compiler of expressions."""
        return Evaluator(self.size)


class Validator:
    """Explains recordings by one program; its compiled code serves all of them."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.program = instance.program
        self.stepper = Uncounted(self.program)
        self.fields = Fields(instance)
        self.initial = tuple(initial_states(self.program))
        self.instances = CalledInstances(self.program).of

    def explain(self, tracing: Tracing, recording: Recording) -> Explained:
        """Explain a recording, or as long a prefix of it as can be."""
        trail = Trail()
        first = self.follow(tracing, recording, Haste.LAZY, trail)
        stopped = first.blocked
        # What a tracing refuses by itself, silent steps do not change.
        if stopped is None or stopped.reason or not tracing.silent:
            return first
        # Read again, since few recordings are blocked, and all that events show would be kept of each.
        return self.follow(tracing.again(), recording, Haste.EAGER, trail)

    def follow(self, tracing: Tracing, recording: Recording, haste: Haste, trail: Trail) -> Explained:
        """Follow the candidates through a recording, of which the tracing has read nothing yet."""
        explained = Explained()
        candidates = idle = self.initial
        compared = Compared(explained.seen)
        costs = dict.fromkeys(self.initial, 0)
        meanings = _meanings(tracing, recording.events)
        for number, event in enumerate(recording.events, 1):
            meaning: Meaning | None = None
            try:
                meaning = next(meanings)
                known = trail.after(number, candidates)
                onward = self.onward(tracing, meaning, candidates, haste, known)
                if haste is Haste.LAZY:
                    trail.around.append((candidates, () if onward.silent else onward.after))
                if idle:
                    idle = self._idle(tracing, meaning, idle)
            except ImpossibleEvent as error:
                explained.blocked = Blocked(number, event, meaning, candidates, str(error))
                return explained
            except TooMany as error:
                explained.gave_up = f"event {number} ({event['event']}): {error}"
                return explained
            if not onward.after:
                explained.blocked = Blocked(number, event, meaning, onward.tried)
                return explained
            candidates = onward.after
            explained.consumed = number
            if haste is Haste.EAGER:
                costs = self._costs(tracing, meaning, costs)
                explained.silent = min(costs.values())
            else:
                explained.silent += onward.silent
            explained.acted += not meaning.may_be_no_step
            explained.is_idle = bool(idle)
            explained.total += len(candidates)
            explained.most = max(explained.most, len(candidates))
            compared.add(meaning.seen)
        return explained

    def onward(
        self, tracing: Tracing, meaning: Meaning, before: tuple[State, ...], haste: Haste,
        after: tuple[State, ...] | None = None,
    ) -> TakenEvent:  # fmt: skip
        """Take an event from the candidates before it; `after` is by no silent step. Raises `TooMany`."""
        after = self.taken(meaning, before) if after is None else after
        if not tracing.silent or (after and haste is Haste.LAZY):
            return TakenEvent(after, 0, before)
        depth_used = 0
        reached, known = after, before
        for depth, edge in enumerate(self.silently(tracing, meaning, before), 1):
            known += edge
            # Of the new states alone: those before were tried without, or with fewer, silent steps.
            more = self.taken(meaning, edge)
            if more and not reached:
                depth_used = depth
            reached += distinct(more, reached)
            if reached and haste is Haste.LAZY:
                break
        self.bounded(len(reached))
        return TakenEvent(reached, depth_used, known)

    def silently(
        self, tracing: Tracing, meaning: Meaning, before: tuple[State, ...]
    ) -> Iterable[tuple[State, ...]]:
        """The states after one silent step, those after two and not after fewer, and so on."""
        calls = self._every_silent(tracing) if meaning.near is None else meaning.near
        known, edge = before, before
        for _ in range(tracing.most_silent):
            edge = distinct([state for call in calls for state in self.by_call(call, edge)], known)
            if not edge:
                return
            known += edge
            self.bounded(len(known))
            yield edge

    def _costs(self, tracing: Tracing, meaning: Meaning, costs: dict[State, int]) -> dict[State, int]:
        """The fewest silent steps that lead to each state after an event, by those to each before it."""
        least: dict[State, int] = {}
        for cost in sorted(set(costs.values())):
            edge = tuple(state for state, known in costs.items() if known == cost)
            for depth, states in enumerate([edge, *self.silently(tracing, meaning, edge)]):
                for after in self.taken(meaning, states):
                    least[after] = min(least.get(after, cost + depth), cost + depth)
        return least

    def _idle(self, tracing: Tracing, meaning: Meaning, idle: tuple[State, ...]) -> tuple[State, ...]:
        """Of the states that silent steps alone reach, those that an event without a step leaves."""
        if not meaning.may_be_no_step:
            return ()
        runs = self.silently(tracing, meaning, idle) if tracing.silent else ()
        try:
            states = dict.fromkeys([*idle, *(state for edge in runs for state in edge)])
        except TooMany:  # of a guard alone: until an event is a step, they are taken to explain it
            return idle
        return tuple(self.fields.agreeing(tuple(states), meaning.seen))

    def _every_silent(self, tracing: Tracing) -> tuple[Call, ...]:
        """All silent actions, with arguments unknown."""
        params = {action.name: len(action.params) for action in self.program.actions}
        return tuple(Call(name, (ANY,) * params[name]) for name in tracing.silent)

    def taken(self, meaning: Meaning, before: Sequence[State]) -> tuple[State, ...]:
        """The states after an event that agree with the recorded part; raises `TooMany`."""
        states: list[State] = []
        for way in meaning.ways:
            states += self.by_way(way, before)
        reached = distinct(states) if len(states) > 1 else states
        # Before what is seen is compared, which is what takes long.
        self.bounded(len(reached))
        return tuple(self.fields.agreeing(reached, meaning.seen))

    @staticmethod
    def bounded(states: int) -> None:
        """Raise `TooMany` for more states than are followed."""
        if states > MOST_CANDIDATES:
            raise TooMany(f"{states} states of the spec match so far; record more of the state")

    def by_way(self, way: Sequence[TracedStep], before: Sequence[State]) -> Sequence[State]:
        """The states after all steps of a way."""
        for step in way:
            before = (
                self.by_repeated(step, before) if isinstance(step, Repeated) else self.by_call(step, before)
            )
        return before

    def by_repeated(self, step: Repeated, before: Sequence[State]) -> tuple[State, ...]:
        """The states after each number of steps that an event may be."""
        reached = {} if step.least else dict.fromkeys(before)
        edge: Sequence[State] = before
        for count in range(1, step.most + 1):
            edge = self.by_call(step.call, edge)
            if count >= step.least:
                # A state that fewer steps reach has been continued from.
                edge = [state for state in edge if state not in reached]
                reached.update(dict.fromkeys(edge))
                self.bounded(len(reached))
            if not edge:
                break
        return tuple(reached)

    def by_call(self, call: Call, before: Iterable[State]) -> Sequence[State]:
        """The successors by one call, each once."""
        number, instances = self.instances(call)
        of_instance = self.stepper.of_instance
        reached: list[State] = []
        for state in before:
            for args in instances:
                try:
                    successors = of_instance(state, number, args)
                except Faulty:  # the spec has no meaning for this step here: it is not a step
                    continue
                for _, _, after in successors:
                    reached.append(after)
        return distinct(reached) if len(reached) > 1 else reached

    @staticmethod
    def keys(kind: Map) -> list[str]:
        """The keys of a map as the spec writes them, in the order of its values."""
        return [show(key, kind.key) for key in Values().values(kind.key)]
