"""Regions of the native engine: one answer on any number of workers, after a kill, and within a budget."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hang import HANG_S
from specchk.kept import SPECCHK
from specchk.native import engine as native
from specchk.native import lanes
from specchk.native.engine import NativeOptions
from specchk.native.regions import RegionOfStates
from specchk.search.budget import Budget
from specchk.search.verdict import Outcome
from temporal.checked import on_reference, program_of, verdict, violated

# Three counters that go round, each in steps of its own: many equally short ways and loops.
COUNTERS = """
spec counters
sort Hand
const Size : int
var at : Hand -> 0..Size = { h: 0 for h in Hand }
var on : bool = true
var light : bool = false
action blink():
    light' = not light
action move(h: Hand):
    at'[h] = (at[h] + 1) % (Size + 1)
action skip_one(h: Hand):
    require at[h] > 0
    at'[h] = (at[h] + 2) % (Size + 1)
action switch():
    require on and (forall h in Hand: at[h] == Size)
    on' = false
    at' = { h: 0 for h in Hand }
LIVENESS
model m:
    Hand = 2, Size = 4
    expect holds
"""


def searched(liveness: str, folder: Path, **options: object) -> Outcome:
    program = program_of(COUNTERS.replace("LIVENESS", liveness), folder)
    return native.search(program, NativeOptions(**options))  # type: ignore[arg-type]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a small region is shared by the workers."""
    monkeypatch.setattr(lanes, "PIECE", 3)
    monkeypatch.setattr(lanes, "FEW", 3)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("fairness", [
    "strong fair skip_one(h)\n", "fair switch, blink\n", "fair move(h)\n",
    "strong fair switch\nfair move(h)\n",
])  # fmt: skip
def test_the_lasso_is_the_same_on_any_number_of_workers(fairness: str, tmp_path: Path) -> None:
    """State by state, with hashes only, and as long as the reference engine's."""
    liveness = "liveness l: (exists h in Hand: at[h] == 3) leadsto not on\n" + fairness
    found = [searched(liveness, tmp_path, workers=workers).verdict for workers in (1, 2, 3, 4, 2)]
    assert found[1:] == found[:1] * 4
    compact = searched(liveness, tmp_path, workers=2, compact=True)
    assert compact.verdict == found[0]
    expected = violated(on_reference(program_of(COUNTERS.replace("LIVENESS", liveness), tmp_path)))["l"].trace
    trace = violated(compact)["l"].trace
    assert trace is not None
    assert expected is not None
    assert (len(trace.steps), trace.loop) == (len(expected.steps), expected.loop)


class _Killed(BaseException):
    """The end of a process, at one moment."""


STUCK = "liveness l: (exists h in Hand: at[h] == 3) leadsto not on\nfair move(h)\nfair switch\n"


def test_a_search_that_is_killed_while_time_is_judged_resumes_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same verdict, counts and lasso; no state is searched again."""
    place = tmp_path / "kept"

    def killed(_: RegionOfStates) -> None:
        raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr(RegionOfStates, "find", killed)
        with pytest.raises(_Killed):
            searched(STUCK, tmp_path, workers=2, checkpoint=place, checkpoint_every_s=1e9)
    with monkeypatch.context() as patched:
        patched.setattr("specchk.native.store.Store.work", killed)
        resumed = searched(STUCK, tmp_path, workers=1, checkpoint=place, resume=True)
    whole = searched(STUCK, tmp_path, workers=2)
    assert "l" in violated(whole)
    assert resumed.verdict == whole.verdict
    assert resumed.statistics.levels == whole.statistics.levels
    assert resumed.coverage == whole.coverage


@pytest.mark.parametrize("spilled", [False, True])
def test_a_budget_that_ends_while_time_is_judged_leaves_no_verdict(
    spilled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never `holds`, and the reason is the limit; where states are spilled, that of the step graph alone."""
    find = RegionOfStates.find

    def larger(region: RegionOfStates) -> None:
        monkeypatch.setattr("specchk.search.budget.resident_bytes", lambda: 1 << 40)
        monkeypatch.setattr("specchk.search.budget.MEMORY_EVERY_S", 0.0)
        monkeypatch.setattr("specchk.native.regions.StepsOfSearch.memory_bytes", 1 << 40)
        find(region)

    monkeypatch.setattr(RegionOfStates, "find", larger)
    budget = Budget(max_memory_bytes=1 << 36)
    outcome = searched(STUCK, tmp_path, workers=2, budget=budget, spill=tmp_path if spilled else None)
    assert verdict(outcome) == "inconclusive"
    assert outcome.stopped is not None
    assert "--max-memory" in outcome.stopped.reason
    assert ("step graph" in outcome.stopped.reason) == spilled


# The process ends itself: no moment of another clock decides where.
SUICIDE = """
import os, signal, sys
from specchk.cli.main import main
from specchk.native.regions import RegionOfStates
kind, sys.argv = sys.argv[1], ["specchk", *sys.argv[2:]]
setattr(RegionOfStates, kind, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["find", "_fair", "_prefix"])
def test_a_killed_process_leaves_the_same_answer(moment: str, tmp_path: Path) -> None:
    """SIGKILL while temporal properties are checked, then `--resume` with another number of workers."""
    spec = tmp_path / "counters.spec"
    spec.write_text(COUNTERS.replace("LIVENESS", STUCK), encoding="utf-8")
    words = ["run", str(spec), "--json"]
    kept = [*words, "--checkpoint", str(tmp_path / "kept")]
    environment = {**os.environ, "PYTHONPATH": str(SPECCHK.parent)}

    def done(*line: str) -> subprocess.CompletedProcess[str]:
        line = (sys.executable, *line)
        return subprocess.run(line, capture_output=True, env=environment, text=True, timeout=HANG_S)

    assert done("-c", SUICIDE, moment, *kept, "--workers", "2").returncode == -signal.SIGKILL
    resumed = json.loads(done("-m", "specchk", *kept, "--resume", "--workers", "1").stdout)
    whole = json.loads(done("-m", "specchk", *words).stdout)
    for member in ("verdict", "violations", "coverage"):
        assert resumed[member] == whole[member], member
