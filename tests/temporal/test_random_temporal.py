"""The checker against the naive one, on random graphs with weak and strong fairness."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.native.machine.rooms import FIRST_ROOM
from specchk.native.packed import PackedExplored
from specchk.search import reference
from specchk.search.liveness.explored import Explored
from specchk.search.verdict import Holds, HoldsWithin, Outcome, Violated
from temporal.checked import alone
from temporal.naive import Naive, NaiveChecker
from temporal.random_temporal import random_temporal


def program_of(text: str, folder: Path) -> Program:
    file = folder / "random.spec"
    file.write_text(text, encoding="utf-8")
    return instantiate(check(str(file))).program


def compare(program: Program, outcome: Outcome, text: str) -> str:
    """Verdict and length against the naive checker; the verdict's kind."""
    (liveness,) = program.liveness
    checker = NaiveChecker(program)
    if not checker.owing(liveness.clauses[0]):
        return "no state"
    expected = next((n for c in liveness.clauses if (n := checker.check(c)).is_violated), Naive(None, None))
    if not expected.is_violated:
        assert isinstance(outcome.verdict, Holds | HoldsWithin), text
        return "holds"
    assert isinstance(outcome.verdict, Violated), text
    (violation,) = outcome.verdict.violations
    trace = violation.trace
    assert violation.kind == "liveness"
    assert trace is not None
    assert trace.loop is not None
    is_rest = trace.loop == len(trace.steps)
    # A rest is reported where there is one, and the nearest.
    assert is_rest == (expected.rest is not None), text
    assert len(trace.steps) == (expected.rest if is_rest else expected.lasso), text
    assert trace.states[trace.loop] == trace.last
    assert len(violation.fairness) == len(checker.conditions)
    return "rest" if is_rest else "loop"


def check_seeds(seeds: range, folder: Path) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for seed in seeds:
        text = random_temporal(Random(seed))
        program = program_of(text, folder)
        kind = compare(program, reference.search(program), f"# seed {seed}\n{text}")
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds


def test_random_properties_have_the_naive_verdict(tmp_path: Path) -> None:
    """Verdict and length of the counterexample, which is replayed before it is reported."""
    kinds = check_seeds(range(200), tmp_path)
    assert min(kinds["holds"], kinds["rest"], kinds["loop"]) >= 5  # all kinds are among them


def agree(seeds: range, folder: Path) -> None:
    """The native engine's answer is the reference engine's: verdict, counterexample, counts and warnings."""
    for seed in seeds:
        program = program_of(random_temporal(Random(seed)), folder)
        fair = FairSteps(program)
        packed, plain = PackedExplored(fair, FIRST_ROOM), Explored(fair)
        packed.run(lambda *_: None)
        plain.run(lambda *_: None)
        assert packed.graph == plain.graph, seed
        assert [packed.state(n) for n in range(plain.graph.count)] == plain.states
        checker = NaiveChecker(program)
        for clause in program.liveness[0].clauses:
            found = list(map(packed.truths(clause.goal), range(plain.graph.count)))
            assert found == [checker.truth(clause.goal, state) for state in plain.states], seed
    # The graph decides the rest; one whole run shows that the engine takes it.
    assert alone(program).verdict == reference.search(program).verdict


def test_compiled_code_makes_the_step_graph_of_the_reference(tmp_path: Path) -> None:
    """State by state, with the conditions of each step and those that are enabled or cut off."""
    agree(range(3000, 3008), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_compiled_code_makes_many_step_graphs(part: int, tmp_path: Path) -> None:
    """The same for 400 specs more."""
    agree(range(4000 + 100 * part, 4100 + 100 * part), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_many_random_properties_have_the_naive_verdict(part: int, tmp_path: Path) -> None:
    """The same for 2 000 specs more."""
    check_seeds(range(1000 + 250 * part, 1250 + 250 * part), tmp_path)
