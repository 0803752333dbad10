"""The meanings of names under one model: slots of variables, values of constants, sets of all values."""

from __future__ import annotations

from msgspec.structs import replace

from specchk.compile.ground import Ground
from specchk.compile.scope import Scope
from specchk.ir.nodes import Const, Expr, Var
from specchk.ir.program import ElementFold
from specchk.ir.types import Sort, Type, Union, cardinality, has_horizon, item_of, of_shape
from specchk.lang.check import types as lang
from specchk.lang.check.spec import Facts, Ref
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import refusal
from specchk.lang.text.source import Span
from specchk.meaning.values import Values

MAX_UNIVERSE = 1 << 20


class Names:
    """The meanings of all names except properties; `slots` has the variables' positions once they are known.

    `images` are the values that variables of a refined spec have, where these are read under its mapping.
    """

    def __init__(self, ground: Ground, facts: Facts) -> None:
        self.ground = ground
        self.facts = facts
        self.universe = Values()
        self.slots: dict[str, tuple[int, Type]] = {}
        self.images: dict[str, Expr] = {}
        self.listed: list[lang.Type] = []  # types of which all values are listed
        self.owner = ""  # the action or property that is being lowered
        self.folds: list[ElementFold] = []

    def type_of(self, node: tree.Expr, scope: Scope) -> Type:
        """The type of an expression, its bounds evaluated."""
        return self.ground.type(self.facts.type_of(node), scope.home)

    def of(self, node: tree.Expr, ref: Ref, scope: Scope) -> Expr:
        """The expression for a name resolved to `ref`."""
        name, span = ref.name, node.span
        if ref.kind == "local":
            return replace(scope.names[name], span=span)
        if ref.kind == "element":
            sort = of_shape(self.type_of(node, scope), Sort)
            return Const(sort, span, sort.members.index(name))
        if ref.kind == "first":
            return Const(self.ground.sort(name), span, 0)
        home = ref.home
        assert home is not None
        if ref.kind == "variable":
            return self.variable(home.prefix + name, span, scope)
        if ref.kind == "constant":
            kind, value = self.ground.constant(home.prefix + name)
            return Const(kind, span, value)
        if ref.kind == "member":
            return Const(self.type_of(node, scope), span, home.members[name][1])
        if ref.kind == "constructor":
            union = of_shape(self.type_of(node, scope), Union)
            return Const(union, span, (union.index(name), ()))
        self.listed.append(self.facts.type_of(node))
        return self.all_values(self.type_of(node, scope), span)

    def variable(self, full: str, span: Span, scope: Scope) -> Expr:
        """A variable's value, before or after the step."""
        if full in self.images:
            return replace(self.images[full], span=span)
        slot, kind = self.slots[full]
        return Var(kind, span, slot, scope.primed, full)

    def all_values(self, kind: Type, span: Span) -> Expr:
        """The set of all values of a type; `kind` is the set type."""
        item = item_of(kind)
        size = cardinality(item)
        if size > MAX_UNIVERSE:
            hint = "choose smaller constants, or iterate over a set in the state"
            raise refusal("S510", span, f"a set of {size} values is too large to list", hint)
        return Const(kind, span, self.universe.values(item), has_horizon(item))
