"""The search on Spark, in one process: equal to the native engine's in all results."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

import pytest
from _pytest.mark.structures import ParameterSet
from msgspec.structs import replace
from pyspark import SparkContext

from spark.small import natively, of_text, program, said
from specchk.export.storage import LocalStorage
from specchk.ir.program import Program
from specchk.native.machine.layout import layout_of
from specchk.search.budget import Budget, Progress
from specchk.search.engine import Unavailable, Unusable
from specchk.search.verdict import Inconclusive, Outcome, Violated, name_of
from specchk.spark import engine
from specchk.spark.engine import SparkOptions, search
from specchk.spark.states.slices import Slices


def slow(value: int) -> ParameterSet:
    """A parameter whose test is run with --slow, and in a sample."""
    return pytest.param(value, marks=pytest.mark.slow)


AT_ONCE = SparkOptions(handover=1, partitions=2)  # everything on Spark

OUTSIDE = """\
spec outside
var x : 0..40 = 0
var y : 0..3 = 0

action up(k: 1..3):
    require x < 37
    x' = x + k
action side():
    require y < 3
    y' = y + 1

constraint near: x <= 9
reachable far: x == 9
invariant low: x < 12
deadlock ok

model all:
    properties near, far, low
"""


COUNTDOWN = """\
spec countdown
var x : 0..20 = 20
var y : 0..20 = 20

action down_x():
    require x > 0
    x' = x - 1
action down_y():
    require y > 0
    y' = y - 1

invariant some: x + y > 0
deadlock ok

model all:
    properties some
"""


@pytest.fixture(autouse=True)
def _context(context: SparkContext) -> None:
    """`run` uses the existing context."""


@pytest.mark.parametrize("partitions", [slow(1), slow(2), 4, slow(8)])
def test_a_violation_is_the_native_engine_s_on_any_number_of_partitions(partitions: int) -> None:
    """Verdict, counts of each level, coverage and every step of the counterexample are equal."""
    checked = program("kafka/kip101.spec", "fast_failover")
    options = replace(AT_ONCE, partitions=partitions, symmetry=partitions != 2)
    found = search(checked, options)
    assert isinstance(found.verdict, Violated)
    assert found.engine == "spark"
    assert said(found) == said(natively(checked, options))


def test_its_jobs_share_their_workers(context: SparkContext) -> None:
    """No worker ends with its task, as one that leaves rows unread does: a new one takes most of a second."""

    def workers() -> set[str]:
        numbers = context.parallelize([0, 1], 2).barrier()  # both at once
        (daemon,) = set(numbers.mapPartitions(lambda rows: [os.getppid() for _ in rows]).collect())
        return set(Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split())

    before = workers()
    search(program("kafka/kip101.spec", "fast_failover"), AT_ONCE)
    assert workers() == before


@pytest.mark.slow
def test_a_violated_refinement_is_the_native_engine_s() -> None:
    """With the step in both specs; from a search that Spark took over before the violation."""
    checked = program("delivery_once.spec", "processed_again")
    found = search(checked, AT_ONCE)
    assert found.engine == "spark"
    assert said(found) == said(natively(checked, AT_ONCE))


@pytest.mark.parametrize("handover", [slow(1), slow(100), 700])
def test_it_does_not_matter_when_spark_takes_over(handover: int) -> None:
    """A complete search has the same results, whatever part of it the native engine did."""
    checked = program("kafka/kip320.spec", "small")
    options = replace(AT_ONCE, handover=handover, partitions=3, symmetry=False)
    assert said(search(checked, options)) == said(natively(checked, options))


# 4 096 values are no bits, and the set has more items than the slots that are tried first.
COMPUTED = """\
spec computed
type Id = 0..63
var n : 0..40 = 0
action send():
    require n < 40
    n' = n + 1
def sent(): set[{ from: Id, to: Id }] = { { from: i, to: (i * 7) % 64 } for i in 0..n }
PROPERTY
fair send
deadlock ok
"""


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("invariant few: card(sent()) < 40", "violated"),
        ("liveness many: eventually card(sent()) > 39", "holds"),
        ("liveness many: eventually card(sent()) > 41", "violated"),
    ],
)
def test_a_set_that_is_only_computed_gets_room_in_the_small_levels(
    text: str, verdict: str, tmp_path: Path
) -> None:
    """The search restarts with more, as the native engine's does."""
    checked = of_text(COMPUTED.replace("PROPERTY", text), tmp_path)
    found, expected = search(checked), natively(checked, SparkOptions())
    assert name_of(found.verdict) == verdict
    assert found.verdict == expected.verdict
    assert found.statistics.distinct == expected.statistics.distinct


def test_a_search_that_stays_small_is_the_native_engine_s() -> None:
    """Below the handover Spark is not used, and the output names the engine."""
    found = search(program("kafka/kip320.spec", "small"), replace(AT_ONCE, handover=1 << 40))
    assert found.engine == "native"
    assert any("native engine did the whole search" in warning for warning in found.warnings)


@dataclass(frozen=True)
class Finished:
    """A finished search: its program, its outcome, and its ledger."""

    program: Program
    outcome: Outcome
    ledger: Path

    def copied(self, folder: Path) -> SparkOptions:
        """SparkOptions to resume a copy of the ledger."""
        copytree(self.ledger, folder / "ledger")
        return replace(AT_ONCE, ledger=str(folder / "ledger"), resume=True)


