"""Path conditions in the spec's terms: the constraints of a zone on the offsets in its states.

Offsets that are equal, or known numbers apart, are said once, after the first of them; of the order of
the others no more is said than what the rest does not imply.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specchk.ir.program import Program
from specchk.ir.types import Bag, Int, Map, Option, Record, Seq, Set, Type, Union, has_horizon
from specchk.meaning.paths import FREE
from specchk.meaning.values import show, universe
from specchk.symbolic.zones.zones import Zone


def condition(program: Program, zone: Zone) -> tuple[str, ...]:
    """The constraints of a zone, one each; none on offsets that are 0."""
    names = [""]
    for variable, part in zip(program.variables, zone.shape, strict=True):
        names += _places(variable.name, variable.type, part)
    first: dict[int, tuple[str, int]] = {0: ("", 0)}
    said = []
    for name, (number, plus) in zip(names[1:], zone.classes, strict=True):
        if number not in first:
            first[number] = (name, plus)
        elif number or plus:
            other, less = first[number]
            said.append(f"{name} == {_sum(other, plus - less)}")
    return (*said, *_order(zone, first))


def _order(zone: Zone, first: dict[int, tuple[str, int]]) -> Iterator[str]:
    bounds, numbers = zone.bounds, range(len(zone.bounds))
    for i in numbers:
        for j in numbers:
            bound = bounds[i][j]
            if i == j or bound >= FREE or (i == 0 and bound == 0):  # no offset is below 0
                continue
            # Exact, since `classes` has put numbers at a fixed distance together: without cycles of length
            # 0, bounds that follow from two others can all be left out at once (Larsen, Larsson,
            # Pettersson, Yi, 1997).
            if any(k not in (i, j) and bounds[i][k] + bounds[k][j] <= bound for k in numbers):
                continue
            (left, c), (right, d) = first[i], first[j]
            limit = bound + c - d
            if not left:
                yield f"{right} >= {-limit}"
            # Offsets are whole numbers: `a <= b - 1` reads better as `a < b`.
            elif limit < 0 and right:
                yield f"{left} < {_sum(right, limit + 1)}"
            else:
                yield f"{left} <= {_sum(right, limit)}"


def _sum(name: str, plus: int) -> str:
    if not name:
        return str(plus)
    return f"{name} {'+' if plus > 0 else '-'} {abs(plus)}" if plus else name


def _places(name: str, kind: Type, shape: Any) -> Iterator[str]:
    """The names of the offsets in a value, in the order of its open places."""
    if not has_horizon(kind):
        return
    match kind:
        case Int():
            yield name
        case Option():
            for part in shape:
                yield from _places(name, kind.item, part)
        case Set() | Seq() | Bag():
            for index, part in enumerate(shape):
                yield from _places(f"{name}[{index}]", kind.item, part)
        case Map():
            for key, part in zip(sorted(universe(kind.key)), shape, strict=True):
                yield from _places(f"{name}[{show(key, kind.key)}]", kind.value, part)
        case Record():
            for (field, item), part in zip(kind.fields, shape, strict=True):
                yield from _places(f"{name}.{field}", item, part)
        case Union():
            yield from _places(name, kind.variants[shape[0]][1], shape[1])
