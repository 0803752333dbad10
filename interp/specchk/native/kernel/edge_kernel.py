"""The steps of known states as instructions, each with its action, its arguments and its target.

`edges` expands states again and lists what the search forgets.  A state is named by its hash, the same as in
the table; a step by its *label*:

    action | rank of its arguments     the last parameter varies fastest
    bit 63                             the state after is outside a constraint

Nothing is looked up, so states may be listed in any order, on any machine that has their words.
"""

from __future__ import annotations

from specchk.codegen import ir
from specchk.codegen.arrays import Words, prefetch, words
from specchk.codegen.functions import add_kernels
from specchk.native.kernel.steps import Steps
from specchk.native.kernel.table_kernel import KernelSpec, TableKernel
from specchk.native.machine.frames import BATCH, Listing, NameTable, Thread

RANK_BITS = 32  # a state has at most 2^20 successors, and no action has more instances
OUTSIDE_BIT = 63
OUTSIDE = 1 << OUTSIDE_BIT
# Some bits of a name choose its share, and the highest ones its slot; those between choose the partition of
# an exchange (`exchange_kernel`), which may contain all names.
NAME_SHARES, NAME_SLOT_BIT = 256, 40


class RankedSteps(Steps):
    """Emits `successors` with one more word after each state: the label of its step."""

    label_words = 1
    is_ordered = True

    def count(self, point: int) -> None:
        """Count nothing: coverage was counted by the search."""

    def _label(self, at: ir.Value) -> None:
        rank = self.rank_of(self.program.actions[self.index].params)
        label = self.asm.bor(self.asm.shl(self.index, RANK_BITS), rank)
        self.asm.store(label, self.out, self.asm.add(at, self.layout.words))


def edges(spec: KernelSpec, listing: Words, thread: Words, states: Words, count: int) -> None:
    """List the steps of states, until the arrays are full.

    The listing's `DONE` is the number of states that were expanded.  A state in which a step is undefined has
    no steps.
    """
    sources, labels = words(listing[Listing.SOURCES]), words(listing[Listing.LABELS])
    targets, waiting = words(listing[Listing.TARGETS]), words(thread[Thread.PENDING])
    filled, done = listing[Listing.FILLED], 0
    while done < count and filled < listing[Listing.CAPACITY]:
        state = states[done * spec.words :]
        steps = spec.successors(state, waiting, thread[Thread.COUNTS :], thread[Thread.CUTS :])
        source = spec.hashed(state)
        for index in range(steps):
            after = waiting[index * (spec.words + 1) :]
            sources[filled], labels[filled] = source, after[spec.words]
            # Before `check`: constraints do not distinguish renamed states, and the search checks the kept
            # one.
            if spec.renamed:
                spec.canonical(after)
            if spec.constrained and not spec.check(after, thread):
                labels[filled] |= OUTSIDE
            targets[filled] = spec.hashed(after)
            filled += 1
        done += 1
    listing[Listing.FILLED], listing[Listing.DONE] = filled, done


def identify(spec: KernelSpec, states: Words, count: int, names: Words) -> None:
    """Write the names of states."""
    for index in range(count):
        names[index] = spec.hashed(states[index * spec.words :])


def share_names(names: Words, count: int, ends: Words, out: Words) -> None:
    """Sort names by share, and write the end of each share."""
    for share in range(NAME_SHARES):
        ends[share] = 0
    for index in range(count):
        ends[names[index] & NAME_SHARES - 1] += 1
    before = 0
    for share in range(NAME_SHARES):
        many = ends[share]
        ends[share] = before
        before += many
    for index in range(count):
        share = names[index] & NAME_SHARES - 1
        out[ends[share]] = names[index]
        ends[share] += 1


def repeats(block: Words, names: Words, count: int) -> None:
    """Enter the names of a share into a table with more slots than all; `REPEATED` counts known names."""
    slots, start = words(block[NameTable.SLOTS]), 0
    while start < count:
        end = min(start + BATCH, count)
        # Two passes, so that cache misses overlap.
        for index in range(start, end):
            prefetch(slots, names[index] >> NAME_SLOT_BIT & block[NameTable.MASK])
        for index in range(start, end):
            if names[index] == 0:
                block[NameTable.ZEROES] += 1
                continue
            at = names[index] >> NAME_SLOT_BIT & block[NameTable.MASK]
            while slots[at] != 0 and slots[at] != names[index]:
                at = at + 1 & block[NameTable.MASK]
            block[NameTable.REPEATED] += slots[at] == names[index]
            slots[at] = names[index]
        start = end


def represent(spec: KernelSpec, state: Words) -> None:
    """Replace a state by the representative that the search keeps."""
    if spec.renamed:
        spec.canonical(state)


EDGES = (edges, identify, share_names, repeats, represent)


class EdgeKernel(TableKernel):
    """Builds the functions that list steps and name states, in one module."""

    def emit(self) -> None:
        """Emit all functions."""
        add_kernels(self.module, EDGES, [kernel.__name__ for kernel in EDGES], self.given())
