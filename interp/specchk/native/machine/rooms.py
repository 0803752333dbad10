"""Room for the items of a search's sets: the program with that room in its set types, and a first guess.

Sets over few values have a bit for each, whatever they contain.  Others have slots (`native.machine.layout`),
and how many items they will have is not known before the search.  A walk of a few steps gives a guess
(`first_room`); if a set needs more, all findings are dropped, and the search restarts with twice as many
slots, until a state takes too many words: then `layout_of` raises `Unsupported`, as for everything without a
code.

The final room depends on the program and on the levels that are searched, not on threads or time: a level is
whole, or the search ended without an answer, before anything in it counts.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from functools import cache, lru_cache
from inspect import get_annotations
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk.ir.nodes import Const, Node
from specchk.ir.program import Program, Same
from specchk.ir.types import Bag, Map, Option, Record, Room, Seq, Set, Type, Union, cardinality
from specchk.ir.walk import expressions
from specchk.lang.text.source import Span
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Functions, NoAnswer
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State

FIRST_ROOM = Room.of(16)
LEAST_SLOTS = 4
_LEAVES = frozenset((str, int, bool, type(None), Span))  # common values of fields that contain no type
# The same by annotation; most parts of a program have several such fields.
_LEAF_NAMES = frozenset(("str", "int", "bool", "Span", "str | None", "int | None", "Span | None"))
STEPS = 24  # of the walk; the reference stepper takes some 0.02 s for them
MOST_LISTED = 10_000  # successors of a state on the walk; a choice among subsets may have a hundred thousand


def with_room(program: Program, room: Room) -> Program:
    """The program with this much room in its sets; unchanged if each set has a bit for each value."""
    # A set made of two sets may have twice the values of either.
    if 2 * _widest(Same(program)) <= min(room.dense, Room().dense):
        return program
    changed: Program = retyped(program, room)
    return changed


def is_roomy(program: Program) -> bool:
    """Whether some set of a program may need slots."""
    return with_room(program, FIRST_ROOM) is not program


def first_room(program: Program, functions: Functions | None = None) -> Room:
    """The initial room: that needed on a walk that always chooses the states with the most items."""
    if not is_roomy(program):
        return FIRST_ROOM
    most = [_items(state, program) for state in _greedy_walk(program, functions or Functions.of(program))]
    if not most:
        return FIRST_ROOM
    # If the last step still made a set larger, twice as many is only a guess; otherwise a quarter more, for
    # sets that are computed and not stored.
    slots = 2 * most[-1] if len(most) > STEPS and most[-1] > max(most[:-1]) else max(most) * 5 // 4
    return Room.of(max(LEAST_SLOTS, slots))


def _greedy_walk(program: Program, functions: Functions) -> Iterator[State]:
    try:
        states = initial_states(program)
    except Undefined:  # which the search reports
        return
    stepper, properties, seen = functions.stepper, functions.properties, set[State]()
    while states and len(seen) <= STEPS:
        state = max(states, key=lambda s: _items(s, program))
        seen.add(state)
        yield state
        try:
            if not properties.inside(properties.environment(state)):
                return
            successors = stepper.successors(state)
        except (Faulty, NoAnswer):
            return
        if len(successors) > MOST_LISTED:
            return
        states = [after for _, _, after in successors if after not in seen]


def _items(state: State, program: Program) -> int:
    """The maximal number of items in a set of a state that may need slots."""
    return max((_most(v, one.type) for v, one in zip(state, program.variables, strict=True)), default=0)


def _most(value: Any, kind: Type) -> int:
    match kind:
        case Option() | Seq() | Bag():
            parts = [(item, kind.item) for item in value]
        case Set():
            inner = max((_most(item, kind.item) for item in value), default=0)
            return max(inner, len(value) if cardinality(kind.item) > kind.room.dense else 0)
        case Map():
            parts = [(item, kind.value) for item in value]
        case Record():
            parts = [(item, part) for item, (_, part) in zip(value, kind.fields, strict=True)]
        case Union():
            parts = [(value[1], kind.variants[value[0]][1])]
        case _:
            return 0
    return max((_most(item, part) for item, part in parts), default=0)


@lru_cache(maxsize=2)  # a search needs it three times, and the program has tens of thousands of parts
def _widest(same: Same) -> int:
    """The maximal number of values of the item type of a program's sets.

    Of expressions that belong to a part only the outermost are included, by their types.
    """
    # Parts by identity, since the program keeps them: most types are shared, and hashing one walks it.
    values, seen = 0, set[int]()

    def visit(part: Any) -> None:
        nonlocal values
        if id(part) in seen:
            return
        if isinstance(part, tuple):
            for item in part:
                visit(item)
            return
        kind: type = type(part)
        names = _names(kind)
        if not names:
            return
        seen.add(id(part))
        if isinstance(part, Set):
            values = max(values, cardinality(part.item))
        if isinstance(part, Node):
            visit(part.type)
            return
        for name in names:
            inner = getattr(part, name)
            if type(inner) not in _LEAVES:
                visit(inner)

    # A name has its type wherever it is used, too.
    for expr in expressions(same.program):
        visit(expr.type)
    visit(same.program)
    return values


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of a class of program parts that may contain a type."""
    if not issubclass(kind, Struct) or kind is Span:
        return ()
    types = ChainMap(*[get_annotations(base) for base in kind.__mro__])
    return tuple([name for name in kind.__struct_fields__ if types[name] not in _LEAF_NAMES])


@lru_cache(maxsize=4096)
def _set_with(kind: Set, room: Room) -> Set:
    return replace(kind, item=retyped(kind.item, room), room=room)


def retyped(part: Any, room: Room) -> Any:
    """A part of a program, or a type, with this much room in its sets."""
    if isinstance(part, Set):
        return _set_with(part, room)
    if isinstance(part, Const):  # values may be many, and have no types in them
        own = retyped(part.type, room)
        return part if own is part.type else replace(part, type=own)
    if isinstance(part, tuple):
        items = [retyped(item, room) for item in part]
        return tuple(items) if any(a is not b for a, b in zip(items, part, strict=True)) else part
    kind: type = type(part)
    parts = {name: getattr(part, name) for name in _names(kind)}
    changed = {name: retyped(value, room) for name, value in parts.items()}
    other = {name: value for name, value in changed.items() if value is not parts[name]}
    return replace(part, **other) if other else part
