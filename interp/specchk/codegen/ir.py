"""LLVM IR as text: types, values, blocks, functions, modules.

A value is its text, as it is named in the instructions that use it; a block is the list of its lines.  So a
module of a hundred thousand instructions takes a fraction of the time and memory that a tree of objects for
each does, which is printed once and dropped.

Not here: instructions (`codegen.builder`); the meaning of any of this, which is that of LLVM's manual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import lru_cache


class Type:
    """A type; equal types have equal texts.  `width` is the number of bits of a number."""

    __slots__ = ("text", "width")

    def __init__(self, text: str, width: int = 0) -> None:
        self.text = text
        self.width = width

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def as_pointer(self) -> PointerType:
        """The type of pointers to this type."""
        return PointerType(self)


class VoidType(Type):
    """The type without values."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("void")


class IntType(Type):
    """The type of numbers with this many bits."""

    __slots__ = ()

    def __init__(self, width: int) -> None:
        super().__init__(f"i{width}", width)


class PointerType(Type):
    """The type of pointers to values of a type."""

    __slots__ = ("pointee",)

    def __init__(self, pointee: Type) -> None:
        super().__init__(f"{pointee.text}*")
        self.pointee = pointee


class ArrayType(Type):
    """An array of values of one type."""

    __slots__ = ("item",)

    def __init__(self, item: Type, count: int) -> None:
        super().__init__(f"[{count} x {item.text}]")
        self.item = item


class PairType(Type):
    """A struct of values of several types, such as the result of an exchange."""

    __slots__ = ("items",)

    def __init__(self, *items: Type) -> None:
        super().__init__(f"{{{', '.join(item.text for item in items)}}}")
        self.items = items


class FunctionType(Type):
    """The types of the arguments and of the result of a function."""

    __slots__ = ("args", "result")

    def __init__(self, result: Type, args: Sequence[Type]) -> None:
        super().__init__(f"{result.text} ({', '.join(arg.text for arg in args)})")
        self.result = result
        self.args = tuple(args)


class Value:
    """A run-time value: its type, and its text as an operand."""

    __slots__ = ("text", "type")

    def __init__(self, kind: Type, text: str) -> None:
        self.type = kind
        self.text = text

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"


class ConstantValue(Value):
    """A constant: a number, None for the null pointer, or the constants of an array."""

    __slots__ = ()

    def __init__(self, kind: Type, value: int | Iterable[ConstantValue] | None) -> None:
        if isinstance(value, int):
            super().__init__(kind, str(int(value)))
        else:
            text = "null" if value is None else f"[{', '.join(map(str, value))}]"
            super().__init__(kind, text)


class ArgumentValue(Value):
    """An argument of a function."""

    __slots__ = ("attributes",)

    def __init__(self, kind: Type, text: str) -> None:
        super().__init__(kind, text)
        self.attributes: list[str] = []

    def declared(self) -> str:
        """The argument as text in the head of the function."""
        return " ".join((self.type.text, *self.attributes, self.text))


class Block:
    """Instructions that run in sequence; the last one leaves the block."""

    __slots__ = ("is_reached", "is_target", "is_terminated", "lines", "targets", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[str | Callable[[], str]] = []  # calls: complete only when the function is
        self.is_terminated = False
        self.targets: list[Block] = []  # of its jumps
        self.is_target = False  # of a jump that was built, reached or not
        self.is_reached = False  # once the function is complete: by jumps from its entry

    def lead(self, *targets: Block) -> None:
        """Note jumps from this block."""
        for target in targets:
            self.targets.append(target)
            target.is_target = True


class Global(Value):
    """A function or a table, with a name that is valid in all functions of a module."""

    __slots__ = ("name",)

    def __init__(self, kind: Type, name: str) -> None:
        super().__init__(kind, f'@"{name}"')
        self.name = name


class ConstantTable(Global):
    """A table of constants in memory."""

    __slots__ = ("values",)

    def __init__(self, name: str, values: ConstantValue) -> None:
        super().__init__(values.type.as_pointer(), name)
        self.values = values

    def lines(self) -> list[str]:
        """The definition as text."""
        return [f"{self.text} = internal constant {self.values}"]


class Function(Global):
    """A function; it is a declaration as long as it has no blocks."""

    __slots__ = ("args", "attributes", "blocks", "count", "linkage", "module", "result")

    def __init__(self, module: IRModule, kind: FunctionType, name: str) -> None:
        super().__init__(kind.as_pointer(), name)
        self.module = module
        self.result = kind.result
        self.args = tuple(ArgumentValue(arg, f"%a{index}") for index, arg in enumerate(kind.args))
        self.attributes: list[str] = []
        self.linkage = ""
        self.blocks: list[Block] = []
        self.count = 0  # of its values, for their names
        module.globals[name] = self

    def append_block(self) -> Block:
        """Add a new block after all others."""
        block = Block(f"%b{len(self.blocks)}")
        self.blocks.append(block)
        return block

    def lines(self) -> list[str]:
        """The definition as text."""
        head = f"{self.result} {self.text}({', '.join(arg.declared() for arg in self.args)})"
        if not self.blocks:
            return [f"declare {head}"]
        self._reach()
        out = [" ".join(part for part in ("define", self.linkage, head, *self.attributes, "{") if part)]
        for block in self.blocks:
            # What constants decided is built all the same, and nothing leads there.
            if not block.is_reached:
                continue
            assert block.is_terminated, "a block of a complete function is left"
            out.append(f"{block.text[1:]}:")
            out += [line if isinstance(line, str) else line() for line in block.lines]
        out.append("}")
        return out

    def _reach(self) -> None:
        """Note the blocks to which control may come."""
        reached = [self.blocks[0]]
        while reached:
            block = reached.pop()
            if not block.is_reached:
                block.is_reached = True
                reached += block.targets


class Tier(Enum):
    """How a module is compiled; emitters choose their output accordingly."""

    QUICK = "quick"  # there soon: the less code, the better
    OPTIMISED = "optimised"


class IRModule:
    """Functions and tables that are compiled together."""

    def __init__(self, tier: Tier = Tier.OPTIMISED) -> None:
        self.tier = tier
        self.globals: dict[str, Function | ConstantTable] = {}

    def table(self, name: str, kind: Type, values: Sequence[int]) -> ConstantTable:
        """The table of constants with this name, added on first use."""
        known = self.globals.get(name)
        if known is None:
            items = [ConstantValue(kind, value) for value in values]
            known = ConstantTable(name, ConstantValue(ArrayType(kind, len(values)), items))
            self.globals[name] = known
        assert isinstance(known, ConstantTable)
        return known

    def function(self, name: str) -> Function:
        """The function with this name."""
        function = self.globals[name]
        assert isinstance(function, Function)
        return function

    def intrinsic(self, name: str, kind: FunctionType) -> Function:
        """An LLVM intrinsic."""
        return self.function(name) if name in self.globals else Function(self, kind, name)

    def __str__(self) -> str:
        return "\n".join(line for part in self.globals.values() for line in part.lines()) + "\n"


@lru_cache(maxsize=256)
def int_type(width: int) -> IntType:
    """The number type with this many bits; the same object each time."""
    return IntType(width)
