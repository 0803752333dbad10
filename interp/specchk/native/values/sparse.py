"""Sparse sets: codes that list their items, ascending (`native.machine.layout`).

An operation is a function of the kernel, built once for each type of set: it unpacks codes into arrays of
items, a word each, works on these, and packs the result.

    code    | item 0 | item 1 | ... | empty slots: 0 | length |      item 0 highest
    array   items[0] < items[1] < ... < items[length - 1]

Items ascend in the order of values, which is the order of codes unless items contain dense sets
(`Codes.ordered`).  No result is longer than its type has slots: a superfluous item is dropped, and that is
noted at `Asm.overflow`.  Callers of the kernel check that before any finding counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from specchk.codegen import ir
from specchk.ir.types import Set, cardinality
from specchk.native.machine.asm import I1, I64, PTR, Asm, Val
from specchk.native.machine.layout import WORD, length_bits, slots_of, width
from specchk.native.values.codes import Codes, has_set, register

I128 = ir.IntType(128)
Build = Callable[[Asm], None]


class Sparse:
    """Builds operations on sparse sets at the assembler's current position; an item is its code, a word."""

    def __init__(self, asm: Asm) -> None:
        self.asm = asm

    def size(self, kind: Set, items: Val) -> Val:
        """The number of items of a set."""
        return self.asm.bits(items, 0, length_bits(kind))

    def each(self, kind: Set, items: Val, body: Callable[[Val], None]) -> None:
        """Run a body for each item, ascending; the body may jump out."""
        asm, words = self.asm, _spilled(self.asm, kind, items)
        asm.loop(0, asm.sub(self.size(kind, items), 1), lambda index: body(_slot(asm, kind, words, index)))

    def contains(self, kind: Set, items: Val, item: Val) -> Val:
        """Whether an item is in a set."""
        given = [(items, register(kind)), (item, I64)]
        return self._called(kind, "contains", given, I1, lambda asm: _contains(asm, kind))

    def added(self, kind: Set, items: Val, item: Val) -> Val:
        """A set with one more item."""
        shape = register(kind)

        def build(asm: Asm) -> None:
            given, code, asm.overflow = asm.function.args
            sparse = Sparse(asm)
            out = ItemsListing(sparse, kind, *sparse.unpacked(kind, given))
            out.add(code)
            asm.b.ret(out.packed())

        return self._called(kind, "added", [(items, shape), (item, I64), (self._overflow, PTR)], shape, build)

    def united(self, kind: Set, a: Val, b: Val) -> Val:
        """The items of either set."""
        shape = register(kind)

        def build(asm: Asm) -> None:
            left, right, asm.overflow = asm.function.args
            asm.b.ret(_merge(asm, kind, left, right))

        return self._called(kind, "united", [(a, shape), (b, shape), (self._overflow, PTR)], shape, build)

    def unpacked(self, kind: Set, items: Val) -> tuple[ir.Value, Val]:
        """The items of a set as an array, and their number."""
        array = self.asm.buffer(slots_of(kind) + 1)

        def build(asm: Asm) -> None:
            given, out = asm.function.args
            words, count = _spilled(asm, kind, given), Sparse(asm).size(kind, given)
            asm.loop(0, asm.sub(count, 1), lambda i: asm.store(_slot(asm, kind, words, i), out, i))
            asm.b.ret(asm.val(count))

        return array, self._called(kind, "unpacked", [(items, register(kind)), (array, PTR)], I64, build)

    def packed(self, kind: Set, array: ir.Value, count: Val) -> Val:
        """The set of the items in an array."""
        given = [(array, PTR), (count, I64)]
        return self._called(kind, "packed", given, register(kind), lambda asm: _pack(asm, kind))

    def add(self, kind: Set, array: ir.Value, count: Val, item: Val) -> Val:
        """Insert an item at its place in an array, unless it is present; returns the number of items."""
        given = [(array, PTR), (count, I64), (item, I64), (self._overflow, PTR)]
        return self._called(kind, "add", given, I64, lambda asm: _add(asm, kind))

    def listed(self, kind: Set, table: ir.Value, count: int, item: Val) -> Val:
        """Whether an item is in a sorted table."""

        def build(asm: Asm) -> None:
            array, size, code = asm.function.args
            asm.b.ret(_search(asm, kind, size, code, lambda i: asm.load(array, i)))

        return self._called(kind, "listed", [(table, PTR), (count, I64), (item, I64)], I1, build)

    @property
    def _overflow(self) -> ir.Value:
        # Null if nothing can overflow: renaming the items of a set does not enlarge it.
        return self.asm.overflow if self.asm.overflow is not None else ir.ConstantValue(PTR, None)

    def _called(
        self, kind: Set, name: str, given: Sequence[tuple[Val, ir.Type]], result: ir.Type, build: Build
    ) -> ir.Value:
        """The result of a function of the module, built on first use."""
        order = kind.item if has_set(kind.item) else width(kind.item)
        # The last part is whether a set may have more items than slots at all.
        parts = (order, slots_of(kind), slots_of(kind) < cardinality(kind.item))
        full = f"sparse.{name}.{hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}"
        module = self.asm.function.module
        if full not in module.globals:
            asm = Asm.of(module, full, [type_ for _, type_ in given], result)
            build(asm)
            asm.finish()
        return self.asm.b.call(module.function(full), [self.asm.val(value, type_) for value, type_ in given])


