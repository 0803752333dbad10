"""The search loop as instructions: expand states, look successors up, keep the new ones.

Successors wait in a batch: first their slots are fetched, then the states that the slots name, then
they are looked up (`table_kernel`); by then nothing misses the cache.  Workers take pieces of the
present level from a shared list.  A worker returns when the list is used up or STOP is set, and can
be called again in the same place.  Everything here is independent of the spec, given its functions
`successors`, `check`, `check_step`, `may_end`, `canonical`.
"""

from __future__ import annotations

from llvmlite import ir

from specchk.native.kernel.predicates import note_fault
from specchk.native.kernel.table_kernel import TableKernel
from specchk.native.machine.asm import I64, PTR, Asm, Val
from specchk.native.machine.frames import BATCH, DEADLOCK, FAULTS, INDEX_BITS, SharedWord, Thread
from specchk.native.machine.layout import mask


class Kernel(TableKernel):
    """Builds the functions that Python calls, in one module."""

    def emit_expand(self) -> ir.Function:
        """`expand(control, thread, state, pending) -> pending`: add a state's successors to the batch."""
        asm = Asm.of(self.module, "expand", [PTR, PTR, PTR, I64], I64)
        control, thread, state, pending = asm.function.args
        waiting = self.pointer(asm, thread, Thread.PENDING)
        # Successors are written where they will wait, behind those of the states before: nothing is copied.
        out = self.state_at(asm, waiting, pending)
        counts = asm.b.gep(thread, [asm.val(int(Thread.COUNTS))])
        cuts = asm.b.gep(thread, [asm.val(int(Thread.CUTS))])
        before = asm.b.load(cuts)
        count = asm.b.call(self.parts.successors, [state, out, counts, cuts])
        none, some = asm.block("none"), asm.block("some")
        asm.leave_if(asm.cmp("<", 0, count), some)
        asm.goto(none)
        asm.enter(none)
        self._no_successors(asm, thread, state, count, asm.cmp("==", asm.b.load(cuts), before))
        asm.b.ret(pending)
        asm.enter(some)
        asm.bump(thread, int(Thread.GENERATED), count)
        table, bits = self.pointer(asm, control, SharedWord.TABLE), asm.load(control, int(SharedWord.MASK))
        hashes = self.pointer(asm, thread, Thread.HASHES)
        end = asm.b.add(pending, count)

        def prepare(index: ir.Value) -> None:
            after = self.state_at(asm, waiting, index)
            # Before `canonical`: the renamed successor is no step from this state, and a step invariant
            # compares the two.
            if self.parts.check_step is not None:
                asm.b.call(self.parts.check_step, [state, after, thread])
            if self.parts.canonical is not None:
                asm.b.call(self.parts.canonical, [after])
            hashed = self.hash(asm, self.load_state(asm, after))
            asm.store(hashed, hashes, index)
            # The first of two misses; by the time that the batch is full the slot is near, and `flush`
            # fetches the state.
            self.prefetch(asm, asm.b.gep(table, [asm.band(hashed, bits)]))

        asm.loop(pending, asm.sub(end, 1), prepare)
        asm.b.ret(end)
        asm.finish()
        return asm.function

    def _no_successors(
        self, asm: Asm, thread: ir.Value, state: ir.Value, count: ir.Value, uncut: Val
    ) -> None:
        # `successors` returns -(action + 1) where a step is undefined; its record is number FAULTS +
        # action.
        faulty = asm.cmp("<", count, 0)

        def fault() -> None:
            note_fault(asm, thread, asm.sub(FAULTS - 1, count), state, state)

        def deadlock() -> None:
            asm.when(
                # A step above a horizon exists in the real system, so a state with one is no deadlock.
                asm.both(uncut, asm.negate(asm.b.call(self.parts.may_end, [state, thread]))),
                lambda: note_fault(asm, thread, DEADLOCK, state, state),
            )

        asm.when(faulty, fault, deadlock)

    def emit_flush(self, insert: ir.Function, *, shared: bool) -> ir.Function:
        """`flush(control, thread, pending)`: look up all successors in the batch."""
        name = "flush.shared" if shared else "flush.alone"
        asm = Asm.of(self.module, name, [PTR, PTR, I64], ir.VoidType())
        control, thread, pending = asm.function.args
        waiting, hashes = self.pointer(asm, thread, Thread.PENDING), self.pointer(asm, thread, Thread.HASHES)
        table, bits = self.pointer(asm, control, SharedWord.TABLE), asm.load(control, int(SharedWord.MASK))
        states = self.pointer(asm, control, SharedWord.STATES)
        last = asm.sub(pending, 1)

        def fetch(index: ir.Value) -> None:
            place = asm.b.gep(table, [asm.band(asm.load(hashes, index), bits)])
            # Only a hint of what to fetch: `insert` reads the slot again, with acquire.  An empty one names
            # state -1, whose address is fetched in vain.
            slot = asm.b.load_atomic(place, "monotonic", 8) if shared else asm.b.load(place)
            self.prefetch(asm, self.state_at(asm, states, asm.sub(asm.band(slot, mask(INDEX_BITS)), 1)))

        if not self.compact:
            asm.loop(0, last, fetch)
        asm.loop(0, last, lambda i: self._insert_one(asm, insert, control, thread, waiting, hashes, i))
        asm.end()
        return asm.function

    def _insert_one(
        self, asm: Asm, insert: ir.Function, control: ir.Value, thread: ir.Value, waiting: ir.Value,
        hashes: ir.Value, index: ir.Value,
    ) -> None:  # fmt: skip
        asm.b.call(insert, [control, thread, self.state_at(asm, waiting, index), asm.load(hashes, index)])

    def emit_work(self, name: str, expand: ir.Function, flush: ir.Function) -> None:
        """`work(control, thread)`: expand pieces of the level until there are none or STOP is set."""
        asm = self.function(name, 2, ir.VoidType())
        control, thread = asm.function.args
        states, work = (
            self.pointer(asm, control, SharedWord.STATES),
            self.pointer(asm, control, SharedWord.WORK),
        )
        stop = asm.b.gep(control, [asm.val(int(SharedWord.STOP))])
        cursor = asm.b.gep(control, [asm.val(int(SharedWord.CURSOR))])
        # Where the last call stopped: an unfinished piece continues with its next state.
        current = asm.cell(I64, asm.load(thread, int(Thread.PIECE)))
        end = asm.cell(I64, asm.load(thread, int(Thread.PIECE_END)))
        pending = asm.cell(I64)
        more, next_piece, take, one, out = (
            asm.block(n) for n in ("more", "next_piece", "take", "one", "out")
        )
        asm.goto(more)
        asm.enter(more)
        asm.b.cbranch(asm.b.icmp_unsigned("==", asm.b.load(current), asm.b.load(end)), next_piece, one)
        asm.enter(next_piece)
        # Every worker moves the cursor past the end once, where the list is used up; `Store.work` cuts it
        # back.
        index = asm.b.atomic_rmw("add", cursor, asm.val(1), "monotonic")
        asm.b.cbranch(asm.b.icmp_unsigned("<", index, asm.load(control, int(SharedWord.WORK_END))), take, out)
        asm.enter(take)
        entry = asm.b.gep(work, [asm.b.mul(index, asm.val(2))])
        asm.b.store(asm.load(entry, 0), current)
        asm.b.store(asm.b.add(asm.load(entry, 0), asm.load(entry, 1)), end)
        asm.goto(more)
        asm.enter(one)
        state = self.state_at(asm, states, asm.b.load(current))
        asm.b.store(asm.b.call(expand, [control, thread, state, asm.b.load(pending)]), pending)
        asm.b.store(asm.b.add(asm.b.load(current), asm.val(1)), current)
        # STOP is checked only here, with the batch empty: where a worker stops, PIECE is all that has to be
        # kept.
        asm.leave_if(asm.b.icmp_unsigned("<", asm.b.load(pending), asm.val(BATCH)), more)
        asm.b.call(flush, [control, thread, asm.b.load(pending)])
        asm.b.store(asm.val(0), pending)
        asm.leave_if(asm.cmp("!=", asm.b.load_atomic(stop, "monotonic", 8), 0), out)
        asm.goto(more)
        asm.enter(out)
        # The list may end in the middle of a batch.
        asm.b.call(flush, [control, thread, asm.b.load(pending)])
        # Where the next call continues, and what a checkpoint counts as not expanded (`Store.unexpanded`).
        asm.store(asm.b.load(current), thread, int(Thread.PIECE))
        asm.store(asm.b.load(end), thread, int(Thread.PIECE_END))
        asm.end()

    def emit_add(self, insert: ir.Function) -> None:
        """`add(control, thread, state)`: an initial state, made canonical in place."""
        asm = self.function("add", 3, ir.VoidType())
        control, thread, state = asm.function.args
        if self.parts.canonical is not None:
            asm.b.call(self.parts.canonical, [state])
        asm.b.call(insert, [control, thread, state, self.hash(asm, self.load_state(asm, state))])
        asm.end()

    def emit_precede(self) -> None:
        """`precede(control, thread, first, end, target, best)`: find predecessors of a target.

        Of the states numbered from `first` up to `end` that have the target as a successor, the
        smallest goes to `best`, if it is smaller than what is there; `best[words]` tells whether
        anything is.
        """
        asm = self.function("precede", 6, ir.VoidType())
        control, thread, first_, end_, target, best = asm.function.args
        first, end = asm.b.ptrtoint(first_, I64), asm.b.ptrtoint(end_, I64)
        states, out = self.pointer(asm, control, SharedWord.STATES), self.pointer(asm, thread, Thread.PENDING)
        counts = asm.b.gep(thread, [asm.val(int(Thread.COUNTS))])
        cuts = asm.b.gep(thread, [asm.val(int(Thread.CUTS))])
        wanted = self.load_state(asm, target)

        def visit(number: ir.Value) -> None:
            state = self.state_at(asm, states, number)
            count = asm.b.call(self.parts.successors, [state, out, counts, cuts])

            def compare(index: ir.Value) -> None:
                after = self.state_at(asm, out, index)
                if self.parts.canonical is not None:
                    asm.b.call(self.parts.canonical, [after])
                same: Val = True
                for word, other in zip(wanted, self.load_state(asm, after), strict=True):
                    same = asm.both(same, asm.cmp("==", word, other))
                asm.when(same, lambda: self._better(asm, state, best))

            asm.loop(0, asm.sub(count, 1), compare)

        asm.loop(first, asm.sub(end, 1), visit)
        asm.end()

    def emit_resting(self) -> None:
        """`resting(thread, states, count, found)`: the deadlocks among some states.

        Their positions go to `found` from word 1 on, and how many they are to word 0.
        """
        asm = self.function("resting", 4, ir.VoidType())
        thread, states, count_, found = asm.function.args
        out = self.pointer(asm, thread, Thread.PENDING)
        counts = asm.b.gep(thread, [asm.val(int(Thread.COUNTS))])
        cuts = asm.b.gep(thread, [asm.val(int(Thread.CUTS))])
        asm.store(0, found, 0)

        def visit(index: ir.Value) -> None:
            state = self.state_at(asm, states, index)
            before = asm.b.load(cuts)
            count = asm.b.call(self.parts.successors, [state, out, counts, cuts])
            idle = asm.both(asm.cmp("==", count, 0), asm.cmp("==", asm.b.load(cuts), before))

            def note() -> None:
                place = asm.b.add(asm.load(found, 0), asm.val(1))
                asm.b.store(index, asm.b.gep(found, [place]))
                asm.store(place, found, 0)

            asm.when(
                idle, lambda: asm.when(asm.negate(asm.b.call(self.parts.may_end, [state, thread])), note)
            )

        asm.loop(0, asm.sub(asm.b.ptrtoint(count_, I64), 1), visit)
        asm.end()

    # The smallest, not the first: which predecessor a trace shows must not depend on how threads share a
    # level. Words are compared without sign, first word first, as Python compares the tuples that they
    # become.
    def _better(self, asm: Asm, state: ir.Value, best: ir.Value) -> None:
        keep, done = asm.block("keep"), asm.block("kept")
        asm.leave_if(asm.cmp("==", asm.load(best, self.words), 0), keep)
        for index in range(self.words):
            new, old = asm.load(state, index), asm.load(best, index)
            asm.leave_if(asm.below(new, old), keep)
            asm.leave_if(asm.below(old, new), done)
        asm.goto(done)
        asm.enter(keep)
        for index in range(self.words):
            asm.store(asm.load(state, index), best, index)
        asm.store(1, best, self.words)
        asm.goto(done)
        asm.enter(done)

    def emit(self) -> None:
        """Everything."""
        expand = self.emit_expand()
        # Two copies of the loop: a search with one worker pays for no locked instruction.
        for name, shared in (("work_alone", False), ("work_shared", True)):
            insert = self.emit_insert(shared=shared)
            self.emit_work(name, expand, self.emit_flush(insert, shared=shared))
            if shared:
                self.emit_add(insert)
        self.emit_rehash()
        self.emit_precede()
        self.emit_resting()
