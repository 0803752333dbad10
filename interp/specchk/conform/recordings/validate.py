"""Whether a recording is a behaviour of the spec: a candidate-set search, event by event.

The candidates are all states in which the spec can be after the events so far.  An event takes each
candidate by the actions it names, and keeps those states that agree with all it shows.  What is not
logged stays unknown: it is what candidates differ in.

Silent steps are first taken only if no candidate can continue: taken at every event they would
multiply the candidates.  That may choose wrongly: of two candidates one continues without a silent step,
and the other, which needs one, was the right one.  So a recording that is blocked in this way is
followed again with silent steps of every candidate at every event (`Haste.EAGER`), and only an event that
is not explained then is reported.  Both take at most `Tracing.most_silent` silent steps in a row.

A recording is accepted iff candidates are left after its last event, and after no event the model's
invariants are false in all of them.  Otherwise `blocked` is the
event, with the candidates before it (see `nearmiss` for the reasons).  If the
candidates are too many to be followed there is no verdict: `gave_up` has the reason.

A horizon is the end of a search, not of the spec: a recording that is blocked after steps beyond it were cut
off, or by a number beyond it, is explained again without horizons (`Explained.by`).  If it is still blocked,
and numbers up to a horizon were listed, it is followed with open ones (`open_states`); where those do not
decide there is no verdict.

Theory: trace validation as in Cirstea, Kuppe, Merz, "Validating Traces of Distributed Programs Against
TLA+ Specifications" (2024); theirs gives the question to a model checker, here only named successors
are computed, so the cost is that of the events and not of the spec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.compile.instantiate import Instance
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, BeyondBounds, Call, ImpossibleEvent, Meaning, Tracing
from specchk.conform.recordings.events import reading
from specchk.conform.recordings.events.fields import Compared, Fields
from specchk.conform.recordings.events.open_states import OpenFields, OpenSteps, closed_state
from specchk.conform.recordings.events.reading import Instances, ReadEvent, RepeatedInstances, SpecStep
from specchk.conform.recordings.events.steps import Horizons, NamedSteps, distinct
from specchk.ir.footprint import starts_list_horizon
from specchk.ir.types import Map
from specchk.meaning.paths import NotSymbolic
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State, Values, show

# Eight times what a campaign accepts (`MOST_AT_ONCE`): up to here a recording is explained to its end and its
# campaign is called vacuous, beyond that it is abandoned.
MOST_CANDIDATES = 4_096

BOUNDS = "a number above a horizon, which no event shows, may explain it; let `constants` give larger bounds"


class Haste(Enum):
    """When silent steps are taken: only if nothing else explains an event, or at every event."""

    LAZY = "lazy"
    EAGER = "eager"


class Waiting(NamedTuple):
    """Another writer's next line, where no order explains one; `after` is a place that it has to wait for."""

    event: Event
    meaning: Meaning | None
    after: str = ""


class Blocked(Struct, frozen=True):
    """The point at which a recording ceases to be a behaviour: the event, and the candidates before it."""

    number: int
    event: Event
    meaning: Meaning | None
    candidates: tuple[State, ...]
    reason: str = ""
    is_beyond: bool = False  # an argument or a field of the event is above a horizon
    invariant: str = ""  # one that is false after the event, in each of the candidates, which are then those
    others: tuple[Waiting, ...] = ()


