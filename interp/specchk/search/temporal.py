"""Checks the temporal properties of a program, once its states are known and safe.

Each clause becomes a region of the step graph in which its goal is owed and not reached:

    P leadsto Q         begins where P is true and Q is not, and ends at Q
    eventually Q        begins in the initial states
    always eventually Q begins everywhere
    eventually always P never ends; a loop in it that has a state without P is a counterexample

It is violated if a fair behaviour stays in the region forever: if there is a state to rest in, or a loop that
keeps every fair condition (`liveness`).  Every counterexample is taken by the reference stepper and judged
once more, on its own states and steps, before it is reported.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from specchk.ir.program import Clause, Form, Liveness, Property, Refinement
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.explain import Blame
from specchk.meaning.properties import NoAnswer, answer
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.findings import Findings
from specchk.search.liveness.components import Conditions, fair_components
from specchk.search.liveness.explored import StepSource
from specchk.search.liveness.graph import EVERY, OwedRegion, owed_region
from specchk.search.liveness.lassos import Lasso, nearest_rest, shortest_lasso
from specchk.search.liveness.pulled import PulledFairness
from specchk.search.looping import judged, replayed
from specchk.search.refined import RefinedFairness
from specchk.search.verdict import Trace, Violation

Look = Callable[[int, int, int], bool]  # as `search.engine.Search.look`: whether the search is stopped


class _Stopped(Exception):
    """The budget ended the check."""


class TemporalCheck:
    """One check; violations, vacuity and notes go to the findings.

    `coverage` are the counts of the search.  `owed_at_horizon` are the states in which something is owed and
    all that could meet it is cut off.
    """

    def __init__(
        self, fair: FairSteps, source: StepSource, findings: Findings, look: Look, coverage: Sequence[int]
    ) -> None:  # fmt: skip
        self.program = fair.program
        self.findings = findings
        self.fair = fair
        self.conditions = Conditions(self.fair.weak, self.fair.strong)
        self.explored = source
        self.graph = source.graph
        self.owed_at_horizon = 0
        self._look = look
        self._coverage = coverage
        self._at_horizon: set[int] = set()

    def run(self) -> None:
        """Check everything, unless the budget ends it: then that is in the findings."""
        try:
            self.explored.run(self._counted)
            for liveness in self.program.liveness:
                self._property(liveness)
            for refinement in self.program.refinements:
                if refinement.abstract.fairness:
                    self._refined_fairness(refinement)
            self._unused_fairness()
        except _Stopped:
            pass
        self.owed_at_horizon = len(self._at_horizon)

    def _counted(self, states: int, steps: int, waiting: int) -> None:
        if self._look(states, steps, waiting):
            raise _Stopped

    def _pause(self) -> None:
        # A limit of states was kept while they were found; from here on it is time and memory that are used.
        self._counted(0, len(self.graph.target), 0)

    def _property(self, liveness: Liveness) -> None:
        """The first clause that is violated, or whether the property could be violated at all."""
        begun: dict[tuple[int, int], list[tuple[bool, bool]]] = {}
        for clause in liveness.clauses:
            region = _ClauseRegion(self, clause)
            try:
                owed = region.built()
            except NoAnswer as unclear:
                trace = replayed(self.fair, self._states(self.graph.path(region.at)), None)
                self.findings.note(Violation("undefined", liveness.name, trace, unclear.blame))
                return
            lasso = shortest_lasso(owed, self.conditions, self._pause)
            if lasso is not None:
                if not lasso.is_shortest:
                    self.findings.notes.append(f"`{liveness.name}` may be violated by a shorter loop")
                trace = self._behaviour(lasso)
                points, notes = judged(self.fair, region, trace)
                blame = Blame(clause.span, " ".join(clause.span.text.split()), clause.bindings)
                self.findings.note(
                    Violation("liveness", liveness.name, trace, blame, fairness=points, notes=notes)
                )
                return
            if any(self.graph.cut):
                self._note_horizon(owed)
            place = clause.span.start, clause.span.end
            begun.setdefault(place, []).append((region.is_triggered, region.is_owed(owed)))
        self._vacuity(liveness, begun)

    def _refined_fairness(self, refinement: Refinement) -> None:
        """The first fair condition of the refined program that a fair behaviour does not keep."""
        name = refinement.name
        if any(of == name for _, of in self.findings.found):
            self.findings.notes.append(f"not checked, because its steps are none: fairness of {name}")
            return
        check = RefinedFairness(refinement, self.fair)
        number = 0

        def image(of: int) -> State:
            nonlocal number
            number = of
            return check.image(self.explored.state(of))

        try:
            pulled = PulledFairness(self.graph, check.abstract, image, self._pause)
        except Undefined as fault:
            trace = replayed(self.fair, self._states(self.graph.path(number)), None)
            blame = Blame(fault.span, fault.reason, ())
            self.findings.note(Violation("undefined", name, trace, blame))
            return
        for bit in range(len(check.abstract.conditions)):
            owed = pulled.region(bit)
            lasso = shortest_lasso(owed, self.conditions, self._pause)
            if lasso is not None:
                if not lasso.is_shortest:
                    self.findings.notes.append(f"`{name}` may be violated by a shorter loop")
                self.findings.note(check.violation(bit, self._behaviour(lasso)))
                return
            if any(self.graph.cut):
                self._note_horizon(owed)

    def _behaviour(self, lasso: Lasso) -> Trace:
        loop = [(self.explored.state(number), mask) for number, mask in lasso.loop]
        return replayed(self.fair, self._states(lasso.path), loop)

    def _vacuity(self, liveness: Liveness, begun: dict[tuple[int, int], list[tuple[bool, bool]]]) -> None:
        """Warn of clauses that cannot fail: all values of a `forall` together, as they are one text."""
        if not liveness.clauses:
            self.findings.vacuous.append(f"liveness `{liveness.name}` requires nothing: it has no clause")
        texts = {(c.span.start, c.span.end): " ".join(c.span.text.split()) for c in liveness.clauses}
        for place, found in begun.items():
            name = f"liveness `{liveness.name}`: `{texts[place]}`"
            if not any(triggered for triggered, _ in found):
                self.findings.vacuous.append(f"{name} requires nothing: its left side is never true")
            elif self.program.fairness and not any(owed for _, owed in found):
                self.findings.vacuous.append(f"{name} holds without fairness: in no state is anything owed")

    def _unused_fairness(self) -> None:
        graph, ever = self.graph, 0
        for enabled in graph.enabled:
            ever |= enabled
        for declared, fairness in enumerate(self.program.fairness):
            # Where the action never runs at all, there is a warning of its own.
            if not self._coverage[self.program.actions[fairness.action].point]:
                continue
            bits = [bit for bit, one in enumerate(self.fair.conditions) if one.declared == declared]
            if not any(ever >> bit & 1 for bit in bits):
                self.findings.vacuous.append(
                    f"{fairness.span.where}: fairness of `{fairness.span.text}` means nothing: "
                    "no step of it ever changes the state"
                )
        if not any(graph.cut):
            return
        everything = owed_region(graph, range(graph.initial), lambda _: False, self._pause)
        fair = fair_components(everything, self.conditions, self._pause, graph.enabled)
        if nearest_rest(everything) is None and next(fair, None) is None:
            bounds = ", ".join([*self.program.horizons, *(prop.name for prop in self.program.constraints)])
            self.findings.vacuous.append(
                f"no behaviour within {bounds} is fair: each ends there, so no temporal property can fail"
            )

    def _note_horizon(self, owed: OwedRegion) -> None:
        """Count the states in which only the steps that are cut off keep a behaviour from staying."""
        enabled = array("Q", (a & ~b for a, b in zip(self.graph.enabled, self.graph.cut, strict=True)))
        bad = owed.bad
        rests = (n for n in owed.order if not enabled[n] and (bad is None or bad[n]))
        self._at_horizon.update(rests)
        for component in fair_components(owed, self.conditions, self._pause, enabled):
            self._at_horizon.update(component)

    def _states(self, numbers: Iterable[int]) -> list[State]:
        return [self.explored.state(number) for number in numbers]


class _ClauseRegion:
    """The region of one clause; `at` is the state whose predicates are being evaluated."""

    def __init__(self, check: TemporalCheck, clause: Clause) -> None:
        self.check = check
        self.clause = clause
        self.at = 0
        self.is_triggered = clause.trigger is None
        evaluator = Evaluator(len(check.program.variables))
        self._locals = [0] * (max(p.locals for p in (clause.trigger, clause.goal) if p is not None) + 1)
        self._trigger = _test(clause.trigger, evaluator) if clause.trigger is not None else None
        self._goal = _test(clause.goal, evaluator)
        self._known: dict[int, bool] = {}
        truths = check.explored.truths
        self._goals = truths(clause.goal)
        self._triggers = truths(clause.trigger) if clause.trigger is not None else truths(clause.goal)

    def built(self) -> OwedRegion:
        """The region; `NoAnswer` where a predicate that matters is undefined."""
        graph, form = self.check.graph, self.clause.form
        if form is Form.EVENTUALLY_ALWAYS:
            region = owed_region(graph, range(graph.initial), lambda _: False, self.check._pause)
            region.bad = bytearray(not self._reached(number) for number in range(graph.count))
            return region
        begins = range(graph.initial) if form is Form.EVENTUALLY else range(graph.count)
        triggers = [number for number in begins if self._begins(number)]
        return owed_region(graph, triggers, self._reached, self.check._pause)

    def is_owed(self, region: OwedRegion) -> bool:
        """Whether a behaviour could violate the clause if nothing were fair."""
        return any(region.bad) if region.bad is not None else bool(region.order)

    def triggers(self, state: State) -> bool:
        """Whether the obligation begins in a state, which may meet it at once."""
        return self._trigger is None or self._trigger(self._environment(state))

    def reaches(self, state: State) -> bool:
        """Whether the goal is true in a state."""
        return self._goal(self._environment(state))

    def _begins(self, number: int) -> bool:
        self.at = number
        if number % EVERY == 0:
            self.check._pause()
        if not self._triggered(number):
            return False
        self.is_triggered = True
        return not self._reached(number)

    def _reached(self, number: int) -> bool:
        if number not in self._known:
            self.at = number
            known = self._goals(number)
            if known is None:
                known = self.reaches(self.check.explored.state(number))
            self._known[number] = known
        return self._known[number]

    def _triggered(self, number: int) -> bool:
        if self._trigger is None:
            return True
        known = self._triggers(number)
        return self.triggers(self.check.explored.state(number)) if known is None else known

    def _environment(self, state: State) -> list[Any]:
        return [*state, *state, *self._locals]


def _test(prop: Property, evaluator: Evaluator) -> Callable[[list[Any]], bool]:
    compiled = evaluator.compile(prop.body)
    return lambda env: answer(prop, compiled, env)
