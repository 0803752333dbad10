"""Values inside the kernel: reading and building codes, converting them between types.

In registers a bool is an `i1`, a number its signed 64-bit value, everything else its code
(`native.layout`).  Two types of one shape may differ in intervals and limits, and then in codes;
`convert` goes from one to the other, `check` finds what does not fit and leaves for the reference
engine's two ways out (undefined, beyond the horizon) in the order in which it would meet them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from llvmlite import ir

from specchk.core.values import positions, universe
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union, cardinality, fits
from specchk.native.asm import I1, I64, Asm, Val, code_type
from specchk.native.layout import (
    Unsupported, encode, field_offset, is_scalar, key_count, length_bits, mask, payload_width, set_size, width,
)  # fmt: skip

MAX_BITS = 4096


def register(kind: Type) -> ir.IntType:
    """The LLVM type in which a value of a type is held."""
    if isinstance(kind, Bool):
        return I1
    if isinstance(kind, Int | Enum | Sort):
        return I64
    size = width(kind)
    if size > MAX_BITS:
        raise Unsupported(f"a value would need {size} bits")
    return code_type(size)


def constant(kind: Type, value: object) -> int:
    """A known value as it is held."""
    if isinstance(kind, Bool | Enum | Sort | Int):
        assert isinstance(value, int)
        return value
    return encode(kind, value)


@lru_cache(maxsize=4096)
def same_code(a: Type, b: Type) -> bool:
    """Whether both types hold common values alike, so that converting is doing nothing."""
    match a, b:
        case Int(), Int():
            return True
        case Option(), Option():
            return is_scalar(a) == is_scalar(b) and (same_bits(a.item, b.item))
        case Set(), Set():
            return same_bits(a.item, b.item) and (a.item == b.item or _same_ranks(a.item, b.item))
        case Seq(), Seq():
            return a.limit == b.limit and same_bits(a.item, b.item)
        case Bag(), Bag():
            return a.limit == b.limit and same_bits(a.item, b.item)
        case Map(), Map():
            return same_bits(a.value, b.value)
        case Record(), Record():
            return all(same_bits(x, y) for (_, x), (_, y) in zip(a.fields, b.fields, strict=True))
        case Union(), Union():
            return payload_width(a) == payload_width(b) and all(
                same_code(x, y) for (_, x), (_, y) in zip(a.variants, b.variants, strict=True)
            )
    return a == b


def same_bits(a: Type, b: Type) -> bool:
    """Whether both types have one width and one code inside something larger."""
    if isinstance(a, Int) and isinstance(b, Int):
        return a.low == b.low and width(a) == width(b)
    return width(a) == width(b) and same_code(a, b)


def _same_ranks(a: Type, b: Type) -> bool:
    return isinstance(a, Int) and isinstance(b, Int) and a.low == b.low


class Codes:
    """Builds operations on codes at the assembler's current position."""

    def __init__(self, asm: Asm) -> None:
        self.asm = asm

    # ------------------------------------------------------------ scalars and parts

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

    def part(self, kind: Type, whole: Val, offset: Val) -> Val:
        """The held value of the code that lies at an offset of a larger one."""
        return self.held(kind, self.asm.bits(whole, offset, width(kind)))

    def placed(self, kind: Type, value: Val, offset: Val, into: ir.IntType) -> Val:
        """A held value as a contribution to a larger code, at an offset."""
        return self.asm.shl(self.asm.resize(self.code(kind, value), into), offset, into)

    def field(self, kind: Record, record: Val, index: int) -> Val:
        """A field of a record."""
        return self.part(kind.fields[index][1], record, field_offset(kind, index))

    def record(self, kind: Record, values: list[Val]) -> Val:
        """A record of held values, one for each field."""
        out: Val = 0
        for index, ((_, item), value) in enumerate(zip(kind.fields, values, strict=True)):
            out = self.asm.bor(out, self.placed(item, value, field_offset(kind, index), register(kind)))
        return out

    def is_some(self, kind: Option, option: Val) -> Val:
        """Whether an option is some."""
        if is_scalar(kind):
            return self.asm.cmp("!=", option, 0)
        return self.asm.cmp("!=", self.asm.bits(option, width(kind.item), 1), 0)

    def unwrapped(self, kind: Option, option: Val) -> Val:
        """The item of an option known to be some."""
        if is_scalar(kind):
            return self.held(kind.item, self.asm.sub(option, 1))
        return self.part(kind.item, option, 0)

    def some(self, kind: Option, item: Val) -> Val:
        """An option that holds an item."""
        code = self.asm.resize(self.code(kind.item, item), register(kind))
        if is_scalar(kind):
            return self.asm.add(code, 1)
        return self.asm.bor(code, 1 << width(kind.item))

    def tag(self, kind: Union, union: Val) -> Val:
        """The variant's position, 64 bits wide."""
        return self.asm.bits(union, payload_width(kind), width(kind) - payload_width(kind))

    def payload(self, kind: Union, union: Val, tag: int) -> Val:
        """The record of a union known to be of a variant."""
        return self.part(kind.variants[tag][1], union, 0)

    def variant(self, kind: Union, tag: int, record: Val) -> Val:
        """A union of a variant and its record."""
        return self.asm.bor(self.asm.resize(record, register(kind)), tag << payload_width(kind))

    def length(self, kind: Seq | Bag, items: Val) -> Val:
        """How many items there are."""
        return self.asm.bits(items, 0, length_bits(kind))

    def slot_offset(self, kind: Seq | Bag, index: Val) -> Val:
        """Where a slot's code starts."""
        size = width(kind.item)
        return self.asm.sub(length_bits(kind) + (kind.limit - 1) * size, self.asm.mul(index, size))

    def slot(self, kind: Seq | Bag, items: Val, index: Val) -> Val:
        """The held value in a slot (whatever is there beyond the length)."""
        return self.part(kind.item, items, self.slot_offset(kind, index))

    def key_offset(self, kind: Map, position: Val) -> Val:
        """Where the value at a key's position starts."""
        size = width(kind.value)
        return self.asm.sub((key_count(kind) - 1) * size, self.asm.mul(position, size))

    # ------------------------------------------------------------ ranks

    def rank(self, kind: Type, value: Val) -> Val:
        """A held value's position among the values of its type."""
        asm = self.asm
        if is_scalar(kind):
            return asm.resize(self.code(kind, value), I64)
        match kind:
            case Option():
                inner = asm.add(1, self.rank(kind.item, self.unwrapped(kind, value)))
                return asm.select(self.is_some(kind, value), inner, 0)
            case Record():
                return self._radix([(self.field(kind, value, i), item) for i, (_, item) in enumerate(kind.fields)])
            case Map():
                count = key_count(kind)
                return self._radix([(self.part(kind.value, value, self.key_offset(kind, k)), kind.value) for k in range(count)])
            case Union():
                return self._union_rank(kind, value)
            case Set():
                return self._set_rank(kind, value)
            case Seq():
                return self._seq_rank(kind, value)
        raise Unsupported("a set of bags")

    def _radix(self, parts: list[tuple[Val, Type]]) -> Val:
        total: Val = 0
        for value, kind in parts:
            total = self.asm.add(self.asm.mul(total, cardinality(kind)), self.rank(kind, value))
        return total

    def _union_rank(self, kind: Union, value: Val) -> Val:
        tag, total, before = self.tag(kind, value), 0, 0
        result: Val = total
        for index, (_, record) in enumerate(kind.variants):
            rank = self.asm.add(before, self.rank(record, self.payload(kind, value, index)))
            result = self.asm.select(self.asm.cmp("==", tag, index), rank, result)
            before += cardinality(record)
        return result

    def _set_rank(self, kind: Set, value: Val) -> Val:
        """Of the subsets in the order of their ascending tuples: each item adds 1, each value left
        out below the greatest item all the subsets that start with it."""
        size = set_size(kind)
        if isinstance(value, int):
            members = [item for rank, item in enumerate(sorted(universe(kind.item))) if value >> rank & 1]
            return positions(kind)[tuple(members)]
        if size > 64:
            raise Unsupported("an order of sets over more than 64 values")
        asm = self.asm
        below = asm.shr(mask(64), asm.intrinsic("ctlz", asm.b.or_(value, asm.val(1))))
        left_out = asm.band(asm.xor(value, mask(64)), below)
        skipped = asm.shr(asm.intrinsic("bitreverse", asm.val(left_out)), 64 - size) if size else 0
        return asm.select(asm.cmp("==", value, 0), 0, asm.add(asm.intrinsic("ctpop", value), skipped))

    def _seq_rank(self, kind: Seq, value: Val) -> Val:
        size, result = cardinality(kind.item), 0
        found: Val = result
        after = 1
        for index in reversed(range(kind.limit)):
            rank = self.asm.mul(self.rank(kind.item, self.slot(kind, value, index)), after)
            here = self.asm.add(1, self.asm.add(rank, found))
            found = self.asm.select(self.asm.cmp("<", index, self.length(kind, value)), here, 0)
            after = 1 + size * after
        return found

    def ordered(self, kind: Type, code: Val) -> Val:
        """A number as wide as the code whose order is the order of values (sets become ranks)."""
        if not _has_set(kind):
            return code
        if isinstance(kind, Set):
            return self.rank(kind, code)
        out: Val = 0
        for offset, part in _parts(kind):
            inner = self.ordered(part, self.asm.bits(code, offset, width(part)))
            out = self.asm.bor(out, self.asm.shl(self.asm.resize(inner, register(kind)), offset, register(kind)))
        if isinstance(kind, Union):
            raise Unsupported("a bag of messages with sets in them")
        covered = sum(mask(width(part)) << offset for offset, part in _parts(kind))
        return self.asm.bor(out, self.asm.band(code, mask(width(kind)) & ~covered))

    def nth(self, kind: Type, rank: Val) -> Val:
        """The held value at a position among the values of a type."""
        if isinstance(rank, int):
            return constant(kind, sorted(universe(kind))[rank])
        if is_scalar(kind):
            return self.held(kind, rank)
        table = self._table(kind)
        return self.asm.b.load(self.asm.b.gep(table, [self.asm.val(0), rank]))

    def _table(self, kind: Type) -> ir.Value:
        module = self.asm.function.module
        name = f"values.{len(module.globals)}"
        codes = [constant(kind, value) for value in sorted(universe(kind))]
        shape = ir.ArrayType(register(kind), len(codes))
        table = ir.GlobalVariable(module, shape, name)
        table.linkage = "internal"
        table.global_constant = True
        table.initializer = ir.Constant(shape, [ir.Constant(register(kind), code) for code in codes])
        return table

    # ------------------------------------------------------------ conversion

    def convert(self, value: Val, found: Type, wanted: Type) -> Val:
        """A held value of one type as one of another; what does not fit is cut off unseen."""
        if same_code(found, wanted):
            return value
        match found, wanted:
            case Option(), Option():
                item = self.convert(self.unwrapped(found, value), found.item, wanted.item)
                some = self.asm.band(self.some(wanted, item), mask(width(wanted)))
                return self.asm.select(self.is_some(found, value), some, 0, register(wanted))
            case Record(), Record():
                pairs = [(self.field(found, value, i), a, b) for i, ((_, a), (_, b)) in enumerate(
                    zip(found.fields, wanted.fields, strict=True))]  # fmt: skip
                return self.record(wanted, [self._cut(self.convert(v, a, b), b) for v, a, b in pairs])
            case Union(), Union():
                return self._convert_union(value, found, wanted)
            case Map(), Map():
                return self._convert_map(value, found, wanted)
            case Set(), Set():
                return self._convert_set(value, found, wanted)
            case (Seq(), Seq()) | (Bag(), Bag()):
                return self._convert_items(value, found, wanted)
        raise AssertionError((found, wanted))

    def _cut(self, value: Val, kind: Type) -> Val:
        """Keep a number that does not fit from spilling into its neighbours."""
        if isinstance(kind, Int):
            return self.asm.add(self.asm.band(self.asm.sub(value, kind.low), mask(width(kind))), kind.low)
        return value

    def _convert_union(self, value: Val, found: Union, wanted: Union) -> Val:
        tag, out = self.tag(found, value), 0
        result: Val = out
        pairs = zip(found.variants, wanted.variants, strict=True)
        for index, ((_, a), (_, b)) in enumerate(pairs):
            record = self.convert(self.payload(found, value, index), a, b)
            made = self.variant(wanted, index, self.asm.band(record, mask(width(b))))
            result = self.asm.select(self.asm.cmp("==", tag, index), made, result, register(wanted))
        return result

    def _convert_map(self, value: Val, found: Map, wanted: Map) -> Val:
        out: Val = 0
        for position in range(key_count(found)):
            item = self.part(found.value, value, self.key_offset(found, position))
            item = self._cut(self.convert(item, found.value, wanted.value), wanted.value)
            out = self.asm.bor(out, self.placed(wanted.value, item, self.key_offset(wanted, position), register(wanted)))
        return out

    def _convert_set(self, value: Val, found: Set, wanted: Set) -> Val:
        a, b = found.item, wanted.item
        if isinstance(a, Int) and isinstance(b, Int):
            kind = max(register(found), register(wanted), key=lambda t: t.width)
            wide, by = self.asm.resize(value, kind), a.low - b.low
            moved = self.asm.shl(wide, by, kind) if by >= 0 else self.asm.shr(wide, -by)
            return self.asm.band(self.asm.resize(moved, register(wanted)), mask(set_size(wanted)))
        table, out = positions(b), 0
        result: Val = out
        for rank, item in enumerate(sorted(universe(a))):
            if item in table:
                bit = self.asm.resize(self.asm.bits(value, rank, 1), register(wanted))
                result = self.asm.bor(result, self.asm.shl(bit, table[item], register(wanted)))
        return result

    def _convert_items(self, value: Val, found: Seq | Bag, wanted: Seq | Bag) -> Val:
        size = self.length(found, value)
        limit = min(found.limit, wanted.limit)
        out = self.asm.band(self.asm.resize(size, register(wanted)), mask(length_bits(wanted)))
        if same_bits(found.item, wanted.item):
            top = self.asm.shr(value, self.slot_offset(found, limit - 1)) if limit else 0
            kind = register(wanted)
            return self.asm.bor(out, self.asm.shl(self.asm.resize(top, kind), self.slot_offset(wanted, limit - 1), kind))
        for index in range(limit):
            item = self._cut(self.convert(self.slot(found, value, index), found.item, wanted.item), wanted.item)
            placed = self.placed(wanted.item, item, self.slot_offset(wanted, index), register(wanted))
            out = self.asm.bor(out, self.asm.select(self.asm.cmp("<", index, size), placed, 0, register(wanted)))
        return out

    def equal(self, a: Val, first: Type, b: Val, second: Type, common: Type) -> Val:
        """Whether two values of two types, both within `common`, are the same."""
        return self.asm.cmp("==", self.convert(a, first, common), self.convert(b, second, common))

    # ------------------------------------------------------------ what fits

    def within(self, value: Val, found: Type, wanted: Type) -> Val:
        """Whether a value of one type is also one of another, of the same shape."""
        verdicts: list[Val] = []
        self._misfits(value, found, wanted, True, lambda misfit, _: verdicts.append(self.asm.negate(misfit)))
        result: Val = True
        for fine in verdicts:
            result = self.asm.both(result, fine)
        return result

    def check(self, value: Val, found: Type, wanted: Type, undefined: ir.Block, beyond: ir.Block) -> None:
        """Leave for `undefined` or `beyond` at the first part of a value that does not fit."""

        def leave(misfit: Val, is_horizon: bool) -> None:  # noqa: FBT001
            self.asm.leave_if(misfit, beyond if is_horizon else undefined)

        self._misfits(value, found, wanted, True, leave)

    def _misfits(self, value: Val, found: Type, wanted: Type, present: Val, report: Callable[[Val, bool], None]) -> None:
        """Report, part by part, in what case a value does not fit and whether that is a horizon."""
        asm = self.asm
        if fits(found, wanted):
            return

        def tell(misfit: Val, *, horizon: bool) -> None:
            report(asm.both(present, misfit), horizon)

        match found, wanted:
            case Int(), Int():
                if found.low < wanted.low:
                    tell(asm.cmp("<", value, wanted.low), horizon=False)
                if found.high > wanted.high:
                    tell(asm.cmp("<", wanted.high, value), horizon=wanted.horizon)
            case Option(), Option():
                inner = asm.both(present, self.is_some(found, value))
                self._misfits(self.unwrapped(found, value), found.item, wanted.item, inner, report)
            case Record(), Record():
                for index, ((_, a), (_, b)) in enumerate(zip(found.fields, wanted.fields, strict=True)):
                    self._misfits(self.field(found, value, index), a, b, present, report)
            case Union(), Union():
                for index, ((_, a), (_, b)) in enumerate(zip(found.variants, wanted.variants, strict=True)):
                    here = asm.both(present, asm.cmp("==", self.tag(found, value), index))
                    self._misfits(self.payload(found, value, index), a, b, here, report)
            case Map(), Map():
                for position in range(key_count(found)):
                    item = self.part(found.value, value, self.key_offset(found, position))
                    self._misfits(item, found.value, wanted.value, present, report)
            case Set(), Set():
                for rank, item in enumerate(sorted(universe(found.item))):
                    horizon = misfit_of(item, wanted.item)
                    if horizon is not None:
                        tell(asm.cmp("!=", asm.bits(value, rank, 1), 0), horizon=horizon)
            case (Seq(), Seq()) | (Bag(), Bag()):
                size = self.length(found, value)
                if found.limit > wanted.limit:
                    tell(asm.cmp("<", wanted.limit, size), horizon=False)
                for index in range(found.limit):
                    here = asm.both(present, asm.cmp("<", index, size))
                    self._misfits(self.slot(found, value, index), found.item, wanted.item, here, report)


