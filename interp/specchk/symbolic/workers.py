"""Forked processes that each do a part of a level.

A process is forked for its part, so it sees the search as it is at that moment and sends back only
what it found.  On one core, or for a small level, nothing is forked.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")
SMALL = 64  # zones that are not worth a process
SLICE = 1500  # zones between two looks at the budget


class Workers:
    """So many processes at a time; 0 is one for each core."""

    def __init__(self, count: int) -> None:
        self.count = count or len(os.sched_getaffinity(0))
        self._running: list[tuple[int, int]] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process, pipe in self._running:
            os.close(pipe)
            os.kill(process, 9)
            os.waitpid(process, 0)
        self._running.clear()

    def slices(self, items: Sequence[A]) -> list[Sequence[A]]:
        """The items in parts of about one size, in order: a multiple of `count` of them."""
        if self.count == 1 or len(items) < SMALL:
            size = SLICE
        else:
            rounds = -(-len(items) // (SLICE * self.count))
            size = -(-len(items) // (rounds * self.count))
        return [items[at : at + size] for at in range(0, len(items), size)]

    def map(self, function: Callable[[A], B], parts: Sequence[A]) -> Iterator[B]:
        """The results, in the order of the parts; what a process raises is raised here."""
        if self.count == 1 or len(parts) == 1:
            yield from map(function, parts)
            return
        self._running = [self._fork(function, part) for part in parts]
        while self._running:
            process, pipe = self._running[0]
            with os.fdopen(pipe, "rb", closefd=True) as stream:
                data = stream.read()
            self._running.pop(0)
            os.waitpid(process, 0)
            if not data:
                raise MemoryError("a worker process ended without a word")
            result = pickle.loads(data)  # noqa: S301 - written by our own fork
            if isinstance(result, BaseException):
                raise result
            yield result

    def _fork(self, function: Callable[[A], B], part: A) -> tuple[int, int]:
        reading, writing = os.pipe()
        process = os.fork()
        if process:
            os.close(writing)
            return process, reading
        try:
            os.close(reading)
            try:
                data = pickle.dumps(function(part))
            except BaseException as error:
                data = pickle.dumps(error)
            with os.fdopen(writing, "wb") as stream:
                stream.write(data)
        finally:
            os._exit(0)
