"""Operators as compiled code: each by itself, so that a broken emitter is named by its operator."""

from __future__ import annotations

import pytest

from laws.operators import cases
from native.emitted import is_supported, miscompiled, misjudged
from specchk.ir.ops import Op


@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
def test_the_code_of_an_operator_computes_its_meaning(op: Op) -> None:
    """Read from a state, stored in a wider place, and folded: the value of the reference, or none."""
    assert not miscompiled(op)


@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
def test_an_operator_loops_as_its_card_says(op: Op) -> None:
    """Straight code may be computed needlessly; code that visits items one by one may not."""
    assert not misjudged(op)


def test_only_sets_that_are_too_large_are_not_compiled() -> None:
    """What is left out above is left to the reference engine."""
    left_out = {op for op in Op for expr, kinds in cases(op) if not is_supported(expr, kinds)}
    assert left_out == {Op.RANGE, Op.SUBSETS}
    assert all(any(is_supported(expr, kinds) for expr, kinds in cases(op)) for op in left_out)
