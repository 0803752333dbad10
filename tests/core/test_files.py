"""Specs of several files have the meaning of one file with all of their contents."""

from __future__ import annotations

from pathlib import Path

import pytest
from grown import plain_state
from spec_texts import first

from specchk.compile.instantiate import Instance, instantiate
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.search.verdict import Holds

LIB = """\
spec lib
sort Node
const N : int
const twice : int = 2 * N
type Small = 0..N
type Note = Told(by: Node, n: Small) | Silent
def up(n: int): int = min(n + 1, twice)
def told(note: Note): int = match note { Told t: t.n, Silent: -1 }
"""
BASE = """\
spec base
sort Node
const N : int
var x : 0..N = 0
action up():
    require x < N
    x' = x + 1
invariant small: x <= N
deadlock ok when x == N
"""
MORE = """\
spec more
extends base
var last : Node? = none
action mark(n: Node):
    require x > 0
    last' = some(n)
invariant marked_late: last != none implies x > 0
model two:
    Node = 2, N = 2
"""
USER = """\
spec user
import lib
var x : lib.Small = 0
var note : lib.Note = lib.Silent
action step(n: lib.Node):
    require x < lib.N
    x' = lib.up(x)
    note' = lib.Told(by: n, n: x)
action stay():
    skip
invariant behind: lib.told(note) == x - 1
model two:
    lib.Node = 2, lib.N = 2
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("lib", LIB), ("base", BASE), ("more", MORE), ("user", USER)):
        (tmp_path / f"{name}.spec").write_text(text, encoding="utf-8")
    return tmp_path


def instance(name: str, **overrides: str) -> Instance:
    return instantiate(check(f"{name}.spec"), None, {k.replace("_", "."): v for k, v in overrides.items()})


@pytest.mark.usefixtures("files")
def test_an_extended_spec_has_everything_of_its_base() -> None:
    """Variables, actions, invariants and deadlock conditions: 1 + 2 * 3 states for N = 2, two nodes."""
    outcome = search(instance("more").program, Options(symmetry=False))
    assert outcome.verdict == Holds()
    assert outcome.statistics.distinct == 7
    assert [p.name for p in outcome.program.invariants] == ["small", "marked_late"]


@pytest.mark.usefixtures("files")
def test_an_imported_file_gives_types_constants_and_definitions() -> None:
    """Qualified constants are fixed by the model and by --set, with their defaults computed from them."""
    made = instance("user", lib_N="3")
    assert {c.name: c.value for c in made.program.constants} == {"lib.N": 3, "lib.twice": 6}
    assert search(made.program, Options()).verdict == Holds()
    (state,) = initial_states(made.program)
    assert plain_state(made, state)["note"] == ("Silent", {})


def test_a_violation_in_a_base_is_blamed_in_its_own_file(files: Path) -> None:
    """The span of an inherited invariant is in the base's text."""
    (files / "base.spec").write_text(BASE.replace("x <= N", "x < N"), encoding="utf-8")
    blame = first(search(instance("more").program)).blame
    assert blame is not None
    assert blame.span.where.startswith("base.spec:8:")
