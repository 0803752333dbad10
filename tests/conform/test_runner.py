"""Cases find each kind of difference, alone as together, on one process as on several."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bank import Bank, BankBinding, bank
from broken import BROKEN, ForgetsOnDisk, LosesMoney
from msgspec.structs import replace

from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import Answer, At, BindingError, action, reopen
from specchk.conform.contract.known_bad import BadCode
from specchk.conform.covers import cache
from specchk.conform.covers.cache import cached_suite, suite_key
from specchk.conform.covers.cases import CaseStep, Suite, SuiteCase, as_json, from_json
from specchk.conform.covers.cover import build_suite
from specchk.conform.gate import controls
from specchk.conform.gate.controls import Trial, try_control
from specchk.conform.gate.tiers import BUDGETS, SuiteBudget, parts_of, run_parts
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import (
    CaseResult,
    Runner,
    StaleCase,
    merged,
    run_slice,
    run_suite,
    slices,
)
from specchk.conform.replay.spec_side import SpecSide
from specchk.conform.work.forks import each
from specchk.kept import read, write
from specchk.lang.frontend import check

INSTANCE = bank()
PROGRAM = INSTANCE.program


def suite(kind: str = "classes") -> Suite:
    return build_suite(PROGRAM, kind, sequences=0)  # a case a class: enough to be cut and counted


def run_case(binding: type[BankBinding], case: SuiteCase) -> CaseResult:
    return Runner(Replayer(binding(PROGRAM)), suite()).run(case)


@pytest.mark.parametrize("kind", ["classes", "edges"])
def test_a_faithful_implementation_conforms(kind):
    """All classes taken, all refusals tried."""
    result = run_suite(Replayer(BankBinding(PROGRAM)), suite(kind))
    assert (result.divergence, result.complete, result.vacuous) == (None, True, "")
    assert result.coverage is not None
    assert (result.coverage.missed, result.coverage.cases) == ((), len(suite(kind).cases))
    tried = result.coverage.refused | result.coverage.impossible
    assert tried == set(range(len(result.coverage.probe_classes)))


def test_a_suite_that_tries_no_refusal_is_vacuous_unless_its_whole_graph_has_none(monkeypatch):
    """Skipped probes, and a partial graph, show nothing; a spec may forbid nothing."""
    monkeypatch.setattr(SpecSide, "forbidden", lambda self, state: [])
    free = replace(suite(), probe_classes=(), probes=())
    found = [run_suite(Replayer(BankBinding(PROGRAM)), one).vacuous
             for one in (suite(), free, replace(free, complete=False))]  # fmt: skip
    assert found == ["no forbidden step was tried", "", "no forbidden step was tried"]


@pytest.mark.parametrize("kind", ["classes", "edges"])
@pytest.mark.parametrize(("binding", "of", "depth"), BROKEN, ids=lambda x: getattr(x, "__name__", None))
def test_a_broken_implementation_is_found(binding, of, depth, kind):
    """Each break, by its kind; never on a path shorter than the shortest."""
    result = run_suite(Replayer(binding(PROGRAM)), suite(kind))
    assert result.divergence is not None
    assert result.divergence.kind == of
    assert len(result.divergence.trace.steps) >= depth
    assert result.failed in {case.id for case in suite(kind).cases}


@pytest.mark.parametrize("binding", [one[0] for one in BROKEN], ids=lambda x: x.__name__)
def test_a_case_fails_alone_as_it_fails_among_others(binding):
    """Sharing between cases changes nothing: the same cases fail, each with its own divergence."""
    runner = Runner(Replayer(binding(PROGRAM)), suite())
    together = {case.id: runner.run(case).divergence for case in suite().cases}
    alone = {case.id: run_case(binding, case).divergence for case in suite().cases}
    assert together == alone


@pytest.mark.parametrize("binding", [BankBinding, LosesMoney])
def test_several_processes_find_the_same(binding):
    """Coverage, states and failing cases do not depend on the number of processes."""
    one, two = (run_suite(Replayer(binding(PROGRAM)), suite(), workers=n) for n in (1, 2))
    assert (one.failed, one.coverage, one.states) == (two.failed, two.coverage, two.states)
    assert one.complete == two.complete == (binding is BankBinding)


@pytest.mark.parametrize("binding", [BankBinding, *(one[0] for one in BROKEN)], ids=lambda x: x.__name__)
def test_slices_add_up_to_the_whole(binding):
    """However a suite is cut, the slices together have the counts and findings of one runner."""
    whole = run_suite(Replayer(binding(PROGRAM)), suite())
    cases = suite().cases
    for count in (2, 3, len(cases)):
        parts = [
            run_slice(Runner(Replayer(binding(PROGRAM)), suite()), cases, one)
            for one in slices(len(cases), count)
        ]
        again = merged(suite(), cases, parts, whole.seconds)
        assert again == whole


def test_slices_have_every_position_once():
    """Slices are in order, and no more than requested."""
    for count in range(9):
        for parts in range(1, 7):
            found = slices(count, parts)
            assert [at for one in found for at in one] == list(range(count))
            assert len(found) <= parts


def test_an_implementation_may_choose():
    """A choice left by the spec and never made by the implementation is not a divergence, but is reported."""

    class Lucky(BankBinding):
        @action("toss", ways=("heads",))
        def toss(self, bank: Bank, way: str) -> Answer:
            return super().toss(bank, way)

    result = run_suite(Replayer(Lucky(PROGRAM)), suite())
    assert result.divergence is None
    assert result.coverage is not None
    assert {one.effect for one in result.coverage.missed} == {("coin to tails",)}


def test_a_case_of_another_spec_is_stale():
    """It is reported, and is not a divergence of the implementation."""
    case = replace(suite().cases[0], steps=(CaseStep("transfer", ("a1", "a1")),), classes=((0,),))
    with pytest.raises(StaleCase, match="transfer"):
        run_case(BankBinding, case)


def test_a_disk_that_forgets_is_found():
    """A reopened system is compared in every state of a case."""
    result = run_suite(Replayer(ForgetsOnDisk(PROGRAM)), suite())
    assert result.divergence is not None
    assert result.divergence.kind == "reopened"


def test_opening_again_is_counted():
    """Once in each place; not at all if the binding cannot reopen."""

    class Reopens(BankBinding):
        @reopen
        def again(self, bank: Bank) -> Bank:
            return Bank(dict(bank.balance), bank.coin, bank.days)

    tally = run_suite(Replayer(Reopens(PROGRAM)), suite()).tally
    assert tally.reopened > 0
    assert run_suite(Replayer(BankBinding(PROGRAM)), suite()).tally.reopened == 0


def test_a_comparison_that_is_always_true_is_vacuous(monkeypatch):
    """Harness mutant: the comparer agrees with everything."""
    monkeypatch.setattr(Replayer, "same", lambda self, state, found: True)
    monkeypatch.setattr(Replayer, "_only_one", staticmethod(lambda matching, blame: None))
    assert "was not detected" in run_suite(Replayer(BankBinding(PROGRAM)), suite()).vacuous


@pytest.mark.parametrize("workers", [1, 2])
def test_skipped_probes_are_vacuous(monkeypatch, workers):
    """Harness mutant: no forbidden step is tried."""
    monkeypatch.setattr(Replayer, "probe", lambda self, place, instances: [True] * len(instances))
    assert "was tried" in run_suite(Replayer(BankBinding(PROGRAM)), suite(), workers=workers).vacuous


def test_an_empty_suite_is_vacuous():
    """Harness mutant: no cases, no success."""
    empty = replace(suite(), cases=(), probes=())
    assert run_suite(Replayer(BankBinding(PROGRAM)), empty).vacuous


def test_a_last_step_that_is_not_compared_is_found(monkeypatch):
    """Harness mutant: the state after a step is taken from the spec."""

    def from_the_spec(self, system, blame):
        wanted = blame().expected
        return wanted[0] if wanted else self._read(self._project(system))

    monkeypatch.setattr(Replayer, "_state", from_the_spec)
    monkeypatch.setattr(Replayer, "_only_one", staticmethod(lambda matching, blame: None))
    assert run_suite(Replayer(BankBinding(PROGRAM)), suite()).vacuous


def test_tasks_keep_their_order():
    """Whichever is done first."""
    assert each([lambda n=n: n * n for n in range(7)], 2) == [n * n for n in range(7)]


def test_what_a_task_raises_is_raised_here():
    """With its whole message."""

    def fails() -> int:
        raise BindingError(())

    with pytest.raises(BindingError):
        each([fails, fails], 2, (BindingError,))


@pytest.mark.system
def test_a_process_that_dies_is_no_success():
    """Its task is lost, not done; run in a separate interpreter, where no test has left a thread."""
    program = "import os; from specchk.conform.work.forks import each; each([os.abort] * 2, 2)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "Lost: a process ended before it had finished: exit code -6" in ended.stderr


@pytest.mark.system
def test_a_process_that_alone_is_interrupted_interrupts_all():
    """Ctrl-C may be sent to one process; the command then ends as by Ctrl-C, not by an error of its own."""
    program = (
        "import os, signal; from specchk.conform.work.forks import each\n"
        "def ended(): os.kill(os.getpid(), signal.SIGINT); signal.pause()\n"
        "try: each([lambda: 1, ended], 2)\n"
        "except KeyboardInterrupt: print('interrupted')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("interrupted\n", "")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of kept suites."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "specchk" / "suites"


def test_a_suite_is_computed_once(kept, monkeypatch):
    """The second time it is read."""
    first, whole = cached_suite(INSTANCE), build_suite(PROGRAM)
    monkeypatch.setattr(cache, "build_suite", None)
    assert cached_suite(INSTANCE) == first == whole
    assert len(list(kept.iterdir())) == 1


def test_a_key_has_everything_that_a_suite_depends_on():
    """Constants, kind, bounds, budget, and the words of the spec."""
    checked = check(str(Path("bank.spec")), bank().program.actions[0].span.source.text)
    other = instantiate(checked, None, {"Most": "1"})
    keys = [
        suite_key(INSTANCE, "classes", (), (None, 0)), suite_key(other, "classes", (), (None, 0)),
        suite_key(INSTANCE, "edges", (), (None, 0)),
        suite_key(INSTANCE, "classes", (("Most", "2"),), (None, 0)),
        suite_key(INSTANCE, "classes", (), (10, 0)), suite_key(INSTANCE, "classes", (), (None, 1)),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert suite_key(instantiate(checked), "classes", (), (None, 0)) == keys[0]


def test_a_key_has_the_words_of_what_a_spec_imports(tmp_path: Path):
    """Classes are named in the words of definitions, which may have another meaning in the same words."""
    (tmp_path / "s.spec").write_text(
        "spec s\nimport lib\nvar n : 0..3 = 0\naction up():\n    require lib.low(n)\n    n' = n + 1\n"
    )
    keys = set()
    for words in ("x < 3", "3 > x"):
        (tmp_path / "lib.spec").write_text(f"spec lib\ndef low(x: int): bool = {words}\n")
        instance = instantiate(check(str(tmp_path / "s.spec")))
        keys.add((repr(instance.program.actions), suite_key(instance, "classes", (), (None, 0))))
    assert len({actions for actions, _ in keys}) == 1
    assert len(keys) == 2


def test_a_tier_runs_all_its_suites(kept):
    """Each kind, in the order in which the binding lists them."""
    kinds = ("classes", "edges", "product", "walks")
    checked = check("bank.spec", bank().program.actions[0].span.source.text)
    listed = [At("small", {"Most": "1"}, kind) for kind in kinds]
    parts = parts_of(BankBinding, checked, listed)
    results = run_parts(parts, SuiteBudget(), 2)
    assert [result.suite for result in results] == list(kinds)
    assert all(result.divergence is None and result.complete for result in results)
    assert [part.label for part in parts] == ["small Most=1"] * 4


def test_a_smoke_run_that_leaves_cases_out_is_not_complete(kept):
    """A sample is reported as one."""
    checked = check("bank.spec", bank().program.actions[0].span.source.text)
    parts = parts_of(BankBinding, checked, [At("small")])
    (whole,) = run_parts(parts, BUDGETS["smoke"], 1)
    (part,) = run_parts(parts, replace(BUDGETS["smoke"], sample_steps=3), 1)
    assert whole.complete
    assert not part.complete
    assert part.steps < whole.steps


class Controlled(BankBinding):
    controls = (BadCode("days never pass", BankBinding.sleep, "bank.days += 1", "pass", "small"),)


@pytest.mark.parametrize("last", ["the one that caught it", "one that sees no sleep", "none"])
def test_the_case_that_caught_a_control_is_tried_first(monkeypatch, tmp_path, last):
    """It is kept alone, and the others are not loaded; if it no longer catches it, all are run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    everything = suite()
    trial = Trial(0, PROGRAM, lambda: everything, "key")
    awake = next(case for case in everything.cases if "sleep()" not in str(case))
    runs: list[list[str]] = []

    def noted(replayer, wanted, **more):
        runs.append([case.id for case in wanted.cases])
        return run_suite(replayer, wanted, **more)

    monkeypatch.setattr(controls, "run_suite", noted)
    told = try_control(Controlled, trial).divergence
    assert told.startswith("state, step")
    (kept_in,) = (tmp_path / "specchk" / "controls").iterdir()
    was = read(kept_in)
    (caught,) = from_json(was.decode()).cases
    if last == "one that sees no sleep":
        write(kept_in, as_json(replace(everything, cases=(awake,), probes=())).encode())
    if last == "none":
        kept_in.unlink()
    assert try_control(Controlled, trial).divergence == told
    all_cases = [case.id for case in everything.cases]
    assert runs == [all_cases, *{
        "the one that caught it": [[caught.id]],
        "one that sees no sleep": [[awake.id], all_cases],
        "none": [all_cases],
    }[last]]  # fmt: skip
    assert read(kept_in) == was
