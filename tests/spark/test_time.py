"""Temporal properties on Spark: the native engine's verdicts and lassos, state by state, whatever is lost."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace
from pyspark import SparkContext

from hang import HANG_S
from spark.small import natively, of_text, program, said
from specchk.ir.program import Program
from specchk.native.regions import RegionOfStates
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Inconclusive, Outcome, name_of
from specchk.spark.engine import SparkEngine, SparkOptions, search
from temporal.naive_time import matched
from temporal.random_temporal import random_temporal
from temporal.test_confirmed import VIOLATED
from temporal.test_regions import COUNTERS, STUCK, SUICIDE

AT_ONCE = SparkOptions(handover=1, partitions=2)
EVENTUALLY_OFF = "liveness l: (exists h in Hand: at[h] == 3) leadsto not on\n"


@pytest.fixture(autouse=True)
def _context(context: SparkContext) -> None:
    """`search` uses the existing context."""


def counters(liveness: str, folder: Path) -> Program:
    return of_text(COUNTERS.replace("LIVENESS", liveness), folder)


@pytest.mark.parametrize("fairness", [
    "strong fair skip_one(h)\n", "fair switch, blink\n", "fair move(h)\n",
    "strong fair switch\nfair move(h)\n",
])  # fmt: skip
def test_the_lasso_is_the_native_one(fairness: str, tmp_path: Path) -> None:
    """Of many equally short ones it is the same, on any number of partitions."""
    checked = counters(EVENTUALLY_OFF + fairness, tmp_path)
    expected = said(natively(checked, AT_ONCE))
    for partitions in (1, 2):
        assert said(search(checked, replace(AT_ONCE, partitions=partitions))) == expected


def test_states_moved_by_shuffles_have_the_same_lasso(tmp_path: Path) -> None:
    """As on a cluster, with more partitions than cores."""
    checked = counters(STUCK, tmp_path)
    assert said(search(checked, replace(AT_ONCE, partitions=3))) == said(natively(checked, AT_ONCE))


@pytest.mark.parametrize("abstract", ["fair tick", "strong fair tick", ""])
def test_the_fairness_of_a_refined_spec_is_checked(abstract: str, tmp_path: Path) -> None:
    """Violated without our own fairness, and kept with it; steps alone always."""
    text = f"spec hours\nvar hour : 0..2 = 0\naction tick():\n    hour' = (hour + 1) % 3\n{abstract}\n"
    (tmp_path / "hours.spec").write_text(text, encoding="utf-8")
    own = "spec small\nvar time : 0..5 = 0\naction minute():\n    time' = (time + 1) % 6\n"
    for fairness in ("", "fair minute\n"):
        checked = of_text(f"{own}refines hours with {{ hour = time // 2 }}\n{fairness}", tmp_path)
        outcome = search(checked, AT_ONCE)
        assert name_of(outcome.verdict) == ("violated" if abstract and not fairness else "holds")
        assert said(outcome) == said(natively(checked, AT_ONCE))


def test_steps_above_a_horizon_are_listed_by_the_reference_stepper(tmp_path: Path) -> None:
    """Where actions list a `nat upto`: larger numbers are tried, as on every engine."""
    text = "spec small\ntype N = nat upto 2\nvar n : N = 0\naction up(k: N):\n    require k == n + 1\n"
    checked = of_text(text + "    n' = k\nliveness l: eventually n == 9\nfair up\n", tmp_path)
    outcome = search(checked, AT_ONCE)
    assert name_of(outcome.verdict) == "holds_within"
    assert said(outcome) == said(natively(checked, AT_ONCE))


@pytest.mark.parametrize(("file", "model"), [
    ("examples/alternating_bit.spec", "weak"),
    ("examples/alternating_bit_queues.spec", "two_values"),
    ("two_round_fetch.spec", "lively"),
    ("replication_time.spec", "lost_reply"),
])  # fmt: skip
def test_models_have_the_native_answer(file: str, model: str) -> None:
    """Models with temporal properties, violated and not, have the native verdict, counts and lasso."""
    checked = program(file, model)
    assert said(search(checked, AT_ONCE)) == said(natively(checked, AT_ONCE))


@pytest.mark.parametrize("why", VIOLATED)
def test_a_search_that_overlooks_a_violation_is_an_error(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: regions without counterexamples. The first states of the reference interpreter have one."""
    checked = of_text(VIOLATED[why], tmp_path)
    assert name_of(search(checked, AT_ONCE).verdict) == "violated"
    monkeypatch.setattr(RegionOfStates, "counterexample", lambda _: None)
    with pytest.raises(ReplayFailed, match="`l` fails where it was found to hold"):
        search(checked, AT_ONCE)


