"""The kernels of regions, run as Python and compiled, on the same memory."""

from __future__ import annotations

import ctypes
from array import array
from random import Random
from types import SimpleNamespace

import pytest

from specchk.codegen.arrays import Words, words
from specchk.codegen.functions import add_kernels
from specchk.codegen.ir import IRModule
from specchk.codegen.objects import initialize, linked, optimised
from specchk.native.kernel import region_kernel
from specchk.native.kernel.region_kernel import ENTRIES, REGIONS, STEPS
from specchk.native.machine.frames import INDEX_BITS, Lane, Owing, SharedWord, Thread

STATES, SLOTS, EDGES = 60, 128, 1 << 14
GRAPH, ANSWERS = Thread.COUNTS, Thread.COUNTS + 1


def successors(state: Words, out: Words, counts: Words, cuts: Words) -> int:
    """Two steps from each state, each with a condition of its own."""
    graph = words(counts[0])[2 * state[0] :]
    out[0], out[1], out[2], out[3] = graph[0], 1, graph[1], 2
    return 2


def truth(state: Words, thread: Words, which: int) -> int:
    """The answers are drawn beforehand."""
    return words(thread[ANSWERS])[2 * state[0] + which]


def check(state: Words, thread: Words) -> int:
    """A constraint that some states do not meet."""
    return (state[0] & 15) != 7


def hashed(state: Words) -> int:
    """A hash that puts many states into one place of the table."""
    return state[0] << INDEX_BITS | state[0] & 7


def is_same(state: Words, other: Words) -> int:
    """States of one word."""
    return state[0] == other[0]


TOY = (successors, truth, check, hashed, is_same)
GIVEN = {"words": 1, "compact": 0, "constrained": 1}


@pytest.fixture(scope="module")
def compiled():
    """The kernels by name, for this toy."""
    initialize()
    module = IRModule()
    toy = dict(add_kernels(module, TOY, [], {}))
    add_kernels(module, (*STEPS, *REGIONS), ENTRIES, {**GIVEN, **toy, "is_kept": toy["is_same"]})
    code = linked(optimised(str(module)), ENTRIES)

    def entry(name):
        def call(*args):
            ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * len(args))(code.at[name])(*args)

        call.keeper = code
        return call

    return {name: entry(name) for name in ENTRIES}


def interpreted():
    """The same, as Python; addresses become arrays."""
    spec = SimpleNamespace(**GIVEN, **{f.__name__: f for f in TOY}, is_kept=is_same)
    kernels = {kernel.__name__: kernel for kernel in (*STEPS, *REGIONS)}

    def begins(lane, *numbers):
        return kernels["begins"](spec, words(lane), *numbers)

    return {
        "begins": begins,
        "gather": lambda lane, *numbers: kernels["gather"](words(lane), *numbers),
        "spread": lambda lane, listed, *ends: kernels["spread"](
            spec, words(lane), region_kernel.halves(listed), *ends
        ),
        "components": lambda control, region, listed, *ends: kernels["components"](
            words(control), words(region), region_kernel.halves(listed), *ends
        ),
        "judge": lambda lane, *numbers: kernels["judge"](spec, words(lane), *numbers),
        "survive": lambda lane, *numbers: kernels["survive"](spec, words(lane), *numbers),
        "survey": lambda lane, *numbers: kernels["survey"](spec, words(lane), *numbers),
    }


