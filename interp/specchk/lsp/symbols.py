"""What a name in a spec refers to: the symbols of an index, and the places where their names are written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from types import MappingProxyType

from msgspec import Struct

from specchk.lang.check.types import Record, Type
from specchk.lang.syntax import decls, tree

# A place in a file: its path, and the offsets of a name's characters.
Place = tuple[str, int, int]


class Symbol(Struct, frozen=True):
    """What names refer to; equal where they refer to one thing.

    `home` distinguishes equal names: the place of the declaration, `path:offset`; of a field the names of all
    fields of its record, since types with equal fields are one type; empty for words of the language.
    """

    kind: str
    name: str
    home: str = ""


class Occurrence(Struct, frozen=True):
    """A name in a text: offsets, symbol, the type of its value if it has one, and whether it is declared."""

    start: int
    end: int
    symbol: Symbol
    type: Type | None = None
    declares: bool = False


class NameIndex(Struct, frozen=True, dict=True, eq=False):
    """All names of the texts of an analysis, by path and in the order of their places.

    `declared` has the place of each symbol's declaration, where there is one, and `open` the names without a
    symbol, such as those of a model that the spec does not use.
    """

    names: dict[str, list[Occurrence]]
    declared: dict[Symbol, Place]
    open: dict[str, list[int]]

    def at(self, path: str, offset: int) -> Occurrence | None:
        """The name at an offset, or that ends there."""
        names = self.names.get(path, [])
        at = bisect_right(names, offset, key=lambda item: item.start) - 1
        return names[at] if at >= 0 and offset <= names[at].end else None

    @cached_property
    def _by_symbol(self) -> dict[Symbol, list[Place]]:
        places: dict[Symbol, list[Place]] = {}
        for path, names in self.names.items():
            for item in names:
                places.setdefault(item.symbol, []).append((path, item.start, item.end))
        return places

    def of(self, symbol: Symbol) -> list[Place]:
        """The places where a symbol is named, its declaration among them."""
        return self._by_symbol.get(symbol, [])


def field_of(kind: Type | None, name: str) -> Symbol | None:
    """The symbol of a record's field; None if the type has no such field."""
    if not isinstance(kind, Record) or kind.is_tuple or kind.get(name) is None:
        return None
    return field_symbol([field for field, _ in kind.fields], name)


def field_symbol(names: list[str], name: str) -> Symbol:
    """The symbol of a field of the records with these fields."""
    return Symbol("field", name, ", ".join(sorted(names)))


def kind_of(decl: decls.Named) -> str:
    """The kind of the symbol that a declaration makes."""
    if isinstance(decl, decls.Property):
        return decl.kind
    return _KINDS[type(decl)]


_KINDS: MappingProxyType[type, str] = MappingProxyType({
    decls.Sort: "sort", decls.Const: "constant", decls.TypeDecl: "type", decls.Var: "variable",
    decls.Def: "definition", decls.Action: "action", decls.Helper: "helper action", decls.Model: "model",
    decls.Scenario: "scenario",
})  # fmt: skip


def parts_of(decl: decls.TypeDecl) -> Iterator[tuple[str, str, tree.Node]]:
    """The members and variants that a type declares: kind, name, and the node in which it is written."""
    if isinstance(decl.type, tree.EnumType):
        yield from (("member", member, decl.type) for member in decl.type.members)
    elif isinstance(decl.type, tree.UnionType):
        yield from (("variant", variant.name, variant) for variant in decl.type.variants)
