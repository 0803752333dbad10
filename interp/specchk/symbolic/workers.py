"""Processes that share the zones of a search, each owning those of some shapes.

An owner expands its zones and has the set of those seen, so nothing is stored twice and no zone waits for
another process.  Zones are kept to the end and have no cycles, so garbage collection is off meanwhile.
Processes are forked when the search begins, and keep the decision trees that they have recorded (`controls`)
from level to level.  Calls arrive over a pipe, one at a time, and all processes execute the same one at once.
A search with one worker runs in this process, and nothing is forked.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from msgspec import Struct

from specchk.processes import forked

M = TypeVar("M")


class _Process(Struct, frozen=True):
    number: int
    pipe: Connection


class Workers(Generic[M]):
    """`count` workers, each with the result of `make` for its number."""

    def __init__(self, count: int, make: Callable[[int], M]) -> None:
        self.count = count
        self.alone: M | None = None
        self._make = make
        self._processes: list[_Process] = []
        self._collects = gc.isenabled()

    def start(self) -> None:
        """Fork the processes, or create the only member."""
        # Before the forks, which inherit it.  A collection would traverse all zones and free nothing: 20.4 s
        # became 14.8 s (bench/README.md).
        gc.disable()
        if self.count == 1:
            self.alone = self._make(0)
            return
        for number in range(self.count):
            self._processes.append(self._fork(number))

    def close(self) -> None:
        """End the processes, whatever their state."""
        for process in self._processes:
            process.pipe.close()
            # Closing its pipe is not enough: processes forked later have copies of that end, so it would not
            # see the end of the file.  Nothing is lost, for a member keeps nothing that others read.
            os.kill(process.number, 9)
            os.waitpid(process.number, 0)
        self._processes.clear()
        if self._collects:
            # Otherwise all that the search made would be traversed at once; frozen, it never is.
            gc.freeze()
            gc.enable()
            gc.unfreeze()

    def call(self, method: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The results of calling a method on each worker with its arguments; an exception is raised here."""
        if self.alone is not None:
            return [method(self.alone, *arguments[0])]
        # All are called before the first answer is read, so they work at the same time.  No pipe can block
        # both sides: a process reads its whole call before it answers, and answers are read in order until
        # each is complete.
        for process, given in zip(self._processes, arguments, strict=True):
            process.pipe.send((method.__name__, given))
        return [_raised(process) for process in self._processes]

    def each(self, method: Callable[..., Any], *given: Any) -> list[Any]:
        """Like `call`, with the same arguments for all."""
        return self.call(method, [given] * self.count)

    def _fork(self, number: int) -> _Process:
        ours, theirs = Pipe()
        process = forked(partial(self._live, number, ours, theirs))
        # Otherwise a process that dies would leave its end open here, and `_raised` would wait forever.
        theirs.close()
        return _Process(process, ours)

    def _live(self, number: int, ours: Connection, theirs: Connection) -> None:
        """The life of a forked process."""
        ours.close()
        _serve(self._make(number), theirs)


def _serve(member: object, pipe: Connection) -> None:
    while True:
        try:
            name, given = pipe.recv()
        except EOFError:
            return
        try:
            answer = getattr(member, name)(*given)
        except BaseException as error:
            # Sent back and raised there: what a member cannot do (`NotSymbolic`) is a result of the search.
            answer = error
        pipe.send(answer)


def _raised(process: _Process) -> Any:
    try:
        answer = process.pipe.recv()
    except (EOFError, OSError):
        # The system kills for lack of memory, and for little else: the search ends as if it were used up.
        raise MemoryError("a worker process ended unexpectedly") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer
