"""The states of a certificate's parts as formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
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
from specchk.symbolic.induction.encode.trees import (
    BagOf,
    CannotEncode,
    Opt,
    SeqOf,
    SetOf,
    Tagged,
    Tree,
    expanded,
)

Member = Callable[[Sequence[Tree]], Truth]
Pairs = list[tuple[Any, Any]]  # places of a part, and the numbers of a state there
MAX_KEYS = 256  # control parts that a state after a step is looked for in; beyond, in all


@dataclass(frozen=True, slots=True)
class PartGroup:
    """All parts of one control part: its state with a Z3 number for each place, and what holds of them."""

    label: str
    trees: tuple[Tree, ...]
    fact: Truth


class CertifiedStates:
    """The states of some parts; `MalformedCertificate` where a part is no state of the program."""

    def __init__(self, program: Program, parts: Sequence[CertifiedPart]) -> None:
        self.program = program
        kinds = [variable.type for variable in program.variables]
        self._fixed = [slot for slot, kind in enumerate(kinds) if not has_horizon(kind)]
        # One tree for each value of a variable, with its places: control parts that agree on it share it.
        self._trees: dict[tuple[int, Any], tuple[Tree, list[Any]]] = {}
        self._constraints: dict[Any, Truth] = {}
        self._values: dict[tuple[int, int], Any] = {}  # of a variable, by the identity of such a tree
        regions: dict[tuple[Any, ...], list[tuple[Constraint, ...]]] = {}
        for part in parts:
            regions.setdefault(part.state, []).append(part.constraints)
        self.groups: list[PartGroup] = []
        self._by_key: dict[tuple[Any, ...], list[PartGroup]] = {}
        for state, some in regions.items():
            group = self._group(state, some)
            self.groups.append(group)
            self._by_key.setdefault(tuple([state[slot] for slot in self._fixed]), []).append(group)

    def _group(self, state: tuple[Any, ...], regions: Sequence[tuple[Constraint, ...]]) -> PartGroup:
        if len(state) != len(self.program.variables):
            size = len(self.program.variables)
            raise MalformedCertificate(f"a state has {len(state)} variables, the spec {size}")
        rows = [self._tree(slot, value) for slot, value in enumerate(state)]
        places = [place for _, some in rows for place in some]
        fact = disj([conj([self._at_most(one, places) for one in region]) for region in regions])
        return PartGroup(f"control part {len(self.groups) + 1}", tuple([tree for tree, _ in rows]), fact)

    def _tree(self, slot: int, value: Any) -> tuple[Tree, list[Any]]:
        known = self._trees.get((slot, value))
        if known is None:
            variable, places = self.program.variables[slot], list[Any]()
            known = self._trees[slot, value] = _tree(value, variable.type, places, variable.name), places
            self._values[slot, id(known[0])] = value
        return known

    def _at_most(self, constraint: Constraint, places: Sequence[Any]) -> Truth:
        terms, bound = constraint
        # Each operation of Z3's Python takes long, and control parts have many constraints in common.
        key = _keyed(terms, places), bound
        if key not in self._constraints:
            total = _sum(terms, places)
            self._constraints[key] = total <= bound if terms else bool(total <= bound)
        return self._constraints[key]

    def member(self, trees: Sequence[Tree]) -> Truth:
        """Whether a state is among them."""
        # A tree of a part has one shape: where a state has it, others with another tree there are no match.
        known = [(slot, tree) for slot, tree in enumerate(trees) if (slot, id(tree)) in self._values]
        return disj([_in_group(group, trees) for group in self._candidates(trees)
                     if all(group.trees[slot] is tree for slot, tree in known)])  # fmt: skip

    def _candidates(self, trees: Sequence[Tree]) -> Iterator[PartGroup]:
        listed = [self._listed(slot, trees[slot]) for slot in self._fixed]
        if prod(len(values) if values is not None else MAX_KEYS + 1 for values in listed) > MAX_KEYS:
            yield from self.groups
            return
        for key in dict.fromkeys(product(*[values or () for values in listed])):
            yield from self._by_key.get(key, ())

    def _listed(self, slot: int, tree: Tree) -> list[Any] | None:
        """The values that a tree may have, if they are few."""
        if (slot, id(tree)) in self._values:
            return [self._values[slot, id(tree)]]
        values = expanded(tree, MAX_KEYS)
        return None if values is None else [value for value, guard in values if guard is not False]


def _in_group(group: PartGroup, trees: Sequence[Tree]) -> Truth:
    pairs: Pairs = []
    alike = _all_match(trees, group.trees, pairs)
    if alike is False:
        return False
    if isinstance(group.fact, bool) or not pairs:
        return both(alike, group.fact)
    # All places at once: one place's number may have another place in it.
    return both(alike, z3.substitute(group.fact, *pairs))


def _all_match(trees: Sequence[Tree], own: Sequence[Tree], pairs: Pairs) -> Truth:
    truths: list[Truth] = []
    for one, other in zip(trees, own, strict=True):
        truths.append(_matches(one, other, pairs))
        if truths[-1] is False:
            return False
    return conj(truths)


def _matches(tree: Tree, own: Tree, pairs: Pairs) -> Truth:
    """Whether a tree has the shape of a part's tree; pairs its numbers with the places there."""
    if tree is own:
        return True
    match own:
        case z3.ExprRef():
            pairs.append((own, term(tree)))
            return True
        case tuple():
            return _all_match(tree, own, pairs)
        case Opt():
            if own.present is False or tree.present is False:
                return both(negation(own.present), negation(tree.present))
            return both(tree.present, _matches(tree.item, own.item, pairs))
        case Tagged():
            record = tree.records[own.tag]
            if record is None:
                return False
            return both(equal_numbers(tree.tag, own.tag), _matches(record, own.records[own.tag], pairs))
        case SeqOf():
            if len(own.slots) > len(tree.slots):
                return False
            inside = _all_match(tree.slots[: len(own.slots)], own.slots, pairs)
            return both(equal_numbers(tree.length, own.length), inside)
    return equal(tree, own)


