"""Checks of the temporal properties of a program, once its states are known and safe.

Each clause is a region of the step graph in which its goal is owed and not reached.  It is violated if a fair
behaviour stays in the region forever: if there is a state to rest in, or a loop that keeps every fair
condition (`liveness`).  Every counterexample is replayed by the reference stepper and checked again, by its
own states and steps, before it is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from specchk.ir.program import Liveness, Refinement
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.explain import Blame
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.findings import Findings
from specchk.search.liveness.explored import Explored, FirstStates
from specchk.search.liveness.owed import Owed
from specchk.search.liveness.pulled import PulledFairness
from specchk.search.liveness.regions import Behaviour, ListedRegion, ListedSteps, Look, NoTruth, StepSource
from specchk.search.looping import kept_fairness, owes, replayed
from specchk.search.refined import RefinedFairness
from specchk.search.replay import CONFIRMING, ReplayFailed, has_first_states
from specchk.search.verdict import Trace, Violation

SourceOf = Callable[[FairSteps, Look], StepSource]


class _Place(NamedTuple):
    """A clause's place in the spec, with its text: all values of a `forall` share one."""

    start: int
    end: int
    text: str


class _Stopped(Exception):
    """The budget ended the check."""


class TemporalCheck:
    """One check of all temporal properties; violations, vacuity and notes are added to the findings.

    `look` is that of `search.engine.Search`, `coverage` are the counts of the search.  `owed_at_horizon` are
    the states in which something is owed and all that could meet it is cut off.
    """

    def __init__(
        self, fair: FairSteps, source: SourceOf, findings: Findings, look: Callable[[int, int, int], bool],
        coverage: Sequence[int],
    ) -> None:  # fmt: skip
        self.program = fair.program
        self.findings = findings
        self.fair = fair
        self.owed_at_horizon = 0
        self._source_of = source
        self._look = look
        self._coverage = coverage

    def run(self) -> None:
        """Check all temporal properties; if the budget ends the check, the findings record it."""
        try:
            source = self._source_of(self.fair, self._counted)
            for liveness in self.program.liveness:
                self._property(source, liveness)
            for refinement in self.program.refinements:
                if refinement.abstract.fairness:
                    self._refined_fairness(source, refinement)
            self._unused_fairness(source)
            self.owed_at_horizon = source.owed_at_horizon()
            if not (isinstance(source, ListedSteps) and isinstance(source.steps, Explored)):
                self._confirm()
        except _Stopped:
            pass

    def _counted(self, states: int, steps: int, waiting: int) -> None:
        if self._look(states, steps, waiting):
            raise _Stopped

    def _property(self, source: StepSource, liveness: Liveness) -> None:
        """Find the first violated clause; also note whether the property could be violated at all."""
        begun: dict[_Place, list[tuple[bool, bool]]] = {}
        for clause in liveness.clauses:
            try:
                region = source.region(clause)
            except NoTruth as unclear:
                trace = replayed(self.fair, unclear.path, None)
                self.findings.note(Violation("undefined", liveness.name, trace, unclear.blame))
                return
            counterexample = region.counterexample()
            # One violation of a property is enough: later clauses of it may be violated by the same
            # behaviour.
            if counterexample is not None:
                trace = self._taken(liveness.name, counterexample)
                points = kept_fairness(self.fair, trace)
                note = owes(Owed(clause, len(self.program.variables)), trace)
                blame = Blame(clause.span, " ".join(clause.span.text.split()), clause.bindings)
                self.findings.note(
                    Violation("liveness", liveness.name, trace, blame, fairness=points, notes=(note,))
                )
                return
            if source.is_cut:
                region.note_horizon()
            place = _Place(clause.span.start, clause.span.end, " ".join(clause.span.text.split()))
            begun.setdefault(place, []).append((region.is_triggered, region.is_owed))
        self._vacuity(liveness, begun)

    def _confirm(self) -> None:
        """Search the first states by the reference stepper for a violation of the properties found to hold.

        `ReplayFailed` where there is one: an engine that overlooks fair behaviours is so found before anyone
        relies on its answer, if it overlooks those near the initial states.
        """
        program = self.program
        violated = {of for _, of in self.findings.found}
        holding = [liveness for liveness in program.liveness if liveness.name not in violated]
        # A state with ignored variables represents others, which this search does not explore.
        if not holding or program.ignored or not has_first_states(program):
            return
        sample = ListedSteps(self.fair, FirstStates(self.fair, CONFIRMING), self._counted)
        for liveness in holding:
            try:
                is_violated = any(sample.region(clause).is_violated() for clause in liveness.clauses)
            except NoTruth:
                raise ReplayFailed(
                    f"`{liveness.name}` is undefined where the search found it to hold"
                ) from None
            if is_violated:
                raise ReplayFailed(f"`{liveness.name}` fails where it was found to hold")

    def _taken(self, name: str, behaviour: Behaviour) -> Trace:
        """A behaviour, replayed by the reference stepper."""
        if not behaviour.is_shortest:
            self.findings.notes.append(f"`{name}` may be violated by a shorter loop")
        return replayed(self.fair, behaviour.path, behaviour.loop)

    def _refined_fairness(self, source: StepSource, refinement: Refinement) -> None:
        """Find the first fair condition of the refined program that a fair behaviour does not keep."""
        name = refinement.name
        # The images of a behaviour are then no behaviour of the other program: fairness of it means
        # nothing.
        if any(of == name for _, of in self.findings.found):
            self.findings.notes.append(f"not checked, because its steps are none: fairness of {name}")
            return
        check = RefinedFairness(refinement, self.fair)
        # `number` is the state whose image is being computed: if that is undefined, its path is
        # reported.
        listed, number = source.listed(), 0

        def image(of: int) -> State:
            nonlocal number
            number = of
            return check.image(listed.steps.state(of))

        try:
            pulled = PulledFairness(listed.steps.graph, check.abstract, image, listed.pause)
        except Undefined as fault:
            path = list(map(listed.steps.state, listed.steps.graph.path(number)))
            blame = Blame(fault.span, fault.reason, ())
            self.findings.note(Violation("undefined", name, replayed(self.fair, path, None), blame))
            return
        for bit in range(len(check.abstract.conditions)):
            region = ListedRegion(listed, pulled.region(bit))
            counterexample = region.counterexample()
            if counterexample is not None:
                self.findings.note(check.violation(bit, self._taken(name, counterexample)))
                return
            if source.is_cut:
                region.note_horizon()

    def _vacuity(self, liveness: Liveness, begun: dict[_Place, list[tuple[bool, bool]]]) -> None:
        """Warn about clauses that cannot fail: all values of a `forall` together, as they share one text."""
        if not liveness.clauses:
            self.findings.vacuous.append(f"liveness `{liveness.name}` requires nothing: it has no clause")
        for place, clauses in begun.items():
            name = f"liveness `{liveness.name}`: `{place.text}`"
            if not any(triggered for triggered, _ in clauses):
                self.findings.vacuous.append(f"{name} requires nothing: its left side is never true")
            elif self.program.fairness and not any(owed for _, owed in clauses):
                self.findings.vacuous.append(f"{name} holds without fairness: nothing is ever due")

    def _unused_fairness(self, source: StepSource) -> None:
        ever = source.ever_enabled()
        for declared, fairness in enumerate(self.program.fairness):
            # If no action ever runs at all, there are separate warnings.
            points = [self.program.actions[index].point for index, _ in fairness.actions]
            if not any(self._coverage[point] for point in points):
                continue
            bits = [bit for bit, one in enumerate(self.fair.conditions) if one.declared == declared]
            if not any(ever >> bit & 1 for bit in bits):
                self.findings.vacuous.append(
                    f"{fairness.span.where}: fairness of `{fairness.span.text}` has no effect: "
                    "none of its steps ever changes the state"
                )
        if not source.is_cut:
            return
        every = source.region(None)
        # A behaviour may end at an undefined step, too, where no horizon cuts anything off.
        if every.is_cut and not every.is_violated():
            bounds = ", ".join([*self.program.horizons, *(prop.name for prop in self.program.constraints)])
            self.findings.vacuous.append(
                f"no behaviour within {bounds} is fair: each ends there, so no temporal property can fail"
            )
