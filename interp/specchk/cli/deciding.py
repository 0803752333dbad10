"""The conditions of a program that decide something, as the default engine finds them."""

from __future__ import annotations

from collections.abc import Collection

from specchk.cli.engines import EngineSettings, explore
from specchk.explore.conditions import Decided, asking_conditions, conditions, decided
from specchk.ir.program import Program
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.engines import NAMES


def decided_conditions(
    program: Program,
    budget: Budget | None = None,
    *,
    only: Collection[tuple[str, str, str]] | None = None,
    quiet: bool = False,
) -> Decided:
    """The conditions of a program, or those with the keys `only`, as the default engine finds them."""
    wanted = {
        condition: witness
        for condition, witness in conditions(program).items()
        if only is None or condition.key in only
    }
    witnesses = asking_conditions(program, wanted.values())
    # A condition without a value is a violation, which must not end the search for the others.
    options = Options(budget or Budget(), keep_going=True)
    return decided(program, wanted, explore(witnesses, options, engine=EngineSettings(NAMES[0]), quiet=quiet))
