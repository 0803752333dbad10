"""Runs cases: each step of a path, every forbidden step along it, and a comparison after each.

A case with the same beginning as the one before it continues from where they part, from the saved system;
so the cases of a class cover, which are sorted, are executed as the tree that they form.  Cases can be spread
over processes: each takes a slice and returns its counts.

Invariants: a case's result does not depend on the cases before it; the first failing case is that of
the lowest position, and the numbers are those of one runner that took all, however many there were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.conform.contract.binding import BindingError
from specchk.conform.covers.cases import CaseStep, Suite, SuiteCase
from specchk.conform.replay.place import Diverged, Divergence, Place, ReplayTally
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.spec_side import ActionCall
from specchk.conform.replay.suites import Coverage, SuiteResult, why_vacuous
from specchk.conform.work.forks import each
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import NoAnswer
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State
from specchk.processes import cores

S = TypeVar("S")
Prefix = tuple[int, tuple[CaseStep, ...]]


class StaleCase(Exception):
    """A case that is not a path of the spec, because it was made for another version."""


# An error of the binding, spec or suite, not of the harness.
PASSING = (BindingError, Faulty, NoAnswer, Undefined, StaleCase)


class CaseResult(Struct, frozen=True):
    """The result of a case; `taken` is less than its steps if the implementation chose otherwise."""

    divergence: Divergence | None
    taken: int


class Done(Struct):
    """The results of a runner."""

    cases: int = 0
    disabled: int = 0
    states: set[State] = field(default_factory=set)
    covered: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    impossible: set[int] = field(default_factory=set)
    failure: tuple[int, Divergence] | None = None  # with the case's position
    passed: list[int] = field(default_factory=list)  # the cases' positions
    tally: ReplayTally = field(default_factory=ReplayTally)
    blind_to: tuple[str, ...] = ()

    def add(self, done: Done) -> None:
        """Add the results of another worker."""
        self.cases += done.cases
        self.disabled += done.disabled
        self.states |= done.states
        self.covered |= done.covered
        self.refused |= done.refused
        self.impossible |= done.impossible
        self.failure = self.failure or done.failure
        self.passed += done.passed
        self.tally.add(done.tally)
        self.blind_to = self.blind_to or done.blind_to


class Runner(Generic[S]):
    """Runs cases of one suite with one replayer, preferably in the suite's order."""

    def __init__(self, replayer: Replayer[S], suite: Suite) -> None:
        self.replayer = replayer
        self.done = self._new_page()
        self._initial = tuple(initial_states(replayer.program))
        self._steps: tuple[CaseStep, ...] = ()  # along which there are places
        self._places: list[Place[S]] = []
        self._wanted = _probes_at(suite)

    def follow(self, before: SuiteCase, case: SuiteCase) -> None:
        """Continue as after `before`, where `case` is next and another runner ran the cases before it.

        The common part of the two is executed here, too, and counted there.  So the numbers of a suite are
        the same, in however many slices it is taken.
        """
        steps = zip(before.steps, case.steps, strict=False)
        shared = next((n for n, (old, new) in enumerate(steps) if old != new),
                      min(len(before.steps), len(case.steps)))  # fmt: skip
        done, self.done = self.done, self._new_page()
        with suppress(Diverged):  # is for the other runner to report
            self._take(replace(before, steps=before.steps[:shared]))
        # Counting begins again: the shared steps are on the page of the runner that has them in its slice.
        self.done, self.replayer.tally = done, done.tally

    def _new_page(self) -> Done:
        """Reset the counts."""
        self.replayer.tally = ReplayTally()
        return Done(tally=self.replayer.tally)

    def run(self, case: SuiteCase) -> CaseResult:
        """Run a case from its initial state, or from where the previous case began to differ."""
        divergence = None
        taken = 0
        self.done.cases += 1
        try:
            taken = self._take(case)
        except Diverged as diverged:
            divergence = diverged.divergence
        self.done.blind_to = self.done.blind_to or self.replayer.blind_to
        return CaseResult(divergence, taken)

    def _take(self, case: SuiteCase) -> int:
        shared = self._shared(case)
        # Saved systems along the shared steps are used again; places after them are of another path.
        del self._places[shared + 1 :]
        self._steps = case.steps[:shared]
        if not self._places:
            place = self.replayer.begin()
            # Another initial state than the case's is the implementation's choice, and no failure.
            if place.state != self._initial[case.start]:
                return 0
            self._arrive(place, case, 0)
        for number in range(shared, len(case.steps)):
            after = after_step(self.replayer, self._places[-1], case.steps[number])
            if after is None:
                return number
            self.done.covered.update(case.classes[number])
            self._steps = case.steps[: number + 1]
            self._arrive(after, case, number + 1)
        return len(case.steps)

    def _shared(self, case: SuiteCase) -> int:
        """The number of initial steps that lead along known places."""
        if not self._places or self._places[0].state != self._initial[case.start]:
            self._places.clear()
            return 0
        # A step that diverged on its arrival is among `_steps`, but has no place to continue from.
        pairs = zip(case.steps, self._steps[: len(self._places) - 1], strict=False)
        return next((n for n, (step, known) in enumerate(pairs) if step != known),
                    min(len(case.steps), len(self._places) - 1))  # fmt: skip

    def _arrive(self, place: Place[S], case: SuiteCase, number: int) -> None:
        """Check a new place: that it can be reopened and restored, and the steps that it forbids."""
        try:
            self.replayer.check_reopened(place)
            if self.replayer.spec.inside(place.state):
                disabled = self.replayer.spec.forbidden(place.state)
                self._probe(place, disabled, self._wanted.get((case.start, case.steps[:number]), {}))
        except Diverged:
            # If it is not the saved place, findings there do not count.
            self.replayer.check_kept(place)
            raise
        # After the probes: if one of them changed the saved system, it is detected here, not in a later case.
        self.replayer.check_kept(place)
        self.done.states.add(place.state)
        self._places.append(place)

    def _probe(
        self, place: Place[S], disabled: Sequence[ActionCall],
        wanted: dict[tuple[str, tuple[str, ...]], list[int]],
    ) -> None:  # fmt: skip
        self.done.disabled += len(disabled)
        all_asked = self.replayer.probe(place, disabled)
        if wanted:
            for instance, asked in zip(disabled, all_asked, strict=True):
                classes = wanted.get((instance.label.action, instance.label.args), [])
                (self.done.refused if asked else self.done.impossible).update(classes)


