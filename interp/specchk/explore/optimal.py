"""The counterexample that is easiest to read, among the shortest.

A shortest trace passes only states at their own breadth-first level, so all shortest traces are the
paths of a graph of levels.  It is built forwards, cut backwards to what reaches the end, and costs
are added up from the end (dynamic programming over state and acting lane):

1. fewest switches: consecutive steps in which another lane acts;
2. then fewest distinct values: of arguments and of what steps write.  A set along a path does not
   add up, so the paths with fewest switches are searched, cutting those that cannot become better.

Work is bounded: beyond `MAX_STATES`, or `MAX_TRIES` paths, `Optimal.note` describes what was not done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct

from specchk.explore.view import Lanes
from specchk.ir.nodes import Value
from specchk.ir.program import Program
from specchk.ir.types import Map, Record, Type
from specchk.meaning.deadlock import Ends
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State, show
from specchk.search.verdict import Step, Trace, Violation

MAX_STATES = 100_000
MAX_TRIES = 20_000
Lane = int | None
Edge = tuple[Step, Lane]


class Optimal(Struct, frozen=True):
    """The best traces, best first; `note` gives the limit of the search, if it was reached."""

    traces: tuple[Trace, ...]
    note: str = ""


def optimal(
    program: Program, violation: Violation, sort: Lanes | None, wanted: int = 1, max_states: int = MAX_STATES
) -> Optimal:
    """The `wanted` best shortest traces to a violation; the lanes are the members of `sort`."""
    assert violation.trace is not None
    try:
        paths = _Paths(program, violation, sort, max_states)
    except _TooLarge:
        note = f"more than {max_states} states precede it, so the first shortest trace is shown"
        return Optimal((violation.trace,), note)
    best = paths.best()
    traces = [best] if best is not None else [violation.trace]
    for trace in islice(paths.by_switches(), MAX_TRIES):
        if len(traces) >= wanted:
            break
        if all(trace.states != other.states for other in traces):
            traces.append(trace)
    note = "not all of the shortest traces were compared for distinct values" if paths.tries <= 0 else ""
    return Optimal(tuple(traces), note)


def acting_lane(program: Program, sort: Lanes | None, before: State, step: Step) -> Lane:
    """The lane that takes a step: its first argument of the sort, or else the only lane that changes."""
    if sort is None:
        return None
    action = next(action for action in program.actions if action.name == step.action)
    for text, param in zip(step.args, action.params, strict=True):
        if param.type == sort:
            return sort.members.index(text)
    changed = {
        lane
        for variable, old, new in zip(program.variables, before, step.state, strict=True)
        if isinstance(variable.type, Map) and variable.type.key == sort
        for lane in range(len(sort.members))
        if isinstance(old, tuple) and isinstance(new, tuple) and old[lane] != new[lane]
    }
    return changed.pop() if len(changed) == 1 else None


def values_of(program: Program, before: State, step: Step) -> frozenset[str]:
    """The values that a reader sees in a step: its arguments and the assigned values."""
    values = set(step.args)
    for variable, old, new in zip(program.variables, before, step.state, strict=True):
        values |= _written(variable.type, old, new)
    return frozenset(values)


def _written(kind: Type, old: Value, new: Value) -> set[str]:
    if old == new:
        return set()
    if isinstance(kind, Map | Record) and isinstance(old, tuple) and isinstance(new, tuple):
        parts = [kind.value] * len(new) if isinstance(kind, Map) else [item for _, item in kind.fields]
        return set().union(*(_written(p, a, b) for p, a, b in zip(parts, old, new, strict=True)))
    return {show(new, kind)}


class _TooLarge(Exception):
    """More states precede the violation than the limit allows."""


class _Paths:
    """The graph of all shortest traces to a violation, with the remaining cost from each state."""

    def __init__(self, program: Program, violation: Violation, sort: Lanes | None, max_states: int) -> None:
        assert violation.trace is not None
        self.program = program
        self.sort = sort
        self.violation = violation
        self.depth = len(violation.trace.steps)
        self.tries = MAX_TRIES
        self._stepper = Stepper(program)
        self._properties = Properties(program, self._stepper)
        self._ends = Ends(program, self._stepper, self._properties)
        # The property that the last step breaks, where it is one of steps.
        steps = self._properties.steps if self.depth else []
        self._broken = [(prop, test) for prop, test in steps if prop.name == violation.name]
        self.edges: dict[State, list[Edge]] = {}
        self.starts: list[State] = []
        self._levels = self._forwards(max_states)
        self.togo: list[dict[tuple[State, Lane], int]] = []
        self._backwards()

    def _forwards(self, max_states: int) -> list[list[State]]:
        level = self._passed(0, initial_states(self.program))
        seen, levels = set(level), [level]
        for number in range(self.depth):
            following: dict[State, None] = {}
            for state in level:
                edges = self._steps(state)
                last = number == self.depth - 1 and bool(self._broken)
                # A shortest trace passes each state at its own distance; an edge to one that was seen is on
                # none of them.  A last step that is wrong itself is the exception: it may lead anywhere, back
                # too.
                kept = [edge for edge in edges if last or edge[0].state not in seen]
                self.edges[state] = kept
                following.update(dict.fromkeys(step.state for step, _ in kept))
            level = self._passed(number + 1, following)
            seen.update(level)
            levels.append(level)
            if len(seen) > max_states:
                raise _TooLarge
        return levels

    def _passed(self, number: int, states: Iterable[State]) -> list[State]:
        """The possible states of a trace at a position."""
        # The last one may lie outside a constraint: such states are checked, but not expanded.
        return [state for state in states if number == self.depth or self._properties.keeps(state)]

    def _steps(self, state: State) -> list[Edge]:
        try:
            successors = self._stepper.successors(state)
        except Faulty:
            return []
        steps = dict.fromkeys(Step.of(self.program, *successor) for successor in successors)
        return [(step, acting_lane(self.program, self.sort, state, step)) for step in steps]

    def _backwards(self) -> None:
        """Keep the states that lead to the violation, with the number of remaining switches."""
        lanes: list[Lane] = [None, *range(len(self.sort.members) if self.sort is not None else 0)]
        ends = dict.fromkeys(
            ((state, lane) for state in self._levels[-1] if self._is_end(state) for lane in lanes), 0
        )
        self.togo = [ends]
        # Switches add up along a path, so the rest of a path depends only on the state and the lane before
        # it.
        for number in range(self.depth - 1, -1, -1):
            after, here = self.togo[0], {}
            for state in self._levels[number]:
                self.edges[state] = [
                    (step, lane) for step, lane in self.edges[state]
                    if (step.state, lane) in after and self._is_last(number, state, step)
                ]  # fmt: skip
                for previous in lanes if self.edges[state] else ():
                    # The first step of a trace switches from nothing, so it costs none.
                    here[state, previous] = min(
                        (previous != lane and number > 0) + after[step.state, lane]
                        for step, lane in self.edges[state]
                    )
            self.togo.insert(0, here)
        self.starts = [state for state in self._levels[0] if (state, None) in self.togo[0]]

    def _is_end(self, state: State) -> bool:
        """Whether the violation is visible in a state alone."""
        kind, name = self.violation.kind, self.violation.name
        if self._broken:
            return True
        env = self._properties.environment(state)
        among = [(prop, test) for prop, test in self._properties.invariants if prop.name == name]
        if among:
            return any(found == kind for _, found, _ in self._properties.failed(env, among))
        # The steps of a state are determined when it is expanded, and so only inside the constraints.
        if not self._properties.keeps(state):
            return False
        if kind == "deadlock":
            return self._ends.is_deadlock(state)
        try:
            self._stepper.successors(state)
        except Faulty as fault:
            return kind == "undefined" and self.program.actions[fault.action].name == name
        return False

    def _is_last(self, number: int, state: State, step: Step) -> bool:
        """Whether a step is possible at its position: the last one must violate a step property."""
        if not self._broken or number < self.depth - 1:
            return True
        env = self._properties.environment(state, step.state)
        return any(kind == self.violation.kind for _, kind, _ in self._properties.failed(env, self._broken))

    def best(self) -> Trace | None:
        """The path with the fewest switches, then the fewest values; None if none was found."""
        # Known before any path is built, so that each path is cut at its first switch too many.
        least = min((self.togo[0][state, None] for state in self.starts), default=None)
        if least is None:
            return None
        paths: list[tuple[int, Trace]] = []
        for start in self.starts:
            self._fewest(Trace(start, ()), None, least, frozenset(), paths)
        # The last: a path is added only if it has fewer values than the one before it.
        return paths[-1][1] if paths else None

    def _fewest(
        self, trace: Trace, previous: Lane, left: int, values: frozenset[str], paths: list[tuple[int, Trace]]
    ) -> None:
        number, state = len(trace.steps), trace.last
        # Two cuts: more switches than the best has, or as many values as one that was found already.
        if self.togo[number].get((state, previous), left + 1) > left or (
            paths and len(values) >= paths[-1][0]
        ):
            return
        if number == self.depth:
            paths.append((len(values), trace))
            self.tries -= 1
            return
        if paths and self.tries <= 0:
            return
        self.tries -= 1
        for step, lane in self.edges[state]:
            cost = int(previous != lane and number > 0)
            seen = values | values_of(self.program, state, step)
            self._fewest(trace.then(step), lane, left - cost, seen, paths)

    def by_switches(self) -> Iterator[Trace]:
        """All shortest traces, those with the fewest switches first."""
        # A path of `depth` steps has fewer switches than that.  Each budget gives the paths that use it up
        # exactly, so none is given twice; `togo` is the exact rest, so no path is followed that needs more.
        for budget in range(self.depth + 1):
            for start in self.starts:
                yield from self._exactly(Trace(start, ()), None, budget)

    def _exactly(self, trace: Trace, previous: Lane, left: int) -> Iterator[Trace]:
        number = len(trace.steps)
        if self.togo[number].get((trace.last, previous), left + 1) > left:
            return
        if number == self.depth:
            if left == 0:
                yield trace
            return
        for step, lane in self.edges[trace.last]:
            cost = int(previous != lane and number > 0)
            yield from self._exactly(trace.then(step), lane, left - cost)
