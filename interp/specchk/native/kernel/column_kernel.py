"""Packed states as columns of plain values, as instructions.

`columns` takes states apart, a variable after the other: for each leaf (`machine.shapes`) its values and its
levels.  Not here: where these are put, and how they are packed (`machine.leaf_streams`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from specchk.codegen import ir
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Union
from specchk.meaning.values import positions, universe
from specchk.native.machine import layout
from specchk.native.machine.asm import I64, Asm, Val, code_type
from specchk.native.machine.layout import WORD, StateLayout, mask, width
from specchk.native.machine.leaf_streams import LeafWriter
from specchk.native.machine.shapes import Shape, TableShape

_EACH_BYTE = 0x0101010101010101
UNROLLED = 64  # copies of the code for the keys of a map


Packed = Callable[[Val, int], Val]  # reads some bits of a code, at most a word: given offset and number


def held_code(asm: Asm, value: Val, kind: ir.IntType = I64) -> Packed:
    """A code in a register, or a constant one."""
    return lambda offset, size: asm.resize(asm.bits(value, offset, size, kind), I64)


def state_in_memory(asm: Asm, address: ir.Value, words: int) -> Packed:
    """A state that is read from memory."""

    def bits(offset: Val, size: int) -> Val:
        if not size:
            return 0
        if isinstance(offset, int):
            word, low = divmod(offset, WORD)
            code = asm.shr(asm.load(address, word), low)
            if low + size > WORD:
                code = asm.bor(code, asm.shl(asm.load(address, word + 1), WORD - low))
            return asm.band(code, mask(size))
        word_, low_ = asm.shr(offset, 6), asm.band(offset, WORD - 1)
        first = asm.shr(asm.load(address, word_), low_)
        # The last word of all is read twice: the bits shifted in from there are cut off.
        after = asm.load(address, asm.min(asm.add(word_, 1), words - 1))
        # In two shifts, since a shift by 64 is not possible.
        second = asm.shl(asm.shl(after, 1), asm.sub(WORD - 1, low_))
        return asm.band(asm.bor(first, second), mask(size))

    return bits


def column_shapes(states: StateLayout) -> tuple[TableShape, tuple[Shape, ...]]:
    """The columns of a program's variables."""
    shapes = TableShape()
    return shapes, tuple([shapes.add(place.type) for place in states.places])


def emit_columns(module: ir.IRModule, of_states: StateLayout) -> None:
    """Emit `columns(block, states, count)`: the variables of packed states as columns."""
    asm = Asm.of(module, "columns", [I64.as_pointer()] * 3, ir.VoidType(), internal=False)
    block, states, count_ = asm.function.args
    shapes, columns = column_shapes(of_states)
    writer = LeafWriter(asm, shapes, block)
    emitter = ColumnEmitter(asm, writer)

    def some(first: Val, last: Val) -> None:
        # A loop for each variable, so that its values fit into registers.
        for place, shape in zip(of_states.places, columns, strict=True):
            writer.open(shape.leaves)

            def visit(index: ir.Value, at: int = place.offset, shape: Shape = shape) -> None:
                state = asm.at(states, asm.mul(index, of_states.words))
                emitter.emit(shape, state_in_memory(asm, state, of_states.words), at, 0)

            asm.loop(first, last, visit)
            writer.close()

    writer.fill(asm.b.ptrtoint(count_, I64), some)
    asm.end()


