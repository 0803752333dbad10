"""Walking programs: every expression, in evaluation order; and rewriting any part of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from specchk.ir.nodes import And, Assign, Bind, Block, Choice, Either, Expr, Guard, Stmt, Unwrap, When
from specchk.ir.program import Program
from specchk.ir.verify import judged, parts
from specchk.lang.text.source import Span


def expressions(program: Program) -> Iterator[Expr]:
    """Every expression node of a program's initial values, actions and properties."""
    for start in program.starts:
        for root in (start.value, start.choices):
            if root is not None:
                yield from inside(root)
    for init in program.inits:
        yield from inside(init.body)
    yield from searched(program)


def searched(program: Program) -> Iterator[Expr]:
    """Every expression node of a program's actions and properties: all but its initial states."""
    for action in program.actions:
        for root in roots(action.body):
            yield from inside(root)
    for prop in judged(program):
        yield from inside(prop.body)


def inside(expr: Expr) -> Iterator[Expr]:
    """A node and everything below it."""
    yield expr
    for part in parts(expr):
        yield from inside(part)


def conjuncts(condition: Expr) -> list[Expr]:
    """The parts of a conjunction, however nested."""
    if not isinstance(condition, And):
        return [condition]
    return [part for one in condition.parts for part in conjuncts(one)]


def statements(body: Block) -> Iterator[Stmt]:
    """The statements of a block, each followed by those of the blocks inside it."""
    for stmt in body:
        yield stmt
        match stmt:
            case Choice():
                yield from statements(stmt.body)
            case Either():
                for branch in stmt.branches:
                    yield from statements(branch)
            case When():
                yield from statements(stmt.then)
                yield from statements(stmt.orelse)


def assignments(body: Block) -> list[Assign]:
    """Every assignment in a block, in order."""
    return [stmt for stmt in statements(body) if isinstance(stmt, Assign)]


def roots(body: Block) -> Iterator[Expr]:
    """The outermost expressions of a block's statements."""
    for stmt in statements(body):
        match stmt:
            case Guard() | When():
                yield stmt.condition
            case Bind() | Unwrap():
                yield stmt.value
            case Assign():
                yield from (step.key for step in stmt.path if step.key is not None)
                yield stmt.value
            case Choice():
                yield stmt.domain


def rewritten(part: Any, change: Callable[[Any], Any]) -> Any:
    """A part of a program, or a type, with what `change` makes of its parts.

    Of a part for which that is None the parts are rewritten.  What does not change stays the same object.
    """
    new = change(part)
    if new is not None:
        return new
    if isinstance(part, tuple):
        items = [rewritten(item, change) for item in part]
        return tuple(items) if any(a is not b for a, b in zip(items, part, strict=True)) else part
    # Any node of the core, by its fields: a new kind of node needs no line here.
    if is_dataclass(part) and not isinstance(part, Span | type):
        old = {field.name: getattr(part, field.name) for field in fields(part)}
        made = {name: rewritten(value, change) for name, value in old.items()}
        changed = {name: value for name, value in made.items() if value is not old[name]}
        return replace(part, **changed) if changed else part
    return part
