"""Kept or locked data are accepted as written, or not at all, whatever else runs."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import resource
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from bank import bank
from damages import damaged
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from two_phase_copy import Copy

from agreement.both import program_of
from laws.sources import ROOT
from specchk import kept
from specchk.conform.covers.cache import cached_suite
from specchk.conform.gate.lock import digest_of
from specchk.conform.mutation.members import Kill
from specchk.conform.mutation.mutants import Mutant
from specchk.conform.mutation.outcomes import (
    Baseline,
    MutantOutcome,
    read_ground,
    read_outcome,
    write_ground,
    write_outcome,
)
from specchk.conform.work import lock_file
from specchk.lang.syntax.layout import LayoutFilter
from specchk.lang.syntax.tables import load_parser
from specchk.native.compiler import KernelSource
from specchk.native.machine.layout import layout_of
from specchk.native.tiers import load_kernel

INSTANCE = bank()
PROGRAM = INSTANCE.program
MUTANT = Mutant("m", "none", "A flaw.", ())
OUTCOME = MutantOutcome(MUTANT, (Kill("tests", "a", "fails", 0.25, True),), ("tests",), 3, "done", 0.5)
GROUND = Baseline((), (), 3, {"m": {"till": frozenset({1, 2})}}, {"m": 77})
GRAMMAR = 'decl: "a" NAME _NEWLINE\nexpr: NAME\nNAME: /[b-z]/\n_NEWLINE: /\\n/\n%declare _INDENT _DEDENT\n'


@dataclass(frozen=True)
class Believed:
    """A file, how to create it, and its accepted content; the same value if it is undamaged."""

    path: Path
    believed: Callable[[], Any]


def files(folder: Path) -> list[Believed]:
    """One file of every kind that is kept or sealed."""
    made = [
        *(Believed(path, lambda path=path: kept.read(path)) for path in _kept(folder)),
        _lock(folder),
    ]
    kinds = {one.path.parent.name for one in made}
    assert {"suites", "grammars", "kernels", "mutants"} <= kinds
    assert all(one.believed() is not None for one in made)
    return made


def _kept(folder: Path) -> list[Path]:
    cached_suite(INSTANCE)
    load_parser(GRAMMAR, LayoutFilter())
    write_outcome("an outcome", OUTCOME)
    write_ground("the ground", GROUND)
    for step, is_long in ((1, False), (2, True)):
        program = program_of(f"spec s\nvar n : 0..3 = 0\naction up():\n    n' = (n + {step}) % 4\n", folder)
        assert program is not None
        load_kernel(KernelSource(program, layout_of(program), [], compact=False), is_long=is_long)
    return sorted(path for path in (folder / "cache" / "specchk").rglob("*") if path.is_file())


def _lock(folder: Path) -> Believed:
    path = folder / lock_file.NAME

    def believed() -> Any:
        try:
            return lock_file.read(path)
        except lock_file.BadLock as error:
            return None if str(path) in str(error) else "a file that is not named"

    shutil.copy(ROOT / "conformance" / lock_file.NAME, folder)
    return Believed(path, believed)


@pytest.fixture(scope="module")
def believed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield files(folder)


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 32))
@example(seed=0)
def test_no_damage_is_believed(believed: list[Believed], seed: int) -> None:
    """A damaged file is refused, or has its original meaning: of 300 damages none is accepted."""
    random = Random(seed)
    one, other = random.sample(believed, 2)
    whole, wanted = one.path.read_bytes(), one.believed()
    data = damaged(random, whole, other.path.read_bytes())
    try:
        one.path.write_bytes(data)
        found = one.believed()
    finally:
        one.path.write_bytes(whole)
    accepted = found is not None and not (found == wanted and one.path.suffix == ".lock")
    assert not accepted, f"{one.path.name}: {len(whole)} bytes, seed {seed}"


def test_what_is_kept_says_what_was_written(believed: list[Believed]) -> None:
    """Nothing is lost, or a cache would change verdicts."""
    assert len(believed) >= 7
    assert replace_seconds(read_outcome("an outcome", MUTANT)) == replace_seconds(OUTCOME)
    assert read_ground("the ground") == GROUND
    assert read_outcome("another", MUTANT) is None


def replace_seconds(found: MutantOutcome | None) -> Any:
    assert found is not None
    return found.mutant, found.kills, found.asked, found.tests, found.how, found.verdict()


@pytest.mark.parametrize("kind", ["suites", "grammars", "kernels"])
def test_what_is_damaged_is_computed_again(kind: str, tmp_path: Path, monkeypatch: Any) -> None:
    """And the file is whole again afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = next(path for path in _kept(tmp_path) if path.parent.name == kind)
    before = path.read_bytes()
    path.write_bytes(before[:-5] + b"other")
    assert kept.read(path) is None
    _kept(tmp_path)
    assert kept.read(path) is not None
    if kind != "grammars":  # Lark numbers the states of a parser in another order each time
        assert len(path.read_bytes()) == len(before)


