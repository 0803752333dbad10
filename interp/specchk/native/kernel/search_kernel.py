"""The search loop as instructions: expand states, look up successors, keep new ones.

Successors wait in a batch: first their slots are fetched, then the states that the slots name, then
they are looked up (`table_kernel`); by then nothing misses the cache.  Workers take pieces of the
present level from a shared list.  A worker returns when the list is used up or STOP is set, and can
be called again at the same position.  Everything here is independent of the spec, given its functions
`successors`, `check`, `check_step`, `may_end`, `canonical`.
"""

from __future__ import annotations

from collections.abc import Callable

from specchk.codegen import ir
from specchk.codegen.arrays import Words, words
from specchk.codegen.functions import add_kernels
from specchk.native.kernel.predicates import note_fault
from specchk.native.kernel.table_kernel import KernelSpec, TableKernel, is_less
from specchk.native.machine.asm import I64, PTR, Asm, Val
from specchk.native.machine.frames import BATCH, DEADLOCK, FAULTS, SharedWord, Thread


def precede(
    spec: KernelSpec, control: Words, thread: Words, first: int, end: int, target: Words, best: Words
) -> None:
    """Find the predecessors of a target among the states numbered from `first` up to `end`.

    The smallest goes to `best`, if it is smaller than the content; `best[words]` is 1 if there is one.
    """
    states, out = words(control[SharedWord.STATES]), words(thread[Thread.PENDING])
    for number in range(first, end):
        state = states[number * spec.words :]
        count = spec.successors(state, out, thread[Thread.COUNTS :], thread[Thread.CUTS :])
        for index in range(count):
            after = out[index * spec.words :]
            if spec.renamed:
                spec.canonical(after)
            # The smallest, not the first: the predecessor in a trace must not depend on how threads share a
            # level.
            if spec.is_same(after, target) and (best[spec.words] == 0 or is_less(spec, state, best)):
                for word in range(spec.words):
                    best[word] = state[word]
                best[spec.words] = 1


def resting(spec: KernelSpec, thread: Words, states: Words, count: int, places: Words) -> None:
    """Find the deadlocks among states: their positions from word 1 of `places` on, their number in word 0."""
    out = words(thread[Thread.PENDING])
    places[0] = 0
    for index in range(count):
        state, cuts = states[index * spec.words :], thread[Thread.CUTS]
        steps = spec.successors(state, out, thread[Thread.COUNTS :], thread[Thread.CUTS :])
        # A step above a horizon exists in the real system, so a state with one is no deadlock.
        if steps == 0 and thread[Thread.CUTS] == cuts and not spec.may_end(state, thread):
            places[0] += 1
            places[places[0]] = index


SINGLE = (precede, resting, is_less)
ENTRIES = ("precede", "resting")


