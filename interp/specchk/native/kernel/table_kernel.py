"""The visited set as instructions: 8-byte slots over a dense array of states.

    slot = tag (24 bits of the hash) | number of the state + 1 (40 bits);  0 is empty

Whole states are compared, so the set is exact.  Slots are found by linear probing and taken by
compare-and-swap after the state is written, so that whoever sees a slot sees its state.  In compact
mode a slot is the 64-bit hash itself.  Workers take numbers for new states in chunks, so they meet
only in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from specchk.codegen import ir
from specchk.codegen.arrays import Words, below
from specchk.ir.program import Program
from specchk.native.machine.asm import I1, I64, PTR, Asm, Val
from specchk.native.machine.frames import BATCH, CHUNK, INDEX_BITS, MAX_RUNS, SharedWord, Thread
from specchk.native.machine.layout import WORD, StateLayout, mask

I128 = ir.IntType(128)
# The constants of wyhash (Wang Yi).  They are fixed: a spec is not an adversary that looks for collisions,
# and two runs that fill their tables alike can be compared.
_SEED, _MIX_A, _MIX_B, _LAST = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3


class Parts(Struct, frozen=True):
    """The functions of a program that the loop calls; None if one has nothing to do."""

    successors: ir.Function
    check: ir.Function
    check_step: ir.Function | None
    may_end: ir.Function
    canonical: ir.Function | None
    constrained: bool = False


def hash_words(asm: Asm, words: list[Val]) -> ir.Value:
    """64 well-mixed bits of a state: a folded 128-bit product for every two words, and a final one."""

    # In the low half of a product no bit depends on a higher one of the factors; folding in the high half
    # repairs that.
    def folded(a: Val, b: Val) -> ir.Value:
        wide = asm.b.mul(asm.b.zext(asm.val(a), I128), asm.b.zext(asm.val(b), I128))
        return asm.b.xor(
            asm.b.trunc(wide, I64), asm.b.trunc(asm.b.lshr(wide, ir.ConstantValue(I128, 64)), I64)
        )

    state: Val = _SEED
    for index in range(0, len(words), 2):
        second = words[index + 1] if index + 1 < len(words) else 0
        state = folded(asm.xor(words[index], state), asm.xor(second, _MIX_B))
    return folded(asm.xor(state, _LAST if len(words) > 2 else _MIX_A), _LAST)


class KernelSpec(Protocol):
    """What kernels need to know of a spec; answers are 0 and 1 but where others are named."""

    words: int  # of a state
    compact: int  # whether a slot is a hash
    constrained: int
    renamed: int  # whether `canonical` does anything

    def successors(self, state: Words, out: Words, counts: Words, cuts: Words) -> int:
        """Write the successors of a state; their number, or -(action + 1) for an undefined step."""

    def canonical(self, state: Words) -> None:
        """Replace a state by the representative of its class."""

    def may_end(self, state: Words, thread: Words) -> int:
        """Whether a state without steps is allowed."""

    def check(self, state: Words, thread: Words) -> int:
        """Whether a state is within the constraints."""

    def truth(self, state: Words, thread: Words, which: int) -> int:
        """`FALSE`, `TRUE` or `UNDEFINED`: a predicate in a state."""

    def hashed(self, state: Words) -> int:
        """The hash of a state."""

    def is_same(self, state: Words, other: Words) -> int:
        """Whether two states are equal."""

    def is_kept(self, state: Words, other: Words) -> int:
        """Whether two states are equal up to ignored variables."""


def is_less(spec: KernelSpec, state: Words, other: Words) -> int:
    """Whether a state is before another, in the order of the tuples that Python reads."""
    for index in range(spec.words):
        if state[index] != other[index]:
            return below(state[index], other[index])
    return 0


class TableKernel:
    """Builds the functions that look up and keep states."""

    def __init__(
        self, module: ir.IRModule, program: Program, layout: StateLayout, parts: Parts, *, compact: bool
    ) -> None:
        self.module = module
        self.program = program
        self.layout = layout
        self.words = layout.words
        self.parts = parts
        self.compact = compact
        self.masks = layout.masks(program.ignored)

    def emit(self) -> None:
        """Emit all functions that Python calls; implemented by subclasses."""
        raise NotImplementedError

    def given(self) -> dict[str, int | ir.Function]:
        """What kernels that are Python functions know of the spec (`KernelSpec`)."""
        asm = Asm.of(self.module, "hashed", [PTR], I64)
        asm.b.ret(self.hash(asm, self.load_state(asm, asm.function.args[0])))
        asm.finish()
        given: dict[str, int | ir.Function] = {
            "words": self.words, "compact": int(self.compact), "constrained": int(self.parts.constrained),
            "successors": self.parts.successors, "check": self.parts.check, "hashed": asm.function,
            "may_end": self.parts.may_end, "renamed": 0,
        }  # fmt: skip
        if self.parts.canonical is not None:
            given |= {"renamed": 1, "canonical": self.parts.canonical}
        for name, masks in (("is_same", None), ("is_kept", self.masks)):
            asm = Asm.of(self.module, name, [PTR, PTR], I1)
            state, other = asm.function.args
            difference = self.difference(asm, state, self.load_state(asm, other), masks)
            asm.b.ret(asm.val(asm.cmp("==", difference, 0), I1))
            asm.finish()
            given[name] = asm.function
        return given

    def function(self, name: str, args: int, result: ir.Type) -> Asm:
        """A function for Python, with `args` pointers or numbers as arguments, all 64 bits wide."""
        return Asm.of(self.module, name, [PTR] * args, result, internal=False)

    def state_at(self, asm: Asm, states: ir.Value, number: Val) -> ir.Value:
        """The address of a state."""
        return asm.at(states, asm.mul(number, self.words))

    def load_state(self, asm: Asm, state: ir.Value) -> list[Val]:
        """The words of a state."""
        return [asm.load(state, index) for index in range(self.words)]

    def copy_state(self, asm: Asm, words: Iterable[Val], target: ir.Value) -> None:
        """Store the words of a state."""
        for index, word in enumerate(words):
            asm.store(word, target, index)

    def table(self, asm: Asm, control: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The address of the table, and the mask of its size."""
        return asm.pointer(control, SharedWord.TABLE), asm.load(control, SharedWord.MASK)

    def number_in(self, asm: Asm, slot: ir.Value) -> Val:
        """The number of the state in a slot."""
        return asm.sub(asm.band(slot, mask(INDEX_BITS)), 1)

    def named_by(self, asm: Asm, states: ir.Value, slot: ir.Value) -> ir.Value:
        """The address of the state whose number is in a slot."""
        return self.state_at(asm, states, self.number_in(asm, slot))

    def next_slot(self, asm: Asm, at: ir.Value, bits: ir.Value) -> None:
        """Move a cell to the next slot, which is usually in the cache line already fetched."""
        asm.b.store(asm.band(asm.add(asm.b.load(at), 1), bits), at)

    def near(self, asm: Asm, table: ir.Value, bits: ir.Value, state: ir.Value) -> ir.Value:
        """The hash of a state; also prefetches its slot."""
        hashed = self.hash(asm, self.load_state(asm, state))
        asm.b.prefetch(asm.at(table, asm.band(hashed, bits)))
        return hashed

    def successors(self, asm: Asm, thread: ir.Value, state: ir.Value, out: ir.Value) -> ir.Value:
        """Write the successors of a state; returns their number, or -(action + 1) for an undefined step."""
        blocks = asm.at(thread, Thread.COUNTS), asm.at(thread, Thread.CUTS)
        return asm.b.call(self.parts.successors, [state, out, *blocks])

    def rename(self, asm: Asm, state: ir.Value) -> None:
        """Replace a state by the representative of its class."""
        if self.parts.canonical is not None:
            asm.b.call(self.parts.canonical, [state])

    def hash(self, asm: Asm, words: list[Val]) -> ir.Value:
        """The hash of a state; never 0 in compact mode."""
        # 0 is an empty slot, and in compact mode the slot is the hash.
        kept = [asm.band(word, bits) for word, bits in zip(words, self.masks, strict=True) if bits]
        hashed = hash_words(asm, kept)
        if not self.compact:
            return hashed
        return asm.b.select(asm.b.icmp_unsigned("==", hashed, asm.val(0)), asm.val(1), hashed)

    def slot_for(self, asm: Asm, hashed: ir.Value, number: Val) -> Val:
        """The slot content that represents a state."""
        if self.compact:
            return hashed
        return asm.bor(asm.band(hashed, mask(64) & ~mask(INDEX_BITS)), asm.add(number, 1))

    def take(self, asm: Asm, place: ir.Value, slot: Val) -> tuple[ir.Value, Val]:
        """Write a slot if it is 0; returns its previous content, and whether that was 0."""
        # Release on success publishes the words of the state, written before, together with the slot.
        # Acquire on failure, because the caller then reads the state of the worker that was faster.
        pair = asm.b.cmpxchg(place, asm.val(0), asm.val(slot), "acq_rel", "acquire")
        return asm.b.extract_value(pair, 0), asm.b.extract_value(pair, 1)

    def emit_insert(self) -> ir.Function:
        """Emit `insert(control, thread, state, hash)`: look up a state; keep and check it if it is new."""
        asm = Asm.of(self.module, "insert", [PTR, PTR, PTR, I64], ir.VoidType())
        control, thread, state, hashed = asm.function.args
        (table, bits), states = self.table(asm, control), asm.pointer(control, SharedWord.STATES)
        words = self.load_state(asm, state)
        at, seen = asm.cell(I64, asm.band(hashed, bits)), asm.cell(I64)
        probe, empty, full, done = (asm.block(name) for name in ("probe", "empty", "full", "done"))
        asm.fall_into(probe)
        place = asm.at(table, asm.b.load(at))
        # Pairs with the release in `take`: the whole state of a slot that is seen has been written.
        slot = asm.b.load_atomic(place, "acquire", 8)
        asm.b.store(slot, seen)
        asm.b.cbranch(asm.b.icmp_unsigned("==", slot, asm.val(0)), empty, full)
        asm.enter(empty)
        # State first, slot second.  Otherwise, a worker that finds the slot could read words that are not
        # there yet (0 in a fresh page), find no equal state, and enter the same state again behind it.
        number = self._reserve(asm, control, thread)
        kept = self.state_at(asm, states, number)
        self.copy_state(asm, words, kept)
        old, taken = self.take(asm, place, self.slot_for(asm, hashed, number))
        asm.b.store(old, seen)
        # The race for this slot is lost, perhaps against this very state: it is compared like any full slot.
        # The number is not lost: `Thread.FREE` moves past it only in `_accept`, so the next new state
        # overwrites these words.
        asm.leave_if(asm.negate(taken), full)
        self._accept(asm, thread, kept, number)
        asm.goto(done)
        asm.enter(full)
        known = asm.block("known") if self.program.ignored else done
        self.leave_if_same(asm, asm.b.load(seen), hashed, states, words, known)
        # Probing ends, since the table always has empty slots (`Store.slack` is kept below the share that
        # `LOAD` leaves).
        self.next_slot(asm, at, bits)
        asm.goto(probe)
        if self.program.ignored:
            asm.enter(known)
            self._count_skipped(asm, thread, asm.b.load(seen), states, words)
            asm.goto(done)
        asm.enter(done)
        asm.end()
        return asm.function

    def _count_skipped(
        self, asm: Asm, thread: ir.Value, slot: ir.Value, states: ir.Value, words: list[Val]
    ) -> None:
        """Count a state that is not kept because it differs from a kept one only in ignored variables."""
        # A hash covers the variables that are not ignored, so each equal hash may be of another state in
        # compact mode.
        differs: Val = 1 if self.compact else self.difference(asm, self.named_by(asm, states, slot), words)
        asm.when(asm.cmp("!=", differs, 0), lambda: asm.bump(thread, Thread.SKIPPED))

    def leave_if_same(
        self, asm: Asm, slot: ir.Value, hashed: ir.Value, states: ir.Value, words: list[Val], done: ir.Block
    ) -> None:
        """Leave for `done` if a slot has this state, up to ignored variables."""
        if self.compact:
            asm.leave_if(asm.cmp("==", slot, hashed), done)
            return
        other = asm.block("other")
        # Tags first: except for one in 16 million an unequal state is recognised by its slot, without a
        # miss for its words.
        asm.leave_if(asm.negate(asm.cmp("==", asm.shr(asm.xor(slot, hashed), INDEX_BITS), 0)), other)
        known = self.named_by(asm, states, slot)
        # One branch for all words: it does not matter which of them differs, and nearly always none does.
        asm.leave_if(asm.cmp("==", self.difference(asm, known, words, self.masks), 0), done)
        asm.fall_into(other)

    def difference(
        self, asm: Asm, state: ir.Value, words: Iterable[Val], masks: Sequence[int] | None = None
    ) -> Val:
        """A word that is 0 if a state has these words, in the bits of the masks."""
        difference: Val = 0
        for index, word in enumerate(words):
            bits = mask(WORD) if masks is None else masks[index]
            if bits:
                differing = asm.xor(asm.load(state, index), word)
                difference = asm.bor(difference, asm.band(differing, bits))
        return difference

    def _reserve(self, asm: Asm, control: ir.Value, thread: ir.Value) -> ir.Value:
        """The worker's next free state number, from a new chunk if the current one is used up."""
        free = asm.load(thread, Thread.FREE)
        exhausted = asm.b.icmp_unsigned("==", free, asm.load(thread, Thread.FREE_END))
        asm.when(exhausted, lambda: self._new_chunk(asm, control, thread))
        return asm.load(thread, Thread.FREE)

    def _new_chunk(self, asm: Asm, control: ir.Value, thread: ir.Value) -> None:
        self._end_run(asm, thread, asm.load(thread, Thread.FREE))
        # Monotonic is enough: numbers need only be different.  The states stored under them are published by
        # slots.
        first = asm.b.atomic_rmw("add", asm.at(control, SharedWord.NEXT), asm.val(CHUNK), "monotonic")
        end = asm.add(first, CHUNK)
        for word, value in ((Thread.FREE, first), (Thread.FREE_END, end), (Thread.RUN, first)):
            asm.store(value, thread, word)
        # Both limits have a reserve, since STOP is a request: every worker ends its batch first
        # (`Store.slack`, `Worker._runs`).
        too_many = asm.b.icmp_unsigned(">", asm.val(end), asm.load(control, SharedWord.LIMIT))
        crowded = asm.b.icmp_unsigned(">", asm.load(thread, Thread.RUNS), asm.val(MAX_RUNS // 2))
        asm.when(asm.b.or_(too_many, crowded), lambda: self.stop(asm, control))

    def stop(self, asm: Asm, control: ir.Value) -> None:
        """Set STOP, for a search or for walks."""
        # No read relies on STOP, so it orders nothing; Python sees the rest once the call returns.
        asm.b.store_atomic(asm.val(1), asm.at(control, SharedWord.STOP), "monotonic", 8)

    def is_stopped(self, asm: Asm, control: ir.Value) -> Val:
        """Whether STOP is set."""
        stop = asm.b.load_atomic(asm.at(control, SharedWord.STOP), "monotonic", 8)
        return asm.cmp("!=", stop, 0)

    def _end_run(self, asm: Asm, thread: ir.Value, end: ir.Value) -> None:
        """Note the run of new states that ends before `end`."""
        start, count = asm.load(thread, Thread.RUN), asm.load(thread, Thread.RUNS)

        def note() -> None:
            entry = asm.at(asm.pointer(thread, Thread.RUN_LIST), asm.mul(count, 2))
            asm.store(start, entry, 0)
            asm.store(asm.sub(end, start), entry, 1)
            asm.store(asm.add(count, 1), thread, Thread.RUNS)

        asm.when(asm.b.icmp_unsigned("<", start, end), note)

    def _accept(self, asm: Asm, thread: ir.Value, state: ir.Value, number: ir.Value) -> None:
        after = asm.add(number, 1)
        asm.store(after, thread, Thread.FREE)
        # Checked where it is kept, by the worker that entered it: once, and with the state still in the
        # cache.
        inside = asm.b.call(self.parts.check, [state, thread])

        # As in TLC: a state outside the constraints stays in the table, so that it is checked only once, but
        # a run ends before it and the next begins behind it, so that it is not expanded.
        def outside() -> None:
            self._end_run(asm, thread, number)
            asm.store(after, thread, Thread.RUN)
            asm.bump(thread, Thread.OUTSIDE)

        asm.when(inside, lambda: asm.bump(thread, Thread.NEW), outside)

    def emit_rehash(self) -> None:
        """Emit `rehash(control, first, end)`: enter known, distinct states into the table."""
        asm = self.function("rehash", 3, ir.VoidType())
        control, first_, end_ = asm.function.args
        first, end = asm.b.ptrtoint(first_, I64), asm.b.ptrtoint(end_, I64)
        states, (table, bits) = asm.pointer(control, SharedWord.STATES), self.table(asm, control)
        hashes = asm.buffer(BATCH)

        def batch(number: ir.Value) -> None:
            start = asm.b.add(first, asm.b.mul(number, asm.val(BATCH)))
            last = asm.sub(asm.min(asm.add(start, BATCH), end), 1)

            def fetch(index: ir.Value) -> None:
                hashed = self.near(asm, table, bits, self.state_at(asm, states, index))
                asm.store(hashed, hashes, asm.sub(index, start))

            def put(index: ir.Value) -> None:
                self.enter(asm, table, bits, asm.load(hashes, asm.sub(index, start)), index)

            # Two passes over a batch, so that its cache misses overlap instead of following one another.
            asm.loop(start, last, fetch)
            asm.loop(start, last, put)

        asm.loop(0, asm.b.udiv(asm.b.sub(asm.b.sub(end, first), asm.val(1)), asm.val(BATCH)), batch)
        asm.end()

    def enter(self, asm: Asm, table: ir.Value, bits: ir.Value, hashed: ir.Value, number: Val) -> None:
        """Enter a state that is not in the table."""
        # The states are known to be distinct, so the first empty slot will do and no state is compared.
        # Other threads enter other states meanwhile: only the compare-and-swap must be atomic.
        at, slot = asm.cell(I64, asm.band(hashed, bits)), self.slot_for(asm, hashed, number)
        head = asm.block("try")
        asm.fall_into(head)
        place = asm.at(table, asm.b.load(at))
        known = asm.b.load_atomic(place, "monotonic", 8)
        self.next_slot(asm, at, bits)
        asm.leave_if(asm.cmp("!=", known, 0), head)
        _, taken = self.take(asm, place, slot)
        asm.leave_if(asm.negate(taken), head)
