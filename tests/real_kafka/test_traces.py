"""Stories as data, and the verdicts kept of them."""

from __future__ import annotations

import pytest
from conformance.apache_kafka.matrix import Cell, append_cell, decided, missing, read_cells, render, runs_of
from conformance.apache_kafka.releases import RELEASES
from conformance.apache_kafka.stories import STORIES, Outcome, Verdict, plan_of
from conformance.apache_kafka.traces import scenario_run


def test_states_have_the_numbers_of_brokers():
    """After the last step but one of the loss: b1 is about to cut the acknowledged record."""
    run = scenario_run("b21")
    before, after = run.steps[-2].state, run.steps[-1].state
    assert (run.initial.brokers, run.initial.leader(0), run.initial.isr(0)) == ((1, 2, 3), 1, {1, 2, 3})
    assert (before.log(1), before.hw(1), before.acked, before.current, before.leader(3)) == ((0,), 1, 1, 3, 2)
    assert (after.log(1), after.hw(1), after.log(2), after.log(3)) == ((), 0, (), (0,))
    assert (run.steps[0].text, run.steps[0].arguments) == ("produce(b1)", (1,))
    assert [step.state.fetch_offset(2) for step in run.steps if step.text == "send_fetch(b2)"] == [0, 1, 1]


@pytest.mark.parametrize("story", STORIES.values(), ids=lambda story: story.name)
def test_each_story_has_a_cluster_of_each_release(story):
    """What a story waits for by time has a short limit, and nothing else."""
    run = scenario_run(story.scenario)
    shrinks = {step.arguments[0] for step in run.steps if step.action == "shrink_isr"}
    for release in RELEASES.values():
        plan = plan_of(story, run, release, None)
        assert {node for node in plan.settings_of if node < 100} == shrinks
        assert plan.elr.enabled in ((None,) if release.numbers < (4, 0) else (None, False, True))


def verdict(outcome, step=3):
    return Verdict(outcome, step, 9, "elect(b2)", "reason")


def test_a_cell_is_run_again_until_it_is_decided(tmp_path):
    path = tmp_path / "cells.jsonl"
    assert list(missing(read_cells(path), ["B21"], ["4.4.0"])) == [("B21", "4.4.0")]
    append_cell(Cell("B21", "4.4.0", False, verdict(Outcome.UNDECIDED), 1), path)
    append_cell(Cell("B21", "4.4.0", True, verdict(Outcome.PREVENTED), 1), path)
    assert list(missing(read_cells(path), ["B21"], ["4.4.0"])) == [("B21", "4.4.0")]
    append_cell(Cell("B21", "4.4.0", False, verdict(Outcome.REPRODUCED), 1), path)
    append_cell(Cell("B21", "4.4.0", False, verdict(Outcome.UNDECIDED), 1), path)
    cells = read_cells(path)
    assert not list(missing(cells, ["B21"], ["4.4.0"]))
    assert decided(runs_of(cells, "B21", "4.4.0")) == cells[2]


def test_the_table_has_each_release_and_the_reasons():
    cells = [Cell("S29", "0.10.2.2", False, verdict(Outcome.REPRODUCED), 1)]
    cells += [Cell("S29", release, False, verdict(Outcome.PREVENTED), 1) for release in ("2.4.1", "4.4.0")]
    lines = render(cells).splitlines()
    (row,) = [line for line in lines if line.startswith("| [S29]")]
    assert row.count("**reproduced**") == 1
    assert row.count("prevented at 3") == 2
    assert "- 2.4.1, 4.4.0: prevented at step 3 of 9, elect(b2): reason" in lines


def test_the_table_counts_runs_and_has_the_repair():
    outcomes = [Outcome.REPRODUCED, Outcome.UNDECIDED, Outcome.REPRODUCED]
    cells = [Cell("B21", "4.4.0", False, verdict(outcome), 1) for outcome in outcomes]
    cells += [Cell("B21", "4.4.0", True, verdict(Outcome.PREVENTED), 1) for _ in range(2)]
    lines = render(cells).splitlines()
    unchanged, repaired = (line for line in lines if line.startswith("| [B21](#story-b21)"))
    assert unchanged.endswith("| **reproduced**, 2 of 3 |")
    assert repaired.startswith("| [B21](#story-b21), with the repair | ")
    assert repaired.endswith("| prevented at 3, 2 of 2 |")
    assert "- 4.4.0, repaired: prevented at step 3 of 9, elect(b2): reason" in lines
