"""The steps of known states as instructions, each with its action, its arguments and the state after.

`edges` expands states once more and lists what the search forgets.  A state is named by its hash, the one of
the table; a step by its *label*:

    action | rank of its arguments     the last parameter varies fastest
    bit 63                             the state after is outside of a constraint

Nothing is looked up, so states may be listed in any order, on any machine that has their words.
"""

from __future__ import annotations

from llvmlite import ir

from specchk.ir.types import cardinality
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
        rank: Val = 0
        for param in self.program.actions[self.index].params:
            own = self.codes.rank(param.type, self.value(param))
            rank = self.asm.add(self.asm.mul(rank, cardinality(param.type)), own)
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
        waiting = self.pointer(asm, thread, Thread.PENDING)
        counts = asm.b.gep(thread, [asm.val(int(Thread.COUNTS))])
        cuts = asm.b.gep(thread, [asm.val(int(Thread.CUTS))])
        done, out = asm.cell(I64), asm.block("out")

        def goes_on() -> Val:
            full = asm.cmp(
                "<", asm.load(listing, int(Listing.FILLED)), asm.load(listing, int(Listing.CAPACITY))
            )
            return asm.both(asm.below(asm.b.load(done), count), full)

        def one() -> None:
            state = self.state_at(asm, states, asm.b.load(done))
            source = self.hash(asm, self.load_state(asm, state))
            found = asm.b.call(self.parts.successors, [state, waiting, counts, cuts])
            asm.loop(0, asm.sub(found, 1), lambda i: self._list(asm, listing, thread, waiting, source, i))
            asm.b.store(asm.b.add(asm.b.load(done), asm.val(1)), done)

        asm.while_(goes_on, one)
        asm.goto(out)
        asm.enter(out)
        asm.store(asm.b.load(done), listing, int(Listing.DONE))
        asm.end()

    def _list(
        self,
        asm: Asm,
        listing: ir.Value,
        thread: ir.Value,
        waiting: ir.Value,
        source: ir.Value,
        index: ir.Value,
    ) -> None:
        after = asm.b.gep(waiting, [asm.val(asm.mul(index, self.words + 1))])
        label: Val = asm.load(after, self.words)
        # Before `check`: constraints do not distinguish renamed states, and the search checks the kept one.
        if self.parts.canonical is not None:
            asm.b.call(self.parts.canonical, [after])
        if self.parts.constrained:
            inside = asm.b.zext(asm.b.call(self.parts.check, [after, thread]), I64)
            label = asm.bor(label, asm.shl(asm.sub(1, inside), OUTSIDE_BIT))
        place = asm.load(listing, int(Listing.FILLED))
        target = self.hash(asm, self.load_state(asm, after))
        for word, value in ((Listing.SOURCES, source), (Listing.LABELS, label), (Listing.TARGETS, target)):
            asm.store(value, self.pointer(asm, listing, word), place)
        asm.store(asm.add(place, 1), listing, int(Listing.FILLED))

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
        if self.parts.canonical is not None:
            asm.b.call(self.parts.canonical, [asm.function.args[0]])
        asm.end()
