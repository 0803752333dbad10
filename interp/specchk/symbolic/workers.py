"""Processes that share the zones of a search, each owning those of some shapes.

An owner expands its zones and has the set of those seen, so nothing is stored twice and no zone waits for
another process.  Zones are kept to the end and have no cycles, so garbage collection is off meanwhile.
Processes are forked when the search begins, and keep the decision trees that they have recorded (`controls`)
from level to level.  Calls arrive over a pipe, one at a time, and all processes execute the same one at once.
A search with one worker runs in this process, and nothing is forked.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from specchk.parallel import Child
from specchk.processes import unblock_interrupts

M = TypeVar("M")


class Workers(Generic[M]):
    """`count` workers, each with the result of `make` for its number."""

    def __init__(self, count: int, make: Callable[[int], M]) -> None:
        self.count = count
        self.alone: M | None = None
        self._make = make
        self._processes: list[Child] = []
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
            self._processes.append(Child(self._live, number, is_forked=True))

    def close(self) -> None:
        """End the processes, whatever their state."""
        for process in self._processes:
            process.end()  # nothing is lost, for a member keeps nothing that others read
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

    def _live(self, pipe: Connection, number: int) -> None:
        """The life of a forked process."""
        unblock_interrupts()
        _serve(self._make(number), pipe)


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


def _raised(process: Child) -> Any:
    try:
        answer = process.pipe.recv()
    except (EOFError, OSError):
        # The system kills for lack of memory, and for little else: the search ends as if it were used up.
        raise MemoryError("a worker process ended unexpectedly") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer
