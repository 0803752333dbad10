"""Quick code of a large program is compiled by another process while its functions are made."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from native.test_search import PLAIN, kip320, same
from specchk.codegen import apart
from specchk.codegen.apart import CompilingProcess
from specchk.ir import walk
from specchk.ir.program import Program
from specchk.meaning.properties import Functions
from specchk.native import compiler
from specchk.native.compiler import KernelSource, load_kernel
from specchk.native.engine import search
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


def test_an_interruption_ends_the_process(processes: list[CompilingProcess]) -> None:
    """Also one that comes before the process has taken the text."""

    class Interrupted(Functions):
        def make(self) -> None:
            raise KeyboardInterrupt

    program = small()
    source, functions = KernelSource(program, layout_of(program)), Functions.of(program)
    with pytest.raises(KeyboardInterrupt):
        load_kernel(source, Interrupted(functions.stepper, functions.properties), is_long=False)
    assert [process._process.returncode for process in processes] == [-9]
