"""A small search by the reference engine, which confirms claims established for all offsets.

Offsets below the horizons of a model are some of all offsets, so every failure that this search finds is a
failure.  A sample is not a proof: it keeps an encoding that is wrong about common states from being trusted.
"""

from __future__ import annotations

from specchk.ir.program import Program
from specchk.search.budget import Budget
from specchk.search.engine import Options, Search
from specchk.search.reference import ReferenceEngine
from specchk.search.replay import CONFIRMING, ReplayFailed, has_first_states


def confirm(program: Program, depth: int | None = None) -> None:
    """Search the first states of a program for which no failure was reported (in `depth` steps).

    Raises `ReplayFailed` if something fails.
    """
    if not has_first_states(program):
        return
    search = Search(program, Options(Budget(max_states=CONFIRMING)))
    engine = ReferenceEngine(search)
    frontier, steps = engine.begin(), 0
    while engine.size(frontier) and not search.is_stopped and not search.is_answered and steps != depth:
        frontier = engine.expand(frontier)
        steps += 1
    for violation in search.findings.found.values():
        length = 0 if violation.trace is None else len(violation.trace.steps)
        raise ReplayFailed(f"`{violation.name}` fails after {length} steps where the solver found it to hold")
