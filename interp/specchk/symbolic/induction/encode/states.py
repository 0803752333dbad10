"""Open states: fresh trees of a type, the facts about all their values, and values from models.

The upper end of a `nat upto` is dropped here: its numbers are Z3 integers from the lower end on.  Numbers of
a small range are propositions, one for each value.  Items that are hidden by a length or a `none` are free,
so trees are compared only by `encode.merge.equal`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import z3
from msgspec import Struct, field

from specchk.ir import types
from specchk.ir.nodes import Value
from specchk.ir.types import Type, cardinality, has_horizon
from specchk.meaning.values import universe
from specchk.symbolic.induction.encode import trees
from specchk.symbolic.induction.encode.bools import Truth, both, disj, implies
from specchk.symbolic.induction.encode.numbers import Cases, Number, counted, equal_numbers, less, term
from specchk.symbolic.induction.encode.trees import CannotEncode, Tree, lift, tagged

MAX_PROPOSITIONS = 16  # a longer range of numbers is an integer term with two ends
MAX_KEYS = 4096
MAX_SLOTS = 64


def keys(kind: Type) -> list[Value]:
    """All values of a type, ascending; `CannotEncode` if it has offsets or too many values."""
    if has_horizon(kind):
        raise CannotEncode("offsets are unbounded here, so they cannot be listed or be an index")
    if cardinality(kind) > MAX_KEYS:
        raise CannotEncode(f"more than {MAX_KEYS} values to list")
    return sorted(universe(kind))


def default(kind: Type) -> Tree:
    """Some value of a type, for places that no step evaluates."""
    match kind:
        case types.Bool():
            return False
        case types.Int():
            return kind.low
        case types.Enum() | types.Sort():
            return 0
        case types.Record():
            return tuple([default(part) for _, part in kind.fields])
        case types.Map():
            return tuple([default(kind.value) for _ in keys(kind.key)])
        case types.Union():
            return tagged(0, default(kind.variants[0][1]), len(kind.variants))
    return lift((), kind)


class OpenTrees(Struct):
    """Creates open trees; `facts` hold for every value of their types, `offsets` are unbounded.

    `made`: all Z3 constants in the trees.
    """

    facts: list[Any] = field(default_factory=list)
    offsets: list[Any] = field(default_factory=list)
    made: list[Any] = field(default_factory=list)

    def _bool(self, name: str) -> Any:
        self.made.append(z3.Bool(name))
        return self.made[-1]

    def tree(self, kind: Type, name: str) -> Tree:
        """An open value of a type; its names are distinct and start with `name`."""
        match kind:
            case types.Bool():
                return self._bool(name)
            case types.Int() | types.Enum() | types.Sort():
                return self.number(kind, name)
            case types.Option():
                return trees.Opt(self._bool(f"{name}?"), self.tree(kind.item, f"{name}!"))
            case types.Record():
                return tuple([self.tree(part, f"{name}.{field}") for field, part in kind.fields])
            case types.Union():
                tag = self._one_of(range(len(kind.variants)), f"{name}#")
                records = [self.tree(record, f"{name}.{tag}") for tag, record in kind.variants]
                return trees.Tagged(tag, tuple(records))
            case types.Map():
                size = len(keys(kind.key))
                return tuple([self.tree(kind.value, f"{name}[{index}]") for index in range(size)])
            case types.Set():
                items = keys(kind.item)
                # A proposition for each possible item, so that two sets are equal if the propositions are.
                rows = [(lift(item, kind.item), self._bool(f"{name}<{k}>")) for k, item in enumerate(items)]
                if kind.keyed:
                    self._one_value_each(items, [is_in for _, is_in in rows])
                return trees.SetOf(tuple(rows), listed=True)
            case types.Seq() | types.Bag():
                return self._slots(kind, name)

    def _one_value_each(self, pairs: list[Value], present: list[Any]) -> None:
        """Assert that no key of a partial map has two values."""
        for key in dict.fromkeys(key for key, _ in pairs):  # type: ignore[misc]
            mine = [is_in for (own, _), is_in in zip(pairs, present, strict=True) if own == key]  # type: ignore[misc]
            self.facts.append(z3.AtMost(*mine, 1))

    def number(self, kind: types.Int | types.Enum | types.Sort, name: str) -> Number:
        """An open number, or member of an enum or sort."""
        low, high = (kind.low, kind.high) if isinstance(kind, types.Int) else (0, len(kind.members) - 1)
        horizon = isinstance(kind, types.Int) and kind.horizon
        # Control parts as propositions: the SAT core decides them without arithmetic.
        if not horizon and high - low < MAX_PROPOSITIONS:
            return self._one_of(range(low, high + 1), name)
        # Integers, not bit vectors: an offset has no width that could be chosen, and specs use numbers mostly
        # in difference constraints.
        number = z3.Int(name)
        self.made.append(number)
        self.facts.append(number >= low)
        if horizon:
            self.offsets.append(number)
        else:
            self.facts.append(number <= high)
        return number

    def _one_of(self, values: range, name: str) -> Number:
        if len(values) == 1:
            return values[0]
        # One proposition is enough, and excludes by itself what would otherwise take three facts.
        if len(values) == 2:
            flag = self._bool(name)
            return Cases(((values[0], z3.Not(flag)), (values[1], flag)))
        flags = [self._bool(f"{name}={value}") for value in values]
        # Exactly one: `compare` and `select` are wrong where none of the guards holds, or two.
        self.facts += [z3.Or(flags), z3.AtMost(*flags, 1)]
        return Cases(tuple(zip(values, flags, strict=True)))

    def _slots(self, kind: types.Seq | types.Bag, name: str) -> Tree:
        if kind.limit > MAX_SLOTS:
            raise CannotEncode(f"more than {MAX_SLOTS} places")
        slots = [self.tree(kind.item, f"{name}[{k}]") for k in range(kind.limit)]
        if isinstance(kind, types.Seq):
            return trees.SeqOf(self._one_of(range(kind.limit + 1), f"{name}#"), tuple(slots))
        present = [self._bool(f"{name}[{k}]?") for k in range(kind.limit)]
        # A bag has no order, so its items may fill the first slots: of states that differ only by gaps, one
        # is left (symmetry breaking).
        self.facts += [implies(after, before) for before, after in pairwise(present)]
        return trees.BagOf(tuple(zip(slots, present, strict=True)))


class ModelReader:
    """Reads values from a model of the solver; a part that the model leaves open is any value."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def truth(self, truth: Truth) -> bool:
        """A truth value."""
        return truth if isinstance(truth, bool) else z3.is_true(self.model.eval(truth, model_completion=True))

    def number(self, number: Number) -> int:
        """A number."""
        if isinstance(number, Cases):
            # A part that the query does not mention may have no guard that holds; then any value will do.
            return next((value for value, guard in number.ways if self.truth(guard)), number.ways[0][0])
        if isinstance(number, int):
            return int(number)
        return int(self.model.eval(term(number), model_completion=True).as_long())

    def value(self, tree: Tree, kind: Type) -> Value:
        """A core value."""
        match kind:
            case types.Bool():
                return self.truth(tree)
            case types.Int() | types.Enum() | types.Sort():
                return self.number(tree)
            case types.Option():
                return (self.value(tree.item, kind.item),) if self.truth(tree.present) else ()
            case types.Record():
                return tuple([self.value(t, part) for t, (_, part) in zip(tree, kind.fields, strict=True)])
            case types.Union():
                tag = self.number(tree.tag)
                return (tag, self.value(tree.records[tag], kind.variants[tag][1]))
            case types.Map():
                return tuple([self.value(part, kind.value) for part in tree])
            case types.Set() if isinstance(tree, trees.RangeOf):
                return tuple(range(self.number(tree.low), self.number(tree.high) + 1))
            case types.Set():
                return tuple(sorted({self.value(i, kind.item) for i, g in tree.items if self.truth(g)}))
            case types.Seq():
                return tuple([self.value(i, kind.item) for i in tree.slots[: self.number(tree.length)]])
            case types.Bag():
                return tuple(sorted([self.value(i, kind.item) for i, g in tree.items if self.truth(g)]))


