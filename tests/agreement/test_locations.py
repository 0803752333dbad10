"""The effect of an instance depends on the locations that it reads: random specs, and planted errors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agreement.both import of_seed, program_of
from specchk.conform.covers import locations
from specchk.conform.covers.locations import Location, Locations, Touched
from specchk.ir.program import Program
from specchk.ir.types import Map
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State, universe

MOST = 20
SPEC = """spec shelves
sort Shelf
type Level = 0..2
var books : Shelf -> Level = { s: 0 for s in Shelf }
var moved : Shelf -> (Level -> bool) = { s: { l: false for l in Level } for s in Shelf }
var last : Shelf? = none
var top : Level = 0
action put(s: Shelf, l: Level):
    require books[s] < l
    books'[s] = l
    last' = some(s)
action move(s: Shelf, t: Shelf):
    require s != t and books[s] > books[t]
    moved'[t][books[t]] = true
    when moved[s][0]:
        last' = some(t)
    else:
        top' = if exists x in Shelf: books[x] == 2 then 2 else 1
action clear(l: Level):
    books' = { s: if books[s] == l then 0 else books[s] for s in Shelf }
model three:
    Shelf = 3
"""


def after(stepper: Stepper, index: int, args: tuple, state: State) -> list[State] | str:
    """The successors of an instance, or the reason why it has none."""
    try:
        return [one for _, _, one in stepper.of_instance(state, index, args)]
    except Faulty as fault:
        return str(fault)


def instances_of(program: Program) -> list[list[tuple]]:
    return [list(product(*(universe(param.type) for param in one.params))) for one in program.actions]


def differing(program: Program, most: int = MOST) -> list[str]:
    """The instances with another effect if all locations that they do not read are unknown."""
    stepper, instances = Stepper(program), instances_of(program)
    known = Locations(program, instances)
    states, found = list(initial_states(program))[:most], []
    for state in states:
        values = known.values(state)
        assert known.state(values) == state
        for index, all_ in enumerate(instances):
            for args, touched in zip(all_, known.of[index], strict=True):
                narrow = known.narrow(touched.read, [values[at] for at in touched.read])
                whole = after(stepper, index, args, state)
                try:
                    part = after(stepper, index, args, narrow)
                except TypeError:  # something is computed with what is unknown
                    part = "unknown"
                if not isinstance(part, str):
                    part = [filled(known, touched, values, one) for one in part]
                if whole != part:
                    found.append(f"{program.actions[index].name}{args} in {state}")
                if not isinstance(whole, str):
                    states += [one for one in whole if len(states) < most and one not in states]
    return found


def filled(known: Locations, touched: Touched, values: list, narrow: State) -> State | None:
    """A successor, completed with the values neither read nor written; None if it was written elsewhere."""
    new = known.values(narrow)
    if any(new[at] is not None for at in range(known.count) if at not in touched.all):
        return None
    pairs = zip(values, new, strict=True)
    return known.state([old if one is None else one for old, one in pairs])


@pytest.mark.parametrize("seed", range(60))
def test_what_is_not_read_decides_nothing(seed: int, tmp_path: Path):
    """In random specs, states and instances, with faults."""
    program = of_seed(seed, tmp_path)
    if program is not None:
        assert differing(program) == []


def test_an_instance_has_its_elements_of_maps(tmp_path: Path):
    """The elements named by its arguments, and the whole of any other map it reads or writes."""
    program = program_of(SPEC, tmp_path)
    assert program is not None
    known = Locations(program, instances_of(program))
    books, moved, last, top = (0, 1, 2), (3, 4, 5), 6, 7
    put, move, clear = known.of
    assert put[0] == Touched((books[0], last), (books[0],))
    assert move[1] == Touched((*books, moved[0], moved[1], last, top), (*books, moved[0], moved[1]))
    assert clear[0] == Touched(books, books)
    assert differing(program, 200) == []


Of = Callable[..., Any]
ERRORS: dict[str, tuple[str, Callable[[Of, Of], Of]]] = {
    "a variable is not read": (
        "_read", lambda read, _: lambda action, args: set(sorted(read(action, args), key=str)[1:])),
    "what is written is not read": (
        "_read", lambda read, written: lambda action, args: read(action, args) - written(action, args)),
    "what is written is not touched": (
        "_written", lambda _, __: lambda action, args: set[Location]()),
    "every argument names the first element": (
        "_element", lambda _, __: lambda kind, key, args: 0 if isinstance(kind, Map) else None),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_locations_is_detected(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each planted error changes the effect of some instance of the shelves."""
    function, error = ERRORS[name]
    monkeypatch.setattr(locations, function, error(locations._read, locations._written))
    program = program_of(SPEC, tmp_path)
    assert program is not None
    assert differing(program, 200) != []
