"""Packed states as columns, without a Python object for each value.

Records and maps have their parts at fixed places (`native.machine.layout`), so they are taken apart bit by
bit for all states of a block at once.  The rest are short codes of which a block has few different ones:
each is decoded once, by the own `decode` of the layout, and the column is made by look-ups.

A column is not made of values but of numbers into the few different ones: its numbers and strings are
Arrow dictionaries, which Parquet writes as they are.  Made of values, they were copied and compared again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from specchk.export.columns import arrow_type, field_names, plain
from specchk.ir.types import Map, Option, Record, Type
from specchk.meaning.values import positions
from specchk.native.machine.layout import (
    WORD,
    decode,
    field_offset,
    key_count,
    mask,
    width,
)

SHORT = 12  # bits of a code that is not taken apart any more
MANY = 1 << 16  # codes that are remembered of one place


class PackedBlock:
    """The words of some states, and the codes in them."""

    def __init__(self, address: int, count: int, words: int) -> None:
        buffer = pa.foreign_buffer(address, 8 * words * count)
        flat = pa.Array.from_buffers(pa.uint64(), words * count, [None, buffer])
        self.count = count
        rows = pa.FixedSizeListArray.from_arrays(flat, words)
        self._words = [pc.list_element(rows, word) if words > 1 else flat for word in range(words)]

    def short(self, offsets: Sequence[int], size: int) -> pa.Array:
        """The codes of at most 63 bits at some offsets: all of a state before those of the next."""
        parts = [self._at(offset, size) for offset in offsets]
        if len(parts) == 1:
            return parts[0]
        return pa.concat_arrays(parts).take(_turned(len(parts), self.count))

    def _at(self, offset: int, size: int) -> pa.Array:
        word, low = divmod(offset, WORD)
        code = pc.shift_right(self._words[word], _number(low)) if low else self._words[word]
        if low + size > WORD:
            high = pc.shift_left(self._words[word + 1], _number(WORD - low))
            code = pc.bit_wise_or(code, high)
        return pc.bit_wise_and(code, _number(mask(size)))

    def long(self, offsets: Sequence[int], size: int) -> list[int]:
        """The codes at some offsets, of any size, in the same order."""
        pieces = [
            [
                part << at
                for part in self.short([offset + at for offset in offsets], min(32, size - at)).to_pylist()
            ]
            for at in range(0, size, 32)
        ]
        return [sum(parts) for parts in zip(*pieces, strict=True)]


def _number(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.uint64())


def _turned(many: int, count: int) -> pa.Array:
    """Where values are that are listed place by place, in the order of states."""
    rows, places = _rows_and_places(many, count)
    return pc.add(pc.multiply(places, pa.scalar(count, pa.int32())), rows)


@lru_cache(maxsize=8)
def _rows_and_places(many: int, count: int) -> tuple[pa.Array, pa.Array]:
    """The state and the place of each value, where a state has so many of them."""
    every = _counted(many * count)
    rows = pc.divide(every, pa.scalar(many, pa.int32()))
    return rows, pc.subtract(every, pc.multiply(rows, pa.scalar(many, pa.int32())))


def _counted(end: int) -> pa.Array:
    """The numbers from 0 on."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int32()), end)), pa.scalar(1, pa.int32()))


def spread(values: pa.Array, rows: pa.Array) -> pa.Array:
    """The values with some numbers, as `values.take(rows)`, but with dictionaries for numbers and strings."""
    kind = values.type
    if pa.types.is_struct(kind):
        parts = [spread(part, rows) for part in values.flatten()]  # each null where the struct is
        absent = values.is_null().take(rows) if values.null_count else None
        return pa.StructArray.from_arrays(parts, [field.name for field in kind], mask=absent)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _spread_lists(values, rows)
    if pa.types.is_boolean(kind):
        return values.take(rows)
    encoded = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(rows), encoded.dictionary)


def _spread_lists(values: pa.Array, rows: pa.Array) -> pa.Array:
    """Lists or maps: of their items the numbers are taken, and the items by these."""
    numbers = _counted(len(values.values))
    absent = values.is_null() if values.null_count else None
    taken = pa.ListArray.from_arrays(values.offsets, numbers, mask=absent).take(rows)
    items = spread(values.values, taken.values)
    kind = pa.list_(items.type)
    if pa.types.is_map(values.type):
        kind = pa.map_(*(field.type for field in items.type))
        items = pa.StructArray.from_arrays(items.flatten(), fields=list(kind.field(0).type))
    return pa.Array.from_buffers(kind, len(taken), taken.buffers()[:2], children=[items])


