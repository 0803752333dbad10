"""Calls in other processes: results in order, and an end whatever happens to the processes."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest

from specchk.parallel import results_of

LARGE = 1 << 22  # bytes: many times a pipe's buffer


def slowly_squared(number: int) -> int:
    if number == 0:
        while not Path("/proc/self/stat").exists():
            pass
    return number * number


def own(number: int) -> int:
    del number
    return os.getpid()


def failing(number: int) -> int:
    if number == 2:
        raise ValueError("two")
    return number


def ended(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


class EndsInside:
    """A result whose process ends when a part of it was written."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as a large text."""
        os.write(int(os.environ["OWN_PIPE"]), LARGE.to_bytes(4, "big") + bytes(LARGE // 64))
        os.kill(os.getpid(), signal.SIGKILL)
        return str, ()


def ends_inside(number: int) -> EndsInside:
    if number == 0:
        places = [path for path in Path("/proc/self/fd").iterdir() if path.is_socket()]
        os.environ["OWN_PIPE"] = places[0].name
    return EndsInside()


def interrupted(number: int) -> int:
    os.kill(os.getpid(), signal.SIGINT)
    return number


def deep(levels: int) -> int:
    return 1 + deep(levels - 1) if levels else 0


def children() -> list[str]:
    me = os.getpid()
    return Path(f"/proc/{me}/task/{me}/children").read_text(encoding="ascii").split()


@pytest.mark.parametrize("workers", [1, 2, 9])
def test_results_are_in_order(workers: int) -> None:
    """However many are computed at a time."""
    tasks = [(number,) for number in range(5)]
    assert list(results_of(slowly_squared, tasks, workers)) == [0, 1, 4, 9, 16]


def test_each_task_has_a_process_of_its_own() -> None:
    """So that no result depends on the tasks before it."""
    assert len(set(results_of(own, [(number,) for number in range(4)], 2))) == 4


def test_an_exception_is_raised_in_its_turn() -> None:
    """The results before it are given first."""
    results = results_of(failing, [(number,) for number in range(4)], 2)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="two") as error:
        next(results)
    assert "in failing" in error.value.__notes__[0]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("work", [ended, ends_inside])
def test_a_process_that_ends_is_not_waited_for(work: object) -> None:
    """Also if it has written a part of its result."""
    before = children()
    with pytest.raises(MemoryError):
        list(results_of(work, [(0,), (1,)], 2))  # type: ignore[arg-type]
    assert set(children()) <= {*before, *tracker()}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_closed_results_leave_no_process() -> None:
    """Those that were begun ahead are ended."""
    before = children()
    with closing(results_of(slowly_squared, [(number,) for number in range(9)], 2)) as results:
        assert next(results) == 0
    assert set(children()) <= {*before, *tracker()}


def test_ctrl_c_does_not_end_a_process() -> None:
    """The process that began them ends them."""
    assert list(results_of(interrupted, [(1,), (2,)], 2)) == [1, 2]


def test_files_of_the_current_directory_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new process would find them before Python's own modules of the same name, and end."""
    (tmp_path / "signal.py").write_text("raise SystemExit('this file has nothing to do with specchk')")
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    assert len(set(results_of(own, [(1,)], 1))) == 1
    assert before == dict(os.environ)


def test_a_process_may_recur_as_deeply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees of specs are deeper than Python's limit."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        assert list(results_of(deep, [(5000,)], 1)) == [5000]
    finally:
        sys.setrecursionlimit(before)


def tracker() -> list[str]:
    """Python's own process that `multiprocessing` may have started."""
    from multiprocessing.resource_tracker import _resource_tracker

    return [str(_resource_tracker._pid)]
