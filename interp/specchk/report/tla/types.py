"""Types and values in TLA+: sets, membership, constants, order, and annotations for Apalache.

| type | in TLA+ |
|---|---|
| bool, int | the same |
| enum | strings |
| sort | a set of model values, each a constant of the module |
| T? | a sequence of at most one item |
| record, tuple | the same |
| union | `Variant(tag, record)` of Apalache's module `Variants` |
| K -> V, set, seq | the same |
| map[K, V] | a set of records of a `key` and a `value` |
| bag | as in the module `Bags` |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any

from specchk.ir import types
from specchk.ir.program import Program
from specchk.ir.types import Type, cardinality, has_horizon
from specchk.lang.text.diagnostics import refusal
from specchk.lang.text.source import Span
from specchk.meaning.values import universe
from specchk.report.tla.helpers import Helpers
from specchk.report.tla.layout import (
    Tight,
    Tla,
    at_least,
    atom,
    bracketed,
    call,
    clause,
    combined,
    compared,
    definition,
    field,
    implied,
    indexed,
    junction,
    quantified,
)
from specchk.report.tla.names import TlaNames, cleaned

UNIT = "UNIT"


class Types:
    """The types of a program; `names` are those of its module."""

    def __init__(self, program: Program, names: TlaNames) -> None:
        self.names = names
        self.helpers = Helpers()
        self.sorts = {sort.name: names.new(sort.name) for sort in program.sorts}
        self.elements = {sort.name: tuple(map(names.new, sort.members)) for sort in program.sorts}
        self._enums: dict[types.Enum, str] = {}
        self._ranks: dict[Type, str] = {}

    # Sets of values

    def all_of(self, kind: Type) -> Tla:
        """The set of all values of a type."""
        use = self.helpers.use
        match kind:
            case types.Bool():
                return atom("BOOLEAN")
            case types.Int():
                return Tla((f"{kind.low}..{kind.high}",), Tight.INFIX)
            case types.Sort():
                return atom(self.sorts[kind.name])
            case types.Enum():
                return atom(self._enum(kind))
            case types.Option():
                return call(use("OptionOf"), self.all_of(kind.item))
            case types.Record():
                return self._all_records(kind)
            case types.Union():
                variants = [self._all_of_variant(kind, index) for index in range(len(kind.variants))]
                return bracketed("UNION {", variants, "}")
            case types.Map():
                return clause(
                    [("[", self.all_of(kind.key)), ("-> ", self.all_of(kind.value))], "]", Tight.ATOM
                )
            case types.Set(keyed=True):
                return call(use("PartialMaps"), *map(self.all_of, kind.pair))
            case types.Set():
                return at_least(self.all_of(kind.item), Tight.ATOM).behind("SUBSET ", Tight.INFIX)
            case types.Seq():
                return call(use("SeqsUpTo"), self.all_of(kind.item), atom(str(kind.limit)))
            case types.Bag():
                return call(use("BagsUpTo"), self.all_of(kind.item), atom(str(kind.limit)))

    def _all_records(self, kind: types.Record) -> Tla:
        if kind.element is not None:
            return self.all_of(kind.element)
        if not kind.fields:
            return atom(f"{{{UNIT}}}")
        if not kind.is_tuple:
            fields = [self.all_of(part).behind(f"{cleaned(name)}: ") for name, part in kind.fields]
            return bracketed("[", fields, "]")
        first, *rest = [at_least(self.all_of(part), Tight.ATOM) for _, part in kind.fields]
        if not rest:
            return clause([("{<<x_>> : x_ \\in ", first)], "}", Tight.ATOM)
        # Not by pairs: `(A \X B) \X C` has other values than `A \X B \X C`.
        lines = list(first.lines)
        for part in rest:
            lines[-1:] = [*part.behind(f"{lines[-1]} \\X ").lines]
        return Tla(tuple(lines), Tight.INFIX)

    def _all_of_variant(self, kind: types.Union, index: int) -> Tla:
        tag, record = self.tag(kind, index), kind.variants[index][1]
        if not record.fields:
            return atom(f"{{Variant({tag}, {UNIT})}}")
        return clause([(f"{{Variant({tag}, x_) : x_ \\in ", self._all_records(record))], "}", Tight.ATOM)

    def tag(self, kind: types.Union, index: int) -> str:
        """The tag of a variant."""
        self.helpers.use("Variants")
        return f'"{self._tag(*kind.variants[index])}"'

    @staticmethod
    def _tag(name: str, record: types.Record) -> str:
        element = record.element
        return cleaned(name or (element.name if isinstance(element, types.Sort) else "x"))

    def _enum(self, kind: types.Enum) -> str:
        if kind not in self._enums:
            self._enums[kind] = self.names.new(kind.name)
        return self._enums[kind]

    # Membership

    def inside(
        self, kind: Type, value: Tla, around: Collection[str], *, horizons: bool = False
    ) -> Tla | None:
        """That a value of the type's shape is within its ranges and limits; None if it always is.

        With `horizons`, only that no number in it is above its horizon.
        """
        if horizons and not has_horizon(kind):
            return None
        if isinstance(kind, types.Int) and horizons:
            return compared(value, "<=", atom(str(kind.high))) if kind.horizon else None
        if not horizons and _is_simple(kind):
            return compared(value, "\\in", self.all_of(kind))
        tests: list[Tla | None] = []
        match kind:
            case types.Option():
                content = self.inside(kind.item, indexed(value, atom("1")), around, horizons=horizons)
                tests.append(content and implied(self.is_some(value), content))
            case types.Record():
                parts = [(self.part(kind, value, index), part) for index, (_, part) in enumerate(kind.fields)]
                tests += [self.inside(part, of, around, horizons=horizons) for of, part in parts]
            case types.Union():
                tests += [
                    self._variant(kind, index, value, around, horizons) for index in range(len(kind.variants))
                ]
            case types.Set() | types.Map() | types.Seq() | types.Bag():
                tests += self._items(kind, value, around, horizons)
        some_tests = [test for test in tests if test is not None]
        return junction("/\\", some_tests, "TRUE") if some_tests else None

    def _variant(
        self, kind: types.Union, index: int, value: Tla, around: Collection[str], horizons: bool
    ) -> Tla | None:
        tag = atom(self.tag(kind, index))
        content = self.inside(
            kind.variants[index][1], call("VariantGetUnsafe", tag, value), around, horizons=horizons
        )
        if content is None:
            return None
        own = compared(call("VariantTag", value), "=", tag)
        return implied(own, content)

    def _items(
        self,
        kind: types.Set | types.Map | types.Seq | types.Bag,
        value: Tla,
        around: Collection[str],
        horizons: bool,
    ) -> list[Tla | None]:
        """The tests of a collection: of its size, and of its items."""
        name = self.names.local({types.Map: "k", types.Seq: "i"}.get(type(kind), "x"), around)
        is_listed = isinstance(kind, types.Set)
        item_kind = kind.value if isinstance(kind, types.Map) else kind.item
        item = indexed(value, atom(name)) if isinstance(kind, types.Map | types.Seq) else atom(name)
        test = self.inside(item_kind, item, [*around, name], horizons=horizons)
        domain = value if is_listed else at_least(value, Tight.ATOM).behind("DOMAIN ", Tight.INFIX)
        tests = [test and quantified(f"\\A {name} \\in ", at_least(domain, Tight.INFIX), test)]
        if isinstance(kind, types.Seq | types.Bag) and not horizons:
            size = call("Len" if isinstance(kind, types.Seq) else self.bag("BagCardinality"), value)
            tests.insert(0, compared(size, "<=", atom(str(kind.limit))))
        return tests

    def bag(self, operator: str) -> str:
        """An operator of the module `Bags`, which the module then extends."""
        self.helpers.use("Bags")
        return operator

    @property
    def none(self) -> Tla:
        """The option without content."""
        return atom(self.helpers.use("None"))

    def is_some(self, option: Tla) -> Tla:
        """That an option has content."""
        return compared(option, "#", self.none)

    @staticmethod
    def part(kind: types.Record, value: Tla, index: int) -> Tla:
        """A field of a record or tuple; an element that is a variant is its own record."""
        if kind.element is not None:
            return value
        return (
            indexed(value, atom(str(index + 1)))
            if kind.is_tuple
            else field(value, cleaned(kind.fields[index][0]))
        )

    # Values

    def value(self, value: Any, kind: Type) -> Tla:
        """A constant."""
        match kind:
            case types.Bool():
                return atom("TRUE" if value else "FALSE")
            case types.Int():
                return atom(str(value)) if value >= 0 else Tla((str(value),), Tight.INFIX)
            case types.Enum():
                return atom(f'"{kind.members[value]}"')
            case types.Sort():
                return atom(self.elements[kind.name][value])
            case types.Option():
                return call(self.helpers.use("Some"), self.value(value[0], kind.item)) if value else self.none
            case types.Record():
                return self.record(
                    kind, [self.value(v, part) for v, (_, part) in zip(value, kind.fields, strict=True)]
                )
            case types.Union():
                tag, record = value
                return call("Variant", atom(self.tag(kind, tag)), self.value(record, kind.variants[tag][1]))
            case types.Map():
                keys = [(self.value(key, kind.key)) for key in sorted(universe(kind.key))]
                return self.map_of(kind.key, keys, [self.value(item, kind.value) for item in value])
            case types.Set():
                return self._set(value, kind)
            case types.Seq():
                return bracketed("<<", [self.value(item, kind.item) for item in value], ">>")
            case types.Bag():
                counts = [(self.value(item, kind.item), len(list(same))) for item, same in groupby(value)]
                return self.counted(counts)

    def record(self, kind: types.Record, parts: Sequence[Tla]) -> Tla:
        """A record or tuple."""
        if kind.element is not None:
            return parts[0]
        if not kind.fields:
            return atom(UNIT)
        if kind.is_tuple:
            return bracketed("<<", parts, ">>")
        fields = zip(kind.fields, parts, strict=True)
        return bracketed("[", [part.behind(f"{cleaned(name)} |-> ") for (name, _), part in fields], "]")

    def map_of(self, key: Type, keys: Sequence[Tla], values: Sequence[Tla]) -> Tla:
        """A map from the values at its keys."""
        if all(one == values[0] for one in values):
            name = "key_"  # no name of a spec ends in `_`
            body = values[0] if values else atom("0")
            return clause([(f"[{name} \\in ", self.all_of(key)), ("|-> ", body)], "]", Tight.ATOM)
        return _pairs(zip(keys, values, strict=True))

    def counted(self, counts: Sequence[tuple[Tla, int]]) -> Tla:
        """A bag of constant items."""
        self.helpers.use("Bags")
        return _pairs((item, atom(str(count))) for item, count in counts) if counts else atom("EmptyBag")

    def _set(self, value: Any, kind: types.Set) -> Tla:
        item = kind.item
        is_named = isinstance(item, types.Sort | types.Enum)
        if len(value) == cardinality(item) > (0 if is_named else 2) and not kind.keyed:
            return self.all_of(item)
        if isinstance(item, types.Int) and len(value) > 2 and value[-1] - value[0] == len(value) - 1:
            return Tla((f"{value[0]}..{value[-1]}",), Tight.INFIX)
        return bracketed("{", [self.value(part, item) for part in value], "}")

    # Order

    def at_most(self, kind: Type, a: Tla, b: Tla, span: Span) -> Tla:
        """That one value is another one or comes before it, in specchk's order of values."""
        match kind:
            case types.Int():
                return compared(a, "<=", b)
            case types.Bool():
                return implied(a, b)
            case types.Enum() | types.Sort():
                rank = self._ranks.get(kind) or self.names.new(f"Rank{kind.name}")
                self._ranks[kind] = rank
                return compared(call(rank, a), "<=", call(rank, b))
            case types.Option():
                rest = self.at_most(kind.item, indexed(a, atom("1")), indexed(b, atom("1")), span)
                both = junction("/\\", [self.is_some(b), rest], "")
                return junction("\\/", [compared(a, "=", self.none), both], "")
            case types.Record(fields=fields) if fields:
                return self._first_difference(kind, 0, a, b, span)
        message = f"`choose` takes the first value, and TLA+ has no order for {types.show(kind)}"
        raise refusal("S704", span, message, "choose among numbers, names, or records of these")

    def _first_difference(self, kind: types.Record, index: int, a: Tla, b: Tla, span: Span) -> Tla:
        x, y = self.part(kind, a, index), self.part(kind, b, index)
        own = self.at_most(kind.fields[index][1], x, y, span)
        if index + 1 == len(kind.fields):
            return own
        rest = self._first_difference(kind, index + 1, a, b, span)
        same = compared(x, "=", y)
        return junction("/\\", [own, implied(same, rest)], "TRUE")

    # Definitions and annotations

    def definitions(self) -> list[str]:
        """The definitions of named types and of their order, as far as they are used."""
        lines: list[str] = []
        for enum, name in self._enums.items():
            lines += definition(name, bracketed("{", [atom(f'"{member}"') for member in enum.members], "}"))
        for kind, name in self._ranks.items():
            assert isinstance(kind, types.Enum | types.Sort)
            members = [self.value(index, kind).flat for index in range(len(kind.members))]
            cases = " [] ".join(f"x_ = {member} -> {index}" for index, member in enumerate(members))
            lines += [f"{name}(x_) == CASE {cases}"]
        return lines

    def annotation(self, kind: Type) -> str:
        """The type as Apalache's annotations name it."""
        go = self.annotation
        match kind:
            case types.Bool():
                return "Bool"
            case types.Int():
                return "Int"
            case types.Enum() | types.Sort():
                return "Str"
            case types.Option() | types.Seq():
                return f"Seq({go(kind.item)})"
            case types.Record(is_tuple=True):
                return f"<<{', '.join(go(part) for _, part in kind.fields)}>>"
            case types.Record():
                if kind.element is not None:
                    return go(kind.element)
                fields = ", ".join(f"{cleaned(name)}: {go(part)}" for name, part in kind.fields)
                return f"{{ {fields} }}" if fields else UNIT
            case types.Union():
                return " | ".join(f"{self._tag(*variant)}({go(variant[1])})" for variant in kind.variants)
            case types.Map():
                return f"({go(kind.key)} -> {go(kind.value)})"
            case types.Set():
                return f"Set({go(kind.item)})"
            case types.Bag():
                return f"({go(kind.item)} -> Int)"


def _pairs(pairs: Iterable[tuple[Tla, Tla]]) -> Tla:
    """A function from its pairs."""
    shown = [combined(key, ":>", value) for key, value in pairs]
    lines = [line for n, pair in enumerate(shown) for line in pair.behind("@@ " if n else "").lines]
    flat = " ".join(lines)
    return Tla((flat,) if len(flat) <= 88 and len(lines) == len(shown) else tuple(lines), Tight.INFIX)


def _is_simple(kind: Type) -> bool:
    """Whether membership in the set of all values is decided without listing many."""
    match kind:
        case types.Option():
            return isinstance(kind.item, types.Bool | types.Int | types.Enum | types.Sort)
        case types.Set(keyed=False):
            return _is_simple(kind.item)
        case types.Map():
            return _is_simple(kind.value)
        case types.Record():
            return len(kind.fields) > 1 and all(_is_simple(part) for _, part in kind.fields)
    return isinstance(kind, types.Bool | types.Int | types.Enum | types.Sort)
