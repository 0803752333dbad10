"""Processes beside this one, with a pipe to each: they end with it, however it ends.

    Child         one process
    results_of    a process for each of some calls

Not here: what is sent to processes that keep state from call to call (`symbolic.workers`), or that an
implementation may end (`conform.work`); programs of other people (`guardian`).
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar, cast

from specchk.processes import end_with, interrupts_blocked, safe_paths

R = TypeVar("R")


class Child:
    """A process that calls `work(pipe, *given)`; `pipe` here is the other end.  It ends with this process.

    Forked, it has the memory of this process, which must have no other threads (`can_fork`); otherwise it is
    a new Python.  Ctrl-C and limits wait in it, until it calls `unblock_interrupts`: they reach all processes
    of a terminal, and it is this one that ends the others.  `is_last`: it starts no processes of its own.

    Its end of the pipe is its alone.  So the pipe ends with the process, also within a message: the executors
    of `concurrent.futures` keep the writing end of a queue open, and wait forever for the rest of a result.
    """

    def __init__(
        self, work: Callable[..., None], *given: object, is_forked: bool, is_last: bool = True
    ) -> None:
        context: Any = multiprocessing.get_context("fork" if is_forked else "spawn")
        self.pipe, theirs = context.Pipe()
        about = theirs, os.getpid(), work, given
        self.process: BaseProcess = context.Process(target=_live, args=about, daemon=is_last)
        with ExitStack() as around:
            around.callback(theirs.close)
            if not is_forked:
                around.enter_context(safe_paths())
                # Python's tracker of resources is begun by the first process otherwise, and unblocks signals.
                resource_tracker.ensure_running()
            around.enter_context(interrupts_blocked())
            self.process.start()

    def end(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _live(pipe: Connection, parent: int, work: Callable[..., None], given: tuple[object, ...]) -> None:
    end_with(parent)
    # Else a process that this one forks would hold the pipe, and its end would not come with this one's.
    os.register_at_fork(after_in_child=pipe.close)
    work(pipe, *given)


def results_of(
    work: Callable[..., R], tasks: Sequence[tuple[Any, ...]], workers: int
) -> Generator[R, None, None]:
    """The results of calls in order, each computed by a process of its own, `workers` at a time.

    When the generator is closed, all processes have ended.  `MemoryError` is raised where one ends by itself.
    """
    children: dict[Connection, tuple[int, Child]] = {}
    done: dict[int, tuple[R | None, Exception | None]] = {}
    begun = 0
    try:
        for number in range(len(tasks)):
            while number not in done:
                while begun < len(tasks) and len(children) < workers:
                    # A fork would keep the locks of other threads forever.
                    child = Child(_help, sys.getrecursionlimit(), is_forked=False)
                    children[child.pipe] = begun, child
                    with suppress(BrokenPipeError):  # the end of the process is reported by `_finish`
                        child.pipe.send((work, tasks[begun]))
                    begun += 1
                for pipe in wait(list(children)):
                    assert isinstance(pipe, Connection)
                    which, child = children[pipe]
                    done[which] = _finish(child)
                    children.pop(pipe)
                    child.end()
            result, error = done.pop(number)
            if error is not None:
                raise error
            yield cast(R, result)
    finally:
        for _, child in children.values():
            child.end()


def _finish(child: Child) -> Any:
    """The result or the exception."""
    try:
        return child.pipe.recv()
    except (EOFError, OSError):
        # The system kills for memory, and for little else.
        return None, MemoryError("a worker process ended unexpectedly")


def _help(pipe: Connection, recursion_limit: int) -> None:
    """Make the call that is read from the pipe."""
    sys.setrecursionlimit(recursion_limit)
    work, given = pipe.recv()
    answer: tuple[object, Exception | None]
    try:
        answer = work(*given), None
    except Exception as error:
        error.add_note(traceback.format_exc())  # of this process
        answer = None, error
    pipe.send(answer)
