"""`specchk run --prove` and `--depth`: their reports, exit codes and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

COUNTER = """spec counter
type Offset = nat upto 4
var low : Offset = 0
var high : Offset = 0
action up():
    high' = high + 2
action follow():
    require low < high
    low' = low + 1
invariant ordered: low <= high
invariant never_seven: high != 7
invariant even: high % 2 == 0
invariant short: high < 4
model m:
    properties ordered, never_seven, even
    expect holds
"""


@pytest.fixture(autouse=True)
def counter(here: Path) -> None:
    (here / "counter.spec").write_text(COUNTER, encoding="utf-8")


@pytest.mark.parametrize(
    ("args", "code", "start"),
    [
        ([], 0, "holds by induction, beyond low and high upto 4: counter, model m"),
        (["--k", "2"], 0, "holds by 2-induction"),
        (["--property", "never_seven"], 21, "inconclusive: induction does not prove `never_seven`"),
        (["--property", "short"], 10, "violated: invariant `short`"),
    ],
)
def test_a_proof_says_its_verdict_first(specchk: Any, args: list[str], code: int, start: str) -> None:
    """0 is a proof, 10 a violation, 21 neither."""
    said = specchk("run", "counter.spec", "--prove", *args)
    assert (said.code, said.err) == (code, "")
    assert said.out.startswith(start)


def test_without_horizons_a_state_that_is_not_enumerated_is_unreachable(specchk: Any, here: Path) -> None:
    """There is nothing beyond: all states of the model were searched."""
    text = """\
spec plain
var f : 0..2 = 0
action go():
    require f == 1
    f' = 2
invariant small: f < 2
deadlock ok
model m:
    expect holds
"""
    (here / "plain.spec").write_text(text, encoding="utf-8")
    out = specchk("run", "plain.spec", "--prove").out
    assert "and a step; the first is unreachable:" in out


def test_a_counterexample_to_induction_is_shown_as_two_states(specchk: Any) -> None:
    """The state before, the action, its changes, and that the state need not be reachable."""
    out = specchk("run", "counter.spec", "--prove", "--property", "never_seven").out
    assert "`never_seven` is not inductive: a state that satisfies all invariants, and a step" in out
    assert "the first lies beyond the horizons" in out
    assert "  1  up()\n       high: 5 -> 7\n" in out


@pytest.mark.parametrize(
    ("args", "code", "start"),
    [
        (["--depth", "2"], 20, "inconclusive: no violation within 2 steps, which is not a proof"),
        (["--depth", "5", "--property", "short"], 10, "violated: invariant `short` in 2 steps"),
    ],
)
def test_a_depth_is_a_budget(specchk: Any, args: list[str], code: int, start: str) -> None:
    """A finding is a violation; the absence of findings is not a verdict."""
    said = specchk("run", "counter.spec", *args)
    assert (said.code, said.err) == (code, "")
    assert said.out.startswith(start)


def test_json_of_a_proof_is_one_object(specchk: Any) -> None:
    """With the verdict, the exit code and the proved properties."""
    said = specchk("run", "counter.spec", "--prove", "--json")
    found = json.loads(said.out)
    assert (found["schema"], found["verdict"], found["exit_code"]) == ("specchk.proof/1", "holds", 0)
    assert found["proved"] == ["ordered", "never_seven", "even"]


def test_what_has_no_encoding_is_refused_as_the_search_refuses_it(specchk: Any, here: Path) -> None:
    """A quantifier over all offsets: the same diagnostic and exit code, with its place."""
    text = COUNTER.replace("high != 7", "forall o in Offset: o + 1 > o")
    (here / "counter.spec").write_text(text, encoding="utf-8")
    ways = (["--prove"], ["--depth", "1"], ["--engine", "symbolic"])
    said = [specchk("run", "counter.spec", *way) for way in ways]
    assert {one.code for one in said} == {30}
    assert len({one.err for one in said}) == 1
    assert "counter.spec:11:" in said[0].err
    assert "S701" in said[0].err


@pytest.mark.parametrize(
    "args",
    [["--prove", "--depth", "1"], ["--k", "2"], ["--prove", "--html", "x.html"], ["--prove", "--itf", "-"]],
)
def test_options_that_do_not_go_together_are_refused(specchk: Any, args: list[str]) -> None:
    """A usage error before any work."""
    assert specchk("run", "counter.spec", *args).code == 2


CUT = """spec cut
var n : 0..30 = 0
action up():
    require n < 30
    n' = n + 1
invariant small: n <= 9
reachable far: n == 30
constraint near: n < 5
deadlock ok when n == 30
model m:
    properties small, far
"""


def test_a_proof_under_a_constraint_holds_within_it(specchk: Any, here: Path) -> None:
    """Induction takes no step from a state outside a constraint; `small` fails without it."""
    (here / "cut.spec").write_text(CUT, encoding="utf-8")
    said = specchk("run", "cut.spec", "--prove", "--certificate", "cut.cert")
    assert said.code == 0
    assert said.out.startswith("holds within near by induction: cut, model m\n")
    assert "  constraints: near\n  not checked: witness far, deadlock\n" in said.out
    assert said.err == "no certificate was written to cut.cert: the verdict is not `holds`\n"
    assert not (here / "cut.cert").exists()
    proof = json.loads(specchk("run", "cut.spec", "--prove", "--json").out)
    assert (proof["verdict"], proof["bounds"]) == ("holds_within", ["near"])
    assert proof["not_checked"] == ["witness far", "deadlock"]


def test_a_rechecked_proof_names_the_claims_that_it_is_not_about(specchk: Any, here: Path) -> None:
    """Witnesses, deadlocks, and the states outside a constraint that was added since."""
    file = here / "cut.spec"
    file.write_text(CUT.replace("small: n <= 9", "small: n <= 30").replace("constraint near: n < 5\n", ""))
    assert specchk("run", "cut.spec", "--prove", "--certificate", "cut.cert").code == 0
    said = specchk("recheck", "cut.cert")
    assert said.out.startswith("proved: cut.spec, model m\n")
    assert said.out.endswith("\n  not checked: witness far, deadlock\n")
    file.write_text(CUT.replace("small: n <= 9", "small: n <= 30"))
    assert specchk("recheck", "cut.cert").out.startswith("proved within near: cut.spec, model m\n")


def test_some_intended_ends_leave_deadlocks_to_be_checked(specchk: Any, here: Path) -> None:
    """`deadlock ok when e` allows those ends only, in JSON, too."""
    (here / "cut.spec").write_text(CUT, encoding="utf-8")
    checked = json.loads(specchk("run", "cut.spec", "--property", "small", "--json").out)["checked"]
    assert checked["deadlock"] is True


@pytest.mark.parametrize("way", [["--prove"], ["--depth", "2"], []])
def test_properties_that_are_left_out_are_named(way: list[str], specchk: Any) -> None:
    """What was not selected is not proved, and a reader has to see that."""
    args = ["run", "counter.spec", "--property", "ordered", *way]
    out = specchk(*args).out
    assert "not checked (omitted by the model): " in out or "  omitted by the model: " in out
    assert out.partition("omitted by the model")[2].splitlines()[0].endswith(": never_seven, even, short")
    found = json.loads(specchk(*args, "--json").out)
    assert found.get("left_out", found.get("checked", {}).get("left_out")) == ["never_seven", "even", "short"]
