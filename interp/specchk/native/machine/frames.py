"""The memory shared by Python and the kernel: blocks of 64-bit words, by position.

`SharedWord` is one block for all workers, `Thread` one for each; the coverage counts follow the
thread's fixed words.  A *record* is a worker's finding about a property: whether there is one, and the
smallest state (for step invariants: step) that it is about.
"""

from __future__ import annotations

from enum import IntEnum
from math import prod

from msgspec import Struct

from specchk.ir.nodes import Apply, Block, Choice, Const, Either, Expr, When
from specchk.ir.ops import Op
from specchk.ir.program import Action, Program
from specchk.ir.types import Set, cardinality
from specchk.ir.typing import most_items
from specchk.native.machine.layout import NoRoom, is_enumerated, is_sparse, slots_of
from specchk.search.engine import Placing, Unsupported

# Cache misses overlap while a batch is prepared: with one probe at a time a search took twice as long.
BATCH = 64  # successors between two visits of the table
# Taking numbers is the one place where all workers write the same word; once for 1024 states, it costs
# nothing.
CHUNK = 1024  # state numbers that a worker takes at once
MAX_RUNS = 4096  # runs of new states, at half of which a worker requests to report them
# 10^12 states, far more than fit any memory; the other bits of a slot decide which states are compared.
INDEX_BITS = 40  # of a table slot; the others are the tag
# Room for all successors of one state is reserved in every worker: kernels write them without checking a
# limit, unless there may be more.  The table's first size is in proportion, so the checked room is smaller.
MAX_SUCCESSORS = 1 << 20
CHECKED_SUCCESSORS = 1 << 17
TOO_MANY = 1 << 32  # the value of `Thread.OVERFLOW` after a state with more


class SharedWord(IntEnum):
    """Words of the block that all workers share."""

    TABLE = 0
    MASK = 1
    STATES = 2
    WORK = 3  # pairs (first state, count)
    WORK_END = 4
    CURSOR = 5  # next pair
    STOP = 6
    NEXT = 7  # next free state number
    LIMIT = 8  # where the table must grow
    SIZE = 16


class Thread(IntEnum):
    """Words of a worker's own block."""

    GENERATED = 0
    CUTS = 1
    NEW = 2
    FREE = 3  # next number of its chunk
    FREE_END = 4
    RUN = 5  # where its present run of new states began
    RUNS = 6
    PIECE = 7  # next state to expand
    PIECE_END = 8
    OUTSIDE = 9
    RUN_LIST = 10
    PENDING = 11  # successors not yet looked up
    HASHES = 12
    RECORDS = 13
    OVERFLOW = 14  # not 0 if a set had no room, or successors had none: nothing found since counts
    SKIPPED = 15  # successors that differ from a known state in ignored variables only
    COUNTS = 16


class Exchange(IntEnum):
    """Words of the block of buckets that receive successors (`exchange_kernel`).

    From `BUCKETS` on there is a pair for each partition: where its bucket is, and how many states
    are in it.
    """

    PARTITIONS = 0
    CAPACITY = 1  # states in a bucket that make it full
    FULL = 2
    DONE = 3  # states that were expanded
    CACHE = 4
    CACHE_MASK = 5
    BUCKETS = 8


class Listing(IntEnum):
    """Words of the block that receives listed steps (`edge_kernel`), and the fill levels of its arrays."""

    SOURCES = 0  # of each step the name of its state
    LABELS = 1
    TARGETS = 2
    CAPACITY = 3  # steps that make the arrays full; they have room for those of one more state
    FILLED = 4
    DONE = 5  # states that were expanded
    SIZE = 6


class NameTable(IntEnum):
    """Words of the block of a table for comparing names (`edge_kernel`)."""

    SLOTS = 0
    MASK = 1
    ZEROES = 2  # names that are 0, which an empty slot is
    REPEATED = 3
    SIZE = 4


class Owing(IntEnum):
    """Words of the block of a region with a pending goal (`region_kernel`, `component_kernel`)."""

    PLACES = 0  # of each state 4 bytes: whether it is in the region, and where its edges are
    EDGES = 1  # targets of 4 bytes; the last of a state has bit 31
    NEXT_EDGE = 2
    MOST_EDGES = 3
    TRIGGER = 4  # predicates by number, or `NO_PREDICATE`
    GOAL = 5
    ENDLESS = 6  # whether a goal does not end the obligation
    WEAK = 7  # conditions
    STRONG = 8
    ALL = 9
    TAKEN_ONLY = 10  # whether what is cut off enables nothing
    INDEX = 11  # of each state 4 bytes: its component
    MEMBERS = 12  # states of components of more than one, one component after the other
    MEMBER_COUNT = 13
    BOUNDS = 14  # where the components end among them
    COMPONENTS = 15
    NEXT_ID = 16
    JUDGEMENTS = 17  # of each component a byte
    FRAMES = 18
    STACK = 19
    REST_MARKS = 20  # of each state a byte, or no address
    SIZE = 24


