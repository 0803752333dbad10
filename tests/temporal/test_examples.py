"""Temporal properties of spec/examples against the naive checker, with and without each fair condition."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from seeded import few_of
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.search import reference
from specchk.search.verdict import Violated
from temporal.naive_time import NaiveChecker

EXAMPLES = Path(__file__).parents[2] / "spec" / "examples"
# Models of few states and conditions: the naive checker enumerates walks.
SMALL = [
    "alternating_bit weak", "binary_search four", "byzantine_broadcast two_correct",
    "cigarette_smokers three", "coffee_can ten", "fair_channel strong", "hour_clock twelve",
    "leader_ring three", "moving_cat five", "moving_cat six", "peterson_in_time fair",
    "philosophers_in_time left_handed", "philosophers_in_time together", "prisoners_one_switch known",
    "prisoners_one_switch alone_unknown", "prisoners_one_switch unknown", "replicated_log three",
    "termination_at_once three", "termination_messages two", "termination_ring three",
]  # fmt: skip
LARGER = [
    "alternating_bit_queues two_values", "prisoners four_prisoners", "queens all_of_four", "reachability two",
    "readers_writers two", "token_ring four",
]  # fmt: skip


def answers(program: Program) -> dict[str, tuple[int, bool]]:
    """The properties that fail, with the length of the counterexample and whether it ends in a rest."""
    outcome = reference.search(program)
    if not isinstance(outcome.verdict, Violated):
        return {}
    traces = {violation.name: violation.trace for violation in outcome.verdict.violations}
    return {name: (len(t.steps), t.loop == len(t.steps)) for name, t in traces.items() if t is not None}


def expected(program: Program) -> dict[str, tuple[int, bool]]:
    """The same by enumeration; of a conjunction the first clause that fails counts."""
    checker, found = NaiveChecker(program), {}
    for liveness in program.liveness:
        naive = next((n for clause in liveness.clauses if (n := checker.check(clause)).is_violated), None)
        if naive is not None:
            length = naive.lasso if naive.rest is None else naive.rest
            assert length is not None
            found[liveness.name] = (length, naive.rest is not None)
    return found


@pytest.mark.parametrize(
    "example", [*few_of(SMALL, 6), *(pytest.param(e, marks=pytest.mark.slow) for e in LARGER)]
)
def test_an_example_has_the_naive_verdict_whatever_is_fair(example: str) -> None:
    """Verdict, length, and whether it is a loop or a rest."""
    file, model = example.split()
    program = instantiate(check(str(EXAMPLES / f"{file}.spec")), model).program
    kept = [program.fairness[:at] + program.fairness[at + 1 :] for at in range(len(program.fairness))]
    found = [answers(replace(program, fairness=fair)) for fair in (program.fairness, *kept)]
    assert found == [expected(replace(program, fairness=fair)) for fair in (program.fairness, *kept)]
    assert any(found), "without some condition a property fails"
