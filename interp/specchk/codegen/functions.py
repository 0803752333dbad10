"""Python functions of numbers and arrays, translated to LLVM IR from their source.

A kernel is a function of ints and of arrays: `Words` of 64-bit integers, `Halves` of 32, `Octets` of 8.  It
runs in Python as it is, where numbers have no end, and compiled, where they have 64 bits; a kernel must see
to it that its numbers fit.

    def total(words: Words, count: int) -> int:
        found = 0
        for at in range(count):
            found += words[at]
        return found

The language is small, and anything else is refused: assignments to names and elements, `if`, `while`, `for`
over `range` with one or two ends, `break`, `continue`, `return`; arithmetic without division, comparisons,
`and`, `or`, `not`, the conditional expression; calls of other kernels and of the functions of `arrays`; the
rest `a[n:]` of an array, which shares its elements; constants of the module, members of its enumerations.
Every kernel returns an int or nothing.  Elements are counted from 0, and no index is checked.

A parameter `spec` is no value: its attributes, numbers and functions, are given when a kernel is translated.
An `if` of a given number is decided then, and its other branch is not translated.

Not here: what becomes of the IR (`objects`).
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from textwrap import dedent
from types import MappingProxyType
from typing import Any, TypeVar

from specchk.codegen.arrays import INSTRUCTIONS, WIDTHS
from specchk.codegen.builder import IRBuilder, pointee
from specchk.codegen.ir import (
    Block,
    ConstantValue,
    Function,
    FunctionType,
    IntType,
    IRModule,
    PointerType,
    Type,
    Value,
)

T = TypeVar("T")
Given = Mapping[str, int | Function]  # the attributes of `spec`
I1, I64 = IntType(1), IntType(64)
_Words = Mapping[type[ast.AST], str]  # the methods or the names of operators in `IRBuilder`
_ARITHMETIC: _Words = MappingProxyType({
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "lshr",
})  # fmt: skip
_COMPARISONS: _Words = MappingProxyType({
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
})  # fmt: skip


def module_of(functions: Sequence[Callable[..., int]], entries: Sequence[str]) -> IRModule:
    """The module of some functions, which call only each other; `entries` are called from outside."""
    module = IRModule()
    add_kernels(module, functions, entries, {})
    return module


def add_kernels(
    module: IRModule, functions: Sequence[Callable[..., int | None]], entries: Sequence[str], given: Given
) -> Mapping[str, Function]:
    """Add functions, which call each other and what is given, to a module; the functions by name."""
    made: dict[str, Function] = {}
    trees = [(_definition(function), function.__globals__) for function in functions]
    for tree, _ in trees:
        kinds = [_kind(arg) for arg in _parameters(tree)]
        made[tree.name] = Function(module, FunctionType(I64, kinds), tree.name)
        if tree.name not in entries:
            made[tree.name].linkage = "internal"
    for tree, constants in trees:
        _Body(tree, made, constants, given).build()
    return made


def _definition(function: Callable[..., int | None]) -> ast.FunctionDef:
    (tree,) = ast.parse(dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)
    return tree


def _parameters(tree: ast.FunctionDef) -> list[ast.arg]:
    return [arg for arg in tree.args.args if arg.arg != "spec"]


def _kind(arg: ast.arg) -> Type:
    width = WIDTHS.get(arg.annotation.id) if isinstance(arg.annotation, ast.Name) else None
    return I64 if width is None else IntType(width).as_pointer()


def _is_spec(arg: ast.expr) -> bool:
    return isinstance(arg, ast.Name) and arg.id == "spec"


class NotAKernel(Exception):
    """A function contains a construct that a kernel may not have."""


class _Body:
    """The translation of one function; every variable is a stack cell, which LLVM turns into a register."""

    def __init__(
        self, tree: ast.FunctionDef, made: dict[str, Function], constants: dict[str, Any], given: Given
    ) -> None:
        self._tree = tree
        self._made = made
        self._constants = constants
        self._given = given
        self._function = made[tree.name]
        # Cells are made where the function begins: in a loop each turn would make another.
        self._entry, self._first = self._function.append_block(), self._function.append_block()
        self._b = IRBuilder(self._function, self._entry)
        self._b.position_at_end(self._first)
        self._cells: dict[str, Value] = {}
        self._loops: list[tuple[Block, Block]] = []  # where `continue` and `break` lead

    def build(self) -> None:
        """Translate the whole function."""
        for arg, value in zip(_parameters(self._tree), self._function.args, strict=True):
            self._b.store(value, self._cell(arg.arg, value.type))
        self._statements(self._tree.body)
        if not self._b.block.is_terminated:
            # The end of a function that returns nothing, or a block that nothing leads to: it is not written.
            self._b.ret(0)
        self._b.position_at_end(self._entry)
        self._b.branch(self._first)

    def _cell(self, name: str, kind: Type = I64) -> Value:
        if name not in self._cells:
            here = self._b.block
            self._b.position_at_end(self._entry)
            self._cells[name] = self._b.alloca(kind)
            self._b.position_at_end(here)
        return self._cells[name]

    def _statements(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self._b.block.is_terminated:
                return  # after `return`, `break` or `continue`
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=elements)):
                numbers = [self._number(element) for element in elements]
                for target, number in zip(targets, numbers, strict=True):
                    self._store(target, number)
            case ast.Assign(targets=[target], value=value):
                self._store(target, self._number(value))
            case ast.AugAssign(target=target, op=op, value=value):
                # The target once more, but as something that is read: the syntax tree has it as written to.
                load = ast.parse(ast.unparse(target), mode="eval").body
                self._store(target, self._number(ast.BinOp(load, op, value)))
            case ast.If(test=ast.Attribute(value=ast.Name(id="spec" as name), attr=attribute)):
                self._statements(statement.body if self._member(name, attribute) else statement.orelse)
            case ast.If(test=test, body=body, orelse=orelse):
                self._branches(test, (partial(self._statements, body), partial(self._statements, orelse)))
            case ast.While(test=test, body=body, orelse=[]):
                self._loop(test, body, None)
            case ast.For(
                target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=ends), body=body
            ):
                self._for(name, ends, body)
            case ast.Return(value=value):
                self._b.ret(0 if value is None else self._number(value))
            case ast.Break():
                self._b.branch(self._loops[-1][1])
            case ast.Continue():
                self._b.branch(self._loops[-1][0])
            # Docstrings: kernels are Python, and read as such.
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call() as call):
                self._value(call)
            case _:
                raise NotAKernel(ast.unparse(statement))

    def _store(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self._b.store(value, self._cell(name, value.type))
            case ast.Subscript(value=array, slice=index):
                place = self._place(array, index)
                self._b.store(self._b.trunc(value, pointee(place)), place)
            case _:
                raise NotAKernel(ast.unparse(target))

    def _place(self, array: ast.expr, index: ast.expr) -> Value:
        """The address of an element."""
        base = self._value(array)
        if not isinstance(base.type, PointerType):
            raise NotAKernel(ast.unparse(array))
        return self._b.gep(base, [self._number(index)])

    def _branches(self, test: ast.expr, codes: Iterable[Callable[[], T]]) -> list[tuple[T, Block]]:
        """Build both ways of a branch: what each gives, and the block where it ends."""
        then, other, after = (self._function.append_block() for _ in range(3))
        self._b.cbranch(self._truth(test), then, other)
        ends = []
        for block, code in zip((then, other), codes, strict=True):
            self._b.position_at_end(block)
            ends.append((code(), self._b.block))
            if not self._b.block.is_terminated:
                self._b.branch(after)
        self._b.position_at_end(after)
        return ends

    def _for(self, name: str, ends: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        first, last = (ast.Constant(0), ends[0]) if len(ends) == 1 else ends
        # The ends are computed once, and the counter is the loop's own, as in Python.
        counter, end = f"{name}.{len(self._cells)}", f"{name}.end.{len(self._cells)}"
        self._b.store(self._number(first), self._cell(counter))
        self._b.store(self._number(last), self._cell(end))
        self._loop(ast.Compare(ast.Name(counter), [ast.Lt()], [ast.Name(end)]), body, (name, counter))

    def _loop(self, test: ast.expr, body: Sequence[ast.stmt], counted: tuple[str, str] | None) -> None:
        head, inside, onward, after = (self._function.append_block() for _ in range(4))
        self._b.branch(head)
        self._b.position_at_end(head)
        self._b.cbranch(self._truth(test), inside, after)
        self._b.position_at_end(inside)
        if counted is not None:
            self._b.store(self._b.load(self._cell(counted[1])), self._cell(counted[0]))
        # `continue` leads to where a counter is counted on, not to the test.
        self._loops.append((onward, after))
        self._statements(body)
        self._loops.pop()
        if not self._b.block.is_terminated:
            self._b.branch(onward)
        self._b.position_at_end(onward)
        if counted is not None:
            counter = self._cell(counted[1])
            self._b.store(self._b.add(self._b.load(counter), ConstantValue(I64, 1)), counter)
        self._b.branch(head)
        self._b.position_at_end(after)

    def _number(self, expression: ast.expr) -> Value:
        value = self._value(expression)
        return value if isinstance(value.type, PointerType) else self._b.zext(value, I64)

    def _truth(self, expression: ast.expr) -> Value:
        value = self._value(expression)
        return value if value.type == I1 else self._b.icmp_signed("!=", value, ConstantValue(value.type, 0))

    def _value(self, expression: ast.expr) -> Value:
        match expression:
            case ast.Constant(value=int(number)):
                return ConstantValue(I64, int(number))
            case ast.Name(id=name) if name in self._cells:
                return self._b.load(self._cells[name])
            case ast.Name(id=name) if type(self._constants.get(name)) is int:
                return ConstantValue(I64, self._constants[name])
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return ConstantValue(I64, self._member(name, attribute))
            case ast.Subscript(value=array, slice=index):
                if isinstance(index, ast.Slice) and index.lower and not (index.upper or index.step):
                    return self._place(array, index.lower)
                return self._b.load(self._place(array, index))
            case ast.BinOp(left=left, op=op, right=right) if word := _ARITHMETIC.get(type(op)):
                a, b = self._number(left), self._number(right)
                result: Value = getattr(self._b, word)(a, b)
                return result
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._b.not_(self._truth(operand))
            case ast.UnaryOp(op=op, operand=operand) if isinstance(op, ast.USub | ast.Invert):
                # The complement is what is left of -1.
                rest = ConstantValue(I64, 0 if isinstance(op, ast.USub) else -1)
                return self._b.sub(rest, self._number(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if word := _COMPARISONS.get(type(op)):
                a, b = self._number(left), self._number(right)
                return self._b.icmp_signed(word, a, b)
            case ast.BoolOp(op=op, values=values):
                return self._choice(isinstance(op, ast.And), values)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                ends = self._branches(test, (partial(self._number, body), partial(self._number, orelse)))
                phi = self._b.phi(I64)
                for end, block in ends:
                    phi.add_incoming(end, block)
                return phi
            case ast.Call(func=func, args=args, keywords=[]):
                return self._call(func, args)
        raise NotAKernel(ast.unparse(expression))

    def _member(self, name: str, attribute: str) -> int:
        """A number of the spec, or a member of an enumeration."""
        constant = self._constants.get(name)
        member = self._given.get(attribute) if name == "spec" else getattr(constant, attribute, None)
        if not isinstance(member, int):
            raise NotAKernel(f"{name}.{attribute}")
        return member

    def _call(self, func: ast.expr, args: Sequence[ast.expr]) -> Value:
        numbers = [self._number(arg) for arg in args if not _is_spec(arg)]
        match func:
            case ast.Name(id=name) if name in self._made:
                return self._b.call(self._made[name], numbers)
            case ast.Name(id=name) if name in INSTRUCTIONS:
                return INSTRUCTIONS[name](self._b, *numbers)
            case ast.Attribute(value=ast.Name(id="spec"), attr=name):
                given = self._given.get(name)
                if isinstance(given, Function):
                    return self._b.call(given, numbers)
        raise NotAKernel(ast.unparse(func))

    def _choice(self, is_and: bool, values: Sequence[ast.expr]) -> Value:
        after = self._function.append_block()
        incoming = []
        for value in values[:-1]:
            truth, onward = self._truth(value), self._function.append_block()
            # The block after the operand, which may have made several: from there the branch is taken.
            incoming.append(self._b.block)
            self._b.cbranch(truth, *((onward, after) if is_and else (after, onward)))
            self._b.position_at_end(onward)
        last, block = self._truth(values[-1]), self._b.block
        self._b.branch(after)
        self._b.position_at_end(after)
        phi, decided = self._b.phi(I1), ConstantValue(I1, int(not is_and))
        for one in incoming:
            phi.add_incoming(decided, one)
        phi.add_incoming(last, block)
        return phi
