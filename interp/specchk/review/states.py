"""What the states of small models show: variables that never change, values that never occur, idle steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from specchk.compile.instantiate import Instance
from specchk.explore.walk import NoStart, Walker
from specchk.ir.program import Program
from specchk.ir.types import Bool, Enum, Map, Option, Record, Seq, Set, Type
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State

MOST_LISTED = 3000  # states of a model that are listed in Python


class ListedStates(Struct, frozen=True):
    """All states of a model, and the actions with a step that leads back to its own state."""

    program: Program
    states: tuple[State, ...]  # the nearest first
    idle: frozenset[str]


def listed(instance: Instance, most: int = MOST_LISTED) -> ListedStates | None:
    """The states of a model, also beyond a violation; None if they are more, or a step is undefined."""
    try:
        walker = Walker(instance)
        states: dict[State, None] = dict.fromkeys(walker.initial)
        idle: set[str] = set()
        edge = list(states)
        while edge:
            reached: list[State] = []
            for state in edge:
                for step in walker.enabled(state):
                    if step.state == state:
                        idle.add(step.action)
                    elif step.state not in states:
                        states[step.state] = None
                        reached.append(step.state)
                if len(states) > most:
                    return None
            edge = reached
    except (Faulty, NoStart):
        return None
    return ListedStates(instance.program, tuple(states), frozenset(idle))


def unchanged(models: list[ListedStates]) -> list[str]:
    """The variables that have the same value in all states of each model."""
    names = [variable.name for variable in models[0].program.variables] if models else []
    return [
        name for slot, name in enumerate(names)
        if all(len({state[slot] for state in model.states}) == 1 for model in models)
    ]  # fmt: skip


def missing_values(models: list[ListedStates]) -> list[tuple[str, str]]:
    """The variables with the members of their enumerations (also inside maps and so on) that never occur."""
    possible: dict[tuple[str, str], None] = {}
    seen: set[tuple[str, str]] = set()
    for model in models:
        for slot, variable in enumerate(model.program.variables):
            possible |= dict.fromkeys((variable.name, member) for member in _members(variable.type))
            for value in {state[slot] for state in model.states}:
                seen |= {(variable.name, member) for member in _leaves(value, variable.type)}
    return [pair for pair in possible if pair not in seen]


def _members(kind: Type) -> Iterator[str]:
    match kind:
        case Bool():
            yield from ("false", "true")
        case Enum(members=members):
            yield from members
        case Option(item=item) | Set(item=item) | Seq(item=item):
            yield from _members(item)
        case Map(value=value):
            yield from _members(value)
        case Record(fields=fields):
            for _, field in fields:
                yield from _members(field)
        case _:
            pass


def _leaves(value: Any, kind: Type) -> Iterator[str]:
    match kind:
        case Bool():
            yield "true" if value else "false"
        case Enum(members=members):
            yield members[value]
        case Option(item=item) | Set(item=item) | Seq(item=item):
            for inner in value:
                yield from _leaves(inner, item)
        case Map(value=of_value):
            for inner in value:
                yield from _leaves(inner, of_value)
        case Record(fields=fields):
            for inner, (_, field) in zip(value, fields, strict=True):
                yield from _leaves(inner, field)
        case _:
            pass
