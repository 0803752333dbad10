"""A small assembler over llvmlite: folds constants while it builds, and structures control flow.

A `Val` is a Python int (known now) or an LLVM value (known when the kernel runs).  Operations on
ints are done at once, so that unrolled code carries no trace of what was decided while unrolling;
everything else becomes an instruction at the current position.  Truth values are ints or `i1`.

Numbers are 64 bits wide, codes as wide as their type needs, rounded up to whole words (`code_type`).
Loops and early exits keep what they change in stack cells; LLVM turns these into registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Self, TypeAlias

from specchk.codegen import ir
from specchk.codegen.builder import IRBuilder
from specchk.native.machine.layout import mask

Val: TypeAlias = int | ir.Value
I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
PTR = I64.as_pointer()


def code_type(width: int) -> ir.IntType:
    """The LLVM type that holds a code of `width` bits: one or more whole words."""
    return ir.int_type(64 * max(1, -(-width // 64)))


class Asm:
    """Builds the body of one function."""

    def __init__(self, function: ir.Function) -> None:
        self.function = function
        # The word in which it is noted that a set had no room; None in code that makes no set larger.
        self.overflow: ir.Value | None = None
        # Cells are allocated in a block before all others: LLVM makes registers only of an alloca in the
        # entry block, and one inside a loop would take more of the stack with every iteration.
        self._cells = IRBuilder(function, function.append_block())
        self.b = IRBuilder(function, function.append_block())
        self._start = self.b.block

    @classmethod
    def of(
        cls,
        module: ir.IRModule,
        name: str,
        args: Sequence[ir.Type],
        result: ir.Type,
        *,
        internal: bool = True,
    ) -> Self:
        """The assembler of a new function; an `internal` one is called only in its module."""
        function = ir.Function(module, ir.FunctionType(result, args), name)
        if internal:
            function.linkage = "internal"
        return cls(function)

    def end(self) -> None:
        """Return void from a function whose body is complete."""
        self.b.ret_void()
        self.finish()

    def finish(self) -> None:
        """Connect the entry once the whole body is built; blocks left open are unreachable."""
        self._cells.branch(self._start)

    def val(self, value: Val, kind: ir.Type = I64) -> ir.Value:
        """A value as an LLVM operand of the given type."""
        if isinstance(value, int):
            assert value.bit_length() <= kind.width, "a constant that is wider than its operand"
            return ir.ConstantValue(kind, int(value) & mask(kind.width))
        return value

    def _both(self, a: Val, b: Val) -> tuple[ir.Value, ir.Value]:
        # A constant has no width of its own: it takes that of the other operand.
        kind = a.type if isinstance(a, ir.Value) else b.type if isinstance(b, ir.Value) else I64
        return self.val(a, kind), self.val(b, kind)

    def add(self, a: Val, b: Val) -> Val:
        """The sum."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int) and x == 0:
                return y
        return self.b.add(*self._both(a, b))

    def sub(self, a: Val, b: Val) -> Val:
        """The difference."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        if isinstance(b, int) and b == 0:
            return a
        return self.b.sub(*self._both(a, b))

    def mul(self, a: Val, b: Val) -> Val:
        """The product."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int) and x in (0, 1):
                return y if x else 0
        return self.b.mul(*self._both(a, b))

    def band(self, a: Val, b: Val) -> Val:
        """Bitwise and (ints are non-negative constants)."""
        if isinstance(a, int) and isinstance(b, int):
            return a & b
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int):
                # Folding by identities, and not by values alone: unrolled layouts mostly give masks of all
                # ones and shifts by zero, and LLVM need not remove what it never gets.
                if x == 0:
                    return 0
                if isinstance(y, ir.Value) and x & mask(y.type.width) == mask(y.type.width):
                    return y
        return self.b.and_(*self._both(a, b))

    def bor(self, a: Val, b: Val) -> Val:
        """Bitwise or."""
        if isinstance(a, int) and isinstance(b, int):
            return a | b
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int) and x == 0:
                return y
        return self.b.or_(*self._both(a, b))

    def xor(self, a: Val, b: Val) -> Val:
        """Bitwise exclusive or."""
        if isinstance(a, int) and isinstance(b, int):
            return a ^ b
        return self.b.xor(*self._both(a, b))

    def shl(self, a: Val, by: Val, kind: ir.IntType = I64) -> Val:
        """A left shift: a << by, within `kind` if `a` is an int."""
        if isinstance(by, int):
            # LLVM's shift by the width or more is poison, from which it may conclude anything about the
            # code around it.
            if by < 0 or by >= (kind if isinstance(a, int) else a.type).width:
                return 0  # such a shift is only built in unreachable code
            if by == 0:
                return a
            if isinstance(a, int):
                return a << by & mask(kind.width)
            return self.b.shl(a, self.val(by, a.type))
        operand = self.val(a, kind)
        return self.b.shl(operand, self.val(self.resize(by, operand.type)))

    def shr(self, a: Val, by: Val, kind: ir.IntType | None = None) -> Val:
        """A logical right shift: a >> by; within `kind` if `a` is an int and `by` is not."""
        if isinstance(by, int):
            if by < 0:
                return 0  # only in unreachable code
            if by == 0 or isinstance(a, int):
                return a >> by if isinstance(a, int) else a
            return 0 if by >= a.type.width else self.b.lshr(a, self.val(by, a.type))
        if isinstance(a, int):  # an int has no width: its highest digits may be 0, and be read
            assert kind is not None, "a constant of unknown width"
            a = self.val(a, kind)
        return self.b.lshr(a, self.val(self.resize(by, a.type)))

    def resize(self, value: Val, kind: ir.Type) -> Val:
        """The value in another width, zero-extended or truncated."""
        if isinstance(value, int):
            return value & mask(kind.width)
        if value.type.width < kind.width:
            return self.b.zext(value, kind)
        return self.b.trunc(value, kind) if value.type.width > kind.width else value

    def bits(self, value: Val, offset: Val, width: int, kind: ir.IntType | None = None) -> Val:
        """`width` bits of a code from `offset`, as a code of their own; `kind` as for `shr`."""
        if width == 0:
            return 0
        return self.band(self.resize(self.shr(value, offset, kind), code_type(width)), mask(width))

    def with_bits(self, value: Val, offset: Val, width: int, part: Val, kind: ir.IntType) -> Val:
        """`value`, of type `kind`, with `width` bits from `offset` replaced by `part`."""
        if width == 0:
            return value
        hole = self.shl(mask(width), offset, kind)
        keep = mask(kind.width) & ~hole if isinstance(hole, int) else self.b.not_(hole)
        return self.bor(self.band(value, keep), self.shl(self.resize(part, kind), offset, kind))

    def cmp(self, op: str, a: Val, b: Val) -> Val:
        """A signed comparison: `<`, `<=`, `==` or `!=`."""
        if isinstance(a, int) and isinstance(b, int):
            return {"<": a < b, "<=": a <= b, "==": a == b, "!=": a != b}[op]
        left, right = self._both(a, b)
        return self.b.icmp_signed(op, left, right)

    def below(self, a: Val, b: Val) -> Val:
        """Whether a < b, unsigned."""
        if isinstance(a, int) and isinstance(b, int):
            return a < b
        return self.b.icmp_unsigned("<", *self._both(a, b))

    def both(self, a: Val, b: Val) -> Val:
        """The logical and of two truths, known or computed."""
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int):
                return y if x else False
        return self.b.and_(*self._both(a, b))

    def either(self, a: Val, b: Val) -> Val:
        """Logical or."""
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int):
                return True if x else y
        return self.b.or_(*self._both(a, b))

    def negate(self, a: Val) -> Val:
        """Logical not."""
        return not a if isinstance(a, int) else self.b.not_(a)

    def select(self, condition: Val, a: Val, b: Val, kind: ir.Type = I64) -> Val:
        """One of two values: a if the condition holds, else b; both are computed."""
        if isinstance(condition, int):
            return a if condition else b
        if isinstance(a, int) and isinstance(b, int):
            if a == b:
                return a
            return self.b.select(condition, self.val(a, kind), self.val(b, kind))
        # Both sides are computed: a select is for values without faults, `pick` for code that may only run
        # on one side.
        return self.b.select(condition, *self._both(a, b))

    def min(self, a: Val, b: Val) -> Val:
        """The smaller number."""
        return self.select(self.cmp("<", b, a), b, a)

    def max(self, a: Val, b: Val) -> Val:
        """The larger number."""
        return self.select(self.cmp("<", a, b), b, a)

    def intrinsic(self, name: str, value: ir.Value) -> ir.Value:
        """`ctpop`, `cttz`, `ctlz` or `bitreverse` of a value."""
        # The flag: 0 is a valid argument, with as many zeros as its width.
        flags = [ir.ConstantValue(I1, 0)] if name in ("cttz", "ctlz") else []
        return self.b.intrinsic(name, value, *flags)

    def cell(self, kind: ir.Type, start: Val = 0) -> ir.Value:
        """A stack cell that initially holds `start`."""
        place = self._cells.alloca(kind)
        self.b.store(self.val(start, kind), place)
        return place

    def buffer(self, count: int) -> ir.Value:
        """An array of words on the stack."""
        return self._cells.alloca(I64, count)

    def table(self, name: str, kind: ir.Type, values: Sequence[int]) -> ir.Value:
        """Constants in memory, as a global array of the module; equal arrays are shared."""
        # Named by content, since each loop over a type has the same: LLVM need not read them again.
        name = f"{name}.{sha256(f'{kind} {tuple(values)}'.encode()).hexdigest()[:16]}"
        return self.function.module.table(name, kind, values)

    def at(self, base: ir.Value, index: Val) -> ir.Value:
        """The address of base[index]."""
        return self.b.gep(base, [self.val(index)])

    def load(self, base: ir.Value, index: Val) -> ir.Value:
        """The word at base[index]."""
        return self.b.load(self.at(base, index))

    def pointer(self, base: ir.Value, index: Val) -> ir.Value:
        """The word at base[index], which is an address of words."""
        return self.b.inttoptr(self.load(base, index), PTR)

    def store(self, value: Val, base: ir.Value, index: Val) -> None:
        """base[index] = value."""
        self.b.store(self.val(value), self.at(base, index))

    def bump(self, base: ir.Value, index: Val, by: Val = 1) -> None:
        """base[index] += by."""
        self.advance(self.at(base, index), by)

    def advance(self, cell: ir.Value, by: Val = 1) -> None:
        """Increase a cell, or another place in memory, by `by`."""
        self.b.store(self.b.add(self.b.load(cell), self.val(by)), cell)

    def block(self, name: str = "") -> ir.Block:
        """A new block, not yet entered."""
        return self.function.append_block()

    def enter(self, block: ir.Block) -> None:
        """Continue building at the end of a block."""
        self.b.position_at_end(block)

    def goto(self, block: ir.Block) -> None:
        """Jump, unless the current block has ended."""
        if not self.b.block.is_terminated:
            self.b.branch(block)

    def fall_into(self, block: ir.Block) -> None:
        """Continue building in a block, with a fall-through from here."""
        self.goto(block)
        self.enter(block)

    def leave(self, block: ir.Block) -> None:
        """Jump and continue in an unreachable block."""
        self.goto(block)
        # Callers continue to build, as if the jump could fail; what they add needs a block.
        self.enter(self.block("dead"))

    def leave_if(self, condition: Val, block: ir.Block) -> None:
        """Jump if the condition holds."""
        if isinstance(condition, int):
            if condition:
                self.leave(block)
            return
        rest = self.block()
        self.b.cbranch(condition, block, rest)
        self.enter(rest)

    def when(
        self, condition: Val, then: Callable[[], None], orelse: Callable[[], None] | None = None
    ) -> None:
        """Run one of two pieces of code, depending on a condition."""
        if isinstance(condition, int):
            if condition:
                then()
            elif orelse is not None:
                orelse()
            return
        yes, join = self.block(), self.block()
        no = self.block() if orelse is not None else join
        self.b.cbranch(condition, yes, no)
        self.enter(yes)
        then()
        self.goto(join)
        if orelse is not None:
            self.enter(no)
            orelse()
            self.goto(join)
        self.enter(join)

    def when_less(
        self, words: Iterable[tuple[Val, Val]], then: Callable[[], None], is_first: Val = False
    ) -> None:
        """Run code if a state is less than another, given the pairs of their words, or if `is_first`."""
        less, done = self.block("less"), self.block("not_less")
        self.leave_if(is_first, less)
        # Unsigned, first word first: the order of the tuples that Python reads.
        for word, known in words:
            self.leave_if(self.below(word, known), less)
            self.leave_if(self.below(known, word), done)
        self.goto(done)
        self.enter(less)
        then()
        self.fall_into(done)

    def pick(self, kind: ir.Type, condition: Val, then: Callable[[], Val], orelse: Callable[[], Val]) -> Val:
        """The value of one of two pieces of code, of which only the chosen one runs."""
        if isinstance(condition, int):
            return then() if condition else orelse()
        yes, no, join = self.block(), self.block(), self.block()
        self.b.cbranch(condition, yes, no)
        incoming: list[tuple[Val, ir.Block]] = []
        for block, code in ((yes, then), (no, orelse)):
            self.enter(block)
            # Not `block`: the code may have opened others, and the phi needs the one that jumps.
            incoming.append((code(), self.b.block))
            self.goto(join)
        self.enter(join)
        first, second = incoming[0][0], incoming[1][0]
        if isinstance(first, int) and isinstance(second, int) and first == second:
            return first
        phi = self.b.phi(kind)
        for value, block in incoming:
            phi.add_incoming(self.val(value, kind), block)
        return phi

    def loop(self, low: Val, high: Val, body: Callable[[ir.Value], None]) -> None:
        """A run-time loop: `for i in low..high` (both included)."""
        # A cell and not a phi: the body may end in any block, and LLVM finds the phi by itself.
        index = self.cell(I64, low)
        head, inside, out = self.block("head"), self.block("inside"), self.block("out")
        self.fall_into(head)
        current = self.b.load(index)
        self.b.cbranch(self.b.icmp_signed("<=", current, self.val(high)), inside, out)
        self.enter(inside)
        body(current)
        if not self.b.block.is_terminated:
            self.b.store(self.b.add(self.b.load(index), self.val(1)), index)
        self.goto(head)
        self.enter(out)

    def while_(self, condition: Callable[[], Val], body: Callable[[], None]) -> None:
        """A loop that continues while the condition holds."""
        head, inside, out = self.block("head"), self.block("inside"), self.block("out")
        self.fall_into(head)
        self.b.cbranch(self.val(condition(), I1), inside, out)
        self.enter(inside)
        body()
        self.goto(head)
        self.enter(out)
