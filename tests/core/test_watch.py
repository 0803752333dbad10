"""A watch over limits: it ends work that does not look at them, and leaves alone work that does."""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from mmap import PAGESIZE, mmap
from unittest import mock

import pytest
from msgspec.structs import replace

from hang import HANG_S
from specchk.search.budget import Budget, Meter, ResidentMemory, watched
from specchk.search.verdict import Inconclusive, stopped_by
from specchk.search.watch import TICK_S, LimitReached

SOON, LONG = Budget(max_seconds=0.05), Budget(max_seconds=3600)
# Work of C that gives the interpreter's lock away, and sees no signal.
BLOCKED = """
import hashlib, os
from specchk.search.budget import Budget, watched

def end(limit):
    os.write(1, limit.encode())
    os._exit(20)

with watched(Budget(max_seconds=0.2), end):
    hashlib.pbkdf2_hmac("sha256", b"", b"", 1 << 30)
"""


def never(limit: str) -> None:
    raise AssertionError(limit)


def over() -> float:
    """A beginning of work whose long limit is reached."""
    return time.monotonic() - 3600


def spin() -> None:
    while True:
        pass


def multiply() -> None:
    number = 3 ** (1 << 20)
    while True:
        number *= number


def hold() -> None:
    held = []
    while True:
        held.append(bytes(range(256)) * (1 << 12))


def read() -> None:
    ours, _ = os.pipe()
    os.read(ours, 1)


@pytest.mark.parametrize("work", [spin, multiply, read])
def test_work_that_does_not_look_is_interrupted(work: Callable[[], None]) -> None:
    """In Python, within one operation of it, and while it waits for another process."""
    with pytest.raises(LimitReached, match=r"the limit of 0\.05 s \(--max-seconds\)"), watched(SOON, never):
        work()


def test_a_finalizer_does_not_swallow_the_limit() -> None:
    """Nothing passes an exception on that is raised in `__del__`; solvers have thousands of such handles."""

    def wait(seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass

    class Handle:
        def __del__(self) -> None:
            wait(0.3)

        def work(self) -> None:
            wait(20.0)

    kept = list[object]()

    def use_three() -> None:
        Handle()  # which ends at once
        kept.append(weakref.ref(Handle(), lambda _: wait(0.3)))
        Handle().work()

    with pytest.raises(LimitReached), watched(SOON, str):
        use_three()


def test_a_finalizer_does_not_swallow_the_limit_within_a_foreign_call(capfd) -> None:
    """Where the limit has become another exception, as in the finalizers of Z3's handles."""

    class Argument:
        @property
        def _as_parameter_(self) -> int:
            end = time.monotonic() + 0.4
            while time.monotonic() < end:
                pass
            return 0

    class Handle:
        def __del__(self) -> None:
            ctypes.pythonapi.PyErr_CheckSignals(Argument())

    def work() -> None:
        Handle()  # which ends at once
        spin()

    with pytest.raises(LimitReached), watched(SOON, str):
        work()
    assert capfd.readouterr().err == ""


def test_memory_is_not_measured_by_the_thread_that_works() -> None:
    """A handler of a signal that imports modules, as the reading of a text does, breaks an import."""
    threads = set[int]()

    class Measured(ResidentMemory):
        def size(self) -> int:
            threads.add(threading.get_ident())
            return super().size()

    with (
        mock.patch("specchk.search.budget.ResidentMemory", Measured),
        watched(Budget(max_memory_bytes=1 << 50), never),
    ):
        end = time.monotonic() + 1
        while not threads and time.monotonic() < end:
            pass
    assert threads
    assert threading.get_ident() not in threads


def test_an_exception_that_the_interrupt_causes_is_the_limit() -> None:
    """As of a solver that is interrupted outside of a query; before the limit it is a defect."""

    def work(budget: Budget) -> None:
        with watched(budget, str, time.monotonic() - 1.0) as limited:
            assert limited.watch is not None
            limited.watch.see()  # the exception comes first
            limited.watch.also(lambda: None, ZeroDivisionError)
            raise ZeroDivisionError

    with pytest.raises(LimitReached, match=r"the limit of 0\.05 s"):
        work(SOON)
    with pytest.raises(ZeroDivisionError):
        work(LONG)


class Spinning:
    """An argument of a foreign function whose conversion takes long."""

    @property
    def _as_parameter_(self) -> int:
        spin()
        return 0


def test_a_limit_within_the_conversion_of_an_argument_is_the_limit() -> None:
    """A foreign function makes another exception of it, as in a call of Z3."""
    with pytest.raises(LimitReached, match=r"the limit of 0\.05 s"), watched(SOON, never):
        ctypes.pythonapi.PyErr_CheckSignals(Spinning())


def test_a_solver_is_interrupted_after_the_limit_is_raised() -> None:
    """Otherwise it would be the solver that gave up."""
    times = list[float]()
    with watched(SOON, str) as budget:
        watch = budget.watch
        assert watch is not None
        watch.see()  # as if the exception waited for the solver
        watch.also(lambda: times.append(watch.seconds))
        while not times:
            pass
    assert times[0] >= 0.05 + TICK_S


def test_work_that_nothing_interrupts_ends_with_the_process() -> None:
    """A compiler or a solver, in which no exception can be raised."""
    ended = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, timeout=HANG_S, check=False)
    assert (ended.returncode, ended.stdout) == (20, b"the limit of 0.2 s (--max-seconds) was reached")


