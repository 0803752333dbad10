"""The interface between an implementation and its accepted behaviour: runs, and their outputs.

    class Mine(Behaviours):
        name = "my log"

        def runs(self):
            return {"two writers": two_writers}

    def two_writers(watch: RunWatch) -> None:
        log = Log(Files(watch))                       # which notes each write, in its order
        watch.step("writer 1 appends")
        watch.note("writer 1", "answer", offset=log.append(b"x"))

A run drives the implementation through its public surface, in a way that its own outputs decide alone: no
clock, no chance without a seed, no path, no process id.  It notes what leaves the implementation (messages,
answers, timers, changes of files and their order, errors) and nothing that stays inside, so that another
data structure is the same behaviour.  The implementation may be anything that can be driven so, a process
behind an adapter included.

Invariants: values that are noted never change afterwards; `behaviour.texts` has a text for each of them.  Not
here: what becomes of the notes (`conform.behaviour`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from msgspec import Struct, field


class Observation(NamedTuple):
    """An output of the implementation: its place, its kind, and its fields."""

    at: str
    kind: str
    fields: Mapping[str, Any]


class ObservedStep(Struct):
    """An event given to the implementation, and its outputs until the next event.

    `about` describes the event, for a reader: it is not compared, since it follows from earlier observations.
    """

    about: object
    seen: list[Observation] = field(default_factory=list)


class RunWatch:
    """The observer of one run."""

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps = [ObservedStep("the start")]

    def step(self, about: object) -> None:
        """Begin a step; `about` is rendered by `str`, only if it is shown."""
        self.steps.append(ObservedStep(about))

    def note(self, at: str, kind: str, /, **fields: Any) -> None:
        """Note an observation in the current step."""
        self.steps[-1].seen.append(Observation(at, kind, fields))


Run = Callable[[RunWatch], None]


class Behaviours:
    """The base of all behaviours; `name` is the name of the implementation in reports."""

    name: ClassVar[str] = "the implementation"

    def runs(self) -> Mapping[str, Run]:
        """Return the runs by name, in the order of their reports; each can be run alone."""
        raise NotImplementedError("behaviours need a method `runs`")
