"""A temporal property that holds is confirmed on the first states, whichever engine found it to hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specchk.ir.program import Clause
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.native import engine as native
from specchk.native.engine import NativeOptions
from specchk.native.regions import RegionOfStates
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.liveness.explored import Explored, FirstStates
from specchk.search.liveness.regions import ListedSteps
from specchk.search.replay import CONFIRMING, ReplayFailed
from temporal.checked import program_of, verdict

WALK = """
spec walk
const Size : int
var at : 0..Size = 0
var asked : bool = false
action ask():
    require not asked
    asked' = true
action forward():
    require at < Size
    at' = at + 1
action back():
    require at > 0 and not asked
    at' = at - 1
fair forward
deadlock ok
liveness l: asked leadsto at == Size
model m:
    Size = 30
    expect holds
"""
# Nothing fair leads on from `asked`: each of them is violated by a rest, or by a loop near the beginning.
CHANGES = {"a rest": ("at < Size", "at < Size and not asked"), "a loop": ("fair forward", "fair back")}
VIOLATED = {
    why: WALK.replace(*change).replace("expect holds", "expect violates l") for why, change in CHANGES.items()
}


def search(text: str, folder: Path, **options: Any) -> Any:
    return native.search(program_of(text, folder), NativeOptions(workers=2, **options))


@pytest.mark.parametrize("why", VIOLATED)
def test_a_search_that_overlooks_a_violation_is_an_error(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: regions without counterexamples."""
    assert verdict(search(VIOLATED[why], tmp_path)) != "holds"
    monkeypatch.setattr(RegionOfStates, "counterexample", lambda _: None)
    with pytest.raises(ReplayFailed, match="`l` fails where it was found to hold"):
        search(VIOLATED[why], tmp_path)


def test_a_property_that_holds_is_confirmed_and_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fewer states than the sample has, and with more; a limit of states does not affect the sample."""
    taken: list[int] = []
    run = FirstStates.run

    def counted(sample: FirstStates, look: Any) -> None:
        run(sample, look)
        taken.append(sample.graph.count)

    monkeypatch.setattr(FirstStates, "run", counted)
    assert verdict(search(WALK, tmp_path, budget=Budget(max_states=70))) == "holds"
    assert verdict(search(WALK.replace("= 30", "= 300"), tmp_path)) == "holds"
    assert taken == [62, CONFIRMING]


def test_the_reference_engine_confirms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would compare its graph with a part of the same graph."""

    def refused(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(FirstStates, "run", refused)
    assert verdict(reference.search(program_of(WALK, tmp_path))) == "holds"


@pytest.mark.parametrize("most", [1, 2, 7, 40, 61, 62, 63, 1000])
def test_the_first_states_are_a_part_of_the_graph(most: int, tmp_path: Path) -> None:
    """Numbers, parents, what is enabled, and every step between two of them are those of the whole graph."""
    fair = FairSteps(program_of(WALK, tmp_path))
    whole, first = Explored(fair), FirstStates(fair, most)
    for lister in (whole, first):
        lister.run(lambda *_: None)
    count = min(most, 62)
    assert (first.graph.count, first.graph.initial) == (count, 1)
    assert first.states[:count] == whole.states[:count]
    for number in range(count):
        assert first.graph.enabled[number] == whole.graph.enabled[number]
        assert first.graph.path(number) == whole.graph.path(number)
        inside = [step for step in whole.graph.steps(number) if step[0] < count]
        assert list(first.graph.steps(number)) == inside


def test_a_violation_beyond_the_first_states_is_not_seen(tmp_path: Path) -> None:
    """A sample is not a proof: its result holds only for the first states."""
    program = program_of(WALK.replace("at == Size", "at > 0").replace("= 30", "= 300"), tmp_path)
    clause: Clause = program.liveness[0].clauses[0]
    sample = ListedSteps(FairSteps(program), FirstStates(FairSteps(program), 50), lambda *_: None)
    assert not sample.region(clause).is_violated()