def misfit_of(value: object, kind: Type) -> bool | None:
    """Of a known value: None if it fits the type, else whether what it leaves is a horizon."""
    parts: list[tuple[object, Type]] = []
    match kind:
        case Int():
            assert isinstance(value, int)
            if value < kind.low:
                return False
            return kind.horizon if value > kind.high else None
        case Bool() | Enum() | Sort():
            return None
    assert isinstance(value, tuple)
    match kind:
        case Option() | Set():
            parts = [(item, kind.item) for item in value]
        case Seq() | Bag():
            if len(value) > kind.limit:
                return False
            parts = [(item, kind.item) for item in value]
        case Map():
            parts = [(item, kind.value) for item in value]
        case Record():
            parts = [(item, part) for item, (_, part) in zip(value, kind.fields, strict=True)]
        case Union():
            parts = [(value[1], kind.variants[value[0]][1])]
    return next((found for item, part in parts if (found := misfit_of(item, part)) is not None), None)


@lru_cache(maxsize=4096)
def _has_set(kind: Type) -> bool:
    match kind:
        case Set():
            return True
        case Option() | Seq() | Bag():
            return _has_set(kind.item)
        case Map():
            return _has_set(kind.value)
        case Record():
            return any(_has_set(item) for _, item in kind.fields)
        case Union():
            return any(_has_set(record) for _, record in kind.variants)
    return False


def _parts(kind: Type) -> list[tuple[int, Type]]:
    """The offsets and types of the codes inside a code."""
    match kind:
        case Option():
            return [(0, kind.item)]
        case Record():
            return [(field_offset(kind, i), item) for i, (_, item) in enumerate(kind.fields)]
        case Map():
            size, count = width(kind.value), key_count(kind)
            return [((count - 1 - k) * size, kind.value) for k in range(count)]
        case Seq() | Bag():
            size, below = width(kind.item), length_bits(kind)
            return [(below + i * size, kind.item) for i in range(kind.limit)]
    return []
