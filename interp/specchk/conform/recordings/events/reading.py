"""Events as values of the spec: the possible instances of each, and its fields.

Some are read ahead: in turns with steps of the spec reading takes nearly twice as long, since the code of
neither stays in the processor's caches.

A horizon is where a search ends, and not the spec: a step that stores a larger number is a step.  Without
horizons (`events.steps.Horizons`) a recording is followed beyond them, except where all numbers up to one
are listed: as the value of an argument that is not recorded, in an action's statements, in an expression
that an event shows, or as an initial value.

Not here: the meaning of an event (`contract.tracing`), whether a state permits it and how (`validate`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from msgspec.structs import replace

from specchk.conform.contract.binding import BindingError, Mistake
from specchk.conform.contract.recording import Event, Recording, Unreadable
from specchk.conform.contract.tracing import (
    ANY,
    LASTING_ARGS,
    BeyondBounds,
    Call,
    ImpossibleEvent,
    Meaning,
    Repeated,
    TracedStep,
    Tracing,
    may_be_no_step,
)
from specchk.conform.contract.values import NotAValue, raw
from specchk.conform.recordings.events.fields import Fields, WantedValues
from specchk.conform.recordings.events.steps import Horizons
from specchk.ir.footprint import starts_list_horizon, statements_list_horizon
from specchk.ir.program import Action, Program
from specchk.ir.types import Type, has_horizon
from specchk.lang.text.diagnostics import SpecError, counted, nearest
from specchk.meaning.moves import outlines
from specchk.meaning.values import Values

READ_AHEAD = 512  # events
MOST_CALLS = 1024  # kept by their addresses: those of some recordings
Instances = tuple[int, list[tuple[Any, ...]]]  # the number of an action, and arguments
Ways = tuple[tuple[TracedStep, ...], ...]


class RepeatedInstances(NamedTuple):
    """The instances of a call that an event may represent repeatedly."""

    instances: Instances
    least: int
    most: int


SpecStep = Instances | RepeatedInstances
SpecWays = tuple[tuple[SpecStep, ...], ...]


class CalledInstances:
    """The instances of a program's actions, by call.

    `changing` counts the calls with arguments that may change; `lists_horizon` is whether the numbers up to
    a horizon were listed for some call.
    """

    def __init__(self, program: Program, horizons: Horizons = Horizons.KEPT) -> None:
        self.program = program
        self._horizons = horizons
        self._numbers = {action.name: number for number, action in enumerate(program.actions)}
        values = Values()
        self._domains = [
            [outlines(p.type) if self._is_open(p.type) else values.values(p.type) for p in action.params]
            for action in program.actions
        ]  # fmt: skip
        self._known: dict[tuple[str, str], Instances] = {}
        self._same: dict[int, tuple[Call, Instances]] = {}
        self._ways: dict[int, tuple[object, tuple[SpecWays, bool]]] = {}
        self.changing = 0
        self.lists_horizon = False

    def of_ways(self, ways: Ways) -> tuple[SpecWays, bool]:
        """The instances of each way, and whether some way takes no step; raises `ImpossibleEvent`."""
        # As calls are: a tracing may give the same ways for many events, or the same call.
        is_call = len(ways) == 1 and len(ways[0]) == 1 and ways[0][0].__class__ is Call
        given = ways[0][0] if is_call else ways
        known = self._ways.get(id(given))
        if known is None:
            changing = self.changing
            known = given, (tuple([tuple(map(self.step, way)) for way in ways]), may_be_no_step(ways))
            if changing == self.changing:
                if len(self._ways) == MOST_CALLS:
                    self._ways.clear()
                # With the object itself, so that no other gets its address.
                self._ways[id(given)] = known
        return known[1]

    def step(self, step: TracedStep) -> SpecStep:
        """The instances of a step."""
        if isinstance(step, Repeated):
            return RepeatedInstances(self.of(step.call), step.least, step.most)
        return self.of(step)

    def of(self, call: Call) -> Instances:
        """The number of an action, and all possible arguments of a call; raises `ImpossibleEvent`."""
        # A tracing may give the same call for many events.
        known = self._same.get(id(call))
        if known is None:
            known = call, self._equal(call)
            if LASTING_ARGS.issuperset([arg.__class__ for arg in call.args]):
                if len(self._same) == MOST_CALLS:
                    self._same.clear()
                self._same[id(call)] = known
            else:
                self.changing += 1
        return known[1]

    def _equal(self, call: Call) -> Instances:
        # By the text of the arguments, which has their types (True is 1) and exists where a hash does not.
        key = call.action, repr(call.args)
        if key not in self._known:
            self._known[key] = self._every(call)
        return self._known[key]

    def _every(self, call: Call) -> Instances:
        number = self._numbers.get(call.action)
        if number is None:
            hint = nearest(call.action, self._numbers) or "see the actions of the spec"
            raise BindingError((Mistake(f"the spec has no action `{call.action}`", hint),))
        params, domains = self.program.actions[number].params, self._domains[number]
        if len(params) != len(call.args):
            takes = f"`{call.action}` takes {counted(len(params))}, not {len(call.args)}"
            hint = f"give ({', '.join(param.name for param in params)}), or `ANY` for what is not logged"
            raise BindingError((Mistake(takes, hint),))
        self.lists_horizon |= call_lists_horizon(self.program.actions[number], call)
        choices: list[Sequence[Any]] = []
        for arg, param, domain in zip(call.args, params, domains, strict=True):
            if arg is ANY:
                choices.append(domain)
                continue
            try:
                value = raw(arg, self._horizons.of_type(param.type))
            except NotAValue as error:
                if error.is_name:
                    hint = "give it a name of the spec in `names`, or a larger sort in `constants`"
                    raise Unreadable(f"{call}: {error}; {hint}") from None
                refusal = BeyondBounds if error.is_beyond else ImpossibleEvent
                raise refusal(f"{call}: {error}") from None
            is_value = self._is_open(param.type) or value in domain or _is_beyond(arg, param.type)
            choices.append((value,) if is_value else ())
        return number, list(product(*choices))

    def _is_open(self, kind: Type) -> bool:
        """Whether values of a type that are not recorded have open numbers, which are None in them."""
        return self._horizons is Horizons.OPEN and has_horizon(kind)


def _is_beyond(arg: Any, kind: Type) -> bool:
    """Whether a value has a number above a horizon of its type, where such values are read."""
    try:
        raw(arg, kind)
    except NotAValue as error:
        return error.is_beyond
    return False


class ReadEvent(NamedTuple):
    """A meaning, also as values of the spec; `refusal` if the spec lacks an action or argument of it.

    `lasts` is whether a tracing that reads on cannot change a value of the meaning.
    """

    meaning: Meaning
    ways: SpecWays
    may_be_no_step: bool
    shown: WantedValues | None
    lasts: bool
    refusal: ImpossibleEvent | None = None


class EventReader:
    """Reads events for one program."""

    def __init__(self, instances: CalledInstances, fields: Fields) -> None:
        self.instances, self.fields = instances, fields

    def read(self, meaning: Meaning) -> ReadEvent:
        """A meaning as values of the spec; raises `SpecError` for a field that is not a valid expression."""
        instances, fields = self.instances, self.fields
        changing = instances.changing + fields.changing
        try:
            ways, may_be_no_step = instances.of_ways(meaning.ways)
        except ImpossibleEvent as error:
            return ReadEvent(meaning, (), False, None, False, error)
        shown = fields.wanted(meaning.seen) if meaning.seen else None
        lasts = changing == instances.changing + fields.changing
        return ReadEvent(meaning, ways, may_be_no_step, shown, lasts)

    def of(self, tracing: Tracing, event: Event) -> ReadEvent:
        """An event as values of the spec; raises `Unreadable` and `BindingError` with its place."""
        meaning = tracing.meaning(event)
        try:
            return self.read(meaning)
        except Unreadable as error:
            raise Unreadable(f"{tracing.place(event)}: {error}") from None
        except BindingError as error:
            wrong = [replace(mistake, at=tracing.place(event)) for mistake in error.mistakes]
            raise BindingError(tuple(wrong)) from None
        except SpecError as error:
            place, one = tracing.place(event), error.diagnostics[0]
            message = f"{one.message}, in `{one.span.source.text if one.span else ''}`"
            raise BindingError((Mistake(message, one.hint or "see the spec", place),)) from None

    def ahead(self, tracing: Tracing, events: Sequence[Event]) -> Iterator[ReadEvent]:
        """Each event, read ahead; an exception of the tracing is raised at its event."""
        ahead: list[ReadEvent] = []
        try:
            for event in events:
                read = self.of(tracing, event)
                ahead.append(read)
                if not read.lasts or len(ahead) == READ_AHEAD:
                    yield from ahead
                    ahead.clear()
        except Exception:
            yield from ahead  # the events before it are explained first
            raise
        yield from ahead


def lists_horizon(fields: Fields, tracing: Tracing, recording: Recording, number: int) -> bool:
    """Whether the numbers up to a horizon are listed for the first events, or for a silent action."""
    program, reader = fields.instance.program, tracing.again()
    meanings = [reader.meaning(event) for event in recording.events[:number]]
    shown = {one.expression for meaning in meanings for one in meaning.seen}
    actions = {action.name: action for action in program.actions}
    return (
        starts_list_horizon(program)
        or any(call_lists_horizon(actions[call.action], call) for call in _calls(program, tracing, meanings))
        or any(fields.expression(text).lists_horizon for text in shown)
    )


def call_lists_horizon(action: Action, call: Call) -> bool:
    """Whether the numbers up to a horizon are listed for a call of an action."""
    args = zip(call.args, action.params, strict=True)
    return any(arg is ANY and has_horizon(p.type) for arg, p in args) or statements_list_horizon(action)


def _calls(program: Program, tracing: Tracing, meanings: list[Meaning]) -> Iterator[Call]:
    for meaning in meanings:
        for step in (step for way in meaning.ways for step in way):
            yield step.call if isinstance(step, Repeated) else step
        yield from meaning.near or ()
    for action in program.actions:
        if action.name in tracing.silent:
            yield Call(action.name, (ANY,) * len(action.params))
