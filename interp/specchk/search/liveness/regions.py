"""Regions of a step graph in which a goal is pending: an engine's interface, and regions of a list.

    P leadsto Q         begins where P is true and Q is not, and ends at Q
    eventually Q        begins in the initial states
    always eventually Q begins everywhere
    eventually always P never ends; a loop in it that has a state without P is a counterexample

A counterexample is a fair behaviour that stays in the region.  The nearest rest comes first, a state without
any enabled fair condition, then the lasso of the fewest steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Protocol

from msgspec import Struct

from specchk.ir.program import Clause, Form
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.explain import Blame
from specchk.meaning.properties import NoAnswer
from specchk.meaning.values import State
from specchk.search.liveness.components import Conditions, fair_components
from specchk.search.liveness.explored import Lister
from specchk.search.liveness.graph import EVERY, OwedRegion, owed_region
from specchk.search.liveness.lassos import LoopStart, Taken, shortest_loop
from specchk.search.liveness.owed import Owed

Look = Callable[[int, int, int], None]  # states, steps, states not expanded; raises what ends the check


class Behaviour(Struct, frozen=True):
    """A path and a loop from its last state, with the conditions that each step meets; or a path and rest."""

    path: tuple[State, ...]
    loop: tuple[tuple[State, int], ...]
    is_shortest: bool = True


class NoTruth(Exception):
    """A predicate that is needed is undefined in the last state of `path`."""

    def __init__(self, path: Sequence[State], blame: Blame) -> None:
        super().__init__(path, blame)
        self.path = path
        self.blame = blame


class ClauseRegion(Protocol):
    """The region of a clause."""

    @property
    def is_triggered(self) -> bool:
        """Whether the obligation begins in some state, whether or not it is met at once."""

    @property
    def is_owed(self) -> bool:
        """Whether a behaviour could violate the clause if there were no fairness conditions."""

    @property
    def is_cut(self) -> bool:
        """Whether in some state a condition is enabled only by a step that is cut off."""

    def counterexample(self) -> Behaviour | None:
        """The nearest rest, or otherwise the shortest lasso."""

    def is_violated(self) -> bool:
        """Whether there is a counterexample."""

    def note_horizon(self) -> None:
        """Count the states in which only steps that are cut off prevent a behaviour from staying."""


class StepSource(Protocol):
    """The step graph of a program whose states are all known and safe.

    `is_cut`: a horizon or a constraint may have cut steps off.
    """

    is_cut: bool

    def region(self, clause: Clause | None) -> ClauseRegion:
        """The region of a clause, or of all states for None; raises `NoTruth` if a predicate is undefined."""

    def ever_enabled(self) -> int:
        """The conditions that are enabled in at least one state."""

    def listed(self) -> ListedSteps:
        """The graph as lists, for the obligations of another program."""

    def owed_at_horizon(self) -> int:
        """The number of states counted by `note_horizon`, each counted once."""


class ListedSteps:
    """A step graph as lists, explored on construction."""

    def __init__(self, fair: FairSteps, steps: Lister, look: Look) -> None:
        self.fair, self.steps, self.look = fair, steps, look
        steps.run(look)
        self.is_cut = any(steps.graph.cut)
        self.conditions = Conditions(fair.weak, fair.strong)
        self.at_horizon: set[int] = set()

    def pause(self) -> None:
        """Check the budget."""
        # A limit of states was kept while they were found; from here on it is time and memory that are used.
        self.look(0, len(self.steps.graph.target), 0)

    def region(self, clause: Clause | None) -> ClauseRegion:
        """The region of a clause, or of all states for None; raises `NoTruth` if a predicate is undefined."""
        if clause is None:
            graph = self.steps.graph
            return ListedRegion(self, owed_region(graph, range(graph.initial), lambda _: False, self.pause))
        return _ClauseStates(self, clause).region()

    def ever_enabled(self) -> int:
        """The conditions that are enabled in at least one state."""
        ever = 0
        for enabled in self.steps.graph.enabled:
            ever |= enabled
        return ever

    def listed(self) -> ListedSteps:
        """The object itself."""
        return self

    def owed_at_horizon(self) -> int:
        """The number of states counted by `note_horizon`."""
        return len(self.at_horizon)


class ListedRegion(Struct):
    """A region of a listed graph."""

    source: ListedSteps
    owed: OwedRegion
    is_triggered: bool = True
    triggers: Callable[[int], bool] | None = None  # where the goal may also be owed from some state on

    @property
    def is_owed(self) -> bool:
        """Whether a behaviour could violate the clause if there were no fairness conditions."""
        return any(self.owed.bad) if self.owed.bad is not None else bool(self.owed.order)

    @property
    def is_cut(self) -> bool:
        """Whether in some state a condition is enabled only by a step that is cut off."""
        return any(self.owed.graph.cut[number] for number in self.owed.order)

    def counterexample(self) -> Behaviour | None:
        """The nearest rest, or otherwise the shortest lasso."""
        owed, source, state = self.owed, self.source, self.source.steps.state
        # A rest first: where nothing is enabled no fairness can object, and a reader has no loop to follow.
        rest = next(self._rests(owed.graph.enabled), None)
        if rest is not None:
            return Behaviour(tuple(map(state, owed.path(rest))), ())
        states = _Components(self, list(self._fair(owed.graph.enabled)))
        loop = shortest_loop(states, source.conditions, source.pause)
        if loop is None:
            return None
        steps = tuple((state(number), mask) for number, mask in loop.steps)
        # A loop that has a trigger in it owes the goal again in each round, so any path to it will do; else
        # the goal must have been owed all the way, which only paths within the region show.
        path = owed.path if loop.start.is_bad or owed.bad is not None else owed.graph.path
        return Behaviour(tuple(map(state, path(loop.start.number))), steps, loop.is_shortest)

    def is_violated(self) -> bool:
        """Whether there is a counterexample."""
        enabled = self.owed.graph.enabled
        return any(True for _ in chain(self._rests(enabled), self._fair(enabled)))

    def note_horizon(self) -> None:
        """Count the states in which only steps that are cut off prevent a behaviour from staying."""
        graph = self.owed.graph
        # As if what only a cut step enables were not enabled: a rest or fair loop that this makes is one
        # that the real system might leave, by a step that no bound lets us see.
        taken = [a & ~b for a, b in zip(graph.enabled, graph.cut, strict=True)]
        self.source.at_horizon.update(self._rests(taken), *self._fair(taken))

    def _rests(self, enabled: Sequence[int]) -> Iterator[int]:
        return (n for n in self.owed.order if not enabled[n] and self.owed.is_bad(n))

    def _fair(self, enabled: Sequence[int]) -> Iterator[list[int]]:
        return fair_components(self.owed, self.source.conditions, self.source.pause, enabled)


class _Components:
    """The states of fair components, for the search for a loop."""

    def __init__(self, region: ListedRegion, components: list[list[int]]) -> None:
        self.region = region
        self.owed = region.owed
        self._of = {number: at for at, component in enumerate(components) for number in component}

    def starts(self) -> Iterator[LoopStart]:
        distance, level = self.owed.distance, self.owed.graph.level
        both = [LoopStart(distance[number], number, self.owed.bad is None) for number in self._of]
        both += [
            LoopStart(level[n], n, False) for n in self._of if self.region.triggers and level[n] < distance[n]
        ]
        return iter(sorted(both, key=lambda start: (start.distance, not start.is_bad, start.number)))

    def steps(self, number: int) -> Iterator[Taken]:
        # A step out of the component leads to states from which there is no way back, so no loop has it.
        own = self._of[number]
        return (step for step in self.owed.graph.steps(number) if self._of.get(step[0]) == own)

    def enabled(self, number: int) -> int:
        return self.owed.graph.enabled[number]

    def is_bad(self, number: int) -> bool:
        return self.region.triggers(number) if self.region.triggers else self.owed.is_bad(number)


class _ClauseStates:
    """The states of a listed graph as classified by a clause; `at` is the state being evaluated."""

    def __init__(self, source: ListedSteps, clause: Clause) -> None:
        self.source = source
        self.clause = clause
        self.owed = Owed(clause, len(source.fair.program.variables))
        self.at = 0
        self.is_triggered = clause.trigger is None
        self._known: dict[int, bool] = {}

    def region(self) -> ListedRegion:
        graph, form, pause = self.source.steps.graph, self.clause.form, self.source.pause
        try:
            # Nothing ends this region: that P was true once does not help if it is false again and again.
            if form is Form.EVENTUALLY_ALWAYS:
                owed = owed_region(graph, range(graph.initial), lambda _: False, pause)
                owed.bad = bytearray(not self._reached(number) for number in range(graph.count))
            else:
                begins = range(graph.initial) if form is Form.EVENTUALLY else range(graph.count)
                triggers = [number for number in begins if self._begins(number)]
                owed = owed_region(graph, triggers, self._reached, pause)
        except NoAnswer as unclear:
            path = list(map(self.source.steps.state, graph.path(self.at)))
            raise NoTruth(path, unclear.blame) from unclear
        return ListedRegion(
            self.source, owed, self.is_triggered, self._triggers if form is Form.LEADS_TO else None
        )

    def _triggers(self, number: int) -> bool:
        return self.owed.triggers(self.source.steps.state(number))

    def _begins(self, number: int) -> bool:
        # Set before the predicate is evaluated: where that fails, this is the state to report.
        self.at = number
        if number % EVERY == 0:
            self.source.pause()
        if not self._triggers(number):
            return False
        self.is_triggered = True
        return not self._reached(number)

    def _reached(self, number: int) -> bool:
        # A state is met from each of its predecessors, and the reference evaluator is slow.
        if number not in self._known:
            self.at = number
            self._known[number] = self.owed.reaches(self.source.steps.state(number))
        return self._known[number]
