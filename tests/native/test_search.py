"""The native search: workers, budgets, compact mode, spilling, checkpoints."""

from __future__ import annotations

import errno
import os
from itertools import pairwise
from pathlib import Path
from signal import SIGKILL

import pytest
from msgspec.structs import replace

from specchk import kept
from specchk.codegen.ir import Tier
from specchk.codegen.objects import optimised, quick
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native import checkpoint, engine, tiers
from specchk.native.compiler import KernelSource
from specchk.native.engine import NativeOptions, search
from specchk.native.machine.layout import layout_of
from specchk.native.store import Store
from specchk.native.tiers import load_kernel
from specchk.search.budget import Budget, Progress
from specchk.search.engine import Unusable
from specchk.search.verdict import Holds, Inconclusive, Outcome, Violated

KAFKA = Path(__file__).resolve().parents[2] / "spec" / "kafka"
PLAIN = NativeOptions(symmetry=False, workers=2)


def kip320(**constants: str) -> Program:
    return instantiate(check(str(KAFKA / "kip320.spec")), "small", constants).program


def same(a: Outcome, b: Outcome) -> bool:
    """Whether two runs have the same results, except for the time."""
    quiet = [replace(o, statistics=replace(o.statistics, seconds=0.0)) for o in (a, b)]
    return quiet[0] == quiet[1]


@pytest.mark.parametrize("symmetry", [False, True])
def test_any_number_of_workers_says_the_same(symmetry: bool) -> None:
    """Verdict, counts, coverage and every step of the counterexample do not depend on threads."""
    program = instantiate(check(str(KAFKA / "kip101.spec")), "fast_failover").program
    alone, *others = [search(program, NativeOptions(symmetry=symmetry, workers=n)) for n in (1, 2, 3, 3)]
    assert isinstance(alone.verdict, Violated)
    assert all(same(alone, other) for other in others)


class AtOnce(tiers.Optimiser):
    """An optimiser whose code is there as soon as it is requested."""

    @property
    def is_done(self) -> bool:
        """Wait for the process."""
        return self._process is not None and self._process.wait() == 0


