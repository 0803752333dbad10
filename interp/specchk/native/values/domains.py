"""Iteration over the items of a set, ascending, without building the set if possible.

Ranges, constant sets, `subsets(S)`, `maps(S, T)` and the elements of bags are enumerated as they are; any
other set is a mask whose bits are visited.  Few candidates are unrolled in optimised code, so that each item
is known while its code is built; many become a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from specchk.codegen import ir
from specchk.ir.nodes import Apply, Collect, Const, Expr, Let, Local
from specchk.ir.ops import Op
from specchk.ir.types import Bag, Int, Seq, Set, Type, cardinality, item_of, of_shape
from specchk.ir.typing import result_type
from specchk.meaning.values import universe
from specchk.native.machine.asm import I64, Asm, Val
from specchk.native.machine.layout import encode, is_enumerated, is_sparse, length_bits, mask, width
from specchk.native.values.codes import constant, register
from specchk.native.values.enumerated import Body, Enumerated
from specchk.native.values.fitting import Fitting
from specchk.native.values.sparse import ItemsListing
from specchk.search.engine import Placing

# Nested loops multiply their copies, so a loop inside others is unrolled only while there are few in all.
# Not in quick code: for a small model, emitting and compiling the copies takes longer than the search.
UNROLL = MappingProxyType({ir.Tier.OPTIMISED: 8, ir.Tier.QUICK: 1})
MAX_COPIES = 128
Member = tuple[Val, Val]  # is it in the set?, item


class Domains:
    """Enumerates domains.

    `value` returns the held value of an expression, `bind` gives a name a value, `fault` leaves for what is
    undefined if its argument is true.
    """

    def __init__(
        self, asm: Asm, codes: Fitting, value: Callable[[Expr], Val],
        bind: Callable[[Local, Val, Type], None], fault: Callable[[Val], None],
    ) -> None:  # fmt: skip
        self.asm = asm
        self.bind = bind
        self.enumerated = Enumerated(asm, codes, fault)
        self.codes = codes
        self.value = value
        self.copies = 1
        self.most_unrolled = UNROLL[asm.function.module.tier]

    def unrolls(self, size: int) -> bool:
        """Whether an iteration over this many candidates is unrolled here."""
        return size <= self.most_unrolled and self.copies * size <= MAX_COPIES

    def members(self, domain: Expr) -> list[Member] | None:
        """The candidates of a domain, ascending, if they are few; else None (use `each`)."""
        kind = item_kind(domain)
        match domain:
            case Const():
                items = domain.value
                assert isinstance(items, tuple)
                return [(True, constant(kind, v)) for v in items] if self.unrolls(len(items)) else None
            case Apply(op=Op.RANGE):
                return self._range_members(domain)
            case Apply(op=Op.SUBSETS):
                return self._subset_members(domain, kind)
            case Apply(op=Op.BAG_ITEMS):
                source = of_shape(domain.args[0].type, Bag)
                if not self.unrolls(source.limit):
                    return None
                return self._bag_members(source, self.value(domain.args[0]))
        assert isinstance(domain.type, Set)
        if is_enumerated(domain) or is_sparse(domain.type):
            return None
        size = cardinality(kind)
        if not self.unrolls(size):
            return None
        bits = self.value(domain)
        return [
            (self.asm.cmp("!=", self.asm.bits(bits, rank, 1), 0), constant(kind, item))
            for rank, item in enumerate(sorted(universe(kind)))
        ]

    def _range_members(self, domain: Apply) -> list[Member] | None:
        kind = of_shape(item_of(domain.type), Int)
        if not self.unrolls(kind.high - kind.low + 1):
            return None
        low, high = (self.value(arg) for arg in domain.args)
        inside = self.asm.cmp
        return [
            (self.asm.both(inside("<=", low, item), inside("<=", item, high)), item)
            for item in range(kind.low, kind.high + 1)
        ]

    def _subset_members(self, domain: Apply, kind: Type) -> list[Member] | None:
        assert isinstance(kind, Set)
        if is_sparse(kind) or not self.unrolls(cardinality(kind)):
            return None
        outside = self.asm.xor(self.value(domain.args[0]), mask(register(kind).width))
        codes = [encode(kind, item) for item in sorted(universe(kind))]
        return [(self.asm.cmp("==", self.asm.band(outside, code), 0), code) for code in codes]

    def _bag_members(self, kind: Bag, bag: Val) -> list[Member]:
        size, out = self.codes.length(kind, bag), []
        before: Val = 0
        for index in range(kind.limit):
            code = self.asm.bits(bag, self.codes.slot_offset(kind, index), width(kind.item))
            here = self.asm.cmp("<", index, size)
            # Bags are sorted, so equal items are neighbours.
            if index:
                here = self.asm.both(here, self.asm.cmp("!=", code, before))
            out.append((here, self.codes.held(kind.item, code)))
            before = code
        return out

    def each(self, domain: Expr, body: Body) -> None:
        """Run a body for each item; the body may jump out."""
        with Placing(domain.span):
            members = self.members(domain)
            if members is None:
                self._loop(domain, body)
                return
        live = [member for member in members if member[0] is not False]
        self.copies *= max(1, len(live))
        for present, item in live:
            self.asm.when(present, lambda item=item: body(item))  # type: ignore[misc]
        self.copies //= max(1, len(live))

    def _loop(self, domain: Expr, body: Body) -> None:
        kind = item_kind(domain)
        match domain:
            case Apply(op=Op.RANGE):
                # Both ends before the loop: if one has no value, neither has the range, as in the evaluator,
                # even if nothing is between them.
                low, high = (self.value(arg) for arg in domain.args)
                self.asm.loop(low, high, body)
            case Apply(op=Op.SUBSETS, args=(items,)):
                self.enumerated.subsets(of_shape(kind, Set), self.value(items), body)
            case Apply(op=Op.MAPS, args=args):
                keys, values = [(of_shape(arg.type, Set), self.value(arg)) for arg in args]
                self.enumerated.maps(of_shape(kind, Set), keys, values, body)
            case Let() if is_enumerated(domain):
                self.bind(domain.local, self.value(domain.value), domain.value.type)
                self.each(domain.body, body)
            case Collect() if is_enumerated(domain):
                # The items themselves: a set of them would only be built to be taken apart.
                self.each(domain.binders[0][1], lambda item: self._if_kept(domain, item, body))
            case Apply(op=Op.BAG_ITEMS):
                source = of_shape(domain.args[0].type, Bag)
                self._loop_bag(source, self.value(domain.args[0]), body)
            case Const(type=Set() as listed) if is_sparse(listed):
                table, count = self.table(domain)
                self.asm.loop(0, count - 1, lambda index: body(
                    self.codes.held(kind, self.asm.load(table, index))))  # fmt: skip
            case _:
                assert isinstance(domain.type, Set)
                self.codes.each_item(domain.type, self.value(domain), body)

    def _if_kept(self, domain: Collect, item: Val, body: Body) -> None:
        ((local, listed),) = domain.binders
        self.bind(local, item, item_kind(listed))
        is_kept = True if domain.condition is None else self.value(domain.condition)
        self.asm.when(is_kept, lambda: body(item))

    def table(self, domain: Const) -> tuple[ir.Value, int]:
        """The codes of a constant set's items in memory, ascending, whatever their number."""
        assert isinstance(domain.value, tuple)
        kind = item_kind(domain)
        codes = [encode(kind, item) for item in domain.value]
        table = self.asm.table("items", I64, codes)
        return self.asm.b.gep(table, [self.asm.val(0), self.asm.val(0)]), len(codes)

    def _loop_bag(self, kind: Bag, bag: Val, body: Body) -> None:
        if kind.limit == 0:
            return
        asm = self.asm

        def code_at(index: Val) -> Val:
            return asm.bits(bag, self.codes.slot_offset(kind, index), width(kind.item), register(kind))

        def visit(index: Val) -> None:
            here, before = code_at(index), code_at(asm.max(asm.sub(index, 1), 0))
            fresh = asm.either(asm.cmp("==", index, 0), asm.cmp("!=", here, before))
            asm.when(fresh, lambda: body(self.codes.held(kind.item, here)))

        asm.loop(0, asm.sub(self.codes.length(kind, bag), 1), visit)

    def added(self, kind: Bag, bag: Val, item: Val) -> Val:
        """A bag, not full, with one more item inserted at its place."""
        asm, size, shape = self.asm, width(kind.item), register(kind)
        code = self.codes.code(kind.item, item)
        # The place is the number of items that are not greater: counting needs no branch, and finds the end
        # of equal items.
        at = self._count(kind, bag, lambda other: asm.negate(asm.below(*self._keys(kind, code, other))))
        if size == 0:
            return asm.add(bag, 1)
        shift = self.codes.slot_offset(kind, at)  # of the new slot; lower ones move down by one
        low = self._low_mask(asm.add(shift, size), shape)
        end = length_bits(kind)  # of the lowest slot
        slots = asm.band(bag, mask(shape.width) & ~mask(end))
        moved = asm.shr(asm.band(slots, low), size)
        kept = asm.band(slots, asm.xor(low, mask(shape.width)))
        moved = asm.band(moved, mask(shape.width) & ~mask(end))
        new = asm.shl(asm.resize(code, shape), shift, shape)
        length = asm.resize(asm.add(self.codes.length(kind, bag), 1), shape)
        return asm.bor(asm.bor(kept, moved), asm.bor(new, length))

    def removed(self, kind: Bag, bag: Val, item: Val) -> Val:
        """A bag without one occurrence of an item that it contains."""
        asm, size, shape = self.asm, width(kind.item), register(kind)
        code = self.codes.code(kind.item, item)
        at = self._count(kind, bag, lambda other: asm.below(*self._keys(kind, other, code)))
        length = asm.resize(asm.sub(self.codes.length(kind, bag), 1), shape)
        if size == 0:
            return length
        end = length_bits(kind)  # of the lowest slot
        slots = asm.band(bag, mask(shape.width) & ~mask(end))
        low = self._low_mask(self.codes.slot_offset(kind, at), shape)  # below the removed slot
        above = asm.xor(
            self._low_mask(asm.add(self.codes.slot_offset(kind, at), size), shape), mask(shape.width)
        )
        moved = asm.shl(asm.band(slots, low), size, shape)
        return asm.bor(asm.bor(asm.band(slots, above), moved), length)

    def _keys(self, kind: Bag, a: Val, b: Val) -> tuple[Val, Val]:
        return self.codes.ordered(kind.item, a), self.codes.ordered(kind.item, b)

    def _low_mask(self, size: Val, shape: ir.IntType) -> Val:
        """The lowest `size` bits, at least one."""
        return self.asm.shr(mask(shape.width), self.asm.sub(shape.width, size), shape)

    def count(self, kind: Bag | Seq, items: Val, item: Val) -> Val:
        """The number of occurrences of an item in a sequence or bag."""
        code = self.codes.code(kind.item, item)
        return self._count(kind, items, lambda other: self.asm.cmp("==", other, code))

    def _count(self, kind: Bag | Seq, items: Val, test: Callable[[Val], Val]) -> Val:
        size = self.codes.length(kind, items)
        total: Val = 0
        for index in range(kind.limit):
            other = self.asm.bits(items, self.codes.slot_offset(kind, index), width(kind.item))
            hit = self.asm.both(self.asm.cmp("<", index, size), test(other))
            total = self.asm.add(total, self.asm.resize(hit, I64))
        return total

    def contains(self, kind: Bag | Seq, items: Val, item: Val) -> Val:
        """Whether an item is in a sequence or bag."""
        return self.asm.cmp("!=", self.count(kind, items, item), 0)

    def mask_of(self, kind: Bag | Seq, items: Val, wanted: Set) -> Val:
        """The set of the items of a sequence or bag."""
        if is_sparse(wanted):
            return self._listing_of(kind, items, wanted)
        size, shape = self.codes.length(kind, items), register(wanted)
        out: Val = 0
        for index in range(kind.limit):
            item = self.codes.convert(self.codes.slot(kind, items, index), kind.item, wanted.item)
            bit = self.asm.shl(1, self.asm.resize(self.codes.rank(wanted.item, item), shape), shape)
            present = self.asm.cmp("<", index, size)
            out = self.asm.bor(out, self.asm.select(present, bit, 0, shape))
        return out

    def _listing_of(self, kind: Bag | Seq, items: Val, wanted: Set) -> Val:
        asm, listing = self.asm, ItemsListing(self.codes.sparse, wanted)

        def put(index: Val) -> None:
            item = self.codes.convert(self.codes.slot(kind, items, index), kind.item, wanted.item)
            listing.add(asm.resize(self.codes.code(wanted.item, item), I64))

        if kind.limit:
            asm.loop(0, asm.sub(self.codes.length(kind, items), 1), put)
        return listing.packed()


def item_kind(domain: Expr) -> Type:
    """The type of the items enumerated from a domain."""
    if isinstance(domain, Apply) and domain.op in (Op.SUBSETS, Op.MAPS):
        return item_of(result_type(domain.op, domain.args))
    if isinstance(domain, Apply) and domain.op is Op.BAG_ITEMS:
        return item_of(domain.args[0].type)
    return item_of(domain.type)
