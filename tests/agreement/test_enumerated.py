"""Subsets and maps of values whose types have many more: all engines visit the same ones, in one order."""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement.both import program_of, said
from specchk.ir.program import Program
from specchk.native import engine as native
from specchk.native.machine.frames import CHECKED_SUCCESSORS
from specchk.native.machine.prospects import prospects
from specchk.search import reference
from specchk.search.engine import Options, Unsupported

SPEC = """spec visits
type Few = 0..{few}
var s : set[Few] = {start}
var m : map[Few, Few] = {{}}
var seen : set[Few] = {{}}
def nonempty(t: set[Few]): set[set[Few]] = filter q in subsets(t): q != {{}}
def total(t: set[Few]): int = sum(t)
action part():
    any t in subsets(s):
        seen' = t
action some_part():
    any t in nonempty(s):
        require card(t) < 3
        seen' = t
action first():
    seen' = choose t in subsets(s): card(t) == 2
action map_of():
    any f in maps(seen, {{ k for k in s if k != 0 }}):
        m' = f
action values():
    let low = {{ k for k in s if k < 3 }}
    let most = max(sum(f[k] for k in keys(f)) for f in maps(low, seen))
    seen' = {{ k for k in s if k == most }}
invariant parts: forall t in subsets(seen): exists q in subsets(s): q == t or not (t subset s)
invariant functions: m == {{}} or (exists f in maps(keys(m), {{ m[k] for k in m }}): f == m)
reachable two: exists t in nonempty(seen): total(t) == {sum} and card(t) == 2
deadlock ok
model m:
    expect holds
"""


def program(few: int, start: str, sum_: int, folder: Path) -> Program:
    found = program_of(SPEC.format(few=few, start=start, sum=sum_), folder)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("few", "start", "sum_"),
    [(2, "{0, 1, 2}", 3), (9, "{0, 2, 5, 9}", 11), (15, "{1, 2, 14, 15}", 29), (999, "{0, 2, 70, 999}", 72)],
)
@pytest.mark.parametrize("optimise_after", [0, 1 << 40])
def test_engines_visit_the_same_sets(
    few: int, start: str, sum_: int, optimise_after: int, tmp_path: Path
) -> None:
    """As bits or as lists, unrolled or not: also the first one that satisfies a condition."""
    given = program(few, start, sum_, tmp_path)
    compiled = native.search(given, native.NativeOptions(workers=1, optimise_after=optimise_after))
    assert said(compiled, coverage=True) == said(reference.search(given, Options()), coverage=True)


LARGE = """spec large
type Many = 0..40
var s : set[Many] = 0..{last}
var t : set[Many] = {{}}
var m : map[Many, Many] = {{}}
action go():
    {body}
deadlock ok
model m:
    expect holds
"""


@pytest.mark.parametrize(
    ("last", "body"),
    [
        (20, "require exists q in subsets(s): q == s"),
        (20, "require s in subsets(s)"),
        (6, "require exists f in maps(s, 0..7): f != m"),
        (6, "any f in maps(s, { k for k in 0..7 if k in s or t == {} }): m' = f"),
    ],
)
def test_too_many_are_undefined_at_their_place(last: int, body: str, tmp_path: Path) -> None:
    """2^21 subsets or maps, whatever the engine; one item fewer is defined."""
    given = program_of(LARGE.format(last=last, body=body), tmp_path)
    assert given is not None
    found = native.search(given, native.NativeOptions(workers=1))
    assert [v.kind for v in found.verdict.violations] == ["undefined"]  # type: ignore[union-attr]
    assert found.verdict == reference.search(given, Options()).verdict


def test_more_successors_than_there_is_room_for_are_refused(tmp_path: Path) -> None:
    """By the state and not by types, which allow 2^41; the nearest place is the action."""
    few, many = (
        program_of(LARGE.format(last=last, body="any q in subsets(s): t' = q"), tmp_path) for last in (9, 17)
    )
    assert few is not None
    assert many is not None
    assert native.search(few, native.NativeOptions(workers=1)).statistics.distinct == 1024
    with pytest.raises(Unsupported, match=rf"more than {CHECKED_SUCCESSORS} successors, at .*:6:1$"):
        native.search(many, native.NativeOptions(workers=1))


def test_what_is_not_compiled_has_its_place(tmp_path: Path) -> None:
    """In the reason of the fall-back, and in the note of `check`."""
    text = LARGE.replace("0..40", "0..99").format(last=3, body="any q in subsets(s) - {{}}: t' = q")
    given = program_of(text, tmp_path)
    assert given is not None
    (note,) = [one for one in prospects(given) if one.text.startswith("not compiled")]
    assert note.span.text == "subsets(s) - {{}}"
    with pytest.raises(Unsupported, match=r"would need 100 bits, at .*:7:14$"):
        native.search(given, native.NativeOptions(workers=1))