def test_results_do_not_depend_on_when_code_is_optimised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, during or never: the same verdict, counts, coverage and steps of the counterexample."""
    monkeypatch.setattr(engine, "Optimiser", AtOnce)
    program = instantiate(check(str(KAFKA / "kip101.spec")), "fast_failover").program
    found = []
    for after, wanted in ((0, [".o"]), (100, [".o", "-quick.o"]), (1 << 40, ["-quick.o"])):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(after)))
        found.append(search(program, NativeOptions(workers=2, optimise_after=after)))
        names = sorted((path.name for path in (tmp_path / str(after)).rglob("*.o")), key=len)
        assert sorted(name[40:] for name in names) == sorted(wanted)
    assert isinstance(found[0].verdict, Violated)
    assert all(same(found[0], other) for other in found[1:])


def test_optimised_code_is_what_this_process_would_make() -> None:
    """And is cached; a process that is stopped makes none, and is gone."""
    source = KernelSource(program := kip320(), layout_of(program))
    waiting, stopped = tiers.Optimiser(source, 5), tiers.Optimiser(source, 5)
    for optimiser in (waiting, stopped):
        optimiser.consider(4)
        assert optimiser._process is None
        optimiser.consider(5)
    stopped.stop()
    assert not stopped.is_done
    kernel = waiting.kernel()
    waiting.stop()
    assert kernel is not None
    assert kernel.is_optimised
    assert kept.read(source.path()) == optimised(source.text()) != quick(source.text())


@pytest.mark.parametrize("wrong", ["raise SystemExit(1)", "raise MemoryError", "import nosuch"])
def test_a_process_that_fails_leaves_the_search_its_code(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that cannot be started."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tiers, "_PROGRAM", wrong)
    plain = search(kip320(), replace(PLAIN, optimise_after=1 << 40))
    assert same(plain, search(kip320(), replace(PLAIN, optimise_after=1)))
    monkeypatch.setattr(tiers.sys, "executable", str(tmp_path / "nosuch"))
    assert same(plain, search(kip320(), replace(PLAIN, optimise_after=1)))


def test_files_of_the_current_directory_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new process would find them before Python's own modules of the same name."""
    (tmp_path / "pickle.py").write_text("raise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = KernelSource(program := kip320(), layout_of(program))
    optimiser = tiers.Optimiser(source, 0)
    optimiser.consider(0)
    assert optimiser.kernel() is not None
    optimiser.stop()


def test_a_limit_ends_a_search_while_its_code_is_optimised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search does not wait for the code: the process, which would take a minute, is ended."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tiers, "_PROGRAM", "import time; time.sleep(60)")
    made: list[tiers.Optimiser] = []

    class Noted(tiers.Optimiser):
        def __init__(self, source: KernelSource, after: int) -> None:
            tiers.Optimiser.__init__(self, source, after)
            made.append(self)

    monkeypatch.setattr(engine, "Optimiser", Noted)
    limited = replace(PLAIN, budget=Budget(max_states=20_000), workers=1, optimise_after=1000)
    found = search(kip320(Replicas="3", MaxLeaderEpoch="1"), limited)
    assert isinstance(found.verdict, Inconclusive)
    process = made[0]._process
    assert process is not None
    assert process.returncode == -SIGKILL
    assert found.statistics.seconds < 60


def test_quick_code_has_each_instance_once() -> None:
    """With three replicas instead of two only optimised code grows by half."""
    lengths: dict[Tier, list[int]] = {tier: [] for tier in Tier}
    for replicas in ("2", "3"):
        program = kip320(Replicas=replicas)
        source = KernelSource(program, layout_of(program))
        for tier, found in lengths.items():
            successors = source.module(tier).function("successors")
            found.append(sum(len(block.lines) for block in successors.blocks))
    growth = {tier: larger / smaller for tier, (smaller, larger) in lengths.items()}
    assert growth[Tier.QUICK] < 1.1 < 1.5 < growth[Tier.OPTIMISED]


def test_counts_are_those_of_tlc() -> None:
    """Three replicas, two records, two epochs: as many states and levels as TLC finds."""
    found = search(kip320(Replicas="3", MaxLeaderEpoch="1"), PLAIN).statistics
    assert (found.distinct, found.depth) == (39_619, 22)


def test_a_budget_ends_in_no_answer() -> None:
    """Running out is inconclusive, and the resource is named."""
    verdict = search(kip320(), replace(PLAIN, budget=Budget(max_states=1000))).verdict
    assert isinstance(verdict, Inconclusive)
    assert verdict.budget
    assert "1000 states" in verdict.reason


def test_no_run_is_lost_among_the_successors_of_one_state(tmp_path: Path) -> None:
    """Every other of 10 000 successors is outside the constraint: 5 000 runs of one state each."""
    spec = tmp_path / "wide.spec"
    spec.write_text(
        "spec wide\n\n"
        "var n : 0..10000 = 0\n"
        "var is_done : bool = false\n\n"
        "action jump(to: 1..10000):\n    require n == 0\n    n' = to\n\n"
        "action finish():\n    require n > 0 and not is_done\n    is_done' = true\n\n"
        "deadlock ok\n\n"
        "constraint even: n % 2 == 0\n\n"
        "model all_even:\n    properties even\n",
        encoding="utf-8",
    )
    program = instantiate(check(str(spec)), "all_even").program
    assert search(program, PLAIN).statistics.levels == (1, 5_000, 5_000)


def test_progress_is_reported_while_workers_run() -> None:
    """A long search reports its progress, with numbers that only grow."""
    seen: list[Progress] = []
    search(kip320(Replicas="3"), replace(PLAIN, workers=1), seen.append)
    assert all(a.states <= b.states for a, b in pairwise(seen))


def test_compact_mode_says_how_likely_it_is_wrong() -> None:
    """Hashes instead of states: the same counts here, and the risk is in the warnings."""
    exact, compact = search(kip320(), PLAIN), search(kip320(), replace(PLAIN, compact=True))
    assert compact.statistics.levels == exact.statistics.levels
    assert any("64-bit hash" in warning for warning in compact.warnings)


def test_states_on_disk_change_nothing(tmp_path: Path) -> None:
    """A search that moves its states to disk finds what one in memory finds."""
    program = kip320(Replicas="3", MaxLeaderEpoch="1")
    options = replace(PLAIN, spill=tmp_path, budget=Budget(max_memory_bytes=3 << 20))
    assert same(search(program, options), search(program, PLAIN))


@pytest.mark.parametrize(("limit", "bits"), [(None, 24), (1 << 30, 24), (1 << 29, 23)])
def test_a_table_quadruples_within_an_eighth_of_the_limit(limit: int | None, bits: int) -> None:
    """So that a limit of memory is not used up by empty slots."""
    program = kip320()
    layout = layout_of(program)
    kernel = load_kernel(KernelSource(program, layout), is_long=False)
    store = Store(program, layout, kernel, 1, limit)
    assert store.slots_for(3_000_000) == 1 << bits  # with the larger half empty: 2^23 slots are enough
    store.release()


def test_a_full_disk_ends_a_spilling_search_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No signal and no traceback: the verdict states that states cannot be moved."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    options = replace(PLAIN, spill=tmp_path, budget=Budget(max_memory_bytes=1 << 20))
    verdict = search(kip320(Replicas="3", MaxLeaderEpoch="1"), options).verdict
    assert isinstance(verdict, Inconclusive)
    assert "No space left" in verdict.reason


def cut_off(program: Program, options: NativeOptions) -> None:
    """A search that ends early and leaves a checkpoint."""
    search(program, replace(options, checkpoint_every_s=0.0, budget=Budget(max_states=9000)))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_resumed_search_says_what_an_unbroken_one_does(workers: int, tmp_path: Path) -> None:
    """Same verdict, counts and coverage after a resume, on another number of workers too."""
    program = kip320(Replicas="3", MaxLeaderEpoch="1")
    options = replace(PLAIN, checkpoint=tmp_path, workers=2)
    cut_off(program, options)
    resumed = search(program, replace(options, resume=True, workers=workers))
    assert isinstance(resumed.verdict, Holds)
    assert same(resumed, search(program, PLAIN))


def test_a_resumed_search_finds_the_same_counterexample(tmp_path: Path) -> None:
    """A violation beyond the checkpoint has the same trace as without one."""
    program = instantiate(check(str(KAFKA / "ledger.spec")), "b5").program
    options = replace(PLAIN, checkpoint=tmp_path)
    cut_off(program, options)
    resumed = search(program, replace(options, resume=True))
    assert isinstance(resumed.verdict, Violated)
    assert same(resumed, search(program, PLAIN))


def test_a_full_disk_leaves_the_last_checkpoint_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint that cannot be written ends the search with a reason; the one before is resumed."""
    program = kip320(Replicas="3", MaxLeaderEpoch="1")
    options = replace(PLAIN, checkpoint=tmp_path, checkpoint_every_s=0.0)
    cut_off(program, options)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write_fully", full)
        stopped = search(program, replace(options, resume=True)).verdict
    assert isinstance(stopped, Inconclusive)
    assert "No space left" in stopped.reason
    assert same(
        search(program, replace(options, resume=True, checkpoint_every_s=60.0)), search(program, PLAIN)
    )


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    """Another model's checkpoint, or none at all, is never used."""
    options = replace(PLAIN, checkpoint=tmp_path, resume=True)
    with pytest.raises(Unusable, match="no checkpoint"):
        search(kip320(), options)
    cut_off(kip320(Replicas="3", MaxLeaderEpoch="1"), replace(PLAIN, checkpoint=tmp_path))
    with pytest.raises(Unusable, match="differs in: spec, constants"):
        search(kip320(), options)


def test_a_second_run_takes_the_kernel_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Object code is kept under a name derived from everything it depends on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = kip320(MaxLeaderEpoch="1", MaxRecords="1", LogSize="1")
    first = search(program, PLAIN)
    kept = list(tmp_path.rglob("*.o"))
    assert len(kept) == 1
    assert same(first, search(program, PLAIN))
    assert list(tmp_path.rglob("*.o")) == kept
