"""Work on all cores: tasks in forked processes, each of which hands back a value.

Forked, because a binding and its systems need not be picklable; only what a task returns is.  A
process that has threads must not be forked, so there the tasks run one after the other: the same
results, later.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

T = TypeVar("T")


class Lost(Exception):
    """A process ended before its task was done."""


def cores() -> int:
    """How many processes may run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(
    tasks: Sequence[Callable[[], T]], workers: int, passing: tuple[type[Exception], ...] = ()
) -> list[T]:
    """The results of all tasks, in their order; `workers` processes at a time.

    An exception of a task that is `passing` is raised here, that of the first task if there are
    several.  Of any other the process dies, with a traceback, and `Lost` is raised.
    """
    # A lock that another thread holds at the fork is never released in the child.
    can_fork = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    # One task needs no process of its own, and an exception from it has its traceback.
    if workers == 1 or len(tasks) == 1 or not can_fork:
        return [task() for task in tasks]
    context = multiprocessing.get_context("fork")
    results: dict[int, T | Exception] = {}
    running: dict[Connection, tuple[int, BaseProcess]] = {}
    todo = list(enumerate(tasks))
    while todo or running:
        while todo and len(running) < workers:
            number, task = todo.pop(0)
            ours, theirs = context.Pipe(duplex=False)
            forked = context.Process(target=_work, args=(theirs, task, passing))
            forked.start()
            theirs.close()
            # Else the pipe stays open here, and a child that dies is never noticed as the end of its data.
            running[ours] = number, forked
        for ready in wait(list(running)):
            assert isinstance(ready, Connection)
            number, process = running.pop(ready)
            results[number] = _received(ready, process)
    for number in sorted(results):
        # All tasks have ended, so the first in order is reported, whichever failed first in time.
        result = results[number]
        if isinstance(result, Exception):
            raise result
    return [result for _, result in sorted(results.items()) if not isinstance(result, Exception)]


def _received(ready: Connection, process: BaseProcess) -> Any:
    try:
        result = ready.recv()
    except EOFError:
        result = None
    ready.close()
    process.join()
    if result is None:
        return Lost(f"a process ended with {process.exitcode} before it had finished")
    return result[0]


def _work(to: Connection, task: Callable[[], object], passing: tuple[type[Exception], ...]) -> None:
    """A process's life."""
    try:
        result = task()
    except passing as error:  # raised again by who waits for it
        result = error
    to.send((result,))
    to.close()