class ItemsListing:
    """An array of items that is converted to a set."""

    def __init__(self, sparse: Sparse, kind: Set, array: ir.Value | None = None, count: Val = 0) -> None:
        self.sparse = sparse
        self.kind = kind
        self.array = sparse.asm.buffer(slots_of(kind) + 1) if array is None else array
        self.count = sparse.asm.cell(I64, count)

    def add(self, item: Val) -> None:
        """Insert an item at its place, unless it is present."""
        asm = self.sparse.asm
        after = self.sparse.add(self.kind, self.array, asm.b.load(self.count), item)
        asm.b.store(after, self.count)

    def append(self, item: Val) -> None:
        """Append an item that is greater than all others."""
        asm, count = self.sparse.asm, self.sparse.asm.b.load(self.count)

        def put() -> None:
            asm.store(item, self.array, count)
            asm.b.store(asm.add(count, 1), self.count)

        asm.when(_is_full(asm, self.kind, count), lambda: _note_overflow(asm, self.kind), put)

    def packed(self) -> Val:
        """The items as a set."""
        return self.sparse.packed(self.kind, self.array, self.sparse.asm.b.load(self.count))


def _is_full(asm: Asm, kind: Set, count: Val) -> Val:
    return asm.cmp("==", count, slots_of(kind))


def _note_overflow(asm: Asm, kind: Set) -> None:
    # If each value has a slot, only values that do not fit the type can be in the way, and these do not count
    # (`Fitting.convert`).
    if asm.overflow is not None and slots_of(kind) < cardinality(kind.item):
        asm.store(1, asm.overflow, 0)


def _key(asm: Asm, kind: Set, item: Val) -> Val:
    """A number whose order is the order of items."""
    return asm.resize(Codes(asm).ordered(kind.item, item), I64)


