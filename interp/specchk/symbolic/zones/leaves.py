"""The leaves of decision trees: the result of a run, and its effect on coverage.

    Idle              an instance does nothing: a guard is false
    Effect            a step of an instance
    PredicateValue    the answer to a `Question`: of a property in a state, or in a step

Not here: the runs (`controls`).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from specchk.ir.footprint import read_by
from specchk.ir.program import Property
from specchk.meaning.moves import Test
from specchk.meaning.paths import START, Matrix
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.symbolic.recording.trees import Classes, Tree
from specchk.symbolic.zones.concrete import Taken
from specchk.symbolic.zones.precision import Abstraction
from specchk.symbolic.zones.zones import Zone

Checks = list[tuple["Question", Tree]]  # properties, each with its tree
Delta = tuple[tuple[int, int], ...]  # what a run adds to the count of which coverage points


class Question(Struct, frozen=True):
    """A property of states: its kind of finding, the answer that is a finding, and its trees' code."""

    kind: str
    name: str
    wanted: bool
    test: Test
    slots: tuple[int, ...]  # the positions of the variables that it reads, in order

    @property
    def last(self) -> str:
        """The last finding of the question, after which nothing is left to find."""
        # A witness is evaluated in every state: being undefined there is a violation, reached or not.
        return f"{'undefined' if self.kind == 'reached' else self.kind} {self.name}"


def question_of(prop: Property, test: Test) -> Question:
    """The question of a property."""
    is_witness = prop.kind == "reachable"
    slots = tuple(sorted(read_by(prop)))
    return Question("reached" if is_witness else prop.kind, prop.name, is_witness, test, slots)


class _Reached(Struct, kw_only=True):
    """The number of zones that reach a leaf, and its number among the leaves of compiled trees."""

    hits: int = 0
    number: int = -1


class Leaf(_Reached):
    """The result of a run: `delta` and `cuts` are its counts."""

    delta: Delta
    cuts: int


class Idle(Leaf):
    """Nothing was done, because a guard is false."""


class PredicateValue(Leaf):
    """The value of a predicate, or the reason why it is undefined; `name` is then that of a constraint."""

    value: bool | Undefined
    name: str = ""


class Effect(Leaf):
    """A step: the offsets after it, as symbols of the state before and distances from them.

    `images` are those of its renamings that may be the least: all have one shape.  `after` is None if the
    step is undefined.
    """

    taken: Taken
    after: State | None
    images: tuple[tuple[tuple[int, int], ...], ...]
    known: Matrix = START  # of the symbols after the step: which are defined, and how
    still: Idle | None = None
    steps: Checks = []
    inside: Tree | None = None
    outside: Checks = []
    code: Any = None  # of its images, and the plan of its steps' trees (`compiled`)
    plan: Any = None

    def zone(self, classes: Classes, rows: Matrix, abstraction: Abstraction) -> Zone:
        """The zone after the step, given the facts known about the symbols."""
        shape = self.taken.shape
        assert shape is not None
        first, *others = [[(classes[s][0], classes[s][1] + d) for s, d in image] for image in self.images]
        zone = abstraction.zone(shape, first, rows)
        for other in others:
            # Several renamings may have the least shape; which of them is least depends on the offsets,
            # hence on the zone.
            zone = min(zone, abstraction.zone(shape, other, rows), key=_order)
        return zone


def _order(zone: Zone) -> tuple[Any, Any]:
    return zone.classes, zone.bounds
