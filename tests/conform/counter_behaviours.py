"""A counter in a file, and its behaviours: small enough for a test to plant a change of each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from specchk.conform.contract.behaviours import Behaviours, Run, RunWatch


@dataclass(frozen=True)
class Answer:
    """The answer to a client."""

    number: int
    is_even: bool


@dataclass(frozen=True)
class Ways:
    """The implementation's functions; a test changes one of them."""

    step: int = 1
    timer_ms: int = 50
    syncs: tuple[str, ...] = ("data", "folder")
    extra_write: bool = False
    content: str = "n={}"
    answer: Callable[[int], Answer] = lambda number: Answer(number, number % 2 == 0)
    error: str = ""


class Counter(Behaviours):
    """A counter; `ways` are its functions."""

    name = "the counter"
    ways = Ways()

    def runs(self) -> Mapping[str, Run]:
        ways = self.ways
        return {
            "short": lambda watch: count(watch, ways, 3),
            "long": lambda watch: count(watch, ways, 900),
        }


def count(watch: RunWatch, ways: Ways, times: int) -> None:
    number = 0
    for turn in range(times):
        watch.step(f"turn {turn}")
        # From the third turn on: a difference has to be found behind steps that are equal.
        now = ways if turn >= 2 else Ways()
        number += now.step
        content = now.content.format(number)
        watch.note("disk", "write", file="count", bytes=len(content), content=content)
        if now.extra_write:
            watch.note("disk", "write", file="log", bytes=1, content="x")
        for what in now.syncs:
            watch.note("disk", "sync", what=what)
        watch.note("counter", "timer", delay_ms=now.timer_ms)
        watch.note("counter", "answer", to="client", answer=now.answer(number))
        if now.error:
            raise OSError(now.error)
