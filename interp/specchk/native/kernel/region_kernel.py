"""Regions with a pending goal, as instructions: their states, edges and rests.

A region has a block (`Owing`).  A state's place is its position in the region:

    0  not seen        2  the goal is true there        4  in the region, without edges
    1  a trigger       3  waits to be expanded          above: where its edges begin

    begins(lane, first, end)          mark the triggers among numbers
    gather(lane, first, end)          the triggers among numbers wait, unless a step reached them before
    spread(lane, list, first, end)    expand states of the region, note rests, and let new ones wait

Of several states the smallest is noted, so results do not depend on how workers share the states.
"""

from __future__ import annotations

from specchk.codegen import ir
from specchk.native.kernel.component_kernel import (
    LAST_EDGE,
    NO_EDGES,
    ComponentWalk,
    load32,
    queue,
    store32,
)
from specchk.native.kernel.fair_components import FairComponents
from specchk.native.kernel.labels import FALSE, TRUE, UNDEFINED
from specchk.native.kernel.numbered_steps import LaneFunction, NumberedSteps
from specchk.native.machine.asm import I8, I32, I64, Val
from specchk.native.machine.frames import BATCH, SOURCE_WORDS, Lane, Owing, SharedWord

UNSEEN, TRIGGER, REACHED, WAITS = range(4)
EDGE_CHUNK = 1 << 12  # edges that a worker takes at once