class Lane(IntEnum):
    """Words of the block of a worker on a region."""

    CONTROL = 0
    THREAD = 1
    REGION = 2
    TARGETS = 3  # pairs: a successor's number + 1, or 0 (`numbered_steps`), and its conditions
    SOURCES = 4  # `SOURCE_WORDS` each: a state, the number of its successors, `TAKEN` and `CUT` so far
    QUEUE = 5  # states of 4 bytes
    QUEUED = 6
    FREE = 7  # its chunk of edges
    FREE_END = 8
    TAKEN = 9  # conditions of the steps of a state
    CUT = 10
    EVER = 11
    IS_TRIGGERED = 12
    IS_OWED = 13
    REST = 14  # the smallest rest + 1
    UNDEFINED = 15  # the smallest state without an answer + 1
    BEST = 16
    COUNT = 17
    MISSED = 18
    EVER_CUT = 19  # conditions that in some state only steps that are cut off enable
    LOST = 20  # steps to states that the search should have kept, and has not
    SIZE = 24


SOURCE_WORDS = 4


class RecordKind(Struct, frozen=True):
    """The subject of a record; `kind` as in `search.verdict.Violation`, or `reached`."""

    kind: str
    name: str


def records_of(program: Program) -> tuple[RecordKind, ...]:
    """All records of a program; the kernel refers to them by position."""
    records: list[RecordKind] = [RecordKind("deadlock", "deadlock")]
    records += [RecordKind("undefined", action.name) for action in program.actions]
    records.append(RecordKind("undefined", "deadlock"))  # `deadlock ok when` something undefined
    for prop in (*program.invariants, *program.step_invariants):
        records += [RecordKind(prop.kind, prop.name), RecordKind("undefined", prop.name)]
    records += [RecordKind("undefined", prop.name) for prop in program.constraints]
    for prop in program.witnesses:
        records += [RecordKind("reached", prop.name), RecordKind("undefined", prop.name)]
    return tuple(records)


DEADLOCK, FAULTS = 0, 1


def old_records(program: Program) -> int:
    """The number of records, the first ones, about expanded states instead of new ones."""
    return FAULTS + len(program.actions) + 1


def record_words(words: int) -> int:
    """The words of one record: found, the state, the state after."""
    return 1 + 2 * words


def most_successors(program: Program) -> int:
    """The number of successors of one state for which there is room."""
    bound = successor_bound(program)
    return bound if bound <= MAX_SUCCESSORS else CHECKED_SUCCESSORS


def successor_bound(program: Program) -> int:
    """A bound on the successors of one state, by types."""
    return sum(map(_bound, program.actions))


def _bound(action: Action) -> int:
    return prod(cardinality(param.type) for param in action.params) * _ways(action.body)


def check_room(program: Program, overflow: int, subject: str) -> None:
    """Raise `NoRoom` or `Unsupported` if the sum of `Thread.OVERFLOW` shows that nothing found counts."""
    if overflow >= TOO_MANY:
        place = max(program.actions, key=_bound).span
        raise Unsupported(f"a state has more than {CHECKED_SUCCESSORS} successors", place)
    if overflow:
        raise NoRoom(subject)


def _most_listed(domain: Expr) -> int:
    kind, most = domain.type, most_items(domain)
    is_list = isinstance(domain, Const) or (isinstance(domain, Apply) and domain.op is Op.RANGE)
    is_list = is_list or is_enumerated(domain)
    assert isinstance(kind, Set)
    return most if is_list or not is_sparse(kind) else min(most, slots_of(kind))


def _ways(body: Block) -> int:
    total = 1
    for stmt in body:
        match stmt:
            case Choice():
                with Placing(stmt.domain.span):
                    total *= _most_listed(stmt.domain)
                total *= _ways(stmt.body)
            case Either():
                # Alternatives add up, statements in a row multiply; a `when` has at most as many ways as
                # its larger branch.
                total *= sum(_ways(branch) for branch in stmt.branches)
            case When():
                total *= max(_ways(stmt.then), _ways(stmt.orelse))
    return total
