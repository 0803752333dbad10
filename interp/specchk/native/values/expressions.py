"""Expressions as instructions, one rule for each node kind, with the semantics of `meaning.evaluate`.

An emitter builds into one function of the kernel: `before` and `after` are the words of the packed states,
`locals` the held values of bound names.  If an expression has no value, control goes to `undefined`, a block
of the caller's; whether a stored number is above its horizon is passed to `above`.  Evaluation order and
short circuits are those of the reference engine wherever they make a difference (`totality`), so that
coverage counts are equal, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import assert_never

from specchk.codegen import ir
from specchk.ir import nodes
from specchk.ir.types import Int, Map, Option, Set, Type, Union, of_shape
from specchk.ir.typing import result_type
from specchk.meaning.reading import read
from specchk.meaning.values import universe
from specchk.native.machine.asm import I1, I64, Asm, Val, code_type
from specchk.native.machine.layout import WORD, StateLayout, is_sparse, key_count, mask
from specchk.native.values.codes import constant, register
from specchk.native.values.domains import Domains, item_kind
from specchk.native.values.fitting import Fitting
from specchk.native.values.operators import RULES
from specchk.native.values.set_rules import singleton
from specchk.native.values.sparse import ItemsListing
from specchk.native.values.sparse_rules import item_code
from specchk.native.values.totality import ExpressionFacts
from specchk.search.engine import Placing

CHEAP = 24  # plain parts of at most this cost are computed without a branch
UNROLLED_KEYS = 32


class HorizonNote:
    """Notes whether one of some numbers is above its horizon."""

    def __init__(self, asm: Asm) -> None:
        self.asm = asm
        self._cell = asm.cell(I1)
        self._is_made = False

    def __call__(self, is_above: Val) -> None:
        """Note whether one more number is."""
        self.asm.b.store(self.asm.val(self.asm.either(self.asm.b.load(self._cell), is_above), I1), self._cell)
        self._is_made = True

    @property
    def value(self) -> Val:
        """Whether one is; the constant False if there was none to note."""
        return self.asm.b.load(self._cell) if self._is_made else False


class ExpressionEmitter:
    """Emits expressions into one function."""

    def __init__(
        self, asm: Asm, layout: StateLayout, facts: ExpressionFacts, counts: ir.Value | None
    ) -> None:
        self.asm = asm
        self.layout = layout
        self.facts = facts
        self.counts = counts
        self.codes = Fitting(asm)
        self.domains = Domains(asm, self.codes, self.value, self.bind, self.fault_if)
        self.before: list[Val] = []
        self.after: list[Val] = []
        self.locals: dict[int, tuple[Val, Type]] = {}
        self.undefined = asm.block("undefined")
        # What happens where a stored number is above its horizon.
        self.above: Callable[[Val], None] = lambda is_above: asm.leave_if(is_above, self.undefined)

    def of_type(self, expr: nodes.Expr, kind: Type) -> Val:
        """The held value of an expression as a value of a type of the same shape."""
        return self.codes.convert(self.value(expr), expr.type, kind)

    def value(self, expr: nodes.Expr) -> Val:
        """The held value of an expression, of its own type."""
        with Placing(expr.span):
            return self._value(expr)

    def fault_if(self, wrong: Val) -> None:
        """Leave for what is undefined if a condition holds."""
        self.asm.leave_if(wrong, self.undefined)

    def _value(self, expr: nodes.Expr) -> Val:
        match expr:
            case nodes.Const():
                return constant(expr.type, expr.value)
            case nodes.Var():
                return self._variable(expr)
            case nodes.Local():
                value, kind = self.locals[expr.slot]
                return self.codes.convert(value, kind, expr.type)
            case nodes.Apply():
                return self._applied(expr)
            case nodes.And() | nodes.Or():
                return self._junction(expr.parts, stop_at=isinstance(expr, nodes.Or))
            case nodes.Implies():
                return self._implies(expr)
            case nodes.If():
                return self._if(expr)
            case nodes.Quantifier():
                return self._quantifier(expr)
            case nodes.Choose():
                return self._choose(expr)
            case nodes.Collect():
                return self._collect(expr)
            case nodes.MapOf():
                return self._map_of(expr)
            case nodes.Let():
                self.bind(expr.local, self.value(expr.value), expr.value.type)
                return self.of_type(expr.body, expr.type)
            case nodes.Case():
                return self._case(expr)
            case nodes.Narrow():
                return self._narrow(expr)
            case nodes.Cover():
                self.count(expr.point)
                return self.of_type(expr.body, expr.type)
            case _:
                assert_never(expr)

    def bind(self, local: nodes.Local, value: Val, kind: Type) -> None:
        """Bind a held value to a name; its type is at most as wide as the name's."""
        self.locals[local.slot] = (value, kind)

    def _applied(self, expr: nodes.Apply) -> Val:
        """A part of an argument, in the argument's type for it, which passes may have narrowed."""
        if expr.op not in RULES:
            return self.by_rule(expr, list(map(self.value, expr.args)))
        value = RULES[expr.op](self, expr)
        if expr.op.card.is_part and (given := result_type(expr.op, expr.args, expr.data)) != expr.type:
            return self.codes.convert(value, given, expr.type)
        return value

    def by_rule(self, expr: nodes.Apply, values: Sequence[Val]) -> Val:
        """The value of an application to these values by its rule on the page of rules."""
        (faults, body), outer = read(expr), self.locals
        self.locals = {n: (value, expr.args[n].type) for n, value in enumerate(values)}
        for fault in faults:
            self.fault_if(self.value(fault))
        value = self.of_type(body, expr.type)
        self.locals = outer
        return value

    def count(self, point: int) -> None:
        """Count an execution of a coverage point."""
        if self.counts is not None:
            self.asm.bump(self.counts, point)

    def _narrow(self, expr: nodes.Narrow) -> Val:
        value = self.value(expr.body)
        self.codes.check(value, expr.body.type, expr.type, self.undefined, self.above)
        if isinstance(expr.type, Int) and expr.type.horizon:
            value = self.asm.min(value, expr.type.high)  # above it, any number that has a code
        return self.codes.convert(value, expr.body.type, expr.type)

    def light(self, expr: nodes.Expr) -> bool:
        """Whether an expression may be computed even if its value is not needed."""
        return self.facts.plain(expr) and self.facts.cost(expr) <= CHEAP

    def _variable(self, expr: nodes.Var) -> Val:
        place = self.layout.places[expr.slot]
        code = read_bits(self.asm, self.after if expr.primed else self.before, place.offset, place.width)
        return self.codes.held(expr.type, code)

    def _junction(self, parts: tuple[nodes.Expr, ...], *, stop_at: bool) -> Val:
        first, rest = parts[0], parts[1:]
        value = self.value(first)
        if not rest or (isinstance(value, int) and bool(value) is stop_at):
            return value
        if isinstance(value, int):
            return self._junction(rest, stop_at=stop_at)
        # One at a time: the rest stays behind a branch as soon as one of them may fail or count.
        if self.light(rest[0]):
            combined = self.asm.either if stop_at else self.asm.both
            value = combined(value, self.value(rest[0]))
            rest = rest[1:]
            if not rest:
                return value
        if stop_at:
            return self.asm.pick(I1, value, lambda: True, lambda: self._junction(rest, stop_at=True))
        return self.asm.pick(I1, value, lambda: self._junction(rest, stop_at=False), lambda: False)

    def _implies(self, expr: nodes.Implies) -> Val:
        left = self.value(expr.left)
        if not isinstance(left, int) and self.light(expr.right):
            return self.asm.either(self.asm.negate(left), self.value(expr.right))
        return self.asm.pick(I1, left, lambda: self.value(expr.right), lambda: True)

    def _if(self, expr: nodes.If) -> Val:
        condition, kind = self.value(expr.condition), register(expr.type)
        then, orelse = (partial(self.of_type, branch, expr.type) for branch in (expr.then, expr.orelse))
        if not isinstance(condition, int) and self.light(expr.then) and self.light(expr.orelse):
            return self.asm.select(condition, then(), orelse(), kind)
        return self.asm.pick(kind, condition, then, orelse)

    def _case(self, expr: nodes.Case) -> Val:
        kind, value = expr.scrutinee.type, self.value(expr.scrutinee)
        tag: Val
        if isinstance(kind, Option):
            tag = self.asm.resize(self.codes.is_some(kind, value), I64)
        else:
            assert isinstance(kind, Union)
            tag = self.codes.tag(kind, value)
        return self._arms(expr, tag, [(arm[0], partial(self._arm, expr, value, *arm)) for arm in expr.arms])

    def _arms(self, expr: nodes.Case, tag: Val, arms: list[tuple[int, Callable[[], Val]]]) -> Val:
        if not arms:
            assert expr.default is not None
            return self.of_type(expr.default, expr.type)
        (index, arm), rest = arms[0], arms[1:]
        # Without a default the arms cover all variants, so the last one needs no test.
        if not rest and expr.default is None:
            return arm()
        here = self.asm.cmp("==", tag, index)
        return self.asm.pick(register(expr.type), here, arm, lambda: self._arms(expr, tag, rest))

    def _arm(
        self, expr: nodes.Case, value: Val, tag: int, local: nodes.Local | None, body: nodes.Expr
    ) -> Val:
        if local is not None:
            kind = expr.scrutinee.type
            if isinstance(kind, Option):
                self.bind(local, self.codes.unwrapped(kind, value), kind.item)
            else:
                assert isinstance(kind, Union)
                self.bind(local, self.codes.payload(kind, value, tag), kind.variants[tag][1])
        return self.of_type(body, expr.type)

    def _quantifier(self, expr: nodes.Quantifier) -> Val:
        stop_at, kind = not expr.every, item_kind(expr.domain)
        if self.light(expr.body) and (members := self.domains.members(expr.domain)) is not None:
            # Also for candidates that are not in the set: a plain body has a value for each value of the
            # type, and an `and` is cheaper than a jump around it.
            result: Val = expr.every
            for present, item in members:
                self.bind(expr.local, item, kind)
                body = self.value(expr.body)
                if expr.every:
                    result = self.asm.both(result, self.asm.either(self.asm.negate(present), body))
                else:
                    result = self.asm.either(result, self.asm.both(present, body))
            return result
        answer = self.asm.cell(I1, stop_at)
        done = self.asm.block("decided")

        def visit(item: Val) -> None:
            self.bind(expr.local, item, kind)
            body = self.value(expr.body)
            self.asm.leave_if(body if stop_at else self.asm.negate(body), done)

        self.domains.each(expr.domain, visit)
        self.asm.b.store(self.asm.val(not stop_at, I1), answer)
        self.asm.fall_into(done)
        return self.asm.b.load(answer)

    def _choose(self, expr: nodes.Choose) -> Val:
        kind, shape = item_kind(expr.domain), register(expr.type)
        answer, done = self.asm.cell(shape), self.asm.block("chosen")

        def visit(item: Val) -> None:
            self.bind(expr.local, item, kind)
            body = self.value(expr.body)
            # Stored before the test, which jumps out of the loop.
            chosen = self.codes.convert(item, kind, expr.type)
            self.asm.b.store(self.asm.val(chosen, shape), answer)
            self.asm.leave_if(body, done)

        self.domains.each(expr.domain, visit)
        self.asm.leave(self.undefined)
        self.asm.enter(done)
        return self.asm.b.load(answer)

    def _gathered(self, expr: nodes.Collect, depth: int, add: Callable[[], None]) -> None:
        """Run `add` for every choice of the binders that satisfies the condition."""
        if depth < len(expr.binders):
            local, domain = expr.binders[depth]

            def visit(item: Val) -> None:
                self.bind(local, item, item_kind(domain))
                self._gathered(expr, depth + 1, add)

            self.domains.each(domain, visit)
        elif expr.condition is None:
            add()
        else:
            self.asm.when(self.value(expr.condition), add)

    def _collect(self, expr: nodes.Collect) -> Val:
        if expr.gather is nodes.Gather.SET:
            return self._collect_set(expr)
        assert isinstance(expr.type, Int)
        total, some = self.asm.cell(I64), self.asm.cell(I1, False)

        def add() -> None:
            item, old = self.value(expr.body), self.asm.b.load(total)
            if expr.gather is nodes.Gather.SUM:
                self.asm.b.store(self.asm.val(self.asm.add(old, item)), total)
                return
            better = self.asm.min(old, item) if expr.gather is nodes.Gather.MIN else self.asm.max(old, item)
            self.asm.b.store(self.asm.val(self.asm.select(self.asm.b.load(some), better, item)), total)
            self.asm.b.store(self.asm.val(True, I1), some)

        self._gathered(expr, 0, add)
        if expr.gather is not nodes.Gather.SUM:
            self.asm.leave_if(self.asm.negate(self.asm.b.load(some)), self.undefined)
        return self.asm.b.load(total)

    def _collect_set(self, expr: nodes.Collect) -> Val:
        kind = of_shape(expr.type, Set)
        shape = register(kind)
        if is_sparse(kind):
            listing = ItemsListing(self.codes.sparse, kind)
            self._gathered(expr, 0, lambda: listing.add(item_code(self, kind, expr.body)))
            return listing.packed()
        light = self._filtered(expr, kind)
        if light is not None:
            return light
        out = self.asm.cell(shape)

        def add() -> None:
            item = singleton(self, kind, self.of_type(expr.body, kind.item))
            self.asm.b.store(self.asm.val(self.asm.bor(self.asm.b.load(out), item), shape), out)

        self._gathered(expr, 0, add)
        return self.asm.b.load(out)

    def _filtered(self, expr: nodes.Collect, kind: Set) -> Val | None:
        """A comprehension over one small domain with plain parts, without branches."""
        if len(expr.binders) != 1 or not self.light(expr.body):
            return None
        if expr.condition is not None and not self.light(expr.condition):
            return None
        ((local, domain),) = expr.binders
        members = self.domains.members(domain)
        if members is None:
            return None
        result: Val = 0
        for present, item in members:
            self.bind(local, item, item_kind(domain))
            wanted = present if expr.condition is None else self.asm.both(present, self.value(expr.condition))
            made = singleton(self, kind, self.of_type(expr.body, kind.item))
            result = self.asm.bor(result, self.asm.select(wanted, made, 0, register(kind)))
        return result

    def _map_of(self, expr: nodes.MapOf) -> Val:
        kind = of_shape(expr.type, Map)
        shape, count = register(kind), key_count(kind)
        if count <= UNROLLED_KEYS:
            return self.codes.joined(kind, self._at_each_key(expr, kind))
        cell = self.asm.cell(shape)

        def visit(rank: Val) -> None:
            self.bind(expr.local, self.codes.nth(kind.key, rank), kind.key)
            placed = self.codes.placed(
                kind.value, self.of_type(expr.body, kind.value), self.codes.key_offset(kind, rank), shape
            )
            self.asm.b.store(self.asm.val(self.asm.bor(self.asm.b.load(cell), placed), shape), cell)

        self.asm.loop(0, count - 1, visit)
        return self.asm.b.load(cell)

    def _at_each_key(self, expr: nodes.MapOf, kind: Map) -> Iterator[Val]:
        for key in sorted(universe(kind.key)):
            self.bind(expr.local, constant(kind.key, key), kind.key)
            yield self.of_type(expr.body, kind.value)


def read_bits(asm: Asm, words: list[Val], offset: int, size: int) -> Val:
    """`size` bits from a bit offset of a state's words, as a code."""
    if size == 0:
        return 0
    first, last = offset // WORD, (offset + size - 1) // WORD
    if first == last:
        return asm.bits(words[first], offset % WORD, size)
    whole: Val = 0
    wide = code_type(WORD * (last - first + 1))
    for index in range(first, last + 1):
        part = asm.shl(asm.resize(words[index], wide), WORD * (index - first), wide)
        whole = asm.bor(whole, part)
    return asm.bits(whole, offset % WORD, size)


def write_bits(asm: Asm, words: list[Val], offset: int, size: int, code: Val) -> list[Val]:
    """The words of a state with `size` bits from a bit offset replaced."""
    out, done = list(words), 0
    if offset < 0 or offset + size > WORD * len(words):
        return out  # for an invalid index: unreachable code
    while done < size:
        word, at = divmod(offset + done, WORD)
        count = min(WORD - at, size - done)
        part = asm.band(asm.resize(asm.shr(code, done), I64), mask(count))
        out[word] = asm.with_bits(out[word], at, count, part, I64)
        done += count
    return out
