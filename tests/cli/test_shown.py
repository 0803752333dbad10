"""`--show`: the values of expressions in each state of a counterexample, in every form of report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SPEC = """spec drain
var level : 0..3 = 3
var log : seq[0..3] upto 3 = []
def free(): int = 3 - level
action drain():
    require level > 0
    level' = level - 1
    log' = append(log, level)
action refill():
    require level == 0
    level' = 3
    log' = []
invariant some_left: level > 0
liveness full: eventually always level == 3
fair drain
model safe:
    properties some_left
model live:
    properties full
"""


@pytest.fixture(autouse=True)
def drain(here: Path) -> None:
    (here / "drain.spec").write_text(SPEC, encoding="utf-8")


def test_a_name_or_the_text_is_shown_with_what_changed(specchk):
    """If an expression has no value in some state, that is its shown value."""
    found = specchk(
        "run", "drain.spec", "--show", "left=free() * 2", "--show", "head(log)", "--show", "level == 1"
    )
    assert found.code == 10
    fault = "undefined: `head` of an empty collection"
    assert f"       left = 0\n       head(log) = {fault}\n       level == 1 = false\n" in found.out
    assert re.findall(r"left: (.*)", found.out) == ["0 -> 2", "2 -> 4", "4 -> 6"]
    assert re.findall(r"head.log.: (.*)", found.out) == [f"{fault} -> 3"]
    assert re.findall(r"level == 1: (.*)", found.out) == ["false -> true", "true -> false"]


@pytest.mark.parametrize("engine", ["native", "reference", "symbolic"])
def test_json_has_the_values_beside_the_variables(specchk, engine):
    """As numbers and collections, not as texts; also in the traces of witnesses."""
    found = specchk(
        "run", "drain.spec", "--json", "--engine", engine, "--show", "left=free()", "--show", "s={level}"
    )
    report = json.loads(found.out)
    assert [state["state"]["left"] for state in report["trace"]] == [0, 1, 2, 3]
    assert [state["state"]["s"] for state in report["trace"]] == [[3], [2], [1], [0]]
    assert report["trace"][1]["changed"] == ["level", "log", "left", "s"]


def test_itf_has_them_and_a_trace_with_them_is_read(specchk, here):
    """Names that are not variables of the spec are left out when a trace is read, and may be shown again."""
    specchk("run", "drain.spec", "--itf", "found.itf.json", "--show", "left=free()")
    written = json.loads((here / "found.itf.json").read_text(encoding="utf-8"))
    assert written["vars"] == ["level", "log", "left"]
    assert len({str(state["left"]) for state in written["states"]}) == 4
    drawn = specchk("draw", "found.itf.json", "--show", "left=free()")
    assert "left: 2 → 3" in drawn.out
    assert "left:" not in specchk("draw", "found.itf.json").out


def test_a_behaviour_that_loops_has_them(specchk):
    """The loop of a temporal property leads back to the same values."""
    found = specchk("run", "drain.spec", "--model", "live", "--json", "--show", "left=free()")
    report = json.loads(found.out)
    assert report["loop"] is not None
    assert report["trace"][-1]["state"] == report["trace"][report["loop"]]["state"]


def test_pages_and_walks_show_them(specchk, here):
    """An HTML page, and the counterexample of a walk."""
    specchk("run", "drain.spec", "--html", "report.html", "--show", "left=free()")
    assert "left" in (here / "report.html").read_text(encoding="utf-8")
    walked = specchk("simulate", "drain.spec", "--seed", "1", "--show", "left=free()")
    assert "left: 2 -> 3" in walked.out


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        ("free(", 30, "S103"), ("nothing", 30, "S201"), ("level'", 30, "S401"),
        ("level=free()", 2, "`level` is shown already"), ("log", 2, "`log` is shown already"),
    ],
)  # fmt: skip
def test_a_mistake_in_one_is_reported_before_the_search(specchk, text, code, reason):
    """With the place in the expression; names are those of the spec."""
    for command in ("run", "simulate", "draw"):
        found = specchk(command, "drain.spec", "--show", text)
        assert found.code == code
        assert reason in found.err + found.out
        assert "violated" not in found.out


@pytest.mark.parametrize("more", [("--show", "level"), ("--witness", "w"), ("--scenario", "s")])
def test_a_graph_has_no_trace_to_show_a_value_in(specchk, more):
    """The option is refused, not ignored."""
    for kind in ("states", "actions"):
        refused = specchk("draw", "drain.spec", "--model", "safe", "--kind", kind, *more)
        assert refused.code == 2
        assert f"--kind {kind} draws a model and not a trace" in refused.err
    specchk("run", "drain.spec", "--itf", "found.itf.json")
    assert specchk("draw", "found.itf.json", "--kind", "states").code == 2


def test_what_holds_has_nothing_to_show(specchk):
    """Without a counterexample the report is the same; with a proof none is expected."""
    bare, shown = (
        specchk("run", "shop.spec", "--model", "good", *more) for more in ((), ("--show", "stock + 1"))
    )
    assert shown.out.splitlines()[0] == bare.out.splitlines()[0]
    assert specchk("run", "shop.spec", "--prove", "--show", "stock").code == 2


def test_a_constant_is_no_name_for_a_value(specchk, here):
    """The report contains the constants of the model, too."""
    text = SPEC.replace("var level : 0..3 = 3", "const Full : 0..3 = 3\nvar level : 0..3 = Full")
    (here / "full.spec").write_text(text, encoding="utf-8")
    found = specchk("run", "full.spec", "--model", "safe", "--show", "Full = level")
    assert found.code == 2
    assert "--show: `Full` is shown already; choose another name: `name = e`" in found.err
