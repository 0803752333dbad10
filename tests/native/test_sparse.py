"""Sets that list their items: each operator by itself, and searches in which they run out of slots."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from agreement.both import differences, program_of, said, states_found
from laws.operators import SPAN, cases, tried
from native.emitted import OVERFLOW, compiled, is_supported
from specchk.ir.nodes import Apply, Const, Var
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.ir.types import BOOL, Int, Option, Record, Room, Set, Sort, Type, Union, cardinality
from specchk.native import engine
from specchk.native.machine.layout import NoRoom, decode, encode, is_sparse, layout_of, width
from specchk.native.machine.rooms import FIRST_ROOM, STEPS, first_room, retyped, with_room
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options, Unsupported
from specchk.search.verdict import Holds, Violated

NARROW = Room(1, 1)
NODE = Sort("Node", ("a", "b", "c"))
MESSAGE = Record((("from", NODE), ("term", Int(-1, 900)), ("who", Set(NODE))))
LETTER = Union("Letter", (("Stop", Record(())), ("Go", Record((("n", Int(0, 400)), ("who", Set(NODE)))))))
KINDS: tuple[Type, ...] = (
    Int(-5, 4000),
    MESSAGE,
    LETTER,
    Option(Int(0, 999)),
    Record((("x", BOOL), ("y", Int(0, 300)))),
)

GROWING = """
spec growing
type Message = {{ at: 0..{most}, half: 0..{most} }}
var sent : set[Message] = {{}}
var n : 0..{most} = 0
action send():
    require n < {most}
    n' = n + 1
    sent' = sent union {{ {{ at: n, half: n // 2 }} }}
action lose():
    any m in sent:
        require m.at < 2
        sent' = sent - {{ m }}
invariant in_order: forall m in sent: m.at < n
invariant {claim}
reachable full: card(sent) == {most}
deadlock ok
"""


def growing(folder: Path, most: int = 40, claim: str = "true_of_all: n >= 0") -> Program:
    """A spec whose set gets ever larger."""
    program = program_of(GROWING.format(most=most, claim=claim), folder)
    assert program is not None
    return program


@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
@pytest.mark.parametrize("items", [1, 3, 24])
def test_the_code_of_an_operator_on_listed_sets_computes_its_meaning(op: Op, items: int) -> None:
    """With enough slots for the result it is the reference's; otherwise, the code reports that it is none."""
    room = Room(items, 1)
    for expr, kinds in cases(op):
        roomy, places = retyped(expr, room), retyped(kinds, room)
        if (roomy, places) == (expr, kinds) or not is_supported(roomy, places):
            continue
        (run,) = compiled([roomy], places)
        for given, value in tried(expr, kinds):
            try:
                found = run(given)
            except NoRoom:  # an argument has none
                continue
            assert found == value or (found == OVERFLOW and (items < 24 or op is Op.RANGE)), (expr, given)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_listed_set_is_decoded_as_it_was_encoded(kind: Type) -> None:
    """Codes have all of a set, in as many bits as their type."""
    random, listed = Random(1), retyped(Set(kind), Room(5, 1))
    assert is_sparse(listed)
    for size in range(6):
        value = tuple(sorted({random_value(random, kind) for _ in range(size)}))
        code = encode(listed, value)
        assert decode(listed, code) == value
        assert code < 1 << width(listed)
    with pytest.raises(NoRoom):
        encode(listed, tuple(sorted({random_value(random, kind) for _ in range(40)})))


def random_value(random: Random, kind: Type) -> object:
    """Any value of a type that has no sequences."""
    match kind:
        case Int():
            return random.randint(kind.low, kind.high)
        case Option():
            return (random_value(random, kind.item),) if random.random() < 0.8 else ()
        case Record():
            return tuple(random_value(random, part) for _, part in kind.fields)
        case Union():
            tag = random.randrange(len(kind.variants))
            return tag, random_value(random, kind.variants[tag][1])
        case Set():
            return tuple(rank for rank in range(cardinality(kind.item)) if random.random() < 0.5)
    return random.randrange(cardinality(kind))


@pytest.mark.parametrize("room", [Room(1), Room(4), Room.of(64), None])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_set_without_room_restarts_the_search(room: Room | None, workers: int, tmp_path: Path) -> None:
    """Verdict, counts, levels and coverage are the reference's, for any initial number of slots."""
    assert differences(growing(tmp_path), workers=workers, room=room) == {}


