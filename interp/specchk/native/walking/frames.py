"""The memory shared by Python and the kernel of random walks: blocks of 64-bit words, by position.

`WalkControl` is one block for all workers, `WalkThread` one for each, with the coverage counts behind its
fixed words.  Words that the code of actions and properties uses have the same places as in a search.
"""

from __future__ import annotations

from enum import IntEnum

from specchk.native.machine.frames import SharedWord, Thread


class WalkControl(IntEnum):
    """Words of the block that all workers share."""

    TABLE = SharedWord.TABLE  # hashes of the states that were seen
    MASK = SharedWord.MASK
    STARTS = 2  # initial states
    START_COUNT = 3
    ENDS = 4  # of each walk of a round: how it ended and its last state
    CURSOR = 5  # the next walk
    STOP = SharedWord.STOP
    FIRST = 7  # walk of the round
    LAST = 8  # walk of the round
    KEY = 9
    DEPTH = 10  # steps of a walk at most
    WEIGHTS = 11  # of the actions, for walks of odd numbers; 0: every step is as likely as any other
    SIZE = 16


class WalkThread(IntEnum):
    """Words of a worker's own block."""

    STEPS = 0
    CUTS = Thread.CUTS
    NEW = 2  # states that it was the first to see
    WALK = 3
    STEP = 4  # of its walk
    IS_WALKING = 5  # whether it stopped in the middle of a walk
    QUOTA = 6  # new states after which it requests a larger table
    LONGEST = 7
    PATH = 8  # where the states of a walk are written; 0: nowhere
    ACTIONS = 9  # for each, how often it was taken; 0, and for each the number of successors up to its last
    HERE = 10  # the present state
    SUCCESSORS = 11
    FAILED = 12  # whether a property failed in its walk
    REACHED = 13  # for each record whether it was reached, the walk and the step
    OVERFLOW = Thread.OVERFLOW
    STREAM = 15  # the random numbers of its walk begin here
    COUNTS = Thread.COUNTS


class WalkEnd(IntEnum):
    """How a walk ended."""

    NONE = 0  # it did not
    DEPTH = 1
    OUTSIDE = 2  # of a constraint
    ALLOWED = 3  # no step is enabled, which `deadlock ok` or a horizon explains
    IDLE = 4  # no step is enabled
    FAILED = 5


END_BITS = 3  # of the word of an end; the others are the number of steps
REACHED_WORDS = 3
