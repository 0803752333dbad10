"""Regions in which a goal is owed, as instructions: their states, edges and rests.

A region has a block (`Owing`).  A state's place says where it is in the region:

    0  not seen        2  the goal is true there        4  in the region, without edges
    1  a trigger       3  waits to be expanded          above: where its edges begin

    begins(lane, first, end)          mark the triggers among numbers
    gather(lane, first, end)          the triggers among numbers wait, unless a step reached them before
    spread(lane, list, first, end)    expand states of the region, note rests, and let new ones wait

What is noted is the smallest state, so it does not depend on how workers share the states.
"""

from __future__ import annotations

from llvmlite import ir

from specchk.native.kernel.component_kernel import (
    LAST_EDGE,
    NO_EDGES,
    ComponentWalk,
    load32,
    queue,
    store32,
    words32,
)
from specchk.native.kernel.fair_components import FairComponents
from specchk.native.kernel.labels import FALSE, TRUE, UNDEFINED
from specchk.native.kernel.numbered_steps import NO_PREDICATE, NumberedSteps
from specchk.native.machine.asm import I8, I32, I64, Asm, Val
from specchk.native.machine.frames import BATCH, INDEX_BITS, SOURCE_WORDS, Lane, Owing, SharedWord, Thread
from specchk.native.machine.layout import mask

UNSEEN, TRIGGER, REACHED, WAITS = range(4)
EDGE_CHUNK = 1 << 12  # edges that a worker takes at once


