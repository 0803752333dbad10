"""Locations: the separate parts of a state that action instances read or write.

A location is a variable or, if instances name elements of a map by their arguments, one element of it:
`log'[b]` with `b` a parameter touches one element of `log`.  The effect of an instance depends only on what
it reads, and many states agree in that, so it can be computed once for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from specchk.ir.nodes import Apply, Assign, Const, Expr, Local, Value, Var
from specchk.ir.ops import Op
from specchk.ir.program import Action, Program
from specchk.ir.types import Map, has_horizon
from specchk.ir.verify import parts
from specchk.ir.walk import assignments, roots_of, statements
from specchk.meaning.values import State, positions


class Location(NamedTuple):
    """A variable, by position, or its element at a position."""

    slot: int
    element: int | None = None


class Touched(NamedTuple):
    """The locations of an instance, by number, ascending.

    `read`: those whose values determine its effect; the others it assigns, or leaves unchanged.
    """

    all: tuple[int, ...]
    read: tuple[int, ...]


class Locations:
    """The locations of a program's states, in order; `of` lists those of each action's instances."""

    def __init__(self, program: Program, instances: Sequence[Sequence[tuple[Value, ...]]]) -> None:
        pairs = zip(program.actions, instances, strict=True)
        found = [[(_read(act, args), _written(act, args)) for args in all_] for act, all_ in pairs]
        all_of = {
            location for of_action in found for of_one in of_action for location in set().union(*of_one)
        }
        split = {location.slot for location in all_of if location.element is not None}
        self._parts: list[int | None] = []  # of each variable how many elements are locations, if any are
        self._numbers: list[range] = []  # of each variable its locations
        count = 0
        for slot, variable in enumerate(program.variables):
            kind = variable.type
            size = len(positions(kind.key)) if slot in split and isinstance(kind, Map) else None
            self._parts.append(size)
            self._numbers.append(range(count, count + (1 if size is None else size)))
            count = self._numbers[-1].stop
        self.count = count
        self.of = [
            [Touched(self._by_number(reads | writes), self._by_number(reads)) for reads, writes in of_action]
            for of_action in found
        ]

    def _by_number(self, touched: set[Location]) -> tuple[int, ...]:
        numbers: set[int] = set()
        for slot, element in touched:
            own = self._numbers[slot]
            numbers.update(own if element is None else (own[element],))
        return tuple(sorted(numbers))

    def values(self, state: State) -> list[Any]:
        """The values of a state, location by location."""
        values: list[Any] = []
        for value, size in zip(state, self._parts, strict=True):
            if size is None:
                values.append(value)
            else:
                assert isinstance(value, tuple | None)
                values.extend([None] * size if value is None else value)
        return values

    def state(self, values: Sequence[Any]) -> State:
        """The state with these values."""
        variables: list[Any] = []
        for own, size in zip(self._numbers, self._parts, strict=True):
            variables.append(values[own.start] if size is None else tuple(values[own.start : own.stop]))
        return tuple(variables)

    def narrow(self, numbers: Iterable[int], values: Iterable[Any]) -> State:
        """A state in which some locations have values, and all others are undefined."""
        all_: list[Any] = [None] * self.count
        for number, value in zip(numbers, values, strict=True):
            all_[number] = value
        return self.state(all_)


def _read(action: Action, args: Sequence[Value]) -> set[Location]:
    """The locations that an instance reads, partly or as a whole."""
    found: set[Location] = set()
    left = [root for stmt in statements(action.body) for root in roots_of(stmt)]
    while left:
        node = left.pop()
        match node:
            case Apply(op=Op.MAP_GET, args=(Var(primed=False) as var, key)):
                found.add(Location(var.slot, _element(var.type, key, args)))
                # A key that is computed may read other variables.
                left.append(key)
            case Var():
                found.add(Location(node.slot))
            case _:
                left.extend(parts(node))
    for stmt in assignments(action.body):
        place = _place(stmt, args)
        # The other parts of a partly written variable are copied to the state after, unchanged.
        if len(stmt.path) > (place.element is not None):
            found.add(place)
    return found


def _written(action: Action, args: Sequence[Value]) -> set[Location]:
    return {_place(stmt, args) for stmt in assignments(action.body)}


def _place(stmt: Assign, args: Sequence[Value]) -> Location:
    """The location to which, or to a part of which, an assignment writes."""
    if not stmt.path:
        return Location(stmt.slot)
    step = stmt.path[0]
    return Location(stmt.slot, _element(step.container, step.key, args))


def _element(kind: object, key: Expr | None, args: Sequence[Value]) -> int | None:
    """The position of a key determined by the arguments, in a map that has it."""
    if not isinstance(kind, Map) or has_horizon(kind.key):
        return None
    # The parameters are the first locals, and no statement binds one again.
    if isinstance(key, Local) and key.slot < len(args):
        return positions(kind.key).get(args[key.slot])
    return positions(kind.key).get(key.value) if isinstance(key, Const) else None
