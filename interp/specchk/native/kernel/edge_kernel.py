"""The steps of known states as instructions, each with its action, its arguments and the state after.

`edges` expands states once more and lists what the search forgets.  A state is named by its hash, the one of
the table; a step by its *label*:

    action | rank of its arguments     the last parameter varies fastest
    bit 63                             the state after is outside of a constraint

Nothing is looked up, so states may be listed in any order, on any machine that has their words.
"""

from __future__ import annotations

from specchk.codegen import ir
from specchk.native.kernel.steps import Steps
from specchk.native.kernel.table_kernel import TableKernel
from specchk.native.machine.asm import I64, Asm, Val
from specchk.native.machine.frames import Listing, Thread

RANK_BITS = 32  # a state has at most 2^20 successors, and no action has more instances
OUTSIDE_BIT = 63


class RankedSteps(Steps):
    """Emits `successors` with one word more behind each state: the label of its step."""

    label_words = 1

    def _label(self, at: ir.Value) -> None:
        rank = self.rank_of(self.program.actions[self.index].params)
        label = self.asm.bor(self.asm.shl(self.index, RANK_BITS), rank)
        self.asm.store(label, self.out, self.asm.add(at, self.layout.words))


class EdgeKernel(TableKernel):
    """Builds the functions that list steps and name states, in one module."""

    def emit(self) -> None:
        """Everything."""
        self.emit_edges()
        self.emit_identify()
        self.emit_represent()

    def emit_edges(self) -> None:
        """`edges(listing, thread, states, count)`: the steps of states, until the arrays are full.

        The listing's `DONE` is the number of states that were expanded.  A state in which a step is
        undefined has no steps.
        """
        asm = self.function("edges", 4, ir.VoidType())
        listing, thread, states, count_ = asm.function.args
        count = asm.b.ptrtoint(count_, I64)
        waiting, done = asm.pointer(thread, Thread.PENDING), asm.cell(I64)

        def has_room() -> Val:
            room = asm.cmp("<", asm.load(listing, Listing.FILLED), asm.load(listing, Listing.CAPACITY))
            return asm.both(asm.below(asm.b.load(done), count), room)

        def expand() -> None:
            state = self.state_at(asm, states, asm.b.load(done))
            source = self.hash(asm, self.load_state(asm, state))
            steps = self.successors(asm, thread, state, waiting)

            def list_step(index: ir.Value) -> None:
                self._list(asm, listing, thread, source, asm.at(waiting, asm.mul(index, self.words + 1)))

            asm.loop(0, asm.sub(steps, 1), list_step)
            asm.advance(done)

        asm.while_(has_room, expand)
        asm.store(asm.b.load(done), listing, Listing.DONE)
        asm.end()

    def _list(
        self, asm: Asm, listing: ir.Value, thread: ir.Value, source: ir.Value, after: ir.Value
    ) -> None:  # fmt: skip
        label: Val = asm.load(after, self.words)
        # Before `check`: constraints do not distinguish renamed states, and the search checks the kept one.
        self.rename(asm, after)
        if self.parts.constrained:
            inside = asm.b.zext(asm.b.call(self.parts.check, [after, thread]), I64)
            label = asm.bor(label, asm.shl(asm.sub(1, inside), OUTSIDE_BIT))
        place = asm.load(listing, Listing.FILLED)
        target = self.hash(asm, self.load_state(asm, after))
        for word, value in ((Listing.SOURCES, source), (Listing.LABELS, label), (Listing.TARGETS, target)):
            asm.store(value, asm.pointer(listing, word), place)
        asm.store(asm.add(place, 1), listing, Listing.FILLED)

    def emit_identify(self) -> None:
        """`identify(states, count, names)`: the names of states."""
        asm = self.function("identify", 3, ir.VoidType())
        states, count, names = asm.function.args

        def name(index: ir.Value) -> None:
            asm.store(self.hash(asm, self.load_state(asm, self.state_at(asm, states, index))), names, index)

        asm.loop(0, asm.sub(asm.b.ptrtoint(count, I64), 1), name)
        asm.end()

    def emit_represent(self) -> None:
        """`represent(state)`: replace a state by the one that is kept of its class."""
        asm = self.function("represent", 1, ir.VoidType())
        self.rename(asm, asm.function.args[0])
        asm.end()
