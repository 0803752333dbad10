"""Symmetry in the kernel: a state is replaced by the least of its renamings.

The renamings are those of `search.symmetry`, so both engines agree on which states are one class;
"least" is by packed variables here, so the representatives may differ.  A renaming of a sort is a number with
four bits for each element, its new position.  If renamings are few, they are unrolled, with their numbers
known while building; many are a loop over a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from specchk.codegen import ir
from specchk.ir.types import Bag, Map, Option, Record, Seq, Set, Sort, Type, Union, cardinality, components
from specchk.ir.typing import sorts_in
from specchk.meaning.values import positions, universe
from specchk.native.machine.asm import I64, PTR, Asm, Val
from specchk.native.machine.layout import WORD, StateLayout, decode, encode, is_scalar, is_sparse, key_count
from specchk.native.values.codes import constant, register
from specchk.native.values.domains import Domains
from specchk.native.values.expressions import read_bits, write_bits
from specchk.native.values.fitting import Fitting
from specchk.native.values.sparse import ItemsListing
from specchk.search.engine import Unsupported
from specchk.search.symmetry import Renaming, renamer

# 4! - 1: the renamings of a sort of four elements without the identity; with five it would be 119 copies of
# the code.
UNROLLED = 23
# Of four bits each: as many positions as fit into a word.
NIBBLES = 16


class Renamed:
    """Builds the instructions that apply one renaming to codes."""

    def __init__(self, asm: Asm, codes: Fitting, renaming: Renaming | None, numbers: dict[str, Val]) -> None:
        self.asm = asm
        self.codes = codes
        self.renaming = renaming  # None when only known at run time
        self.numbers = numbers
        self.bags = Domains(asm, codes, _no_values, _no_values, _no_values)

    def touches(self, kind: Type) -> bool:
        """Whether the renaming changes any value of a type."""
        names = set(sorts_in(kind)) & set(self.numbers)
        if self.renaming is None:
            return bool(names)
        return any(list(self.renaming[name]) != sorted(self.renaming[name]) for name in names)

    def value(self, kind: Type, value: Val) -> Val:
        """The renamed value of a held value of a type."""
        if not self.touches(kind):
            return value
        # All new codes of a small type fit one constant, so that renaming it is a shift and a mask.
        if is_scalar(kind) and self.renaming is not None and cardinality(kind) <= NIBBLES:
            return self._looked_up(kind, value)
        match kind:
            case Sort():
                return self._nibble(self.numbers[kind.name], value)
            case Option():
                item = self.value(kind.item, self.codes.unwrapped(kind, value))
                return self.asm.select(
                    self.codes.is_some(kind, value), self.codes.some(kind, item), 0, register(kind)
                )
            case Record():
                fields = [
                    self.value(item, self.codes.field(kind, value, i))
                    for i, (_, item) in enumerate(kind.fields)
                ]
                return self.codes.joined(kind, fields)
            case Union():
                return self._union(kind, value)
            case Map():
                return self._map(kind, value)
            case Set():
                return self._set(kind, value)
            case Seq():
                return self._seq(kind, value)
            case Bag():
                return self._bag(kind, value)
        raise AssertionError(kind)

    def _nibble(self, number: Val, index: Val) -> Val:
        return self.asm.band(self.asm.shr(number, self.asm.mul(index, 4), I64), NIBBLES - 1)

    def _looked_up(self, kind: Type, value: Val) -> Val:
        assert self.renaming is not None
        rename = renamer(kind, self.renaming)
        table = sum(encode(kind, rename(decode(kind, code))) << 4 * code for code in range(cardinality(kind)))
        return self._nibble(table, value)

    def _new_positions(self, kind: Type) -> list[Val]:
        """For each value of a type, in order, the position of its image."""
        if isinstance(kind, Sort):
            return [self._nibble(self.numbers[kind.name], rank) for rank in range(len(kind.members))]
        if self.renaming is None:
            values = [constant(kind, value) for value in sorted(universe(kind))]
            return [self.codes.rank(kind, self.value(kind, value)) for value in values]
        rename, table = renamer(kind, self.renaming), positions(kind)
        return [table[rename(value)] for value in sorted(universe(kind))]

    # Keys move and values change: the value at an old key's position moves to the position of its renaming.
    def _map(self, kind: Map, value: Val) -> Val:
        new = self._new_positions(kind.key) if self.touches(kind.key) else list(range(key_count(kind)))
        out: Val = 0
        for old, position in enumerate(new):
            item = self.value(
                kind.value, self.codes.part(kind.value, value, self.codes.key_offset(kind, old))
            )
            placed = self.codes.placed(
                kind.value, item, self.codes.key_offset(kind, position), register(kind)
            )
            out = self.asm.bor(out, placed)
        return out

    def _set(self, kind: Set, value: Val) -> Val:
        if is_sparse(kind):
            return self._sparse(kind, value)
        new = self._new_positions(kind.item)
        known = [position for position in new if isinstance(position, int)]
        if len(known) == len(new):
            return self.codes.moved(value, enumerate(known), kind)
        out: Val = 0
        for old, position in enumerate(new):
            bit = self.asm.resize(self.asm.bits(value, old, 1), register(kind))
            out = self.asm.bor(out, self.asm.shl(bit, position, register(kind)))
        return out

    def _sparse(self, kind: Set, value: Val) -> Val:
        # The order of items changes, too; sorting an array is cheaper than looking for places in a code.
        listing = ItemsListing(self.codes.sparse, kind)

        def put(item: Val) -> None:
            renamed = self.codes.code(kind.item, self.value(kind.item, item))
            listing.add(self.asm.resize(renamed, I64))

        self.codes.each_item(kind, value, put)
        return listing.packed()

    def _union(self, kind: Union, value: Val) -> Val:
        tag = self.codes.tag(kind, value)
        result = value
        # All variants are computed and one is selected: a branch for each would cost more than the few
        # shifts.
        for index, (_, record) in enumerate(kind.variants):
            if self.touches(record):
                made = self.codes.variant(
                    kind, index, self.value(record, self.codes.payload(kind, value, index))
                )
                result = self.asm.select(self.asm.cmp("==", tag, index), made, result, register(kind))
        return result

    def _seq(self, kind: Seq, value: Val) -> Val:
        size, shape = self.codes.length(kind, value), register(kind)
        out: Val = self.asm.resize(size, shape)
        for index in range(kind.limit):
            item = self.value(kind.item, self.codes.slot(kind, value, index))
            # Slots behind the length must stay 0, or equal sequences would have different codes; renamed, a 0
            # there would become another element.
            placed = self.codes.placed(kind.item, item, self.codes.slot_offset(kind, index), shape)
            out = self.asm.bor(out, self.asm.select(self.asm.cmp("<", index, size), placed, 0, shape))
        return out

    def _bag(self, kind: Bag, value: Val) -> Val:
        size, shape = self.codes.length(kind, value), register(kind)
        # A bag is sorted, and renaming changes the order of its items: they are added again, one by one.
        out = self.asm.cell(shape)
        for index in range(kind.limit):

            def put(index: int = index) -> None:
                item = self.value(kind.item, self.codes.slot(kind, value, index))
                self.asm.b.store(self.bags.added(kind, self.asm.b.load(out), item), out)

            self.asm.when(self.asm.cmp("<", index, size), put)
        return self.asm.b.load(out)


def _no_values(*_: object) -> NoReturn:
    raise AssertionError("renaming evaluates no expressions")


def emit_canonical(module: ir.IRModule, layout: StateLayout, renamings: Sequence[Renaming]) -> ir.Function:
    """Emit `canonical(state)`: replace a state by the least of its renamings, in place."""
    asm = Asm.of(module, "canonical", [PTR], ir.VoidType())
    (state,) = asm.function.args
    words = [asm.load(state, index) for index in range(layout.words)]
    best = [asm.cell(I64, word) for word in words]
    if len(renamings) - 1 <= UNROLLED:
        # The first renaming is the identity, whose result is already in `best`.
        for renaming in renamings[1:]:
            numbers: dict[str, Val] = {name: _number(new) for name, new in renaming.items()}
            _try(asm, layout, words, best, Renamed(asm, Fitting(asm), renaming, numbers))
    else:
        _loop(asm, layout, words, best, renamings[1:])
    for index, cell in enumerate(best):
        asm.store(asm.b.load(cell), state, index)
    asm.end()
    return asm.function


def _number(new: Sequence[int]) -> int:
    if len(new) > NIBBLES:
        raise Unsupported(f"renaming a sort of {len(new)} elements")
    return sum(position << 4 * index for index, position in enumerate(new))


def _loop(
    asm: Asm, layout: StateLayout, words: Sequence[Val], best: list[ir.Value], renamings: Sequence[Renaming]
) -> None:
    # Sorted, so that the table of a program is the same in every process, and its object code is found again.
    names = sorted(renamings[0])
    flat = [_number(renaming[name]) for renaming in renamings for name in names]
    table = asm.table("renamings", I64, flat)

    def visit(index: Val) -> None:
        at = asm.mul(index, len(names))
        numbers: dict[str, Val] = {
            name: asm.b.load(asm.b.gep(table, [asm.val(0), asm.val(asm.add(at, i))]))
            for i, name in enumerate(names)
        }
        _try(asm, layout, words, best, Renamed(asm, Fitting(asm), None, numbers))

    asm.loop(0, len(renamings) - 1, visit)


def _try(asm: Asm, layout: StateLayout, words: Sequence[Val], best: list[ir.Value], renamed: Renamed) -> None:
    """Compute one renaming, cheap variables first, and keep it if it is less in this order."""
    done = asm.block("not_less")
    known, out = [asm.b.load(cell) for cell in best], list(words)
    is_less: Val = False
    for slots in _by_cost(layout, renamed):
        for slot in slots:
            place = layout.places[slot]
            if not renamed.touches(place.type):  # but others do: it is compared in every renaming
                continue
            value = renamed.codes.held(place.type, read_bits(asm, list(words), place.offset, place.width))
            code = renamed.codes.code(place.type, renamed.value(place.type, value))
            out = write_bits(asm, out, place.offset, place.width, code)
        new, old = _part(asm, layout, slots, out), _part(asm, layout, slots, known)
        # Most renamings lose in the first part; then the others are never computed.
        asm.leave_if(asm.both(asm.negate(is_less), asm.below(old, new)), done)
        is_less = asm.either(is_less, asm.below(new, old))
    asm.leave_if(asm.negate(is_less), done)
    for cell, word in zip(best, out, strict=True):
        asm.b.store(asm.val(word), cell)
    asm.fall_into(done)


def _by_cost(layout: StateLayout, renamed: Renamed) -> list[list[int]]:
    """The variables that any renaming changes: the cheap ones of a word together, then lists one by one.

    The same for all renamings, since the least of them is by one order.
    """
    cheap: dict[int, list[int]] = {}
    others: list[int] = []
    for slot, place in enumerate(layout.places):
        if not set(sorts_in(place.type)) & set(renamed.numbers):
            continue
        word = place.offset // WORD
        if place.offset + place.width > WORD * (word + 1) or any(map(_is_listed, components(place.type))):
            others.append(slot)
        else:
            cheap.setdefault(word, []).append(slot)
    return [*cheap.values(), *([slot] for slot in sorted(others, key=lambda slot: layout.places[slot].width))]


def _is_listed(kind: Type) -> bool:
    return isinstance(kind, Bag | Seq) or (isinstance(kind, Set) and is_sparse(kind))


def _part(asm: Asm, layout: StateLayout, slots: Sequence[int], words: Sequence[Val]) -> Val:
    """The bits of some variables of a state: of one, or of several in the same word."""
    places = [layout.places[slot] for slot in slots]
    if len(places) == 1:
        return read_bits(asm, list(words), places[0].offset, places[0].width)
    bits = sum((1 << place.width) - 1 << place.offset % WORD for place in places)
    return asm.band(words[places[0].offset // WORD], bits)
