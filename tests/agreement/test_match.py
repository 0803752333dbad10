"""`match` with a block for each case, and maps by a condition: the same as other constructs for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement.both import differences, states_found
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.search.budget import Budget

SPEC = """\
spec cases
sort R
sort C
type M = Fetch(to: R, n: 0..2) | Ack(by: R) | Stop
type Any = R | C
type Mode = enum {{ idle, busy, done }}
var net : set[M] = {{}}
var at : R -> 0..2 = {{ r: 0 for r in R }}
var last : R? = none
var mode : Mode = idle
var some_of : map[R, 0..2] = {{}}
action send(m: M):
    require card(net) < 1
    net' = net union {{m}}
action receive(m: M):
    require m in net
{receive}
    net' = net - {{m}}
action forget():
{forget}
action switch(who: Any):
{switch}
action filter_map():
    some_of' = {some_of}
invariant small: forall r in R: at[r] < 3
reachable mode_done: mode == done
deadlock ok
model m:
    R = 2; C = 1
"""
CASES = {
    "receive": """\
    match m:
        Fetch f:
            require at[f.to] != f.n
            at'[f.to] = f.n; last' = some(f.to)
        Ack a:
            when a.by in some_of:
                at'[a.by] = some_of[a.by]
        _: skip""",
    "forget": """\
    match last:
        none: require false
        some r:
            at'[r] = 0; last' = none""",
    "switch": """\
    match mode:
        idle:
            match who:
                R r: require at[r] == 2
                C _: require last == none
            mode' = busy
        busy: mode' in { idle, done }
        done: skip""",
    "some_of": "{ r: at[r] for r in R if at[r] > 0 }",
}
OTHERWISE = {
    "receive": """\
    either:
        let f = match m { Fetch f: some(f), _: none } else skip
        require at[f.to] != f.n
        at'[f.to] = f.n; last' = some(f.to)
    or:
        let a = match m { Ack a: some(a), _: none } else skip
        when a.by in some_of:
            at'[a.by] = some_of[a.by]
    or:
        require m is Stop""",
    "forget": """\
    let r = last else skip
    at'[r] = 0; last' = none""",
    "switch": """\
    when mode == idle:
        require match who { R r: at[r] == 2, C _: last == none }
        mode' = busy
    else:
        when mode == busy:
            mode' in { idle, done }""",
    "some_of": "{ r: at[r] for r in { q for q in R if at[q] > 0 } }",
}


def program(folder: Path, **parts: str) -> Program:
    file = folder / "cases.spec"
    file.write_text(SPEC.format(**{**CASES, **parts}), encoding="utf-8")
    return instantiate(check(str(file))).program


@pytest.mark.parametrize("part", sorted(CASES))
def test_a_match_has_the_states_of_other_statements_for_it(part: str, tmp_path: Path) -> None:
    cases, other = program(tmp_path), program(tmp_path, **{part: OTHERWISE[part]})
    assert states_found(cases) == states_found(other)
    assert len(states_found(cases)) > 100


def test_engines_agree_on_matches(tmp_path: Path) -> None:
    """Verdict, counts, lengths and coverage of the reference engine and the native one."""
    assert differences(program(tmp_path), limit=Budget(max_states=20_000)) == {}


@pytest.mark.parametrize(("receive", "code", "place", "words"), [
    ("match m:\n        Fetch f: skip\n        Stop: skip", "S306", "m", "leaves out Ack"),
    ("match m:\n        Fetc f: skip\n        _: skip", "S306", "Fetc f", "`Fetc` is not one of"),
    ("match m:\n        Stop s: skip\n        _: skip", "S306", "Stop s", "carries nothing"),
    ("match m:\n        _: skip\n        Stop: skip", "S306", "Stop", "already covered"),
    ("match at:\n        _: skip", "S301", "at", "accepts options, unions and enums"),
    ("match m:\n        Fetch at: skip\n        _: skip", "S208", "at", "`at` is already bound"),
    ("match m:\n        Fetch f: skip\n        _: at'[f.to] = 0", "S201", "f", "no name `f`"),
    ("match m:\n        Fetch f: at'[f.by] = 0\n        _: skip", "S305", "f.by", "by"),
    ("match m { Stop: skip }", "S101", "{", "end the line with `:`"),
])  # fmt: skip
def test_a_wrong_case_is_reported_once_and_in_its_place(
    receive: str, code: str, place: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as caught:
        program(tmp_path, receive=f"    {receive}")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None
    assert (diagnostic.code, diagnostic.span.text) == (code, place)
    assert words in f"{diagnostic.message} {diagnostic.hint}"


def test_a_total_map_by_a_condition_says_which_type_fits(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        program(tmp_path, receive="    at' = { r: 1 for r in R if r == r }")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "S309"
    assert "map[T, V]" in str(diagnostic.hint)
