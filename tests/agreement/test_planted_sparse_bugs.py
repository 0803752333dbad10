"""Wrong code for listed sets is detected: each test plants one bug in a kernel and compares the engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agreement.both import differences, program_of
from specchk.ir.program import Program
from specchk.ir.types import Room, Set
from specchk.native import engine
from specchk.native.kernel.canonical import Renamed
from specchk.native.machine.asm import Asm, Val
from specchk.native.machine.layout import is_sparse, slots_of
from specchk.native.values import sparse
from specchk.native.values.codes import register
from specchk.native.values.domains import Domains
from specchk.native.values.fitting import Fitting
from specchk.native.values.sparse import ItemsListing, Sparse
from specchk.search.budget import Budget
from specchk.search.replay import ReplayFailed

# Items of 15 bits, so that some are in two words; a set of sets, whose order is not that of codes; a constant
# set, a range, a value that does not fit.
SUITE = """
spec suite
sort Node
type Message = { from: Node, to: Node, term: -1..9, at: 0..99, ok: bool }
type Some = { x: 0..2, of: 0..200 }
var sent : set[Message] = {}
var old : set[Message] = {}
var parts : set[set[0..9]] = { {}, {1} }
var small : set[0..299] = { 7 }
var late : bool = false
const Watched : set[Some] = { { x: 0, of: 3 }, { x: 1, of: 20 }, { x: 2, of: 2 } }
action send(a: Node, b: Node):
    require a != b and card(sent) < 3 and card(parts) != 3 and small == { 7 }
    sent' = sent union { { from: a, to: b, term: card(sent) - 1, at: 40 + card(old), ok: late } }
action swap():
    any m in sent:
        require m.at < 42 and m.term > -1 and card(old) < 2 and small == { 7 }
        sent' = (sent - { m }) union { { m with from: m.to, to: m.from, at: 42 } }
        old' = old union { { m with term: 9 } }
action merge():
    require card(sent) == 2 and not late
    sent' = (sent intersect old) union { m for m in (sent union old) if m.term >= 0 and m.from != m.to }
    late' = true
action split(i: 0..2):
    require sent == {} and card(parts) < 5 and i in { s.x for s in Watched if { x: i, of: s.of } in Watched }
    parts' = { p union { 2 * i } for p in parts } union parts
action count():
    require card(small) < 3 and parts == {{}, {1}} and card(sent) != 1
    small' = { x + 150 for x in small } union small
action last():
    require late
    any x in { m.at + m.term for m in old }:
        small' = { x }
invariant ordered: parts == {} or card(choose p in parts: p != {}) <= 2
invariant kept: forall m in old: m.term == 9 and not (m in sent and m.at == 40)
reachable deep: exists m in sent: m.ok and m.at > 41
reachable known: { {}, {1}, {0}, {0, 1} } subset parts
deadlock ok
model m:
    Node = 2