def after_step(replayer: Replayer[S], place: Place[S], step: CaseStep) -> Place[S] | None:
    """The place after a step; None if the implementation made another allowed choice."""
    # Looked up again in the state and not by the case's numbers: a case of another spec is detected here
    # (`StaleCase`).
    instance = replayer.spec.call(step.action, step.args)
    successors = () if instance is None else replayer.spec.allowed(place.state, instance)
    if instance is None or not successors:
        raise StaleCase(f"{step} is not enabled at its place in the case")
    wanted = sorted(successors)[step.choice]
    reached = replayer.take(place, instance, successors)
    return next((after for after in reached if after.state == wanted), None)


def _probes_at(suite: Suite) -> dict[Prefix, dict[tuple[str, tuple[str, ...]], list[int]]]:
    """The probes of a suite, by the path to their place."""
    places: dict[Prefix, dict[tuple[str, tuple[str, ...]], list[int]]] = {}
    for probe in suite.probes:
        case = suite.cases[probe.case]
        wanted = places.setdefault((case.start, case.steps[: probe.step]), {})
        wanted.setdefault((probe.action, probe.args), []).append(probe.of)
    return places


def run_suite(
    replayer: Replayer[Any], suite: Suite, *, cases: Sequence[SuiteCase] | None = None, workers: int = 1
) -> SuiteResult:
    """Run all or some cases of a suite, up to the first that fails; with `workers` 0, on all cores."""
    begun = perf_counter()
    chosen = suite.cases if cases is None else cases
    wanted = workers or cores()

    # A separate runner for each slice: it counts into the replayer, of which each forked process has a
    # copy.
    def task(positions: range) -> Callable[[], Done]:
        return lambda: run_slice(Runner(replayer, suite), chosen, positions)

    parts = each([task(one) for one in slices(len(chosen), wanted)], wanted, PASSING)
    return merged(suite, chosen, parts, perf_counter() - begun)


def slices(count: int, parts: int) -> list[range]:
    """The positions from 0 up to `count`, divided into at most this many parts of about the same size."""
    size = max(1, -(-count // parts))
    return [range(first, min(first + size, count)) for first in range(0, count, size)]


def run_slice(runner: Runner[Any], cases: Sequence[SuiteCase], positions: range) -> Done:
    """Run some of the cases with a new runner, up to the first that fails; returns their results."""
    first = positions.start
    if first > 0 and len(positions) > 0:
        runner.follow(cases[first - 1], cases[first])
    for position in positions:
        divergence = runner.run(cases[position]).divergence
        if divergence is not None:
            runner.done.failure = position, divergence
            break
        runner.done.passed.append(position)
    return runner.done


def merged(suite: Suite, cases: Sequence[SuiteCase], parts: Sequence[Done], seconds: float) -> SuiteResult:
    """The results of a suite's slices, in order, merged as if by a single runner."""
    done = Done()
    for part in parts:
        done.add(part)
        if part.failure is not None:
            # As one runner would have ended here: later slices are not counted.
            break
    failed, divergence = (None, None) if done.failure is None else done.failure
    coverage = Coverage(
        done.cases, suite.classes, frozenset(done.covered), suite.probe_classes,
        # A class that one place refuses and another cannot try counts as refused: the implementation has
        # shown it once.
        frozenset(done.refused), frozenset(done.impossible - done.refused), frozenset(suite.never),
        frozenset(n for at in done.passed for classes in cases[at].classes for n in classes),
        suite.cover if done.cases == len(suite.cases) else "", suite.states, suite.edges,
    )  # fmt: skip
    complete = suite.complete and divergence is None and len(cases) == len(suite.cases)
    vacuous = "" if divergence is not None else why_vacuous(done.tally, done.blind_to, done.disabled)
    if suite.kind == "lassos" and not suite.cases:
        vacuous = "no step of the spec is on a loop"
    # Where the whole graph has no forbidden step there is none to try.
    if not divergence and not vacuous and not done.disabled and (suite.probe_classes or not suite.complete):
        vacuous = "no forbidden step was tried"
    return SuiteResult(
        suite.kind, divergence, done.tally, len(done.states), complete, seconds, vacuous,
        None if failed is None else cases[failed].id, coverage, tuple(cases[at].id for at in done.passed),
    )  # fmt: skip
