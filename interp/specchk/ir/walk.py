"""Walking programs: every expression, in evaluation order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from specchk.ir.nodes import And, Assign, Bind, Block, Choice, Either, Expr, Guard, Stmt, Unwrap, When
from specchk.ir.program import Program, Same
from specchk.ir.verify import judged, parts


def expressions(program: Program) -> Iterator[Expr]:
    """Every expression node of a program's initial values, actions and properties."""
    for start in program.starts:
        for root in (start.value, start.choices):
            if root is not None:
                yield from inside(root)
    for init in program.inits:
        yield from inside(init.body)
    yield from searched(program)


def searched(program: Program) -> tuple[Expr, ...]:
    """Every expression node of a program's actions and properties, without its initial states."""
    return _searched(Same(program))


@lru_cache(maxsize=4)  # a run reads them ten times, and to walk a large program takes 20 ms
def _searched(same: Same) -> tuple[Expr, ...]:
    bodies = [root for action in same.program.actions for root in roots(action.body)]
    bodies += [prop.body for prop in judged(same.program)]
    return tuple(chain.from_iterable(map(inside, bodies)))


def inside(expr: Expr) -> Iterator[Expr]:
    """A node and everything below it."""
    left = [expr]
    while left:  # no generator for each level: every node would pass through all above it
        node = left.pop()
        yield node
        left.extend(reversed(parts(node)))


def conjuncts(condition: Expr) -> list[Expr]:
    """The parts of a conjunction, including nested ones."""
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
        yield from roots_of(stmt)


def roots_of(stmt: Stmt) -> Iterator[Expr]:
    """The outermost expressions of a statement, without those of the blocks inside it."""
    match stmt:
        case Guard() | When():
            yield stmt.condition
        case Bind() | Unwrap():
            yield stmt.value
        case Assign():
            yield from keys_of(stmt)
            yield stmt.value
        case Choice():
            yield stmt.domain


def keys_of(stmt: Assign) -> Iterator[Expr]:
    """The expressions that decide which part of a variable is assigned."""
    yield from (step.key for step in stmt.path if step.key is not None)
