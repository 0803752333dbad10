"""The search of a small model, before any code is compiled.

Compiling takes longer than the reference engine's search of some hundred states.  So it begins, with an
effort that is bounded by what the program alone decides, never by time: a bound on the nodes of the core that
one state's successors and properties evaluate, what is in a loop as often as the loop can run.  Guards and
junctions that end early make the work less: a fifth of a microsecond for each, mostly far less.  Where the
effort is not enough for all states, or a property fails, nothing of this search counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from specchk.ir.nodes import (
    Apply,
    Assign,
    Bind,
    Block,
    Choice,
    Choose,
    Collect,
    Const,
    Either,
    Expr,
    Guard,
    MapOf,
    Quantifier,
    Unwrap,
    When,
)  # fmt: skip
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.ir.types import Map, Record, Set, Type, cardinality
from specchk.ir.typing import most_items
from specchk.ir.verify import parts
from specchk.meaning.initial import tries
from specchk.meaning.undefined import BeyondHorizon, Undefined
from specchk.search.budget import Meter
from specchk.search.engine import Options, Search, explore
from specchk.search.reference import ReferenceEngine
from specchk.search.verdict import INTERRUPTED, Holds, HoldsWithin, Inconclusive, Outcome

# In evaluations: of the whole search, of keeping one state, and of renaming one successor once.
EFFORT, PER_STATE, PER_RENAMING = 3_000_000, 500, 10
ITEMS = 4  # of a value that are listed, copied or hashed in the time of one evaluation


def small_search(program: Program, options: Options) -> Outcome | None:
    """The outcome of a program whose states are few and keep all properties, else None.

    By the reference engine.  An interruption is an outcome, too.
    """
    search = Search(program, options)
    symmetry = search.symmetry
    states = EFFORT // effort_of_state(program, 1 if symmetry is None else len(symmetry.renamings))
    try:
        if tries(program, states) > states:
            return None
    except (Undefined, BeyondHorizon):  # reported by the search that counts
        return None
    given = options.budget.max_states
    search.meter = Meter(replace(options.budget, max_states=states if given is None else min(states, given)))
    outcome = explore(ReferenceEngine(search))
    is_answer = isinstance(outcome.verdict, Holds | HoldsWithin)
    return outcome if is_answer or outcome.stopped == Inconclusive(INTERRUPTED, budget=False) else None


def effort_of_state(program: Program, renamings: int = 1) -> int:
    """Evaluations that finding, checking and keeping the successors of one state take at most."""
    size = sum(_items(variable.type) for variable in program.variables) // ITEMS
    # A successor is copied and hashed, and renamed in all ways for its representative; its step is checked.
    kept = 1 + size + (PER_RENAMING * renamings if renamings > 1 else 0)
    kept += sum(_evaluations(prop.body) for prop in program.step_invariants)
    actions = sum(
        prod(cardinality(param.type) for param in action.params) * _block(action.body, kept)
        for action in program.actions
    )
    checked = (*program.invariants, *program.witnesses, *program.constraints)
    return PER_STATE + size + actions + sum(_evaluations(prop.body) for prop in checked)


def _block(body: Block, after: int) -> int:
    """Those of a block and of what follows it, which takes `after`."""
    for stmt in reversed(body):
        match stmt:
            case Guard():
                after += _evaluations(stmt.condition)
            case Bind() | Unwrap():
                after += _evaluations(stmt.value)
            case Assign():
                keys = [step.key for step in stmt.path if step.key is not None]
                after += _all([*keys, stmt.value])
            case Choice():
                after = _evaluations(stmt.domain) + most_items(stmt.domain) * _block(stmt.body, after)
            case Either():
                after = sum(_block(branch, after) for branch in stmt.branches)
            case When():
                ways = max(_block(stmt.then, after), _block(stmt.orelse, after))
                after = _evaluations(stmt.condition) + ways
    return after


def _evaluations(expr: Expr) -> int:
    match expr:
        case Quantifier() | Choose():
            return 1 + _evaluations(expr.domain) + most_items(expr.domain) * _evaluations(expr.body)
        case Collect():
            inner = _all([expr.body] if expr.condition is None else [expr.condition, expr.body])
            for _, domain in reversed(expr.binders):
                inner = _evaluations(domain) + most_items(domain) * inner
            return 1 + inner
        case MapOf(type=Map(key=keys)):
            return 1 + cardinality(keys) * _evaluations(expr.body)
        case Apply(type=Set(item=Set() | Map() as item)):  # all subsets of a set, or all maps
            return cardinality(item) + _all(expr.args)
        case Apply(op=Op.RANGE):
            return 1 + most_items(expr) // ITEMS + _all(expr.args)
        case Const(value=tuple() as listed):
            return 1 + len(listed) // ITEMS
    return 1 + _all(parts(expr))


def _all(exprs: Iterable[Expr]) -> int:
    return sum(map(_evaluations, exprs))


def _items(kind: Type) -> int:
    """The number of values that each value of a type consists of; what a set has is the work of its steps."""
    match kind:
        case Map():
            return cardinality(kind.key) * _items(kind.value)
        case Record():
            return sum(_items(item) for _, item in kind.fields)
    return 1
