"""The results of the symbolic search, in the form of the enumerating engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning.deadlock import End, Ends
from specchk.meaning.open_numbers import Term
from specchk.meaning.paths import ForkPath
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.values import State
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options, Search, explore
from specchk.search.reference import ReferenceEngine
from specchk.search.verdict import Inconclusive, Outcome, Violated, Violation
from specchk.symbolic import legality
from specchk.symbolic.zones.engine import ZoneEngine, ZoneOptions
from specchk.symbolic.zones.zones import Shapes, Zone

LIMIT = Budget(max_states=4000)
# Without horizons.  Where that is not enough, nothing is compared; seed 1344 would take minutes.
BEYOND = Budget(max_states=2000, max_seconds=20)


def program_of(text: str, folder: Path, model: str | None = None) -> Program:
    file = folder / "offsets.spec"
    file.write_text(text, encoding="utf-8")
    return instantiate(check(str(file)), model).program


def solutions(zone: Zone, horizon: int) -> list[tuple[int, ...]]:
    """The offsets of a zone's states up to a horizon; the first symbol of each class is one of them."""
    found: list[tuple[int, ...]] = [(0,)]
    for i in range(1, len(zone.bounds)):
        found = [
            (*values, new)
            for values in found
            for new in range(horizon + 1)
            if all(
                new - y <= zone.bounds[i][j] and y - new <= zone.bounds[j][i] for j, y in enumerate(values)
            )
        ]
    offsets = [tuple([y[number] + plus for number, plus in zone.classes]) for y in found]
    return [one for one in offsets if all(0 <= offset <= horizon for offset in one)]


def zone_engine(program: Program, options: ZoneOptions) -> ZoneEngine:
    """An engine whose zones can be looked at."""
    return ZoneEngine(Search(program, options), options)


def search_zones(program: Program, options: ZoneOptions = ZoneOptions()) -> Outcome:
    """The exact search alone, without hulls beside it."""
    if not options.horizons:
        legality.check(program)
    engine = zone_engine(program, options)
    try:
        return explore(engine)
    finally:
        engine.workers.close()


def state_of(shapes: Shapes, zone: Zone, path: ForkPath) -> State:
    """A zone as a state whose offsets are terms of a path over its bounds."""
    return shapes.join(zone.shape, [Term(path, symbol, plus) for symbol, plus in zone.classes])


def leaves_open(program: Program, violation: Violation) -> bool:
    """Whether a deadlock is one that enumerating engines report as undecided."""
    if violation.kind != "deadlock" or violation.trace is None:
        return False
    stepper = Stepper(program)
    ends = Ends(program, stepper, Properties(program, stepper))
    return ends.end(violation.trace.states[-1]) is End.UNDECIDED


def states_of(engine: ZoneEngine, horizon: int) -> set[State]:
    """All states in the zones of a search, offsets up to a horizon."""
    shapes = Shapes(engine.program)
    assert engine.workers.alone is not None
    return {
        shapes.join(zone.shape, offsets)
        for zone in engine.workers.alone.covered.zones()
        for offsets in set(solutions(zone, horizon))
    }


def said(outcome: Outcome) -> dict[str, Any]:
    """The results on which both kinds of engine must agree."""
    violations = getattr(outcome.verdict, "violations", ())
    return {
        "verdict": type(outcome.verdict).__name__,
        "violations": sorted((v.kind, v.name, v.trace and len(v.trace.steps)) for v in violations),
        "depth": outcome.statistics.depth,
        "witnesses": sorted((name, len(trace.steps)) for name, trace in outcome.witnesses),
    }


def differences(
    program: Program, horizon: int, *, keep_going: bool, patience_s: float | None = None
) -> dict[str, Any] | None:
    """On what the reference and the symbolic search with horizons disagree; None if too large or slow."""
    way = Options(replace(LIMIT, max_seconds=patience_s), symmetry=False, keep_going=keep_going)
    enumerating = ReferenceEngine(Search(program, way))
    expected = explore(enumerating)
    if isinstance(expected.verdict, Inconclusive) and expected.verdict.budget:
        return None
    if keep_going and expected.statistics.distinct >= LIMIT.max_states:  # it found something, but not all
        return None
    options = ZoneOptions(Budget(max_seconds=patience_s), False, keep_going, horizons=True, workers=1)
    engine = zone_engine(program, options)
    found = explore(engine)
    if patience_s is not None and max(expected.statistics.seconds, found.statistics.seconds) >= patience_s:
        return None
    if any(leaves_open(program, one) for one in getattr(found.verdict, "violations", ())):
        return None
    if engine.search.is_stopped:  # perhaps after a violation, which it then reports
        return {"verdict": (type(expected.verdict).__name__, "Inconclusive")}
    wanted, got = said(expected), said(found)
    if not isinstance(expected.verdict, Violated) or keep_going:
        got["states"], wanted["states"] = states_of(engine, horizon), set(enumerating.parents)
    return {key: (wanted[key], got[key]) for key in wanted if wanted[key] != got[key]}


def contradictions(program: Program) -> list[str]:
    """The findings of the reference within horizons that the search without horizons contradicts."""
    within = reference.search(program, Options(LIMIT, symmetry=False))
    beyond = explore(zone_engine(program, ZoneOptions(BEYOND, workers=1)))
    found = {(v.kind, v.name): v for v in getattr(beyond.verdict, "violations", ())}
    if isinstance(beyond.verdict, Inconclusive):
        return []
    expected = getattr(within.verdict, "violations", ())
    shortest = min((len(v.trace.steps) for v in expected if v.trace), default=None)
    own = min((len(v.trace.steps) for v in found.values() if v.trace), default=None)
    wrong = []
    if shortest is not None and (own is None or own > shortest):
        wrong.append(f"a violation in {shortest} steps was found within the horizon, and without it {own}")
    reached = dict(beyond.witnesses)
    if not found and not expected:
        wrong += [f"`{name}` was reached" for name, _ in within.witnesses if name not in reached]
    return wrong
