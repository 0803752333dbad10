"""The conditions that decide in no model of a gate: found by search, kept in a file, part of the lock."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from stairs import SPEC, StairsBinding
from test_choices import Gate

from specchk.cli.commands.conditions import command
from specchk.cli.deciding import decided_conditions, impossible_conditions
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import At
from specchk.conform.gate.conditions import determined
from specchk.conform.gate.tiers import Part, parts_of
from specchk.conform.report.gate_report import ConditionStatus
from specchk.conform.work.lock_file import (
    NAME,
    BadLock,
    ConditionCounts,
    GateConditions,
    LockFile,
    UndecidedCondition,
    read,
    write,
)
from specchk.explore.conditions import Decided, conditions
from specchk.ir.program import Program
from specchk.lang.frontend import check

# In a model with Top = 0 nobody climbs to 3; one that ends at 2 never rests.
LOW = SPEC + "model none_rests:\n    Top = 2\n    expect holds\n"
CHECKED = check("stairs.spec", LOW)
CONTROLLED = """\
from stairs import StairsBinding
from specchk.conform.contract.known_bad import BadCode, BadSpec


class Bound(StairsBinding):
    controls = (
        BadCode("nobody moves", StairsBinding._go, "n if may else", "n if False else", "small"),
        BadSpec("rest at once", "small", {"Rested": "1"}),
    )
