"""The steps of known states as instructions, each with its action, its arguments and its target.

`edges` expands states again and lists what the search forgets.  A state is named by its hash, the same as in
the table; a step by its *label*:

    action | rank of its arguments     the last parameter varies fastest
    bit 63                             the state after is outside a constraint

Nothing is looked up, so states may be listed in any order, on any machine that has their words.
"""

from __future__ import annotations

from specchk.codegen import ir
from specchk.native.kernel.steps import Steps
from specchk.native.kernel.table_kernel import TableKernel
from specchk.native.machine.asm import I64, Asm, Val
from specchk.native.machine.frames import BATCH, Listing, NameTable, Thread

RANK_BITS = 32  # a state has at most 2^20 successors, and no action has more instances
OUTSIDE_BIT = 63
# Some bits of a name choose its share, and the highest ones its slot; those between choose the partition of
# an exchange (`exchange_kernel`), which may contain all names.
NAME_SHARES, NAME_SLOT_BIT = 256, 40


class RankedSteps(Steps):
    """Emits `successors` with one more word after each state: the label of its step."""

    label_words = 1
    is_ordered = True

    def count(self, point: int) -> None:
        """Count nothing: coverage was counted by the search."""

    def _label(self, at: ir.Value) -> None:
        rank = self.rank_of(self.program.actions[self.index].params)
        label = self.asm.bor(self.asm.shl(self.index, RANK_BITS), rank)
        self.asm.store(label, self.out, self.asm.add(at, self.layout.words))


