"""Quick code of a large program is emitted and compiled by other processes while its functions are made."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from signal import SIGKILL
from threading import Event, Thread
from typing import Any

import pytest
from msgspec.structs import replace

from native.test_search import PLAIN, kip320, same
from specchk.codegen.ir import Tier
from specchk.ir import walk
from specchk.ir.program import Program
from specchk.meaning.properties import Functions
from specchk.native import compiler
from specchk.native.compiler import KernelSource
from specchk.native.engine import search
from specchk.native.machine import apart
from specchk.native.machine.apart import CompilingProcess
from specchk.native.machine.layout import layout_of
from specchk.search.verdict import Outcome


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Every program is large, and no kernel is kept."""
    monkeypatch.setattr(walk, "LARGE", 0)
    monkeypatch.setattr(compiler, "cores", lambda: 2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[CompilingProcess]:
    """The processes that a test starts."""
    started: list[CompilingProcess] = []

    class Started(CompilingProcess):
        def __init__(self, how: str) -> None:
            super().__init__(how)
            started.append(self)

    monkeypatch.setattr(compiler, "CompilingProcess", Started)
    return started


def found() -> Outcome:
    return search(small(), PLAIN)


def small() -> Program:
    return kip320(Replicas="2", MaxLeaderEpoch="1")


def test_the_result_is_that_of_code_compiled_here(
    processes: list[CompilingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = found()
    assert len(processes) == 1
    monkeypatch.setattr(walk, "LARGE", sys.maxsize)
    assert same(outcome, found())
    assert len(processes) == 1


def test_files_of_the_current_directory_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new process would find them before Python's own modules of the same name."""
    (tmp_path / "struct.py").write_text("raise SystemExit('this file has nothing to do with specchk')")
    monkeypatch.chdir(tmp_path)
    program = small()
    with CompilingProcess("quick") as process:
        process.begin(KernelSource(program, layout_of(program)).text())
        assert process.code() is not None


def test_a_process_that_ends_costs_time_only(
    processes: list[CompilingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "_PROGRAM", "import sys; sys.stdout.write('half of the code'); sys.exit(3)")
    outcome = found()
    assert len(processes) == 1
    monkeypatch.setattr(walk, "LARGE", sys.maxsize)
    assert same(outcome, found())


def test_a_refused_process_costs_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(how: str) -> CompilingProcess:
        raise BlockingIOError(how)

    monkeypatch.setattr(compiler, "CompilingProcess", refused)
    outcome = found()
    monkeypatch.setattr(walk, "LARGE", sys.maxsize)
    assert same(outcome, found())


@pytest.mark.parametrize("is_cut", [True, False])
def test_text_that_is_not_whole_costs_time_only(
    processes: list[CompilingProcess], monkeypatch: pytest.MonkeyPatch, *, is_cut: bool
) -> None:
    """Also if it is valid, because it was cut between two functions."""
    parent, whole, begin = os.getpid(), KernelSource.text, CompilingProcess.begin

    def text(source: KernelSource, tier: Tier) -> str:
        if os.getpid() != parent and not is_cut:
            raise MemoryError
        return whole(source, tier)

    def cut(process: CompilingProcess, text: str) -> None:
        begin(process, text[: text.index("\n}\n") + 3])
        os.kill(os.getpid(), SIGKILL)

    monkeypatch.setattr(KernelSource, "text", text)
    if is_cut:
        monkeypatch.setattr(CompilingProcess, "begin", cut)
    outcome = found()
    assert len(processes) == 1
    monkeypatch.setattr(walk, "LARGE", sys.maxsize)
    assert same(outcome, found())


def test_a_process_with_threads_makes_the_text_itself(
    processes: list[CompilingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forked(_: object) -> int:
        raise AssertionError("forked with threads")

    monkeypatch.setattr(apart, "forked", forked)
    end = Event()
    thread = Thread(target=end.wait)
    thread.start()
    try:
        outcome = found()
    finally:
        end.set()
        thread.join()
    assert len(processes) == 1
    monkeypatch.setattr(walk, "LARGE", sys.maxsize)
    assert same(outcome, found())


def test_a_kept_kernel_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = found()

    def compiled(*_: object) -> bytes:
        raise AssertionError("compiled again")

    monkeypatch.setattr(compiler, "_quick_code", compiled)
    assert same(outcome, found())


def children() -> list[str]:
    """The processes of this one, also those that have ended and were not waited for."""
    me = os.getpid()
    return Path(f"/proc/{me}/task/{me}/children").read_text(encoding="ascii").split()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_interruption_ends_the_processes(processes: list[CompilingProcess]) -> None:
    """Also one that comes before a process has taken the text."""

    class Interrupted(Functions):
        def make(self) -> None:
            raise KeyboardInterrupt

    program = small()
    functions = Functions.of(program)
    interrupted = Interrupted(functions.stepper, functions.properties)
    before = children()
    with pytest.raises(KeyboardInterrupt):
        search(program, replace(PLAIN, functions=interrupted))
    assert [process._process.returncode for process in processes] == [-9]
    assert [process._maker for process in processes] == [None]
    assert set(children()) <= set(before)  # others are of earlier tests, such as the tracker of Python
