"""Values in the kernel: reading and building codes, and converting them between types.

In registers a bool is an `i1`, a number its signed 64-bit value, everything else its code
(`native.machine.layout`).  Two types of one shape may differ in intervals and limits, and then in codes;
`native.values.fitting` goes from one to the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import comb

from specchk.codegen import ir
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
    components,
)
from specchk.meaning.values import universe
from specchk.native.machine import layout
from specchk.native.machine.asm import I1, I64, Asm, Val, code_type
from specchk.native.machine.layout import mask, width
from specchk.search.engine import Unsupported

# As many as a state has at most (`MAX_WORDS`): a larger value could not be stored.
MAX_BITS = 4096


def register(kind: Type) -> ir.IntType:
    """The LLVM type that holds a value of a type in a register."""
    if isinstance(kind, Bool):
        return I1
    if isinstance(kind, Int | Enum | Sort):
        return I64
    size = width(kind)
    if size > MAX_BITS:
        raise Unsupported(f"a value would need {size} bits")
    return code_type(size)


def constant(kind: Type, value: object) -> int:
    """A known value in its held form."""
    if isinstance(kind, Bool | Enum | Sort | Int):
        assert isinstance(value, int)
        return value
    return layout.encode(kind, value)


@lru_cache(maxsize=256)
def constants(kind: Type) -> tuple[int, ...]:
    """All values of a type in their held form, in order."""
    return tuple([constant(kind, value) for value in sorted(universe(kind))])


class Codes:
    """Builds operations on codes at the assembler's current position."""

    def __init__(self, asm: Asm) -> None:
        self.asm = asm

    def code(self, kind: Type, value: Val) -> Val:
        """The code of a held value."""
        if isinstance(kind, Int):
            return self.asm.sub(value, kind.low)
        return self.asm.resize(value, I64) if isinstance(kind, Bool) else value

    def held(self, kind: Type, code: Val) -> Val:
        """The held value of a code."""
        if isinstance(kind, Int):
            return self.asm.add(code, kind.low)
        if isinstance(kind, Bool):
            return bool(code) if isinstance(code, int) else self.asm.b.trunc(code, I1)
        return code

    def part(self, kind: Type, whole: Val, offset: Val, of: ir.IntType | None = None) -> Val:
        """The held value of the code at an offset of a larger one, which is in a register `of` its own type.

        The register may be omitted where the offset is known.
        """
        return self.held(kind, self.asm.bits(whole, offset, width(kind), of))

    def placed(self, kind: Type, value: Val, offset: Val, into: ir.IntType) -> Val:
        """A held value as a contribution to a larger code, at an offset."""
        return self.asm.shl(self.asm.resize(self.code(kind, value), into), offset, into)

    def field(self, kind: Record, record: Val, index: int) -> Val:
        """A field of a record."""
        return self.part(kind.fields[index][1], record, layout.field_offset(kind, index))

    def joined(self, kind: Record | Map, values: Iterable[Val]) -> Val:
        """A record or map with these held values, one for each field, or for each key in order."""
        out: Val = 0
        for (at, part), value in zip(layout.parts_of(kind), values, strict=True):
            out = self.asm.bor(out, self.placed(part, value, at, register(kind)))
        return out

    def is_some(self, kind: Option, option: Val) -> Val:
        """Whether an option is some."""
        # A scalar option has `none` as its least code, so that codes have the order of values; a larger one
        # has a bit of its own above the item.
        if layout.is_scalar(kind):
            return self.asm.cmp("!=", option, 0)
        return self.asm.cmp("!=", self.asm.bits(option, width(kind.item), 1), 0)

    def unwrapped(self, kind: Option, option: Val) -> Val:
        """The item of an option known to be some."""
        if layout.is_scalar(kind):
            return self.held(kind.item, self.asm.sub(option, 1))
        return self.part(kind.item, option, 0)

    def some(self, kind: Option, item: Val) -> Val:
        """An option that holds an item."""
        code = self.asm.resize(self.code(kind.item, item), register(kind))
        if layout.is_scalar(kind):
            return self.asm.add(code, 1)
        return self.asm.bor(code, 1 << width(kind.item))

    def tag(self, kind: Union, union: Val) -> Val:
        """The variant's position, 64 bits wide."""
        return self.asm.bits(union, layout.payload_width(kind), width(kind) - layout.payload_width(kind))

    def moved(self, items: Val, moves: Iterable[tuple[int, int]], kind: Set) -> Val:
        """The items of a bit set as a set of another type; `moves` has pairs of old and new positions."""
        # Bits that move equally far are moved at once: for most sets that is all of them, or a few groups.
        masks: defaultdict[int, int] = defaultdict(int)
        for old, new in moves:
            masks[new - old] |= 1 << old
        asm, shape = self.asm, register(kind)
        out: Val = 0
        for by, bits in sorted(masks.items()):
            kept = asm.band(items, bits)
            # The wider of both numbers is shifted, or bits would be lost.
            placed = (
                asm.shl(asm.resize(kept, shape), by, shape)
                if by > 0
                else asm.resize(asm.shr(kept, -by), shape)
            )
            out = asm.bor(out, placed)
        return out

    def payload(self, kind: Union, union: Val, tag: int) -> Val:
        """The record of a union known to be of a variant."""
        return self.part(kind.variants[tag][1], union, 0)

    def variant(self, kind: Union, tag: int, record: Val) -> Val:
        """A union of a variant and its record."""
        return self.asm.bor(self.asm.resize(record, register(kind)), tag << layout.payload_width(kind))

    def length(self, kind: Seq | Bag, items: Val) -> Val:
        """The number of items."""
        return self.asm.bits(items, 0, layout.length_bits(kind))

    def slot_offset(self, kind: Seq | Bag, index: Val) -> Val:
        """The offset of a slot's code."""
        size = width(kind.item)
        return self.asm.sub(layout.length_bits(kind) + (kind.limit - 1) * size, self.asm.mul(index, size))

    def slot(self, kind: Seq | Bag, items: Val, index: Val) -> Val:
        """The held value in a slot (arbitrary beyond the length)."""
        return self.part(kind.item, items, self.slot_offset(kind, index), register(kind))

    def key_offset(self, kind: Map, position: Val) -> Val:
        """The offset of the value at a key's position."""
        size = width(kind.value)
        return self.asm.sub((layout.key_count(kind) - 1) * size, self.asm.mul(position, size))

    def rank(self, kind: Type, value: Val) -> Val:
        """A held value's position among the values of its type."""
        asm = self.asm
        if layout.is_scalar(kind):
            return asm.resize(self.code(kind, value), I64)
        match kind:
            case Option():
                inner = asm.add(1, self.rank(kind.item, self.unwrapped(kind, value)))
                return asm.select(self.is_some(kind, value), inner, 0)
            case Record() | Map():
                # Like the digits of a number, each with a base of its own: the first one decides first.
                total: Val = 0
                for part, digit in [(p, self.part(p, value, at)) for at, p in layout.parts_of(kind)]:
                    total = asm.add(asm.mul(total, cardinality(part)), self.rank(part, digit))
                return total
            case Union():
                return self._union_rank(kind, value)
            case Set():
                return self._set_rank(kind, value)
            case Seq():
                return self._seq_rank(kind, value)
        assert isinstance(kind, Bag)
        return self._bag_rank(kind, value)

    def _union_rank(self, kind: Union, value: Val) -> Val:
        tag, before = self.tag(kind, value), 0
        result: Val = 0
        for index, (_, record) in enumerate(kind.variants):
            rank = self.asm.add(before, self.rank(record, self.payload(kind, value, index)))
            result = self.asm.select(self.asm.cmp("==", tag, index), rank, result)
            before += cardinality(record)
        return result

    def _set_rank(self, kind: Set, value: Val) -> Val:
        """The rank of a subset in the order of ascending tuples.

        Each item adds 1, each value left out below the greatest item all subsets that start with it.
        """
        size = layout.set_size(kind)
        if isinstance(value, int):  # as below; a list of all subsets may be far too long
            omitted = [rank for rank in range(value.bit_length()) if not value >> rank & 1]
            return value.bit_count() + sum(1 << size - 1 - rank for rank in omitted)
        if size > 64:
            raise Unsupported("an order of sets over more than 64 values")
        asm = self.asm
        # The items below the greatest one of the set; `or 1`, since 0 has no leading one bit to count from.
        below = asm.shr(mask(64), asm.intrinsic("ctlz", asm.b.or_(value, asm.val(1))), I64)
        # An item left out skips the subsets that have it: twice as many for each lesser item, hence the
        # reversal.
        left_out = asm.band(asm.xor(value, mask(64)), below)
        skipped = asm.shr(asm.intrinsic("bitreverse", asm.val(left_out)), 64 - size) if size else 0
        return asm.select(asm.cmp("==", value, 0), 0, asm.add(asm.intrinsic("ctpop", value), skipped))

    def _seq_rank(self, kind: Seq, value: Val) -> Val:
        # In the order of tuples, a sequence is followed by those that begin with it.  `after` counts the
        # sequences that fit into the slots behind this one, including the empty one: an item that is greater
        # by one skips that many.
        size, after = cardinality(kind.item), 1
        rest: Val = 0
        for index in reversed(range(kind.limit)):
            rank = self.asm.mul(self.rank(kind.item, self.slot(kind, value, index)), after)
            here = self.asm.add(1, self.asm.add(rank, rest))
            rest = self.asm.select(self.asm.cmp("<", index, self.length(kind, value)), here, 0)
            after = 1 + size * after
        return rest

    def _bag_rank(self, kind: Bag, value: Val) -> Val:
        # As for a sequence; but behind an item come only items that are not less, so an item skips the bags
        # that begin with an item from the previous one on.
        asm, size = self.asm, cardinality(kind.item)
        total: Val = 0
        before: Val = 0
        for index in range(kind.limit):
            rest = kind.limit - 1 - index
            begun = [
                comb(size - item + rest, rest) for item in range(size)
            ]  # bags that begin with an item here
            skipped = list(accumulate(begun, initial=0))
            here = self.rank(kind.item, self.slot(kind, value, index))
            passed = asm.sub(*(self._entry("skipped", I64, skipped, item) for item in (here, before)))
            there = asm.cmp("<", index, self.length(kind, value))
            total = asm.add(total, asm.select(there, asm.add(1, passed), 0))
            before = here
        return total

    def _entry(self, name: str, kind: ir.Type, values: Sequence[int], index: Val) -> Val:
        if isinstance(index, int):
            return values[index]
        table = self.asm.table(name, kind, values)
        return self.asm.b.load(self.asm.b.gep(table, [self.asm.val(0), index]))

    def ordered(self, kind: Type, code: Val) -> Val:
        """A number of the code's width that is ordered like the values (sets become ranks)."""
        if not has_set(kind):
            return code
        if isinstance(kind, Set) and not layout.is_sparse(kind):
            return self.rank(kind, code)
        if isinstance(kind, Union):
            return self._ordered_union(kind, code)
        out: Val = 0
        parts = layout.parts_of(kind)
        # Slots from the lowest on: another order would give the same code other text, and so another name.
        for offset, part in reversed(parts) if isinstance(kind, Set | Seq | Bag) else parts:
            inner = self.ordered(part, self.asm.bits(code, offset, width(part)))
            out = self.asm.bor(
                out, self.asm.shl(self.asm.resize(inner, register(kind)), offset, register(kind))
            )
        covered = sum(mask(width(part)) << offset for offset, part in parts)
        return self.asm.bor(out, self.asm.band(code, mask(width(kind)) & ~covered))

    def _ordered_union(self, kind: Union, code: Val) -> Val:
        tag, shape = self.tag(kind, code), register(kind)
        result = code
        for index, (_, record) in enumerate(kind.variants):
            if has_set(record):
                inner = self.asm.resize(self.ordered(record, self.payload(kind, code, index)), shape)
                # A variant's record has the lowest bits, and the tag, or 0, is above them.
                rest = self.asm.band(code, mask(shape.width) & ~mask(width(record)))
                result = self.asm.select(
                    self.asm.cmp("==", tag, index), self.asm.bor(rest, inner), result, shape
                )
        return result

    def nth(self, kind: Type, rank: Val) -> Val:
        """The held value at a position among the values of a type."""
        if isinstance(rank, int):
            return constant(kind, sorted(universe(kind))[rank])
        if layout.is_scalar(kind):
            return self.held(kind, rank)
        # A table, since ranks are undone only if a type is small enough to be listed.
        return self._entry("values", register(kind), constants(kind), rank)


@lru_cache(maxsize=4096)
def has_set(kind: Type) -> bool:
    """Whether values contain bit sets, whose codes are not ordered like the values."""
    return any(isinstance(part, Set) and not layout.is_sparse(part) for part in components(kind))