class _Killed(BaseException):
    """The end of a process, at one moment."""


def test_a_driver_that_is_lost_while_time_is_judged_is_resumed_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same verdict, counts and lasso; no level is computed again."""
    checked = counters(STUCK, tmp_path)
    kept = replace(AT_ONCE, ledger=str(tmp_path / "ledger"))

    def killed(*_: object) -> None:
        raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr(RegionOfStates, "find", killed)
        with pytest.raises(_Killed):
            search(checked, kept)
    monkeypatch.setattr(SparkEngine, "expand", killed)
    assert said(search(checked, replace(kept, resume=True))) == said(natively(checked, AT_ONCE))


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["find", "_fair", "_prefix"])
def test_a_killed_driver_leaves_the_same_answer(moment: str, tmp_path: Path) -> None:
    """SIGKILL while temporal properties are checked, then `--resume`."""
    spec = tmp_path / "counters.spec"
    spec.write_text(COUNTERS.replace("LIVENESS", STUCK), encoding="utf-8")
    words = ["run", str(spec), "--json"]
    kept = [*words, "--engine", "spark", "--handover", "1", "--ledger", str(tmp_path / "ledger")]

    def done(*line: str) -> subprocess.CompletedProcess[str]:
        line = (sys.executable, *line)
        return subprocess.run(line, capture_output=True, text=True, timeout=HANG_S, check=False)

    assert done("-c", SUICIDE, moment, *kept).returncode == -signal.SIGKILL
    resumed = json.loads(done("-m", "specchk", *kept, "--resume").stdout)
    whole = json.loads(done("-m", "specchk", *words).stdout)
    for member in ("verdict", "violations", "coverage"):
        assert resumed[member] == whole[member], member


def stopped(outcome: Outcome, *, is_budget: bool) -> str:
    assert isinstance(outcome.verdict, Inconclusive), outcome.verdict
    assert outcome.verdict.budget == is_budget
    return outcome.verdict.reason


def test_states_that_do_not_fit_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the free memory, or by `--max-memory`: a budget, which is never `holds`."""
    checked = counters(STUCK, tmp_path)
    monkeypatch.setattr("specchk.spark.states.loaded.free_bytes", lambda: 1000)
    reason = stopped(search(checked, AT_ONCE), is_budget=True)
    assert re.fullmatch(
        r"the step graph of \d+ states needs \d+ bytes in the driver, and 1000 are free", reason
    )
    monkeypatch.setattr("specchk.spark.states.loaded.resident_bytes", lambda: 1 << 40)
    limited = replace(AT_ONCE, budget=Budget(max_memory_bytes=1 << 40))
    assert "--max-memory" in stopped(search(checked, limited), is_budget=True)


def test_a_slice_that_is_damaged_before_time_is_judged_ends_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its name, and nothing is found to hold."""
    step_source = SparkEngine.step_source

    def damaged(engine: SparkEngine, *given: object) -> object:
        (file,) = (tmp_path / "ledger").glob("run-*/00002/00001.slice")
        file.write_bytes(b"\0" + file.read_bytes()[1:])
        return step_source(engine, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(SparkEngine, "step_source", damaged)
    outcome = search(counters(STUCK, tmp_path), replace(AT_ONCE, ledger=str(tmp_path / "ledger")))
    assert re.search("ledger is damaged: .*00001.slice", stopped(outcome, is_budget=False))


def agree(seeds: range, folder: Path) -> None:
    for seed in seeds:
        text = random_temporal(Random(seed))
        checked = of_text(text, folder)
        options = replace(AT_ONCE, partitions=1 + seed % 2)
        outcome, expected = search(checked, options), reference.search(checked)
        matched(checked, outcome, f"# seed {seed}\n{text}")
        if outcome.statistics.distinct:  # else the native engine answers alone, with a warning
            assert said(outcome) == said(natively(checked, options)), seed
            assert outcome.warnings == expected.warnings, seed
        assert outcome.statistics.owed_at_horizon == expected.statistics.owed_at_horizon, seed


def test_random_properties_have_the_naive_verdict(tmp_path: Path) -> None:
    """Verdict and length are the naive checker's, and everything else is the native engine's."""
    agree(range(3000, 3012), tmp_path)


@pytest.mark.slow
def test_many_random_properties_have_the_naive_verdict(tmp_path: Path) -> None:
    """The same for 100 more specs."""
    agree(range(5000, 5100), tmp_path)
