"""Successors with the fair conditions that their steps meet, for the step graph of temporal properties.

    labelled(state, out, counts, cuts)

A successor in `out` has one word more, the set of conditions of its instance.  `cuts` has the number of
successors (as of `successors`), and the set of conditions of the instances of which a horizon ended a step.

    judged(state, out, counts)

A word of `out` for each predicate of the temporal properties.
"""

from __future__ import annotations

from llvmlite import ir

from specchk.ir.program import Action, Program, Property
from specchk.ir.types import cardinality
from specchk.native.kernel.steps import Steps
from specchk.native.machine.asm import I64, PTR, Asm, Val
from specchk.native.machine.frames import Thread
from specchk.native.machine.layout import StateLayout
from specchk.native.values.expressions import ExpressionEmitter
from specchk.native.values.totality import ExpressionFacts

COUNT, CUT = 0, 1  # words of `cuts`
FALSE, TRUE, UNDEFINED = 0, 1, 2  # words of `judged`
MAX_PREDICATES = 128
OVERFLOW = Thread.OVERFLOW - Thread.CUTS  # another: whether a set had no room (`Steps`)


class LabelledSteps(Steps):
    """Emits `steps(state, out, counts, cuts) -> count`, each successor with its conditions."""

    def __init__(self, asm: Asm, program: Program, layout: StateLayout, facts: ExpressionFacts) -> None:
        super().__init__(asm, program, layout, facts)
        self.stride = layout.words + 1

    def _label(self, at: ir.Value) -> int:
        self.asm.store(self._conditions(), self.out, self.asm.add(at, self.layout.words))
        return self.stride

    def _cut(self) -> None:
        known = self.asm.load(self.cuts, CUT)
        self.asm.store(self.asm.bor(known, self._conditions()), self.cuts, CUT)

    def _conditions(self) -> Val:
        """The conditions of the present instance, in the order of `meaning.behaviours.fairness`."""
        asm, first = self.asm, 0
        conditions: Val = 0
        for fairness in self.program.fairness:
            action = self.program.actions[fairness.action]
            if fairness.action == self.index:
                position = asm.add(first, self._position(action, fairness.kept))
                conditions = asm.bor(conditions, asm.shl(1, position))
            first += _product(action, fairness.kept)
        return conditions

    def _position(self, action: Action, kept: tuple[int, ...]) -> Val:
        position: Val = 0
        for at in kept:
            param = action.params[at]
            rank = self.codes.rank(param.type, self.value(param))
            position = self.asm.add(self.asm.mul(position, cardinality(param.type)), rank)
        return position


def _product(action: Action, kept: tuple[int, ...]) -> int:
    size = 1
    for at in kept:
        size *= cardinality(action.params[at].type)
    return size


class Judging(ExpressionEmitter):
    """Emits `judged(state, out, counts, cuts)`: of each predicate whether it is true, false or undefined."""

    def __init__(self, asm: Asm, program: Program, layout: StateLayout, facts: ExpressionFacts) -> None:
        state, self.out, counts, cuts = asm.function.args
        # A set that is made in a predicate may have no room, as in a step.
        asm.overflow = asm.b.gep(cuts, [asm.val(OVERFLOW)])
        super().__init__(asm, layout, facts, counts)
        self.predicates = judged_predicates(program)
        self.before = self.after = [asm.load(state, index) for index in range(layout.words)]

    def emit(self) -> None:
        """Everything, with the return."""
        asm = self.asm
        asm.goto(first := asm.block("predicates"))
        asm.enter(self.undefined)
        asm.b.unreachable()
        asm.enter(first)
        for index, prop in enumerate(self.predicates):
            done = asm.block("judged")
            self.undefined = self.beyond = asm.block("undefined")
            asm.store(asm.select(self.value(prop.body), TRUE, FALSE), self.out, index)
            asm.goto(done)
            asm.enter(self.undefined)
            asm.store(UNDEFINED, self.out, index)
            asm.goto(done)
            asm.enter(done)
        asm.b.ret_void()
        asm.finish()


def judged_predicates(program: Program) -> tuple[Property, ...]:
    """The predicates of the temporal properties, each once; none where they are too many for code."""
    clauses = [clause for prop in program.liveness for clause in prop.clauses]
    both = (part for clause in clauses for part in (clause.trigger, clause.goal) if part is not None)
    found = tuple(dict.fromkeys(both))
    return found if len(found) <= MAX_PREDICATES else ()


def build_labels(program: Program, layout: StateLayout) -> ir.Module:
    """The module of `labelled` and `judged`."""
    module = ir.Module(name=program.spec)
    steps = ir.Function(module, ir.FunctionType(I64, [PTR, PTR, PTR, PTR]), "steps")
    steps.linkage = "internal"
    LabelledSteps(Asm(steps), program, layout, ExpressionFacts()).emit()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR] * 4), "labelled")
    asm = Asm(function)
    asm.store(0, function.args[3], CUT)
    asm.store(asm.b.call(steps, list(function.args)), function.args[3], COUNT)
    asm.b.ret_void()
    asm.finish()
    judged = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR] * 4), "judged")
    Judging(Asm(judged), program, layout, ExpressionFacts()).emit()
    return module