"""
LIMIT = Budget(max_states=5000)


def suite(folder: Path) -> Program:
    """The program on which the engines are compared."""
    program = program_of(SUITE, folder)
    assert program is not None
    return program


def is_caught(folder: Path) -> bool:
    """Whether the engines differ, with symmetry or without, with many slots from the start or few."""
    program = suite(folder)
    for symmetry, room in ((False, Room.of(8)), (True, Room.of(8)), (False, Room(2))):
        try:
            if (
                differences(program, symmetry=symmetry, keep_going=True, workers=1, limit=LIMIT, room=room)
                != {}
            ):
                return True
        except (ReplayFailed, RuntimeError, AssertionError, IndexError):
            return True
    return False


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use an empty cache, so that no kernel of a wrong compiler is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_code_as_it_is_passes(tmp_path: Path) -> None:
    """Without a planted bug no difference is found, and the suite is really compared."""
    assert not is_caught(tmp_path)


def _unsorted(asm: Asm, kind: Set, item: Val) -> Val:
    return 0


def _without_dedupe(asm: Asm, kind: Set) -> None:
    array, count, item, asm.overflow = asm.function.args
    full = asm.cmp("==", count, slots_of(kind))
    asm.when(asm.negate(full), lambda: asm.store(item, array, count))
    asm.b.ret(asm.select(full, count, asm.add(count, 1)))


def _one_less(good: Callable[..., tuple[Any, Val]]) -> Callable[..., tuple[Any, Val]]:
    def unpacked(self: Sparse, kind: Set, items: Val) -> tuple[Any, Val]:
        array, count = good(self, kind, items)
        return array, self.asm.max(self.asm.sub(count, 1), 0)

    return unpacked


def _garbage_behind(good: Callable[..., Val]) -> Callable[..., Val]:
    def packed(self: ItemsListing) -> Val:
        asm, code = self.sparse.asm, good(self)
        is_full = asm.cmp("==", asm.b.load(self.count), slots_of(self.kind))
        first = asm.load(self.array, 0)
        dirt = asm.shl(asm.resize(asm.band(first, 1), register(self.kind)), 5, register(self.kind))
        return asm.select(is_full, code, asm.bor(code, dirt), register(self.kind))

    return packed


def _in_one_word(good: Callable[..., Val]) -> Callable[..., Val]:
    def slot(asm: Asm, kind: Set, words: Any, index: Val) -> Val:
        word, bit = sparse._place(asm, kind, index)
        return asm.bits(asm.shr(asm.load(words, word), bit), 0, sparse.width(kind.item))

    return slot


def _but_the_last(good: Callable[..., None]) -> Callable[..., None]:
    def each(self: Sparse, kind: Set, items: Val, body: Callable[[Val], None]) -> None:
        asm, words = self.asm, sparse._spilled(self.asm, kind, items)
        asm.loop(0, asm.sub(self.size(kind, items), 2), lambda i: body(sparse._slot(asm, kind, words, i)))

    return each


def _up_to_the_last(good: Callable[..., Val]) -> Callable[..., Val]:
    return lambda asm, kind, count, item, at: good(asm, kind, asm.max(asm.sub(count, 1), 0), item, at)


def _too_short(good: Callable[..., tuple[Any, int]]) -> Callable[..., tuple[Any, int]]:
    def table(self: Domains, domain: Any) -> tuple[Any, int]:
        place, count = good(self, domain)
        return place, count - 1

    return table


def _unconverted(good: Callable[..., Val]) -> Callable[..., Val]:
    def convert(self: Fitting, value: Val, found: Set, wanted: Set) -> Val:
        if not (is_sparse(found) and is_sparse(wanted)):
            return good(self, value, found, wanted)
        listing = ItemsListing(self.sparse, wanted)
        self.sparse.each(found, value, listing.add)
        return listing.packed()

    return convert


BUGS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "items are put at the end": (sparse, "_key", lambda _: _unsorted),
    "equal items are kept": (sparse, "_add", lambda _: _without_dedupe),
    "the last item is not merged": (Sparse, "unpacked", _one_less),
    "empty slots are not 0": (ItemsListing, "packed", _garbage_behind),
    "an overflow is not noted": (sparse, "_note_overflow", lambda _: lambda asm, kind: None),
    "an overflow is not looked at": (engine.NativeEngine, "_check_room", lambda _: lambda self: None),
    "an item is read from one word": (sparse, "_slot", _in_one_word),
    "the last item is not visited": (Sparse, "each", _but_the_last),
    "the last item is not found": (sparse, "_search", _up_to_the_last),
    "a union is its first set": (Sparse, "united", lambda _: lambda self, kind, a, b: a),
    "renamed items are not sorted": (Renamed, "_sparse", lambda _: lambda self, kind, value: value),
    "misfits are stored": (Fitting, "_misfit_items", lambda _: lambda *given: None),
    "slots are not converted": (Fitting, "_convert_each", _unconverted),
    "a constant set loses an item": (Domains, "table", _too_short),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite distinguishes the engines."""
    owner, name, wrong = BUGS[bug]
    monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))
    assert is_caught(tmp_path)
