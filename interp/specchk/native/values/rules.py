"""The common part of operator rules: a rule takes an application and builds its value.

It evaluates its arguments itself, left to right, so that `x in lo..hi` and the like never build the set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from specchk.codegen import ir
from specchk.ir.nodes import Apply, Expr
from specchk.ir.types import Type
from specchk.native.machine.asm import Asm, Val
from specchk.native.values.domains import Domains
from specchk.native.values.fitting import Fitting


class Emitter(Protocol):
    """The part of the expression emitter that rules need."""

    asm: Asm
    codes: Fitting
    domains: Domains
    undefined: ir.Block

    def value(self, expr: Expr) -> Val:
        """The held value of an expression, of its own type."""

    def of_type(self, expr: Expr, kind: Type) -> Val:
        """The held value of an expression as a value of a wider type."""

    def by_rule(self, expr: Apply, values: Sequence[Val]) -> Val:
        """The held value of an application to these values by its rule on the page of rules."""


Rule = Callable[[Emitter, Apply], Val]


def args_of(e: Emitter, expr: Apply) -> list[Val]:
    """The held values of an application's arguments."""
    return [e.value(arg) for arg in expr.args]
