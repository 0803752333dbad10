"""The labels of steps as columns, as instructions: the action, its arguments as text, and the target.

A label (`edge_kernel`) is

    action | rank of its arguments     the last parameter varies fastest
    bit 63                             the state after is outside a constraint
"""

from __future__ import annotations

from msgspec import Struct

from specchk.codegen import ir
from specchk.ir.program import Action, Program
from specchk.ir.types import Enum, Int, Option, Seq, Type, cardinality
from specchk.meaning.values import positions, show
from specchk.native.machine.asm import I32, I64, Asm, Val
from specchk.native.machine.layout import mask
from specchk.native.machine.leaf_streams import LeafWriter, Stream, block_words, values_word
from specchk.native.machine.shapes import ColumnLeaf, Shape, TableShape

RANK_BITS = 32  # a state has at most 2^20 successors, and no action has more instances
OUTSIDE_BIT = 63
_NAME = Option(Int(0, 1 << 61))  # a word, or none


class StepShapes(Struct, frozen=True):
    """The columns `action`, `args` and, if there are constraints, `target`, and the texts of arguments.

    Behind the block of `leaf_streams` there is, for each parameter, where the numbers of its values' texts
    are, of 32 bits each.
    """

    shapes: TableShape
    columns: tuple[Shape, ...]
    texts: tuple[str, ...]
    numbers: tuple[tuple[int, ...], ...]  # for each parameter

    @property
    def action(self) -> ColumnLeaf:
        """The stream of the names of actions."""
        return self.columns[0].leaves[0]

    @property
    def args(self) -> ColumnLeaf:
        """The stream of the texts of arguments."""
        return self.columns[1].leaves[0]

    @property
    def target(self) -> ColumnLeaf | None:
        """The stream of targets, if some may be omitted."""
        return self.columns[2].leaves[0] if len(self.columns) > 2 else None


def step_shapes(program: Program) -> StepShapes:
    """The columns of a program's steps."""
    texts: dict[str, int] = {}
    known: dict[Type, tuple[int, ...]] = {}
    numbers = []
    for kind in (param.type for action in program.actions for param in action.params):
        if kind not in known:
            shown = [show(value, kind) for value in positions(kind)]
            known[kind] = tuple([texts.setdefault(text, len(texts)) for text in shown])
        numbers.append(known[kind])
    most = max((len(action.params) for action in program.actions), default=0)
    names = Enum("", tuple(action.name for action in program.actions))
    shapes = TableShape()
    columns = [shapes.add(names), shapes.add(Seq(Enum("", tuple(texts)), most))]
    if program.constraints:
        columns.append(shapes.add(_NAME))
    return StepShapes(shapes, tuple(columns), tuple(texts), tuple(numbers))


def emit_step_columns(module: ir.IRModule, program: Program) -> None:
    """Emit `step_columns(block, labels, targets, count)`; targets outside a constraint are omitted."""
    asm = Asm.of(module, "step_columns", [I64.as_pointer()] * 4, ir.VoidType(), internal=False)
    block, labels, targets, count = asm.function.args
    steps = step_shapes(program)
    writer = LeafWriter(asm, steps.shapes, block)
    kept = asm.cell(I64)

    def visit(index: ir.Value) -> None:
        label = asm.load(labels, index)
        action = asm.band(asm.shr(label, RANK_BITS), mask(OUTSIDE_BIT - RANK_BITS))
        writer.value(steps.action, action)
        _arguments(asm, writer, program, steps, (block, asm.val(action), label))
        if steps.target is not None:
            inside = asm.sub(1, asm.shr(label, OUTSIDE_BIT))
            writer.entry(steps.target, 0, inside)
            place = asm.b.load(kept)
            asm.store(asm.load(targets, index), targets, place)
            asm.advance(kept, inside)

    def some(first: Val, last: Val) -> None:
        writer.open(steps.shapes.leaves)
        asm.loop(first, last, visit)
        writer.close()

    writer.fill(asm.b.ptrtoint(count, I64), some)
    if steps.target is not None:
        asm.store(asm.b.load(kept), block, values_word(steps.target) + Stream.COUNT)
    asm.end()


def _arguments(
    asm: Asm, writer: LeafWriter, program: Program, steps: StepShapes, given: tuple[ir.Value, ...]
) -> None:
    """The texts of the arguments in a label."""
    block, action, label = given
    done, first = asm.block("done"), block_words(steps.shapes)
    if not program.actions:
        return
    others = asm.block("action")
    jump = asm.b.switch(action, others)
    for number, one in enumerate(program.actions):
        here = others if not number else asm.block("action")
        if number:
            jump.add_case(asm.val(number), here)
        asm.enter(here)
        _of_action(asm, writer, steps, one, (block, label), first)
        first += len(one.params)
        asm.goto(done)
    asm.enter(done)


def _of_action(
    asm: Asm, writer: LeafWriter, steps: StepShapes, action: Action, given: tuple[ir.Value, ...], first: int
) -> None:
    (block, label), leaf = given, steps.args
    if not action.params:
        writer.absent([leaf], 0, steps.columns[1].present)
    rank, digits = asm.val(asm.band(label, mask(RANK_BITS))), []
    for param in reversed(action.params):
        base = asm.val(max(1, cardinality(param.type)))  # no step has a value of an empty type
        rest = asm.b.udiv(rank, base)
        digits.append(asm.b.sub(rank, asm.b.mul(rest, base)))
        rank = rest
    for index, digit in enumerate(reversed(digits)):
        table = asm.b.inttoptr(asm.load(block, first + index), I32.as_pointer())
        writer.entry(leaf, min(index, 1), leaf.definition)
        writer.value(leaf, asm.b.zext(asm.b.load(asm.at(table, digit)), I64))
