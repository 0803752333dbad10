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
    work: Callable[..., R], tasks: Sequence[tuple[Any, ...]], workers: int, *, ahead: int, each: int = 0
) -> Generator[R, None, None]:
    """The results of calls in order, computed by other processes.

    At most `ahead` tasks behind the one whose result is due are begun.  A process takes `each` tasks, any
    number if that is 0.  When the generator is closed, all processes have ended.  Where one ends by itself,
    `MemoryError` is raised.
    """
    helpers: dict[Connection, _Helper] = {}
    done: dict[int, tuple[R | None, Exception | None]] = {}
    begun = 0
    try:
        for number in range(len(tasks)):
            while number not in done:
                idle = [helper for helper in helpers.values() if helper.task is None]
                busy = len(helpers) - len(idle)
                while begun < min(len(tasks), number + ahead + 1) and busy < workers:
                    if not idle:
                        idle.append(_Helper())
                        helpers[idle[0].pipe] = idle[0]
                    idle.pop().begin(begun, work, tasks[begun])
                    begun, busy = begun + 1, busy + 1
                ready = wait([pipe for pipe, helper in helpers.items() if helper.task is not None])
                for helper in [helpers[pipe] for pipe in ready if isinstance(pipe, Connection)]:
                    at, done[at] = helper.finish()
                    if helper.taken == each:
                        helpers.pop(helper.pipe).end()
            result, error = done.pop(number)
            if error is not None:
                raise error
            yield cast(R, result)
    finally:
        for helper in helpers.values():
            helper.end()


class _Helper:
    """A process that takes one task at a time; the other end of its pipe is its alone.

    So the pipe ends with the process, also within a result: the executors of `concurrent.futures` keep the
    writing end of a queue open, and wait forever for the rest of a result.
    """

    def __init__(self) -> None:
        self.task: int | None = None
        self.taken = 0
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

    def begin(self, number: int, work: Callable[..., object], given: tuple[Any, ...]) -> None:
        """Let the process call `work`."""
        self.task, self.taken = number, self.taken + 1
        with suppress(BrokenPipeError):  # the end of the process is reported by `finish`
            self.pipe.send((work, given))

    def finish(self) -> tuple[int, Any]:
        """The number of the task, and its result or exception."""
        assert self.task is not None
        number, self.task = self.task, None
        try:
            return number, self.pipe.recv()
        except (EOFError, OSError):
            # The system kills for memory, and for little else.
            return number, (None, MemoryError("a worker process ended unexpectedly"))

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _help(pipe: Connection, parent: int, recursion_limit: int) -> None:
    """Take tasks until the pipe ends."""
    end_with(parent)
    sys.setrecursionlimit(recursion_limit)
    while True:
        try:
            work, given = pipe.recv()
        except EOFError:
            return
        answer: tuple[object, Exception | None]
        try:
            answer = work(*given), None
        except Exception as error:
            error.add_note(traceback.format_exc())  # of this process
            answer = None, error
        pipe.send(answer)
