"""Functions of a program's instances and a state, computed once for the values on which they depend.

A state has one number for the value of each location (`locations`): hashing whole values for each instance
took longer than its steps.  From one state to a near one only the instances that touch a change are looked
up, and all others have what they had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Generic, TypeVar

from specchk.conform.covers.locations import Locations, Touched
from specchk.ir.nodes import Value
from specchk.ir.program import Program
from specchk.meaning.values import State

T = TypeVar("T")
Numbers = tuple[int, ...]
Make = Callable[[int, tuple[Value, ...], Touched], Callable[[Numbers], T]]

KEPT = 1 << 14  # of each instance: near states come soon, and agree in most locations


class _Numbered:
    """Numbers for the values of one location, in order of first occurrence."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The number of a value."""
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class ByLocation(Generic[T]):
    """A function of each instance, in order, and the state; `instances` lists those of each action.

    It depends on the locations of an instance that `chosen` names.  For these `make` gives the function of
    their numbers, for the number of an action, its arguments and what they touch.
    """

    def __init__(
        self, program: Program, instances: Sequence[Sequence[tuple[Value, ...]]],
        chosen: Callable[[Touched], Numbers], make: Make[T],
    ) -> None:  # fmt: skip
        self._locations = Locations(program, instances)
        self._values = [_Numbered() for _ in range(self._locations.count)]
        named = [(index, args) for index, all_ in enumerate(instances) for args in all_]
        touched = [touched for all_ in self._locations.of for touched in all_]
        self._chosen = [chosen(one) for one in touched]
        self._known = [
            _kept(chosen(one), make(*instance, one)) for instance, one in zip(named, touched, strict=True)
        ]
        self._touching = lru_cache(KEPT)(self._touching_any)

    def numbers_of(self, state: State) -> Numbers:
        """The numbers that represent a state."""
        return tuple([self.number(at, value) for at, value in enumerate(self._locations.values(state))])

    def state(self, numbers: Numbers) -> State:
        """The values of a state, from its numbers."""
        return self._locations.state(self.values(range(len(numbers)), numbers))

    def number(self, location: int, value: Any) -> int:
        """The number of a value of a location."""
        return self._values[location].number(value)

    def values(self, locations: Iterable[int], numbers: Iterable[int]) -> list[Any]:
        """The values of some locations, from their numbers."""
        pairs = zip(locations, numbers, strict=True)
        return [self._values[location].values[number] for location, number in pairs]

    def narrow(self, locations: Numbers, numbers: Iterable[int]) -> State:
        """A state in which some locations have values, and all others are undefined."""
        return self._locations.narrow(locations, self.values(locations, numbers))

    def written(self, touched: Touched, after: State) -> dict[int, Any]:
        """The values of a successor of a narrow state, by location."""
        values = self._locations.values(after)
        # A location that is neither read nor written has no value here.
        return {at: values[at] for at in touched.all if values[at] is not None}

    def after(self, state: State, written: Mapping[int, Any]) -> State:
        """A state in which some locations are changed."""
        values = self._locations.values(state)
        for at, value in written.items():
            values[at] = value
        return self._locations.state(values)

    def everywhere(self, numbers: Numbers) -> list[T]:
        """The results for all instances in a state."""
        return [known(numbers) for known in self._known]

    def near(self, before: list[T], changed: Iterable[int], numbers: Numbers) -> list[T]:
        """As `everywhere`, for a state that differs from another one in some locations."""
        every = before.copy()
        for at in self._touching(tuple(changed)):
            every[at] = self._known[at](numbers)
        return every

    def _touching_any(self, locations: Numbers) -> list[int]:
        """The positions of the instances that depend on some locations."""
        changed = set(locations)
        return [at for at, chosen in enumerate(self._chosen) if not changed.isdisjoint(chosen)]


def changed(numbers: Numbers, changes: Iterable[tuple[int, int]]) -> Numbers:
    """The numbers of a state after changes of some locations."""
    after = list(numbers)
    for location, number in changes:
        after[location] = number
    return tuple(after)


def picked(locations: Numbers) -> Callable[[Sequence[int]], Numbers]:
    """A selector of the numbers of some locations from those of a state."""
    # Called for each state and instance; an itemgetter is the fastest, but of one position it makes no tuple.
    if len(locations) > 1:
        return itemgetter(*locations)
    return lambda numbers: tuple([numbers[location] for location in locations])


def _kept(locations: Numbers, known: Callable[[Numbers], T]) -> Callable[[Numbers], T]:
    """A cached function of the numbers of some locations, selected from those of a state."""
    pick, known = picked(locations), lru_cache(KEPT)(known)
    return lambda numbers: known(pick(numbers))
