"""The deciding conditions of a program, as found by the engines."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from specchk.cli.engines import EngineSettings, explore, loaded
from specchk.explore import conditions
from specchk.explore.conditions import Condition, Decided, with_denials
from specchk.ir.program import Program, Property
from specchk.ir.types import has_horizon
from specchk.lang.text.diagnostics import SpecError
from specchk.report.conditions import undecided
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.engines import NAMES

MOST_HULLS = 150_000  # of one search: the same answer on any machine, unlike seconds


def decided_conditions(
    program: Program,
    budget: Budget | None = None,
    *,
    only: Collection[tuple[str, str, str]] | None = None,
    quiet: bool = False,
) -> Decided:
    """The conditions of a program, or those with the keys `only`, as classified by the default engine."""
    wanted = {
        condition: witness
        for condition, witness in conditions.conditions(program).items()
        if only is None or condition.key in only
    }
    witnesses = conditions.with_conditions(program, wanted.values())
    # A condition without a value is a violation, which must not end the search for the others.
    options = Options(budget or Budget(), keep_going=True)
    outcome = explore(witnesses, options, engine=EngineSettings(NAMES[0]), quiet=quiet)
    return conditions.decided(program, wanted, outcome)


def impossible_conditions(
    program: Program, only: Collection[tuple[str, str, str]], most: int = MOST_HULLS
) -> frozenset[Condition]:
    """Those of the conditions with the keys `only` that decide in no state, for any offsets.

    The symbolic engine's hulls prove it for many at once, and for the others together with the program's own
    invariants, as lemmas.  None are returned for a program without offsets, whose bounds no engine opens; nor
    for one with a constraint, which may be a bound.
    """
    if program.constraints or not any(has_horizon(variable.type) for variable in program.variables):
        return frozenset()
    claims = {
        condition: witness
        for condition, witness in conditions.conditions(program).items()
        if condition.key in only and _has_open_offsets(program, witness)
    }
    engine = loaded("specchk.symbolic.joins.claims")
    proved = engine.proved(with_denials(program, claims.values()), most)
    left = [claim for claim in claims.values() if claim.name not in proved]
    if left and program.invariants:
        # Hulls are split by the comparisons of a claim that fails in them.  Properties that hold in a program
        # compare more; the lemmas are claims themselves, so that nothing is assumed.
        lemmas = [prop for prop in program.invariants if _has_open_offsets(program, prop)]
        beside = with_denials(program, left)
        proved |= engine.proved(replace(beside, invariants=(*beside.invariants, *lemmas)), most)
    return frozenset([condition for condition, claim in claims.items() if claim.name in proved])


def impossible_in(models: Sequence[Decided]) -> frozenset[tuple[str, str, str]]:
    """The keys of the conditions that decide in no model that contains them, for any offsets."""
    open_ = {condition.key for condition in undecided(models)}
    possible: set[tuple[str, str, str]] = set()
    for model in models:
        own = open_ & {condition.key for condition in conditions.conditions(model.program)}
        possible |= own - {condition.key for condition in impossible_conditions(model.program, own)}
    return frozenset(open_ - possible)


def _has_open_offsets(program: Program, claim: Property) -> bool:
    """Whether the symbolic engine accepts a claim; it rejects claims that range over all offsets."""
    try:
        loaded("specchk.symbolic.legality").check(with_denials(program, [claim]))
    except SpecError:
        return False
    return True
