"""Every operator is in every table, and agrees with its card on the edges of its types."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest

from laws.operators import (
    MADE,
    miscarded,
    parted,
    unclosed,
    unmarked,
    untabled,
    untried,
    unwritten,
    wordless,
)
from specchk.ir.ops import Op
from specchk.lang.check.expressions import RULES
from specchk.lang.syntax import tree

CHECKS = (untabled, untried, unwritten, miscarded, unmarked, unclosed, parted)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
def test_an_operator_is_as_its_card_says(op: Op, check: Callable[[Op], list[str]]) -> None:
    """A wrong card that calls it total drops it where it decides; one that calls it partial costs time."""
    assert not check(op)


def test_every_word_of_the_language_is_an_operator_s() -> None:
    """A built-in function is lowered to the operator whose card has its name."""
    assert not wordless()


def test_every_literal_is_given_a_type() -> None:
    """The type of any other result is computed."""
    assert set(MADE) == {op for op in Op if op.card.result is None}


def test_every_kind_of_expression_has_a_rule() -> None:
    """The checker's table is total: a new node of the tree cannot be forgotten."""
    assert set(RULES) == set(get_args(tree.Expr))
