"""Instructions of LLVM IR; one whose value is used again is emitted once.

An instruction that depends on nothing but its operands gives the same value wherever it is repeated.  So it
is looked up by its text among those of the blocks that are certainly passed before (its *dominators*), and
written only if it is not there: several guards read the same bits of the state, so a kernel has a quarter
fewer lines.  LLVM's own pass for that (EarlyCSE) has to read and to drop them all.

Not here: which blocks dominate another (`codegen.dominance`).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from specchk.codegen.dominance import Dominance
from specchk.codegen.ir import (
    ArrayType,
    Block,
    ConstantValue,
    Function,
    FunctionType,
    IntType,
    PairType,
    PointerType,
    Type,
    Value,
)

_I1 = IntType(1)
_SIGNED = MappingProxyType({"<": "slt", "<=": "sle", "==": "eq", "!=": "ne", ">": "sgt", ">=": "sge"})
_UNSIGNED = MappingProxyType({"<": "ult", "<=": "ule", "==": "eq", "!=": "ne", ">": "ugt", ">=": "uge"})


class Phi(Value):
    """A phi node: its value depends on the block from which control arrives."""

    __slots__ = ("_ways",)

    def __init__(self, kind: Type, text: str) -> None:
        super().__init__(kind, text)
        self._ways: list[tuple[Value, Block]] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        """Add the value for control that arrives from a block."""
        self._ways.append((value, block))

    def line(self) -> str:
        """The instruction as text."""
        ways = [f"[{value.text}, {block.text}]" for value, block in self._ways if block.is_reached]
        return f"{self.text} = phi {self.type.text} {', '.join(ways)}"


class Switch:
    """A switch instruction: a jump that depends on a number."""

    def __init__(self, dominance: Dominance, value: Value, default: Block) -> None:
        self._dominance = dominance
        self._block = dominance.block
        self._head = f"switch {value}, label {default.text}"
        self._cases: list[str] = []

    def add_case(self, value: Value, block: Block) -> None:
        """Add the target block for a number."""
        self._dominance.jump(self._block, block)
        self._cases.append(f"{value}, label {block.text}")

    def line(self) -> str:
        """The instruction as text."""
        return f"{self._head} [ {' '.join(self._cases)} ]"


class IRBuilder:
    """Writes instructions at the end of a block of a function; `enter` changes the block."""

    def __init__(self, function: Function, block: Block) -> None:
        self.function = function
        self._dominance = Dominance(block)

    @property
    def block(self) -> Block:
        """The current block."""
        return self._dominance.block

    def position_at_end(self, block: Block) -> None:
        """Continue at the end of a block."""
        self._dominance.enter(block)

    def expect(self, *blocks: Block) -> None:
        """State that the targets of these jumps are built after the current block, once they are entered."""
        for block in blocks:
            self._dominance.jump(self.block, block)

    def _value(self, kind: Type, right: str) -> Value:
        """The value of an instruction that may differ at each execution."""
        self.function.count += 1
        value = Value(kind, f"%v{self.function.count}")
        self.block.lines.append(f"{value.text} = {right}")
        return value

    def _pure(self, kind: Type, right: str) -> Value:
        """The value of an instruction that depends only on its operands."""
        known = self._dominance.known
        value = known.get(right)
        if value is None:
            function, block = self.function, self._dominance.block
            function.count += 1
            value = known[right] = Value(kind, f"%v{function.count}")
            block.lines.append(f"{value.text} = {right}")
            block.shared.append((right, value))
        return value

    def _binary(self, word: str, a: Value, b: Value) -> Value:
        return self._pure(a.type, f"{word} {a.type.text} {a.text}, {b.text}")

    def add(self, a: Value, b: Value) -> Value:
        """The sum, a + b."""
        return self._binary("add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        """The difference, a - b."""
        return self._binary("sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        """The product, a * b."""
        return self._binary("mul", a, b)

    def sdiv(self, a: Value, b: Value) -> Value:
        """The signed quotient, rounded towards 0."""
        return self._binary("sdiv", a, b)

    def srem(self, a: Value, b: Value) -> Value:
        """The remainder of `sdiv`."""
        return self._binary("srem", a, b)

    def udiv(self, a: Value, b: Value) -> Value:
        """The unsigned quotient."""
        return self._binary("udiv", a, b)

    def and_(self, a: Value, b: Value) -> Value:
        """The bitwise and."""
        return self._binary("and", a, b)

    def or_(self, a: Value, b: Value) -> Value:
        """The bitwise or."""
        return self._binary("or", a, b)

    def xor(self, a: Value, b: Value) -> Value:
        """The bitwise exclusive or."""
        return self._binary("xor", a, b)

    def not_(self, a: Value) -> Value:
        """The bitwise complement."""
        return self._pure(a.type, f"xor {a}, -1")

    def shl(self, a: Value, by: Value) -> Value:
        """A left shift."""
        return self._binary("shl", a, by)

    def lshr(self, a: Value, by: Value) -> Value:
        """A logical right shift."""
        return self._binary("lshr", a, by)

    def icmp_signed(self, op: str, a: Value, b: Value) -> Value:
        """A signed comparison."""
        return self._pure(_I1, f"icmp {_SIGNED[op]} {a.type.text} {a.text}, {b.text}")

    def icmp_unsigned(self, op: str, a: Value, b: Value) -> Value:
        """An unsigned comparison."""
        return self._pure(_I1, f"icmp {_UNSIGNED[op]} {a.type.text} {a.text}, {b.text}")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """One of two values, by a condition."""
        return self._pure(a.type, f"select i1 {condition.text}, {a}, {b}")

    def _cast(self, word: str, value: Value, kind: Type) -> Value:
        if value.type == kind:
            return value
        return self._pure(kind, f"{word} {value} to {kind.text}")

    def zext(self, value: Value, kind: Type) -> Value:
        """A number zero-extended to more bits."""
        return self._cast("zext", value, kind)

    def trunc(self, value: Value, kind: Type) -> Value:
        """A number truncated to fewer bits."""
        return self._cast("trunc", value, kind)

    def bitcast(self, value: Value, kind: Type) -> Value:
        """A pointer to values of another type."""
        return self._cast("bitcast", value, kind)

    def ptrtoint(self, value: Value, kind: Type) -> Value:
        """An address as a number."""
        return self._cast("ptrtoint", value, kind)

    def inttoptr(self, value: Value, kind: Type) -> Value:
        """A number as an address."""
        return self._cast("inttoptr", value, kind)

    def gep(self, base: Value, indices: Sequence[Value]) -> Value:
        """The address of an item of an array."""
        assert isinstance(base.type, PointerType)
        item = base.type.pointee
        for _ in indices[1:]:
            assert isinstance(item, ArrayType)
            item = item.item
        places = ", ".join(map(str, indices))
        return self._pure(item.as_pointer(), f"getelementptr {base.type.pointee.text}, {base}, {places}")

    def intrinsic(self, name: str, value: Value, *flags: ConstantValue) -> Value:
        """The result of an LLVM intrinsic of numbers."""
        kind = FunctionType(value.type, [value.type, *(flag.type for flag in flags)])
        function = self.function.module.intrinsic(f"llvm.{name}.{value.type.text}", kind)
        return self._pure(value.type, _call(function, [value, *flags]))

    def call(self, function: Function, args: Sequence[Value]) -> Value:
        """The result of a function."""
        if function.result.text == "void":
            self.block.lines.append(_call(function, args))
            return Value(function.result, "")
        return self._value(function.result, _call(function, args))

    def alloca(self, kind: Type, count: int = 1) -> Value:
        """The address of a stack slot."""
        return self._value(kind.as_pointer(), f"alloca {kind.text}, i32 {count}")

    def load(self, place: Value, align: int = 0) -> Value:
        """The value at an address."""
        kind = _pointee(place)
        return self._value(kind, f"load {kind.text}, {place}{_aligned(align)}")

    def store(self, value: int | Value, place: Value, align: int = 0) -> None:
        """Store a value at an address."""
        value = _operand(value, _pointee(place))
        self.block.lines.append(f"store {value}, {place}{_aligned(align)}")

    def load_atomic(self, place: Value, ordering: str, align: int) -> Value:
        """The value at an address, loaded atomically."""
        kind = _pointee(place)
        return self._value(kind, f"load atomic {kind.text}, {place} {ordering}{_aligned(align)}")

    def store_atomic(self, value: Value, place: Value, ordering: str, align: int) -> None:
        """Store a value at an address atomically."""
        self.block.lines.append(f"store atomic {value}, {place} {ordering}{_aligned(align)}")

    def atomic_rmw(self, op: str, place: Value, value: Value, ordering: str) -> Value:
        """Change the value at an address atomically; return the previous value."""
        return self._value(value.type, f"atomicrmw {op} {place}, {value} {ordering}")

    def cmpxchg(self, place: Value, old: Value, new: Value, ordering: str, failed: str) -> Value:
        """Replace a value at an address if it is the expected one; the previous value, and whether it was."""
        kind = PairType(old.type, _I1)
        return self._value(kind, f"cmpxchg {place}, {old}, {new} {ordering} {failed}")

    def extract_value(self, pair: Value, index: int) -> Value:
        """One of several values."""
        assert isinstance(pair.type, PairType)
        return self._pure(pair.type.items[index], f"extractvalue {pair}, {index}")

    def phi(self, kind: Type) -> Phi:
        """A phi node: its value depends on the block from which control arrives."""
        self.function.count += 1
        phi = Phi(kind, f"%v{self.function.count}")
        self.block.lines.append(phi)
        return phi

    def _end(self, line: str | Switch, *targets: Block) -> None:
        block = self.block
        assert not block.is_terminated, "the block has ended"
        block.is_terminated = True
        block.lines.append(line)
        for target in targets:
            self._dominance.jump(block, target)

    def branch(self, target: Block) -> None:
        """Jump to a block."""
        self._end(f"br label {target.text}", target)

    def cbranch(self, condition: int | Value, then: Block, orelse: Block) -> None:
        """Jump to one of two blocks."""
        condition = _operand(condition, _I1)
        self._end(f"br i1 {condition.text}, label {then.text}, label {orelse.text}", then, orelse)

    def switch(self, value: Value, default: Block) -> Switch:
        """Jump by a number."""
        switch = Switch(self._dominance, value, default)
        self._end(switch, default)
        return switch

    def ret(self, value: int | Value) -> None:
        """Return a value."""
        self._end(f"ret {_operand(value, self.function.result)}")

    def ret_void(self) -> None:
        """Return without a value."""
        self._end("ret void")

    def unreachable(self) -> None:
        """State that this point is unreachable."""
        self._end("unreachable")


def _call(function: Function, args: Sequence[Value]) -> str:
    given = ", ".join([f"{arg.type.text} {arg.text}" for arg in args])
    return f"call {function.result.text} {function.text}({given})"


def _operand(value: int | Value, kind: Type) -> Value:
    """A value as an operand, or a number known at build time."""
    return ConstantValue(kind, value) if isinstance(value, int) else value


def _pointee(place: Value) -> Type:
    assert isinstance(place.type, PointerType)
    return place.type.pointee


def _aligned(align: int) -> str:
    return f", align {align}" if align else ""
