"""Values read from the texts of `meaning.values.show`, which the steps of traces have for arguments.

By types alone, so numbers may be above a horizon: the symbolic engine has no horizons, and `universe` does
not list such values.

Also the other way: values as expressions for a spec, whose imported names are qualified.

Not here: values in JSON and ITF (`report.read`), and expressions of the language (`Instance.expression`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from specchk.ir.nodes import Value
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.meaning.values import show

_TOKEN = re.compile(r"-?\w+|[^\w\s]")


def expression_of(value: Value, kind: Type) -> str:
    """A value as an expression of a spec: as `show` has it, but names that are imported are qualified."""
    return show(value, _qualified(kind))


def _qualified(kind: Type) -> Type:
    """The type with names of members and variants as a spec writes them that imports the type."""
    match kind:
        case Enum():
            return Enum(kind.name, tuple([_beside(kind.name, member) for member in kind.members]))
        case Option() | Seq() | Bag() | Set():
            return replace(kind, item=_qualified(kind.item))
        case Map():
            return Map(_qualified(kind.key), _qualified(kind.value))
        case Record():
            return Record(tuple([(name, _qualified(part)) for name, part in kind.fields]))
        case Union():
            variants = [(_beside(kind.name, name), _qualified(record)) for name, record in kind.variants]
            return Union(kind.name, tuple(variants))  # type: ignore[arg-type]
    return kind


def _beside(type_name: str, name: str) -> str:
    """A name that is declared with a type."""
    home, dot, _ = type_name.rpartition(".")
    return f"{home}{dot}{name}"


def value_of(text: str, kind: Type) -> Value:
    """The value that `show` wrote as `text`."""
    return _Reader(_TOKEN.findall(text)).value(kind)


class _Reader:
    """Reads values from tokens, from left to right."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.place = 0

    def next(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1]

    def skip(self, token: str) -> bool:
        """Whether this token is next; if so, it is read."""
        is_next = self.tokens[self.place : self.place + 1] == [token]
        self.place += is_next
        return is_next

    def value(self, kind: Type) -> Value:
        match kind:
            case Bool():
                return self.next() == "true"
            case Int():
                return int(self.next())
            case Enum() | Sort():
                return kind.members.index(self.next())
            case Option():
                return self._bracketed(lambda: self.value(kind.item)) if self.next() == "some" else ()
            case Record():
                return self._record(kind)
            case Union():
                return self._variant(kind)
            case Map():
                return self._bracketed(lambda: self._pair(kind.key, kind.value)[1])
            case Set(keyed=True):
                return self._bracketed(lambda: self._pair(*kind.pair))
            case Set() | Bag() | Seq():
                return self._bracketed(lambda: self.value(kind.item))

    def _bracketed(self, item: Callable[[], Value]) -> tuple[Value, ...]:
        """Items between brackets of any kind."""
        self.next()
        items: list[Value] = []
        while self.tokens[self.place] not in (")", "]", "}"):
            items.append(item())
            self.skip(",")
        self.next()
        return tuple(items)

    def _pair(self, key: Type, value: Type) -> tuple[Value, Value]:
        first = self.value(key)
        self.skip(":")
        return first, self.value(value)

    def _record(self, kind: Record) -> Value:
        kinds = iter(kind.fields)

        def field() -> Value:
            name, part = next(kinds)
            if not kind.is_tuple:
                assert self.next() == name
                self.skip(":")
            return self.value(part)

        return self._bracketed(field)

    def _variant(self, kind: Union) -> Value:
        name = self.next()
        for tag, (variant, record) in enumerate(kind.variants):
            of_sort = record.element
            if isinstance(of_sort, Sort) and name in of_sort.members:
                return tag, (of_sort.members.index(name),)
            if of_sort is None and name == variant:
                return tag, self._record(record) if record.fields else ()
        raise ValueError(f"{name!r} is not a variant of {kind.name}")
