"""Hulls of a program, and the states reached by the reference that they lack."""

from __future__ import annotations

from specchk.ir.program import Program
from specchk.meaning.values import State
from specchk.search.budget import Budget
from specchk.search.engine import Options, Search, explore
from specchk.search.reference import ReferenceEngine
from specchk.search.verdict import Outcome
from specchk.symbolic.joins.engine import JoiningEngine, JoinOptions
from specchk.symbolic.joins.search import HullSearch
from specchk.symbolic.replay import raised_to
from specchk.symbolic.zones.zones import Shapes, Zone

STEPS = 200  # of a search for hulls
LIMIT = Budget(max_states=1000)


def hull_search(program: Program, *, symmetry: bool = False, workers: int = 1) -> HullSearch:
    """A search for hulls alone, to its end or up to some steps."""
    options = JoinOptions(symmetry=symmetry, workers=workers, join_after=0)
    engine = JoiningEngine(Search(program, options), options)
    try:
        engine.begin()
        assert engine.hulls is not None
        while not engine.hulls.is_done and engine.hulls.generated < STEPS:
            engine.hulls.advance()
        engine.hulls.initial = engine.hulls.zones()  # kept, since the processes end
    finally:
        engine.workers.close()
    return engine.hulls


def reached(program: Program, horizon: int) -> tuple[Outcome, set[State]]:
    """The reference's result with a horizon, and the states."""
    engine = ReferenceEngine(Search(raised_to(program, horizon), Options(LIMIT, symmetry=False)))
    return explore(engine), set(engine.parents)


def missing(program: Program, hulls: list[Zone], states: set[State]) -> list[State]:
    """The states that are in no hull."""
    shapes = Shapes(program)
    by_shape: dict[object, list[Zone]] = {}
    for hull in hulls:
        by_shape.setdefault(hull.shape, []).append(hull)
    found = []
    for state in states:
        shape, offsets = shapes.split(state)
        if not any(has(hull, offsets) for hull in by_shape.get(shape, ())):
            found.append(state)
    return found


def has(zone: Zone, offsets: list[int]) -> bool:
    """Whether offsets satisfy all bounds of a zone; its further places are not compared."""
    numbers: dict[int, int] = {0: 0}
    for (number, plus), offset in zip(zone.classes, offsets, strict=False):
        if numbers.setdefault(number, offset - plus) != offset - plus:
            return False
    return all(x - y <= zone.bounds[i][j] for i, x in numbers.items() for j, y in numbers.items())
