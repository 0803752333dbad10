"""Packed states as Arrow arrays, by Arrow's vector functions: a few calls for each part of a type.

A part of many states is a `CodeColumn`: the code of each (`native.machine.layout`) in 64-bit words.  Parts of
maps and collections are taken out slot by slot, and then put in the order of the rows:

    slot by slot        a0 b0 c0 | a1 b1 c1     rows a, b, c; a place is slot * rows + row
    row by row          a0 a1 | b0 b1 | c0 c1

An absent part has the code 0, which every type has, so that Arrow's arrays below it are valid.  The types
are those of `columns`, but for texts, which are positions in a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from specchk.export.columns import TAG, column_of, field_names, variant_names
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.meaning.values import positions, universe
from specchk.native.machine import layout
from specchk.native.machine.layout import WORD, StateLayout, mask, width

TABLE_BITS = 14  # codes of fewer bits are looked up in a table of all, in a third of the time
_CODE, _PLACE = pa.uint64(), pa.uint32()


class CodeColumn(Struct, frozen=True):
    """Numbers of one width, one for each row, as words: the lowest first, none for a width of 0.

    `there`: the rows whose parts around this one are present, where some are not.
    """

    rows: int
    words: tuple[Any, ...]
    there: Any = None

    @classmethod
    def of(cls, codes: Iterable[int], size: int) -> CodeColumn:
        """CodeColumn of a width in bits."""
        every = list(codes)
        words = [pa.array([code >> at & mask(WORD) for code in every], _CODE) for at in range(0, size, WORD)]
        return cls(len(every), tuple(words))

    @property
    def number(self) -> Any:
        """The codes of at most a word."""
        return self.words[0] if self.words else pa.repeat(pa.scalar(0, _CODE), self.rows)

    def part(self, at: int, size: int) -> CodeColumn:
        """Some bits of each code."""
        words = tuple([self._word(at + low, size - low) for low in range(0, size, WORD)])
        return CodeColumn(self.rows, words, self.there)

    def _word(self, at: int, size: int) -> Any:
        """At most a word, from a bit on."""
        number, low = divmod(at, WORD)
        word = pc.shift_right(self.words[number], _code(low)) if low else self.words[number]
        if low + min(size, WORD) > WORD:
            word = pc.bit_wise_or(word, pc.shift_left(self.words[number + 1], _code(WORD - low)))
        return word if size >= WORD else pc.bit_wise_and(word, _code(mask(size)))

    def where(self, present: Any) -> CodeColumn:
        """The codes, 0 in other rows."""
        words = tuple([pc.if_else(present, word, _code(0)) for word in self.words])
        return CodeColumn(self.rows, words, _both(self.there, present))

    def take(self, places: Any) -> CodeColumn:
        """The codes of some rows."""
        return CodeColumn(len(places), tuple([word.take(places) for word in self.words]))


def states_at(address: int, count: int, of_states: StateLayout) -> list[pa.Array]:
    """The columns of packed states, which are read before this returns."""
    words = of_states.words
    data = pa.foreign_buffer(address, WORD // 8 * words * count)
    whole = pa.Array.from_buffers(_CODE, words * count, [None, data])
    states = CodeColumn(count, tuple([whole.take(_every(count, words, word)) for word in range(words)]))
    return [array_of(place.type, states.part(place.offset, place.width)) for place in of_states.places]


def array_of(kind: Type, codes: CodeColumn, present: Any = None) -> pa.Array:
    """The column of codes of a type, null in rows that are not `present` (by default none)."""
    if layout.is_scalar(kind) or width(kind) > TABLE_BITS:
        return _taken_apart(kind, codes, present)
    places = _built(pa.int16(), codes, present, [codes.number.cast(pa.int16(), safe=False).buffers()[1]])
    return _table(kind).take(places)


@lru_cache(maxsize=64)
def _table(kind: Type) -> pa.Array:
    """The column of all numbers that might be codes."""
    return _taken_apart(kind, CodeColumn.of(range(1 << width(kind)), width(kind)), None)


def _taken_apart(kind: Type, codes: CodeColumn, present: Any) -> pa.Array:
    """As `array_of`, by the parts of the type."""
    match kind:
        case Bool():
            return _built(pa.bool_(), codes, present, [_bits(codes.number)])
        case Int():
            column = column_of(kind).type
            numbers = pc.add(codes.number.cast(column, safe=False), pa.scalar(kind.low, column))
            return _built(column, codes, present, [numbers.buffers()[1]])
        case Enum() | Sort():
            return _texts(kind.members, codes, present)
        case Option():
            return _option(kind, codes, present)
        case Record():
            return _record(kind, codes, present)
        case Union():
            return _union(kind, codes, present)
        case Map():
            return _map(kind, codes, present)
        case Set() | Seq() | Bag():
            return _collection(kind, codes, present)


def _built(
    kind: pa.DataType,
    codes: CodeColumn,
    present: Any,
    buffers: Sequence[Any],
    children: Sequence[pa.Array] = (),
) -> pa.Array:
    valid = None if present is None else present.buffers()[1]
    return pa.Array.from_buffers(kind, codes.rows, [valid, *buffers], children=list(children))


def _texts(texts: Sequence[str], codes: CodeColumn, present: Any) -> pa.Array:
    """Texts by their position."""
    numbers = codes.number.cast(pa.int32(), safe=False)
    indices = _built(pa.int32(), codes, present, [numbers.buffers()[1]])
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, pa.string()), safe=False)


def _struct(names: Sequence[str], parts: Sequence[pa.Array], codes: CodeColumn, present: Any) -> pa.Array:
    kind = pa.struct([(name, part.type) for name, part in zip(names, parts, strict=True)])
    return _built(kind, codes, present, [], parts)


def _option(kind: Option, codes: CodeColumn, present: Any) -> pa.Array:
    if layout.is_scalar(kind):
        own = pc.not_equal(codes.number, _code(0))
        item = CodeColumn(codes.rows, (pc.subtract(codes.number, own.cast(_CODE)),))
    else:
        size = width(kind.item)
        own = codes.part(size, 1).number.cast(pa.bool_())
        item = codes.part(0, size).where(own)
    present = _both(present, own)
    if isinstance(kind.item, Option):
        return _struct(["some"], [array_of(kind.item, item)], codes, present)
    return array_of(kind.item, item, present)


def _record(kind: Record, codes: CodeColumn, present: Any) -> pa.Array:
    if kind.element is not None:
        return array_of(kind.element, codes, present)
    if not kind.fields:
        every = pa.repeat(pa.scalar(1, _CODE), codes.rows)
        return _built(pa.bool_(), codes, present, [_bits(every)])
    parts = [array_of(item, codes.part(at, width(item))) for at, item in layout.parts_of(kind)]
    return _struct(field_names(kind), parts, codes, present)


def _union(kind: Union, codes: CodeColumn, present: Any) -> pa.Array:
    payload, names = layout.payload_width(kind), variant_names(kind)
    tag = codes.part(payload, width(kind) - payload)
    tags = [name for name, _ in kind.variants]
    if not names:
        return _texts(tags, tag, present)
    parts = [_texts(tags, tag, None)]
    for number in names:
        record = kind.variants[number][1]
        own = pc.equal(tag.number, _code(number))
        parts.append(_record(record, codes.part(0, width(record)).where(own), own))
    return _struct([TAG, *names.values()], parts, codes, present)


def _map(kind: Map, codes: CodeColumn, present: Any) -> pa.Array:
    keys, rows = positions(kind.key), codes.rows
    listed = CodeColumn.of([layout.encode(kind.key, key) for key in keys], width(kind.key))
    if codes.there is None:
        slots, places = _by_rows(rows, len(keys))
        ends = _every(rows + 1, len(keys)).cast(pa.int32())
    else:  # Arrow writes no absent map that has entries
        ends, slots, places = _chosen([codes.there.cast(pa.uint8())] * len(keys), rows)
    values = _in_slots(layout.parts_of(kind), codes, width(kind.value))
    pair = array_of(kind.key, listed.take(slots)), array_of(kind.value, values.take(places))
    return _pairs(kind.key, pair, codes, present, ends)


def _pairs(key: Type, pair: Sequence[pa.Array], codes: CodeColumn, present: Any, ends: pa.Array) -> pa.Array:
    """Keys with values; a map, unless a key may be null."""
    keys, values = pair
    if isinstance(key, Option):
        entries = pa.StructArray.from_arrays(pair, ["key", "value"])
        return _built(pa.list_(entries.type), codes, present, [ends.buffers()[1]], [entries])
    kind = pa.map_(keys.type, values.type)
    entries = pa.StructArray.from_arrays(pair, fields=[kind.key_field, kind.item_field])
    return _built(kind, codes, present, [ends.buffers()[1]], [entries])


def _collection(kind: Set | Seq | Bag, codes: CodeColumn, present: Any) -> pa.Array:
    rows = codes.rows
    is_dense = isinstance(kind, Set) and not layout.is_sparse(kind)
    if is_dense:
        has = [codes.part(slot, 1).number for slot in range(width(kind))]
    else:
        length = codes.part(0, layout.length_bits(kind)).number
        most = min(pc.max(length).as_py() or 0, layout.slots_of(kind))  # for a table, of all lengths
        has = [pc.less(_code(slot), length).cast(_CODE) for slot in range(most)]
    ends, slots, places = _chosen([slot.cast(pa.uint8(), safe=False) for slot in has], rows)
    if is_dense:
        codes_of_items = [layout.encode(kind.item, item) for item in sorted(universe(kind.item))]
        items = CodeColumn.of(codes_of_items, width(kind.item)).take(slots)
    else:
        items = _in_slots(layout.parts_of(kind)[: len(has)], codes, width(kind.item)).take(places)
    if isinstance(kind, Set) and kind.keyed:
        parts = [array_of(item, items.part(at, width(item))) for at, item in layout.parts_of(kind.item)]
        return _pairs(kind.pair[0], parts, codes, present, ends)
    item = array_of(kind.item, items)
    return _built(pa.list_(item.type), codes, present, [ends.buffers()[1]], [item])


def _in_slots(parts: layout.Parts, codes: CodeColumn, size: int) -> CodeColumn:
    """Parts of one width, slot by slot."""
    taken = [codes.part(at, size).words for at, _ in parts]
    none = [pa.array([], _CODE)]  # so that there is an array if there is no slot
    words = [pa.concat_arrays([*none, *slots]) for slots in zip(*taken, strict=True)]
    return CodeColumn(len(parts) * codes.rows, tuple(words or none * -(-size // WORD)))


def _chosen(has: Sequence[pa.Array], rows: int) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The present items, given 1 in each slot that has one: the ends of rows, the slots, and the places."""
    counts = pa.repeat(pa.scalar(0, pa.int32()), rows)
    for slot in has:
        counts = pc.add(counts, slot.cast(pa.int32()))
    ends = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(counts)])
    slots, places = _by_rows(rows, len(has))
    chosen = pa.concat_arrays([pa.array([], pa.uint8()), *has]).take(places).cast(pa.bool_())
    return ends, slots.filter(chosen), places.filter(chosen)


