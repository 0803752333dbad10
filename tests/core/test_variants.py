"""Models with other bounds, and those proposed for conditions that never decide."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest
from click.testing import CliRunner

from specchk.cli.commands.conditions import command
from specchk.compile.instantiate import instantiate
from specchk.explore.conditions import Decided, conditions, decided, with_conditions
from specchk.explore.variants import BoundedModel, proposals, variants
from specchk.ir.program import Program
from specchk.lang.frontend import CheckedSpec, check
from specchk.search.engine import Options
from specchk.search.reference import search

# The alarm needs two workers and three jobs; `MaxAll` is computed from bounds, `eager` is a rule.
JOBS = """\
spec jobs
sort Worker
const MaxJobs : int
const MaxIdle : int = 0
const MaxAll : int = MaxJobs + MaxIdle
const eager : bool = true
var done : Worker -> 0..MaxJobs = { w: 0 for w in Worker }
var alarm : bool = false
action work(w: Worker):
    require done[w] < MaxJobs and eager
    done'[w] = done[w] + 1
action ring():
    require (exists w in Worker: done[w] == 3) and (exists w in Worker: done[w] == 0) and not alarm
    alarm' = true
model small:
    Worker = 1, MaxJobs = 1
"""


@pytest.fixture(scope="module")
def jobs() -> CheckedSpec:
    return check("jobs.spec", JOBS)


def decide(program: Program, only: Collection[tuple[str, str, str]]) -> Decided:
    wanted = {one: witness for one, witness in conditions(program).items() if one.key in only}
    outcome = search(with_conditions(program, wanted.values()), Options(keep_going=True))
    return decided(program, wanted, outcome)


def test_a_variant_differs_in_bounds(jobs):
    """Sizes of sorts and given numbers; neither rules, nor values computed by the spec."""
    at = BoundedModel("small", {})
    assert [dict(model.bounds) for model, _ in variants(jobs, at, 1)] == [
        {"Worker": "2"}, {"MaxJobs": "2"}, {"MaxIdle": "1"},
    ]  # fmt: skip
    two = [dict(model.bounds) for model, _ in variants(jobs, at, 2)]
    assert {"MaxJobs": "2", "Worker": "2"} in two
    assert {"Worker": "2", "MaxJobs": "0"} in two
    assert {"MaxJobs": "2", "Worker": "0"} not in two  # a sort has an element
    assert len({tuple(sorted(one.items())) for one in two}) == len(two)


def test_what_is_set_beside_a_model_is_kept(jobs):
    """And is a bound like those of the model."""
    (first, *_) = variants(jobs, BoundedModel("small", {"MaxAll": "5", "eager": "false"}), 1)
    assert first[0].options() == "--model small --set MaxAll=5 --set eager=false --set Worker=2"
    assert "MaxAll=6" in " ".join(
        model.options() for model, _ in variants(jobs, BoundedModel("small", {"MaxAll": "5"}), 1)
    )


def test_the_smallest_model_is_proposed(jobs):
    """Two workers and three jobs are two changes away from this model."""
    at = BoundedModel("small", {"MaxJobs": "2"})
    program = instantiate(jobs, at.model, at.bounds).program
    wanted = {one.key for one in decide(program, {one.key for one in conditions(program)}).never}
    found = proposals(jobs, [at], wanted, decide)
    first = found.models[0]
    assert dict(first.at.bounds) == {"MaxJobs": "3", "Worker": "2"}
    assert "alarm" in {one.span.text for one in first.conditions}
    larger = instantiate(jobs, first.at.model, first.at.bounds).program
    assert first.states == search(larger, Options(keep_going=True)).statistics.distinct
    assert found.cut == 0
    now = {one.key for model in found.models for one in model.conditions}
    assert now | found.left == wanted
    assert not now & found.left


def test_the_command_lists_them(tmp_path: Path):
    """In text with the options that select the model, in JSON with its bounds."""
    file = tmp_path / "jobs.spec"
    file.write_text(JOBS, encoding="utf-8")
    asked = [str(file), "--set", "MaxJobs=2", "--propose"]
    text = CliRunner().invoke(command, asked).output
    assert "--set MaxJobs=3 --set Worker=2: " in text
    told = json.loads(CliRunner().invoke(command, [*asked, "--json"]).output)["proposed"]
    assert told["models"][0]["set"] == {"MaxJobs": "3", "Worker": "2"}
    assert f"{told['left']} decide in none of {told['searched']} models with other bounds" in text
    cut = json.loads(CliRunner().invoke(command, [*asked, "--json", "--max-states", "5"]).output)["proposed"]
    assert cut["incomplete"] > 0
