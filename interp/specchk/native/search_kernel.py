"""The search loop as instructions: expand states, look successors up, keep the new ones.

The visited set is a table of 8-byte slots over a dense array of states:

    slot = tag (24 bits of the hash) | number of the state + 1 (40 bits);  0 is empty

Whole states are compared, so the set is exact.  Slots are found by linear probing and taken by
compare-and-swap after the state is written, so that whoever sees a slot sees its state.  Successors
wait in a batch: first their slots are fetched, then the states that the slots name, then they are
looked up; by then nothing misses the cache.  In compact mode a slot is the 64-bit hash itself.

Workers take pieces of the present level from a shared list and numbers for new states in chunks, so
they meet only in the table.  A worker returns when the list is used up or the table should grow; it
can be called again in the same place.  Everything here is independent of the spec, given its
functions `successors`, `check`, `check_step`, `may_end`, `canonical`.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from specchk.native.asm import I1, I8, I32, I64, PTR, Asm, Val
from specchk.native.frames import BATCH, CHUNK, DEADLOCK, FAULTS, INDEX_BITS, MAX_RUNS, Control, Thread
from specchk.native.layout import mask
from specchk.native.predicates import note_fault

I128 = ir.IntType(128)
_SEED, _MIX_A, _MIX_B, _LAST = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3


@dataclass(frozen=True, slots=True)
class Parts:
    """The functions of a program that the loop calls; None where there is nothing to do."""

    successors: ir.Function
    check: ir.Function
    check_step: ir.Function | None
    may_end: ir.Function
    canonical: ir.Function | None


def hash_words(asm: Asm, words: list[Val]) -> ir.Value:
    """64 well-mixed bits of a state: one folded 128-bit product for every two words, and one more."""

    def folded(a: Val, b: Val) -> ir.Value:
        wide = asm.b.mul(asm.b.zext(asm.val(a), I128), asm.b.zext(asm.val(b), I128))
        return asm.b.xor(asm.b.trunc(wide, I64), asm.b.trunc(asm.b.lshr(wide, ir.Constant(I128, 64)), I64))

    state: Val = _SEED
    for index in range(0, len(words), 2):
        second = words[index + 1] if index + 1 < len(words) else 0
        state = folded(asm.xor(words[index], state), asm.xor(second, _MIX_B))
    return folded(asm.xor(state, _LAST if len(words) > 2 else _MIX_A), _LAST)


class Kernel:
    """Builds the functions that Python calls, in one module."""

    def __init__(self, module: ir.Module, words: int, parts: Parts, *, compact: bool) -> None:
        self.module = module
        self.words = words
        self.parts = parts
        self.compact = compact

    def function(self, name: str, args: int, result: ir.Type, *, internal: bool = False) -> Asm:
        """A function of `args` pointers or numbers, all 64 bits wide."""
        kinds = [PTR] * args
        made = ir.Function(self.module, ir.FunctionType(result, kinds), name)
        if internal:
            made.linkage = "internal"
            made.attributes.add("alwaysinline")
        return Asm(made)

    # ------------------------------------------------------------ small parts

    def pointer(self, asm: Asm, block: ir.Value, word: int) -> ir.Value:
        """A pointer kept in a word of a block."""
        return asm.b.inttoptr(asm.load(block, word), PTR)

    def state_at(self, asm: Asm, states: ir.Value, number: Val) -> ir.Value:
        """The address of a state."""
        return asm.b.gep(states, [asm.val(asm.mul(number, self.words))])

    def load_state(self, asm: Asm, state: ir.Value) -> list[Val]:
        """The words of a state."""
        return [asm.load(state, index) for index in range(self.words)]

    def prefetch(self, asm: Asm, place: ir.Value) -> None:
        """Bring a cache line near."""
        byte = I8.as_pointer()
        fn = self.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, I32, I32, I32])
        )
        asm.b.call(fn, [asm.b.bitcast(place, byte), I32(1), I32(3), I32(1)])

    def hash(self, asm: Asm, words: list[Val]) -> ir.Value:
        """The hash of a state; in compact mode never 0."""
        found = hash_words(asm, words)
        return asm.b.select(asm.b.icmp_unsigned("==", found, asm.val(0)), asm.val(1), found) if self.compact else found

    def slot_for(self, asm: Asm, hashed: ir.Value, number: Val) -> Val:
        """What a slot holds for a state."""
        if self.compact:
            return hashed
        return asm.bor(asm.band(hashed, mask(64) & ~mask(INDEX_BITS)), asm.add(number, 1))

    def take(self, asm: Asm, place: ir.Value, slot: Val, *, shared: bool) -> tuple[ir.Value, Val]:
        """Put a slot where 0 was; what was there, and whether that was 0."""
        if not shared:
            asm.b.store(asm.val(slot), place)
            return asm.val(0), True
        pair = asm.b.cmpxchg(place, asm.val(0), asm.val(slot), "acq_rel", "acquire")
        return asm.b.extract_value(pair, 0), asm.b.extract_value(pair, 1)

    # ------------------------------------------------------------ insertion

    def emit_insert(self, *, shared: bool) -> ir.Function:
        """`insert(control, thread, state, hash)`: look a state up; if it is new keep and check it."""
        name = "insert.shared" if shared else "insert.alone"
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [PTR, PTR, PTR, I64]), name)
        function.linkage = "internal"
        asm = Asm(function)
        control, thread, state, hashed = function.args
        table, bits = self.pointer(asm, control, Control.TABLE), asm.load(control, int(Control.MASK))
        states = self.pointer(asm, control, Control.STATES)
        words = self.load_state(asm, state)
        at = asm.cell(I64, asm.band(hashed, bits))
        probe, empty, full, following, done = (asm.block(n) for n in ("probe", "empty", "full", "following", "done"))
        found = asm.cell(I64)
        asm.goto(probe)
        asm.enter(probe)
        place = asm.b.gep(table, [asm.b.load(at)])
        slot = asm.b.load_atomic(place, "acquire", 8) if shared else asm.b.load(place)
        asm.b.store(slot, found)
        asm.b.cbranch(asm.b.icmp_unsigned("==", slot, asm.val(0)), empty, full)
        asm.enter(empty)
        number = self._reserve(asm, control, thread, shared=shared)
        kept = self.state_at(asm, states, number)
        for index, word in enumerate(words):
            asm.store(word, kept, index)
        old, taken = self.take(asm, place, self.slot_for(asm, hashed, number), shared=shared)
        asm.b.store(old, found)
        asm.leave_if(asm.negate(taken), full)
        self._accept(asm, thread, kept, number)
        asm.goto(done)
        asm.enter(full)
        self._compare(asm, asm.b.load(found), hashed, states, words, done)
        asm.goto(following)
        asm.enter(following)
        asm.b.store(asm.band(asm.add(asm.b.load(at), 1), bits), at)
        asm.goto(probe)
        asm.enter(done)
        asm.b.ret_void()
        asm.finish()
        return function

    def _compare(
        self, asm: Asm, slot: ir.Value, hashed: ir.Value, states: ir.Value, words: list[Val], done: ir.Block
    ) -> None:
        """Leave for `done` if a slot is of this very state."""
        if self.compact:
            asm.leave_if(asm.cmp("==", slot, hashed), done)
            return
        other = asm.block("other")
        asm.leave_if(asm.negate(asm.cmp("==", asm.shr(asm.xor(slot, hashed), INDEX_BITS), 0)), other)
        known = self.state_at(asm, states, asm.sub(asm.band(slot, mask(INDEX_BITS)), 1))
        difference: Val = 0
        for index, word in enumerate(words):
            difference = asm.bor(difference, asm.xor(asm.load(known, index), word))
        asm.leave_if(asm.cmp("==", difference, 0), done)
        asm.goto(other)
        asm.enter(other)

    def _reserve(self, asm: Asm, control: ir.Value, thread: ir.Value, *, shared: bool) -> ir.Value:
        """The worker's next free state number, from a new chunk where the old one is used up."""
        free = asm.load(thread, int(Thread.FREE))
        exhausted = asm.b.icmp_unsigned("==", free, asm.load(thread, int(Thread.FREE_END)))
        asm.when(exhausted, lambda: self._new_chunk(asm, control, thread, shared=shared))
        return asm.load(thread, int(Thread.FREE))

    def _new_chunk(self, asm: Asm, control: ir.Value, thread: ir.Value, *, shared: bool) -> None:
        self._end_run(asm, thread, asm.load(thread, int(Thread.FREE)))
        place = asm.b.gep(control, [asm.val(int(Control.NEXT))])
        first = asm.b.atomic_rmw("add", place, asm.val(CHUNK), "monotonic")
        end = asm.add(first, CHUNK)
        for word, value in ((Thread.FREE, first), (Thread.FREE_END, end), (Thread.RUN, first)):
            asm.store(value, thread, int(word))
        too_many = asm.b.icmp_unsigned(">", asm.val(end), asm.load(control, int(Control.LIMIT)))
        crowded = asm.b.icmp_unsigned(">", asm.load(thread, int(Thread.RUNS)), asm.val(MAX_RUNS // 2))
        asm.when(asm.b.or_(too_many, crowded), lambda: self._stop(asm, control))

    def _stop(self, asm: Asm, control: ir.Value) -> None:
        asm.b.store_atomic(asm.val(1), asm.b.gep(control, [asm.val(int(Control.STOP))]), "monotonic", 8)

    def _end_run(self, asm: Asm, thread: ir.Value, end: ir.Value) -> None:
        """Note the run of new states that ends before `end`."""
        start, count = asm.load(thread, int(Thread.RUN)), asm.load(thread, int(Thread.RUNS))

        def note() -> None:
            entry = asm.b.gep(self.pointer(asm, thread, Thread.RUN_LIST), [asm.b.mul(count, asm.val(2))])
            asm.store(start, entry, 0)
            asm.store(asm.sub(end, start), entry, 1)
            asm.store(asm.add(count, 1), thread, int(Thread.RUNS))

        asm.when(asm.b.icmp_unsigned("<", start, end), note)

    def _accept(self, asm: Asm, thread: ir.Value, state: ir.Value, number: ir.Value) -> None:
        after = asm.add(number, 1)
        asm.store(after, thread, int(Thread.FREE))
        inside = asm.b.call(self.parts.check, [state, thread])

        def outside() -> None:
            self._end_run(asm, thread, number)
            asm.store(after, thread, int(Thread.RUN))
            asm.bump(thread, int(Thread.OUTSIDE))

        asm.when(inside, lambda: asm.bump(thread, int(Thread.NEW)), outside)

    # ------------------------------------------------------------ expansion

    def emit_expand(self) -> ir.Function:
        """`expand(control, thread, state, pending) -> pending`: add a state's successors to the batch."""
        function = ir.Function(self.module, ir.FunctionType(I64, [PTR, PTR, PTR, I64]), "expand")
        function.linkage = "internal"
        asm = Asm(function)
        control, thread, state, pending = function.args
        waiting = self.pointer(asm, thread, Thread.PENDING)
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
        table, bits = self.pointer(asm, control, Control.TABLE), asm.load(control, int(Control.MASK))
        hashes = self.pointer(asm, thread, Thread.HASHES)
        end = asm.b.add(pending, count)

        def prepare(index: ir.Value) -> None:
            after = self.state_at(asm, waiting, index)
            if self.parts.check_step is not None:
                asm.b.call(self.parts.check_step, [state, after, thread])
            if self.parts.canonical is not None:
                asm.b.call(self.parts.canonical, [after])
            hashed = self.hash(asm, self.load_state(asm, after))
            asm.store(hashed, hashes, index)
            self.prefetch(asm, asm.b.gep(table, [asm.band(hashed, bits)]))

        asm.loop(pending, asm.sub(end, 1), prepare)
        asm.b.ret(end)
        asm.finish()
        return function

    def _no_successors(self, asm: Asm, thread: ir.Value, state: ir.Value, count: ir.Value, uncut: Val) -> None:
        faulty = asm.cmp("<", count, 0)

        def fault() -> None:
            note_fault(asm, thread, asm.sub(FAULTS - 1, count), state, state)

        def deadlock() -> None:
            asm.when(
                asm.both(uncut, asm.negate(asm.b.call(self.parts.may_end, [state, thread]))),
                lambda: note_fault(asm, thread, DEADLOCK, state, state),
            )

        asm.when(faulty, fault, deadlock)

    def emit_flush(self, insert: ir.Function, *, shared: bool) -> ir.Function:
        """`flush(control, thread, pending)`: look up all successors in the batch."""
        name = "flush.shared" if shared else "flush.alone"
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [PTR, PTR, I64]), name)
        function.linkage = "internal"
        asm = Asm(function)
        control, thread, pending = function.args
        waiting, hashes = self.pointer(asm, thread, Thread.PENDING), self.pointer(asm, thread, Thread.HASHES)
        table, bits = self.pointer(asm, control, Control.TABLE), asm.load(control, int(Control.MASK))
        states = self.pointer(asm, control, Control.STATES)
        last = asm.sub(pending, 1)

        def fetch(index: ir.Value) -> None:
            place = asm.b.gep(table, [asm.band(asm.load(hashes, index), bits)])
            slot = asm.b.load_atomic(place, "monotonic", 8) if shared else asm.b.load(place)
            self.prefetch(asm, self.state_at(asm, states, asm.sub(asm.band(slot, mask(INDEX_BITS)), 1)))

        if not self.compact:
            asm.loop(0, last, fetch)
        asm.loop(0, last, lambda i: self._insert_one(asm, insert, control, thread, waiting, hashes, i))
        asm.b.ret_void()
        asm.finish()
        return function

    def _insert_one(
        self, asm: Asm, insert: ir.Function, control: ir.Value, thread: ir.Value, waiting: ir.Value,
        hashes: ir.Value, index: ir.Value,
    ) -> None:  # fmt: skip
        asm.b.call(insert, [control, thread, self.state_at(asm, waiting, index), asm.load(hashes, index)])

    def emit_work(self, name: str, expand: ir.Function, flush: ir.Function) -> None:
        """`work(control, thread)`: expand pieces of the level until there are none or STOP is set."""
        asm = self.function(name, 2, ir.VoidType())
        control, thread = asm.function.args
        states, work = self.pointer(asm, control, Control.STATES), self.pointer(asm, control, Control.WORK)
        stop = asm.b.gep(control, [asm.val(int(Control.STOP))])
        cursor = asm.b.gep(control, [asm.val(int(Control.CURSOR))])
        current = asm.cell(I64, asm.load(thread, int(Thread.PIECE)))
        end = asm.cell(I64, asm.load(thread, int(Thread.PIECE_END)))
        pending = asm.cell(I64)
        more, next_piece, take, one, out = (asm.block(n) for n in ("more", "next_piece", "take", "one", "out"))
        asm.goto(more)
        asm.enter(more)
        asm.b.cbranch(asm.b.icmp_unsigned("==", asm.b.load(current), asm.b.load(end)), next_piece, one)
        asm.enter(next_piece)
        index = asm.b.atomic_rmw("add", cursor, asm.val(1), "monotonic")
        asm.b.cbranch(asm.b.icmp_unsigned("<", index, asm.load(control, int(Control.WORK_END))), take, out)
        asm.enter(take)
        entry = asm.b.gep(work, [asm.b.mul(index, asm.val(2))])
        asm.b.store(asm.load(entry, 0), current)
        asm.b.store(asm.b.add(asm.load(entry, 0), asm.load(entry, 1)), end)
        asm.goto(more)
        asm.enter(one)
        state = self.state_at(asm, states, asm.b.load(current))
        asm.b.store(asm.b.call(expand, [control, thread, state, asm.b.load(pending)]), pending)
        asm.b.store(asm.b.add(asm.b.load(current), asm.val(1)), current)
        asm.leave_if(asm.b.icmp_unsigned("<", asm.b.load(pending), asm.val(BATCH)), more)
        asm.b.call(flush, [control, thread, asm.b.load(pending)])
        asm.b.store(asm.val(0), pending)
        asm.leave_if(asm.cmp("!=", asm.b.load_atomic(stop, "monotonic", 8), 0), out)
        asm.goto(more)
        asm.enter(out)
        asm.b.call(flush, [control, thread, asm.b.load(pending)])
        asm.store(asm.b.load(current), thread, int(Thread.PIECE))
        asm.store(asm.b.load(end), thread, int(Thread.PIECE_END))
        asm.b.ret_void()
        asm.finish()

    # ------------------------------------------------------------ the rest

    def emit_add(self, insert: ir.Function) -> None:
        """`add(control, thread, state)`: an initial state, made canonical in place."""
        asm = self.function("add", 3, ir.VoidType())
        control, thread, state = asm.function.args
        if self.parts.canonical is not None:
            asm.b.call(self.parts.canonical, [state])
        asm.b.call(insert, [control, thread, state, self.hash(asm, self.load_state(asm, state))])
        asm.b.ret_void()
        asm.finish()

    def emit_rehash(self) -> None:
        """`rehash(control, first, end)`: enter known states, all different, into the table."""
        asm = self.function("rehash", 3, ir.VoidType())
        control, first_, end_ = asm.function.args
        first, end = asm.b.ptrtoint(first_, I64), asm.b.ptrtoint(end_, I64)
        states = self.pointer(asm, control, Control.STATES)
        table, bits = self.pointer(asm, control, Control.TABLE), asm.load(control, int(Control.MASK))
        hashes = asm._cells.alloca(I64, BATCH)  # noqa: SLF001 - a buffer on the stack, as cells are

        def batch(number: ir.Value) -> None:
            start = asm.b.add(first, asm.b.mul(number, asm.val(BATCH)))
            last = asm.sub(asm.min(asm.add(start, BATCH), end), 1)

            def fetch(index: ir.Value) -> None:
                hashed = self.hash(asm, self.load_state(asm, self.state_at(asm, states, index)))
                asm.store(hashed, hashes, asm.sub(index, start))
                self.prefetch(asm, asm.b.gep(table, [asm.band(hashed, bits)]))

            asm.loop(start, last, fetch)
            asm.loop(start, last, lambda i: self._enter(asm, table, bits, asm.load(hashes, asm.sub(i, start)), i))

        asm.loop(0, asm.b.udiv(asm.b.sub(asm.b.sub(end, first), asm.val(1)), asm.val(BATCH)), batch)
        asm.b.ret_void()
        asm.finish()

    def _enter(self, asm: Asm, table: ir.Value, bits: ir.Value, hashed: ir.Value, number: ir.Value) -> None:
        at, slot = asm.cell(I64, asm.band(hashed, bits)), self.slot_for(asm, hashed, number)
        head, done = asm.block("try"), asm.block("entered")
        asm.goto(head)
        asm.enter(head)
        place = asm.b.gep(table, [asm.b.load(at)])
        known = asm.b.load_atomic(place, "monotonic", 8)
        asm.b.store(asm.band(asm.add(asm.b.load(at), 1), bits), at)
        asm.leave_if(asm.cmp("!=", known, 0), head)
        _, taken = self.take(asm, place, slot, shared=True)
        asm.leave_if(asm.negate(taken), head)
        asm.goto(done)
        asm.enter(done)

    def emit_precede(self) -> None:
        """`precede(control, thread, first, end, target, best) -> i1`: whether a state numbered from
        `first` to `end` has the target as a successor; the smallest such state goes to `best`, if it
        is smaller than what is there or nothing is (`best[words]` tells)."""
        asm = self.function("precede", 6, ir.VoidType())
        control, thread, first_, end_, target, best = asm.function.args
        first, end = asm.b.ptrtoint(first_, I64), asm.b.ptrtoint(end_, I64)
        states, out = self.pointer(asm, control, Control.STATES), self.pointer(asm, thread, Thread.PENDING)
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
        asm.b.ret_void()
        asm.finish()

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
        for name, shared in (("work_alone", False), ("work_shared", True)):
            insert = self.emit_insert(shared=shared)
            self.emit_work(name, expand, self.emit_flush(insert, shared=shared))
            if shared:
                self.emit_add(insert)
        self.emit_rehash()
        self.emit_precede()


__all__ = ["I1", "Kernel", "Parts", "hash_words"]
