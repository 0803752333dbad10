"""Random actions in several orders of their lines: every engine does what the language's document says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from grown import plain_state
from naive import Naive
from naive_values import Nothing

from agreement.conjunctions import spec_of
from agreement.every_engine import compare
from agreement.reordered import alone, compared, reordered, text_alone
from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_lines_decides_nothing(seed: int, tmp_path: Path) -> None:
    """Steps, cuts, faults, enabledness and coverage are those of the rules, in every order of the lines."""
    counts, wrong = compared(seed, 20, 4, tmp_path)
    assert wrong == []
    assert min(counts.values()) > 0  # some are enabled, some are not, ...


@pytest.mark.parametrize("seed", range(12))
def test_every_engine_reads_an_action_as_a_conjunction(seed: int, tmp_path: Path) -> None:
    """One action with deadlocks: the enumerating engines, zones with and without horizons, and the solver."""
    for block in reordered(seed, 1, 3)[0][1:]:
        assert alone(block, tmp_path) == []
        comparison = compare(text_alone(block), tmp_path, symmetry=False, keep_going=True)
        assert comparison is not None
        assert comparison.wrong == []


@pytest.mark.parametrize("seed", range(8))
def test_the_naive_reading_of_the_tree_agrees(seed: int, tmp_path: Path) -> None:
    """tests/core/naive.py, the definition that is compared elsewhere, has the same steps and faults."""
    for block in reordered(seed, 1, 3)[0]:
        checked = check("alone.spec", spec_of([block]))
        instance = instantiate(checked, None)
        naive, stepper = Naive(checked, instance.model), Stepper(instance.program)
        for state in initial_states(instance.program):
            try:
                steps = Counter(plain_state(instance, after) for _, _, after in stepper.successors(state))
            except Faulty:
                with pytest.raises(Nothing):
                    naive.successors(plain_state(instance, state))
                continue
            assert Counter(after for _, after in naive.successors(plain_state(instance, state))) == steps