class ColumnEmitter:
    """Emits the instructions that decompose values."""

    def __init__(self, asm: Asm, writer: LeafWriter) -> None:
        self.asm, self.writer = asm, writer
        self._copies = 1

    def emit(self, shape: Shape, code: Packed, at: Val, repetition: Val) -> None:
        """Emit the value whose code begins at an offset."""
        match shape.kind:
            case Bool() | Int() | Enum() | Sort():
                self._leaf(shape, code(at, width(shape.kind)), repetition)
            case Option():
                self._option(shape, shape.kind, code, at, repetition)
            case Record() if not shape.kind.fields:
                self._leaf(shape, 1, repetition)
            case Record():
                for index, part in enumerate(shape.parts):
                    offset = layout.field_offset(shape.kind, index)
                    self.emit(part, code, self.asm.add(at, offset), repetition)
            case Union():
                self._union(shape, shape.kind, code, at, repetition)
            case Map():
                self._map(shape, shape.kind, code, at, repetition)
            case Set() if not layout.is_sparse(shape.kind):
                self._dense(shape, shape.kind, code, at, repetition)
            case Set() | Seq() | Bag():
                self._slots(shape, shape.kind, code, at, repetition)

    def _leaf(self, shape: Shape, code: Val, repetition: Val) -> None:
        (leaf,) = shape.leaves
        self.writer.entry(leaf, repetition, leaf.definition)
        self.writer.value(leaf, code)

    def _option(self, shape: Shape, kind: Option, code: Packed, at: Val, repetition: Val) -> None:
        asm, (item,) = self.asm, shape.parts
        if layout.is_scalar(kind):
            whole = code(at, width(kind))
            present, inner = asm.cmp("!=", whole, 0), asm.sub(whole, 1)
            if not item.parts:  # no jump, which would be mispredicted
                (leaf,) = item.leaves
                self.writer.entry(leaf, repetition, asm.select(present, leaf.definition, shape.absent))
                self.writer.value(leaf, inner, present)
                return
            held = held_code(asm, inner)
            self._when(present, shape, lambda: self.emit(item, held, 0, repetition), repetition)
            return
        present = asm.cmp("!=", code(asm.add(at, width(kind.item)), 1), 0)
        self._when(present, shape, lambda: self.emit(item, code, at, repetition), repetition)

    def _when(self, present: Val, shape: Shape, then: Callable[[], None], repetition: Val) -> None:
        self.asm.when(present, then, lambda: self.writer.absent(shape.leaves, repetition, shape.absent))

    def _union(self, shape: Shape, kind: Union, code: Packed, at: Val, repetition: Val) -> None:
        payload = layout.payload_width(kind)
        tag = code(self.asm.add(at, payload), width(kind) - payload)
        if not shape.parts:
            self._leaf(shape, tag, repetition)
            return
        first, *variants = shape.parts
        self._leaf(first, tag, repetition)
        wide = [number for number, (_, record) in enumerate(kind.variants) if record.fields]
        for number, variant in zip(wide, variants, strict=True):
            then = partial(self.emit, variant, code, at, repetition)
            self._when(self.asm.cmp("==", tag, number), variant, then, repetition)

    def _map(self, shape: Shape, kind: Map, code: Packed, at: Val, repetition: Val) -> None:
        asm, count, size = self.asm, layout.key_count(kind), width(kind.value)
        key, value = shape.parts
        keys = [layout.encode(kind.key, item) for item in positions(kind.key)]
        further = shape.repetition + 1

        def pair(known: Val, offset: Val, level: Val) -> None:
            self.emit(key, held_code(asm, known, code_type(width(kind.key))), 0, level)
            self.emit(value, code, asm.add(at, offset), level)

        if not count:
            self.writer.absent(shape.leaves, repetition, shape.present)
        elif self._copies * count <= UNROLLED:
            self._copies *= count
            for index, known in enumerate(keys):
                pair(known, (count - 1 - index) * size, further if index else repetition)
            self._copies //= count
        else:
            table = asm.table("keys", code_type(width(kind.key)), keys)

            def visit(index: ir.Value) -> None:
                known = asm.b.load(asm.b.gep(table, [asm.val(0), index]))
                level = asm.select(asm.cmp("==", index, 0), repetition, further)
                pair(known, asm.mul(asm.sub(count - 1, index), size), level)

            asm.loop(0, count - 1, visit)

    def _slots(self, shape: Shape, kind: Set | Seq | Bag, code: Packed, at: Val, repetition: Val) -> None:
        asm, (item,), size = self.asm, shape.parts, width(kind.item)
        length = code(at, layout.length_bits(kind))
        last = asm.add(at, layout.length_bits(kind) + (layout.slots_of(kind) - 1) * size)

        def visit(index: ir.Value) -> None:
            level = asm.select(asm.cmp("==", index, 0), repetition, shape.repetition + 1)
            self.emit(item, code, asm.sub(last, asm.mul(index, size)), level)

        empty = asm.cmp("==", length, 0)
        asm.when(empty, lambda: self.writer.absent(shape.leaves, repetition, shape.present))
        asm.loop(0, asm.sub(length, 1), visit)

    def _dense(self, shape: Shape, kind: Set, code: Packed, at: Val, repetition: Val) -> None:
        asm, (item,) = self.asm, shape.parts
        if layout.set_size(kind) <= 8 and layout.is_scalar(kind.item) and not item.parts:
            self._few(shape, kind, code(at, layout.set_size(kind)), repetition)
            return
        codes = [layout.encode(kind.item, value) for value in sorted(universe(kind.item))]
        level, rest = asm.cell(I64, repetition), asm.cell(I64)

        def visit(first: int) -> None:
            bits = asm.b.load(rest)
            known: Val = asm.intrinsic("cttz", bits)
            if not layout.is_scalar(kind.item):
                table = asm.table("items", code_type(width(kind.item)), codes)
                known = asm.b.load(asm.b.gep(table, [asm.val(0), asm.val(asm.add(first, known))]))
            else:
                known = asm.add(first, known)
            now = asm.b.load(level)
            asm.b.store(asm.val(shape.repetition + 1), level)
            self.emit(item, held_code(asm, known, code_type(width(kind.item))), 0, now)
            asm.b.store(asm.band(bits, asm.sub(bits, 1)), rest)

        some: Val = 0
        for first in range(0, layout.set_size(kind), WORD):
            bits = code(asm.add(at, first), min(WORD, layout.set_size(kind) - first))
            some = asm.bor(some, bits)
            asm.b.store(asm.val(bits), rest)
            asm.while_(lambda: asm.cmp("!=", asm.b.load(rest), 0), partial(visit, first))
        empty = asm.cmp("==", some, 0)
        asm.when(empty, lambda: self.writer.absent(shape.leaves, repetition, shape.present))

    def _few(self, shape: Shape, kind: Set, bits: Val, repetition: Val) -> None:
        """A set of at most eight plain values, by a table, since branches on each would be mispredicted."""
        asm, (leaf,) = self.asm, shape.leaves
        subsets = range(1 << layout.set_size(kind))
        listed = [sum(item << 8 * n for n, item in enumerate(_items(subset))) for subset in subsets]
        table = asm.table("subsets", I64, listed)
        items = asm.b.load(asm.b.gep(table, [asm.val(0), asm.val(bits)]))
        count: Val = asm.intrinsic("ctpop", asm.val(bits))
        further = (shape.repetition + 1) * (_EACH_BYTE & ~mask(8))
        empty = asm.cmp("==", bits, 0)
        definitions = asm.select(empty, shape.present, leaf.definition * _EACH_BYTE)
        levels = asm.bor(further, repetition), definitions
        self.writer.eight(leaf, items, levels, (count, asm.select(empty, 1, count)))


def _items(subset: int) -> list[int]:
    """The positions of the bits that are set."""
    return [bit for bit in range(subset.bit_length()) if subset >> bit & 1]
