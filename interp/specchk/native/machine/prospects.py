"""Prospects of a program on the native engine: sets stored as lists, types without code, and costs.

Cheap: types are read, nothing is emitted.  So this concerns only values; that an operator has no code (all
subsets of a listed set) is known only when a kernel is built, and `run` reports it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from specchk.ir.program import Program
from specchk.ir.types import Set, Type, cardinality, components, same_shape, show
from specchk.ir.walk import searched
from specchk.lang.text.source import Span
from specchk.native.machine.layout import is_enumerated, is_sparse, layout_of, slots_of, width
from specchk.native.machine.rooms import first_room, with_room
from specchk.search.engine import Unsupported

INTERPRETED = "the reference engine runs this model: one thread, some 1 000 states/s"


class Prospect(Struct, frozen=True):
    """A place in the spec, and the special property of its values."""

    span: Span
    text: str

    @property
    def line(self) -> str:
        """The line that `check` prints."""
        return f"{self.span.where}: {self.text}"


def prospects(program: Program) -> list[Prospect]:
    """The sets stored as lists, each shape at its first place; and the first type without a code, if any."""
    roomy = with_room(program, first_room(program))
    listed: dict[Set, Prospect] = {}
    try:
        for kind, span, subject in _places(roomy):
            for part in (part for part in components(kind) if isinstance(part, Set)):
                # Intermediate sets of a change have other ranges than the variable, but the same items.
                if is_sparse(part) and not any(same_shape(part, known) for known in listed):
                    listed[part] = Prospect(span, f"{subject} {_described(part)}")
            width(kind)
        layout_of(roomy)
    except Unsupported as found:
        return [
            *listed.values(),
            Prospect(found.span or span, f"not compiled: {found.reason}; {INTERPRETED}"),
        ]
    return list(listed.values())


def _places(program: Program) -> Iterator[tuple[Type, Span, str]]:
    """Every type of a value, with its place: variables first."""
    for variable in program.variables:
        yield variable.type, variable.span, f"`{variable.name}`"
    for expr in searched(program):
        if isinstance(expr.type, Set) and not is_enumerated(expr):
            yield expr.type, expr.span, "this set"


def _described(kind: Set) -> str:
    return (
        f"lists its items: {width(kind.item)} bits each, at first for {slots_of(kind)} of the "
        f"{_count(kind)} values of {show(kind.item)}"
    )


def _count(kind: Set) -> str:
    size = cardinality(kind.item)
    return f"{size:,}".replace(",", " ") if size < 10**9 else f"2^{size.bit_length() - 1}"