"""
# With a constant for the control, and a part of a guard that Top makes needless.
GUARDED = SPEC.replace("n == 3", "n == Rested").replace("n < Top", "n < Top and n < 8")
GUARDED = GUARDED.replace("var n", "const Rested : int = 3\nvar n")
words = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=12)


def of(*models: str, known: GateConditions | None = None) -> GateConditions:
    parts = parts_of(StairsBinding, CHECKED, [At(model) for model in models])
    return determined(CHECKED, parts, searched, known, impossible_conditions)


def searched(program: Program) -> Decided:
    return decided_conditions(program, quiet=True)


def undecided(found: GateConditions, owner: str) -> list[tuple[str, str]]:
    return [(one.effect, one.text) for one in found.undecided if one.owner == owner]


@pytest.fixture(scope="module")
def low() -> GateConditions:
    return of("none_rests")


def test_what_no_model_lets_decide_is_listed(low):
    """If step 3 is never reached the guard of `rest` forbids by its first part alone, always."""
    assert undecided(low, "rest") == [("allows", "done"), ("forbids", "done"), ("allows", "n == 3")]
    assert undecided(of("small"), "rest") == []


def test_a_condition_may_decide_in_any_of_the_models(low):
    """The lists of two models are not added up: a condition that decides in one of them is decided."""
    both = of("none_rests", "small")
    assert set(both.undecided) < set(low.undecided)
    assert both.undecided == of("small").undecided
    assert both.all == low.all
    assert list(both.models) == ["none_rests", "small"]


def test_models_with_other_actions_are_other_models():
    """With the same constants; the result for one does not apply to the other."""
    text = SPEC + "model no_rest extends small:\n    actions jump, climb\n    expect holds\n"
    checked = check("stairs.spec", text)

    def found(*models: str) -> GateConditions:
        parts = parts_of(StairsBinding, checked, [At(model) for model in models])
        return determined(checked, parts, searched, None, impossible_conditions)

    small, both = found("small"), found("small", "no_rest")
    assert (both.all, both.undecided) == (small.all, small.undecided)
    assert both.models["small"] != both.models["no_rest"]
    assert found("no_rest").all < small.all


def test_reasons_of_people_are_kept(low):
    """For the conditions that are still listed; a reason changes neither identity nor seal."""
    argued = replace(low, undecided=tuple(replace(one, reason=one.text) for one in low.undecided))
    again = of("none_rests", known=argued)
    assert [one.reason for one in again.undecided] == [one.text for one in low.undecided]
    assert again == low


@given(names=st.lists(words, unique=True, max_size=4), count=st.integers(0, 10**6))
def test_a_file_is_read_as_it_was_written(tmp_path_factory, names, count):
    """`read` is the inverse of `write`, reasons included."""
    listed = tuple(UndecidedCondition(name, "forbids", name, name, name) for name in names)
    conditions = GateConditions("spec1", count, dict.fromkeys(names, "m"), listed)
    path = tmp_path_factory.mktemp("conditions") / NAME
    write(path, LockFile(conditions=conditions))
    found = read(path).conditions
    assert found == conditions
    assert found is not None
    assert [one.reason for one in found.undecided] == names


def test_only_reasons_may_be_edited(tmp_path: Path, low):
    """A manually changed count would hide that the gate is weaker."""
    path = tmp_path / NAME
    write(path, LockFile(conditions=low))
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('reason = ""', 'reason = "too low"'), encoding="utf-8")
    found = read(path).conditions
    assert found is not None
    assert {one.reason for one in found.undecided} == {"too low"}
    path.write_text(text.replace(f"all = {low.all}", f"all = {low.all + 1}"), encoding="utf-8")
    with pytest.raises(BadLock, match="was edited"):
        read(path)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """The folder of a gate with its conditions and its lock."""
    gate = Gate(tmp_path_factory.mktemp("gate"))
    (gate.folder / "binding.py").write_text(CONTROLLED, encoding="utf-8")
    (gate.folder / "stairs.spec").write_text(GUARDED, encoding="utf-8")
    code, text = gate.conform("--update-conditions", "--update-lock")
    assert code == 0
    assert "conditions: specchk.lock written" in text
    return gate.folder


@pytest.fixture
def gate(written: Path, tmp_path: Path) -> Gate:
    gate = Gate(tmp_path)
    for path in written.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    return gate


def test_a_gate_reports_what_never_decides(gate: Gate):
    """In text, JSON and on the page; nothing is below the lock."""
    code, text = gate.conform("--lock", "--html", "a.html")
    conditions = read(gate.folder / NAME).conditions
    assert code == 0
    assert conditions is not None
    decide = conditions.all - len(conditions.undecided)
    assert f"conditions: {decide} of {conditions.all} decide in a model of the gate" in text
    assert "  never decides: climb forbids by `n < 8` in climb" in text
    assert text.count("  never decides: ") == len(conditions.undecided) == 1
    assert "<h2>Conditions</h2>" in (gate.folder / "a.html").read_text(encoding="utf-8")
    told = json.loads(gate.conform("--json")[1])["conditions"]
    assert (told["all"], len(told["undecided"]), told["current"]) == (
        conditions.all, len(conditions.undecided), True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("was", "now"), [("Top = 5", "Top = 6"), ("n > 0 and", "n >= 1 and"), ("n <= 9", "n < 10")]
)
def test_another_spec_or_model_is_below_the_lock(gate: Gate, was, now):
    """The result for other conditions does not apply to these, even if only a property differs."""
    (gate.folder / "stairs.spec").write_text(GUARDED.replace(was, now, 1), encoding="utf-8")
    code, text = gate.conform("--lock")
    assert code == 14
    assert "conditions: those in specchk.lock belong to another spec or other models and are ignored" in text
    assert "conditions: the lock has" in text


def test_fewer_that_decide_are_below_the_lock(gate: Gate):
    """The sections are separate: other conditions change nothing in the figures of the gate."""
    path = gate.folder / NAME
    conditions = read(path).conditions
    assert conditions is not None
    more = UndecidedCondition("rest", "forbids", "rest", "tired", "a reason is no excuse")
    conditions_and_more = replace(conditions, undecided=(*conditions.undecided, more))
    write(path, replace(read(path), conditions=conditions_and_more))
    code, text = gate.conform("--lock")
    lock = conditions.counts
    assert code == 14
    assert f"conditions: the lock has {lock}, this run {len(conditions.undecided) + 1} of {lock.all}" in text


def test_a_part_of_the_gate_determines_nothing(gate: Gate):
    """The conditions of one model are not those of the gate."""
    code, text = gate.conform("--model", "small", "--update-conditions")
    assert code == 2
    assert "cover the whole gate" in text


def test_an_impossible_condition_is_kept_and_reported(tmp_path: Path):
    """One that decides for no offset of any model needs no reason from a person; it is counted separately."""
    impossible = UndecidedCondition("walk", "forbids", "walk", "seen <= way", "", unbounded=2)
    listed = GateConditions("spec1", 3, {"short": "m1", "far": "m2"}, (impossible,))
    write(tmp_path / NAME, LockFile(conditions=listed))
    assert read(tmp_path / NAME).conditions == listed
    lines = [*ConditionStatus(tmp_path / NAME, listed, is_current=True).lines()]
    assert "  1 is impossible for all offsets in every model, by symbolic search" in lines
    assert not any("seen <= way" in line for line in lines)


# `walk` has a bound that only a long way reaches, and a part that nothing ever makes false.
LONG = """spec long
const Far : int = 2
const Limit : int = 5
var way : nat upto Far = 0
var seen : nat upto Far = 0
action walk():
    require way < Limit and seen <= way
    way' = way + 1
action look():
    require seen != way
    seen' = way
model short:
    expect holds
model far:
    Far = 6
    expect holds
model near:
    Limit = 1
    expect holds
model unlimited:
    Limit = 9
    expect holds
