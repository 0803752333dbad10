"""Actions as instructions: the successors of a packed state, written to a buffer.

As in `meaning.step`, a block is built from its first statement on, each statement continuing with what
follows it, once for each path.  A `BlockPath` is one such path at build time: the words of the state after
it, and the block where the next path begins.  After a `when` without choices inside, the two paths join, and
the rest is built once, as after an assignment that may have no value; other alternatives each get a copy of
the rest (or a loop around it).

The plain guards at the head of an action are decided as soon as the parameters they mention are
chosen, before the other parameters are enumerated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar, assert_never

from msgspec.structs import replace

from specchk.codegen import ir
from specchk.ir.footprint import assigned_often
from specchk.ir.nodes import Assign, Bind, Block, Choice, Either, Expr, Guard, Local, Stmt, Unwrap, When
from specchk.ir.program import Action, Program
from specchk.ir.types import Map, Option, Record, Seq, Type, cardinality, of_shape
from specchk.meaning.values import universe
from specchk.native.kernel.ways import BlockPath, Claim, Join, Then, is_straight
from specchk.native.machine.asm import I64, Asm, Val, code_type
from specchk.native.machine.frames import (
    CHECKED_SUCCESSORS,
    MAX_SUCCESSORS,
    TOO_MANY,
    Thread,
    successor_bound,
)
from specchk.native.machine.layout import WORD, StateLayout, field_offset, width
from specchk.native.values.codes import constant
from specchk.native.values.domains import item_kind
from specchk.native.values.expressions import ExpressionEmitter, HorizonNote, read_bits, write_bits
from specchk.native.values.operators import key_position
from specchk.native.values.order import Head, best_order, head_of
from specchk.native.values.sequence_rules import check_index
from specchk.native.values.totality import ExpressionFacts
from specchk.search.engine import Placing


class Steps(ExpressionEmitter):
    """Emits the function `successors(state, out, counts, cuts) -> count or -(action + 1)`."""

    label_words: ClassVar[int] = 0  # behind each successor
    is_ordered: ClassVar[bool] = False  # whether successors are in the order of `meaning.step`

    def __init__(self, asm: Asm, program: Program, layout: StateLayout, facts: ExpressionFacts) -> None:
        state, self.out, counts, self.cuts = asm.function.args
        super().__init__(asm, layout, facts, counts)
        # `cuts` is a word of the thread's block.
        self.overflow = asm.overflow = asm.at(self.cuts, Thread.OVERFLOW - Thread.CUTS)
        self.program = program
        # All words once, at the beginning: every action reads them, and most fit into registers.
        self.before = [asm.load(state, index) for index in range(layout.words)]
        self.written = asm.cell(I64)
        self.stride = layout.words + self.label_words
        self.full = asm.block("full") if successor_bound(program) > MAX_SUCCESSORS else None
        # Of equivalent states, if variables are ignored, the first is kept.
        self.keeps_order = self.is_ordered or bool(program.ignored)
        self.often: frozenset[int] = frozenset()
        self.point = 0
        self.index = 0

    def emit(self) -> None:
        """Emit all actions in order and the return."""
        asm = self.asm
        asm.goto(first := asm.block("actions"))
        # `ExpressionEmitter` begins with this block; each action has its own, so that the fault names the
        # action.
        asm.b.position_at_end(self.undefined)
        asm.b.unreachable()
        asm.enter(first)
        for index, action in enumerate(self.program.actions):
            with Placing(action.span):
                self._action(index, action)
        # `written` counts words: it is the place of the next successor.
        asm.b.ret(self._count())
        if self.full is not None:
            asm.enter(self.full)
            asm.store(TOO_MANY, self.overflow, 0)
            asm.b.ret(self._count())
        asm.finish()

    def _count(self) -> ir.Value:
        return self.asm.b.udiv(self.asm.b.load(self.written), self.asm.val(self.stride))

    def _action(self, index: int, action: Action) -> None:
        self.undefined = self.asm.block(f"undefined.{action.name}")
        self.often = assigned_often(action.body)
        self.point = action.point
        self.index = index
        done = self.asm.block(f"after.{action.name}")
        path = BlockPath(tuple(self.before), (), done)
        head, body = head_of(action, self.facts)
        params = list(action.params) if self.keeps_order else best_order(action.params, head, self.facts)
        self._params(params, head, body, path)
        self.asm.enter(self.undefined)
        # Earlier successors are dropped: a state in which a step is undefined has none (`meaning.step`).
        self.asm.b.ret(self.asm.val(-(index + 1)))
        self.asm.enter(done)

    def _params(self, params: list[Local], head: Head, body: Block, path: BlockPath) -> None:
        open_ = {param.slot for param in params}
        # Loops over parameters that a guard does not mention are entered only if it holds.
        ready = tuple(stmt for used, stmt in head if not used & open_)
        later = [(used, stmt) for used, stmt in head if used & open_]
        if params:
            self.block(ready, path, lambda p: self._param(params, later, body, p))
        else:
            self.block((*ready, *body), path, self._emit_state)

    def _param(self, params: list[Local], head: Head, body: Block, path: BlockPath) -> None:
        param, rest = params[0], params[1:]
        count = cardinality(param.type)

        def instance(value: Val, next_: ir.Block) -> None:
            self.bind(param, value, param.type)
            self._params(rest, head, body, replace(path, next=next_))

        if self.domains.unrolls(count):
            # Nested loops multiply the code; `copies` is the number of copies of what follows so far.
            self.domains.copies *= max(1, count)
            for item in sorted(universe(param.type)):
                following = self.asm.block(f"next.{param.name}")
                instance(constant(param.type, item), following)
                self.asm.enter(following)
            self.domains.copies //= max(1, count)
        else:

            def visit(rank: ir.Value) -> None:
                following = self.asm.block(f"next.{param.name}")
                instance(self.codes.nth(param.type, rank), following)
                self.asm.enter(following)

            self.asm.loop(0, count - 1, visit)
        self.asm.goto(path.next)

    def _emit_state(self, path: BlockPath) -> None:
        # Only here, where all conditions hold: an assignment without a value above a false guard is no fault.
        self.asm.leave_if(path.is_faulty, self.undefined)
        for point, is_taken in ((self.point, True), *path.points):
            self.asm.when(is_taken, partial(self.count, point))
        cut = self.asm.block("cut")
        self.asm.leave_if(path.is_cut, cut)
        at = self.asm.b.load(self.written)
        if self.full is not None:
            self.asm.leave_if(self.asm.cmp("==", at, CHECKED_SUCCESSORS * self.stride), self.full)
        for index, word in enumerate(path.words):
            self.asm.store(word, self.out, self.asm.add(at, index))
        # Duplicates among a state's successors stay: removing them here would cost more than finding them in
        # the table, and `generated` counts them.
        self._label(at)
        self.asm.b.store(self.asm.add(at, self.stride), self.written)
        self.asm.goto(path.next)
        if cut.is_target:
            self.asm.enter(cut)
            self._cut()
            self.asm.goto(path.next)

    def rank_of(self, params: Iterable[Local]) -> Val:
        """The position of the values of some parameters among all choices; the last varies fastest."""
        rank: Val = 0
        for param in params:
            own = self.codes.rank(param.type, self.value(param))
            rank = self.asm.add(self.asm.mul(rank, cardinality(param.type)), own)
        return rank

    def _label(self, at: ir.Value) -> None:
        """Store the label of a successor after its words."""

    def block(self, body: Sequence[Stmt], path: BlockPath, then: Then) -> None:
        """Emit statements and their continuation; control ends in `path.next`."""
        if not body:
            then(path)
            return
        stmt, rest = body[0], body[1:]

        def following(p: BlockPath) -> None:
            self.block(rest, p, then)

        # Without the join, ten `when` in a row would make 1024 copies of what follows them.
        if rest and isinstance(stmt, When) and is_straight((stmt,)):
            joined = Join(self.asm, following)
            self._statement(stmt, path, joined.arrive)
            joined.emit()
        else:
            self._statement(stmt, path, following)

    def _statement(self, stmt: Stmt, path: BlockPath, then: Then) -> None:
        match stmt:
            case Guard():
                self._guard(stmt.condition, path, then)
            case Bind():
                self.bind(stmt.local, self.value(stmt.value), stmt.value.type)
                then(path)
            case Unwrap():
                kind, option = of_shape(stmt.value.type, Option), self.value(stmt.value)
                self._only_if(self.codes.is_some(kind, option), path)
                self.bind(stmt.local, self.codes.unwrapped(kind, option), kind.item)
                then(path)
            case Assign():
                self._assign(stmt, path, then)
            case Choice():
                self._choice(stmt, path, then)
            case Either():
                self._either(stmt, path, then)
            case When():
                self._when(stmt, path, then)
            case _:
                assert_never(stmt)

    def _only_if(self, condition: Val, path: BlockPath) -> None:
        self.asm.leave_if(self.asm.negate(condition), path.next)

    def _guard(self, condition: Expr, path: BlockPath, then: Then) -> None:
        value = self.value(condition)
        if isinstance(value, int) and not value:
            self.asm.goto(path.next)
            return
        self._only_if(value, path)
        then(path)

    def _choice(self, stmt: Choice, path: BlockPath, then: Then) -> None:
        def body(item: Val) -> None:
            following = self.asm.block("next")
            self.bind(stmt.local, item, item_kind(stmt.domain))
            self.block(stmt.body, replace(path, next=following), then)
            self.asm.enter(following)

        self.domains.each(stmt.domain, body)
        self.asm.goto(path.next)

    def _branch(self, point: int, body: Block, path: BlockPath, then: Then) -> None:
        self.block(body, replace(path, points=(*path.points, (point, True))), then)

    def _either(self, stmt: Either, path: BlockPath, then: Then) -> None:
        self.domains.copies *= len(stmt.branches)
        for point, branch in zip(stmt.points, stmt.branches, strict=True):
            following = self.asm.block("or")
            self._branch(point, branch, replace(path, next=following), then)
            self.asm.enter(following)
        self.domains.copies //= len(stmt.branches)
        self.asm.goto(path.next)

    def _when(self, stmt: When, path: BlockPath, then: Then) -> None:
        condition = self.value(stmt.condition)
        if isinstance(condition, int):
            # Decided by the constants: the other branch is not built, and its coverage point stays at 0.
            chosen = 0 if condition else 1
            self._branch(stmt.points[chosen], (stmt.then, stmt.orelse)[chosen], path, then)
            return
        yes, no = self.asm.block("when"), self.asm.block("else")
        self.asm.b.cbranch(condition, yes, no)
        self.asm.enter(yes)
        self._branch(stmt.points[0], stmt.then, path, then)
        self.asm.enter(no)
        self._branch(stmt.points[1], stmt.orelse, path, then)

    def _assign(self, stmt: Assign, path: BlockPath, then: Then) -> None:
        outer, self.undefined = self.undefined, self.asm.block("undefined")
        self.above = above = HorizonNote(self.asm)
        offset, kind, keys = self._place(stmt)
        claimed = self._claimed(stmt.slot, keys, path)
        code = self.codes.code(kind, self.codes.convert(self.value(stmt.value), stmt.value.type, kind))
        words = self._written(stmt.slot, path.words, offset, width(kind), code)
        after = replace(claimed, words=tuple(words), is_cut=self.asm.either(path.is_cut, above.value))
        undefined, self.undefined = self.undefined, outer
        if not undefined.is_target:
            then(after)
            return
        joined = Join(self.asm, then)
        joined.arrive(after)
        self.asm.enter(undefined)
        joined.arrive(replace(path, is_faulty=True))
        joined.emit()

    def _cut(self) -> None:
        """Count a step cut off by a horizon."""
        self.asm.bump(self.cuts, 0)

    def _place(self, stmt: Assign) -> tuple[Val, Type, tuple[Val, ...]]:
        """The offset of the assigned place, its type, and its path."""
        offset: Val = self.layout.places[stmt.slot].offset
        kind = self.layout.places[stmt.slot].type
        keys: list[Val] = []
        for step in stmt.path:
            inner: Val
            if step.field is not None:
                assert isinstance(kind, Record)
                inner = field_offset(kind, step.field)
                keys.append(step.field)
                kind = kind.fields[step.field][1]
            elif isinstance(kind, Map):
                assert step.key is not None
                position = key_position(self, kind.key, step.key)
                inner = self.codes.key_offset(kind, position)
                keys.append(position)
                kind = kind.value
            else:
                assert step.key is not None
                assert isinstance(kind, Seq)
                index = self.value(step.key)
                self._inside(stmt.slot, kind, offset, index)
                # A constant index may be out of range; the shift must be legal even so, though the check
                # leaves first.
                slot = min(max(index, 0), max(0, kind.limit - 1)) if isinstance(index, int) else index
                inner = self.codes.slot_offset(kind, slot) if kind.limit else 0
                keys.append(index)
                kind = kind.item
            offset = self.asm.add(offset, inner)
        return offset, kind, tuple(keys)

    def _inside(self, slot: int, kind: Seq, offset: Val, index: Val) -> None:
        """Leave for `undefined` unless an index is inside the sequence at an offset."""
        place = self.layout.places[slot]
        # As before the step: where its length has changed on this path, a place is assigned twice.
        whole = read_bits(self.asm, self.before, place.offset, place.width)
        inner = self.asm.sub(offset, place.offset)
        items = self.asm.bits(whole, inner, width(kind), code_type(place.width))
        check_index(self, kind, items, index)

    def _written(self, slot: int, words: tuple[Val, ...], offset: Val, size: int, code: Val) -> list[Val]:
        asm, place = self.asm, self.layout.places[slot]
        if isinstance(offset, int):
            return write_bits(asm, list(words), offset, size, code)
        # A variable within one word is shifted in that word; only one that straddles words needs wide
        # arithmetic.
        first, last = place.offset // WORD, (place.offset + max(1, place.width) - 1) // WORD
        if first == last:
            out = list(words)
            out[first] = asm.with_bits(out[first], asm.sub(offset, first * WORD), size, code, I64)
            return out
        whole = read_bits(asm, list(words), place.offset, place.width)
        shape = ir.IntType(WORD * -(-place.width // WORD))
        whole = asm.with_bits(asm.val(whole, shape), asm.sub(offset, place.offset), size, code, shape)
        return write_bits(asm, list(words), place.offset, place.width, whole)

    def _claimed(self, slot: int, keys: tuple[Val, ...], path: BlockPath) -> BlockPath:
        if slot not in self.often:
            return path
        for claim in path.claims:
            if claim.slot == slot:
                clash = claim.made
                # The common prefix decides: a map and one of its keys are one place assigned twice.
                for mine, theirs in zip(keys, claim.path, strict=False):
                    clash = self.asm.both(clash, self.asm.cmp("==", mine, theirs))
                self.asm.leave_if(clash, self.undefined)
        return replace(path, claims=(*path.claims, Claim(slot, keys, True)))