def test_what_contains_nothing_is_converted() -> None:
    """An option that is never some has an item without a shape; it is `none` in any other type."""
    empty = Record((("a", Option(Int(0, -1))), ("b", Int(0, 3))))
    place = Record((("a", Option(NODE)), ("b", Int(-1, 300))))
    x = Var(empty, SPAN, 0, primed=False)
    (run,) = compiled([Apply(BOOL, SPAN, Op.EQ, (x, Const(place, SPAN, ((), 2))))], [empty])
    assert [run((((), number),)) for number in (1, 2)] == [False, True]


def test_a_violation_is_found_with_any_room(tmp_path: Path) -> None:
    """The trace is as long as the reference's, though it contains states that did not fit at first."""
    program = growing(tmp_path, claim="short: card(sent) < 30")
    found = engine.search(program, engine.NativeOptions(room=Room(2)))
    assert isinstance(found.verdict, Violated)
    trace = found.verdict.violations[0].trace
    assert trace is not None
    assert len(trace.steps) == 30


def test_a_set_that_never_has_room_is_left_to_the_reference(tmp_path: Path) -> None:
    """A set that does not fit the largest state is refused like any value without a code, not truncated."""
    program = program_of(GROWING.format(most=600, claim="true_of_all: n >= 0"), tmp_path)
    assert program is not None
    with pytest.raises(Unsupported, match=r"words of 64 bits|would need"):
        engine.search(program, engine.NativeOptions(workers=1))


def test_items_of_more_than_a_word_are_refused() -> None:
    """The refusal names the type and the size of an item."""
    with pytest.raises(Unsupported, match=r"an item of a set over .* would need 70 bits"):
        width(retyped(Set(Record(tuple((f"f{i}", Int(0, 1000)) for i in range(7)))), FIRST_ROOM))


def test_a_program_of_small_sets_keeps_its_types(tmp_path: Path) -> None:
    """Then the kernel is unchanged, and its file is found."""
    program = program_of("spec s\nvar x : set[0..99] = {}\ndeadlock ok\n", tmp_path)
    assert program is not None
    assert with_room(program, FIRST_ROOM) is program
    assert first_room(program) == FIRST_ROOM


def test_the_first_room_is_what_a_walk_needs(tmp_path: Path) -> None:
    """Twice as much if sets still grow at its end, a quarter more if they do not."""
    assert first_room(growing(tmp_path)).items == 2 * STEPS
    assert first_room(growing(tmp_path, most=18)).items == 22
    assert first_room(growing(tmp_path, most=21)) == first_room(growing(tmp_path, most=21))


def test_larger_rooms_have_more_bits_only_in_proportion() -> None:
    """A room that lists what could have bits goes on listing it."""
    assert Room.of(16) == Room(16, 256)
    assert Room(16, 256).larger == Room.of(32)
    assert Room(8, 1).larger == Room(16, 1)


def test_both_engines_find_the_same_states(tmp_path: Path) -> None:
    """Unpacked, the states of listed sets are those of the reference."""
    program = growing(tmp_path, most=9)
    search = reference.ReferenceEngine(reference.Search(program, Options(symmetry=False, keep_going=True)))
    reference.explore(search)
    assert states_found(program) == set(search.parents)


@pytest.mark.parametrize("states", [3, 60])
def test_a_resumed_search_has_the_room_of_its_checkpoint(states: int, tmp_path: Path) -> None:
    """Also if it must restart with more slots: the answer is that of one search."""
    program, place = growing(tmp_path), tmp_path / "kept"
    whole = engine.search(program, engine.NativeOptions(room=Room(2)))
    options = engine.NativeOptions(room=Room(3), checkpoint=place, checkpoint_every_s=0.0, workers=1)
    first = engine.search(program, replace(options, budget=Budget(max_states=states)))
    assert not isinstance(first.verdict, Holds)
    found = engine.search(program, replace(options, resume=True, room=None))
    assert said(found, coverage=True) == said(whole, coverage=True)
    assert isinstance(found.verdict, Holds)


@pytest.mark.parametrize("room", [Room(2), Room.of(64)])
def test_temporal_properties_are_checked_on_listed_sets(room: Room, tmp_path: Path) -> None:
    """The step graph has the slots of the search, and restarts it if they are too few."""
    text = GROWING.format(most=18, claim="true_of_all: n >= 0")
    program = program_of(text + "fair send\nliveness ends: eventually n == 18\n", tmp_path)
    assert program is not None
    found = engine.search(program, engine.NativeOptions(room=room, symmetry=False))
    assert said(found, coverage=True) == said(
        reference.search(program, Options(symmetry=False)), coverage=True
    )
    assert isinstance(found.verdict, Holds)


def test_the_layout_of_a_listed_set_is_shown(tmp_path: Path) -> None:
    """Its width is that of its slots and its length."""
    program = growing(tmp_path)
    place = layout_of(with_room(program, Room(4))).places[0]
    assert place.width == 4 * 12 + 3