class EdgeKernel(TableKernel):
    """Builds the functions that list steps and name states, in one module."""

    def emit(self) -> None:
        """Emit all functions."""
        self.emit_edges()
        self.emit_identify()
        self.emit_share_names()
        self.emit_repeats()
        self.emit_represent()

    def emit_edges(self) -> None:
        """Emit `edges(listing, thread, states, count)`: the steps of states, until the arrays are full.

        The listing's `DONE` is the number of states that were expanded.  A state in which a step is
        undefined has no steps.
        """
        asm = self.function("edges", 4, ir.VoidType())
        listing, thread, states, count_ = asm.function.args
        count = asm.b.ptrtoint(count_, I64)
        waiting, done = asm.pointer(thread, Thread.PENDING), asm.cell(I64)
        filled = asm.cell(I64, asm.load(listing, Listing.FILLED))
        capacity = asm.load(listing, Listing.CAPACITY)
        sources, labels, targets = (
            asm.pointer(listing, word) for word in (Listing.SOURCES, Listing.LABELS, Listing.TARGETS)
        )

        def has_room() -> Val:
            room = asm.cmp("<", asm.b.load(filled), capacity)
            return asm.both(asm.below(asm.b.load(done), count), room)

        def expand() -> None:
            state = self.state_at(asm, states, asm.b.load(done))
            steps = self.successors(asm, thread, state, waiting)
            source = self.hash(asm, self.load_state(asm, state))

            def list_step(index: ir.Value) -> None:
                after = asm.at(waiting, asm.mul(index, self.words + 1))
                label, target = self._step(asm, thread, after)
                place = asm.b.load(filled)
                asm.store(source, sources, place)
                asm.store(label, labels, place)
                asm.store(target, targets, place)
                asm.advance(filled)

            asm.loop(0, asm.sub(steps, 1), list_step)
            asm.advance(done)

        asm.while_(has_room, expand)
        asm.store(asm.b.load(filled), listing, Listing.FILLED)
        asm.store(asm.b.load(done), listing, Listing.DONE)
        asm.end()

    def _step(self, asm: Asm, thread: ir.Value, after: ir.Value) -> tuple[Val, ir.Value]:
        """Note the label of a step, and the name of its target."""
        label: Val = asm.load(after, self.words)
        # Before `check`: constraints do not distinguish renamed states, and the search checks the kept one.
        self.rename(asm, after)
        if self.parts.constrained:
            inside = asm.b.zext(asm.b.call(self.parts.check, [after, thread]), I64)
            label = asm.bor(label, asm.shl(asm.sub(1, inside), OUTSIDE_BIT))
        return label, self.hash(asm, self.load_state(asm, after))

    def emit_identify(self) -> None:
        """Emit `identify(states, count, names)`: the names of states."""
        asm = self.function("identify", 3, ir.VoidType())
        states, count, names = asm.function.args

        def name(index: ir.Value) -> None:
            asm.store(self.hash(asm, self.load_state(asm, self.state_at(asm, states, index))), names, index)

        asm.loop(0, asm.sub(asm.b.ptrtoint(count, I64), 1), name)
        asm.end()

    def emit_share_names(self) -> None:
        """Emit `share_names(names, count, ends, out)`: names sorted by share, and the end of each share."""
        asm = self.function("share_names", 4, ir.VoidType())
        names, count_, ends, out = asm.function.args
        last = asm.sub(asm.b.ptrtoint(count_, I64), 1)

        def share(index: ir.Value) -> Val:
            return asm.band(asm.load(names, index), NAME_SHARES - 1)

        asm.loop(0, NAME_SHARES - 1, lambda one: asm.store(0, ends, one))
        asm.loop(0, last, lambda index: asm.bump(ends, share(index)))
        before = asm.cell(I64)

        def begin(one: ir.Value) -> None:
            many = asm.load(ends, one)
            asm.store(asm.b.load(before), ends, one)
            asm.advance(before, many)

        asm.loop(0, NAME_SHARES - 1, begin)

        def put(index: ir.Value) -> None:
            place = asm.load(ends, share(index))
            asm.store(asm.load(names, index), out, place)
            asm.bump(ends, share(index))

        asm.loop(0, last, put)
        asm.end()

    def emit_repeats(self) -> None:
        """Emit `repeats(block, names, count)`: enter the names of a share; `REPEATED` counts known names.

        The table has more slots than all of them.
        """
        asm = self.function("repeats", 3, ir.VoidType())
        block, names, count_ = asm.function.args
        count = asm.b.ptrtoint(count_, I64)
        slots, bits = asm.pointer(block, NameTable.SLOTS), asm.load(block, NameTable.MASK)

        def first_slot(name: Val) -> Val:
            return asm.band(asm.shr(name, NAME_SLOT_BIT), bits)

        def enter(name: ir.Value) -> None:
            at = asm.cell(I64, first_slot(name))
            head, out = asm.block("try"), asm.block("entered")
            asm.fall_into(head)
            place = asm.at(slots, asm.b.load(at))
            known = asm.b.load(place)
            self.next_slot(asm, at, bits)
            is_new, is_known = asm.block("new"), asm.block("known")
            asm.leave_if(asm.cmp("==", known, 0), is_new)
            asm.leave_if(asm.cmp("==", known, name), is_known)
            asm.goto(head)
            asm.enter(is_new)
            asm.b.store(name, place)
            asm.goto(out)
            asm.enter(is_known)
            asm.bump(block, NameTable.REPEATED)
            asm.fall_into(out)

        def batch(number: ir.Value) -> None:
            start = asm.mul(number, BATCH)
            last = asm.sub(asm.min(asm.add(start, BATCH), count), 1)
            # Two passes, so that cache misses overlap.
            asm.loop(
                start, last,
                lambda i: asm.b.prefetch(asm.at(slots, first_slot(asm.load(names, i)))),
            )  # fmt: skip

            def visit(index: ir.Value) -> None:
                name = asm.load(names, index)
                zero = asm.cmp("==", name, 0)
                asm.when(zero, lambda: asm.bump(block, NameTable.ZEROES), lambda: enter(name))

            asm.loop(start, last, visit)

        asm.loop(0, asm.sub(asm.b.udiv(asm.val(asm.add(count, BATCH - 1)), asm.val(BATCH)), 1), batch)
        asm.end()

    def emit_represent(self) -> None:
        """Emit `represent(state)`: replace a state by the representative that the search keeps."""
        asm = self.function("represent", 1, ir.VoidType())
        self.rename(asm, asm.function.args[0])
        asm.end()
