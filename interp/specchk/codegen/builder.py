"""Instructions of LLVM IR, written as text at the end of a block.

An instruction that repeats another is written again: LLVM finds it when it optimises (EarlyCSE).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

from specchk.codegen import ir

_I1 = ir.IntType(1)
_SIGNED = MappingProxyType({"<": "slt", "<=": "sle", "==": "eq", "!=": "ne", ">": "sgt", ">=": "sge"})
_UNSIGNED = MappingProxyType({"<": "ult", "<=": "ule", "==": "eq", "!=": "ne", ">": "ugt", ">=": "uge"})


class Phi(ir.Value):
    """A phi node: its value depends on the block from which control arrives."""

    __slots__ = ("_ways",)

    def __init__(self, kind: ir.Type, text: str) -> None:
        super().__init__(kind, text)
        self._ways: list[tuple[ir.Value, ir.Block]] = []

    def add_incoming(self, value: ir.Value, block: ir.Block) -> None:
        """Add the value for control that arrives from a block."""
        self._ways.append((value, block))

    def line(self) -> str:
        """The instruction as text."""
        ways = [f"[{value.text}, {block.text}]" for value, block in self._ways if block.is_reached]
        return f"{self.text} = phi {self.type.text} {', '.join(ways)}"


class Switch:
    """A switch instruction: a jump that depends on a number."""

    def __init__(self, block: ir.Block, value: ir.Value, default: ir.Block) -> None:
        self._block = block
        self._head = f"switch {value}, label {default.text}"
        self._cases: list[str] = []

    def add_case(self, value: ir.Value, block: ir.Block) -> None:
        """Add the target block for a number."""
        self._block.lead(block)
        self._cases.append(f"{value}, label {block.text}")

    def line(self) -> str:
        """The instruction as text."""
        return f"{self._head} [ {' '.join(self._cases)} ]"


def _binary(word: str) -> Callable[[IRBuilder, ir.Value, ir.Value], ir.Value]:
    """The method for an instruction with two operands of one type, which is also that of the result."""

    def binary(self: IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
        return self._value(a.type, f"{word} {a.type.text} {a.text}, {b.text}")

    return binary


def _cast(word: str) -> Callable[[IRBuilder, ir.Value, ir.Type], ir.Value]:
    """The method for a conversion to another type."""

    def cast(self: IRBuilder, value: ir.Value, kind: ir.Type) -> ir.Value:
        if value.type == kind:
            return value
        return self._value(kind, f"{word} {value} to {kind.text}")

    return cast


class IRBuilder:
    """Writes instructions at the end of a block of a function; `enter` changes the block."""

    def __init__(self, function: ir.Function, block: ir.Block) -> None:
        self.function = function
        self.block = block

    def position_at_end(self, block: ir.Block) -> None:
        """Continue at the end of a block."""
        self.block = block

    def _value(self, kind: ir.Type, right: str) -> ir.Value:
        """The value of an instruction."""
        self.function.count += 1
        value = ir.Value(kind, f"%v{self.function.count}")
        self.block.lines.append(f"{value.text} = {right}")
        return value

    # Of two numbers of one width; `sdiv` rounds towards 0, and `srem` is its remainder.
    add, sub, mul = _binary("add"), _binary("sub"), _binary("mul")
    sdiv, srem, udiv = _binary("sdiv"), _binary("srem"), _binary("udiv")
    and_, or_, xor = _binary("and"), _binary("or"), _binary("xor")
    shl, lshr = _binary("shl"), _binary("lshr")

    def not_(self, a: ir.Value) -> ir.Value:
        """The bitwise complement."""
        return self._value(a.type, f"xor {a}, -1")

    def icmp_signed(self, op: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """A signed comparison."""
        return self._value(_I1, f"icmp {_SIGNED[op]} {a.type.text} {a.text}, {b.text}")

    def icmp_unsigned(self, op: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """An unsigned comparison."""
        return self._value(_I1, f"icmp {_UNSIGNED[op]} {a.type.text} {a.text}, {b.text}")

    def select(self, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """One of two values, by a condition."""
        return self._value(a.type, f"select i1 {condition.text}, {a}, {b}")

    zext, trunc = _cast("zext"), _cast("trunc")  # of numbers
    bitcast = _cast("bitcast")  # of pointers
    ptrtoint, inttoptr = _cast("ptrtoint"), _cast("inttoptr")  # between addresses and numbers

    def gep(self, base: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
        """The address of an item of an array."""
        assert isinstance(base.type, ir.PointerType)
        item = base.type.pointee
        for _ in indices[1:]:
            assert isinstance(item, ir.ArrayType)
            item = item.item
        places = ", ".join(map(str, indices))
        return self._value(item.as_pointer(), f"getelementptr {base.type.pointee.text}, {base}, {places}")

    def intrinsic(self, name: str, value: ir.Value, *flags: ir.ConstantValue) -> ir.Value:
        """The result of an LLVM intrinsic of numbers."""
        kind = ir.FunctionType(value.type, [value.type, *(flag.type for flag in flags)])
        function = self.function.module.intrinsic(f"llvm.{name}.{value.type.text}", kind)
        return self._value(value.type, _call(function, [value, *flags]))

    def call(self, function: ir.Function, args: Sequence[ir.Value]) -> ir.Value:
        """The result of a function."""
        if function.result.text == "void":
            self.block.lines.append(_call(function, args))
            return ir.Value(function.result, "")
        return self._value(function.result, _call(function, args))

    def alloca(self, kind: ir.Type, count: int = 1) -> ir.Value:
        """The address of a stack slot."""
        return self._value(kind.as_pointer(), f"alloca {kind.text}, i32 {count}")

    def load(self, place: ir.Value, align: int = 0) -> ir.Value:
        """The value at an address."""
        kind = pointee(place)
        return self._value(kind, f"load {kind.text}, {place}{_aligned(align)}")

    def store(self, value: int | ir.Value, place: ir.Value, align: int = 0) -> None:
        """Store a value at an address."""
        value = _operand(value, pointee(place))
        self.block.lines.append(f"store {value}, {place}{_aligned(align)}")

    def load_atomic(self, place: ir.Value, ordering: str, align: int) -> ir.Value:
        """The value at an address, loaded atomically."""
        kind = pointee(place)
        return self._value(kind, f"load atomic {kind.text}, {place} {ordering}{_aligned(align)}")

    def store_atomic(self, value: ir.Value, place: ir.Value, ordering: str, align: int) -> None:
        """Store a value at an address atomically."""
        self.block.lines.append(f"store atomic {value}, {place} {ordering}{_aligned(align)}")

    def atomic_rmw(self, op: str, place: ir.Value, value: ir.Value, ordering: str) -> ir.Value:
        """Change the value at an address atomically; return the previous value."""
        return self._value(value.type, f"atomicrmw {op} {place}, {value} {ordering}")

    def cmpxchg(self, place: ir.Value, old: ir.Value, new: ir.Value, ordering: str, failed: str) -> ir.Value:
        """Replace a value at an address if it is the expected one; the previous value, and whether it was."""
        kind = ir.PairType(old.type, _I1)
        return self._value(kind, f"cmpxchg {place}, {old}, {new} {ordering} {failed}")

    def extract_value(self, pair: ir.Value, index: int) -> ir.Value:
        """One of several values."""
        assert isinstance(pair.type, ir.PairType)
        return self._value(pair.type.items[index], f"extractvalue {pair}, {index}")

    def prefetch(self, place: ir.Value) -> None:
        """Prefetch a cache line; an address without a page is no fault."""
        byte, hint = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, hint, hint, hint])
        # For writing, into all levels of the cache, as data.
        hints = [ir.ConstantValue(hint, number) for number in (1, 3, 1)]
        function = self.function.module.intrinsic("llvm.prefetch.p0i8", kind)
        self.call(function, [self.bitcast(place, byte), *hints])

    def phi(self, kind: ir.Type) -> Phi:
        """A phi node: its value depends on the block from which control arrives."""
        self.function.count += 1
        phi = Phi(kind, f"%v{self.function.count}")
        self.block.lines.append(phi.line)
        return phi

    def _end(self, line: str | Callable[[], str], *targets: ir.Block) -> None:
        block = self.block
        assert not block.is_terminated, "the block has ended"
        block.is_terminated = True
        block.lines.append(line)
        block.lead(*targets)

    def branch(self, target: ir.Block) -> None:
        """Jump to a block."""
        self._end(f"br label {target.text}", target)

    def cbranch(self, condition: int | ir.Value, then: ir.Block, orelse: ir.Block) -> None:
        """Jump to one of two blocks."""
        condition = _operand(condition, _I1)
        self._end(f"br i1 {condition.text}, label {then.text}, label {orelse.text}", then, orelse)

    def switch(self, value: ir.Value, default: ir.Block) -> Switch:
        """Jump by a number."""
        switch = Switch(self.block, value, default)
        self._end(switch.line, default)
        return switch

    def ret(self, value: int | ir.Value) -> None:
        """Return a value."""
        self._end(f"ret {_operand(value, self.function.result)}")

    def ret_void(self) -> None:
        """Return without a value."""
        self._end("ret void")

    def unreachable(self) -> None:
        """State that this point is unreachable."""
        self._end("unreachable")


def _call(function: ir.Function, args: Sequence[ir.Value]) -> str:
    given = ", ".join([f"{arg.type.text} {arg.text}" for arg in args])
    return f"call {function.result.text} {function.text}({given})"


def _operand(value: int | ir.Value, kind: ir.Type) -> ir.Value:
    """A value as an operand, or a number known at build time."""
    return ir.ConstantValue(kind, value) if isinstance(value, int) else value


def pointee(place: ir.Value) -> ir.Type:
    """The type of what is at an address."""
    assert isinstance(place.type, ir.PointerType)
    return place.type.pointee


def _aligned(align: int) -> str:
    return f", align {align}" if align else ""
