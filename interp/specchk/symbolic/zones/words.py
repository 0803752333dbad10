"""Path conditions in terms of the spec: the constraints of a zone on the offsets in its states.

Of offsets that are equal, or known numbers apart, the first one represents all; of the order of the others,
only those constraints are given that the rest does not imply.  Sums are given if they are less free than
their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

from specchk.ir.program import Program
from specchk.ir.types import Bag, Int, Map, Option, Record, Seq, Set, Type, Union, has_horizon
from specchk.meaning.linear import Form, Part, Quotient, Terms, substituted, symbol, symbols
from specchk.meaning.open_numbers import Term
from specchk.meaning.paths import FREE, Matrix, definitions, ends_of
from specchk.meaning.values import show, universe
from specchk.symbolic.zones.zones import Shape, Zone, own_bounds

Namer = Callable[[str, Any], Iterable[str]]


def places(program: Program, shape: Shape) -> list[str]:
    """The names of the offsets of a shape, in the order of its open places."""
    pairs = zip(program.variables, shape, strict=True)
    return [name for variable, part in pairs for name in _namer(variable.type)(variable.name, part)]


def condition(program: Program, zone: Zone) -> tuple[str, ...]:
    """The constraints of a zone, one line each; none on offsets that are 0."""
    names = ["", *places(program, zone.shape)]
    first: dict[int, tuple[str, int]] = {0: ("", 0)}
    equalities = []
    for name, (number, plus) in zip(names[1:], zone.classes, strict=True):
        if number not in first:
            first[number] = (name, plus)
        elif number or plus:
            other, less = first[number]
            equalities.append(f"{name} == {_sum(other, plus - less)}")
    return (*equalities, *_order(zone, first))


def sums(program: Program, split: tuple[Shape, Sequence[Any]], rows: Matrix) -> tuple[str, ...]:
    """The constraints on sums of the offsets of a split state of terms, over a matrix."""
    shape, offsets = split
    names = places(program, shape)
    place: dict[int, Form] = {0: symbol(0)}
    for number, offset in enumerate(offsets, 1):
        if isinstance(offset, Term):
            place.setdefault(offset.symbol, symbol(number, -offset.plus))
    lines = []
    for terms, number, plus in definitions(rows):
        if place.keys() >= symbols(terms):
            form, more = substituted((terms, 0), place.__getitem__)
            low, high = ends_of(rows, terms)
            most, least = rows[number][0] + plus - more, plus - rows[0][number] - more
            if most == least:
                lines.append(_compared(names, form, "==", most))
                continue
            # Bounds that the parts imply are left out.  Above half of `FREE`, a bound is a free one plus
            # more.
            if most < FREE >> 1 and (high is None or most + more < high):
                lines.append(_compared(names, form, "<=", most))
            if least > -FREE >> 1 and (low is None or least + more > low):
                lines.append(_compared(names, form, ">=", least))
    return tuple(dict.fromkeys(lines))


def _compared(names: Sequence[str], terms: Terms, order: str, bound: int) -> str:
    """The text `terms order bound`, with each term on the side where its coefficient is positive."""
    left = [_times(names, part, times) for part, times in terms if times > 0]
    right = [_times(names, part, -times) for part, times in terms if times < 0]
    right += [str(bound)] if bound > 0 or (not right and bound == 0) else []
    left += [str(-bound)] if bound < 0 and left and right else []
    if bound < 0 and not right:
        right = [str(bound)]
    return f"{' + '.join(left) or '0'} {order} {' + '.join(right) or '0'}"


def _times(names: Sequence[str], part: Part, times: int) -> str:
    name = names[part - 1] if isinstance(part, int) else _quotient(names, part)
    return name if times == 1 else f"{times}*{name}"


def _quotient(names: Sequence[str], part: Quotient) -> str:
    terms, plus, divisor = part
    inner = " + ".join([*[_times(names, one, times) for one, times in terms], *([str(plus)] if plus else [])])
    return f"({inner}) // {divisor}" if len(terms) > 1 or plus else f"{inner} // {divisor}"


def _order(zone: Zone, first: dict[int, tuple[str, int]]) -> Iterator[str]:
    for i, j, bound in own_bounds(zone.bounds):
        if i == 0 and bound == 0:  # no offset is below 0
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


@cache
def _namer(kind: Type) -> Namer:
    """The names of the offsets in values of a type, in the order of their open places."""
    if not has_horizon(kind):
        return lambda name, shape: ()
    match kind:
        case Int():
            return lambda name, shape: (name,)
        case Option():
            return _each([""], _namer(kind.item))
        case Set() | Seq() | Bag():
            item = _namer(kind.item)
            return lambda name, shape: chain.from_iterable(
                [item(f"{name}[{index}]", part) for index, part in enumerate(shape)]
            )
        case Map():
            return _each(
                [f"[{show(key, kind.key)}]" for key in sorted(universe(kind.key))], _namer(kind.value)
            )
        case Record():
            fields = [(f".{field}", _namer(item)) for field, item in kind.fields]
            return lambda name, shape: chain.from_iterable(
                [of(name + field, part) for (field, of), part in zip(fields, shape, strict=True)]
            )
        case Union():
            records = [_namer(record) for _, record in kind.variants]
            return lambda name, shape: records[shape[0]](name, shape[1])
    return lambda name, shape: ()


def _each(suffixes: Sequence[str], item: Namer) -> Namer:
    """The names in the parts of a value, at most one for each suffix."""
    return lambda name, shape: chain.from_iterable(
        [item(name + suffix, part) for suffix, part in zip(suffixes, shape, strict=False)]
    )
