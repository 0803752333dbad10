"""Work in processes of their own, which end with the work, however it ends.

Not here: processes that keep state from call to call (`symbolic.workers`), and those that an implementation
may end (`conform.work`).
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar, cast

from specchk.processes import end_with, interrupts_blocked, safe_paths

R = TypeVar("R")


def results_of(
    work: Callable[..., R], tasks: Sequence[tuple[Any, ...]], workers: int
) -> Generator[R, None, None]:
    """The results of calls in order, each computed by a process of its own, `workers` at a time.

    When the generator is closed, all processes have ended.  `MemoryError` is raised where one ends by itself.
    """
    helpers: dict[Connection, _Helper] = {}
    done: dict[int, tuple[R | None, Exception | None]] = {}
    begun = 0
    try:
        for number in range(len(tasks)):
            while number not in done:
                while begun < len(tasks) and len(helpers) < workers:
                    helper = _Helper(begun, work, tasks[begun])
                    helpers[helper.pipe] = helper
                    begun += 1
                for pipe in wait(list(helpers)):
                    assert isinstance(pipe, Connection)
                    done[helpers[pipe].number] = helpers[pipe].finish()
                    helpers.pop(pipe).end()
            result, error = done.pop(number)
            if error is not None:
                raise error
            yield cast(R, result)
    finally:
        for helper in helpers.values():
            helper.end()


class _Helper:
    """A process that calls `work`; the other end of its pipe is its alone.

    So the pipe ends with the process, also within a result: the executors of `concurrent.futures` keep the
    writing end of a queue open, and wait forever for the rest of a result.
    """

    def __init__(self, number: int, work: Callable[..., object], given: tuple[Any, ...]) -> None:
        self.number = number
        context = multiprocessing.get_context("spawn")  # a fork would keep the locks of other threads forever
        self.pipe, theirs = context.Pipe()
        about = theirs, os.getpid(), sys.getrecursionlimit()
        self._process = context.Process(target=_help, args=about, daemon=True)
        try:
            with safe_paths():
                # Ctrl-C reaches all processes of a terminal.  It is this process that ends the others, and it
                # may come before they can ignore it; blocked signals stay blocked in a new process.
                # Python's tracker of resources is begun by the first process otherwise, and unblocks them.
                resource_tracker.ensure_running()
                with interrupts_blocked():
                    self._process.start()
        finally:
            theirs.close()
        with suppress(BrokenPipeError):  # the end of the process is reported by `finish`
            self.pipe.send((work, given))

    def finish(self) -> Any:
        """The result or the exception."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            # The system kills for memory, and for little else.
            return None, MemoryError("a worker process ended unexpectedly")

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _help(pipe: Connection, parent: int, recursion_limit: int) -> None:
    """Make the call that is read from the pipe."""
    end_with(parent)
    sys.setrecursionlimit(recursion_limit)
    work, given = pipe.recv()
    answer: tuple[object, Exception | None]
    try:
        answer = work(*given), None
    except Exception as error:
        error.add_note(traceback.format_exc())  # of this process
        answer = None, error
    pipe.send(answer)
