"""`specchk test` shows what `run` warns of: properties that cannot fail, steps that change nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

STILL = """spec still
sort Node
var m : Node -> 0..3 = { n: 0 for n in Node }
action put(n: Node):
    m'[n] = m[n]
invariant small: forall n in Node: m[n] > 1 implies m[n] > 0
model s:
    Node = 2
"""
UNFAIR = """spec unfair
const Most : int
var now : nat upto Most = 0
var on : bool = false
action tick():
    now' = now + 1
action flip():
    on' = not on
invariant late: now > 2 implies now > 1
fair tick()
liveness goes: eventually on
model short:
    Most = 2
model long:
    Most = 3
"""
NO_CHANGE = "no step changes the state, so only initial states were checked"
NOT_FAIR = "no behaviour within Most=2 is fair: each ends there, so no temporal property can fail"


@pytest.fixture(autouse=True)
def specs(here: Path) -> None:
    (here / "still.spec").write_text(STILL, encoding="utf-8")
    (here / "unfair.spec").write_text(UNFAIR, encoding="utf-8")


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_a_model_whose_steps_change_nothing_has_a_warning(specchk: Any, engine: str) -> None:
    said = specchk("run", "still.spec", "--engine", engine)
    assert said.code == 0
    assert f"warning: {NO_CHANGE}" in said.out
    strict = specchk("run", "still.spec", "--engine", engine, "--strict")
    assert strict.code == 10
    assert strict.out.startswith(f"violated: {NO_CHANGE}")


def test_steps_between_initial_states_are_changes(specchk: Any, here: Path) -> None:
    text = STILL.replace("= { n: 0 for n in Node }", "in { { n: k for n in Node } for k in 0..3 }")
    (here / "still.spec").write_text(text.replace("m'[n] = m[n]", "m' = { k: 0 for k in Node }"))
    said = specchk("run", "still.spec")
    assert said.code == 0
    assert "changes" not in said.out


def test_test_shows_the_warnings_of_run(specchk: Any) -> None:
    said = specchk("test", "still.spec", "unfair.spec")
    assert said.code == 0
    assert f"warning: {NO_CHANGE}" in said.out
    assert "warning: still.spec:6:36: in `small` the antecedent `m[n] > 1` is never true\n" in said.out
    assert NOT_FAIR in " ".join(said.out.split())


def test_an_antecedent_that_is_true_in_one_model_has_no_warning(specchk: Any) -> None:
    assert "`now > 2`" in specchk("run", "unfair.spec").out
    assert "`now > 2`" not in specchk("test", "unfair.spec").out


def test_warnings_fail_a_strict_test(specchk: Any) -> None:
    said = specchk("test", "still.spec", "unfair.spec", "--strict")
    assert said.code == 10
    assert f"unexpected: {NO_CHANGE}\n" in said.out
    assert f"unexpected: {NOT_FAIR}" in said.out
    assert "3 not" in said.out


def test_the_json_of_a_test_has_the_warnings(specchk: Any) -> None:
    report = json.loads(specchk("test", "still.spec", "--json").out)
    assert NO_CHANGE in report["results"][0]["warnings"]
    assert report["notes"] == ["still.spec:6:36: in `small` the antecedent `m[n] > 1` is never true"]
