"""The states of a certificate's parts as formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import z3

from specchk.ir.program import Program
from specchk.ir.types import (
    Bag,
    Bool,
    Enum,
    Int,
    Map,
    Option,
    Record,
    Seq,
    Set,
    Sort,
    Type,
    Union,
    cardinality,
    has_horizon,
)
from specchk.meaning.linear import Terms
from specchk.symbolic.certificates.format import CertifiedPart, Constraint, MalformedCertificate
from specchk.symbolic.induction.encode.bools import Truth, both, conj, disj, negation
from specchk.symbolic.induction.encode.merge import equal
from specchk.symbolic.induction.encode.numbers import equal_numbers, term
from specchk.symbolic.induction.encode.trees import CannotEncode, Opt, SeqOf, Tagged, Tree, expanded, lift

Member = Callable[[Sequence[Tree]], Truth]
MAX_KEYS = 256  # control parts that a state after a step is looked for in; beyond, in all


@dataclass(frozen=True, slots=True)
class PartGroup:
    """All parts of one control part: its state with Z3 numbers `x1`, ... , and what holds of them."""

    label: str
    state: tuple[Any, ...]
    trees: tuple[Tree, ...]
    facts: tuple[Truth, ...]
    regions: tuple[tuple[Constraint, ...], ...]


class CertifiedStates:
    """The states of some parts; `MalformedCertificate` where a part is no state of the program."""

    def __init__(self, program: Program, parts: Sequence[CertifiedPart]) -> None:
        self.program = program
        self._kinds = [variable.type for variable in program.variables]
        self._fixed = [slot for slot, kind in enumerate(self._kinds) if not has_horizon(kind)]
        regions: dict[tuple[Any, ...], list[tuple[Constraint, ...]]] = {}
        for part in parts:
            regions.setdefault(part.state, []).append(part.constraints)
        self.groups = [self._group(n, state, tuple(r)) for n, (state, r) in enumerate(regions.items(), 1)]
        self._by_key: dict[tuple[Any, ...], list[PartGroup]] = {}
        for group in self.groups:
            self._by_key.setdefault(tuple([group.state[slot] for slot in self._fixed]), []).append(group)

    def _group(
        self, number: int, state: tuple[Any, ...], regions: tuple[tuple[Constraint, ...], ...]
    ) -> PartGroup:
        if len(state) != len(self._kinds):
            raise MalformedCertificate(f"a state has {len(state)} variables, the spec {len(self._kinds)}")
        places: list[Any] = []
        trees = tuple([_tree(value, kind, places) for value, kind in zip(state, self._kinds, strict=True)])
        facts = _in_regions(regions, places)
        return PartGroup(f"control part {number}", state, trees, (facts,), regions)

    def member(self, trees: Sequence[Tree]) -> Truth:
        """Whether a state is among them."""
        return disj([self._in_group(group, trees) for group in self._candidates(trees)])

    def _candidates(self, trees: Sequence[Tree]) -> Iterator[PartGroup]:
        listed = [expanded(trees[slot], MAX_KEYS) for slot in self._fixed]
        size = 1
        for values in listed:
            size *= len(values) if values is not None else MAX_KEYS + 1
        if size > MAX_KEYS:
            yield from self.groups
            return
        rows = [[value for value, guard in values or () if guard is not False] for values in listed]
        for key in dict.fromkeys(product(*rows)):
            yield from self._by_key.get(key, ())

    def _in_group(self, group: PartGroup, trees: Sequence[Tree]) -> Truth:
        places: list[Any] = []
        alike: Truth = True
        for tree, value, kind in zip(trees, group.state, self._kinds, strict=True):
            alike = both(alike, _matches(tree, value, kind, places))
            if alike is False:
                return False
        return both(alike, _in_regions(group.regions, places))


def _in_regions(regions: Sequence[Sequence[Constraint]], places: Sequence[Any]) -> Truth:
    # What all regions have in common is said once: they are parts of one hull, and mostly alike.
    common = frozenset(regions[0]).intersection(*regions)
    rests = [conj([_at_most(one, places) for one in region if one not in common]) for region in regions]
    return both(conj([_at_most(one, places) for one in regions[0] if one in common]), disj(rests))


def _at_most(constraint: Constraint, places: Sequence[Any]) -> Truth:
    terms, bound = constraint
    total = _sum(terms, places)
    return total <= bound if isinstance(total, z3.ExprRef) else bool(total <= bound)


def _sum(terms: Terms, places: Sequence[Any]) -> Any:
    total: Any = 0
    for part, times in terms:
        if isinstance(part, int):
            if not 0 < part <= len(places):
                raise MalformedCertificate(f"a constraint is on offset {part} of {len(places)}")
            value = places[part - 1]
        else:
            inner = _sum(part[0], places) + part[1]
            # For numbers above 0 both round down.
            value = inner / z3.IntVal(part[2]) if isinstance(inner, z3.ExprRef) else inner // part[2]
        # Terms are few of these, and each operation of Z3's Python takes longer than the rest of this loop.
        total = total + value if times == 1 else total - value if times == -1 else total + times * value
    return total


def _tree(value: Any, kind: Type, places: list[Any]) -> Tree:
    """A part's value of a type as a tree, a new number for each place."""
    if not has_horizon(kind):
        _fits(value, kind)
        return lift(value, kind)
    match kind:
        case Int() if value is None:
            places.append(z3.Int(f"x{len(places) + 1}"))
            return places[-1]
        case Option() if isinstance(value, tuple) and len(value) < 2:
            return Opt(True, _tree(value[0], kind.item, places)) if value else Opt(False, None)
        case Record() if isinstance(value, tuple) and len(value) == len(kind.fields):
            return tuple([_tree(v, part, places) for v, (_, part) in zip(value, kind.fields, strict=True)])
        case Map() if isinstance(value, tuple) and len(value) == cardinality(kind.key):
            return tuple([_tree(v, kind.value, places) for v in value])
        case Union() if _is_variant(value, kind):
            records: list[Tree] = [None] * len(kind.variants)
            records[value[0]] = _tree(value[1], kind.variants[value[0]][1], places)
            return Tagged(value[0], tuple(records))
        case Seq() if isinstance(value, tuple) and len(value) <= kind.limit:
            return SeqOf(len(value), tuple([_tree(v, kind.item, places) for v in value]))
        case Set() | Bag():
            raise CannotEncode("offsets are kept in a set or a bag")
    raise MalformedCertificate("a state has a value that is not of its variable's type")