@pytest.fixture(scope="module")
def finished(context: SparkContext, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    checked, ledger = program("kafka/kip101.spec", "fast_failover"), tmp_path_factory.mktemp("finished")
    return Finished(checked, search(checked, replace(AT_ONCE, ledger=str(ledger))), ledger)


def test_shuffled_slices_change_nothing(finished: Finished, tmp_path: Path) -> None:
    """The order of the states of a level does not affect the results."""
    checked, options = finished.program, finished.copied(tmp_path)
    (run_folder,) = (tmp_path / "ledger").glob("run-*")
    for late in sorted(run_folder.iterdir())[6:]:
        for file in late.iterdir():
            file.unlink()
    size = 8 * layout_of(checked).words
    slices = Slices(LocalStorage(tmp_path / "ledger"), run_folder.name.removeprefix("run-"), size)
    chance = random.Random(1)
    for level in range(6):
        for partition in range(2):
            with slices.open(level, partition) as opened:
                about = opened.about
                data = bytearray((about.inside + about.outside) * size)
                opened.fill(memoryview(data))
            end = about.inside * size
            states = [bytes(data[at : at + size]) for at in range(0, end, size)]
            chance.shuffle(states)
            slices.write(about, [*states, bytes(data[end:])])
    assert said(search(checked, options)) == said(finished.outcome)


def test_a_finished_ledger_gives_its_answer_again(finished: Finished, tmp_path: Path) -> None:
    """Resuming a finished search repeats the answer, without computing a level."""
    seen: list[Progress] = []
    assert said(search(finished.program, finished.copied(tmp_path), seen.append)) == said(finished.outcome)
    assert not seen


def test_a_ledger_of_something_else_is_refused(finished: Finished, tmp_path: Path) -> None:
    """A used ledger is not overwritten, an empty one not resumed, another model's not used."""
    other, empty = program("kafka/kip320.spec", "small"), tmp_path / "empty"
    with pytest.raises(Unusable, match="no search"):
        search(other, replace(AT_ONCE, ledger=str(empty), resume=True))
    options = finished.copied(tmp_path)
    with pytest.raises(Unusable, match="already"):
        search(finished.program, replace(options, resume=False))
    with pytest.raises(Unusable, match="differs in: spec"):
        search(other, options)
    with pytest.raises(Unusable, match="partitions"):
        search(finished.program, replace(options, partitions=5))


@pytest.mark.parametrize("handover", [1, 7])
def test_states_outside_a_constraint_are_checked_and_not_counted(handover: int, tmp_path: Path) -> None:
    """Invariants see them once; they are neither counted nor expanded, before and after the handover."""
    checked = of_text(OUTSIDE, tmp_path)
    options = replace(AT_ONCE, handover=handover, keep_going=True)
    found = search(checked, options)
    assert found.engine == "spark"
    assert said(found) == said(natively(checked, options))


@pytest.mark.parametrize("options", [AT_ONCE, replace(AT_ONCE, partitions=3)])
def test_the_state_of_zeroes_is_a_state_as_others(tmp_path: Path, options: SparkOptions) -> None:
    """Unwritten memory looks like it."""
    found = search(of_text(COUNTDOWN, tmp_path), options)
    assert isinstance(found.verdict, Violated)
    assert said(found) == said(natively(of_text(COUNTDOWN, tmp_path), options))


@pytest.mark.parametrize("large", [0, 1 << 40])
@pytest.mark.parametrize("options", [AT_ONCE, replace(AT_ONCE, partitions=3)])
def test_a_trace_is_the_same_wherever_it_is_looked_for(
    monkeypatch: pytest.MonkeyPatch, options: SparkOptions, large: int
) -> None:
    """Through small levels and through large ones."""
    monkeypatch.setattr(engine, "SMALL_LEVEL", large)
    checked = program("kafka/kip101.spec", "fast_failover")
    assert said(search(checked, options)) == said(natively(checked, options))


def test_without_spark_what_was_found_is_told_all_the_same(
    context: SparkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's process ends after the violation: the driver finds the trace alone."""

    def refuse(group: str, text: str) -> None:
        if "a trace" in text:
            raise ConnectionRefusedError

    monkeypatch.setattr(engine, "SMALL_LEVEL", 0)
    monkeypatch.setattr(context, "setJobGroup", refuse)
    checked = program("kafka/kip101.spec", "fast_failover")
    assert said(search(checked, AT_ONCE)) == said(natively(checked, AT_ONCE))


def test_no_place_for_files_is_said(tmp_path: Path) -> None:
    """Before the search, with the host and the directory."""
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match=rf"^--scratch: \S+ cannot write {tmp_path}/file: "):
        search(program("kafka/kip320.spec", "small"), replace(AT_ONCE, scratch=str(tmp_path / "file")))


def test_a_budget_ends_in_no_answer_and_can_be_resumed(tmp_path: Path) -> None:
    """Running out is inconclusive; with the ledger the search is finished later."""
    checked = program("kafka/kip320.spec", "small")
    options = replace(AT_ONCE, symmetry=False, ledger=str(tmp_path))
    cut = search(checked, replace(options, budget=Budget(max_states=500))).verdict
    assert isinstance(cut, Inconclusive)
    assert "500 states" in cut.reason
    assert said(search(checked, replace(options, resume=True))) == said(natively(checked, options))


def test_progress_tells_of_each_level(tmp_path: Path) -> None:
    """One report per level: new states, known states, bytes shuffled, skew."""
    seen: list[Progress] = []
    found = search(of_text(OUTSIDE, tmp_path), replace(AT_ONCE, keep_going=True), seen.append)
    notes = [progress.note for progress in seen if progress.note]
    assert len(notes) == found.statistics.depth  # the last one finds nothing new
    assert all("again" in note and "shuffled" in note and "skew" in note for note in notes)
