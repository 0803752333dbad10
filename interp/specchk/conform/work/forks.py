"""Work on all cores: tasks in forked processes, a limited number at a time.

    each       the value of each task
    run_all    the messages that each task sends before it ends; it is killed at its deadline, and its
               messages until then count

Forked, because a binding and its systems need not be picklable; only the result of a task is.  A
process that has threads must not be forked, so there `each` runs tasks one after the other: the same
results, later.  A task of `run_all` that has sent everything and whose process lives on (by a thread that it
left) has until its deadline, too.

Invariants: the results are in the order of the tasks; no process of a task is left behind, on Linux not even
if this one is killed.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from msgspec import Struct, field

from specchk.conform.contract.hangs import contained
from specchk.parallel import Child
from specchk.processes import can_fork, own_needs, unblock_interrupts

T = TypeVar("T")
Say = Callable[[Any], None]
Task = Callable[[Say], None]
DONE, LATE, LOST = "done", "late", "lost"
_END = "end"
_SAID = "said"
_DIED = "died"
_INTERRUPTED = "interrupted"


class Ended(Struct):
    """The messages of a task, and its end: `done`, `late` (killed at its deadline) or `lost` (it died).

    `why` are the last words of a lost one: its exception and where, or its exit code; `code` is that exit
    code (below 0 a signal's) where it had no last words.  `is_interrupted`: it was lost by Ctrl-C.
    """

    said: list[Any] = field(default_factory=list)
    how: str = ""
    why: str = ""
    code: int | None = None
    seconds: float = 0.0
    is_interrupted: bool = False


class _Running(Struct):
    number: int
    child: Child
    begun: float  # by the clock of deadlines
    started: float
    ended: Ended


def run_all(
    tasks: Sequence[Task],
    workers: int,
    seconds: float | None = None,
    done: Callable[[int, Ended], None] = lambda number, ended: None,
    clock: Callable[[], float] = perf_counter,
) -> list[Ended]:
    """Run all tasks, `workers` at a time; `done` receives each finished one, in the order of ending.

    `clock` determines when a task has taken more than `seconds`; None: no task ever does.
    """
    results: dict[int, Ended] = {}
    running: dict[Connection, _Running] = {}
    todo = list(enumerate(tasks))
    try:
        while todo or running:
            while todo and len(running) < max(workers, 1):
                number, task = todo.pop(0)
                # Forked: a task is a closure over the objects that the parent has loaded.
                child = Child(_work, task, is_forked=True, is_last=False)
                running[child.pipe] = _Running(number, child, clock(), perf_counter(), Ended())
            # The next message of each task, or after the last one the end of its process.
            events = [
                task.child.process.sentinel if task.ended.how else connection
                for connection, task in running.items()
            ]
            for ready in wait(events, timeout=_patience(running, seconds, clock())):
                if isinstance(ready, Connection):
                    _hear(ready, running[ready].ended)
            # All that are over, not only those that were ready: a task that hangs sends nothing.
            for connection in [one for one, task in running.items() if _is_over(task, seconds, clock())]:
                task_run = running.pop(connection)
                _finish(connection, task_run)
                results[task_run.number] = task_run.ended
                done(task_run.number, task_run.ended)
    finally:
        # An interrupt, too, leaves no process behind.
        for connection, left in running.items():
            left.child.process.kill()
            _finish(connection, left)
    return [results[number] for number in sorted(results)]


def _patience(running: dict[Connection, _Running], seconds: float | None, now: float) -> float | None:
    """The time until the next deadline."""
    if seconds is None:
        return None
    return max(0.0, min(task.begun for task in running.values()) + seconds - now)


def _hear(connection: Connection, ended: Ended) -> None:
    try:
        kind, what = connection.recv()
    except (EOFError, OSError):
        # The end of data after a last word is no loss.
        ended.how = ended.how or LOST
        return
    if kind == _SAID:
        ended.said.append(what)
    elif kind in (_DIED, _INTERRUPTED):
        ended.how, ended.why, ended.is_interrupted = LOST, what, kind == _INTERRUPTED
    else:
        ended.how = DONE


def _is_over(task: _Running, seconds: float | None, now: float) -> bool:
    if seconds is not None and now - task.begun >= seconds:
        task.ended.how = task.ended.how or LATE
        # SIGKILL: a mutant may have caught or blocked anything else.
        task.child.process.kill()
        return True
    return bool(task.ended.how) and not task.child.process.is_alive()


def _finish(connection: Connection, task: _Running) -> None:
    task.child.process.join()
    if task.ended.how == LATE:  # its last messages count, too
        rest = Ended()
        # The data in the pipe were written before the process was stopped, and count.
        while not rest.how and connection.poll():
            _hear(connection, rest)
        task.ended.said += rest.said
        # Its last word as well: then it has ended, and only its process was late.
        if rest.how == DONE or rest.why:
            task.ended.how, task.ended.why = rest.how, rest.why
    connection.close()
    task.ended.seconds = perf_counter() - task.started
    if task.ended.how == LOST and not task.ended.why:
        task.ended.code = task.child.process.exitcode
        task.ended.why = f"exit code {task.ended.code}"


def _work(to: Connection, task: Task) -> None:
    """The life of a worker process."""
    # The parent's objects are not garbage here; without this each full collection visits all of them.
    gc.freeze()
    try:
        unblock_interrupts()
        task(lambda what: to.send((_SAID, what)))
        to.send((_END, None))
    # Ctrl-C reaches all processes of a terminal, and the parent reports it; a trace of each would hide that.
    except KeyboardInterrupt as error:
        to.send((_INTERRUPTED, _last_words(error)))
    except BaseException as error:  # whatever ends it, it must be reported
        to.send((_DIED, _last_words(error)))
        raise
    to.close()


def _last_words(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f", {Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


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
    several; so is a lack of memory.  Of any other the process dies, with a traceback, and `Lost` is raised,
    which names it; of Ctrl-C it is `KeyboardInterrupt`, as without processes.
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
    told: tuple[type[Exception], ...] = (*passing, MemoryError)
    try:
        with contained(), own_needs():
            say((task(), None))
    except told as error:
        say((None, error))