def outside(tree: Tree, kind: Type) -> list[Truth]:
    """The conditions under which a tree is outside its type; horizons have no upper end."""
    match kind:
        case types.Int():
            return [disj([less(tree, kind.low), *([] if kind.horizon else [less(kind.high, tree)])])]
        case types.Option():
            return _any_outside([(tree.item, tree.present)], kind.item)
        case types.Record():
            return [row for t, (_, part) in zip(tree, kind.fields, strict=True) for row in outside(t, part)]
        case types.Map():
            return [row for part in tree for row in outside(part, kind.value)]
        case types.Union():
            return [
                row
                for tag, (record, (_, part)) in enumerate(zip(tree.records, kind.variants, strict=True))
                if record is not None
                for row in _any_outside([(record, equal_numbers(tree.tag, tag))], part)
            ]
        case types.Set() if isinstance(tree, trees.SetOf):
            return _any_outside(tree.items, kind.item)
        case types.Bag():
            size = counted([guard for _, guard in tree.items])
            return [less(kind.limit, size), *_any_outside(tree.items, kind.item)]
        case types.Seq():
            slots = [(slot, less(k, tree.length)) for k, slot in enumerate(tree.slots) if slot is not None]
            return [less(kind.limit, tree.length), *_any_outside(slots, kind.item)]
        case types.Set():
            raise CannotEncode("a range without a bound is stored")
    return []


def _any_outside(items: Iterable[tuple[Tree, Truth]], kind: Type) -> list[Truth]:
    """The same for items that are there if their guards hold."""
    return [both(guard, row) for item, guard in items if guard is not False for row in outside(item, kind)]