@lru_cache(maxsize=4)  # of up to 16 MB, for a set of which all bits are used
def _by_rows(rows: int, per_row: int) -> tuple[pa.Array, pa.Array]:
    """The slots and places of all items, row by row."""
    numbers, size = _numbers(rows * per_row), pa.scalar(max(1, per_row), _PLACE)
    row = pc.divide(numbers, size)
    slots = pc.subtract(numbers, pc.multiply(row, size))
    return slots, pc.add(pc.multiply(slots, pa.scalar(rows, _PLACE)), row)


@lru_cache(maxsize=8)
def _every(count: int, step: int, first: int = 0) -> pa.Array:
    """Numbers at equal distances from the first."""
    return pc.add(pc.multiply(_numbers(count), pa.scalar(step, _PLACE)), pa.scalar(first, _PLACE))


def _numbers(count: int) -> pa.Array:
    """The numbers from 0 up to a count."""
    return pc.indices_nonzero(pa.repeat(pa.scalar(True), count)).cast(_PLACE)


def _both(outer: Any, own: Any) -> Any:
    """The rows that are present in both; `outer` may be None: all."""
    return own if outer is None else pc.and_(outer, own)


def _bits(numbers: pa.Array) -> Any:
    return numbers.cast(pa.bool_()).buffers()[1]


@lru_cache(maxsize=1 << 10)
def _code(number: int) -> pa.Scalar:
    return pa.scalar(number, _CODE)
