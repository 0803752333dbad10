"""All conditions that never decide in replog's gate are impossible, as recorded in the lock."""

from __future__ import annotations

from collections import Counter

import pytest

from laws.sources import ROOT
from replog_rules import GATE
from specchk.cli.deciding import impossible_conditions
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import At
from specchk.conform.covers.cases import label_of
from specchk.conform.gate.choices import of_model
from specchk.conform.gate.conditions import shown_in
from specchk.conform.work.lock_file import NAME, read
from specchk.ir.program import Program
from specchk.lang.frontend import check

REPLICATION = check(str(ROOT / "spec" / "replication.spec"))
QUICK = ("three_epochs", "power_loss_and_crash", "elr_and_isr", "elected_from_elr")


@pytest.mark.system
def test_the_conditions_of_replog_are_impossible_as_the_lock_has_them():
    """By hulls in every model, which the next test repeats."""
    listed = read(ROOT / "conformance" / NAME).conditions
    assert listed is not None
    assert len(listed.undecided) == 62
    assert [one for one in listed.undecided if not one.is_impossible] == []


@pytest.mark.system
@pytest.mark.parametrize("at", [
    pytest.param(at, marks=() if at.model in QUICK else pytest.mark.slow, id=str(number))
    for number, at in enumerate(GATE)
])  # fmt: skip
def test_hulls_prove_the_conditions_of_replog_in_each_model(at: At):
    """For all offsets, in each model except those that the lock names."""
    listed = read(ROOT / "conformance" / NAME).conditions
    assert listed is not None
    program = instantiate(REPLICATION, at.model, at.bounds).program
    open_ = set(listed.undecided)
    shown = shown_in(REPLICATION, program, open_, impossible_conditions)
    label = label_of(at.model, tuple(at.bounds.items()))
    assert any(shown.values())
    assert [one for one in listed.undecided if not shown.get(one, True)] == [
        one for one in listed.undecided if label in one.bounded
    ]


def test_the_lock_counts_the_models_that_have_a_condition():
    """`unbounded` is the number of different models of the gate that have it, where none is bounded."""
    listed = read(ROOT / "conformance" / NAME).conditions
    assert listed is not None
    programs = {}
    for at in GATE:
        one = instantiate(REPLICATION, at.model, at.bounds).program
        programs.setdefault(of_model(one), one)
    open_ = set(listed.undecided)
    counts = Counter(
        condition for one in programs.values() for condition in shown_in(REPLICATION, one, open_, none_at_all)
    )
    assert {one: one.unbounded + len(one.bounded) for one in open_} == counts


def none_at_all(_program: Program, _only: object) -> tuple[()]:
    return ()