class RegionKernel(NumberedSteps):
    """Builds the functions for regions, in one module."""

    def emit(self) -> None:
        """Emit the functions that Python calls."""
        super().emit()
        self._emit_begins()
        self._emit_gather()
        self._emit_spread(self._emit_settle(self._emit_attach()))
        FairComponents(self).emit()
        ComponentWalk(self.module).emit()

    def _emit_begins(self) -> None:
        asm = self.entry("begins", 2)
        first, end = asm.numbers
        places = asm.words32(Owing.PLACES)
        trigger, goal = asm.load(asm.region, Owing.TRIGGER), asm.load(asm.region, Owing.GOAL)
        endless = asm.cmp("!=", asm.load(asm.region, Owing.ENDLESS), 0)

        def note_undefined(answer: Val, number: ir.Value) -> None:
            asm.when(asm.cmp("==", answer, UNDEFINED), lambda: self.note(asm, Lane.UNDEFINED, number))

        def owes(number: ir.Value) -> None:
            asm.store(1, asm.lane, Lane.IS_TRIGGERED)
            reached = self.answer(asm, goal, number, FALSE)
            note_undefined(reached, number)
            is_owed = asm.cmp("==", reached, FALSE)
            asm.when(is_owed, lambda: asm.store(1, asm.lane, Lane.IS_OWED))
            asm.when(asm.either(is_owed, endless), lambda: store32(asm, TRIGGER, places, number))

        def visit(number: ir.Value) -> None:
            triggered = self.answer(asm, trigger, number, TRUE)
            note_undefined(triggered, number)
            asm.when(asm.cmp("==", triggered, TRUE), lambda: owes(number))

        asm.loop(first, asm.sub(end, 1), visit)
        asm.end()

    def _emit_gather(self) -> None:
        asm = self.entry("gather", 2)
        first, end = asm.numbers
        places = asm.words32(Owing.PLACES)

        def wait(number: ir.Value) -> None:
            store32(asm, WAITS, places, number)
            queue(asm, asm.lane, number)

        def visit(number: ir.Value) -> None:
            asm.when(asm.cmp("==", load32(asm, places, number), TRIGGER), lambda: wait(number))

        asm.loop(first, asm.sub(end, 1), visit)
        asm.end()

    def _emit_attach(self) -> ir.Function:
        """Emit `attach(lane, number, count)`: note a rest, and keep the edges that stay in the region."""
        asm = self.internal("attach", 2, ir.VoidType())
        number, count = asm.numbers
        places, kept = asm.words32(Owing.PLACES), asm.cell(I64)
        self._note_rest(asm, number)

        def keep(target: Val) -> None:
            # In place, over pairs that were already read.
            asm.store(target, asm.pairs, asm.b.load(kept))
            asm.advance(kept)

        def step(index: ir.Value) -> None:
            named = asm.load(asm.pairs, asm.mul(index, 2))
            target = asm.sub(named, 1)

            def visit() -> None:
                place = asm.at(places, target)
                # Monotonic: workers share nothing but the place, and each of its values is as good as the
                # next one (`_claim` decides which worker expands the state).
                seen = asm.b.zext(asm.b.load_atomic(place, "monotonic", 4), I64)
                is_new = asm.cmp("==", seen, UNSEEN)
                now = asm.pick(I64, is_new, lambda: self._met(asm, place, target), lambda: seen)

                def stays() -> None:
                    self._claim(asm, place, target, now)
                    keep(target)

                asm.when(asm.cmp("!=", now, REACHED), stays)

            asm.when(asm.cmp("!=", named, 0), visit)

        asm.loop(0, asm.sub(count, 1), step)
        self._keep_edges(asm, number, asm.b.load(kept))
        asm.end()
        return asm.function

    def _note_rest(self, asm: LaneFunction, number: ir.Value) -> None:
        taken, marks = asm.load(asm.lane, Lane.TAKEN), asm.load(asm.region, Owing.REST_MARKS)
        # What is cut off enables its conditions too, so a state at a horizon is not a rest: it is only
        # marked.
        is_rest = asm.cmp("==", asm.bor(taken, asm.load(asm.lane, Lane.CUT)), 0)

        def is_bad() -> ir.Value:
            return asm.b.call(self.is_bad, [asm.lane, number])

        def note() -> None:
            asm.when(asm.cmp("!=", is_bad(), 0), lambda: self.note(asm, Lane.REST, number))

        def mark() -> None:
            place = asm.at(asm.b.inttoptr(marks, I8.as_pointer()), number)
            asm.b.store(asm.b.trunc(is_bad(), I8), place)

        asm.when(is_rest, note)
        asm.when(asm.both(asm.cmp("!=", marks, 0), asm.cmp("==", taken, 0)), mark)

    def _met(self, asm: LaneFunction, place: ir.Value, target: Val) -> Val:
        """The entry of a state that is reached for the first time: whether its goal holds."""
        # If a goal does not end the obligation, it is never reached.
        endless = asm.cmp("!=", asm.load(asm.region, Owing.ENDLESS), 0)
        goal = asm.load(asm.region, Owing.GOAL)
        answer = asm.pick(I64, endless, lambda: FALSE, lambda: self.answer(asm, goal, target, FALSE))

        def ends() -> Val:
            undefined = asm.cmp("==", answer, UNDEFINED)
            asm.when(undefined, lambda: self.note(asm, Lane.UNDEFINED, target))
            # Other workers get the same result, so all of them write the same value.
            asm.b.store_atomic(asm.val(REACHED, I32), place, "monotonic", 4)
            return REACHED

        return asm.pick(I64, asm.cmp("==", answer, FALSE), lambda: UNSEEN, ends)

    def _claim(self, asm: LaneFunction, place: ir.Value, target: Val, now: Val) -> None:
        """Queue a state that was a trigger or not seen, unless another worker has claimed it."""

        def wait() -> None:
            old = asm.b.trunc(asm.val(now), I32)
            # Of all workers that meet the state, only one swaps its place, and only that one expands it.
            pair = asm.b.cmpxchg(place, old, asm.val(WAITS, I32), "monotonic", "monotonic")
            asm.when(asm.b.extract_value(pair, 1), lambda: queue(asm, asm.lane, target))

        asm.when(asm.cmp("<", now, REACHED), wait)

    def _keep_edges(self, asm: LaneFunction, number: ir.Value, count: ir.Value) -> None:
        """Store the edges of a state (the first words at `TARGETS`), and the position at which they begin."""
        places, edges = asm.words32(Owing.PLACES), asm.words32(Owing.EDGES)

        def take_chunk() -> None:
            # The edges of a state are contiguous, so the end of a chunk may remain unused; a state with more
            # edges than a chunk has room for takes a chunk of its own.
            size = asm.max(count, EDGE_CHUNK)
            cursor = asm.at(asm.region, Owing.NEXT_EDGE)
            first = asm.b.atomic_rmw("add", cursor, asm.val(size), "monotonic")
            asm.store(first, asm.lane, Lane.FREE)
            asm.store(asm.add(first, size), asm.lane, Lane.FREE_END)

        def store() -> None:
            needed = asm.add(asm.load(asm.lane, Lane.FREE), count)
            asm.when(asm.below(asm.load(asm.lane, Lane.FREE_END), needed), take_chunk)
            free = asm.load(asm.lane, Lane.FREE)
            last = asm.sub(count, 1)

            def copy(index: ir.Value) -> None:
                end = asm.shl(asm.resize(asm.cmp("==", index, last), I64), LAST_EDGE)
                store32(asm, asm.bor(asm.load(asm.pairs, index), end), edges, asm.add(free, index))

            # Past the end of the array nothing is written; Python ends the check there.
            fits = asm.cmp("<=", asm.add(free, count), asm.load(asm.region, Owing.MOST_EDGES))
            asm.when(fits, lambda: asm.loop(0, last, copy))
            asm.store(asm.add(free, count), asm.lane, Lane.FREE)
            store32(asm, free, places, number)

        asm.when(asm.cmp("<", 0, count), store, lambda: store32(asm, NO_EDGES, places, number))

    def _emit_settle(self, attach: ir.Function) -> ir.Function:
        """Emit `settle(lane, sources, pending)`: resolve and attach all states with pending successors."""
        asm = self.internal("settle", 2, ir.VoidType())
        sources, pending = asm.numbers
        (table, bits), states = self.table(asm, asm.control), asm.pointer(asm.control, SharedWord.STATES)
        places, noted, at = asm.words32(Owing.PLACES), asm.pointer(asm.lane, Lane.SOURCES), asm.cell(I64)

        def fetch(index: ir.Value) -> None:
            slot = asm.load(table, asm.band(asm.load(asm.hashes, index), bits))
            number = self.number_in(asm, slot)
            self.prefetch(asm, self.state_at(asm, states, number))
            self.prefetch(asm, asm.at(places, number))

        def settle(index: ir.Value) -> None:
            first = asm.mul(index, SOURCE_WORDS)
            number, count, *before = (asm.load(noted, asm.add(first, word)) for word in range(SOURCE_WORDS))
            asm.b.call(self.resolve, [asm.lane, number, asm.b.load(at), count, *before])
            asm.b.call(attach, [asm.lane, number, count])
            asm.advance(at, count)

        asm.loop(0, asm.sub(pending, 1), fetch)
        asm.loop(0, asm.sub(sources, 1), settle)
        asm.end()
        return asm.function

    def _emit_spread(self, settle: ir.Function) -> None:
        asm = self.entry("spread", 3)
        list_, first, end = asm.numbers
        listed, noted = asm.listed(list_), asm.pointer(asm.lane, Lane.SOURCES)
        sources, pending = asm.cell(I64), asm.cell(I64)

        def flush() -> None:
            asm.b.call(settle, [asm.lane, asm.b.load(sources), asm.b.load(pending)])
            asm.b.store(asm.val(0), sources)
            asm.b.store(asm.val(0), pending)

        def visit(index: ir.Value) -> None:
            number = load32(asm, listed, index)
            count = asm.b.call(self.expand, [asm.lane, number, asm.b.load(pending)])
            source = asm.mul(asm.b.load(sources), SOURCE_WORDS)
            before = [asm.load(asm.lane, word) for word in (Lane.TAKEN, Lane.CUT)]
            for word, value in enumerate((number, count, *before)):
                asm.store(value, noted, asm.add(source, word))
            asm.advance(sources)
            asm.advance(pending, count)
            # Batches, so that cache misses overlap, as in the search.
            is_full = (asm.cmp("<=", BATCH, asm.b.load(cell)) for cell in (pending, sources))
            asm.when(asm.either(*is_full), flush)

        asm.loop(first, asm.sub(end, 1), visit)
        flush()
        asm.end()
