"""Compiled walks compared with their meaning: each is taken by compiled code, then by the stepper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from spec_texts import instance_of

from specchk.explore.simulate import begin, follow
from specchk.ir.footprint import steps_list_horizon
from specchk.ir.program import Program
from specchk.meaning.step import Stepper
from specchk.native.machine.layout import NoRoom, layout_of
from specchk.native.machine.rooms import first_room, with_room
from specchk.native.tiers import load_kernel
from specchk.native.walking.frames import WalkEnd, WalkThread
from specchk.native.walking.memory import WalkMemory
from specchk.native.walking.simulation import WalkSource
from specchk.search.engine import Unsupported
from specchk.search.replay import ReplayFailed

WALK = """\
spec walk
sort R
var x : 0..3 = 0
var p : R? = none
action up(n: 1..2):
    require x + n <= 3
    x' = x + n
action give(a: R):
    require x > 0
    p' = some(a)
action any_x():
    x' in 0..3
action broken():
    require p != none and x == 3
    x' = x + 1
invariant small: x < 3
step invariant kept: p != none implies p' == p
reachable given: p != none
model two:
    R = 2
"""
CALM = WALK.replace("x < 3", "x < 4").replace("p' == p", "true").replace("x == 3", "x == 9")
GROW = """\
spec grow
var s : set[0..100000] = {}
var n : 0..200 = 0
action skip_on():
    require n < 30
    n' = n + 1
action add():
    require n >= 30 and n < 99
    s' = s union {n * 3}
    n' = n + 1
invariant few: card(s) < 60
deadlock ok
model m:
    expect violates few
"""
RARE = """\
spec rare
var a : 0..40 = 0
var b : 0..40 = 0
action often(n: 1..39):
    a' = n
action rare():
    b' = (b + 1) % 41
invariant few: b < {limit}
reachable late: a == 3 and b == 3
model m:
    expect holds
"""


@contextmanager
def walking(program: Program, workers: int = 1) -> Iterator[WalkMemory | None]:
    """The memory of walks through a program; None if it has no walks, or no compiled ones."""
    states, wrong = begin(program)
    try:
        roomy = with_room(program, first_room(program))
        source = WalkSource(roomy, layout_of(roomy))
        kernel = load_kernel(source, is_long=False) if states and not wrong else None
    except Unsupported:
        kernel = None
    if kernel is None:
        yield None
        return
    memory = WalkMemory(source.program, source.layout, kernel, states, workers)
    try:
        yield memory
    finally:
        memory.release()


def wrong_walks(program: Program, seed: int, walks: int, steps: int) -> list[str]:
    """The differences of a seed's first walks from the meaning of the spec, one after another."""
    with walking(program) as memory:
        try:
            return _differences(program, memory, seed, walks, steps) if memory is not None else []
        except NoRoom:
            return []


def _differences(program: Program, memory: WalkMemory, seed: int, walks: int, steps: int) -> list[str]:
    found: list[str] = []
    seen = set()
    worker = memory.workers[0]
    memory.set_walks(seed, steps)
    for number in range(walks):
        counts, cuts, taken = worker.counts, worker[WalkThread.CUTS], sum(worker.taken)
        memory.set_round(number, 1)
        while not memory.is_round_done:
            memory.work(lambda: False)
            if memory.total(WalkThread.OVERFLOW):
                raise NoRoom
        ((walk, end, length),) = memory.ends()
        path = memory.path(walk, length)
        seen |= set(path)
        if (sum(worker.taken) - taken, memory.last_state(walk)) != (length, path[-1]):
            found.append(f"walk {walk}: {length} steps to {memory.last_state(walk)}, by its path {path[-1]}")
        try:
            followed = follow(program, path, steps)
        except ReplayFailed as failed:
            return [*found, f"walk {walk}: {failed}"]
        # A deadlock is decided by the meaning alone where steps list a horizon.
        is_open = end is WalkEnd.IDLE and steps_list_horizon(program)
        if (followed.violation is not None) != (end in (WalkEnd.FAILED, WalkEnd.IDLE)) and not is_open:
            found.append(f"walk {walk}: {end.name}, and {followed.violation}")
        now = [after - before for after, before in zip(worker.counts, counts, strict=True)]
        # The meaning does not check what comes after the first failure.
        if end is not WalkEnd.FAILED and (now, worker[WalkThread.CUTS] - cuts) != (
            list(followed.coverage), followed.horizon_cuts
        ):  # fmt: skip
            found.append(f"walk {walk}: coverage {now}, {followed.coverage}")
        if end is WalkEnd.IDLE and Stepper(program).successors(path[-1]):
            found.append(f"walk {walk}: steps are enabled in its last state")
    if len(seen) != memory.seen:
        found.append(f"{memory.seen} distinct states, {len(seen)}")
    return found


def distribution(program: Program, steps: int) -> dict[tuple[object, ...], float]:
    """The probability of each state after this many uniform choices."""
    stepper, initial = Stepper(program), begin(program)[0]
    now: dict[tuple[object, ...], float] = dict.fromkeys(initial, 1 / len(initial))
    for _ in range(steps):
        after: Counter[tuple[object, ...]] = Counter()
        for state, chance in now.items():
            successors = stepper.successors(state)
            for _, _, following in successors:
                after[following] += chance / len(successors)
        now = dict(after)
    return now


def surprise(steps: int) -> float:
    """The deviation of states from their expected frequency (chi-squared), in standard deviations."""
    text = CALM.replace("var x : 0..3 = 0", "var x : 0..3 in 0..2")
    program, walks = instance_of(text).program, 6000
    with walking(program) as memory_:
        assert memory_ is not None
        memory_.set_walks(11, steps)
        memory_.set_round(0, walks)
        memory_.work(lambda: False)
        found = Counter(memory_.last_state(walk) for walk, _, _ in memory_.ends())
    expected = distribution(program, steps)
    if not set(found) <= set(expected):
        return inf
    chi = sum((found[state] - walks * p) ** 2 / (walks * p) for state, p in expected.items())
    free = len(expected) - 1
    return float((chi - free) / (2 * free) ** 0.5)
