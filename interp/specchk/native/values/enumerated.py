"""Sets of sets whose items are made one by one: the subsets of a set, and the maps from a set to a set.

What is visited depends on the values of these sets, not on their types, which may have any number of values.
"""

from __future__ import annotations

from collections.abc import Callable

from specchk.codegen import ir
from specchk.ir.types import MAX_LISTED_BITS, Record, Set, cardinality, of_shape
from specchk.native.machine.asm import I64, Asm, Val
from specchk.native.machine.layout import is_sparse, mask, set_size, width
from specchk.native.values.codes import register
from specchk.native.values.fitting import Fitting
from specchk.native.values.sparse import ItemsListing

Body = Callable[[Val], None]


class Enumerated:
    """Visits such items, ascending; `fault` leaves for what is undefined if its argument is true."""

    def __init__(self, asm: Asm, codes: Fitting, fault: Callable[[Val], None]) -> None:
        self.asm = asm
        self.codes = codes
        self.fault = fault

    def count(self, kind: Set, items: Val) -> Val:
        """The number of items of a set."""
        if is_sparse(kind):
            return self.codes.sparse.size(kind, items)
        return self.asm.resize(self.asm.intrinsic("ctpop", self.asm.val(items, register(kind))), I64)

    def check_subsets(self, kind: Set, items: Val) -> None:
        """Leave for what is undefined if a set has too many subsets."""
        if cardinality(kind.item) > MAX_LISTED_BITS:
            self.fault(self.asm.below(MAX_LISTED_BITS, self.count(kind, items)))

    def subsets(self, kind: Set, items: Val, body: Body) -> None:
        """Visit the subsets of a set."""
        asm = self.asm
        self.check_subsets(kind, items)
        if not is_sparse(kind):
            self._masks(register(kind), items, body)
            return
        array, count = self.codes.sparse.unpacked(kind, items)

        def visit(chosen: Val) -> None:
            listing = ItemsListing(self.codes.sparse, kind)

            def put(index: Val) -> None:
                is_in = asm.cmp("!=", asm.bits(chosen, index, 1), 0)
                asm.when(is_in, lambda: listing.append(asm.load(array, index)))

            asm.loop(0, asm.sub(count, 1), put)
            body(listing.packed())

        self._masks(I64, asm.sub(asm.shl(1, count), 1), visit)

    def _masks(self, shape: ir.IntType, items: Val, body: Body) -> None:
        """Visit the parts of a mask in the order of tuples: {}, {0}, {0, 1}, {0, 1, 2}, {0, 2}, {1}, ...

        After a part comes the one with the next item; without a next item, the greatest is dropped, and the
        one before it is replaced by the next.
        """
        asm, all_bits, done = self.asm, mask(shape.width), self.asm.block("all")
        items, current = asm.val(items, shape), asm.cell(shape)

        def ends(part: Val) -> tuple[Val, Val]:
            """A part without its greatest item, and the items above that."""
            zeros = asm.intrinsic("ctlz", asm.val(part, shape))
            # A shift by the width is poison, which a select does not propagate from its other side.
            upto = asm.select(asm.cmp("==", part, 0), 0, asm.shr(all_bits, zeros, shape), shape)
            return asm.band(part, asm.shr(upto, 1)), asm.band(items, asm.xor(upto, all_bits))

        def put(part: Val, above: Val) -> None:
            lowest = asm.band(above, asm.sub(asm.val(0, shape), above))
            asm.b.store(asm.val(asm.bor(part, lowest), shape), current)

        def visit() -> None:
            body(asm.b.load(current))
            part = asm.b.load(current)
            rest, above = ends(part)

            def replaced() -> None:
                asm.leave_if(asm.cmp("==", rest, 0), done)
                put(*ends(rest))

            asm.when(asm.cmp("!=", above, 0), lambda: put(part, above), replaced)

        asm.while_(lambda: True, visit)
        asm.fall_into(done)

    def maps(self, kind: Set, keys: tuple[Set, Val], values: tuple[Set, Val], body: Body) -> None:
        """Visit the maps with these keys and values; the value of the last key varies fastest."""
        asm, pair = self.asm, of_shape(kind.item, Record)
        (key_array, key_count), (value_array, value_count) = self._listed(*keys), self._listed(*values)
        total = asm.cell(I64, 1)

        def multiply(_: Val) -> None:
            asm.b.store(asm.val(asm.mul(asm.b.load(total), value_count)), total)
            self.fault(asm.below(1 << MAX_LISTED_BITS, asm.b.load(total)))

        asm.loop(0, asm.sub(key_count, 1), multiply)

        def visit(number: Val) -> None:
            listing = ItemsListing(self.codes.sparse, kind) if is_sparse(kind) else None
            bits, weight = asm.cell(register(kind)), asm.cell(I64, asm.b.load(total))

            def put(index: Val) -> None:
                base = asm.val(value_count)
                below = asm.b.udiv(asm.b.load(weight), base)
                asm.b.store(below, weight)
                places = asm.b.udiv(asm.val(number), below)
                digit = asm.sub(places, asm.mul(asm.b.udiv(places, base), base))
                at = self._item(keys[0], key_array, index), self._item(values[0], value_array, digit)
                parts = zip(at, (keys[0].item, values[0].item), pair.fields, strict=True)
                record = self.codes.joined(pair, [self.codes.convert(x, a, b) for x, a, (_, b) in parts])
                if listing is not None:
                    listing.append(asm.resize(record, I64))
                    return
                rank = asm.resize(self.codes.rank(pair, record), register(kind))
                one = asm.shl(1, rank, register(kind))
                asm.b.store(asm.val(asm.bor(asm.b.load(bits), one), register(kind)), bits)

            asm.loop(0, asm.sub(key_count, 1), put)
            body(asm.b.load(bits) if listing is None else listing.packed())

        asm.loop(0, asm.sub(asm.b.load(total), 1), visit)

    def _listed(self, kind: Set, items: Val) -> tuple[ir.Value, Val]:
        """The codes of a set's items in memory, ascending, and their number."""
        if is_sparse(kind):
            return self.codes.sparse.unpacked(kind, items)
        asm, array, count = self.asm, self.asm.buffer(set_size(kind) + 1), self.asm.cell(I64)

        def put(item: Val) -> None:
            asm.store(asm.resize(self.codes.code(kind.item, item), I64), array, asm.b.load(count))
            asm.advance(count)

        self.codes.each_item(kind, asm.val(items, register(kind)), put)
        return array, asm.b.load(count)

    def _item(self, kind: Set, array: ir.Value, index: Val) -> Val:
        code = self.asm.bits(self.asm.load(array, index), 0, width(kind.item))
        return self.codes.held(kind.item, code)
