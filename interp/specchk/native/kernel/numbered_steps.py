"""Steps between states in the table, by their numbers, with the fair conditions that they meet.

A worker has a block (`Lane`).  The steps of a state are pairs: the number of the state after + 1, or 0 for a
step that changes nothing or leaves the states, and the conditions.
"""

from __future__ import annotations

from specchk.codegen.arrays import Halves, Words, halves, prefetch, words
from specchk.native.kernel.labels import CUT, FALSE
from specchk.native.kernel.table_kernel import KernelSpec, is_less
from specchk.native.machine.frames import INDEX_BITS, Lane, Owing, SharedWord, Thread
from specchk.native.machine.layout import mask

NO_PREDICATE = mask(32)
NUMBER = mask(INDEX_BITS)  # the bits of a slot that are the number of its state + 1


def follow(spec: KernelSpec, lane: Words, number: int) -> None:
    """Leave the steps of one state in the lane."""
    steps(spec, lane, number)


def survey(spec: KernelSpec, lane: Words, first: int, end: int) -> None:
    """Follow the steps of states by number, for the conditions they enable."""
    for number in range(first, end):
        steps(spec, lane, number)


def leading(spec: KernelSpec, lane: Words, listed: Halves, first: int, end: int, target: int) -> None:
    """Note the smallest listed state with a step to a state."""
    for index in range(first, end):
        count = steps(spec, lane, listed[index])
        for step in range(count):
            if words(lane[Lane.TARGETS])[2 * step] == target + 1:
                smallest(spec, lane, Lane.BEST, listed[index])


def queue(lane: Words, number: int) -> None:
    """Append a state to those postponed by a worker."""
    halves(lane[Lane.QUEUE])[lane[Lane.QUEUED]] = number
    lane[Lane.QUEUED] += 1


def smallest(spec: KernelSpec, lane: Words, word: int, number: int) -> None:
    """Note a state in a word of the lane, as its number + 1; the smallest of several is kept."""
    states = words(words(lane[Lane.CONTROL])[SharedWord.STATES])
    noted = lane[word]
    # By its words and not by its number, since numbers depend on how workers shared the search.
    if noted == 0 or is_less(spec, states[number * spec.words :], states[(noted - 1) * spec.words :]):
        lane[word] = number + 1


def find(spec: KernelSpec, control: Words, state: Words, hashed: int) -> int:
    """The number of a state + 1, or 0 if it is not in the table."""
    table, states = words(control[SharedWord.TABLE]), words(control[SharedWord.STATES])
    at = hashed & control[SharedWord.MASK]
    while table[at] != 0:
        if spec.compact:
            if table[at] == hashed:
                break
        elif (table[at] ^ hashed) >> INDEX_BITS == 0 and spec.is_kept(
            state, states[((table[at] & NUMBER) - 1) * spec.words :]
        ):
            break
        at = at + 1 & control[SharedWord.MASK]
    return table[at] & NUMBER


def expand(spec: KernelSpec, lane: Words, number: int, at: int) -> int:
    """Let the successors of a state wait, behind `at` others; their number.

    `TAKEN` and `CUT` of the lane are what `resolve` begins with.
    """
    control, thread = words(lane[Lane.CONTROL]), words(lane[Lane.THREAD])
    waiting, hashes = words(thread[Thread.PENDING]), words(thread[Thread.HASHES])
    table, cuts = words(control[SharedWord.TABLE]), thread[Thread.CUTS :]
    cuts[CUT] = 0
    state = words(control[SharedWord.STATES])[number * spec.words :]
    count = spec.successors(state, waiting[at * (spec.words + 1) :], thread[Thread.COUNTS :], cuts)
    if count < 0:
        # A state with an undefined step has no steps, and owes everything, within a horizon and beyond
        # (`FairSteps.outgoing`): as if all had been taken, since what is cut off may be overlooked.
        lane[Lane.TAKEN], lane[Lane.CUT] = words(lane[Lane.REGION])[Owing.ALL], 0
        return 0
    lane[Lane.TAKEN], lane[Lane.CUT] = 0, cuts[CUT]
    for place in range(at, at + count):
        hashes[place] = spec.hashed(waiting[place * (spec.words + 1) :])
        prefetch(table, hashes[place] & control[SharedWord.MASK])
    return count


def resolve(spec: KernelSpec, lane: Words, number: int, at: int, count: int, taken: int, cut: int) -> None:
    """Find the waiting successors of a state, and leave its steps in the lane."""
    control, thread = words(lane[Lane.CONTROL]), words(lane[Lane.THREAD])
    state = words(control[SharedWord.STATES])[number * spec.words :]
    pairs = words(lane[Lane.TARGETS])
    for index in range(count):
        after = words(thread[Thread.PENDING])[(at + index) * (spec.words + 1) :]
        conditions = after[spec.words]
        pairs[2 * index], pairs[2 * index + 1] = 0, conditions
        if spec.is_same(after, state):
            continue
        inside, target = 1, 0
        # The table has states outside of constraints, too.
        if spec.constrained:
            inside = spec.check(after, thread)
        if inside:
            target = find(spec, control, after, words(thread[Thread.HASHES])[at + index])
            lane[Lane.LOST] += target == 0
        pairs[2 * index] = target
        # A step that leaves the states is not taken: it is cut off, and owed.
        if target != 0:
            taken |= conditions
        else:
            cut |= conditions
    lane[Lane.TAKEN], lane[Lane.CUT], lane[Lane.COUNT] = taken, cut, count
    lane[Lane.EVER] |= taken | cut
    lane[Lane.EVER_CUT] |= cut & ~taken


def steps(spec: KernelSpec, lane: Words, number: int) -> int:
    """Leave the steps of one state in the lane; their number."""
    count = expand(spec, lane, number, 0)
    resolve(spec, lane, number, 0, count, lane[Lane.TAKEN], lane[Lane.CUT])
    return count


def enabled(lane: Words) -> int:
    """The conditions enabled in the state whose steps were resolved last."""
    cut = 0 if words(lane[Lane.REGION])[Owing.TAKEN_ONLY] else lane[Lane.CUT]
    return lane[Lane.TAKEN] | cut


def answer(spec: KernelSpec, lane: Words, which: int, number: int, if_none: int) -> int:
    """The truth of a predicate in a state; `if_none` if there is no predicate."""
    if which == NO_PREDICATE:
        return if_none
    states = words(words(lane[Lane.CONTROL])[SharedWord.STATES])
    return spec.truth(states[number * spec.words :], words(lane[Lane.THREAD]), which)


def is_bad(spec: KernelSpec, lane: Words, number: int) -> int:
    """Whether a loop or rest in the state is a counterexample."""
    region = words(lane[Lane.REGION])
    # If a goal ends the obligation, no state of the region has it.
    return region[Owing.ENDLESS] == 0 or answer(spec, lane, region[Owing.GOAL], number, FALSE) == FALSE
