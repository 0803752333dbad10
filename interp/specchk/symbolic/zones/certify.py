"""The zones of a fixpoint as the parts of a certificate, and certificates as lines of a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

from specchk.meaning.linear import Form, Terms, added, symbol
from specchk.symbolic.certificates.format import SCHEMA, Certificate, CertifiedPart
from specchk.symbolic.zones.precision import ShapePredicates
from specchk.symbolic.zones.zones import OPEN, Zone, own_bounds

T = TypeVar("T")


def part_of(zone: Zone, predicates: ShapePredicates) -> CertifiedPart:
    """A zone's states; its further places are forms of the offsets."""
    size = len(zone.classes) - predicates.size
    places = [*[symbol(number) for number in range(1, size + 1)], *predicates.forms()]
    rows = [(terms, bound - plus) for (terms, plus), bound in _bounded(zone, places) if terms]
    return CertifiedPart(_opened(zone.shape), tuple(dict.fromkeys(rows)))


def _opened(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple([_opened(part) for part in value])
    return None if value == OPEN else value


def _bounded(zone: Zone, places: Sequence[Form]) -> Iterator[tuple[Form, int]]:
    """Forms and their greatest values, from which all others of the zone's matrix follow."""
    first: dict[int, Form] = {0: symbol(0)}  # each class by its first place
    for place, (number, plus) in zip(places, zone.classes, strict=True):
        own = added(place, ((), -plus))
        if number in first:
            yield added(own, first[number], -1), 0
            yield added(first[number], own, -1), 0
        first.setdefault(number, own)
    for i, j, bound in own_bounds(zone.bounds):
        yield added(first[i], first[j], -1), bound


def written(certificate: Certificate) -> Iterator[str]:
    """The lines of a certificate's file."""
    yield json.dumps({
        "schema": SCHEMA, "kind": "zones" if certificate.invariants is None else "invariants",
        "spec": certificate.spec, "model": certificate.model, "constants": dict(certificate.constants),
        "properties": certificate.properties, "invariants": certificate.invariants,
        "lemmas": dict(certificate.lemmas), "parts": len(certificate.parts),
    })  # fmt: skip
    line = json.JSONEncoder(separators=(",", ":")).encode
    if certificate.parts:
        values = [_numbered(some) for some in zip(*[part.state for part in certificate.parts], strict=True)]
        constraints = _numbered([row for part in certificate.parts for row in part.constraints])
        yield line({"values": [[*some] for some in values],
                    "constraints": [[_terms(terms), most] for terms, most in constraints]})  # fmt: skip
        for state, some in groupby(certificate.parts, lambda part: part.state):
            parts = [[constraints[row] for row in part.constraints] for part in some]
            numbers = [table[value] for table, value in zip(values, state, strict=True)]
            yield line({"state": numbers, "parts": parts})


def _numbered(items: Iterable[T]) -> dict[T, int]:
    """Items with their positions in the list of distinct items."""
    return {item: number for number, item in enumerate(dict.fromkeys(items))}


def _terms(terms: Terms) -> list[Any]:
    return [[p if isinstance(p, int) else ["//", _terms(p[0]), p[1], p[2]], times] for p, times in terms]
