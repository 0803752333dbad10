"""Walking through a state space by hand: a path of choices, and what can be done at its end.

A path is a list of numbers: which initial state, then which of the enabled steps, as `enabled`
lists them.  It says everything, so it can be a link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specchk.core.initial import initial_states
from specchk.core.instantiate import Instance
from specchk.core.properties import Properties
from specchk.core.step import Faulty, Stepper
from specchk.core.values import State, show
from specchk.core.verdict import Blame, Step, Trace


class NoSuchPath(Exception):
    """A number of a path names no initial state or no enabled step."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a path leads: the trace, the steps enabled there, and the properties that fail there."""

    path: tuple[int, ...]
    trace: Trace
    enabled: tuple[Step, ...]
    failed: tuple[tuple[str, str, Blame], ...]  # name, kind, why
    undefined: str | None


class Walker:
    """Follows paths through an instance's states."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.program = instance.program
        self._stepper = Stepper(self.program)
        self._properties = Properties(self.program, self._stepper)
        self.initial = initial_states(self.program)

    def at(self, path: Sequence[int]) -> Position:
        """The position at the end of a path; raises `NoSuchPath`."""
        if not path or not 0 <= path[0] < len(self.initial):
            raise NoSuchPath
        trace = Trace(self.initial[path[0]], ())
        for choice in path[1:]:
            steps = self.enabled(trace.states[-1])
            if not 0 <= choice < len(steps):
                raise NoSuchPath
            trace = Trace(trace.initial, (*trace.steps, steps[choice]))
        return self._position(tuple(path), trace)

    def _position(self, path: tuple[int, ...], trace: Trace) -> Position:
        state = trace.states[-1]
        env = self._properties.environment(state)
        failed = [
            (p.name, kind, b) for p, kind, b in self._properties.failed(env, self._properties.invariants)
        ]
        if trace.steps:
            pair = self._properties.environment(trace.states[-2], state)
            failed += [
                (p.name, kind, b) for p, kind, b in self._properties.failed(pair, self._properties.steps)
            ]
        try:
            return Position(path, trace, tuple(self.enabled(state)), tuple(failed), None)
        except Faulty as fault:
            action = self.program.actions[fault.action].name
            return Position(path, trace, (), tuple(failed), f"{action}: {fault.undefined.reason}")

    def enabled(self, state: State) -> list[Step]:
        """The steps enabled in a state, each once, in the order of actions; raises `Faulty`."""
        found: dict[Step, None] = {}
        for index, args, after in self._stepper.successors(state):
            action = self.program.actions[index]
            shown = tuple(show(arg, param.type) for arg, param in zip(args, action.params, strict=True))
            found[Step(action.name, shown, after)] = None
        return list(found)

    def path_to(self, trace: Trace) -> tuple[int, ...]:
        """The path that takes a trace; raises `NoSuchPath` for something that is no behaviour."""
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
