"""An omission about an operator is named by a law: each test plants one in a table or a card."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from laws import operators
from laws.operators import TABLES, miscarded, unmarked, untabled, untried, unwritten, wordless
from native.emitted import miscompiled, misjudged
from specchk.ir.ops import Op, always, never
from specchk.meaning import rules
from specchk.native.values.expressions import RULES

by_name = pytest.mark.parametrize("op", Op, ids=lambda op: op.name)


def plant(monkeypatch: pytest.MonkeyPatch, op: Op, **changes: object) -> None:
    """An operator whose card is wrong in one place."""
    monkeypatch.setattr(op, "card", replace(op.card, **changes))  # type: ignore[arg-type]


def names(findings: list[str], op: Op) -> bool:
    return bool(findings) and all(line.startswith(op.name) for line in findings)


@by_name
def test_an_operator_missing_in_a_table_is_named(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the meaning's, the native engine's or the encoding's, and on the page of rules."""
    for room, table in TABLES.values():
        with monkeypatch.context() as patch:
            for place, name in ((room, table), (rules, "DERIVED")):
                kept = {other: rule for other, rule in getattr(place, name).items() if other is not op}
                patch.setattr(place, name, kept)
            assert names(untabled(op), op)


@by_name
def test_an_operator_that_is_not_tried_is_named(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without arguments, the other laws would have nothing to check."""
    monkeypatch.delitem(operators.SIGNATURES, op)
    assert names(untried(op), op)


@by_name
def test_an_operator_believed_total_or_partial_is_named(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each missing member of the set of partial operators is detected, and each superfluous one."""
    for partial in {never, always} - {op.card.partial}:
        with monkeypatch.context() as patch:
            plant(patch, op, partial=partial)
            assert names(miscarded(op), op)


@pytest.mark.parametrize("op", [op for op in Op if op.card.marks], ids=lambda op: op.name)
def test_an_operator_without_its_mark_is_named(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, op, marks="")
    assert names(unmarked(op), op)


@pytest.mark.parametrize("op", [op for op in Op if op.card.part_types], ids=lambda op: op.name)
def test_an_operator_without_its_parts_is_named(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, op, part_types=None)
    assert names(miscarded(op), op)


@pytest.mark.parametrize("op", [op for op in RULES if op.card.is_part], ids=lambda op: op.name)
def test_an_operator_that_gives_a_part_is_named(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code would be of the argument's type where a wider one is read."""
    plant(monkeypatch, op, is_part=False)
    assert names(miscompiled(op), op)


@by_name
def test_an_operator_that_loops_is_named(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one whose card claims it."""
    plant(monkeypatch, op, loops=not op.card.loops)
    assert names(misjudged(op), op)


@pytest.mark.parametrize("op", [op for op in Op if op.card.shapes], ids=lambda op: op.name)
def test_an_operator_with_an_argument_too_few_is_named(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, op, shapes=op.card.shapes[1:])  # type: ignore[index]
    assert names(untried(op), op)


@pytest.mark.parametrize("op", [Op.LEN, Op.SET_SUM, Op.BAG_COUNT], ids=lambda op: op.name)
def test_a_word_without_an_operator_is_named(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    word = op.card.word
    plant(monkeypatch, op, word="")
    assert wordless() == [word]


def test_a_word_that_is_not_built_in_or_means_two_things_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, Op.HEAD, word="beginning")
    assert names(unwritten(Op.HEAD), Op.HEAD)
    plant(monkeypatch, Op.LAST, word="len")
    assert names(unwritten(Op.LAST), Op.LAST)


def test_a_type_that_is_too_narrow_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval of a sum is not that of a difference, nor a set's extreme its size."""
    plant(monkeypatch, Op.ADD, result=Op.SUB.card.result)
    plant(monkeypatch, Op.SET_MIN, result=Op.CARD.card.result)
    assert names(miscarded(Op.ADD), Op.ADD)
    assert names(miscarded(Op.SET_MIN), Op.SET_MIN)