class Explained(Struct):
    """The explained part of a recording, and its certainty: sizes of the candidate sets, silent steps.

    `acted` counts the events that no explanation treats as no step at all.  `is_idle` is whether silent
    steps alone explain the events; then the recording shows nothing.
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
    by: Validator | None = None


class TakenEvent(NamedTuple):
    """An event taken: the states after it, the silent steps before it, and the states where it was tried."""

    after: tuple[State, ...]
    silent: int
    tried: tuple[State, ...]


class Trail(Struct):
    """Results of one search kept for the next: the candidates around each event."""

    around: list[tuple[tuple[State, ...], tuple[State, ...]]] = field(default_factory=list)

    def after(self, number: int, before: tuple[State, ...]) -> tuple[State, ...] | None:
        """The candidates after an event without silent steps, if known; for most events they are the same."""
        if number > len(self.around) or self.around[number - 1][0] != before:
            return None
        return self.around[number - 1][1]


class TooMany(Exception):
    """The recording shows so little that there are too many candidates to follow."""


class Validator:
    """Explains recordings by one program; its compiled code is shared by all of them."""

    def __init__(self, instance: Instance, horizons: Horizons = Horizons.KEPT) -> None:
        self.instance = instance
        self.horizons = horizons
        self.program = instance.program
        self.steps: NamedSteps | OpenSteps
        if horizons is Horizons.OPEN:
            self.steps = OpenSteps(self.program)
            self.fields: Fields = OpenFields(instance, self.steps)
        else:
            self.steps = NamedSteps(self.program, horizons)
            self.fields = Fields(instance, horizons)
        self.initial = self.steps.initial()
        called = reading.CalledInstances(self.program, horizons)
        self.instances, self.step = called.of, called.step
        self.reader = reading.EventReader(called, self.fields)

    @cached_property
    def without_horizons(self) -> Validator:
        """A validator that takes the steps beyond horizons, too; its candidates are states."""
        return self if self.horizons is Horizons.LIFTED else Validator(self.instance, Horizons.LIFTED)

    @cached_property
    def with_open_numbers(self) -> Validator:
        """A validator for which a number that no event shows may be any; may raise `NotSymbolic`."""
        return Validator(self.instance, Horizons.OPEN)

    @property
    def closed(self) -> Validator:
        """The validator of the candidates in `Blocked`."""
        return self.without_horizons if self.horizons is Horizons.OPEN else self

    @cached_property
    def _invariants(self) -> list[tuple[str, Callable[[list[Any]], Any]]]:
        compiled = self.fields.make_evaluator().compile
        # A number that no event shows has no value.
        kept = () if self.horizons is Horizons.OPEN else self.program.invariants
        return [(prop.name, compiled(prop.body)) for prop in kept]

    def broken(self, states: Sequence[State]) -> str:
        """An invariant that is false in all of some states, or nothing."""
        for name, holds in self._invariants:
            if not any(_may_hold(holds, [*state, *state, *self._room]) for state in states):
                return name
        return ""

    @cached_property
    def _room(self) -> list[int]:
        """Room for the locals of any invariant."""
        return [0] * (max((prop.locals for prop in self.program.invariants), default=0) + 8)

    @cached_property
    def stepper(self) -> Stepper:
        """All steps of the program."""
        return Stepper(self.program)

    def explain(self, tracing: Tracing, recording: Recording) -> Explained:
        """Explain a recording, or the longest possible prefix of it."""
        cuts = self.steps.horizon_cuts
        explained = self._explained(tracing, recording)
        blocked = explained.blocked
        if blocked is None:
            return explained
        if blocked.is_beyond or (not blocked.reason and self.steps.horizon_cuts > cuts):
            explained = self.without_horizons._explained(tracing.again(), recording)
            blocked = explained.blocked
        # An event that the tracing refuses is refused in any state.
        if blocked is None or blocked.reason or blocked.invariant:
            return explained
        if not self._lists_horizon(tracing, recording, explained):
            return explained
        try:
            explained = self.with_open_numbers._explained(tracing.again(), recording)
        except NotSymbolic as error:
            explained.gave_up = f"event {blocked.number} ({blocked.event['event']}): {BOUNDS} ({error})"
            explained.blocked = None
        last = explained.blocked
        if last is not None:
            closed = tuple(map(closed_state, last.candidates))
            explained.blocked = replace(last, candidates=closed)
        return explained

    @staticmethod
    def _lists_horizon(tracing: Tracing, recording: Recording, explained: Explained) -> bool:
        """Whether the numbers up to a horizon were listed before a recording was blocked."""
        by, blocked = explained.by, explained.blocked
        assert by is not None
        assert blocked is not None
        called = by.reader.instances
        # First for all recordings so far, since only for few specs there are such calls.
        is_listed = called.lists_horizon or by.fields.lists_horizon or starts_list_horizon(by.program)
        return is_listed and reading.lists_horizon(by.fields, tracing, recording, blocked.number)

    def _explained(self, tracing: Tracing, recording: Recording) -> Explained:
        """As `explain`, by this validator."""
        trail = Trail()
        first = self.follow(tracing, recording, Haste.LAZY, trail)
        stopped = first.blocked
        # Silent steps do not change an event that the tracing itself refuses.
        if stopped is None or stopped.reason or not tracing.silent:
            return first
        # Read again, since few recordings are blocked, and all that events show would be kept of each.
        return self.follow(tracing.again(), recording, Haste.EAGER, trail)

    def follow(self, tracing: Tracing, recording: Recording, haste: Haste, trail: Trail) -> Explained:
        """Follow the candidates through a recording, of which the tracing has not read any event yet."""
        explained = Explained(by=self)
        candidates = idle = self.initial
        compared = Compared(explained.seen)
        costs = dict.fromkeys(self.initial, 0)
        events, is_lazy = self.reader.ahead(tracing, recording.events), haste is Haste.LAZY
        for number, event in enumerate(recording.events, 1):
            meaning: Meaning | None = None
            try:
                read = next(events)
                meaning = read.meaning
                if is_lazy:
                    after = self.taken(read, candidates)
                    trail.around.append((candidates, after))
                else:
                    known = trail.after(number, candidates)
                    after = self.taken(read, candidates) if known is None else known
                silent, tried = 0, candidates
                if not (after and is_lazy):
                    after, silent, tried = self.onward_from(tracing, read, candidates, haste, after)
                if idle:
                    idle = self._idle(tracing, read, idle)
            except ImpossibleEvent as error:
                is_beyond = isinstance(error, BeyondBounds)
                explained.blocked = Blocked(number, event, meaning, candidates, str(error), is_beyond)
                return explained
            except TooMany as error:
                explained.gave_up = f"event {number} ({event['event']}): {error}"
                return explained
            if not after:
                is_beyond = self._shows_beyond(read)
                explained.blocked = Blocked(number, event, meaning, tried, is_beyond=is_beyond)
                return explained
            candidates = after
            explained.consumed = number
            if not is_lazy:
                costs = self._costs(tracing, read, costs)
                explained.silent = min(costs.values())
            else:
                explained.silent += silent
            explained.acted += not read.may_be_no_step
            explained.is_idle = bool(idle)
            explained.total += len(candidates)
            explained.most = max(explained.most, len(candidates))
            if read.shown is not None:
                compared.add(read.shown[0], read.shown[2])
            if broken := self.broken(candidates):
                explained.blocked = Blocked(number, event, meaning, candidates, invariant=broken)
                return explained
        return explained

    @staticmethod
    def _shows_beyond(read: ReadEvent) -> bool:
        """Whether an event shows a number above a horizon, which no state of the model has."""
        if read.shown is None:
            return False
        together, _, values = read.shown
        shown = zip(together.expressions, values, strict=True)
        return any(expression.is_beyond(value) for expression, value in shown)

    def onward(
        self, tracing: Tracing, meaning: Meaning, before: tuple[State, ...], haste: Haste
    ) -> TakenEvent:
        """Process an event from the candidates before it; raises `TooMany` and `ImpossibleEvent`."""
        read = self.reader.read(meaning)
        return self.onward_from(tracing, read, before, haste, self.taken(read, before))

    def onward_from(
        self, tracing: Tracing, read: ReadEvent, before: tuple[State, ...], haste: Haste,
        after: tuple[State, ...],
    ) -> TakenEvent:  # fmt: skip
        """As `onward`, for an event that was read; `after` are the states without silent steps."""
        if not tracing.silent or (after and haste is Haste.LAZY):
            return TakenEvent(after, 0, before)
        depth_used = 0
        reached, known = after, before
        for depth, edge in enumerate(self.silently(tracing, read.meaning, before), 1):
            known += edge
            # Of the new states alone: those before were tried without, or with fewer, silent steps.
            more = self.taken(read, edge)
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
        """The states after one silent step, those after two and not fewer, and so on."""
        calls = meaning.near
        if calls is None:  # all silent actions, with open arguments
            params = {action.name: len(action.params) for action in self.program.actions}
            calls = [Call(name, (ANY,) * params[name]) for name in tracing.silent]
        known, edge = before, before
        for _ in range(tracing.most_silent):
            edge = distinct([state for call in calls for state in self.by_call(call, edge)], known)
            if not edge:
                return
            known += edge
            self.bounded(len(known))
            yield edge

    def _costs(self, tracing: Tracing, read: ReadEvent, costs: dict[State, int]) -> dict[State, int]:
        """The fewest silent steps to each state after an event, given those to each state before it."""
        least: dict[State, int] = {}
        for cost in sorted(set(costs.values())):
            edge = tuple(state for state, known in costs.items() if known == cost)
            for depth, states in enumerate([edge, *self.silently(tracing, read.meaning, edge)]):
                for after in self.taken(read, states):
                    least[after] = min(least.get(after, cost + depth), cost + depth)
        return least

    def _idle(self, tracing: Tracing, read: ReadEvent, idle: tuple[State, ...]) -> tuple[State, ...]:
        """The states reached by silent steps alone that an event without a step leaves unchanged."""
        if not read.may_be_no_step:
            return ()
        runs = self.silently(tracing, read.meaning, idle) if tracing.silent else ()
        try:
            states = dict.fromkeys([*idle, *(state for edge in runs for state in edge)])
        except TooMany:  # of a guard alone: until an event is a step, they are taken to explain it
            return idle
        return tuple(states if read.shown is None else self.fields.having(tuple(states), read.shown))

    def taken(self, read: ReadEvent, before: Sequence[State]) -> tuple[State, ...]:
        """The states after an event that agree with the recorded part; raises `TooMany`."""
        if read.refusal is not None:
            raise read.refusal
        states: list[State] = []
        for way in read.ways:
            states += self.by_way(way, before)
        reached = distinct(states) if len(states) > 1 else states
        # Before values are compared, which takes long.
        self.bounded(len(reached))
        return tuple(reached if read.shown is None else self.fields.having(reached, read.shown))

    @staticmethod
    def bounded(states: int) -> None:
        """Raise `TooMany` for more states than can be followed."""
        if states > MOST_CANDIDATES:
            raise TooMany(f"{states} states of the spec match so far; record more of the state")

    def by_way(self, way: Sequence[SpecStep], before: Sequence[State]) -> Sequence[State]:
        """The states after a sequence of steps."""
        for step in way:
            if not before:
                break
            if isinstance(step, RepeatedInstances):
                before = self.by_repeated(step, before)
            else:
                before = self.by_instances(step, before)
        return before

    def by_repeated(self, step: RepeatedInstances, before: Sequence[State]) -> tuple[State, ...]:
        """The states after each number of steps that an event may represent."""
        reached = {} if step.least else dict.fromkeys(before)
        edge: Sequence[State] = before
        for count in range(1, step.most + 1):
            edge = self.by_instances(step.instances, edge)
            if count >= step.least:
                # A state that fewer steps reach has been continued from.
                edge = [state for state in edge if state not in reached]
                reached.update(dict.fromkeys(edge))
                self.bounded(len(reached))
            if not edge:
                break
        return tuple(reached)

    def by_call(self, call: Call, before: Sequence[State]) -> Sequence[State]:
        """The successors by one call, each once; raises `ImpossibleEvent`."""
        return self.by_instances(self.instances(call), before)

    def by_instances(self, instances: Instances, before: Sequence[State]) -> Sequence[State]:
        """The successors by an action's instances, each once."""
        reached = self.steps.after(before, *instances)
        return distinct(reached) if len(reached) > 1 else reached

    @staticmethod
    def keys(kind: Map) -> list[str]:
        """The keys of a map as written in the spec, in the order of its values."""
        return [show(key, kind.key) for key in Values().values(kind.key)]


def _may_hold(holds: Callable[[list[Any]], Any], env: list[Any]) -> bool:
    """Whether a property holds in an environment, or has no value there."""
    try:
        return bool(holds(env))
    except Undefined:
        return True
