"""The steps of action instances, with their classes, in states represented by numbers.

The paths of an instance are traced once for the values it reads, and its classes computed once for all that
it touches (`by_location`): in a state only the edges are left to be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, field

from specchk.conform.covers.by_location import KEPT, ByLocation, Numbers, changed, picked
from specchk.conform.covers.classes import Classifier, Key
from specchk.conform.covers.locations import Touched
from specchk.ir.nodes import Value
from specchk.meaning.deadlock import OpenInstances
from specchk.meaning.tracing import Marks
from specchk.meaning.values import State

T = TypeVar("T")
Changes = tuple[tuple[int, int], ...]  # locations, each with the number of its new value

# Enough for `cover` to choose among; all of them would be the whole graph.
CANDIDATES = 16  # examples kept of each class


class Kinds(Struct):
    """Numbers for classes in order of first occurrence, each with its first examples."""

    keys: list[Any] = field(default_factory=list)
    examples: list[list[Any]] = field(default_factory=list)
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    def number(self, key: Hashable) -> int:
        """The number of a class."""
        number = self._numbers.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
            self.examples.append([])
        return number

    def note(self, number: int, example: object) -> bool:
        """Keep an example, if the class has few; returns whether it would keep another one."""
        # States come by distance, so the first examples are the nearest.
        if len(self.examples[number]) < CANDIDATES:
            self.examples[number].append(example)
        return len(self.examples[number]) < CANDIDATES


class Drawn(NamedTuple):
    """An edge of an instance: its changes and its classes.

    `choice` is the position of the state after it among the instance's successors, ascending.
    """

    choice: int
    changes: Changes
    classes: tuple[int, ...]


class InstanceSteps(Struct):
    """The steps of an instance of an action for some values of its locations.

    `ways` has the class of each way to an edge, with the edge's position, and `refusal` the class of its
    being refused; `is_open` while some class of them keeps more examples.
    """

    action: int
    args: tuple[Value, ...]
    edges: tuple[Drawn, ...]
    ways: tuple[tuple[int, int], ...] = ()
    refusal: int | None = None
    is_open: bool = True


class ClassifiedStep(NamedTuple):
    """A step of an instance to a state, with the keys of its classes; `choice` as in `Drawn`."""

    action: int
    args: tuple[Value, ...]
    choice: int
    after: State
    classes: tuple[Key, ...]


AllSteps = list[InstanceSteps | None]  # of each instance in a state; None where it is undefined


class _Traced(Struct, frozen=True, eq=False):
    """An instance for some values that it reads: the numbers written by each of its paths.

    Which of them are changes, and of which class, also depends on the old values of locations written
    and not read.  `refused` are its steps if it has no path.
    """

    ways: tuple[tuple[dict[int, int], Marks], ...]
    refused: InstanceSteps | None


class Instances:
    """The instances of a program, in order; `classes` and `refusals` have those found so far."""

    def __init__(self, classifier: Classifier) -> None:
        self.classes = Kinds()
        self.refusals = Kinds()
        self.classifier = classifier
        self._open = OpenInstances(classifier.program)
        self._effect = lru_cache(KEPT)(self._effect_of)
        self._by = ByLocation(classifier.program, classifier.tracer.every, attrgetter("all"), self._instance)
        self.numbers_of, self.state = self._by.numbers_of, self._by.state

    def steps(self, numbers: Numbers) -> AllSteps:
        """The steps of all instances in a state."""
        return self._by.everywhere(numbers)

    def steps_after(self, before: AllSteps, changes: Changes, numbers: Numbers) -> AllSteps:
        """As `steps`, after an edge with some changes."""
        return self._by.near(before, [location for location, _ in changes], numbers)

    def classified(self, state: State) -> Iterator[ClassifiedStep]:
        """All steps in a state."""
        numbers, keys = self.numbers_of(state), self.classes.keys
        for steps in self.steps(numbers):
            if steps is None:
                continue
            for drawn in steps.edges:
                after = self.state(changed(numbers, drawn.changes))
                classes = tuple([keys[number] for number in drawn.classes])
                yield ClassifiedStep(steps.action, steps.args, drawn.choice, after, classes)

    def _instance(
        self, index: int, args: tuple[Value, ...], touched: Touched
    ) -> Callable[[Numbers], InstanceSteps | None]:
        """The steps of an instance, by the numbers of all its locations."""
        traced_in = lru_cache(KEPT)(partial(self._trace, index, args, touched))
        read = picked(tuple([touched.all.index(location) for location in touched.read]))

        def steps_in(numbers: Numbers) -> InstanceSteps | None:
            traced = traced_in(read(numbers))
            if traced is None or traced.refused is not None:
                return None if traced is None else traced.refused
            return self._drawn(index, args, traced, dict(zip(touched.all, numbers, strict=True)))

        return steps_in

    def _trace(self, index: int, args: tuple[Value, ...], touched: Touched, read: Numbers) -> _Traced | None:
        """An instance for these numbers of the locations that it reads; None if it is undefined there."""
        state = self._by.narrow(touched.read, read)
        looked = self.classifier.tracer.instance(index, args, state)
        if looked is None:
            return None
        if not looked.reached:
            # Beyond a horizon the spec does not determine whether the step is refused.
            beyond = looked.beyond or self._open.may_step(state, index, args)
            refusal = None if beyond else self.refusals.number((index, looked.dead_ends))
            refused = InstanceSteps(index, args, (), refusal=refusal, is_open=refusal is not None)
            return _Traced((), refused)
        ways = []
        for after, marks in looked.reached:
            written = self._by.written(touched, after)
            ways.append(({at: self._by.number(at, value) for at, value in written.items()}, marks))
        return _Traced(tuple(ways), None)

    def _drawn(
        self, index: int, args: tuple[Value, ...], traced: _Traced, old: dict[int, int]
    ) -> InstanceSteps:
        """The edges of an instance, by the numbers of all its locations."""
        ways = [
            (tuple([(at, new) for at, new in written.items() if new != old[at]]), marks)
            for written, marks in traced.ways
        ]
        choices = self._choices(old, dict.fromkeys(changes for changes, _ in ways))
        # One edge may be reached by several ways through the action, each with a class.
        positions = {changes: at for at, changes in enumerate(choices)}
        numbered = []
        classes: list[dict[int, None]] = [{} for _ in choices]
        for changes, marks in ways:
            turned = tuple([(at, old[at], new) for at, new in changes])
            number = self.classes.number((index, marks, self._effect(index, args, turned)))
            classes[positions[changes]][number] = None
            numbered.append((number, positions[changes]))
        pairs = zip(choices.items(), classes, strict=True)
        edges = [Drawn(choice, changes, tuple(found)) for (changes, choice), found in pairs]
        return InstanceSteps(index, args, tuple(edges), tuple(numbered))

    def _choices(self, old: dict[int, int], successors: Iterable[Changes]) -> dict[Changes, int]:
        """The successors, each with its position in the order of states."""
        choices = dict.fromkeys(successors, 0)
        if len(choices) > 1:  # which is rare

            def values(changes: Changes) -> list[Any]:
                after = old | dict(changes)
                return self._by.values(after, after.values())

            choices.update((changes, at) for at, changes in enumerate(sorted(choices, key=values)))
        return choices

    def _effect_of(
        self, index: int, args: tuple[Value, ...], turned: tuple[tuple[int, int, int], ...]
    ) -> tuple[str, ...]:
        """The effect of a step: the changed locations, each with its numbers before and after."""
        locations = tuple([location for location, _, _ in turned])
        before = self._by.narrow(locations, [old for _, old, _ in turned])
        after = self._by.narrow(locations, [new for _, _, new in turned])
        return self.classifier.effect(index, args, before, after)