def _words(kind: Set) -> int:
    return max(1, -(-width(kind) // WORD))


def _spilled(asm: Asm, kind: Set, items: Val) -> ir.Value:
    """The words of a code in memory, with one more word after them."""
    words, shape = asm.buffer(_words(kind) + 1), register(kind)
    # In the entry block an integer of many words would do as well; here a slot's place is computed.
    asm.b.store(asm.val(items, shape), asm.b.bitcast(words, shape.as_pointer()), align=8)
    asm.store(0, words, _words(kind))
    return words


def _place(asm: Asm, kind: Set, index: Val) -> tuple[Val, Val]:
    """The word in which a slot starts, and the bit in it."""
    first = length_bits(kind) + (slots_of(kind) - 1) * width(kind.item)
    offset = asm.sub(first, asm.mul(index, width(kind.item)))
    return asm.shr(offset, 6), asm.band(offset, WORD - 1)


def _slot(asm: Asm, kind: Set, words: ir.Value, index: Val) -> Val:
    """The item in a slot of a spilled code."""
    word, bit = _place(asm, kind, index)
    low, high = asm.load(words, word), asm.load(words, asm.add(word, 1))
    both = asm.bor(asm.resize(low, I128), asm.shl(asm.resize(high, I128), WORD, I128))
    return asm.bits(asm.shr(both, bit, I128), 0, width(kind.item))


def _pack(asm: Asm, kind: Set) -> None:
    array, count = asm.function.args
    words, shape = asm.buffer(_words(kind) + 1), register(kind)
    for index in range(_words(kind) + 1):
        asm.store(0, words, index)

    def put(index: ir.Value) -> None:
        word, bit = _place(asm, kind, index)
        both = asm.shl(asm.resize(asm.load(array, index), I128), bit, I128)
        for place, part in ((word, both), (asm.add(word, 1), asm.shr(both, WORD, I128))):
            asm.store(asm.bor(asm.load(words, place), asm.resize(part, I64)), words, place)

    asm.loop(0, asm.sub(count, 1), put)
    code = asm.b.load(asm.b.bitcast(words, shape.as_pointer()), align=8)
    asm.b.ret(asm.bor(code, asm.resize(count, shape)))


def _search(asm: Asm, kind: Set, count: Val, item: Val, at: Callable[[Val], Val]) -> Val:
    """Whether an item is in a sorted array."""
    low, high, wanted = asm.cell(I64), asm.cell(I64, count), _key(asm, kind, item)

    def halve() -> None:
        middle = asm.shr(asm.add(asm.b.load(low), asm.b.load(high)), 1)
        is_less = asm.below(_key(asm, kind, at(middle)), wanted)
        asm.b.store(asm.select(is_less, asm.add(middle, 1), asm.b.load(low)), low)
        asm.b.store(asm.select(is_less, asm.b.load(high), middle), high)

    asm.while_(lambda: asm.below(asm.b.load(low), asm.b.load(high)), halve)
    place = asm.b.load(low)
    return asm.pick(I1, asm.below(place, count), lambda: asm.cmp("==", at(place), item), lambda: False)


def _contains(asm: Asm, kind: Set) -> None:
    items, item = asm.function.args
    words, count = _spilled(asm, kind, items), asm.val(Sparse(asm).size(kind, items))
    asm.b.ret(asm.val(_search(asm, kind, count, item, lambda i: _slot(asm, kind, words, i)), I1))


def _add(asm: Asm, kind: Set) -> None:
    array, count, item, asm.overflow = asm.function.args
    at, wanted, same = asm.cell(I64, count), _key(asm, kind, item), asm.block("same")

    def before() -> Val:
        return asm.load(array, asm.sub(asm.b.load(at), 1))

    def is_greater() -> Val:
        some = asm.cmp("<", 0, asm.b.load(at))
        return asm.pick(I1, some, lambda: asm.below(wanted, _key(asm, kind, before())), lambda: False)

    # From the end, since most sets made here are made in order.
    asm.while_(is_greater, lambda: asm.bump(at, 0, -1))
    some = asm.cmp("<", 0, asm.b.load(at))
    asm.leave_if(asm.pick(I1, some, lambda: asm.cmp("==", before(), item), lambda: False), same)

    def put() -> None:
        place = asm.b.load(at)

        def move(step: ir.Value) -> None:
            index = asm.sub(count, step)
            asm.store(asm.load(array, asm.sub(index, 1)), array, index)

        asm.loop(0, asm.sub(asm.sub(count, place), 1), move)
        asm.store(item, array, place)
        asm.b.ret(asm.add(count, 1))
        asm.enter(asm.block("dead"))

    asm.when(_is_full(asm, kind, count), lambda: _note_overflow(asm, kind), put)
    asm.fall_into(same)
    asm.b.ret(count)


def _merge(asm: Asm, kind: Set, left: Val, right: Val) -> Val:
    """Merge both lists in one pass."""
    sparse = Sparse(asm)
    (a, size_a), (b, size_b) = sparse.unpacked(kind, left), sparse.unpacked(kind, right)
    i, j, out = asm.cell(I64), asm.cell(I64), ItemsListing(sparse, kind)

    def more() -> Val:
        return asm.either(asm.below(asm.b.load(i), size_a), asm.below(asm.b.load(j), size_b))

    def step() -> None:
        at_a, at_b = asm.b.load(i), asm.b.load(j)
        has_a, has_b = asm.below(at_a, size_a), asm.below(at_b, size_b)
        # After the last item there is one more word, whose content decides nothing.
        x, y = asm.load(a, at_a), asm.load(b, at_b)
        key_x, key_y = _key(asm, kind, x), _key(asm, kind, y)
        take_a = asm.both(has_a, asm.either(asm.negate(has_b), asm.negate(asm.below(key_y, key_x))))
        take_b = asm.both(has_b, asm.either(asm.negate(has_a), asm.negate(asm.below(key_x, key_y))))
        out.append(asm.select(take_a, x, y))
        asm.b.store(asm.add(at_a, asm.resize(take_a, I64)), i)
        asm.b.store(asm.add(at_b, asm.resize(take_b, I64)), j)

    asm.while_(more, step)
    return out.packed()