class Memory:
    """A search that has ended with all states in the table, and a worker on a region of it."""

    def __init__(self, random, endless):
        self.arrays = {}
        slots, at = [0] * SLOTS, 0
        for state in range(STATES):
            at = state & 7
            while slots[at]:
                at += 1
            slots[at] = state << INDEX_BITS | state + 1
        graph = [
            random.choice([s, random.randrange(STATES), (s + 1) % STATES])
            for s in range(STATES)
            for _ in "01"
        ]
        answers = [random.choice(drawn) for _ in range(STATES) for drawn in ((0, 0, 1), (0, 0, 0, 0, 1, 2))]
        for name, values in (("table", slots), ("states", range(STATES)), ("graph", graph),
                             ("answers", answers), ("pending", [0] * 1024), ("hashes", [0] * 512),
                             ("targets", [0] * 64), ("sources", [0] * 512),
                             ("frames", [0] * STATES)):  # fmt: skip
            self.arrays[name] = array("Q", values)
        for name, size in (("places", STATES), ("edges", EDGES), ("index", STATES), ("members", STATES),
                           ("bounds", STATES + 1), ("stack", STATES), ("queue", STATES),
                           ("list", STATES)):  # fmt: skip
            self.arrays[name] = array("I", [0] * size)
        self.arrays["judgements"], self.arrays["marks"] = array("B", [0] * STATES), array("B", [0] * STATES)
        self.block("control", 16, {SharedWord.TABLE: "table", SharedWord.STATES: "states"})
        self.block(
            "thread",
            24,
            {Thread.PENDING: "pending", Thread.HASHES: "hashes", GRAPH: "graph", ANSWERS: "answers"},
        )
        self.block("region", Owing.SIZE, {
            Owing.PLACES: "places", Owing.EDGES: "edges", Owing.INDEX: "index", Owing.MEMBERS: "members",
            Owing.BOUNDS: "bounds", Owing.STACK: "stack", Owing.FRAMES: "frames",
            Owing.JUDGEMENTS: "judgements", Owing.REST_MARKS: "marks",
        })  # fmt: skip
        self.block("lane", Lane.SIZE, {
            Lane.CONTROL: "control", Lane.THREAD: "thread", Lane.REGION: "region", Lane.TARGETS: "targets",
            Lane.SOURCES: "sources", Lane.QUEUE: "queue",
        })  # fmt: skip
        region = self.arrays["region"]
        self.arrays["control"][SharedWord.MASK] = SLOTS - 1
        for word, value in ((Owing.NEXT_EDGE, 8), (Owing.MOST_EDGES, EDGES), (Owing.TRIGGER, 0),
                            (Owing.GOAL, 1), (Owing.ENDLESS, endless), (Owing.WEAK, 1),
                            (Owing.STRONG, 2), (Owing.ALL, 3), (Owing.NEXT_ID, (1 << 32) - 2)):  # fmt: skip
            region[word] = value

    def at(self, name):
        """The address of an array."""
        return self.arrays[name].buffer_info()[0]

    def block(self, name, size, addresses):
        """A block of words, some of which are addresses of arrays."""
        self.arrays[name] = array("Q", [0] * size)
        for word, of in addresses.items():
            self.arrays[name][word] = self.at(of)

    def content(self):
        """What the arrays contain, but for addresses."""
        at = {array_.buffer_info()[0] for array_ in self.arrays.values()}
        return {name: [n for n in values if n not in at] for name, values in self.arrays.items()}


def decide(memory, kernels):
    """What `native.regions` does: grow a region, find its components, judge them, and let some survive."""
    lane, region = memory.arrays["lane"], memory.arrays["region"]
    kernels["survey"](memory.at("lane"), 0, STATES)
    kernels["begins"](memory.at("lane"), 0, STATES)
    kernels["gather"](memory.at("lane"), 0, STATES)
    members = []
    while lane[Lane.QUEUED]:
        listed = memory.arrays["queue"][: lane[Lane.QUEUED]]
        lane[Lane.QUEUED] = 0
        members += listed
        memory.arrays["list"][: len(listed)] = listed
        kernels["spread"](memory.at("lane"), memory.at("list"), 0, len(listed))
    memory.arrays["list"][: len(members)] = array("I", members)
    kernels["components"](memory.at("control"), memory.at("region"), memory.at("list"), 0, len(members))
    kernels["judge"](memory.at("lane"), 0, region[Owing.COMPONENTS])
    kernels["survive"](memory.at("lane"), 0, region[Owing.COMPONENTS])


def test_python_and_compiled_kernels_agree(compiled):
    """On drawn graphs: every word of every array is the same, after components of all verdicts."""
    verdicts = set()
    for seed in range(40):
        one, other = (Memory(Random(seed), seed % 2) for _ in range(2))
        decide(one, interpreted())
        decide(other, compiled)
        assert one.content() == other.content()
        verdicts |= set(one.arrays["judgements"][: one.arrays["region"][Owing.COMPONENTS]])
    assert verdicts == {0, 1, 2}
