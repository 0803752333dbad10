"""Packed states as columns, without a Python object for each value.

Records and maps have their parts at fixed places (`native.machine.layout`), so they are taken apart bit by
bit for all states of a block at once.  The rest are short codes of which a block has few different ones:
each is decoded once, by the own `decode` of the layout, and the column is made by look-ups.
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

    def short(self, offset: int, size: int) -> pa.Array:
        """The codes of at most 63 bits at an offset, as numbers."""
        word, low = divmod(offset, WORD)
        code = pc.shift_right(self._words[word], _number(low)) if low else self._words[word]
        if low + size > WORD:
            high = pc.shift_left(self._words[word + 1], _number(WORD - low))
            code = pc.bit_wise_or(code, high)
        return pc.bit_wise_and(code, _number(mask(size)))

    def long(self, offset: int, size: int) -> list[int]:
        """The codes at an offset, of any size."""
        pieces = [
            [part << at for part in self.short(offset + at, min(32, size - at)).to_pylist()]
            for at in range(0, size, 32)
        ]
        return [sum(parts) for parts in zip(*pieces, strict=True)]


def _number(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.uint64())


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

    def column(self, codes: PackedBlock) -> pa.Array:
        """The column of some states."""


class CodePlace:
    """A place whose codes are decoded as a whole."""

    def __init__(self, kind: Type, offset: int) -> None:
        self.offset, self.size = offset, width(kind)
        self._values = DecodedCodes(arrow_type(kind), lambda code: plain(kind, decode(kind, code)))

    def column(self, codes: PackedBlock) -> pa.Array:
        """See `ColumnPlace`."""
        if not self.size:
            different, indices = [0], pa.array([0] * codes.count, pa.int32())
        elif self.size < WORD:
            encoded = codes.short(self.offset, self.size).dictionary_encode()
            indices, different = encoded.indices, encoded.dictionary.to_pylist()
        else:
            every = codes.long(self.offset, self.size)
            different = list(dict.fromkeys(every))
            number = {code: index for index, code in enumerate(different)}
            indices = pa.array([number[code] for code in every], pa.int32())
        return self._values.of(different).take(indices)


class Struct:
    """A record whose fields are places of their own."""

    def __init__(self, kind: Record, offset: int) -> None:
        self.names = field_names(kind)
        self.parts = [
            place_of(item, offset + field_offset(kind, i)) for i, (_, item) in enumerate(kind.fields)
        ]

    def column(self, codes: PackedBlock) -> pa.Array:
        """See `ColumnPlace`."""
        return pa.StructArray.from_arrays([part.column(codes) for part in self.parts], self.names)


class Keyed:
    """A map whose values are places of their own, one for each key."""

    def __init__(self, kind: Map, offset: int) -> None:
        self.many, size = key_count(kind), width(kind.value)
        self.type = arrow_type(kind)
        self.parts = [place_of(kind.value, offset + (self.many - 1 - key) * size) for key in range(self.many)]
        self._keys = pa.array([plain(kind.key, key) for key in positions(kind.key)], arrow_type(kind.key))

    def column(self, codes: PackedBlock) -> pa.Array:
        """See `ColumnPlace`."""
        offsets, turned, keys = _positions(self.many, codes.count)
        items = pa.concat_arrays([part.column(codes) for part in self.parts]).take(turned)
        return pa.MapArray.from_arrays(offsets, self._keys.take(keys), items, type=self.type)


@lru_cache(maxsize=8)
def _positions(many: int, count: int) -> tuple[pa.Array, pa.Array, pa.Array]:
    """For maps of so many keys in so many states: where each begins, where its values are, and its keys."""
    offsets = pa.array(range(0, many * count + 1, many), pa.int32())
    # From the first key of all states, then the second, to all keys of the first state, then the second.
    turned = pa.array([key * count + row for row in range(count) for key in range(many)], pa.int32())
    return offsets, turned, pa.array(list(range(many)) * count, pa.int32())


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
