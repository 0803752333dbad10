"""The search of a small model, before any code is compiled.

Compiling takes longer than the reference engine's search of some thousand states.  So it starts first, with
an effort bounded by counts that depend on program and code, never by time: the executed lines of Python.
They are counted for a sample of the states, since counting is slow; a line takes 40 to 100 ns
in any spec.  If the effort does not suffice for all states, or a property fails, nothing of this
search counts.  A search that is far from its end is abandoned early: breadth first, levels grow and shrink
again, and the share of the last level in all states shows how far it is (`SmallEngine.expand`).

One line can list more values than there is room for, so there is a static bound, too (`effort_of_state`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from math import prod
from types import FrameType
from typing import Any

from specchk.ir import nodes
from specchk.ir.nodes import Block, Expr
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.ir.types import Map, Record, Set, Type, cardinality
from specchk.ir.typing import most_items
from specchk.ir.verify import parts
from specchk.ir.walk import inside, is_large, roots
from specchk.meaning.initial import tries
from specchk.meaning.properties import Functions
from specchk.meaning.undefined import BeyondHorizon, Undefined
from specchk.meaning.values import State
from specchk.search.engine import Options, Search, explore
from specchk.search.reference import ReferenceEngine
from specchk.search.verdict import INTERRUPTED, Holds, HoldsWithin, Inconclusive, Outcome

# In evaluations of nodes, at most: of one state's successors and properties, of keeping one state, and of
# renaming one successor once.
EFFORT, PER_STATE, PER_RENAMING = 3_000_000, 500, 10
ITEMS = 4  # of a value that are listed, copied or hashed in the time of one evaluation
INITIAL = 10_000  # candidates for an initial state
# In lines: of a search, of one as estimated during it, and of one whose end is not estimated yet.
MOST_LINES, LIKELY_LINES, FIRST_LINES = 8_500_000, 6_000_000, 600_000
LINES_OF_EXPRESSION = 85  # to make its part of a function
SAMPLED, SPARSELY, FIRST_STATES = 16, 64, 64  # one of so many states is counted; fewer after the first
THIRD = 0.34


class EffortSpent(Exception):
    """The allowed effort is not sufficient for all states."""


class SmallEngine(ReferenceEngine):
    """The reference engine, which raises `EffortSpent` once it has executed too many lines."""

    lines = 0

    def functions(self) -> Functions:
        """The functions, shared with later searches."""
        return self.search.options.functions or ReferenceEngine.functions(self)

    def begin(self) -> list[State]:
        """As in the reference engine, with functions that are built before lines are counted."""
        bodies = (root for action in self.program.actions for root in roots(action.body))
        self.lines = LINES_OF_EXPRESSION * sum(1 for root in bodies for _ in inside(root))
        if self.lines > MOST_LINES:
            raise EffortSpent
        # To count these lines would take twice as long as to execute them.
        self.stepper.make()
        return ReferenceEngine.begin(self)

    def expand(self, frontier: list[State]) -> list[State]:
        """As in the reference engine, unless the search is far from its end."""
        if self.lines > FIRST_LINES and self._is_far(self.search.levels):
            raise EffortSpent
        return ReferenceEngine.expand(self, frontier)

    def _is_far(self, levels: Sequence[int]) -> bool:
        """Whether levels still grow, and the states to come are likely to need too many lines.

        Of 46 bundled models, those whose last level had half of the states had 12 times as many in the
        end, with a third 4 times, with a quarter 2 times: about 100 times the cube of the share.  With a
        third or less the level costs no more than half of what is spent, and may be one of the last.
        """
        states = sum(levels)
        grows = len(levels) < 2 or (levels[-1] > levels[-2] and levels[-1] > THIRD * states)
        return grows and 100 * levels[-1] ** 3 * self.lines > LIKELY_LINES * states**3

    def _expand(self, state: State, next_frontier: list[State]) -> None:
        number = self.expanded
        # The first states in powers of two: to trace one takes five times as long as to expand it.
        sampled = SAMPLED if number < FIRST_STATES else SPARSELY
        if number & (number - 1) if number < SAMPLED else number % sampled:
            ReferenceEngine._expand(self, state, next_frontier)
            return
        with Lines(MOST_LINES) as counted:
            ReferenceEngine._expand(self, state, next_frontier)
        self.lines += counted.count * max(1, min(number // 2, sampled))
        if self.lines > MOST_LINES:
            raise EffortSpent


class Lines:
    """Counts the lines of Python executed in its block; above `most` it raises `EffortSpent`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0

    def __enter__(self) -> Lines:
        self._before = sys.gettrace()
        sys.settrace(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _see(self, frame: FrameType, event: str, arg: object) -> Any:
        self.count += 1
        if self.count > self.most:
            raise EffortSpent
        return self._see


def small_search(program: Program, options: Options) -> Outcome | None:
    """The outcome of a program if its states are few and satisfy all properties, else None.

    By the reference engine.  An interruption is an outcome, too.
    """
    if is_large(program):  # then its functions are better made while its kernel is compiled
        return None
    search = Search(program, options)
    symmetry = search.symmetry
    if effort_of_state(program, 1 if symmetry is None else len(symmetry.renamings)) > EFFORT:
        return None
    try:
        if tries(program, INITIAL) > INITIAL:
            return None
        outcome = explore(SmallEngine(search))
    except (Undefined, BeyondHorizon, EffortSpent):  # undefined: reported by the search that counts
        return None
    is_answer = isinstance(outcome.verdict, Holds | HoldsWithin)
    return outcome if is_answer or outcome.stopped == Inconclusive(INTERRUPTED, budget=False) else None


def effort_of_state(program: Program, renamings: int = 1) -> int:
    """The maximal number of evaluations for finding, checking and keeping the successors of one state."""
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
    """The evaluations of a block and of its continuation, which needs `after`."""
    for stmt in reversed(body):
        match stmt:
            case nodes.Guard():
                after += _evaluations(stmt.condition)
            case nodes.Bind() | nodes.Unwrap():
                after += _evaluations(stmt.value)
            case nodes.Assign():
                keys = [step.key for step in stmt.path if step.key is not None]
                after += _all([*keys, stmt.value])
            case nodes.Choice():
                after = _evaluations(stmt.domain) + most_items(stmt.domain) * _block(stmt.body, after)
            case nodes.Either():
                after = sum(_block(branch, after) for branch in stmt.branches)
            case nodes.When():
                ways = max(_block(stmt.then, after), _block(stmt.orelse, after))
                after = _evaluations(stmt.condition) + ways
    return after


def _evaluations(expr: Expr) -> int:
    match expr:
        case nodes.Quantifier() | nodes.Choose():
            return 1 + _evaluations(expr.domain) + most_items(expr.domain) * _evaluations(expr.body)
        case nodes.Collect():
            inner = _all([expr.body] if expr.condition is None else [expr.condition, expr.body])
            for _, domain in reversed(expr.binders):
                inner = _evaluations(domain) + most_items(domain) * inner
            return 1 + inner
        case nodes.MapOf(type=Map(key=keys)):
            return 1 + cardinality(keys) * _evaluations(expr.body)
        case nodes.Apply(type=Set(item=Set() | Map() as item)):  # all subsets of a set, or all maps
            return cardinality(item) + _all(expr.args)
        case nodes.Apply(op=Op.RANGE):
            return 1 + most_items(expr) // ITEMS + _all(expr.args)
        case nodes.Const(value=tuple() as listed):
            return 1 + len(listed) // ITEMS
    return 1 + _all(parts(expr))


def _all(exprs: Iterable[Expr]) -> int:
    return sum(map(_evaluations, exprs))


def _items(kind: Type) -> int:
    """The number of values in each value of a type; items of a set count as work of its steps."""
    match kind:
        case Map():
            return cardinality(kind.key) * _items(kind.value)
        case Record():
            return sum(_items(item) for _, item in kind.fields)
    return 1
