"""Scenarios that the explorer writes: a spec with them is accepted, and takes the same steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import run_scenario
from specchk.explore.walk import Walker
from specchk.lang.frontend import check
from specchk.report.explorer import api

LIBRARY = """\
spec library
sort Item
type Kind = enum {red, green}
type Message = Sent(kind: Kind) | Nothing
"""
MAIN = """\
spec main
import library
type Cell = (0..1, bool)
type Place = { row: 0..1, is_left: bool }
var kind : library.Kind = library.red
var message : library.Message = library.Nothing
var owner : map[library.Kind, library.Item] = {}
var taken : Place -> { by: library.Kind?, times: 0..1 } = { p: { by: none, times: 0 } for p in Place }
action send(as_kind: library.Kind, item: library.Item):
    kind' = as_kind
    owner' in { { as_kind: item }, {} }
    message' in { library.Sent(kind: as_kind), library.Nothing }
action take(cell: Cell):
    let (row, is_left) = cell
    any times in 0..1:
        taken'[{ row: row, is_left: is_left }].times = times
        taken'[{ row: row, is_left: is_left }].by = if times == 0 then none else some(kind)
deadlock ok
model one:
    library.Item = 2
"""
PATHS = ([0, 2, 17], [0, 15, 21, 0], [0, 8, 20, 23])


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_a_written_scenario_takes_the_steps_that_were_explored(path: list[int], tmp_path: Path) -> None:
    """With imported names, maps whose keys are records, and choices."""
    (tmp_path / "library.spec").write_text(LIBRARY)
    file = tmp_path / "main.spec"
    file.write_text(MAIN)
    walker = Walker(instantiate(check(str(file))))
    trace = walker.at(path).trace
    written = api.scenario(walker, trace)
    assert "where" in written
    file.write_text(MAIN + written + "    assert " + " and ".join(shown(trace.last)) + "\n")
    checked = check(str(file))
    found = run_scenario(instantiate(checked), checked.spec.scenarios["explored"])
    assert found.failure is None, written


def shown(state: tuple[object, ...]) -> list[str]:
    """What is true in the last state: the first variable, and the number of places taken."""
    taken = sum(times for _, times in state[3])  # type: ignore[attr-defined]
    return [f"kind == library.{('red', 'green')[state[0]]}", f"sum(taken[p].times for p in Place) == {taken}"]  # type: ignore[index]
