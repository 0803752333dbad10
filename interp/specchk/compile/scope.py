"""What names mean where an expression is lowered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specchk.ir.nodes import Expr
from specchk.lang.check.spec import Spec
from specchk.lang.syntax import decls, tree


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean at one place.

    `points` is where coverage of branches is recorded: `branch` in actions, `implication` in
    properties, nothing elsewhere.  `owner` is whose point it is: that of the
    declaration being lowered (None), or (the empty text) that of all uses of a definition together.
    """

    home: Spec
    names: Mapping[str, Expr] = field(default_factory=dict)
    primed: bool = False
    points: str = ""
    owner: str | None = None
    operators: Mapping[str, Closure] = field(default_factory=dict)

    def bind(self, name: str, expr: Expr) -> Scope:
        """The scope in which `name` is bound to `expr`."""
        return replace(self, names={**self.names, name: expr})


@dataclass(frozen=True, slots=True)
class Closure:
    """An operator: the names of its parameters, its text, and what other names in it mean."""

    params: tuple[str, ...]
    lets: tuple[decls.Let, ...]
    body: tree.Expr
    scope: Scope