class DecodedCodes:
    """The values of codes as a column; each is decoded once, as long as there are not too many of them."""

    def __init__(self, kind: pa.DataType, decoded: Callable[[int], Any]) -> None:
        self._kind, self._decoded = kind, decoded
        self._rows: dict[int, int] = {}
        self._values = pa.array([], kind)

    def of(self, codes: Sequence[int]) -> pa.Array:
        """The values of different codes, in their order."""
        if len(self._rows) > MANY:  # each state has a code of its own; what is remembered is of little use
            self._rows.clear()
            self._values = pa.array([], self._kind)
        new = [code for code in codes if code not in self._rows]
        if new:
            values = pa.array([self._decoded(code) for code in new], self._kind)
            self._rows.update({code: len(self._rows) + index for index, code in enumerate(new)})
            self._values = pa.concat_arrays([self._values, values])
        return self._values.take(pa.array([self._rows[code] for code in codes], pa.int32()))


class ColumnPlace(Protocol):
    """A place in a packed state, and the column that it becomes."""

    def column(self, codes: PackedBlock, starts: Sequence[int] = (0,)) -> pa.Array:
        """The column of some states, for each of which the place is at `starts`, once for each of them."""


class CodePlace:
    """A place whose codes are decoded as a whole."""

    def __init__(self, kind: Type, offset: int) -> None:
        self.offset, self.size = offset, width(kind)
        self._values = DecodedCodes(arrow_type(kind), lambda code: plain(kind, decode(kind, code)))

    def column(self, codes: PackedBlock, starts: Sequence[int] = (0,)) -> pa.Array:
        """See `ColumnPlace`."""
        offsets = [start + self.offset for start in starts]
        if not self.size:
            different = [0]
            indices = pa.repeat(pa.scalar(0, pa.int32()), codes.count * len(starts))
        elif self.size < WORD:
            encoded = codes.short(offsets, self.size).dictionary_encode()
            indices, different = encoded.indices, encoded.dictionary.to_pylist()
        else:
            every = codes.long(offsets, self.size)
            different = list(dict.fromkeys(every))
            number = {code: index for index, code in enumerate(different)}
            indices = pa.array([number[code] for code in every], pa.int32())
        return spread(self._values.of(different), indices)


class Struct:
    """A record whose fields are places of their own."""

    def __init__(self, kind: Record, offset: int) -> None:
        self.names = field_names(kind)
        self.parts = [
            place_of(item, offset + field_offset(kind, i)) for i, (_, item) in enumerate(kind.fields)
        ]

    def column(self, codes: PackedBlock, starts: Sequence[int] = (0,)) -> pa.Array:
        """See `ColumnPlace`."""
        return pa.StructArray.from_arrays([part.column(codes, starts) for part in self.parts], self.names)


class Keyed:
    """A map whose values are at places side by side, one for each key."""

    def __init__(self, kind: Map, offset: int) -> None:
        self.many, size = key_count(kind), width(kind.value)
        self.part = place_of(kind.value, 0)
        self._steps = [offset + (self.many - 1 - key) * size for key in range(self.many)]
        self._keys = pa.array([plain(kind.key, key) for key in positions(kind.key)], arrow_type(kind.key))

    def column(self, codes: PackedBlock, starts: Sequence[int] = (0,)) -> pa.Array:
        """See `ColumnPlace`."""
        count = codes.count * len(starts)
        items = self.part.column(codes, [start + step for start in starts for step in self._steps])
        _, keys = _rows_and_places(self.many, count)
        offsets = pc.multiply(_counted(count + 1), pa.scalar(self.many, pa.int32()))
        return pa.MapArray.from_arrays(offsets, spread(self._keys, keys), items)


def place_of(kind: Type, offset: int) -> ColumnPlace:
    """The place of a type at an offset in bits."""
    if width(kind) > SHORT and isinstance(kind, Record) and kind.fields:
        return Struct(kind, offset)
    if width(kind) > SHORT and isinstance(kind, Map) and not isinstance(kind.key, Option):
        return Keyed(kind, offset)
    return CodePlace(kind, offset)


def values_of(states: Sequence[Any], kinds: Sequence[Type]) -> list[pa.Array]:
    """The columns of states that are values."""
    return [
        pa.array([plain(kind, state[slot]) for state in states], arrow_type(kind))
        for slot, kind in enumerate(kinds)
    ]
