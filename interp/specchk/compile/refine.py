"""Lowering a refinement: the claim that each step, mapped, is a step of another spec.

The other spec's actions are lowered twice: once as the actions of a separate program, whose steps are the
meaning (`meaning.properties`); and once under the mapping, as a predicate of two of our states (`relation`),
which every engine that checks step invariants can check.

The types of the other spec's variables bound only the images: a value of one of its own steps
that is out of range equals no image.
"""

from __future__ import annotations

from collections.abc import Callable

from specchk.compile.expressions import ExpressionLowering
from specchk.compile.nodes.operators import applied, in_turn
from specchk.compile.relation import Relation
from specchk.compile.scope import Points, Scope
from specchk.compile.statements import StatementLowering
from specchk.compile.store import stored
from specchk.ir.nodes import And, Const, Cover, Expr, Local, Narrow, Or
from specchk.ir.ops import Op
from specchk.ir.program import Action, Program, Property, Refinement
from specchk.ir.ranges import with_ends
from specchk.ir.types import BOOL, Set, Type, has_horizon
from specchk.ir.walk import inside
from specchk.lang.check import types as lang
from specchk.lang.check.spec import Spec
from specchk.lang.syntax import decls


def as_is(expr: Expr, kind: Type) -> Expr:
    """A value stored without a check."""
    return expr


def _within(image: Expr, kind: Type) -> Expr:
    """The image of a variable, checked to be a value of its type."""
    # With an end where the other spec has a horizon: no step of ours is left out because of it.
    checked = stored(image, with_ends(kind))
    # That our horizon is within its range shows nothing where numbers have none.
    if checked is image and has_horizon(image.type) and not has_horizon(kind):
        return Narrow(kind, image.span, image)
    return checked


class RefinementLowering:
    """One `refines` line; `abstract` is the program of the refined spec, `spec` the refining spec.

    `points` are those of the program that refines it: one is for the steps of the other.
    """

    def __init__(
        self, spec: Spec, decl: decls.Refines, abstract: Program, expressions: ExpressionLowering,
        points: Points,
    ) -> None:  # fmt: skip
        self.spec = spec
        self.decl = decl
        self.other = spec.refined[decl.alias]
        self.abstract = abstract
        self.expressions = expressions
        points.owner = decl.alias
        self.point = points.at("refinement", "", decl.span)
        self._lists_horizon = False
        for slot, variable in enumerate(abstract.variables):
            self.expressions.names.slots[self._full(variable.name)] = slot, variable.type

    @property
    def listed(self) -> list[lang.Type]:
        """The types whose values are enumerated; known after lowering."""
        if not self._lists_horizon:
            return []
        params = [param.type for action in self.other.actions.values() for param in action.params]
        declared = self.expressions.facts.declared
        return [*self.expressions.names.listed, *[declared[id(node)] for node in params]]

    def _full(self, name: str) -> str:
        return self.other.prefix + name

    def lower(self) -> Refinement:
        """The refinement as a predicate of two states, and as a predicate of an initial state."""
        span = self.decl.span
        initial = self._under(self._images(primed=False), [], self._begins)
        images = self._images(primed=False)
        body = self._under(images, self._images(primed=True), self._steps)
        self._lists_horizon = any(isinstance(p, Const) and p.ends_at_horizon for p in inside(body))
        count, name = self.expressions.next_local, self.decl.alias
        begins = Property("refinement", name, initial, count, span)
        return Refinement(
            "refinement", name, body, count, span, tuple(images), begins, self.abstract, self.point
        )

    def _images(self, *, primed: bool) -> list[Expr]:
        values = {binding.name.full: binding.value for binding in self.decl.mapping}
        scope = Scope(self.spec, primed=primed)
        return [
            _within(self.expressions.lower(values[variable.name], scope), variable.type)
            for variable in self.abstract.variables
        ]

    def _under(
        self, before: list[Expr], after: list[Expr], body: Callable[[list[Expr], list[Expr]], Expr]
    ) -> Expr:
        """A predicate with the images evaluated once and bound as the refined spec's variables."""
        names = [variable.name for variable in self.abstract.variables]

        def bound(*images: Expr) -> Expr:
            first, second = [*images[: len(names)]], [*images[len(names) :]]
            self.expressions.names.images = dict(zip(map(self._full, names), first, strict=True))
            inner = body(first, second)
            self.expressions.names.images = {}
            return inner

        # Of an initial state only the first ones are there.
        pairs = zip(names * 2, [*before, *after], strict=False)
        return in_turn(self.expressions.let, [(name, image, image.span) for name, image in pairs], bound)

    def _begins(self, images: list[Expr], _: list[Expr]) -> Expr:
        span, scope = self.decl.span, Scope(self.other)
        parts: list[Expr] = [Const(BOOL, span, True)]
        # Lowered here and not taken from the other program, of which other locals have the same slots.
        for image, decl, variable in zip(
            images, self.other.variables.values(), self.abstract.variables, strict=True
        ):
            # No image is above a horizon: an initial value there is a fault, as one out of range is.
            kind = with_ends(variable.type)
            if decl.initial is not None:
                value = stored(self.expressions.lower(decl.initial, scope), kind)
                parts.append(applied(value.span, Op.EQ, image, value))
            elif decl.choices is not None:
                among = stored(self.expressions.lower(decl.choices, scope), Set(kind))
                parts.append(applied(among.span, Op.IN_SET, image, among))
        lower = self.expressions.conjunction
        parts += [lower(init.lets, init.conjuncts, scope, init.span) for init in self.other.inits]
        return And(BOOL, span, tuple(parts))

    def _steps(self, before: list[Expr], after: list[Expr]) -> Expr:
        relation = Relation(self.expressions, before, after)
        actions = [self._action(decl) for decl in self.other.actions.values()]
        ways = [relation.of(action, [self._values(param) for param in action.params]) for action in actions]
        span = self.decl.span
        # Reached where the images differ: with images that never do, any spec is refined.
        taken = Cover(BOOL, span, self.point, Or(BOOL, span, tuple(ways)))
        return Or(BOOL, span, (relation.same(span), taken))

    def _action(self, decl: decls.Action) -> Action:
        scope = Scope(self.other)
        params: list[Local] = []
        for param in decl.params:
            kind = self.expressions.ground.declared(param.type, self.other)
            params.append(self.expressions.local(param.name, kind, param.span))
            scope = scope.bind(param.name, params[-1])
        body = StatementLowering(self.expressions, as_is).block(decl.body, scope)
        return Action(decl.name, tuple(params), body, self.expressions.next_local, 0, decl.span)

    def _values(self, param: Local) -> Expr:
        values = self.expressions.names.universe.values(param.type)
        return Const(Set(param.type), param.span, values, has_horizon(param.type))