class RegionKernel(NumberedSteps):
    """Builds the functions of regions, in one module."""

    def emit(self) -> None:
        """The functions that Python calls."""
        super().emit()
        self._emit_begins()
        self._emit_gather()
        self._emit_spread(self._emit_settle(self._emit_attach()))
        FairComponents(self).emit()
        ComponentWalk(self.module).emit()

    def _emit_begins(self) -> None:
        asm, (lane, first, end) = self.entry("begins", 2)
        region = self.pointer(asm, lane, Lane.REGION)
        places = words32(asm, region, Owing.PLACES)
        trigger, goal = asm.load(region, int(Owing.TRIGGER)), asm.load(region, int(Owing.GOAL))
        endless = asm.cmp("!=", asm.load(region, int(Owing.ENDLESS)), 0)

        def answer(which: ir.Value, number: ir.Value, none: int) -> Val:
            is_none = asm.cmp("==", which, NO_PREDICATE)
            return asm.pick(I64, is_none, lambda: none, lambda: self.answer(asm, lane, which, number))

        def undefined(number: ir.Value) -> None:
            asm.b.call(self.note, [lane, asm.val(int(Lane.UNDEFINED)), number])

        def owes(number: ir.Value) -> None:
            asm.store(1, lane, int(Lane.IS_TRIGGERED))
            reached = answer(goal, number, FALSE)
            asm.when(asm.cmp("==", reached, UNDEFINED), lambda: undefined(number))
            asm.when(asm.cmp("==", reached, FALSE), lambda: asm.store(1, lane, int(Lane.IS_OWED)))
            begins = asm.either(asm.cmp("==", reached, FALSE), endless)
            asm.when(begins, lambda: store32(asm, TRIGGER, places, number))

        def visit(number: ir.Value) -> None:
            triggered = answer(trigger, number, TRUE)
            asm.when(asm.cmp("==", triggered, UNDEFINED), lambda: undefined(number))
            asm.when(asm.cmp("==", triggered, TRUE), lambda: owes(number))

        asm.loop(first, asm.sub(end, 1), visit)
        asm.end()

    def _emit_gather(self) -> None:
        asm, (lane, first, end) = self.entry("gather", 2)
        places = words32(asm, self.pointer(asm, lane, Lane.REGION), Owing.PLACES)

        def wait(number: ir.Value) -> None:
            store32(asm, WAITS, places, number)
            queue(asm, lane, number)

        def visit(number: ir.Value) -> None:
            asm.when(asm.cmp("==", load32(asm, places, number), TRIGGER), lambda: wait(number))

        asm.loop(first, asm.sub(end, 1), visit)
        asm.end()

    def _emit_attach(self) -> ir.Function:
        """`attach(lane, number, count)`: note a rest, and keep the edges that stay in the region."""
        asm, (lane, number, count) = self.internal("attach", 2, ir.VoidType())
        region, pairs = self.pointer(asm, lane, Lane.REGION), self.pointer(asm, lane, Lane.TARGETS)
        places, kept = words32(asm, region, Owing.PLACES), asm.cell(I64)
        self._note_rest(asm, lane, region, number)

        def keep(target: ir.Value) -> None:
            # In place, over pairs that have been read.
            asm.store(target, pairs, asm.b.load(kept))
            asm.b.store(asm.add(asm.b.load(kept), 1), kept)

        def step(index: ir.Value) -> None:
            found = asm.load(pairs, asm.mul(index, 2))
            target = asm.sub(found, 1)

            def visit() -> None:
                place = asm.b.gep(places, [target])
                seen = asm.b.zext(asm.b.load_atomic(place, "monotonic", 4), I64)
                now = asm.pick(
                    I64, asm.cmp("==", seen, UNSEEN),
                    lambda: self._seen(asm, lane, region, place, target), lambda: seen,
                )  # fmt: skip

                def stays() -> None:
                    self._claim(asm, lane, place, target, now)
                    keep(target)

                asm.when(asm.cmp("!=", now, REACHED), stays)

            asm.when(asm.cmp("!=", found, 0), visit)

        asm.loop(0, asm.sub(count, 1), step)
        self._keep_edges(asm, lane, region, number, asm.b.load(kept))
        asm.end()
        return asm.function

    def _note_rest(self, asm: Asm, lane: ir.Value, region: ir.Value, number: ir.Value) -> None:
        taken, marks = asm.load(lane, int(Lane.TAKEN)), asm.load(region, int(Owing.REST_MARKS))
        none = asm.cmp("==", asm.bor(taken, asm.load(lane, int(Lane.CUT))), 0)
        bad = [lane, number]

        def note() -> None:
            asm.b.call(self.note, [lane, asm.val(int(Lane.REST)), number])

        def mark() -> None:
            place = asm.b.gep(asm.b.inttoptr(marks, I8.as_pointer()), [number])
            asm.b.store(asm.b.trunc(asm.b.call(self.is_bad, bad), I8), place)

        asm.when(none, lambda: asm.when(asm.cmp("!=", asm.b.call(self.is_bad, bad), 0), note))
        asm.when(asm.both(asm.cmp("!=", marks, 0), asm.cmp("==", taken, 0)), mark)

    def _seen(self, asm: Asm, lane: ir.Value, region: ir.Value, place: ir.Value, target: ir.Value) -> Val:
        """The place of a state that is met for the first time: whether its goal is reached."""
        goal = asm.load(region, int(Owing.GOAL))
        never = asm.either(
            asm.cmp("==", goal, NO_PREDICATE), asm.cmp("!=", asm.load(region, int(Owing.ENDLESS)), 0)
        )
        answer = asm.pick(I64, never, lambda: FALSE, lambda: self.answer(asm, lane, goal, target))

        def ends() -> Val:
            undefined = asm.cmp("==", answer, UNDEFINED)
            asm.when(undefined, lambda: asm.b.call(self.note, [lane, asm.val(int(Lane.UNDEFINED)), target]))
            # Others find the same, so whoever writes it writes the same.
            asm.b.store_atomic(asm.val(REACHED, I32), place, "monotonic", 4)
            return REACHED

        return asm.pick(I64, asm.cmp("==", answer, FALSE), lambda: UNSEEN, ends)

    def _claim(self, asm: Asm, lane: ir.Value, place: ir.Value, target: ir.Value, now: Val) -> None:
        """Let a state wait that was a trigger or not seen, unless another worker does."""

        def wait() -> None:
            old = asm.b.trunc(asm.val(now), I32)
            pair = asm.b.cmpxchg(place, old, asm.val(WAITS, I32), "monotonic", "monotonic")
            asm.when(asm.b.extract_value(pair, 1), lambda: queue(asm, lane, target))

        asm.when(asm.cmp("<", now, REACHED), wait)

    def _keep_edges(
        self, asm: Asm, lane: ir.Value, region: ir.Value, number: ir.Value, count: ir.Value
    ) -> None:
        """Store the edges of a state, the first words at `TARGETS`, and where they begin."""
        places, edges = words32(asm, region, Owing.PLACES), words32(asm, region, Owing.EDGES)
        pairs = self.pointer(asm, lane, Lane.TARGETS)

        def chunk() -> None:
            size = asm.max(count, EDGE_CHUNK)
            cursor = asm.b.gep(region, [asm.val(int(Owing.NEXT_EDGE))])
            first = asm.b.atomic_rmw("add", cursor, asm.val(size), "monotonic")
            asm.store(first, lane, int(Lane.FREE))
            asm.store(asm.add(first, size), lane, int(Lane.FREE_END))

        def some() -> None:
            needed = asm.add(asm.load(lane, int(Lane.FREE)), count)
            asm.when(asm.below(asm.load(lane, int(Lane.FREE_END)), needed), chunk)
            free = asm.load(lane, int(Lane.FREE))
            last = asm.sub(count, 1)

            def copy(index: ir.Value) -> None:
                end = asm.shl(asm.b.zext(asm.cmp("==", index, last), I64), LAST_EDGE)
                store32(asm, asm.bor(asm.load(pairs, index), end), edges, asm.add(free, index))

            # Past the end of the array nothing is written; Python ends the check there.
            fits = asm.cmp("<=", asm.add(free, count), asm.load(region, int(Owing.MOST_EDGES)))
            asm.when(fits, lambda: asm.loop(0, last, copy))
            asm.store(asm.add(free, count), lane, int(Lane.FREE))
            store32(asm, free, places, number)

        asm.when(asm.cmp("<", 0, count), some, lambda: store32(asm, NO_EDGES, places, number))

    def _emit_settle(self, attach: ir.Function) -> ir.Function:
        """`settle(lane, sources, pending)`: resolve and attach all states whose successors wait."""
        asm, (lane, sources, pending) = self.internal("settle", 2, ir.VoidType())
        control, thread = self.pointer(asm, lane, Lane.CONTROL), self.pointer(asm, lane, Lane.THREAD)
        table, bits = self.pointer(asm, control, SharedWord.TABLE), asm.load(control, int(SharedWord.MASK))
        states, hashes = (
            self.pointer(asm, control, SharedWord.STATES),
            self.pointer(asm, thread, Thread.HASHES),
        )
        noted, at = self.pointer(asm, lane, Lane.SOURCES), asm.cell(I64)

        def fetch(index: ir.Value) -> None:
            slot = asm.load(table, asm.band(asm.load(hashes, index), bits))
            number = asm.sub(asm.band(slot, mask(INDEX_BITS)), 1)
            self.prefetch(asm, self.state_at(asm, states, number))
            places = words32(asm, self.pointer(asm, lane, Lane.REGION), Owing.PLACES)
            self.prefetch(asm, asm.b.gep(places, [number]))

        def one(index: ir.Value) -> None:
            first = asm.mul(index, SOURCE_WORDS)
            number, count, *before = (asm.load(noted, asm.add(first, word)) for word in range(SOURCE_WORDS))
            asm.b.call(self.resolve, [lane, number, asm.b.load(at), count, *before])
            asm.b.call(attach, [lane, number, count])
            asm.b.store(asm.add(asm.b.load(at), count), at)

        asm.loop(0, asm.sub(pending, 1), fetch)
        asm.loop(0, asm.sub(sources, 1), one)
        asm.end()
        return asm.function

    def _emit_spread(self, settle: ir.Function) -> None:
        asm, (lane, list_, first, end) = self.entry("spread", 3)
        listed, noted = asm.b.inttoptr(list_, I32.as_pointer()), self.pointer(asm, lane, Lane.SOURCES)
        sources, pending = asm.cell(I64), asm.cell(I64)

        def flush() -> None:
            asm.b.call(settle, [lane, asm.b.load(sources), asm.b.load(pending)])
            asm.b.store(asm.val(0), sources)
            asm.b.store(asm.val(0), pending)

        def visit(index: ir.Value) -> None:
            number = load32(asm, listed, index)
            count = asm.b.call(self.expand, [lane, number, asm.b.load(pending)])
            source = asm.mul(asm.b.load(sources), SOURCE_WORDS)
            before = [asm.load(lane, int(word)) for word in (Lane.TAKEN, Lane.CUT)]
            for word, value in enumerate((number, count, *before)):
                asm.store(value, noted, asm.add(source, word))
            asm.b.store(asm.add(asm.b.load(sources), 1), sources)
            asm.b.store(asm.add(asm.b.load(pending), count), pending)
            # Batches, so that cache misses overlap, as in the search.
            many = asm.either(
                asm.cmp("<=", BATCH, asm.b.load(pending)), asm.cmp("<=", BATCH, asm.b.load(sources))
            )
            asm.when(many, flush)

        asm.loop(first, asm.sub(end, 1), visit)
        flush()
        asm.end()
