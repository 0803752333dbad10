"""Regions with a pending goal, as kernels: their states, edges and rests.

A region has a block (`Owing`).  A state's place is its position in the region:

    0  not seen        2  the goal is true there        4  in the region, without edges
    1  a trigger       3  waits to be expanded          above: where its edges begin

Of several states the smallest is noted, so results do not depend on how workers share the states.
"""

from __future__ import annotations

from specchk.codegen.arrays import (
    Halves,
    Words,
    below,
    draw,
    halves,
    octets,
    peek,
    poke,
    prefetch,
    swap,
    words,
)
from specchk.codegen.functions import add_kernels
from specchk.native.kernel import component_kernel, fair_components, numbered_steps
from specchk.native.kernel.component_kernel import LAST_EDGE, NO_EDGES
from specchk.native.kernel.labels import FALSE, TRUE, UNDEFINED, emit_truth
from specchk.native.kernel.numbered_steps import (
    NUMBER,
    answer,
    expand,
    is_bad,
    queue,
    resolve,
    smallest,
)
from specchk.native.kernel.table_kernel import KernelSpec, TableKernel, is_less
from specchk.native.machine.frames import BATCH, SOURCE_WORDS, Lane, Owing, SharedWord, Thread

UNSEEN, TRIGGER, REACHED, WAITS = range(4)
EDGE_CHUNK = 1 << 12  # edges that a worker takes at once


def begins(spec: KernelSpec, lane: Words, first: int, end: int) -> None:
    """Mark the triggers among numbers."""
    region = words(lane[Lane.REGION])
    for number in range(first, end):
        triggered = answer(spec, lane, region[Owing.TRIGGER], number, TRUE)
        if triggered == UNDEFINED:
            smallest(spec, lane, Lane.UNDEFINED, number)
        if triggered != TRUE:
            continue
        lane[Lane.IS_TRIGGERED] = 1
        reached = answer(spec, lane, region[Owing.GOAL], number, FALSE)
        if reached == UNDEFINED:
            smallest(spec, lane, Lane.UNDEFINED, number)
        if reached == FALSE:
            lane[Lane.IS_OWED] = 1
        if reached == FALSE or region[Owing.ENDLESS]:
            halves(region[Owing.PLACES])[number] = TRIGGER


def gather(lane: Words, first: int, end: int) -> None:
    """Let the triggers among numbers wait, unless a step reached them before."""
    places = halves(words(lane[Lane.REGION])[Owing.PLACES])
    for number in range(first, end):
        if places[number] == TRIGGER:
            places[number] = WAITS
            queue(lane, number)


def spread(spec: KernelSpec, lane: Words, listed: Halves, first: int, end: int) -> None:
    """Expand states of the region, note rests, and let new ones wait."""
    sources, pending = 0, 0
    for index in range(first, end):
        source = words(lane[Lane.SOURCES])[sources * SOURCE_WORDS :]
        source[0], source[1] = listed[index], expand(spec, lane, listed[index], pending)
        source[2], source[3] = lane[Lane.TAKEN], lane[Lane.CUT]
        sources += 1
        pending += source[1]
        # Batches, so that cache misses overlap, as in the search.
        if pending >= BATCH or sources >= BATCH:
            settle(spec, lane, sources, pending)
            sources, pending = 0, 0
    settle(spec, lane, sources, pending)


def settle(spec: KernelSpec, lane: Words, sources: int, pending: int) -> None:
    """Resolve and attach all states with pending successors."""
    control, hashes = words(lane[Lane.CONTROL]), words(words(lane[Lane.THREAD])[Thread.HASHES])
    table, states = words(control[SharedWord.TABLE]), words(control[SharedWord.STATES])
    places = halves(words(lane[Lane.REGION])[Owing.PLACES])
    for index in range(pending):
        number = (table[hashes[index] & control[SharedWord.MASK]] & NUMBER) - 1
        prefetch(states, number * spec.words)
        prefetch(places, number)
    at = 0
    for index in range(sources):
        source = words(lane[Lane.SOURCES])[index * SOURCE_WORDS :]
        resolve(spec, lane, source[0], at, source[1], source[2], source[3])
        attach(spec, lane, source[0], source[1])
        at += source[1]