def test_a_file_under_another_s_name_is_none(tmp_path: Path) -> None:
    """The name determines the content of a file, so a copy is not valid."""
    kept.write(tmp_path / "one", b"words")
    shutil.copy(tmp_path / "one", tmp_path / "other")
    assert (kept.read(tmp_path / "one"), kept.read(tmp_path / "other")) == (b"words", None)


ROUNDS = 6


def _often(folder: str, ready: Any, answers: Any) -> None:
    os.environ["XDG_CACHE_HOME"] = folder
    ready.wait()
    for _ in range(ROUNDS):
        suite = cached_suite(INSTANCE)
        answers.put(hash(suite))
        with contextlib.suppress(FileNotFoundError):  # another was faster
            next((Path(folder) / "specchk" / "suites").glob("[0-9a-f]*"), Path("none")).unlink()


@pytest.mark.system
def test_runs_on_one_cache_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Six processes compute, keep, read and remove one suite: one answer, and no draft is left."""
    context = multiprocessing.get_context("fork")
    ready, answers = context.Barrier(6), context.Queue()
    processes = [context.Process(target=_often, args=(str(tmp_path), ready, answers)) for _ in range(6)]
    for process in processes:
        process.start()
    found = {answers.get() for _ in range(6 * ROUNDS)}
    for process in processes:
        process.join()
    assert found == {hash(cached_suite(INSTANCE))}
    assert [process.exitcode for process in processes] == [0] * 6
    assert not list(tmp_path.rglob(".*"))


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """A lock that cannot be written keeps its content; a missing cache is no error; no draft is left."""
    path, cached = tmp_path / "specchk.lock", tmp_path / "cached"
    path.write_bytes(b"old")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            kept.replace(path, b"new" * 1000)
        kept.write(cached, b"new" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert [one.name for one in tmp_path.iterdir()] == ["specchk.lock"]
    assert path.read_bytes() == b"old"


def test_a_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    """Permissions of a lock, and its link, are not changed."""
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    kept.replace(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640


def test_a_file_may_be_removed_while_it_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another process, just after this one has found it there."""
    with monkeypatch.context() as context:
        context.setattr(Path, "exists", lambda _: True)
        replacement = kept.Replacement(tmp_path / "lock")
        replacement.write([b"new"])
        replacement.finish()
        kept.replace(tmp_path / "other", [b"new"])
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"] * 2


def test_a_link_to_itself_cannot_be_written(tmp_path: Path) -> None:
    """There is no file to which it leads; the error is the system's."""
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="symbolic links"):
        kept.replace(tmp_path / "link", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


@pytest.mark.system
def test_a_lock_of_damaged_numbers_is_refused_with_a_sentence(tmp_path: Path, monkeypatch: Any) -> None:
    """By the command: the error, the place, and the remedy; a weaker gate is not compared with it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "gate").mkdir()
    copy = Copy(tmp_path / "gate")
    assert copy.conform("--update-lock").code == 0
    path = copy.folder / lock_file.NAME
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("covered = 16", "covered = 10"), encoding="utf-8")
    done = copy.conform("--lock")
    assert done.code == 2
    assert "was edited, merged or damaged after it was written; restore the reviewed file" in done.text
    path.write_text(text, encoding="utf-8", newline="\r\n")
    assert copy.conform("--lock").code == 0


def test_scores_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    """A file of scores is redirected output; its sums are those of its rows."""
    from specchk.conform.mutation.scores_file import NoScores, read_scores

    rows = [{"id": "a", "flaw": "f", "verdict": "killed", "kills": [1, 2]},
            {"id": "b", "flaw": "f", "verdict": "survived", "kills": []}]  # fmt: skip
    found = {"schema": "specchk.mutation/1", "control_tests": 3, "kind": "curated", "killed": 1, "counted": 2,
             "shortfall": "", "mutants": rows}  # fmt: skip
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(found))
    assert read_scores([str(path)]).kills["curated"] == lock_file.Kills(1, 2, digest_of("ab"))
    undecided = [*rows, {**rows[1], "id": "c", "verdict": "unfinished"}]
    for wrong in ({"killed": 2}, {"counted": 1}, {"mutants": undecided, "counted": 3}):
        path.write_text(json.dumps(found | wrong))
        with pytest.raises(NoScores):
            read_scores([str(path)])
