"""Interactive walks through a state space: a path of choices, and the possible steps at its end.

A path is a list of numbers: which initial state, then which of the enabled steps, as `enabled`
lists them.  It is the complete position, so it can be a link.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk.compile.instantiate import Instance
from specchk.explore.conditions import bare
from specchk.ir.nodes import And, Apply
from specchk.ir.ops import Op
from specchk.ir.program import Program, Property, Refinement
from specchk.ir.types import Bool
from specchk.meaning.deadlock import Ends
from specchk.meaning.explain import Blame
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.search.refined import with_abstract_step
from specchk.search.verdict import Step, Trace, Violation, violations_of

DEADLOCK = "deadlock"


class NoSuchPath(Exception):
    """A number in a path does not denote an initial state or an enabled step."""


class Position(Struct, frozen=True):
    """The end of a path: the trace, the steps enabled there, and the properties that fail there."""

    path: tuple[int, ...]
    trace: Trace
    enabled: tuple[Step, ...]
    failed: tuple[tuple[str, str, Blame], ...]  # name, kind, why
    fault: Violation | None  # an action that is undefined here


class NoStart(Exception):
    """There is no state from which to start; the text gives the reason."""


class Walker:
    """Follows paths through the states of an instance; `stepper` is one of its own program by default."""

    def __init__(self, instance: Instance, stepper: Stepper | None = None) -> None:
        self.instance = instance
        self.program = instance.program
        self._stepper = stepper if stepper is not None else Stepper(self.program)
        self._properties = Properties(self.program, self._stepper)
        self._ends = Ends(self.program, self._stepper, self._properties)
        self.initial = initial_states(self.program)

    def at(self, path: Sequence[int]) -> Position:
        """The position at the end of a path; raises `NoSuchPath`."""
        if not path or not 0 <= path[0] < len(self.initial):
            raise NoSuchPath
        trace = Trace(self.initial[path[0]], ())
        for choice in path[1:]:
            try:
                steps = self.enabled(trace.last)
            except Faulty:
                raise NoSuchPath from None
            if not 0 <= choice < len(steps):
                raise NoSuchPath
            trace = trace.then(steps[choice])
        return self._position(tuple(path), trace)

    def _position(self, path: tuple[int, ...], trace: Trace) -> Position:
        state = trace.last
        checks = [(self._properties.environment(state), self._properties.invariants)]
        if trace.steps:
            pair = self._properties.environment(trace.states[-2], state)
            checks.append((pair, self._properties.steps))
        failed = [
            (p.name, kind, blame) for check in checks for p, kind, blame in self._properties.failed(*check)
        ]
        try:
            return Position(path, trace, tuple(self.enabled(state)), tuple(failed), None)
        except Faulty as fault:
            action = self.program.actions[fault.action].name
            blame = Blame.of(fault.undefined)
            return Position(path, trace, (), tuple(failed), Violation("undefined", action, trace, blame))

    def enabled(self, state: State) -> list[Step]:
        """The steps enabled in a state, each once, in the order of actions; raises `Faulty`."""
        # A choice that leads to the same state twice is one step; numbers of a path count steps, not
        # choices.
        return list(dict.fromkeys(Step.of(self.program, *one) for one in self._stepper.successors(state)))

    def find(self, name: str, seconds: float) -> Trace | None:
        """A shortest trace to a witness, or to a violation of a property, if found within a time limit."""
        program = with_only(self.program, name)
        if program is None:
            return None
        outcome = search(program, Options(Budget(max_seconds=seconds), symmetry=False))
        violations = violations_of(outcome.verdict)
        return next((violation.trace for violation in violations if violation.name == name), None)

    def follow(
        self, states: Sequence[State], labels: Sequence[tuple[str | None, tuple[str, ...]]],
        loop: int | None = None,
    ) -> Trace:  # fmt: skip
        """The trace through given states, each step checked; raises `NoSuchPath` with the place.

        `labels` names for each state the action and arguments that led there, where they are known; `loop` is
        the number of the state that the last one is again.  A step without a label that changes nothing, and
        that no action takes, stutters: it is left out.
        """
        if states[0] not in self.initial:
            raise NoSuchPath("its first state is not an initial state")
        trace, places = Trace(states[0], ()), [0]
        for number, (wanted, (action, args)) in enumerate(zip(states[1:], labels[1:], strict=True), 1):
            is_stuttering = wanted == trace.last and action is None
            try:
                steps = [step for step in self.enabled(trace.last) if step.state == wanted]
            except Faulty as fault:
                if not is_stuttering:
                    raise NoSuchPath(f"state {number - 1} has no successors: {fault}") from None
                steps = []
            labelled = [
                step for step in steps if action in (None, step.action) and (not args or args == step.args)
            ]
            if not labelled and is_stuttering:
                places.append(places[-1])
                continue
            if not labelled:
                what = f"{action}({', '.join(args)})" if action is not None else "any step"
                raise NoSuchPath(f"{what} does not lead from state {number - 1} to state {number}")
            trace = trace.then(labelled[0])
            places.append(places[-1] + 1)
        return replace(trace, loop=None if loop is None else places[loop])

    def violation(self, trace: Trace, name: str | None) -> Violation | None:
        """The violation at the end of a trace: of the property `name`, or the first one if it is None."""
        position = self._position((), trace)
        for prop, kind, why in position.failed:
            if name in (None, prop):
                return with_abstract_step(self.program, Violation(kind, prop, trace, why))
        if name == DEADLOCK and self._ends.is_deadlock(trace.last):
            return Violation(DEADLOCK, DEADLOCK, trace)
        if position.fault is not None and name in (None, position.fault.name):
            return position.fault
        return None

    def path_to(self, trace: Trace) -> tuple[int, ...]:
        """The path of a trace; raises `NoSuchPath` if the trace is not a behaviour."""
        if trace.initial not in self.initial:
            raise NoSuchPath
        path, state = [self.initial.index(trace.initial)], trace.initial
        for step in trace.steps:
            steps = self.enabled(state)
            if step not in steps:
                raise NoSuchPath
            path.append(steps.index(step))
            state = step.state
        return tuple(path)


def started(instance: Instance) -> Walker:
    """A walker with at least one initial state; raises `NoStart`."""
    try:
        walker = Walker(instance)
    except Undefined as undefined:
        reason = f"{undefined.span.where}: the initial state is undefined: {undefined.reason}"
        raise NoStart(reason) from None
    if not walker.initial:
        raise NoStart("no state satisfies `init`, so there is no state to start from")
    return walker


def _never(program: Program, witness: Property) -> Property:
    """An invariant whose counterexample is a shortest trace to a witness."""
    # An invariant is checked outside the constraints too, where no witness counts as reached.
    reached = (*program.constraints, witness)
    body = And(Bool(), witness.span, tuple(prop.body for prop in reached))
    never = Apply(Bool(), witness.span, Op.NOT, (body,))
    slots = max(prop.locals for prop in reached)
    return Property("invariant", witness.name, never, slots, witness.span)


def _of_steps(prop: Property) -> Property:
    """The property without temporal claims, which traces do not show and which depend on our fairness."""
    if not isinstance(prop, Refinement):
        return prop
    return replace(prop, abstract=replace(prop.abstract, fairness=()))


def with_only(program: Program, name: str) -> Program | None:
    """The program with one property: `name`, or the claim that the witness `name` is never reached."""
    # Of one name an invariant counts before a step invariant, that before a witness.
    claims: dict[str, dict[str, Any]] = {DEADLOCK: {"deadlock_ok": program.deadlock_ok}}
    claims |= {prop.name: {"invariants": (_never(program, prop),)} for prop in program.witnesses}
    claims |= {prop.name: {"step_invariants": (_of_steps(prop),)} for prop in program.step_invariants}
    claims |= {prop.name: {"invariants": (prop,)} for prop in program.invariants}
    return replace(bare(program), **claims[name]) if name in claims else None
