"""Successors with the fair conditions that their steps meet, and the predicates of temporal properties.

A successor has one more word, the set of conditions of its instance.  The word behind `cuts` has the set of
conditions of the instances with a step that a horizon ended.

    truth(state, thread, predicate) -> FALSE, TRUE or UNDEFINED
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from specchk.codegen import ir
from specchk.ir.nodes import Local, Value
from specchk.ir.program import Program, Property
from specchk.meaning.values import universe
from specchk.native.kernel.steps import Steps
from specchk.native.machine.asm import I64, PTR, Asm, Val
from specchk.native.machine.frames import Thread
from specchk.native.machine.layout import StateLayout
from specchk.native.values.expressions import ExpressionEmitter
from specchk.native.values.totality import ExpressionFacts

CUT = 1  # the word of `cuts` behind the number of them
FALSE, TRUE, UNDEFINED = 0, 1, 2
MAX_PREDICATES = 128


class LabelledSteps(Steps):
    """Emits `steps(state, out, counts, cuts) -> count`: each successor with the conditions it meets."""

    label_words = 1
    is_ordered = True

    def _label(self, at: ir.Value) -> None:
        self.asm.store(self._conditions(), self.out, self.asm.add(at, self.layout.words))

    def _cut(self) -> None:
        known = self.asm.load(self.cuts, CUT)
        self.asm.store(self.asm.bor(known, self._conditions()), self.cuts, CUT)

    def _conditions(self) -> Val:
        """The conditions of the current instance, in the order of `meaning.behaviours.fairness`."""
        first = 0
        conditions: Val = 0
        for fairness in self.program.fairness:
            for part, (action, kept) in enumerate(fairness.actions):
                if action == self.index:
                    params = [self.program.actions[action].params[at] for at in kept]
                    rows = [row[part] for row in fairness.rows]
                    conditions = self.asm.bor(conditions, self._rows(params, rows, first))
            first += len(fairness.rows)
        return conditions

    def _rows(self, params: Sequence[Local], rows: Sequence[tuple[Value, ...]], first: int) -> Val:
        """The conditions, from number `first` on, whose row has the values of the parameters."""
        asm, rank = self.asm, self.rank_of(params)
        orders = [sorted(universe(param.type)) for param in params]
        if len(rows) == prod(map(len, orders)) and rows == list(product(*orders)):
            return asm.shl(1, asm.add(first, rank))
        conditions: Val = 0
        for number, row in enumerate(rows, first):
            if all(value in order for value, order in zip(row, orders, strict=True)):
                position = 0
                for value, order in zip(row, orders, strict=True):
                    position = position * len(order) + order.index(value)
                is_met = asm.cmp("==", rank, position)
                conditions = asm.bor(conditions, asm.shl(asm.select(is_met, 1, 0), number))
        return conditions


class Judging(ExpressionEmitter):
    """Emits `truth`: whether a predicate is true, false or undefined in a state."""

    def __init__(self, asm: Asm, program: Program, layout: StateLayout, facts: ExpressionFacts) -> None:
        state, thread, self.which = asm.function.args
        # A set that is made in a predicate may have too little room, as in a step.
        asm.overflow = asm.at(thread, Thread.OVERFLOW)
        super().__init__(asm, layout, facts, asm.at(thread, Thread.COUNTS))
        self.predicates = judged_predicates(program)
        self.before = self.after = [asm.load(state, index) for index in range(layout.words)]

    def emit(self) -> None:
        """Emit the whole function, including the return."""
        asm = self.asm
        asm.goto(first := asm.block("predicates"))
        asm.enter(self.undefined)
        asm.b.unreachable()
        asm.enter(first)
        none = asm.block("none")
        chosen = asm.b.switch(self.which, none)
        asm.enter(none)
        asm.b.ret(asm.val(UNDEFINED))
        for index, prop in enumerate(self.predicates):
            chosen.add_case(asm.val(index), here := asm.block("predicate"))
            asm.enter(here)
            self.undefined = asm.block("undefined")
            asm.b.ret(asm.val(asm.select(self.value(prop.body), TRUE, FALSE)))
            asm.enter(self.undefined)
            asm.b.ret(asm.val(UNDEFINED))
        asm.finish()


def judged_predicates(program: Program) -> tuple[Property, ...]:
    """The distinct predicates of the temporal properties; none if they are too many for code."""
    clauses = [clause for prop in program.liveness for clause in prop.clauses]
    both = (part for clause in clauses for part in (clause.trigger, clause.goal) if part is not None)
    predicates = tuple(dict.fromkeys(both))
    return predicates if len(predicates) <= MAX_PREDICATES else ()


def has_judged_predicates(program: Program) -> bool:
    """Whether code evaluates all predicates of the temporal properties."""
    return bool(judged_predicates(program)) or not any(prop.clauses for prop in program.liveness)


def emit_truth(module: ir.IRModule, program: Program, layout: StateLayout) -> ir.Function:
    """Emit the function `truth`."""
    asm = Asm.of(module, "truth", [PTR, PTR, I64], I64)
    Judging(asm, program, layout, ExpressionFacts()).emit()
    return asm.function
