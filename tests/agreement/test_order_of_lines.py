"""An action is a conjunction: no engine lets the order of its lines decide whether it is enabled.

Each action is written with a change above a condition and below it.  The change cannot be made: it is cut off
at a horizon, or has no value.  Where the condition is false, that must mean nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement.both import program_of
from specchk.ir.program import Program
from specchk.meaning.explain import false_guards
from specchk.meaning.step import Stepper
from specchk.meaning.tracing import Tracer
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.verdict import HoldsWithin, Outcome, Violated
from specchk.symbolic.induction.bmc import bounded

HEAD = """\
spec lines
var x : nat upto 0 = 0
var y : bool = false
var m : 0..1 -> 0..1 = { k: 0 for k in 0..1 }
var log : seq[0..1] upto 2 = []
var o : (0..1)? = none
var s : set[(0..1)?] = {}
"""
CHANGES = {
    "cut": "x' = x + 1",
    "outside": "m'[0] = 2",
    "divided": "m'[0] = 1 // x",
    "key": "m'[1 // x] = 0",
    "index": "log'[1] = 0",
    "long": "log' = [0, 1, 0]",
}
CONDITIONS = {
    "guard": "require y",
    "none": "let z = o else skip",
    "empty": "any q in s:\n        skip",
    "empty_in": "o' in s",
    "in_when": "when not y:\n        require y",
    "in_either": "either:\n        require y\n    or:\n        require y and m[0] == 0",
    "in_when_else": "when y:\n        skip\n    else:\n        require y",
}


def action(*lines: str) -> str:
    return "action act():\n" + "".join(f"    {line}\n" for line in lines)


def outcomes(text: str, folder: Path, *, keep_going: bool = False) -> list[Outcome]:
    """What the enumerating engines report."""
    program = program_of(text, folder)
    assert program is not None
    return [
        reference.search(program, Options(symmetry=False, keep_going=keep_going)),
        native.search(program, native.NativeOptions(symmetry=False, keep_going=keep_going)),
    ]


def first(outcome: Outcome) -> tuple[str, str]:
    assert isinstance(outcome.verdict, Violated)
    return outcome.verdict.violations[0].kind, outcome.verdict.violations[0].name


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_means_nothing_where_a_condition_is_false(
    change: str, condition: str, tmp_path: Path
) -> None:
    """The initial state is a deadlock, wherever the change is, and nothing was cut off."""
    lines = CHANGES[change], CONDITIONS[condition]
    for order in (lines, lines[::-1]):
        for outcome in outcomes(HEAD + action(*order), tmp_path):
            assert first(outcome)[0] == "deadlock"
            assert outcome.statistics.horizon_cuts == 0
            assert set(outcome.coverage) == {0}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_counts_where_all_conditions_hold(change: str, tmp_path: Path) -> None:
    """Cut off or undefined, and not disabled, in both orders."""
    for order in ((CHANGES[change], "require not y"), ("require not y", CHANGES[change])):
        for outcome in outcomes(HEAD + action(*order), tmp_path):
            if change == "cut":
                assert isinstance(outcome.verdict, HoldsWithin)
                assert outcome.statistics.horizon_cuts == 1
                assert set(outcome.coverage) == {1}  # enabled, though not taken
                assert not any("never enabled" in warning for warning in outcome.warnings)
            else:
                assert first(outcome) == ("undefined", "act")


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "cut"])
def test_what_is_undefined_is_not_hidden_by_a_cut(change: str, tmp_path: Path) -> None:
    """A step that is undefined beyond a horizon is undefined within it."""
    for order in ((CHANGES["cut"], CHANGES[change]), (CHANGES[change], CHANGES["cut"])):
        for outcome in outcomes(HEAD + action(*order), tmp_path):
            assert first(outcome) == ("undefined", "act")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("{ a: nat upto 0, b: 0..1 }", "{ a: 1, b: 2 }"),
        ("{ b: nat upto 0, a: 0..1 }", "{ b: 1, a: 2 }"),
        ("seq[0..1 -> Part] upto 2", "[{ k: if k == 0 then 1 else -1 for k in 0..1 }]"),
        ("set[Part]", "{1, -1}"),
        ("set[(Part, Part)]", "{(1, 0), (0, -1)}"),
    ],
)
def test_a_value_with_a_part_outside_its_range_is_undefined(kind: str, value: str, tmp_path: Path) -> None:
    """Whether or not another part is above a horizon, and whichever is first."""
    if "Part" in kind:
        kind = kind.replace("Part", "Offset")
    head = f"spec parts\ntype Offset = nat upto 0\nvar v : ({kind})? = none\n"
    for outcome in outcomes(f"{head}action act():\n    v' = some({value})\n", tmp_path):
        assert first(outcome) == ("undefined", "act")


def test_a_place_assigned_twice_is_undefined_even_if_one_value_is_cut(tmp_path: Path) -> None:
    """In both orders; which keys are equal is known in the state only."""
    head = "spec twice\nvar m : 0..1 -> nat upto 0 = { k: 0 for k in 0..1 }\n"
    for values in ((1, 0), (0, 1)):
        text = f"action act(a: 0..1, b: 0..1):\n    m'[a] = {values[0]}\n    m'[b] = {values[1]}\n"
        for outcome in outcomes(head + text, tmp_path):
            assert first(outcome) == ("undefined", "act")


def test_a_step_is_cut_off_once_on_each_path(tmp_path: Path) -> None:
    """Three choices above or below the change are three steps that are cut off."""
    choice = "any q in 0..2:\n        require q < 2\n        m'[0] = q"
    for order in ((CHANGES["cut"], choice), (choice, CHANGES["cut"])):
        for outcome in outcomes(HEAD + action(*order), tmp_path):
            assert outcome.statistics.horizon_cuts == 2


def test_a_branch_is_taken_only_by_a_step(tmp_path: Path) -> None:
    """A guard below `either` or `when` keeps the branch from being taken, as one above it does."""
    choice = "either:\n        m'[0] = 0\n    or:\n        when y:\n            skip"
    counts = [
        outcome.coverage
        for order in (("require y", choice), (choice, "require y"))
        for outcome in outcomes(HEAD + action(*order) + "deadlock ok\n", tmp_path)
    ]
    assert {set(each) == {0} for each in counts} == {True}


def test_liveness_needs_no_step_that_is_disabled(tmp_path: Path) -> None:
    """A step cut off below a horizon would be owed; one whose guard is false is not."""
    for order in (("x' = x + 1", "require y"), ("require y", "x' = x + 1")):
        text = HEAD + action(*order) + "liveness done: eventually y\nfair act\ndeadlock ok\n"
        for outcome in outcomes(text, tmp_path):
            assert first(outcome) == ("liveness", "done")


def test_a_bounded_search_agrees(tmp_path: Path) -> None:
    """The solver's formulas have the same order of rules; horizons it has none."""
    for condition, expected in (("require y", "deadlock"), ("require not y", "undefined")):
        for order in ((CHANGES["divided"], condition), (condition, CHANGES["divided"])):
            program = program_of(HEAD + action(*order), tmp_path)
            assert program is not None
            assert first(bounded(program, 1, Budget()))[0] == expected