def _is_variant(value: Any, kind: Union) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and _is_number(value[0])
        and 0 <= value[0] < len(kind.variants)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _fits(value: Any, kind: Type) -> None:
    """Raise `MalformedCertificate` where a value is not of a type."""
    match kind:
        case Bool() if value in (0, 1) and isinstance(value, int):
            return
        case Int() if _is_number(value) and kind.low <= value <= kind.high:
            return
        case Enum() | Sort() if _is_number(value) and 0 <= value < len(kind.members):
            return
        case Record() if isinstance(value, tuple) and len(value) == len(kind.fields):
            for part, (_, inner) in zip(value, kind.fields, strict=True):
                _fits(part, inner)
            return
        case Map() if isinstance(value, tuple) and len(value) == cardinality(kind.key):
            for part in value:
                _fits(part, kind.value)
            return
        case Union() if _is_variant(value, kind):
            _fits(value[1], kind.variants[value[0]][1])
            return
        case Option() if isinstance(value, tuple) and len(value) < 2:
            for part in value:
                _fits(part, kind.item)
            return
        case Set() if isinstance(value, tuple) and all(a < b for a, b in pairwise(value)):
            for part in value:
                _fits(part, kind.item)
            return
        case Seq() | Bag() if isinstance(value, tuple) and len(value) <= kind.limit:
            for part in value:
                _fits(part, kind.item)
            return
    raise MalformedCertificate("a state has a value that is not of its variable's type")


def _matches(tree: Tree, value: Any, kind: Type, places: list[Any]) -> Truth:
    """Whether a tree has the shape of a part's value; its numbers go to `places`."""
    if not has_horizon(kind):
        return equal(tree, lift(value, kind))
    match kind:
        case Int():
            places.append(term(tree))
            return True
        case Option():
            if not value:
                return negation(tree.present)
            return (
                False
                if tree.present is False
                else both(tree.present, _matches(tree.item, value[0], kind.item, places))
            )
        case Record():
            pairs = zip(tree, value, [part for _, part in kind.fields], strict=True)
            return conj([_matches(t, v, part, places) for t, v, part in pairs])
        case Map():
            return conj([_matches(t, v, kind.value, places) for t, v in zip(tree, value, strict=True)])
        case Union():
            record = tree.records[value[0]]
            if record is None:
                return False
            inside = _matches(record, value[1], kind.variants[value[0]][1], places)
            return both(equal_numbers(tree.tag, value[0]), inside)
        case Seq():
            if len(value) > len(tree.slots):
                return False
            items = zip(tree.slots, value, strict=False)
            inside = conj([_matches(t, v, kind.item, places) for t, v in items])
            return both(equal_numbers(tree.length, len(value)), inside)
    raise CannotEncode("offsets are kept in a set or a bag")
