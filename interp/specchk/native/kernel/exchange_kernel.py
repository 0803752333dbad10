"""The two halves of a search as instructions, for engines that exchange states between tables.

`scatter` expands states and puts each successor into the bucket of the partition that owns it;
`absorb` looks a block of such states up in one partition's table and keeps the new ones.  What is
noted, counted and checked, and when, is what `search_kernel` does in one go.

    bucket = hash bits 20..39, scaled to the number of partitions

These bits are neither the tag of a slot nor, in tables of less than about 2^20 slots, its place, so a
partition's table is as well mixed as a whole one.  A small cache keeps a successor that was just put into its
bucket from being put there again; it only ever leaves out equal states.
"""

from __future__ import annotations

from specchk.codegen import ir
from specchk.codegen.functions import add_kernels
from specchk.native.kernel.search_kernel import ENTRIES, SINGLE, Kernel
from specchk.native.machine.asm import I64, Asm, Val
from specchk.native.machine.frames import BATCH, Exchange, SharedWord, Thread
from specchk.native.machine.layout import mask

BUCKET_SHIFT, BUCKET_BITS = 20, 20


class ExchangeKernel(Kernel):
    """Builds the functions of an exchanging engine, in one module."""

    def emit(self) -> None:
        """Emit all functions; the loops of the search on one machine are left out."""
        self.emit_scatter("scatter")
        self.emit_scatter("deal")
        self.emit_absorb(self.emit_insert())
        self.emit_rehash()
        add_kernels(self.module, SINGLE, ENTRIES, self.given())

    def emit_scatter(self, name: str) -> None:
        """Emit `scatter(exchange, thread, states, count)`: put successors into buckets, until one is full.

        The exchange's `DONE` is the number of states that were expanded.  `deal` puts the states
        themselves into the buckets.
        """
        asm = self.function(name, 4, ir.VoidType())
        exchange, thread, states, count_ = asm.function.args
        count = asm.b.ptrtoint(count_, I64)
        waiting, done = asm.pointer(thread, Thread.PENDING), asm.cell(I64)
        asm.store(0, exchange, Exchange.FULL)

        # FULL is checked between states, so a bucket may exceed its capacity by the successors of one state;
        # `exchange.Buckets` leaves room for them.
        def has_room() -> Val:
            more = asm.below(asm.b.load(done), count)
            return asm.both(more, asm.cmp("==", asm.load(exchange, Exchange.FULL), 0))

        def send(_: ir.Value, state: ir.Value) -> None:
            self._send(asm, exchange, state)

        def take() -> None:
            state = self.state_at(asm, states, asm.b.load(done))
            if name == "deal":
                self._send(asm, exchange, state)
            else:
                self.each_successor(asm, thread, state, waiting, 0, send)
            asm.advance(done)

        asm.while_(has_room, take)
        asm.store(asm.b.load(done), exchange, Exchange.DONE)
        asm.end()

    def _send(self, asm: Asm, exchange: ir.Value, state: ir.Value) -> None:
        """Put a state into its bucket, unless it was recently put there."""
        words = self.load_state(asm, state)
        hashed = self.hash(asm, words)
        cache = asm.pointer(exchange, Exchange.CACHE)
        place = asm.band(hashed, asm.load(exchange, Exchange.CACHE_MASK))
        # The last word of an entry distinguishes it from fresh memory, in which the state of all zeroes would
        # be found.
        entry = asm.at(cache, asm.mul(place, self.words + 1))
        is_used = asm.cmp("==", asm.load(entry, self.words), 1)
        known = asm.both(is_used, asm.cmp("==", self.difference(asm, entry, words), 0))

        # The newest state stays.  The cache may forget, which costs sending a state twice; it cannot claim
        # one that was not sent, since whole states are compared.
        def put() -> None:
            self.copy_state(asm, words, entry)
            asm.store(1, entry, self.words)
            self._put(asm, exchange, words, hashed)

        asm.when(asm.negate(known), put)

    def _put(self, asm: Asm, exchange: ir.Value, words: list[Val], hashed: ir.Value) -> None:
        share = asm.band(asm.shr(hashed, BUCKET_SHIFT), mask(BUCKET_BITS))
        # Multiply and shift instead of a remainder: 20 bits, scaled to the partitions without a division
        # (Lemire, 2019).
        product = asm.mul(share, asm.load(exchange, Exchange.PARTITIONS))
        at = asm.mul(asm.shr(product, BUCKET_BITS), 2)
        bucket = asm.at(exchange, asm.add(at, Exchange.BUCKETS))
        count = asm.load(bucket, 1)
        self.copy_state(asm, words, self.state_at(asm, asm.pointer(bucket, 0), count))
        after = asm.add(count, 1)
        asm.store(after, bucket, 1)
        full = asm.below(asm.load(exchange, Exchange.CAPACITY), after)
        asm.when(full, lambda: asm.store(1, exchange, Exchange.FULL))

    def emit_absorb(self, insert: ir.Function) -> None:
        """Emit `absorb(control, thread, block, count)`: keep and check the new states in a block."""
        asm = self.function("absorb", 4, ir.VoidType())
        control, thread, block, count_ = asm.function.args
        count = asm.b.ptrtoint(count_, I64)
        table, bits = self.table(asm, control)
        states = asm.pointer(control, SharedWord.STATES)
        hashes = asm.pointer(thread, Thread.HASHES)

        def batch(number: ir.Value) -> None:
            start = asm.b.mul(number, asm.val(BATCH))
            last = asm.sub(asm.min(asm.add(start, BATCH), count), 1)

            def near(index: ir.Value) -> None:
                hashed = self.near(asm, table, bits, self.state_at(asm, block, index))
                asm.store(hashed, hashes, asm.sub(index, start))

            def fetch(index: ir.Value) -> None:
                hashed = asm.load(hashes, asm.sub(index, start))
                asm.b.prefetch(self.named_by(asm, states, asm.load(table, asm.band(hashed, bits))))

            def look_up(index: ir.Value) -> None:
                hashed = asm.load(hashes, asm.sub(index, start))
                asm.b.call(insert, [control, thread, self.state_at(asm, block, index), hashed])

            for step in (near, fetch, look_up):
                asm.loop(start, last, step)

        asm.loop(0, asm.b.udiv(asm.b.sub(count, asm.val(1)), asm.val(BATCH)), batch)
        asm.end()
