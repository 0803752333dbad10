"""Tiers: the suites of a binding for a quick check, for every change, and for a nightly run.

    smoke        in seconds: a sample of the cases of each suite, chosen to have as many classes as it can
    gate         for every change: all cases, at two or more bounds
    exhaustive   every edge of a state graph

Each suite of a tier is a `Part`, with its own program, binding and replayer; parts run in
parallel.  A suite that a budget has cut is never reported as conforming.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk.compile.instantiate import Instance, instantiate
from specchk.conform.contract.binding import At, Binding
from specchk.conform.covers.cache import cached_suite
from specchk.conform.covers.cases import MADE_OF_CASES, Suite, SuiteCase, label_of
from specchk.conform.covers.lassos import ROUNDS
from specchk.conform.covers.tours import MOST_SEQUENCES
from specchk.conform.gate.choices import applied, listed_of
from specchk.conform.gate.lock import of_spec
from specchk.conform.replay.faults import run_faults
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import PASSING, run_suite
from specchk.conform.replay.suites import SuiteResult, SuiteWalks, run_product, run_walks
from specchk.conform.work.forks import each
from specchk.conform.work.lock_file import Choices, Listed
from specchk.ir.program import Program
from specchk.lang.frontend import CheckedSpec
from specchk.processes import cores

TIERS = ("smoke", "gate", "exhaustive")
SUITES = (*MADE_OF_CASES, "product", "walks", "faults")
MAX_STATES = 200_000  # of a graph that a suite of cases is computed from
# A smoke run is for the time between two edits: some seconds in all.
SMOKE_STATES = 2_000
SMOKE_STEPS = 600
SMOKE_WALKS = SuiteWalks(0, 10, 30)
WALKS = SuiteWalks(0, 100, 50)


class SuiteBudget(Struct, frozen=True):
    """The limits of a part.

    States of the graph, steps of a sample, how to walk, sequences of edges, rounds of loops.
    """

    max_states: int | None = MAX_STATES
    sample_steps: int | None = None
    walks: SuiteWalks = WALKS
    sequences: int = MOST_SEQUENCES
    rounds: int = ROUNDS


BUDGETS: Mapping[str, SuiteBudget] = MappingProxyType({
    "smoke": SuiteBudget(SMOKE_STATES, SMOKE_STEPS, SMOKE_WALKS, 0),
    "gate": SuiteBudget(),
    "exhaustive": SuiteBudget(None),
})  # fmt: skip


class Part(Struct, frozen=True):
    """One suite of a tier, on a program and a binding of its own.

    `listed` are the choices that the implementation is known to make there.
    """

    at: At
    instance: Instance
    binding: Binding[Any]
    listed: Listed | None = None

    @property
    def label(self) -> str:
        """The model and its bounds, as in `two_brokers MaxOffset=1`."""
        return label_of(self.instance.program.model, self.bounds)

    @property
    def name(self) -> str:
        """The label, and the kind of suite if it is not that of classes."""
        return self.label if self.at.suite == "classes" else f"{self.label} ({self.at.suite})"

    @property
    def bounds(self) -> tuple[tuple[str, str], ...]:
        """The constants that are set."""
        return tuple(self.at.bounds.items())

    def suite(self, budget: SuiteBudget) -> Suite:
        """The cases of a part whose suite consists of cases."""
        suite = cached_suite(
            self.instance, self.at.suite, self.bounds,
            budget.max_states, budget.sequences, budget.rounds,
        )  # fmt: skip
        return with_choices(suite, self.instance.program, self.listed)


def with_choices(suite: Suite, program: Program, listed: Listed | None) -> Suite:
    """A suite with the choices that the implementation is known to make, if they apply."""
    # Of a graph that a limit has cut a class may be missing, so nothing in it is known never to be taken.
    counts = listed is not None and suite.kind == "classes" and suite.complete
    return applied(suite, program, listed) if counts and listed else suite


def parts_of(
    cls: type[Binding[Any]], checked: CheckedSpec, chosen: Sequence[At], choices: Choices | None = None
) -> list[Part]:
    """The parts of a tier; raises `SpecError` or `BindingError` for one that does not fit."""
    parts = []
    spec = of_spec(checked)[0] if choices is not None else ""
    for at in chosen:
        instance = instantiate(checked, at.model or cls.model, at.bounds)
        part = Part(at, instance, cls(instance.program))
        parts.append(replace(part, listed=listed_of(choices, spec, part.label, instance.program)))
    return parts


def run_parts(parts: Sequence[Part], budget: SuiteBudget, workers: int = 0) -> list[SuiteResult]:
    """Run all parts, in `workers` processes at a time; 0 for one on each core."""
    wanted = workers or cores()
    if len(parts) == 1:
        # One part is spread over the cores by its cases.  Of several each has a core: cut in slices, a
        # suite would take the steps that its cases share once for each slice.
        return [run_part(parts[0], budget, wanted)]
    return each([partial(run_part, part, budget) for part in parts], wanted, PASSING)


def run_part(part: Part, budget: SuiteBudget, workers: int = 1) -> SuiteResult:
    """Run one part."""
    replayer = Replayer(part.binding)
    if part.at.suite not in MADE_OF_CASES:
        return run_whole(replayer, part.at.suite, budget)
    suite = part.suite(budget)
    return run_suite(replayer, suite, cases=cases_of(suite, budget), workers=workers)


def run_whole(replayer: Replayer[Any], kind: str, budget: SuiteBudget) -> SuiteResult:
    """Run a suite that does not consist of cases: a product, walks, or faults."""
    if kind == "product":
        return run_product(replayer, budget.max_states)
    if kind == "walks":
        return run_walks(replayer, budget.walks)
    assert kind == "faults", kind
    return run_faults(replayer, budget.max_states)


def cases_of(suite: Suite, budget: SuiteBudget) -> Sequence[SuiteCase]:
    """The cases that fit into a budget."""
    return suite.cases if budget.sample_steps is None else sample(suite, budget.sample_steps)


def sample(suite: Suite, steps: int) -> tuple[SuiteCase, ...]:
    """All cases if they fit into this many steps, else those with the most classes per step.

    In the suite's order, so that what they share is done once.
    """
    # Shared beginnings are taken once (`runner`), so steps are counted in the tree and not by case.
    numbers: dict[Any, int] = {}

    def path(case: SuiteCase) -> set[int]:
        beginnings = [(case.start, case.steps[: end + 1]) for end in range(len(case.steps))]
        return {numbers.setdefault(beginning, len(numbers)) for beginning in beginnings}

    paths = list(map(path, suite.cases))
    if len(numbers) <= steps:
        return suite.cases
    covered: set[int] = set()
    taken: set[int] = set()
    chosen: list[int] = []

    def worth(at: int) -> tuple[float, int]:
        # Greedily the most new classes for each new step; of equal ones the first, so that the sample is the
        # same everywhere.
        return _new(suite.cases[at], covered) / max(1, len(paths[at] - taken)), -at

    while len(taken) < steps:
        best = max(range(len(paths)), key=worth)
        if not _new(suite.cases[best], covered):
            break
        chosen.append(best)
        covered.update(*suite.cases[best].classes)
        taken |= paths[best]
    return tuple(suite.cases[at] for at in sorted(chosen))


def _new(case: SuiteCase, covered: set[int]) -> int:
    return len({number for classes in case.classes for number in classes} - covered)
