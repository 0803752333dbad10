"""Is a recording a behaviour of the spec?  Candidate-set search, event by event.

The candidates are all states in which the spec can be after the events so far.  An event takes each
candidate by the actions it names, and keeps those states that agree with all it shows.  Silent steps
are taken only where no candidate can go on: first none, then one before the event, then two, ...; so
they have to be ones that can wait until they are needed (a message is lost at any time before the next
one is sent).  What is not logged stays unknown: it is what candidates differ in.

A recording is accepted iff candidates are left after its last event.  Otherwise `blocked` says at
which event, with the candidates before it (see `nearmiss` for why each could not go on).

Theory: trace validation as in Cirstea, Kuppe, Merz, "Validating Traces of Distributed Programs Against
TLA+ Specifications" (2024); theirs gives the question to a model checker, here only named successors
are computed, so the cost is that of the events and not of the spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from specchk.compile.instantiate import Instance
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, Call, ImpossibleEvent, Meaning, Seen, Tracing
from specchk.conform.contract.values import NotAValue, raw
from specchk.ir.types import Map, Type
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Faulty, Stepper
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State, Values, show

# Each step more multiplies the candidates by all instances of the silent actions.
MOST_SILENT = 3
# Eight times what a campaign accepts (`MOST_AT_ONCE`): up to here a recording is explained to its end and its
# campaign called vacuous, beyond it is given up.
MOST_CANDIDATES = 4_096


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
    """How far a recording was explained, and how surely: sizes of the candidate sets, silent steps."""

    consumed: int = 0
    most: int = 1
    total: int = 0
    silent: int = 0
    blocked: Blocked | None = None
    seen: dict[str, set[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Watched:
    """A compiled expression of the spec."""

    locals: int
    type: Type
    evaluate: Any


class TooMany(Exception):
    """The recording shows so little that the candidates cannot be followed."""


class Validator:
    """Explains recordings by one program; its compiled code serves all of them."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.program = instance.program
        self.stepper = Stepper(self.program)
        self.evaluator = Evaluator(len(self.program.variables))
        self.initial = tuple(initial_states(self.program))
        self._numbers = {action.name: number for number, action in enumerate(self.program.actions)}
        values = Values()
        self._domains = [[values.values(p.type) for p in action.params] for action in self.program.actions]
        self._watched: dict[str, Watched] = {}
        self._raw: dict[tuple[str, str], Any] = {}

    def explain(self, tracing: Tracing, recording: Recording) -> Explained:
        """Explain a recording, or as long a prefix of it as can be."""
        explained = Explained()
        candidates: tuple[State, ...] = self.initial
        everywhere = self.every_silent(tracing)
        for number, event in enumerate(recording.events, 1):
            meaning: Meaning | None = None
            try:
                meaning = tracing.meaning(event)
                after, silent, known = self._onward(tracing, event, meaning, candidates, everywhere)
            except (ImpossibleEvent, TooMany) as error:
                explained.blocked = Blocked(number, event, meaning, candidates, str(error))
                return explained
            if not after:
                explained.blocked = Blocked(number, event, meaning, known)
                return explained
            candidates = after
            explained.consumed = number
            explained.silent += silent
            explained.total += len(after)
            explained.most = max(explained.most, len(after))
            for seen in meaning.seen:
                explained.seen.setdefault(seen.field, set()).add(repr(seen.value))
        return explained

    def _onward(
        self, tracing: Tracing, event: Event, meaning: Meaning, before: tuple[State, ...],
        everywhere: Sequence[Call],
    ) -> tuple[tuple[State, ...], int, tuple[State, ...]]:  # fmt: skip
        """The candidates after an event, the number of silent steps before it, and the states tried."""
        # First without any: an event is explained by as few silent steps as possible.
        after = self.taken(meaning, before)
        # Silent steps only where no candidate takes the event: taken at every event, they would multiply
        # the candidates until the spec could be anywhere, which agrees with anything.
        if after or not tracing.silent:
            return after, 0, before
        near = tracing.near(event)
        calls = everywhere if near is None else near
        known, edge = dict.fromkeys(before), before
        for depth in range(1, MOST_SILENT + 1):
            # Only states that no shorter run of silent steps reaches: the search is breadth first, so runs
            # are shortest.
            edge = tuple(s for call in calls for s in self.by_call(call, edge) if s not in known)
            known.update(dict.fromkeys(edge))
            # Of the new states alone: those before were tried without, or with fewer, silent steps.
            after = self.taken(meaning, tuple(dict.fromkeys(edge)))
            if after or not edge:
                return after, depth, tuple(known)
        return (), 0, tuple(known)

    def every_silent(self, tracing: Tracing) -> tuple[Call, ...]:
        """All silent actions, with arguments unknown."""
        params = {action.name: len(action.params) for action in self.program.actions}
        return tuple(Call(name, (ANY,) * params[name]) for name in tracing.silent)

    def taken(self, meaning: Meaning, before: Sequence[State]) -> tuple[State, ...]:
        """The states after an event that agree with the recorded part."""
        reached: dict[State, None] = {}
        for way in meaning.ways:
            states: Iterable[State] = before
            for call in way:
                states = self.by_call(call, states)
            reached.update(dict.fromkeys(states))
        # Before what is seen is compared, which is what takes long.
        if len(reached) > MOST_CANDIDATES:
            raise TooMany(f"{len(reached)} states of the spec match so far; record more of the state")
        return tuple(state for state in reached if self.agrees(state, meaning.seen))

    def by_call(self, call: Call, before: Iterable[State]) -> tuple[State, ...]:
        """The successors by one call, each once."""
        number, instances = self.instances(call)
        of_action = self.stepper.of_action
        reached: dict[State, None] = {}
        for state in before:
            for args in instances:
                try:
                    reached.update(dict.fromkeys(after for _, _, after in of_action(state, number, args)))
                except Faulty:  # the spec has no meaning for this step here: it is not a step
                    continue
        return tuple(reached)

    def instances(self, call: Call) -> tuple[int, list[tuple[Any, ...]]]:
        """An action's number, and all arguments that a call may have; none if one is not a value."""
        number = self._numbers.get(call.action)
        if number is None:
            raise ImpossibleEvent(f"the spec has no action `{call.action}`")
        params, domains = self.program.actions[number].params, self._domains[number]
        if len(params) != len(call.args):
            raise ImpossibleEvent(f"`{call.action}` takes {len(params)} arguments, not {len(call.args)}")
        choices: list[Sequence[Any]] = []
        for arg, param, domain in zip(call.args, params, domains, strict=True):
            try:
                choices.append(domain if arg is ANY else (raw(arg, param.type),))
            except NotAValue as error:
                raise ImpossibleEvent(f"{call}: {error}") from None
        return number, list(product(*choices))

    @staticmethod
    def keys(kind: Map) -> list[str]:
        """The keys of a map as the spec writes them, in the order of its values."""
        return [show(key, kind.key) for key in Values().values(kind.key)]

    def agrees(self, state: State, seen: Sequence[Seen]) -> bool:
        """Whether a state is as an event shows it."""
        # The state twice, since a compiled expression has the values after a step behind those before it, and
        # its locals behind both; room for more of these is made on demand.
        env: list[Any] = [*state, *state, *([0] * 32)]
        return all(self.wanted(one) == self.shown(one, env) for one in seen)

    def shown(self, seen: Seen, env: list[Any]) -> Any:
        """The spec's value of a recorded field; None where it is undefined."""
        watched = self.watch(seen.expression)
        if len(env) < 2 * len(self.program.variables) + watched.locals + 1:
            env.extend([0] * watched.locals)
        try:
            return watched.evaluate(env)
        except Undefined:
            return None

    def wanted(self, seen: Seen) -> Any:
        """The value of the spec that was seen; an exception's text, equal to no value, if it is none."""
        key = (seen.expression, repr(seen.value))
        if key not in self._raw:
            try:
                self._raw[key] = raw(seen.value, self.watch(seen.expression).type)
            except NotAValue as error:
                # A text is equal to no value of a spec, so a field with no value of its type never agrees.
                self._raw[key] = str(error)
        return self._raw[key]

    def watch(self, text: str) -> Watched:
        """An expression of the spec, compiled once; a `SpecError` if it is none."""
        if text not in self._watched:
            body, locals_ = self.instance.expression(text)
            self._watched[text] = Watched(locals_, body.type, self.evaluator.compile(body))
        return self._watched[text]