def test_work_that_has_seen_the_limit_is_left_alone() -> None:
    """It knows more than an exception: counts, and what it found."""
    ticks = list[None]()
    with watched(LONG, ticks.append, over()) as budget:
        assert Meter(budget).exceeded(0) is not None
        assert budget.watch is not None
        budget.watch.also(lambda: ticks.append(None))
        while len(ticks) < 3:
            pass


def test_a_result_that_is_written_is_left_alone() -> None:
    """The limit is for the work before it; it is reached afterwards, if that goes on."""
    with watched(LONG, never, over()) as budget:
        assert budget.watch is not None
        with budget.watch.resting():
            time.sleep(0.7)
        with pytest.raises(LimitReached):
            spin()


def test_a_result_is_written_in_peace_after_the_limit() -> None:
    """Work that has seen the limit, and writes what it has, may take longer than the grace."""
    with watched(LONG, never, over()) as budget:
        assert budget.watch is not None
        assert Meter(budget).exceeded(0) is not None
        with budget.watch.resting():
            pass
        time.sleep(0.7)


def test_memory_is_watched_without_a_look() -> None:
    """Within one evaluation, too."""
    limit = Budget(max_memory_bytes=ResidentMemory().size() + (64 << 20))
    with pytest.raises(LimitReached, match="--max-memory"), watched(limit, never):
        hold()


def test_memory_is_that_of_worker_processes_too() -> None:
    """But not what a process had when it was first seen: a fork shares that."""
    memory = ResidentMemory()
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ready[1], b".")
        os.read(go[0], 1)
        # Pages of its own: the allocator may have some that are shared with the parent, and count already.
        held = mmap(-1, 64 << 20)
        for page in range(0, len(held), PAGESIZE):
            held[page] = 1
        os.write(ready[1], b".")
        os.read(go[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    before = memory.size()
    os.write(go[1], b".")
    os.read(ready[0], 1)
    grown = memory.size() - before
    os.write(go[1], b".")
    os.waitpid(child, 0)
    assert 60 << 20 < grown < 80 << 20


def test_seconds_count_from_the_beginning_of_the_work() -> None:
    """One clock for compiling and searching: a meter that begins later has no time of its own."""
    with watched(LONG, never, time.monotonic() - 3000) as budget:
        assert budget.watch is not None
        assert Meter(budget).exceeded(0) is None
        left = Meter(budget).within(LONG).max_seconds
        assert left is not None
        assert left <= 600
        assert Meter(budget).within(SOON) == SOON
        budget.watch.began -= 3600
        assert Meter(budget).exceeded(0) is not None


def test_a_budget_without_time_or_memory_is_not_watched() -> None:
    """There is nothing to look at."""
    with watched(Budget(max_states=5), never) as budget:
        assert budget.watch is None


def test_a_budget_in_another_process_has_no_watch() -> None:
    """That of the process which began the other ends both."""
    with watched(LONG, never) as budget:
        assert pickle.loads(pickle.dumps(budget)) == replace(budget, watch=None)


def test_an_interrupt_is_a_limit_or_comes_from_the_keyboard() -> None:
    """Only the first is a budget."""
    assert stopped_by(LimitReached("the limit")) == Inconclusive("the limit", budget=True)
    assert not stopped_by(KeyboardInterrupt()).budget
