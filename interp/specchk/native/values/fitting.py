"""Conversion between types: two types of one shape may differ in intervals and limits, and so in codes.

`convert` converts from one to the other; `check` finds parts that do not fit: one outside its type is
undefined, one above a horizon is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from specchk.codegen import ir
from specchk.ir.types import Bag, Int, Map, Option, Record, Seq, Set, Type, Union, fits
from specchk.meaning.evaluate import misfit
from specchk.meaning.values import positions, universe
from specchk.native.machine import layout
from specchk.native.machine.asm import I1, I64, Asm, Val
from specchk.native.machine.layout import mask, width
from specchk.native.values.codes import Codes, register
from specchk.native.values.sparse import ItemsListing, Sparse


@lru_cache(maxsize=4096)
def same_code(a: Type, b: Type) -> bool:
    """Whether both types have the same held form for common values, so that conversion is a no-op."""
    match a, b:
        # A number is held as itself, whatever its interval; only inside something larger does it become a
        # code.
        case Int(), Int():
            return True
        case Option(), Option():
            return layout.is_scalar(a) == layout.is_scalar(b) and same_bits(a.item, b.item)
        case Set(), Set() if layout.is_sparse(a) is not layout.is_sparse(b):
            return False
        case Set(), Set() if layout.is_sparse(a):
            return layout.slots_of(a) == layout.slots_of(b) and same_bits(a.item, b.item)
        case Set(), Set():
            # The bits of a set are by rank, and ranks of composite items depend on every interval in them. If
            # items have as many bits, as in 0..128 and 0..255, sets may still differ in words.
            same = same_bits(a.item, b.item) and (a.item == b.item or _same_ranks(a.item, b.item))
            return same and register(a) == register(b)
        case Seq() | Bag(), Seq() | Bag():
            return type(a) is type(b) and a.limit == b.limit and same_bits(a.item, b.item)
        case Map(), Map():
            return same_bits(a.value, b.value)
        case Record(), Record():
            return all(same_bits(x, y) for (_, x), (_, y) in zip(a.fields, b.fields, strict=True))
        case Union(), Union():
            return layout.payload_width(a) == layout.payload_width(b) and all(
                same_code(x, y) for (_, x), (_, y) in zip(a.variants, b.variants, strict=True)
            )
    return a == b


def same_bits(a: Type, b: Type) -> bool:
    """Whether both types have the same width and code inside a larger code."""
    if isinstance(a, Int) and isinstance(b, Int):
        return a.low == b.low and width(a) == width(b)
    return width(a) == width(b) and same_code(a, b)


def _same_ranks(a: Type, b: Type) -> bool:
    return isinstance(a, Int) and isinstance(b, Int) and a.low == b.low


def is_empty(kind: Type) -> bool:
    """Whether a type is the item type of a collection without items."""
    return isinstance(kind, Int) and kind.high < kind.low


class Fitting(Codes):
    """Codes, and conversions between their types."""

    def __init__(self, asm: Asm) -> None:
        super().__init__(asm)
        self.sparse = Sparse(asm)

    def convert(self, value: Val, given: Type, wanted: Type) -> Val:
        """A held value of one type as a value of another; bits that do not fit are cut off unchecked."""
        if given is wanted or same_code(given, wanted):  # most are one object, and hashing two walks both
            return value
        if is_empty(given) or is_empty(wanted):
            return 0  # for the item of an empty collection, as in `none`: there is none, whatever its shape
        match given, wanted:
            case Option(), Option():
                item = self.convert(self.unwrapped(given, value), given.item, wanted.item)
                some = self.asm.band(self.some(wanted, item), mask(width(wanted)))
                return self.asm.select(self.is_some(given, value), some, 0, register(wanted))
            case Record(), Record():
                parts = list(self._inner(value, given, wanted))
                return self.joined(wanted, [self._cut(self.convert(v, a, b), b) for v, a, b, _ in parts])
            case Union(), Union():
                return self._convert_union(value, given, wanted)
            case Map(), Map():
                items = self._inner(value, given, wanted)
                return self.joined(wanted, (self._cut(self.convert(v, a, b), b) for v, a, b, _ in items))
            case Set(), Set():
                return self._convert_set(value, given, wanted)
            case Seq() | Bag(), Seq() | Bag():
                return self._convert_items(value, given, wanted)
        raise AssertionError((given, wanted))

    def _cut(self, value: Val, kind: Type) -> Val:
        """Truncate a number that does not fit, so that it does not overwrite its neighbours."""
        if isinstance(kind, Int):
            return self.asm.add(self.asm.band(self.asm.sub(value, kind.low), mask(width(kind))), kind.low)
        return value

    def _convert_union(self, value: Val, given: Union, wanted: Union) -> Val:
        tag = self.tag(given, value)
        result: Val = 0
        pairs = zip(given.variants, wanted.variants, strict=True)
        for index, ((_, a), (_, b)) in enumerate(pairs):
            record = self.convert(self.payload(given, value, index), a, b)
            made = self.variant(wanted, index, self.asm.band(record, mask(width(b))))
            result = self.asm.select(self.asm.cmp("==", tag, index), made, result, register(wanted))
        return result

    def _convert_set(self, value: Val, given: Set, wanted: Set) -> Val:
        a, b = given.item, wanted.item
        if layout.is_sparse(given) or layout.is_sparse(wanted):
            return self._convert_each(value, given, wanted)
        if isinstance(a, Int) and isinstance(b, Int):
            kind = max(register(given), register(wanted), key=lambda t: t.width)
            wide, by = self.asm.resize(value, kind), a.low - b.low
            moved = self.asm.shl(wide, by, kind) if by >= 0 else self.asm.shr(wide, -by)
            return self.asm.band(self.asm.resize(moved, register(wanted)), mask(layout.set_size(wanted)))
        new = positions(b)
        moves = [(old, new[item]) for old, item in enumerate(sorted(universe(a))) if item in new]
        return self.moved(value, moves, wanted)

    def _convert_each(self, value: Val, given: Set, wanted: Set) -> Val:
        """Convert item by item, between sets of which at least one is sparse."""
        asm, shape = self.asm, register(wanted)
        listing = ItemsListing(self.sparse, wanted) if layout.is_sparse(wanted) else None
        bits = None if listing is not None else asm.cell(shape)

        def put(item: Val) -> None:
            made = self._cut(self.convert(item, given.item, wanted.item), wanted.item)
            if listing is not None:
                listing.add(asm.resize(self.code(wanted.item, made), I64))
            elif bits is not None:
                # A value that does not fit has a rank that may exceed the width, and such a shift is poison.
                fitting = self.within(item, given.item, wanted.item)
                rank = asm.select(fitting, self.rank(wanted.item, made), 0)
                bit = asm.shl(asm.resize(fitting, shape), asm.resize(rank, shape), shape)
                asm.b.store(asm.val(asm.bor(asm.b.load(bits), bit), shape), bits)

        self.each_item(given, value, put)
        if listing is not None:
            return listing.packed()
        assert bits is not None
        return asm.b.load(bits)

    def each_item(self, kind: Set, items: Val, body: Callable[[Val], None]) -> None:
        """Run a body for each item of a set in held form, ascending; the body may jump out."""
        asm, shape = self.asm, register(kind)
        if layout.is_sparse(kind):
            self.sparse.each(kind, items, lambda code: body(self.held(kind.item, code)))
            return
        rest = asm.cell(shape, items)

        def visit() -> None:
            bits = asm.b.load(rest)
            rank = asm.resize(asm.intrinsic("cttz", bits), I64)
            asm.b.store(asm.b.and_(bits, asm.b.sub(bits, asm.val(1, shape))), rest)
            body(self.nth(kind.item, rank))

        if layout.set_size(kind):
            asm.while_(lambda: asm.cmp("!=", asm.b.load(rest), 0), visit)

    def _convert_items(self, value: Val, given: Seq | Bag, wanted: Seq | Bag) -> Val:
        size = self.length(given, value)
        limit = min(given.limit, wanted.limit)
        out = self.asm.band(self.asm.resize(size, register(wanted)), mask(layout.length_bits(wanted)))
        if same_bits(given.item, wanted.item):
            # The first slots are the highest, so the slots that both types have are moved as one block.
            top = self.asm.shr(value, self.slot_offset(given, limit - 1)) if limit else 0
            kind = register(wanted)
            return self.asm.bor(
                out, self.asm.shl(self.asm.resize(top, kind), self.slot_offset(wanted, limit - 1), kind)
            )
        for index in range(limit):
            item = self._cut(
                self.convert(self.slot(given, value, index), given.item, wanted.item), wanted.item
            )
            placed = self.placed(wanted.item, item, self.slot_offset(wanted, index), register(wanted))
            out = self.asm.bor(
                out, self.asm.select(self.asm.cmp("<", index, size), placed, 0, register(wanted))
            )
        return out

    def within(self, value: Val, given: Type, wanted: Type) -> Val:
        """Whether a value of one type is also a value of another, of the same shape."""
        verdicts: list[Val] = []
        self._misfits(value, given, wanted, True, lambda misfit, _: verdicts.append(self.asm.negate(misfit)))
        result: Val = True
        for fine in verdicts:
            result = self.asm.both(result, fine)
        return result

    def check(
        self, value: Val, given: Type, wanted: Type, undefined: ir.Block, above: Callable[[Val], None]
    ) -> None:
        """Leave for `undefined` if a value does not fit; pass to `above` if a part is above a horizon."""

        def report(outside: Val, is_horizon: bool) -> None:
            if is_horizon:
                above(outside)
            else:
                self.asm.leave_if(outside, undefined)

        self._misfits(value, given, wanted, True, report)

    def _misfits(
        self, value: Val, given: Type, wanted: Type, present: Val, report: Callable[[Val, bool], None]
    ) -> None:
        """Report, part by part, the condition under which a value does not fit, and whether by a horizon."""
        asm = self.asm
        # Most parts end here, so that checking a large value needs code only for the parts that can be wrong.
        if fits(given, wanted):
            return

        def add(misfit: Val, *, horizon: bool) -> None:
            report(asm.both(present, misfit), horizon)

        if is_empty(wanted):
            add(True, horizon=False)
            return

        match given, wanted:
            case Int(), Int():
                if given.low < wanted.low:
                    # Below first, as in `meaning.evaluate`: too small is a mistake even if the upper end is a
                    # horizon.
                    add(asm.cmp("<", value, wanted.low), horizon=False)
                if given.high > wanted.high:
                    add(asm.cmp("<", wanted.high, value), horizon=wanted.horizon)
            case Set(), Set() if layout.is_sparse(given):
                self._misfit_items(value, given, wanted, add)
            case Set(), Set():
                misfit_of = misfit(wanted.item)
                for rank, item in enumerate(sorted(universe(given.item))):
                    horizon = misfit_of(item)
                    if horizon is not None:
                        add(asm.cmp("!=", asm.bits(value, rank, 1), 0), horizon=horizon)
            case Seq() | Bag(), Seq() | Bag():
                if given.limit > wanted.limit:
                    add(asm.cmp("<", wanted.limit, self.length(given, value)), horizon=False)
        for part, a, b, here in self._inner(value, given, wanted):
            self._misfits(part, a, b, asm.both(present, here), report)

    def _misfit_items(self, value: Val, given: Set, wanted: Set, add: Callable[..., None]) -> None:
        """Report whether some item of a sparse set does not fit."""
        asm = self.asm
        cells = {is_horizon: asm.cell(I1) for is_horizon in (False, True)}

        def visit(item: Val) -> None:
            def note(misfit: Val, is_horizon: bool) -> None:
                cell = cells[is_horizon]
                asm.b.store(asm.val(asm.either(asm.b.load(cell), misfit), I1), cell)

            self._misfits(item, given.item, wanted.item, True, note)

        self.each_item(given, value, visit)
        for is_horizon, cell in cells.items():
            add(asm.b.load(cell), horizon=is_horizon)

    def _inner(self, value: Val, given: Type, wanted: Type) -> Iterator[tuple[Val, Type, Type, Val]]:
        """The parts of a value in order, with their types in both, and whether each is present."""
        match given, wanted:
            case Option(), Option():
                yield self.unwrapped(given, value), given.item, wanted.item, self.is_some(given, value)
            case Record(), Record():
                for index, ((_, a), (_, b)) in enumerate(zip(given.fields, wanted.fields, strict=True)):
                    yield self.field(given, value, index), a, b, True
            case Union(), Union():
                for index, ((_, c), (_, d)) in enumerate(zip(given.variants, wanted.variants, strict=True)):
                    here = self.asm.cmp("==", self.tag(given, value), index)
                    yield self.payload(given, value, index), c, d, here
            case Map(), Map():
                for at, _ in layout.parts_of(given):
                    yield self.part(given.value, value, at), given.value, wanted.value, True
            case Seq() | Bag(), Seq() | Bag():
                size = self.length(given, value)
                for index in range(given.limit):
                    here = self.asm.cmp("<", index, size)
                    yield self.slot(given, value, index), given.item, wanted.item, here
