"""Work on all cores: tasks in forked processes, each of which returns a value.

Forked, because a binding and its systems need not be picklable; only the result of a task is.  A
process that has threads must not be forked, so there the tasks run one after the other: the same
results, later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from specchk.conform.contract.hangs import contained
from specchk.conform.work.pool import Say, run_all
from specchk.processes import can_fork

T = TypeVar("T")


class Lost(Exception):
    """A process ended before its task was done; `code` as in `Ended`, None if an exception ended it."""

    def __init__(self, message: str, code: int | None = None) -> None:
        self.code = code
        super().__init__(message, code)

    def __str__(self) -> str:
        return str(self.args[0])


def each(
    tasks: Sequence[Callable[[], T]], workers: int, passing: tuple[type[Exception], ...] = ()
) -> list[T]:
    """The results of all tasks, in order, with `workers` processes at a time.

    An exception of a task that is `passing` is raised here, that of the first task if there are
    several.  Of any other the process dies, with a traceback, and `Lost` is raised, which names it; of
    Ctrl-C it is `KeyboardInterrupt`, as without processes.
    """
    # A single task needs no separate process, and an exception from it has its traceback.
    if workers == 1 or len(tasks) == 1 or not can_fork():
        return [task() for task in tasks]
    every = run_all([partial(_say_result, task, passing) for task in tasks], workers)
    # All tasks have ended, so the first in order is reported, whichever failed first in time.
    for ended in every:
        if ended.is_interrupted:  # Ctrl-C may reach one process of them alone
            raise KeyboardInterrupt
        if not ended.said:
            raise Lost(f"a process ended before it had finished: {ended.why}", ended.code)
        _, error = ended.said[0]
        if error is not None:
            raise error
    return [ended.said[0][0] for ended in every]


def _say_result(task: Callable[[], object], passing: tuple[type[Exception], ...], say: Say) -> None:
    try:
        with contained():
            say((task(), None))
    except passing as error:
        say((None, error))