"""
IMPOSSIBLE, FAR = ("walk", "forbids", "seen <= way"), ("walk", "forbids", "way < Limit")


def proved_of(text: str, model: str = "short", **limits: int) -> set[tuple[str, str, str]]:
    """The owner, effect and text of the conditions that the symbolic engine proves impossible."""
    program = instantiate(check("long.spec", text), model).program
    keys = {condition.key for condition in conditions(program)}
    shown = impossible_conditions(program, keys, **limits)
    return {(one.owner, one.effect, one.span.text) for one in shown}


def test_impossible_is_for_all_offsets():
    """In the model `short` neither decides; behind five steps one of them does, and the other never."""
    program = instantiate(check("long.spec", LONG), "short").program
    never = {(one.owner, one.effect, one.span.text) for one in searched(program).never}
    assert {IMPOSSIBLE, FAR} <= never
    assert proved_of(LONG) == {IMPOSSIBLE}


def test_a_search_that_was_cut_shows_nothing():
    """A search ended by a budget has not reached every state."""
    assert proved_of(LONG, most=1) == set()


def test_no_offset_or_a_constraint_shows_nothing():
    """A bound that no engine opens may be the reason why a condition never decides."""
    assert proved_of(LONG + "constraint near: way < 3\n") == set()
    assert proved_of(LONG.replace("nat upto Far", "0..9")) == set()


def test_what_the_engine_refuses_is_not_shown():
    """A claim that iterates over all offsets is refused alone; the others are proved nevertheless."""
    text = LONG.replace("action look():", "action look(to: nat upto Far):").replace(
        "require seen != way", "require seen != way and to == way and seen <= way"
    )
    assert proved_of(text) == {IMPOSSIBLE}


def test_an_undefined_step_shows_nothing():
    """After many steps a step has no value, and the search ends there, before all states are reached."""
    text = LONG.replace("require seen != way", "require min({ x for x in { way } if way < 4 }) >= seen")
    program = instantiate(check("long.spec", text), "short").program
    assert searched(program).is_complete
    assert proved_of(text) == set()


# While neither mark is ahead of `high`, `kept` is what `low` was, and `low` may pass `high` only behind one.
# Of the two marks a part of `look` compares neither.
ENTAILED = """spec entailed
const Far : int = 2
var low : nat upto Far = 0
var high : nat upto Far = 0
var left : nat upto Far = 0
var right : nat upto Far = 0
var kept : nat upto Far = 0
var seen : nat upto Far = 0
action rise():
    require left <= high and right <= high
    high' = high + 1
action mark_left():
    left' = left + 1
action mark_right():
    right' = right + 1
action climb():
    require low < high or left > high or right > high
    low' = low + 1
action keep():
    require left <= high and right <= high
    kept' = low
action look():
    require kept <= high and seen < kept
    seen' = kept
invariant lower: low <= high or left > high or right > high
model short:
    expect holds
"""


def test_what_holds_in_a_model_helps_to_show_what_is_impossible():
    """The comparisons of an invariant split symbolic states where those of the condition do not suffice."""
    assert proved_of(ENTAILED) == {("look", "forbids", "kept <= high")}
    without = "\n".join([line for line in ENTAILED.splitlines() if "invariant" not in line])
    assert proved_of(without) == set()


def test_an_invariant_that_does_not_hold_shows_nothing():
    """Lemmas are claims, not assumptions: here `low` passes `high` as it likes, and `kept` with it."""
    wrong = ENTAILED.replace("require low < high or left > high or right > high", "require low < Far * 2")
    assert ("look", "forbids", "kept <= high") not in proved_of(wrong)


def long_gate(*models: str) -> GateConditions:
    checked = check("long.spec", LONG)
    parts = [
        Part(At(model), instance := instantiate(checked, model), StairsBinding(instance.program))
        for model in models
    ]
    return determined(checked, parts, searched, None, impossible_conditions)


def test_every_model_has_to_show_it():
    """A condition that decides for a larger offset in one model is listed, whatever the others show."""
    impossible, far = long_gate("short", "unlimited").undecided
    assert (impossible.text, impossible.unbounded, impossible.bounded) == ("seen <= way", 2, ())
    assert (far.text, far.unbounded, far.bounded) == ("way < Limit", 0, ("short", "unlimited"))
    assert (impossible.is_impossible, far.is_impossible) == (True, False)
    assert long_gate("short", "unlimited").counts == ConditionCounts(6, 2, 1)


def test_the_command_reports_what_is_impossible(tmp_path: Path):
    """Of two conditions that decide in neither model; one of them decides for larger offsets."""
    file = tmp_path / "long.spec"
    file.write_text(LONG, encoding="utf-8")
    given = [str(file), "--model", "short", "--model", "unlimited"]
    text = " ".join(CliRunner().invoke(command, [*given, "--prove"]).output.split())
    assert text.count(", impossible for all offsets") == 1
    assert text.endswith(" 1 of 2 are impossible for all offsets")
    told = json.loads(CliRunner().invoke(command, [*given, "--prove", "--json"]).output)
    assert [one["text"] for one in told["impossible"]] == ["seen <= way"]
    assert json.loads(CliRunner().invoke(command, [*given, "--json"]).output)["impossible"] is None