class Kernel(TableKernel):
    """Builds the functions that Python calls, in one module."""

    def emit_expand(self) -> ir.Function:
        """Emit `expand(control, thread, state, pending) -> pending`: add a state's successors to a batch."""
        asm = Asm.of(self.module, "expand", [PTR, PTR, PTR, I64], I64)
        control, thread, state, pending = asm.function.args
        waiting, hashes = asm.pointer(thread, Thread.PENDING), asm.pointer(thread, Thread.HASHES)
        table, bits = self.table(asm, control)

        def prepare(index: ir.Value, after: ir.Value) -> None:
            # The first of two misses; by the time the batch is full, the slot is in the cache, and `flush`
            # fetches the state.
            asm.store(self.near(asm, table, bits, after), hashes, index)

        # Successors are written where they will wait, after those of earlier states: nothing is copied.
        asm.b.ret(self.each_successor(asm, thread, state, waiting, pending, prepare))
        asm.finish()
        return asm.function

    def each_successor(
        self, asm: Asm, thread: ir.Value, state: ir.Value, out: ir.Value, first: Val,
        use: Callable[[ir.Value, ir.Value], None],
    ) -> Val:  # fmt: skip
        """Expand a state: check its steps, and use each successor, with its place in `out` from `first` on.

        The result is the place behind the last.  A state without steps, or with an undefined one, is noted.
        """
        before = asm.load(thread, Thread.CUTS)
        count = self.successors(asm, thread, state, self.state_at(asm, out, first))

        def check(index: ir.Value) -> None:
            after = self.state_at(asm, out, index)
            # Before `canonical`: the renamed successor is not a step from this state, and a step invariant
            # compares the two.
            if self.parts.check_step is not None:
                asm.b.call(self.parts.check_step, [state, after, thread])
            self.rename(asm, after)
            use(index, after)

        def some() -> Val:
            asm.bump(thread, Thread.GENERATED, count)
            end = asm.add(first, count)
            asm.loop(first, asm.sub(end, 1), check)
            return end

        def none() -> Val:
            self._no_successors(asm, thread, state, self.state_at(asm, out, first), count, before)
            return first

        return asm.pick(I64, asm.cmp("<", 0, count), some, none)

    def _no_successors(
        self,
        asm: Asm,
        thread: ir.Value,
        state: ir.Value,
        out: ir.Value,
        count: ir.Value,
        cuts_before: ir.Value,
    ) -> None:
        # `successors` returns -(action + 1) where a step is undefined; its record is number FAULTS +
        # action.
        def fault() -> None:
            note_fault(asm, thread, asm.sub(FAULTS - 1, count), state, state)
            self._uncount(asm, thread, state, out)
            asm.store(cuts_before, thread, Thread.CUTS)

        def no_step() -> None:
            self.when_deadlock(
                asm, thread, state, cuts_before, lambda: note_fault(asm, thread, DEADLOCK, state, state)
            )

        asm.when(asm.cmp("<", count, 0), fault, no_step)

    def _uncount(self, asm: Asm, thread: ir.Value, state: ir.Value, out: ir.Value) -> None:
        """Uncount the coverage of the steps of a state with an undefined step: it has no successors.

        Steps are tried in an order of our own (`values.order`), so those before it are not the spec's.
        """
        points = len(self.program.points)
        counts, again = asm.at(thread, Thread.COUNTS), asm.at(thread, Thread.COUNTS + points)
        asm.loop(0, points - 1, lambda point: asm.store(0, again, point))
        # As before, up to the same step.
        asm.b.call(self.parts.successors, [state, out, again, asm.at(thread, Thread.CUTS)])
        asm.loop(0, points - 1, lambda point: asm.bump(counts, point, asm.sub(0, asm.load(again, point))))

    def when_deadlock(
        self, asm: Asm, thread: ir.Value, state: ir.Value, cuts_before: ir.Value, then: Callable[[], None]
    ) -> None:
        """Run code if a state without successors is a deadlock, as far as compiled code can decide."""
        # A step above a horizon exists in the real system, so a state with one is no deadlock.
        uncut = asm.cmp("==", asm.load(thread, Thread.CUTS), cuts_before)
        asm.when(uncut, lambda: asm.when(asm.negate(asm.b.call(self.parts.may_end, [state, thread])), then))

    def emit_flush(self, insert: ir.Function) -> ir.Function:
        """Emit `flush(control, thread, pending)`: look up all successors in the batch."""
        asm = Asm.of(self.module, "flush", [PTR, PTR, I64], ir.VoidType())
        control, thread, pending = asm.function.args
        waiting, hashes = asm.pointer(thread, Thread.PENDING), asm.pointer(thread, Thread.HASHES)
        (table, bits), states = self.table(asm, control), asm.pointer(control, SharedWord.STATES)

        def fetch(index: ir.Value) -> None:
            place = asm.at(table, asm.band(asm.load(hashes, index), bits))
            # Only a hint of what to fetch: `insert` reads the slot again, with acquire.  An empty slot names
            # state -1, whose address is fetched in vain.
            asm.b.prefetch(self.named_by(asm, states, asm.b.load_atomic(place, "monotonic", 8)))

        def look_up(index: ir.Value) -> None:
            state = self.state_at(asm, waiting, index)
            asm.b.call(insert, [control, thread, state, asm.load(hashes, index)])

        for step in (look_up,) if self.compact else (fetch, look_up):
            asm.loop(0, asm.sub(pending, 1), step)
        asm.end()
        return asm.function

    def emit_work(self, expand: ir.Function, flush: ir.Function) -> None:
        """Emit `work(control, thread)`: expand pieces of the level until none are left or STOP is set."""
        asm = self.function("work", 2, ir.VoidType())
        control, thread = asm.function.args
        states, work = asm.pointer(control, SharedWord.STATES), asm.pointer(control, SharedWord.WORK)
        # Where the last call stopped: an unfinished piece continues with its next state.
        current = asm.cell(I64, asm.load(thread, Thread.PIECE))
        end = asm.cell(I64, asm.load(thread, Thread.PIECE_END))
        pending = asm.cell(I64)
        more, next_piece, take, expanding, out = (
            asm.block(n) for n in ("more", "next_piece", "take", "expanding", "out")
        )

        def look_up_all() -> None:
            asm.b.call(flush, [control, thread, asm.b.load(pending)])

        asm.fall_into(more)
        asm.b.cbranch(asm.cmp("==", asm.b.load(current), asm.b.load(end)), next_piece, expanding)
        asm.enter(next_piece)
        # Every worker moves the cursor past the end once, when the list is used up; `Store.work` corrects it.
        index = asm.b.atomic_rmw("add", asm.at(control, SharedWord.CURSOR), asm.val(1), "monotonic")
        asm.b.cbranch(asm.below(index, asm.load(control, SharedWord.WORK_END)), take, out)
        asm.enter(take)
        piece = asm.at(work, asm.mul(index, 2))
        asm.b.store(asm.load(piece, 0), current)
        asm.b.store(asm.add(asm.load(piece, 0), asm.load(piece, 1)), end)
        asm.goto(more)
        asm.enter(expanding)
        state = self.state_at(asm, states, asm.b.load(current))
        asm.b.store(asm.b.call(expand, [control, thread, state, asm.b.load(pending)]), pending)
        asm.advance(current)
        # STOP is checked only here, with an empty batch: if a worker stops, only PIECE must be kept.
        asm.leave_if(asm.below(asm.b.load(pending), BATCH), more)
        look_up_all()
        asm.b.store(asm.val(0), pending)
        asm.leave_if(self.is_stopped(asm, control), out)
        asm.goto(more)
        asm.enter(out)
        # The list may end in the middle of a batch.
        look_up_all()
        # The position of the next call, and the states that a checkpoint counts as not expanded
        # (`Store.unexpanded`).
        asm.store(asm.b.load(current), thread, Thread.PIECE)
        asm.store(asm.b.load(end), thread, Thread.PIECE_END)
        asm.end()

    def emit_add(self, insert: ir.Function) -> None:
        """Emit `add(control, thread, state)`: add an initial state, made canonical in place."""
        asm = self.function("add", 3, ir.VoidType())
        control, thread, state = asm.function.args
        self.rename(asm, state)
        asm.b.call(insert, [control, thread, state, self.hash(asm, self.load_state(asm, state))])
        asm.end()

    def emit(self) -> None:
        """Emit all functions."""
        insert = self.emit_insert()
        self.emit_work(self.emit_expand(), self.emit_flush(insert))
        self.emit_add(insert)
        self.emit_rehash()
        add_kernels(self.module, SINGLE, ENTRIES, self.given())
