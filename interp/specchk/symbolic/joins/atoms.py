"""Comparisons that split hulls, by the names of their offsets, so that they apply to every control part.

    ("acked[1]", "log[b2].ends[0]", -1)      acked[1] - log[b2].ends[0] <= -1

A comparison in one control part applies to all parts that have both offsets: if it distinguishes two cases of
a fetch, it does so before the fetch was sent, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from specchk.ir.program import Program
from specchk.meaning.linear import Terms
from specchk.symbolic.zones.precision import Abstraction, Question
from specchk.symbolic.zones.words import places
from specchk.symbolic.zones.zones import Shape

Atom = tuple[str, str, int]  # names of offsets, "" for the number 0, and a bound of their difference


class PlaceNames(Struct):
    """The names of the places of shapes, in order; place 0 is the number 0."""

    program: Program
    abstraction: Abstraction
    _known: dict[Shape, tuple[str, ...]] = field(default_factory=dict)

    def of(self, shape: Shape) -> tuple[str, ...]:
        """The names of all places of a shape, with its further places last."""
        names = self._known.get(shape)
        if names is None:
            own = ["", *places(self.program, shape)]
            forms = self.abstraction.of(shape).forms()
            names = self._known[shape] = (*own, *[repr((_named(terms, own), plus)) for terms, plus in forms])
        return names

    def atom(self, shape: Shape, question: Question) -> Atom:
        """The atom of a comparison of places of a shape; the same one for its negation."""
        i, j, bound = question
        names = self.of(shape)
        # x - y <= b is false where y - x <= -b - 1.
        return (names[i], names[j], bound) if names[i] < names[j] else (names[j], names[i], -bound - 1)


class SplitAtoms(Struct):
    """Atoms in the order of discovery, and the comparisons of places that they denote."""

    names: PlaceNames
    atoms: Sequence[Atom] = ()
    _known: dict[Shape, tuple[Question, ...]] = field(default_factory=dict)

    def of(self, shape: Shape) -> tuple[Question, ...]:
        """The comparisons of places of a shape."""
        if not self.atoms:
            return ()
        questions = self._known.get(shape)
        if questions is None:
            number = {name: place for place, name in enumerate(self.names.of(shape))}
            questions = self._known[shape] = tuple(
                [(number[a], number[b], bound) for a, b, bound in self.atoms if a in number and b in number]
            )
        return questions


def _named(terms: Terms, names: Sequence[str]) -> list[Any]:
    """Terms with names in place of numbers, in the order of the names."""
    named = [
        (names[part] if isinstance(part, int) else repr((_named(part[0], names), *part[1:])), times)
        for part, times in terms
    ]
    return sorted(named)
