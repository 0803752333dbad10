"""Types as columns of plain values, with definition and repetition levels (Melnik et al., Dremel).

A type becomes a tree of `Shape`s, whose ends are `ColumnLeaf`s.  A leaf has a *value* wherever it is present,
and an *entry* for each value and for each absent or empty part in its place:

    definition level   the optional and repeated parts around the value that are present
    repetition level   the innermost repeated part of which this is a further item

    { a: none }  definition 1      [ [1, 2], [3] ]  repetition 0 2 1

| type | part |
|---|---|
| any, but for the keys of maps | optional |
| T? | T, absent for `none`; an option of an option has a part of its own |
| record | its fields; without fields a bool |
| union | `tag` and the variants with fields; without such its name |
| map, set, seq, bag | repeated |

`export.columns` has the same nesting in Arrow's types.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.ir.types import cardinality as values_of
from specchk.native.machine.layout import is_sparse, key_count, set_size, slots_of

LISTED = 1 << 8  # numbers of a type that are listed once, and then named by their position
FIXED = -1
Domain = Bool | Int | tuple[str, ...]


class ColumnLeaf(Struct, frozen=True):
    """A column of plain values.

    `levels` numbers the entries that it shares with others; `FIXED`: every state has the same number of
    values, and `pattern` has their repetition levels.  `most`: entries of one state.
    """

    index: int
    domain: Domain
    definition: int
    repetition: int
    most: int
    levels: int
    owns_levels: bool
    pattern: tuple[int, ...]

    @property
    def is_listed(self) -> bool:
        """Whether a value is stored as its position in the domain."""
        return isinstance(self.domain, tuple) or (isinstance(self.domain, Int) and _few(self.domain))

    @property
    def value_bytes(self) -> int:
        """The number of bytes of a value: 1, 2, 4 or 8."""
        match self.domain:
            case Bool():
                return 1
            case Int():
                return 1 if _few(self.domain) else 4 if is_short(self.domain) else 8
        return 1 if len(self.domain) <= 1 << 8 else 2 if len(self.domain) <= 1 << 16 else 4

    @property
    def value_bits(self) -> int:
        """The number of bits of a value in a page: whole bytes if more than one byte."""
        if self.value_bytes > 1:
            return 8 * self.value_bytes
        match self.domain:
            case Bool():
                return 1
            case Int():
                return max(1, (values_of(self.domain) - 1).bit_length())
        return max(1, (len(self.domain) - 1).bit_length())


def _few(kind: Int) -> bool:
    return values_of(kind) <= LISTED


def is_short(kind: Int) -> bool:
    """Whether all values fit 32 bits."""
    return kind.low >= -(1 << 31) and kind.high < 1 << 31


class Shape(Struct, frozen=True):
    """A part of a column: its definition levels when absent and present, its parts, and its leaves."""

    kind: Type
    absent: int
    present: int
    repetition: int
    parts: tuple[Shape, ...] = ()
    leaves: tuple[ColumnLeaf, ...] = ()


class _Depth(Struct, frozen=True):
    """The depth of a part: `varies` numbers the innermost part around it that may be absent."""

    absent: int = 0
    repetition: int = 0
    most: int = 1
    varies: int = FIXED
    pattern: tuple[int, ...] = (0,)
    is_optional: bool = True

    @property
    def present(self) -> int:
        """The level of a present value."""
        return self.absent + self.is_optional

    def inside(self) -> _Depth:
        """The depth of an optional part in this one."""
        return replace(self, absent=self.present, is_optional=True)


class TableShape(Struct):
    """The columns of a table, and their leaves in file order."""

    leaves: list[ColumnLeaf] = field(default_factory=list)
    level_count: int = 0
    _levels: dict[tuple[int, int, int, tuple[int, ...]], int] = field(default_factory=dict)
    _varying: int = 0

    def add(self, kind: Type) -> Shape:
        """Add a column."""
        return self._shape(kind, _Depth())

    def _shape(self, kind: Type, at: _Depth) -> Shape:
        match kind:
            case Bool() | Int():
                return self._leaf(kind, kind, at)
            case Enum() | Sort():
                return self._leaf(kind, kind.members, at)
            case Option():
                return self._option(kind, at)
            case Record():
                return self._record(kind, at)
            case Union():
                return self._union(kind, at)
            case Map():
                return self._map(kind, at)
            case Set() | Seq() | Bag():
                return self._list(kind, at)

    def _leaf(self, kind: Type, domain: Domain, at: _Depth) -> Shape:
        owns = False
        levels = FIXED
        if at.varies != FIXED:
            # Beside each other may be maps of different sizes, and the key and the value of a map: as many
            # parts around a leaf are present then, with other entries.
            key = at.varies, at.present, at.repetition, at.pattern
            owns = key not in self._levels
            levels = self._levels.setdefault(key, len(self._levels))
            self.level_count = len(self._levels)
        pattern = at.pattern if levels == FIXED else ()
        leaf = ColumnLeaf(len(self.leaves), domain, at.present, at.repetition, at.most, levels, owns, pattern)
        self.leaves.append(leaf)
        return Shape(kind, at.absent, at.present, at.repetition, (), (leaf,))

    def _with(self, kind: Type, at: _Depth, parts: Sequence[Shape]) -> Shape:
        leaves = tuple(leaf for part in parts for leaf in part.leaves)
        return Shape(kind, at.absent, at.present, at.repetition, tuple(parts), leaves)

    def _varied(self, at: _Depth) -> _Depth:
        self._varying += 1
        return replace(at, varies=self._varying)

    def _option(self, kind: Option, at: _Depth) -> Shape:
        inner = self._varied(at)
        if isinstance(kind.item, Option):
            inner = inner.inside()
        return self._with(kind, at, [self._shape(kind.item, inner)])

    def _record(self, kind: Record, at: _Depth) -> Shape:
        if kind.element is not None:
            return self._with(kind, at, [self._shape(kind.element, at)])
        if not kind.fields:
            return self._leaf(kind, Bool(), at)
        return self._with(kind, at, [self._shape(part, at.inside()) for _, part in kind.fields])

    def _union(self, kind: Union, at: _Depth) -> Shape:
        names = tuple(name for name, _ in kind.variants)
        if not any(record.fields for _, record in kind.variants):
            return self._leaf(kind, names, at)
        parts = [self._leaf(kind, names, at.inside())]
        parts += [
            self._record(record, self._varied(at.inside())) for _, record in kind.variants if record.fields
        ]
        return self._with(kind, at, parts)

    def _map(self, kind: Map, at: _Depth) -> Shape:
        count = key_count(kind)
        item = replace(self._items(at, count), pattern=_repeated(at, count))
        if not count:  # each is empty
            item = self._varied(item)
        return self._with(kind, at, self._pair(kind.key, kind.value, item))

    def _list(self, kind: Set | Seq | Bag, at: _Depth) -> Shape:
        most = set_size(kind) if isinstance(kind, Set) and not is_sparse(kind) else slots_of(kind)
        item = self._varied(self._items(at, most))
        if isinstance(kind, Set) and kind.keyed:
            return self._with(kind, at, [self._with(kind.item, item, self._pair(*kind.pair, item))])
        return self._with(kind, at, [self._shape(kind.item, item)])

    def _items(self, at: _Depth, most: int) -> _Depth:
        return replace(
            at, absent=at.present + 1, repetition=at.repetition + 1, most=at.most * max(1, most),
            is_optional=True,
        )  # fmt: skip

    def _pair(self, key: Type, value: Type, item: _Depth) -> list[Shape]:
        """The key and value of an item; a key that may be null is put in a struct: map keys cannot be."""
        if isinstance(key, Option):
            return [self._shape(part, item.inside()) for part in (key, value)]
        return [self._shape(key, replace(item, is_optional=False)), self._shape(value, item)]


def _repeated(at: _Depth, count: int) -> tuple[int, ...]:
    further = (at.repetition + 1,) * (count - 1)
    return tuple(level for first in at.pattern for level in (first, *further)) if count else ()
