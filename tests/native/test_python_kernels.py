"""The loops over states, run as Python and compiled, on the same memory."""

from __future__ import annotations

import ctypes
from array import array
from random import Random
from types import SimpleNamespace

from specchk.codegen.arrays import Words, halves, words
from specchk.codegen.functions import add_kernels
from specchk.codegen.ir import IRModule
from specchk.codegen.objects import initialize, linked, optimised
from specchk.native.kernel import region_kernel, search_kernel
from specchk.native.kernel.edge_kernel import EDGES, NAME_SHARES
from specchk.native.kernel.region_kernel import REGIONS, STEPS
from specchk.native.kernel.search_kernel import SINGLE
from specchk.native.machine.frames import INDEX_BITS, Lane, Listing, NameTable, Owing, SharedWord, Thread

STATES, SLOTS, MOST_EDGES = 60, 128, 1 << 14
ARRAYS = {"Words": words, "Halves": halves}
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


def canonical(state: Words) -> None:
    """Pairs of neighbours are one class."""
    state[0] = state[0] & 62


def may_end(state: Words, thread: Words) -> int:
    """Some states may be without steps."""
    return state[0] & 1


def few_successors(state: Words, out: Words, counts: Words, cuts: Words) -> int:
    """A step without a label or none, which a horizon ended or not."""
    out[0] = words(counts[0])[2 * state[0]]
    cuts[0] += (state[0] & 3) == 3
    return (state[0] & 4) >> 2


TOY = (successors, few_successors, truth, check, hashed, is_same, canonical, may_end)
GIVEN = {"words": 1, "compact": 0, "constrained": 1, "renamed": 1}


def both(kernels, entries, **replaced):
    """Kernels by name, compiled and as Python, for this toy."""
    toy = {"is_kept": "is_same", **replaced}
    initialize()
    module = IRModule()
    made = dict(add_kernels(module, TOY, [], {}))
    given = {**GIVEN, **made, **{name: made[of] for name, of in toy.items()}}
    add_kernels(module, kernels, entries, given)
    code = linked(optimised(str(module)), entries)
    functions = {function.__name__: function for function in TOY}
    spec = SimpleNamespace(**GIVEN, **functions | {name: functions[of] for name, of in toy.items()})

    def compiled(name, *args):
        ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * len(args))(code.at[name])(*args)

    def interpreted(name, *args):
        # An address becomes an array, as its annotation has it.
        kernel = next(kernel for kernel in kernels if kernel.__name__ == name)
        kinds = [kind for arg, kind in kernel.__annotations__.items() if arg not in ("spec", "return")]
        arrays = [ARRAYS.get(kind, int)(arg) for kind, arg in zip(kinds, args, strict=True)]
        kernel(*([spec] if "spec" in kernel.__annotations__ else []), *arrays)

    return compiled, interpreted


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
                             ("targets", [0] * 512), ("sources", [0] * 512),
                             ("frames", [0] * STATES)):  # fmt: skip
            self.arrays[name] = array("Q", values)
        for name, size in (("places", STATES), ("edges", MOST_EDGES), ("index", STATES), ("members", STATES),
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
        for word, value in ((Owing.NEXT_EDGE, 8), (Owing.MOST_EDGES, MOST_EDGES), (Owing.TRIGGER, 0),
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


def decide(memory, call):
    """What `native.regions` does: grow a region, find its components, judge them, and let some survive."""
    lane, region = memory.arrays["lane"], memory.arrays["region"]
    call("survey", memory.at("lane"), 0, STATES)
    call("begins", memory.at("lane"), 0, STATES)
    call("gather", memory.at("lane"), 0, STATES)
    members = []
    while lane[Lane.QUEUED]:
        listed = memory.arrays["queue"][: lane[Lane.QUEUED]]
        lane[Lane.QUEUED] = 0
        members += listed
        memory.arrays["list"][: len(listed)] = listed
        call("spread", memory.at("lane"), memory.at("list"), 0, len(listed))
    memory.arrays["list"][: len(members)] = array("I", members)
    call("components", memory.at("control"), memory.at("region"), memory.at("list"), 0, len(members))
    call("judge", memory.at("lane"), 0, region[Owing.COMPONENTS])
    call("survive", memory.at("lane"), 0, region[Owing.COMPONENTS])


def test_kernels_of_regions_agree():
    """On drawn graphs: every word of every array is the same, after components of all verdicts."""
    compiled, interpreted = both((*STEPS, *REGIONS), region_kernel.ENTRIES)
    verdicts = set()
    for seed in range(40):
        one, other = (Memory(Random(seed), seed % 2) for _ in range(2))
        decide(one, interpreted)
        decide(other, compiled)
        assert one.content() == other.content()
        verdicts |= set(one.arrays["judgements"][: one.arrays["region"][Owing.COMPONENTS]])
    assert verdicts == {0, 1, 2}


def test_kernels_that_list_steps_and_compare_names_agree():
    """Arrays that become full, states outside constraints, and names that repeat."""
    compiled, interpreted = both(EDGES, [kernel.__name__ for kernel in EDGES])
    contents = []
    for call in (compiled, interpreted):
        memory = Memory(Random(3), 0)
        random = Random(4)
        names = [random.choice([0, random.randrange(50) << 42 | random.randrange(9)]) for _ in range(100)]
        for name, values in (("names", names), ("ends", [9] * NAME_SHARES), ("slots", [0] * 128),
                             ("sorted", [0] * 100), ("labels", [0] * 100)):  # fmt: skip
            memory.arrays[name] = array("Q", values)
        memory.block("listing", Listing.SIZE, {
            Listing.SOURCES: "hashes", Listing.LABELS: "labels", Listing.TARGETS: "targets",
        })  # fmt: skip
        memory.arrays["listing"][Listing.CAPACITY] = 50
        call("edges", memory.at("listing"), memory.at("thread"), memory.at("states"), STATES)
        call("identify", memory.at("states"), STATES, memory.at("sources"))
        call("share_names", memory.at("names"), 100, memory.at("ends"), memory.at("sorted"))
        memory.block("block", NameTable.SIZE, {NameTable.SLOTS: "slots"})
        memory.arrays["block"][NameTable.MASK] = 127
        call("repeats", memory.at("block"), memory.at("names"), 100)
        call("represent", memory.at("states") + 8)
        contents.append(memory.content())
        assert memory.arrays["block"][NameTable.REPEATED] == sum(map(bool, names)) - len(set(names) - {0})
        assert list(memory.arrays["sorted"]) == sorted(names, key=lambda name: name % NAME_SHARES)
    assert contents[0] == contents[1]


def test_kernels_that_look_at_states_agree():
    """Deadlocks, and the smallest predecessor of each state."""
    compiled, interpreted = both(SINGLE, search_kernel.ENTRIES, successors="few_successors")
    for seed in range(10):
        contents = []
        for call in (compiled, interpreted):
            memory = Memory(Random(seed), 0)
            memory.arrays["best"] = array("Q", [0, 0] * STATES)
            for target in range(0, STATES, 2):
                best = memory.at("best") + 16 * target
                ends = (0, STATES, memory.at("states") + 8 * target)
                call("precede", memory.at("control"), memory.at("thread"), *ends, best)
            call("resting", memory.at("thread"), memory.at("states"), STATES, memory.at("hashes"))
            contents.append(memory.content())
            resting = [s for s in range(STATES) if s & 7 in (0, 2)]
            assert list(memory.arrays["hashes"][: len(resting) + 1]) == [len(resting), *resting]
        assert contents[0] == contents[1]