def attach(spec: KernelSpec, lane: Words, number: int, count: int) -> None:
    """Note a rest, and keep the edges that stay in the region."""
    region, pairs = words(lane[Lane.REGION]), words(lane[Lane.TARGETS])
    places = halves(region[Owing.PLACES])
    note_rest(spec, lane, number)
    kept = 0
    for index in range(count):
        if pairs[2 * index] == 0:
            continue
        target = pairs[2 * index] - 1
        # Workers share nothing but the place, and each of its values is as good as the next one: `swap`
        # decides which worker expands the state.
        place = peek(places, target)
        if place == UNSEEN:
            place = meet(spec, lane, target)
        if place == REACHED:
            continue
        if place < REACHED and swap(places, target, place, WAITS):
            queue(lane, target)
        # In place, over pairs that were already read.
        pairs[kept] = target
        kept += 1
    keep_edges(lane, number, kept)


def note_rest(spec: KernelSpec, lane: Words, number: int) -> None:
    """Note a state in which nothing is enabled, or mark it where what is cut off enables nothing."""
    marks = words(lane[Lane.REGION])[Owing.REST_MARKS]
    # What is cut off enables its conditions too, so a state at a horizon is not a rest: it is only marked.
    if (lane[Lane.TAKEN] | lane[Lane.CUT]) == 0 and is_bad(spec, lane, number):
        smallest(spec, lane, Lane.REST, number)
    if marks != 0 and lane[Lane.TAKEN] == 0:
        octets(marks)[number] = is_bad(spec, lane, number)


def meet(spec: KernelSpec, lane: Words, target: int) -> int:
    """The place of a state that is reached for the first time: whether its goal holds."""
    region = words(lane[Lane.REGION])
    # If a goal does not end the obligation, it is never reached.
    goal = FALSE if region[Owing.ENDLESS] else answer(spec, lane, region[Owing.GOAL], target, FALSE)
    if goal == FALSE:
        return UNSEEN
    if goal == UNDEFINED:
        smallest(spec, lane, Lane.UNDEFINED, target)
    # Other workers get the same result, so all of them write the same value.
    poke(halves(region[Owing.PLACES]), target, REACHED)
    return REACHED


def keep_edges(lane: Words, number: int, count: int) -> None:
    """Store the edges of a state (the first words at `TARGETS`), and the position at which they begin."""
    region, pairs = words(lane[Lane.REGION]), words(lane[Lane.TARGETS])
    places, edges = halves(region[Owing.PLACES]), halves(region[Owing.EDGES])
    if count == 0:
        places[number] = NO_EDGES
        return
    if below(lane[Lane.FREE_END], lane[Lane.FREE] + count):
        # The edges of a state are contiguous, so the end of a chunk may remain unused; a state with more
        # edges than a chunk has room for takes a chunk of its own.
        size = max(EDGE_CHUNK, count)
        lane[Lane.FREE] = draw(region, Owing.NEXT_EDGE, size)
        lane[Lane.FREE_END] = lane[Lane.FREE] + size
    free = lane[Lane.FREE]
    # Past the end of the array nothing is written; Python ends the check there.
    if free + count <= region[Owing.MOST_EDGES]:
        for index in range(count):
            edges[free + index] = pairs[index] | (index == count - 1) << LAST_EDGE
    lane[Lane.FREE] = free + count
    places[number] = free


STEPS = (
    numbered_steps.follow, numbered_steps.survey, numbered_steps.leading, queue, smallest,
    is_less, numbered_steps.find, expand, resolve, numbered_steps.steps,
    numbered_steps.enabled, answer, is_bad,
)  # fmt: skip
REGIONS = (
    begins, gather, spread, settle, attach, note_rest, meet, keep_edges, fair_components.judge,
    fair_components.survive, fair_components.judged, component_kernel.components, component_kernel.visit,
    component_kernel.lower, component_kernel.component, component_kernel.enter,
)  # fmt: skip
ENTRIES = (
    "begins", "gather", "spread", "components", "judge", "survive", "leading", "follow", "survey",
)  # fmt: skip


class RegionKernel(TableKernel):
    """Builds the functions for regions, in one module."""

    def emit(self) -> None:
        """Emit the functions that Python calls."""
        truth = emit_truth(self.module, self.program, self.layout)
        add_kernels(self.module, (*STEPS, *REGIONS), ENTRIES, {**self.given(), "truth": truth})
        self.emit_rehash()
