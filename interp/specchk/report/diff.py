"""The changes of a step, place by place, and the variables that a report may omit."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from specchk.ir.footprint import read_by
from specchk.ir.nodes import Value
from specchk.ir.program import Program
from specchk.ir.types import Map, Option, Record, Set, Type
from specchk.meaning.values import State, show, universe
from specchk.search.verdict import Trace

WHOLE = 60  # characters; of a set whose change takes more, the items that were added and removed are shown


class VariableChange(Struct, frozen=True):
    """A changed place of the state: `replica_state[r1].hw`, with its text before and after.

    What is there both before and after (`some`) is looked into, under the path of its option.  `items`: of a
    set or a partial map, `+{added} -{removed}`.
    """

    variable: str
    path: str
    before: str
    after: str
    items: str = ""

    def text(self, arrow: str = "->") -> str:
        """The place and its change, in one line."""
        whole = f"{self.path}: {self.before} {arrow} {self.after}"
        return f"{self.path}: {self.items}" if self.items and len(whole) > WHOLE else whole


def changes(program: Program, before: State, after: State) -> list[VariableChange]:
    """All changed places, with the variables in declaration order."""
    changed: list[VariableChange] = []
    for variable, old, new in zip(program.variables, before, after, strict=True):
        places = _inside(variable.type, old, new, variable.name)
        changed += [VariableChange(variable.name, *place) for place in places]
    return changed


def _inside(kind: Type, old: Value, new: Value, path: str) -> Iterator[tuple[str, str, str, str]]:
    if old == new:
        return
    match kind:
        case Map() if isinstance(old, tuple) and isinstance(new, tuple):
            # A map's value is a tuple, in the order of its sorted keys.
            for key, was, now in zip(sorted(universe(kind.key)), old, new, strict=True):
                yield from _inside(kind.value, was, now, f"{path}[{show(key, kind.key)}]")
        case Record(is_tuple=False) if isinstance(old, tuple) and isinstance(new, tuple):
            for (name, item), was, now in zip(kind.fields, old, new, strict=True):
                yield from _inside(item, was, now, f"{path}.{name}")
        # Only where it is looked into: of `some(3)` to `some(4)` the whole is the shorter text.
        case Option(item=Record(is_tuple=False) | Map()) if (
            old and new and isinstance(old, tuple) and isinstance(new, tuple)
        ):
            yield from _inside(kind.item, old[0], new[0], path)
        case Set() if isinstance(old, tuple) and isinstance(new, tuple):
            added, removed = _without(new, old), _without(old, new)
            sides = [f"{sign}{show(items, kind)}" for sign, items in (("+", added), ("-", removed)) if items]
            yield path, show(old, kind), show(new, kind), " ".join(sides)
        case _:
            yield path, show(old, kind), show(new, kind), ""


def _without(items: tuple[Value, ...], others: tuple[Value, ...]) -> tuple[Value, ...]:
    known = frozenset(others)
    return tuple([item for item in items if item not in known])


def parts(program: Program, state: State) -> list[tuple[str, str]]:
    """A whole state, one line for each variable."""
    pairs = zip(program.variables, state, strict=True)
    return [(variable.name, show(value, variable.type)) for variable, value in pairs]


def equations(program: Program, state: State) -> list[str]:
    """As `parts`, each as a text."""
    return [f"{name} = {value}" for name, value in parts(program, state)]


def irrelevant(program: Program, trace: Trace, name: str) -> frozenset[str]:
    """The variables that do not change in the whole trace, and that the property `name` does not read.

    None where no property fails: at a deadlock every variable may be the reason.
    """
    failing = [prop for prop in (*program.invariants, *program.step_invariants) if prop.name == name]
    if not failing:
        return frozenset()
    read = {program.variables[slot].name for prop in failing for slot in read_by(prop)}
    return unchanging(program, trace, read)


def unchanging(program: Program, trace: Trace, kept: Collection[str]) -> frozenset[str]:
    """The variables that do not change in the whole trace, except those in `kept`."""
    return frozenset(
        variable.name
        for slot, variable in enumerate(program.variables)
        if variable.name not in kept and all(state[slot] == trace.initial[slot] for state in trace.states)
    )
