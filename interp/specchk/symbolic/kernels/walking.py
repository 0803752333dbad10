"""The kernel that walks decision trees with a zone (`recording.trees` has the reference walker).

Trees are nodes in one array, each with the words

    kind, i, j, bound, a child for each answer                       `Ask`: no, yes
    kind, count of ways, -, -, a child for each way                   `Alternative`
    kind, -, -, -, a child                                            a tree's top, `Fresh`, `Define`

A child is 0 if nothing was recorded yet, the place of a node, or -1 - n for leaf n.  A plan has the trees
that are walked with a zone, in order; the job has the state of a walk, which can stop where something must
be recorded, and continue.
"""

from __future__ import annotations

from specchk.codegen.arrays import Words
from specchk.symbolic.kernels.matrices import FREE, HEAD, REFUSED, assume, copy, fits

# Kinds of nodes, and the words before their children.
TOP, ASK, ALTERNATIVE, FRESH, DEFINE = range(5)
CHILD = 4
# Kinds of leaves: nothing is done; a horizon ends the step; a step; an undefined step; values of predicates.
IDLE, CUT, STEP, FAULT, NO, YES, UNDEFINED = range(7)
LEAF = 2  # words of a leaf: its kind, and how often it was reached
# A plan: the count of trees; for each, the child of its top, where its places are (0: all), how it ends.
PLANNED = 3
WANTED, ENDS_WANTED, ENDS_UNDEFINED, SKIPPED = 1, 2, 4, 8
# The words of a job.
TREE, DEPTH, ROOM, ENDS, MET, FORKS, KNOWN, BUSY, FAULTS, FINDINGS, CAPACITY, LARGEST = range(12)
BASE_ROWS, BASE_SIZE, BASE_CLASSES, BASE_COUNT = range(12, 16)
AT, ROWS, SIZE, CLASSES, COUNT, ASSUMED = range(16, 22)  # the current position, as in an item
STACK = 22
ITEM = 6  # what is left to walk: child, rows, size, classes, count of these, whether something was assumed
END = 7  # a result: tree, leaf, rows, size, classes, count of these, whether something was assumed
MOST = 1000  # items, results and leaves of a walk
# The results of a walk.
DONE, UNKNOWN, FULL = range(3)


def load(zone: Words, work: Words, job: Words) -> int:
    """Start a walk with a zone; `REFUSED` if its numbers are too large."""
    size = zone[0]
    count = zone[1]
    words = 2 * count + size * size
    if words > job[CAPACITY]:
        return FULL
    for word in range(words):
        number = zone[HEAD + word]
        if not fits(number) and number != FREE:
            return REFUSED
        work[word] = number
    job[BASE_CLASSES] = 0
    job[BASE_COUNT] = count
    job[BASE_ROWS] = 2 * count
    job[BASE_SIZE] = size
    job[ROOM] = words
    return DONE


def start(job: Words) -> int:
    """Start a walk."""
    job[TREE] = -1
    for word in range(DEPTH, ROOM):
        job[word] = 0
    for word in range(ENDS, CAPACITY):
        job[word] = 0
    return 0


def push(job: Words, child: int, rows: int, assumed: int) -> int:
    """Postpone a child of the current node."""
    item = STACK + job[DEPTH] * ITEM
    job[item] = child
    job[item + 1] = rows
    job[item + 2] = job[SIZE]
    job[item + 3] = job[CLASSES]
    job[item + 4] = job[COUNT]
    job[item + 5] = assumed
    job[DEPTH] += 1
    return 0


def end(job: Words, ends: Words, leaf: int) -> int:
    """Note a result."""
    at = job[ENDS] * END
    ends[at] = job[TREE]
    ends[at + 1] = leaf
    copy(job, ROWS, ends, at + 2, END - 2)
    job[ENDS] += 1
    return 0


def enter(plan: Words, work: Words, job: Words) -> int:
    """Start the next tree; 0 if there is none."""
    while job[TREE] + 1 < plan[0]:
        job[TREE] += 1
        tree = 1 + job[TREE] * PLANNED
        if plan[tree + 2] & SKIPPED:
            continue
        classes = job[BASE_CLASSES]
        count = job[BASE_COUNT]
        places = plan[tree + 1]
        if places:
            count = plan[places]
            for n in range(count):
                place = job[BASE_CLASSES] + 2 * plan[places + 1 + n]
                work[job[ROOM] + 2 * n] = work[place]
                work[job[ROOM] + 2 * n + 1] = work[place + 1]
            classes = job[ROOM]
            job[ROOM] += 2 * count
        job[SIZE] = job[BASE_SIZE]
        job[CLASSES] = classes
        job[COUNT] = count
        push(job, plan[tree], job[BASE_ROWS], 0)
        return 1
    return 0


def reach(plan: Words, leaves: Words, job: Words, ends: Words, leaf: int) -> int:
    """Note that a leaf was reached."""
    kind = leaves[leaf * LEAF]
    if kind >= NO:
        flags = plan[1 + job[TREE] * PLANNED + 2]
        if kind == UNDEFINED or (kind == YES) == (flags & WANTED):
            end(job, ends, leaf)
            job[FINDINGS] += 1
            if flags & (ENDS_UNDEFINED if kind == UNDEFINED else ENDS_WANTED):
                job[DEPTH] = 0  # all other items are of this tree
    elif kind != IDLE:
        end(job, ends, leaf)
        if not job[ASSUMED]:
            job[BUSY] = 1
        if kind == FAULT:
            job[FAULTS] += 1
    return 0


