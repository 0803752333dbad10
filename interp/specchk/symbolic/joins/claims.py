"""Invariants that hulls prove one by one: for all offsets, and without the exact search.

All invariants are tried together, since the hulls of one round serve all of them.  A round ends at the first
failures, and shows nothing about the others (`search`).  So after a failed search the invariants that failed
last are dropped, and the rest is searched again.  This terminates: each search drops some.

Not here: violations.  What is not proved may be true.
"""

from __future__ import annotations

from msgspec.structs import replace

from specchk.ir.program import Program
from specchk.search.budget import Budget
from specchk.search.engine import Search
from specchk.symbolic.joins.engine import JoiningEngine, JoinOptions
from specchk.symbolic.legality import check


def proved(program: Program, most: int, workers: int = 0) -> frozenset[str]:
    """The names of the invariants that hulls prove for all offsets of a program.

    Empty if a step may be undefined, or if a search reached `most` hulls.  `workers` as in `ZoneOptions`.
    `SpecError` if only an engine that enumerates can do what the program does with offsets.
    """
    check(program)
    while program.invariants:
        failing = _failing(program, most, workers)
        if failing is None:
            return frozenset()
        left = tuple([claim for claim in program.invariants if claim.name not in failing])
        if not failing:
            return frozenset([claim.name for claim in left])
        # States after an undefined step are in no hull.
        if len(left) + len(failing) != len(program.invariants):
            return frozenset()
        program = replace(program, invariants=left)
    return frozenset()


def _failing(program: Program, most: int, workers: int) -> frozenset[str] | None:
    """The names of the claims that failed last; none for a proof, None if there is no answer."""
    settings = JoinOptions(Budget(max_states=most), workers=workers, join_after=0, keep_going=True)
    engine = JoiningEngine(Search(program, settings), settings)
    try:
        return engine.failing_hulls()
    finally:
        engine.workers.close()