def _program(folder: Path, *lines: str) -> Program:
    program = program_of(HEAD + action(*lines) + "deadlock ok\n", folder)
    assert program is not None
    return program


def test_a_refusal_is_explained_by_the_same_guards(tmp_path: Path) -> None:
    """Those below a change are false for the same reason as those above it."""
    guards = "require y", "require m[0] == 1"
    seen = []
    for order in (
        (CHANGES["cut"], *guards),
        (guards[0], CHANGES["cut"], guards[1]),
        (*guards, CHANGES["cut"]),
    ):
        program = _program(tmp_path, *order)
        stepper = Stepper(program)
        state = (0, False, (0, 0), (), (), ())
        blames = false_guards(stepper.evaluator, program.actions[0], state, ())
        (looked,) = Tracer(program).look(state)
        assert not looked.beyond
        ends = [mark for marks in looked.dead_ends for mark in marks if mark.kind == "end"]
        seen.append(([blame.text for blame in blames], len(ends)))
    assert seen == [(["y", "m[0] == 1"], 2)] * 3


REFINED = """\
spec abstract
var a : 0..1 = 0
var b : 0..1 = 0
action move():
    {0}
    {1}
"""
REFINING = """\
spec concrete
var a : 0..1 = 0
var b : 0..1 = 0
action other():
    require a == 0
    b' = 1
deadlock ok
refines abstract with {{ a = a, b = b }}
"""


@pytest.mark.parametrize("swap", [False, True])
def test_a_refined_action_is_a_conjunction_too(swap: bool, tmp_path: Path) -> None:
    """A change that has no value is no fault where a guard of the refined action is false."""
    lines = ("b' = 1 // a", "require a == 1")
    (tmp_path / "abstract.spec").write_text(REFINED.format(*(lines[::-1] if swap else lines)))
    for outcome in outcomes(REFINING.replace("{{", "{").replace("}}", "}"), tmp_path):
        assert first(outcome) == ("refinement", "abstract")
