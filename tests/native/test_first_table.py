"""The first table of a search: as large as the last search of the same program needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native import compiler, store
from specchk.native.engine import NativeOptions, search
from specchk.native.machine.slots import EXPECTED_UNTIL, FIRST_SLOTS, LOAD, fast_until, first_slots, grown
from specchk.search.budget import Budget
from specchk.search.verdict import Outcome

SQUARE = """
spec square
const Side : int
var x : 0..Side = 0
var y : 0..Side = 0
action right():
    require x < Side
    x' = x + 1
action up():
    require y < Side
    y' = y + 1
deadlock ok
invariant inside: x + y <= 2 * Side
model m:
    Side = 200
"""
STATES = 201 * 201


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The slots of each table that is made, in order."""
    made, make = list[int](), store.Store._new_table

    def noted(kept: store.Store, slots: int) -> None:
        made.append(slots)
        make(kept, slots)

    monkeypatch.setattr(store.Store, "_new_table", noted)
    monkeypatch.setattr(compiler, "MANY_STATES", STATES // 2)
    return made


def square(folder: Path, text: str = SQUARE) -> Program:
    (folder / "square.spec").write_text(text, encoding="utf-8")
    return instantiate(check(str(folder / "square.spec"))).program


def found(outcome: Outcome) -> tuple[Any, ...]:
    numbers = outcome.statistics
    return outcome.verdict, numbers.distinct, numbers.generated, numbers.levels


def test_the_next_search_begins_with_the_last_ones_table(
    tables: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows no more, and finds the same; another program begins small."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = found(search(square(tmp_path), NativeOptions(workers=1)))
    assert first[1] == STATES
    assert tables[0] == FIRST_SLOTS < tables[-1]
    largest = tables[-1]
    tables.clear()
    assert found(search(square(tmp_path), NativeOptions(workers=1))) == first
    assert tables == [largest]
    tables.clear()
    search(square(tmp_path, SQUARE.replace("Side = 200", "Side = 100")), NativeOptions(workers=1))
    assert tables[0] == FIRST_SLOTS


def test_a_search_that_ends_early_notes_nothing_and_expects_no_more_than_its_limit(
    tables: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its states say nothing about a whole search."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    limited = NativeOptions(workers=1, budget=Budget(max_states=STATES * 3 // 4))
    search(square(tmp_path), limited)
    tables.clear()
    search(square(tmp_path), NativeOptions(workers=1))
    assert tables[0] == FIRST_SLOTS
    tables.clear()
    search(square(tmp_path), NativeOptions(workers=1, budget=Budget(max_states=100)))
    assert tables == [FIRST_SLOTS]


@pytest.mark.parametrize("content", [b"", b"many", b"-5", b"9" * 30, b"\xff" * 9])
def test_a_wrong_number_changes_no_result(
    content: bytes, tables: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a hint: whatever somebody wrote there, the same states are found."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("specchk.native.machine.slots.EXPECTED_UNTIL", 1 << 20)
    program = square(tmp_path)
    first = found(search(program, NativeOptions(workers=1)))
    (place,) = tmp_path.rglob("*-states.o")
    compiler.kept.write(place, content)
    tables.clear()
    assert found(search(program, NativeOptions(workers=2))) == first
    assert max(tables) <= 1 << 20


@pytest.mark.parametrize("limit", [None, 1 << 20, 1 << 24, 1 << 30, 1 << 40])
@pytest.mark.parametrize("expected", [0, 1, 10_000, 1 << 20, 10_000_000, 1 << 50])
def test_a_first_table_is_a_power_of_two_within_its_bounds(limit: int | None, expected: int) -> None:
    """With room for what workers add, and no larger than a table that grew."""
    slack = 3000
    slots = first_slots(slack, expected, limit)
    assert slots & (slots - 1) == 0
    assert slots * (1 - LOAD) >= slack
    assert slots <= max(FIRST_SLOTS, EXPECTED_UNTIL if limit is None else fast_until(limit))
    wanted = grown(FIRST_SLOTS, expected + slack, fast_until(limit))
    assert slots <= wanted
    assert grown(slots, expected, fast_until(limit)) * LOAD >= expected