def answer(nodes: Words, work: Words, job: Words, node: int) -> int:
    """Answer a question, or postpone one of its answers."""
    rows = job[ROWS]
    size = job[SIZE]
    i = job[CLASSES] + 2 * nodes[node + 1]
    j = job[CLASSES] + 2 * nodes[node + 2]
    # (y_c + d) - (y_e + f) <= bound, moved to the classes of the zone.
    bound = nodes[node + 3] - work[i + 1] + work[j + 1]
    i = work[i]
    j = work[j]
    if not fits(bound):
        return REFUSED
    if work[rows + i * size + j] <= bound:
        job[AT] += 1
        job[KNOWN] += 1
        return DONE
    if work[rows + j * size + i] < -bound:
        job[KNOWN] += 1
        return DONE
    room = job[ROOM]
    words = size * size
    if job[CAPACITY] - room < 2 * words:
        return FULL
    copy(work, rows, work, room, words)
    copy(work, rows, work, room + words, words)
    job[ROOM] = room + 2 * words
    if assume(work, room, size, j, i, -bound - 1) == REFUSED:
        return REFUSED
    push(job, job[AT], room, 1)
    if assume(work, room + words, size, i, j, bound) == REFUSED:
        return REFUSED
    job[AT] += 1
    job[ROWS] = room + words
    job[ASSUMED] = 1
    job[FORKS] += 1
    return DONE


def choose(nodes: Words, job: Words, node: int) -> int:
    """Take the first of several alternatives, and postpone the others."""
    other = nodes[node + 1] - 1
    if job[DEPTH] + other >= MOST:
        return FULL
    job[FORKS] += other
    while other > 0:
        push(job, job[AT] + other, job[ROWS], job[ASSUMED])
        other -= 1
    return DONE


def widen(work: Words, job: Words) -> int:
    """Add a symbol to a zone, known only to be non-negative."""
    size = job[SIZE]
    count = job[COUNT]
    more = size + 1
    classes = job[ROOM]
    rows = classes + 2 * count + 2
    if job[CAPACITY] - rows < more * more:
        return FULL
    copy(work, job[CLASSES], work, classes, 2 * count)
    work[classes + 2 * count] = size
    work[classes + 2 * count + 1] = 0
    for i in range(size):
        copy(work, job[ROWS] + i * size, work, rows + i * more, size)
        work[rows + i * more + size] = work[job[ROWS] + i * size]  # 0 - new <= 0, and what follows
    for j in range(size):
        work[rows + size * more + j] = FREE
    work[rows + size * more + size] = 0
    job[ROWS] = rows
    job[SIZE] = more
    job[CLASSES] = classes
    job[COUNT] = count + 1
    job[ASSUMED] = 1
    job[ROOM] = rows + more * more
    return DONE


def follow(plan: Words, nodes: Words, leaves: Words, work: Words, job: Words, ends: Words, met: Words) -> int:
    """Walk to a leaf."""
    while True:
        node = nodes[job[AT]]
        if node == 0:
            push(job, job[AT], job[ROWS], job[ASSUMED])
            return UNKNOWN
        if job[MET] >= MOST or job[DEPTH] >= MOST - 4:
            return FULL
        if node < 0:
            met[job[MET]] = -1 - node
            job[MET] += 1
            reach(plan, leaves, job, ends, -1 - node)
            return DONE
        job[AT] = node + CHILD
        kind = nodes[node]
        status = REFUSED
        if kind == ASK:
            status = answer(nodes, work, job, node)
        elif kind == ALTERNATIVE:
            status = choose(nodes, job, node)
        elif kind == FRESH:
            status = widen(work, job)
        if status != DONE:
            return status


def walk(plan: Words, nodes: Words, leaves: Words, work: Words, job: Words, ends: Words, met: Words) -> int:
    """Walk the trees of a plan, from the position of a job."""
    while True:
        if job[DEPTH] == 0:
            # Room for the classes of a tree's places, which are fewer than those of the whole zone.
            if job[CAPACITY] - job[ROOM] < 4 * (job[BASE_COUNT] + 1):
                return FULL
            if not enter(plan, work, job):
                return DONE
        job[DEPTH] -= 1
        copy(job, STACK + job[DEPTH] * ITEM, job, AT, ITEM)
        status = follow(plan, nodes, leaves, work, job, ends, met)
        if status != DONE:
            return status


def count_hits(leaves: Words, job: Words, met: Words, hit: Words) -> int:
    """Count the leaves of a finished walk; those counted for the first time are listed in `hit`."""
    for n in range(job[MET]):
        leaf = met[n]
        if leaves[leaf * LEAF + 1] == 0:
            hit[0] += 1
            hit[hit[0]] = leaf
        leaves[leaf * LEAF + 1] += 1
    return 0
