"""The traps of other checkers (tests/temporal/test_traps.py), on Spark with one partition and with two.

Those that are not here, tlaplus #354 and tla-rs #88, are rejected before there is a program for any engine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark import SparkContext

from specchk.ir.program import Program
from specchk.search.budget import Budget
from specchk.search.verdict import Outcome
from specchk.spark.engine import SparkOptions, search
from temporal.checked import Runs, program_of, verdict, violated
from temporal.test_traps import (  # noqa: F401 - pytest collects them here once more, with this `run`
    MODEL,
    RING,
    test_apalache_2985_a_counter_that_may_grow_may_also_rest,
    test_fizzbee_212_contradictory_ends_do_not_both_hold,
    test_hw_cbmc_2007_two_conditions_prove_nothing_false,
    test_tla_rs_59_a_part_of_a_component_is_judged_by_its_own_states,
    test_tla_rs_62_a_behaviour_may_stutter_forever,
    test_tla_rs_65_a_step_that_changes_nothing_is_no_step,
    test_tla_rs_66_every_arrow_of_a_loop_is_a_step,
    test_tlaplus_59_symmetry_is_off,
    test_tlaplus_201_fairness_is_judged_on_steps,
    test_tlaplus_699_safety_is_reported_first_and_time_is_not_forgotten,
    test_tlaplus_839_a_constraint_makes_nothing_fair,
    test_tlaplus_971_a_violated_property_fails_on_every_number_of_workers,
    test_tlaplus_1037_a_finite_prefix_is_judged_by_fairness,
    test_tlaplus_1440_an_undefined_predicate_is_a_violation,
)


def on_spark(partitions: int, program: Program, **options: object) -> Outcome:
    return search(program, SparkOptions(**{"handover": 1, "partitions": partitions, **options}))  # type: ignore[arg-type]


@pytest.fixture(params=[1, 2])
def run(request: pytest.FixtureRequest, context: SparkContext) -> Callable[..., Outcome]:
    """Spark with this many partitions, in the existing context."""
    return partial(on_spark, request.param)


def test_tlaplus_22_a_resumed_search_checks_time(run: Runs, tmp_path: Path) -> None:
    """Wherever the previous run ended: at the initial state, in the middle, or with all eight states."""
    program = program_of(RING + "liveness l: eventually s == 9\nfair go, flip\n" + MODEL, tmp_path)
    expected = run(program).verdict
    for states in (1, 4, 8):
        ledger = str(tmp_path / f"ledger-{states}")
        assert verdict(run(program, ledger=ledger, budget=Budget(max_states=states))) == "inconclusive"
        assert run(program, ledger=ledger, resume=True).verdict == expected


def test_tlaplus_544_no_way_to_search_omits_time_in_silence(run: Runs, tmp_path: Path) -> None:
    """Through shuffles, without a hand-over, after a violation of another kind."""
    text = RING + "invariant small: s < 2\nliveness l: eventually s == 9\nfair go, flip\n" + MODEL
    program = program_of(text.replace("s < 2", "s < 10"), tmp_path)
    for options in ({}, {"handover": 1000}):
        assert "l" in violated(run(program, **options))
    assert set(violated(run(program_of(text, tmp_path), keep_going=True))) == {"small", "l"}
