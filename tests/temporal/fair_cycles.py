"""Temporal properties on the listed step graph: fair cycles by components, and lassos checked by their steps.

Beside `naive_time`, which enumerates walks, this is fast enough for graphs of some hundred states.  It shares
the meaning of single steps and of predicates with the checker, and neither regions nor the search for loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from specchk.ir.program import Clause, Form
from specchk.search.verdict import Trace
from temporal.naive_time import Condition, NaiveChecker

States = set[Any]
After = Callable[[Any, States], list[tuple[Any, frozenset[Condition]]]]


class FairCycles(NaiveChecker):
    """Checks clauses by fair components, and traces by their own states and steps."""

    def is_violated(self, clause: Clause) -> bool:
        """Whether a fair behaviour violates the clause, by a rest or a loop."""
        owes = {state for state, pending in self.owing(clause) if pending}
        if clause.form is Form.EVENTUALLY_ALWAYS:
            return self._has_fair(owes, lambda state: not self.truth(clause.goal, state))
        return self._has_fair(owes, lambda _: True)

    def nearest_rest(self, clause: Clause) -> int | None:
        """The length of the shortest behaviour that rests while the goal is owed."""
        lengths = [
            length for (state, pending), length in self.owing(clause).items()
            if pending and not self.out(state)[1] and not self.truth(clause.goal, state)
        ]  # fmt: skip
        return min(lengths, default=None)

    def _after(self, state: Any, within: States) -> list[tuple[Any, frozenset[Condition]]]:
        return [(after, taken) for after, taken in self.out(state)[0] if after in within]

    def _has_fair(self, within: States, is_bad: Callable[[Any], bool]) -> bool:
        return any(self._is_fair(part, is_bad) for part in components(within, self._after))

    def _is_fair(self, part: States, is_bad: Callable[[Any], bool]) -> bool:
        """Whether a fair behaviour that visits a bad state infinitely often stays in a component."""
        if not any(map(is_bad, part)):
            return False
        taken = {c for state in part for _, conditions in self._after(state, part) for c in conditions}
        for condition in self.conditions:
            enabled = {state for state in part if condition in self.out(state)[1]}
            if condition in taken or not enabled:
                continue
            if condition[2]:  # no walk within the component takes it, so a fair one is where it is disabled
                return self._has_fair(part - enabled, is_bad)
            if enabled == part:
                return False
        return True

    def wrong_with(self, clause: Clause, trace: Trace) -> list[str]:
        """The reasons why a trace is no counterexample of a clause."""
        assert trace.loop is not None
        found, taken = [], set[Condition]()
        if (trace.initial, 0) not in {(state, length) for (state, _), length in self.owing(clause).items()}:
            found += [] if clause.form is Form.LEADS_TO else ["nothing is owed where it begins"]
        for place, (before, after) in enumerate(pairwise(trace.states)):
            ways = [conditions for following, conditions in self.out(before)[0] if following == after]
            if not ways:
                found.append(f"no step leads to state {place + 1}")
            if place >= trace.loop:
                taken = taken.union(*ways)
        loop = trace.states[trace.loop :]
        if loop[-1] != loop[0]:
            found.append("its loop does not close")
        for condition in self.conditions:
            enabled = [condition in self.out(state)[1] for state in loop]
            if condition not in taken and (any(enabled) if condition[2] else all(enabled)):
                found.append(f"it is not fair to {condition}")
        return [*found, *self._met(clause, trace.states, loop)]

    def _met(self, clause: Clause, states: tuple[Any, ...], loop: tuple[Any, ...]) -> Iterator[str]:
        """Whether the states do what the clause requires."""
        again = [self.truth(clause.goal, state) for state in loop]
        if clause.form is Form.EVENTUALLY_ALWAYS:
            if all(again):
                yield "its goal stays true"
            return
        if any(again):
            yield "its goal is true again and again"
        ever = [self.truth(clause.goal, state) for state in states]
        if clause.form is Form.EVENTUALLY and any(ever):
            yield "its goal is reached"
        if clause.form is Form.LEADS_TO:
            assert clause.trigger is not None
            begins = [self.truth(clause.trigger, state) for state in states]
            if not any(began and not any(ever[place:]) for place, began in enumerate(begins)):
                yield "what begins is met"


def components(states: States, after: After) -> Iterator[States]:
    """The strongly connected components: the states that reach a state and are reached from it."""
    left = set(states)
    reached = {state: _closure(state, states, after) for state in states}
    while left:
        state = left.pop()
        part = {other for other in reached[state] if state in reached[other]} | {state}
        left -= part
        yield part


def _closure(state: Any, within: States, after: After) -> States:
    found, waiting = set[Any](), [state]
    while waiting:
        for following, _ in after(waiting.pop(), within):
            if following not in found:
                found.add(following)
                waiting.append(following)
    return found
