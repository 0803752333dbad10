"""Every form of a report on a divergence has the same content: both states, and each differing place."""

from __future__ import annotations

import json
import re

import pytest
from bank import Bank, BankBinding, bank
from broken import BROKEN, LosesMoney
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from specchk.cli.commands.conform import command
from specchk.cli.commands.draw import command as draw
from specchk.conform.contract.binding import Answer, action
from specchk.conform.replay import divergence
from specchk.conform.replay.divergence import WORDS, as_itf, as_json, differences, drawn, read, wanted
from specchk.conform.replay.place import Divergence
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import run_product
from specchk.explore.view import Viewer
from specchk.meaning.values import State
from specchk.report.diff import changes
from specchk.report.draw import lanes
from specchk.report.draw.contrast import contrasted
from specchk.report.draw.picture import picture
from specchk.report.draw.text import text
from specchk.search.verdict import Trace

BANK = bank()


def found_in(cls: type[BankBinding]) -> Divergence:
    found = run_product(Replayer(cls(BANK.program))).divergence
    assert found is not None
    return found


def states() -> st.SearchStrategy[State]:
    """Any state of the bank, reachable or not."""
    money = st.tuples(st.integers(0, 4), st.integers(0, 4))
    return st.tuples(money, st.integers(0, 2), st.integers(0, 2))


@pytest.mark.parametrize("cls", [one[0] for one in BROKEN], ids=lambda cls: cls.__name__)
def test_every_place_that_differs_is_told(cls):
    """In the text, and marked in the picture's last row."""
    found = found_in(cls)
    told = text(drawn(BANK, found))
    for change in differences(BANK.program, found, wanted(BANK.program, found)):
        assert f"{change.path}: the spec has {change.before}, the implementation {change.after}" in told
    assert "!! diverges: " in told
    assert found.step is None or f"!! step {len(found.trace.steps) + 1}: {found.step}" in told


@pytest.mark.parametrize("cls", [one[0] for one in BROKEN], ids=lambda cls: cls.__name__)
def test_a_divergence_is_read_back_from_json(cls):
    """`read` is the inverse of `as_json`, for every kind."""
    found = found_in(cls)
    written = json.loads(json.dumps(as_json(BANK.program, found)))
    again = read(BANK.program, found.trace, written)
    assert as_json(BANK.program, again) == as_json(BANK.program, found)
    assert drawn(BANK, again) == drawn(BANK, found)


@given(wanted=states(), found=states())
def test_the_last_row_has_all_that_differs_and_nothing_else(wanted, found):
    """One line for each change between the two states, and the cells marked in both rows, in any picture."""
    viewer = Viewer(BANK)
    shown = contrasted(viewer, picture(viewer, Trace(wanted, ()), None), wanted, found, "instead")
    different = changes(BANK.program, wanted, found)
    lines = [line for box in shown.rows[-1].boxes.values() for line in box.lines]
    assert len(lines) == len(different)
    assert all(line.differs for line in lines)
    assert shown.rows[-1].differs
    assert not shown.rows[-2].differs
    assert lanes.dot(shown).count("instead") == 1


def test_there_are_words_for_every_kind():
    """For those that `Divergence` names."""
    assert Divergence.__doc__ is not None
    kinds = Divergence.__doc__.split("`kind`:")[1].split("`reason`")[0]
    assert set(re.findall(r"`(\w+)` \(", kinds)) == set(WORDS)


def test_what_an_exception_prevented_is_shown():
    """The state that the spec has after the step; the implementation's is not known."""
    (fails,) = [one[0] for one in BROKEN if one[1] == "raised"]
    shown = drawn(BANK, found_in(fails))
    assert [row.title for row in shown.rows] == ["initial state", "toss()"]
    assert shown.ending[-1].startswith("ZeroDivisionError: no coin, in `toss` (broken.py:")


def test_both_cells_that_differ_are_marked():
    """The line of the spec's step and that of the implementation."""
    shown = drawn(BANK, found_in(LosesMoney))
    marked = [
        [line.text for box in row.boxes.values() for line in box.lines if line.differs] for row in shown.rows
    ]
    assert marked[-2:] == [["balance: 3 → 4"], ["balance: the spec has 4, the implementation 3"]]
    assert not any(marked[:-2])


def test_many_places_are_counted_at_the_end(monkeypatch):
    """The end lists the first few and the number of the others; the row has all."""
    monkeypatch.setattr(divergence, "MOST_PLACES", 1)

    class Mixed(BankBinding):
        @action("toss", ways=("heads", "tails"))
        def toss(self, bank: Bank, way: str) -> Answer:
            answer = super().toss(bank, way)
            bank.balance, bank.days = {"a1": 0, "a2": 0}, 1
            return answer

    shown = drawn(BANK, found_in(Mixed))
    assert shown.ending[-2:] == ("balance[a1]: the spec has 2, the implementation 0", "and 2 more")
    assert sum(len(box.lines) for box in shown.rows[-1].boxes.values()) == 3


def test_the_itf_trace_has_the_path_and_the_divergence():
    """The states of the spec, up to the last common one; the differences in `#meta`."""
    itf = as_itf(BANK.program, found_in(LosesMoney))
    assert [state["#meta"]["action"] for state in itf["states"]] == [None, "transfer", "transfer"]
    assert itf["#meta"]["divergence"]["differences"][0]["place"] == "balance[a2]"
    assert itf["#meta"]["divergence"]["implementation_state"]["balance"] == {"a1": 0, "a2": 3}


def test_a_divergence_is_drawn_from_its_json(lossy, tmp_path):
    """`draw` on the output of `conform --json` is the picture of `conform --draw`."""
    runner = CliRunner()
    found = tmp_path / "found.json"
    found.write_text(runner.invoke(command, [str(lossy), "--suite", "product", "--json"]).output)
    runner.invoke(command, [str(lossy), "--suite", "product", "--draw", str(tmp_path / "a.dot")])
    assert runner.invoke(draw, [str(found), "-o", str(tmp_path / "b.dot")]).exit_code == 0
    assert (tmp_path / "a.dot").read_text() == (tmp_path / "b.dot").read_text()
    told = runner.invoke(draw, [str(found)]).output
    assert told.rstrip() in runner.invoke(command, [str(lossy), "--suite", "product"]).output


def test_a_report_without_a_divergence_is_not_drawn(lossy, tmp_path):
    """One sentence gives the reason; also for a divergence that is not a behaviour of the spec."""
    runner = CliRunner()
    found = json.loads(runner.invoke(command, [str(lossy), "--suite", "product", "--json"]).output)
    path = tmp_path / "found.json"
    path.write_text(json.dumps({**found, "divergence": None}))
    assert "it has no divergence" in runner.invoke(draw, [str(path)]).output
    found["divergence"]["trace"][1]["state"]["days"] = 2
    path.write_text(json.dumps(found))
    assert "is not a behaviour of the spec" in runner.invoke(draw, [str(path)]).output
    found["divergence"]["kind"] = "mood"
    found["divergence"]["trace"][1]["state"]["days"] = 0
    path.write_text(json.dumps(found))
    assert "divergence is of no known kind" in runner.invoke(draw, [str(path)]).output
