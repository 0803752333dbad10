"""Fairness of one action out of several, and of instances over a part of the values: cases worked by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.behaviours.fairness import FairSteps
from temporal.checked import ENGINES, Runs, on_reference, program_of, verdict

# `a` and `b` take turns in being enabled: neither stays so, and one of them always is.  Each is enabled again
# and again, so strong fairness of either is enough, and weak fairness of both is not.
TURNS = """
spec turns
var s : 0..2 = 0
action flip():
    require s != 2
    s' = 1 - s
action a():
    require s == 0
    s' = 2
action b():
    require s == 1
    s' = 2
liveness done: eventually s == 2
fair flip{}
deadlock ok
model m:
    expect holds
"""

# Both are always enabled, and only `b` arrives: fairness of `a or b` is met by `a` alone.
LOOP = """
spec loop
var s : 0..2 = 0
action a():
    require s != 2
    s' = 1 - s
action b():
    require s != 2
    s' = 2
liveness done: eventually s == 2
fair {}
deadlock ok
model m:
    expect holds
"""

# Two replicas; one that waits is served or given up.  Whichever it is, what it waits for ends.
SERVED = """
spec served
sort Replica
const Honest : set[Replica]
var waits : Replica -> bool = {{ r: false for r in Replica }}
var up : bool = true
action ask(r: Replica):
    require not waits[r]
    waits'[r] = true
action toggle():
    up' = not up
action serve(how: bool, r: Replica):
    require waits[r] and up
    waits'[r] = false
action give_up(r: Replica):
    require waits[r] and not up
    waits'[r] = false
liveness ends: forall r in {}: waits[r] leadsto not waits[r]
{}
model m:
    Replica = {{ r1, r2 }}; Honest = {{ r1 }}
"""


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize("text", [
    *[TURNS.format(line) for line in ("", ", a", ", a, b", ", b")],
    LOOP.format("a or b"), LOOP.format("a"), LOOP.format("a or b").replace("fair a", "strong fair a"),
    SERVED.format("Replica", "fair serve, give_up"),
    SERVED.format("Replica", "fair serve or give_up"),  # one replica is served each time, and another starves
    SERVED.format("Replica", "fair serve(_, r), give_up(r)"),  # neither stays enabled
    SERVED.format("Replica", "fair forall r in Honest: serve(_, r) or give_up(r)"),
    SERVED.format("Replica", "fair serve(how, r) or give_up(r)").replace("not up\n    w", "false\n    w"),
])  # fmt: skip
def test_what_the_fairness_does_not_exclude_is_found(text: str, run: Runs, tmp_path: Path) -> None:
    """Each on the reference engine and the native one."""
    assert verdict(run(program_of(text, tmp_path))) == "violated"


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize("text", [
    TURNS.format(", a or b"), TURNS.format("\nstrong fair a"), TURNS.format("\nstrong fair a or b"),
    LOOP.format("b"), LOOP.format("a, b"), LOOP.format("b, a or b"),
    SERVED.format("Replica", "fair serve(_, r) or give_up(r)"),
    SERVED.format("Honest", "fair forall r in Honest: serve(_, r) or give_up(r)"),
    SERVED.format("Replica", "fair forall q in Replica: give_up(q) or serve(_, q)"),
    SERVED.format("Honest", "strong fair forall r in Honest, how in {true}: serve(how, r)\nfair toggle"),
])  # fmt: skip
def test_what_the_fairness_requires_is_kept(text: str, run: Runs, tmp_path: Path) -> None:
    assert verdict(run(program_of(text, tmp_path))) == "holds"


def test_conditions_name_their_actions_and_values(tmp_path: Path) -> None:
    """One for each value of a name, which is the same in all actions of a condition."""
    lines = (
        "fair serve(_, r) or give_up(r), toggle\n"
        "strong fair forall r in Honest, b in {false}: serve(b, r) or ask(r) or toggle"
    )
    program = program_of(SERVED.format("Replica", lines), tmp_path)
    assert [condition.text for condition in FairSteps(program).conditions] == [
        "fair serve(_, r1) or give_up(r1)", "fair serve(_, r2) or give_up(r2)",
        "fair toggle", "strong fair serve(false, r1) or ask(r1) or toggle",
    ]  # fmt: skip


def test_an_action_that_a_model_leaves_out_is_left_out_of_a_condition(tmp_path: Path) -> None:
    text = LOOP.format("a or b") + "    actions a\n"
    (condition,) = FairSteps(program_of(text, tmp_path)).conditions
    assert condition.text == "fair a"


def test_only_what_is_never_enabled_as_a_whole_has_no_effect(tmp_path: Path) -> None:
    text = LOOP.format("a, b or never") + "action never():\n    require false\n    s' = 0\n"
    assert not [
        warning for warning in on_reference(program_of(text, tmp_path)).warnings if "effect" in warning
    ]


@pytest.mark.parametrize(("line", "code", "words"), [
    ("fair serve(how, r) or give_up(how)", "S602", "parameters of `give_up`"),
    ("fair forall r in Replica: serve(how, r)", "S602", "names that the `forall` binds"),
    ("fair forall how in Replica: serve(how, _)", "S602", "`how` is Replica, but `serve` takes bool"),
    ("fair forall r in {q for q in Replica if waits[q]}: ask(r)", "S402", "ranges over constants"),
    ("fair ask or nothing", "S201", "no action `nothing`"),
    ("fair forall r in Replica: ask(r), toggle", "S101", "`,` is not expected"),
    ("fair forall n in 0..2000: toggle", "S604", "more than 1024"),
])  # fmt: skip
def test_a_condition_that_does_not_fit_has_a_reason(line: str, code: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        program_of(SERVED.format("Replica", line), tmp_path)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert words in f"{diagnostic.message} {diagnostic.hint}"
