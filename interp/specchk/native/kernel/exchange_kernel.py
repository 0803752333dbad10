"""A search's two halves as instructions, for engines that exchange states between tables.

`scatter` expands states and puts each successor into the bucket of the partition that owns it;
`absorb` looks a block of such states up in one partition's table and keeps the new ones.  What is
noted, counted and checked, and when, is what `search_kernel` does in one go.

    bucket = hash bits 20..39, scaled to the number of partitions

These bits are neither the tag of a slot nor, in tables of less than 2^20 slots or so, its place, so
a partition's table is as well mixed as a whole one.  A small cache keeps a successor that was just
put into its bucket from being put there again; it only ever leaves out equal states.
"""

from __future__ import annotations

from llvmlite import ir

from specchk.native.kernel.search_kernel import Kernel
from specchk.native.machine.asm import I64, Asm, Val
from specchk.native.machine.frames import BATCH, INDEX_BITS, Exchange, SharedWord, Thread
from specchk.native.machine.layout import mask

BUCKET_SHIFT, BUCKET_BITS = 20, 20


class ExchangeKernel(Kernel):
    """Builds the functions of an exchanging engine, in one module."""

    def emit(self) -> None:
        """Everything; the loops of the one-machine search are left out."""
        self.emit_scatter("scatter")
        self.emit_scatter("deal")
        insert = self.emit_insert(shared=False)
        self.emit_absorb(insert)
        self.emit_rehash()
        self.emit_precede()
        self.emit_resting()

    def emit_scatter(self, name: str) -> None:
        """`scatter(exchange, thread, states, count)`: successors into buckets, until one is full.

        The exchange's `DONE` says how many of the states were expanded.  `deal` puts the states
        themselves into the buckets.
        """
        asm = self.function(name, 4, ir.VoidType())
        exchange, thread, states, count_ = asm.function.args
        count = asm.b.ptrtoint(count_, I64)
        done, out = asm.cell(I64), asm.block("out")
        asm.b.store(asm.val(0), asm.b.gep(exchange, [asm.val(int(Exchange.FULL))]))

        # FULL is checked between states, so a bucket may have the successors of one state more than its
        # capacity; `exchange.Buckets` leaves the room for them.
        def goes_on() -> Val:
            more = asm.below(asm.b.load(done), count)
            return asm.both(more, asm.cmp("==", asm.load(exchange, int(Exchange.FULL)), 0))

        def one() -> None:
            state = self.state_at(asm, states, asm.b.load(done))
            if name == "deal":
                self._send(asm, exchange, state)
            else:
                self._expand(asm, exchange, thread, state)
            asm.b.store(asm.b.add(asm.b.load(done), asm.val(1)), done)

        asm.while_(goes_on, one)
        asm.goto(out)
        asm.enter(out)
        asm.store(asm.b.load(done), exchange, int(Exchange.DONE))
        asm.end()

    def _expand(self, asm: Asm, exchange: ir.Value, thread: ir.Value, state: ir.Value) -> None:
        waiting = self.pointer(asm, thread, Thread.PENDING)
        counts = asm.b.gep(thread, [asm.val(int(Thread.COUNTS))])
        cuts = asm.b.gep(thread, [asm.val(int(Thread.CUTS))])
        before = asm.b.load(cuts)
        count = asm.b.call(self.parts.successors, [state, waiting, counts, cuts])

        def send(index: ir.Value) -> None:
            after = self.state_at(asm, waiting, index)
            if self.parts.check_step is not None:
                asm.b.call(self.parts.check_step, [state, after, thread])
            if self.parts.canonical is not None:
                asm.b.call(self.parts.canonical, [after])
            self._send(asm, exchange, after)

        def some() -> None:
            asm.bump(thread, int(Thread.GENERATED), count)
            asm.loop(0, asm.sub(count, 1), send)

        def none() -> None:
            self._no_successors(asm, thread, state, count, asm.cmp("==", asm.b.load(cuts), before))

        asm.when(asm.cmp("<", 0, count), some, none)

    def _send(self, asm: Asm, exchange: ir.Value, state: ir.Value) -> None:
        """Put a state into its bucket, unless it was put there a moment ago."""
        words = self.load_state(asm, state)
        hashed = self.hash(asm, words)
        cache = self.pointer(asm, exchange, Exchange.CACHE)
        place = asm.band(hashed, asm.load(exchange, int(Exchange.CACHE_MASK)))
        # The last word of an entry distinguishes it from fresh memory, where the state of all zeroes would
        # be found.
        entry = asm.b.gep(cache, [asm.val(asm.mul(place, self.words + 1))])
        known: Val = asm.cmp("==", asm.load(entry, self.words), 1)
        for index, word in enumerate(words):
            known = asm.both(known, asm.cmp("==", asm.load(entry, index), word))

        # The newest state stays.  The cache may forget, which costs a state sent twice; it cannot claim one
        # that was not sent, since whole states are compared.
        def put() -> None:
            for index, word in enumerate(words):
                asm.store(word, entry, index)
            asm.store(1, entry, self.words)
            self._put(asm, exchange, words, hashed)

        asm.when(asm.negate(known), put)

    def _put(self, asm: Asm, exchange: ir.Value, words: list[Val], hashed: ir.Value) -> None:
        share = asm.band(asm.shr(hashed, BUCKET_SHIFT), mask(BUCKET_BITS))
        # Multiply and shift instead of a remainder: 20 bits, scaled to the partitions without a division
        # (Lemire, 2019).
        product = asm.mul(share, asm.load(exchange, int(Exchange.PARTITIONS)))
        at = asm.mul(asm.shr(product, BUCKET_BITS), 2)
        bucket = asm.b.gep(exchange, [asm.val(asm.add(at, int(Exchange.BUCKETS)))])
        count = asm.load(bucket, 1)
        target = self.state_at(asm, self.pointer(asm, bucket, 0), count)
        for index, word in enumerate(words):
            asm.store(word, target, index)
        after = asm.b.add(count, asm.val(1))
        asm.store(after, bucket, 1)
        full = asm.below(asm.load(exchange, int(Exchange.CAPACITY)), after)
        asm.when(full, lambda: asm.store(1, exchange, int(Exchange.FULL)))

    def emit_absorb(self, insert: ir.Function) -> None:
        """`absorb(control, thread, block, count)`: keep and check what is new in a block of states."""
        asm = self.function("absorb", 4, ir.VoidType())
        control, thread, block, count_ = asm.function.args
        count = asm.b.ptrtoint(count_, I64)
        table, bits = self.pointer(asm, control, SharedWord.TABLE), asm.load(control, int(SharedWord.MASK))
        # A partition has one worker at a time, so nothing here is atomic.
        states = self.pointer(asm, control, SharedWord.STATES)
        hashes = self.pointer(asm, thread, Thread.HASHES)

        def batch(number: ir.Value) -> None:
            start = asm.b.mul(number, asm.val(BATCH))
            last = asm.sub(asm.min(asm.add(start, BATCH), count), 1)

            def near(index: ir.Value) -> None:
                hashed = self.hash(asm, self.load_state(asm, self.state_at(asm, block, index)))
                asm.store(hashed, hashes, asm.sub(index, start))
                self.prefetch(asm, asm.b.gep(table, [asm.band(hashed, bits)]))

            def fetch(index: ir.Value) -> None:
                hashed = asm.load(hashes, asm.sub(index, start))
                slot = asm.b.load(asm.b.gep(table, [asm.band(hashed, bits)]))
                self.prefetch(asm, self.state_at(asm, states, asm.sub(asm.band(slot, mask(INDEX_BITS)), 1)))

            def look_up(index: ir.Value) -> None:
                hashed = asm.load(hashes, asm.sub(index, start))
                asm.b.call(insert, [control, thread, self.state_at(asm, block, index), hashed])

            for step in (near, fetch, look_up):
                asm.loop(start, last, step)

        asm.loop(0, asm.b.udiv(asm.b.sub(count, asm.val(1)), asm.val(BATCH)), batch)
        asm.end()