def _keyed(terms: Terms, places: Sequence[Any]) -> tuple[Any, ...]:
    """Terms with the identities of their places."""
    keys = [id(_place(p, places)) if isinstance(p, int) else (_keyed(p[0], places), *p[1:]) for p, _ in terms]
    return tuple(zip(keys, [times for _, times in terms], strict=True))


def _sum(terms: Terms, places: Sequence[Any]) -> Any:
    # For divisors above 0 Z3 rounds down, too.
    parts = [
        times * (_place(p, places) if isinstance(p, int) else (_sum(p[0], places) + p[1]) / z3.IntVal(p[2]))
        for p, times in terms
    ]
    return z3.Sum(parts)


def _place(number: int, places: Sequence[Any]) -> Any:
    if not 0 < number <= len(places):
        raise MalformedCertificate(f"a constraint is on offset {number} of {len(places)}")
    return places[number - 1]


def _tree(value: Any, kind: Type, places: list[Any], name: str) -> Tree:
    """A part's value as a tree, a new number for each place; `MalformedCertificate` if it is no value."""
    match kind:
        case Int() if kind.horizon:
            if value is None:
                places.append(z3.Int(f"{name}.{len(places) + 1}"))
                return places[-1]
        case Bool() if isinstance(value, int) and value in (0, 1):
            return bool(value)
        case Int() if _is_number(value) and kind.low <= value <= kind.high:
            return value
        case Enum() | Sort() if _is_number(value) and 0 <= value < len(kind.members):
            return value
        case Union() if _is_pair(value) and 0 <= value[0] < len(kind.variants):
            records: list[Tree] = [None] * len(kind.variants)
            records[value[0]] = _tree(value[1], kind.variants[value[0]][1], places, name)
            return Tagged(value[0], tuple(records))
        case Set() | Bag() if has_horizon(kind):
            raise CannotEncode("offsets are kept in a set or a bag")
    kinds = _kinds(value, kind) if isinstance(value, tuple) else None
    if kinds is None or len(kinds) != len(value):
        raise MalformedCertificate("a state has a value that is not of its variable's type")
    trees = tuple([_tree(part, inner, places, name) for part, inner in zip(value, kinds, strict=True)])
    match kind:
        case Option():
            return Opt(True, trees[0]) if trees else Opt(False, None)
        case Set():
            return SetOf(tuple([(tree, True) for tree in trees]), listed=True)
        case Bag():
            return BagOf(tuple([(tree, True) for tree in trees]))
        case Seq():
            return SeqOf(len(trees), trees)
    return trees


def _kinds(value: tuple[Any, ...], kind: Type) -> Sequence[Type] | None:
    """The types of the parts of a value, if there can be as many."""
    match kind:
        case Record():
            return [part for _, part in kind.fields]
        case Map():
            return [kind.value] * cardinality(kind.key)
        case Option():
            return [kind.item] * min(len(value), 1)
        case Seq() | Bag():
            return [kind.item] * min(len(value), kind.limit)
        case Set() if all(a < b for a, b in pairwise(value)):
            return [kind.item] * len(value)
    return None


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and _is_number(value[0])


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
