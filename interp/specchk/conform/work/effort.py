"""Work counted as the loops and calls that a test runs, independent of the machine's speed.

A mutant may never end.  A limit in seconds would call the same mutant killed on one machine and not on
another, so the code of mutants is compiled with a count: at the head of each function's
body and of each loop's, and for each item of a comprehension.  Code that runs forever passes one of
these forever, so a test with a limit of work ends at the same place everywhere.

    def drain(queue):               def drain(queue):
        while queue:                    __tick__()
            queue.pop()                 while queue:
                                            __tick__()
                                            queue.pop()

Lines stay where they are.  A hang without running such code (a lock, a sleep, a number with too many
digits) is not detected here; for that a process has its deadline (`forks`), which decides nothing.

Standard library only, because specchk itself is patched this way too.  Not here: how much a test is given
(`mutate`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from msgspec import Struct

TICK = "__tick__"
ENDLESS = 1 << 62  # more than anything does


class TooMuch(BaseException):
    """More work than allowed; not an `Exception`, so that no code in between catches it."""


class WorkMeter(Struct):
    """Counts work; `left` is the remaining allowance, and below zero each count raises `TooMuch`."""

    given: int = ENDLESS
    left: int = ENDLESS

    def tick(self) -> bool:
        """Count one; raises `TooMuch` if nothing is left.  Returns True, for use in conditions."""
        # Counted down and not up: one comparison with zero, without a second number to look up.
        self.left -= 1
        if self.left < 0:
            raise TooMuch(f"it did not end within {self.given} loops and calls")
        return True

    @property
    def done(self) -> int:
        """The work done since the allowance was given."""
        return self.given - self.left

    @property
    def is_over(self) -> bool:
        """Whether more work was done than allowed."""
        return self.left < 0

    @contextmanager
    def giving(self, work: int) -> Iterator[None]:
        """Limit the work inside the block; afterwards it is unlimited."""
        self.given = self.left = work
        try:
            yield
        finally:
            self.given = self.left = ENDLESS


def counted(source: str, path: str) -> CodeType:
    """The code of a module with counting; it requires a `WorkMeter.tick` under the name `TICK`."""
    tree = ast.fix_missing_locations(_Counting().visit(ast.parse(source, path)))
    # Without this module's own `from __future__`, which `compile` would pass on.
    code: CodeType = compile(tree, path, "exec", dont_inherit=True)
    return code


class _Counting(ast.NodeTransformer):
    """Inserts counts into functions, loops and comprehensions."""

    def visit(self, node: ast.AST) -> Any:
        """Count a call, each iteration of a loop, and each item of a comprehension."""
        self.generic_visit(node)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                _count_calls(node)
            case ast.For() | ast.AsyncFor() | ast.While():
                # First in the body, so that a `continue` cannot pass it by.
                node.body.insert(0, _statement(node.body[0]))
            case ast.comprehension():
                # As a condition that is always true: the only place of a comprehension where code runs for
                # each item, before the conditions on it.
                node.ifs.insert(0, _call(node.iter))
        return node


def _count_calls(node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    has_docstring = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
    # A function of a docstring alone does nothing that could be endless.
    if not has_docstring or len(node.body) > 1:
        # After the docstring, which must stay the first statement to be one.
        node.body.insert(has_docstring, _statement(node.body[has_docstring]))


def _call(beside: ast.expr | ast.stmt) -> ast.Call:
    """A count, on the line of the adjacent statement."""
    name = ast.copy_location(ast.Name(TICK, ast.Load()), beside)
    call = ast.copy_location(ast.Call(name, [], []), beside)
    # Coverage by lines must be the same as without the count.
    for node in (name, call):  # one line, however many its neighbour has
        node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
    return call


def _statement(beside: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Expr(_call(beside)), beside)
