"""Expressions in TLA+: a rule for each node of the core.

Range checks have no form of their own: `TypeOK` and `InHorizon` of the module say the same of the states.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import assert_never

from specchk.ir import nodes
from specchk.ir.totality import is_total
from specchk.ir.types import Option, Union, of_shape
from specchk.ir.verify import results
from specchk.ir.walk import conjuncts
from specchk.meaning.reading import read
from specchk.report.tla.layout import (
    Tight,
    Tla,
    at_least,
    atom,
    bracketed,
    call,
    clause,
    compared,
    implied,
    indexed,
    junction,
    let,
    quantified,
)
from specchk.report.tla.operators import RULES, sum_of
from specchk.report.tla.types import Types

WORD = re.compile(r"\w+")
Scope = Mapping[int, Tla]  # the texts of the locals that are bound, by slot


class Expressions:
    """Expressions over a module's variables; `variables` are their names, by slot."""

    def __init__(self, types: Types, variables: tuple[str, ...]) -> None:
        self.types = types
        self.variables = variables

    def bind(self, local: nodes.Local, scope: Scope) -> tuple[str, Scope]:
        """A name for a local, and the scope in which it is bound."""
        name = self.types.names.local(local.name, self.around(scope))
        return name, {**scope, local.slot: atom(name)}

    @staticmethod
    def around(scope: Scope) -> list[str]:
        """The names that are bound in a scope, and those in the texts of its names."""
        return [word for text in scope.values() for line in text.lines for word in WORD.findall(line)]

    def expr(self, expr: nodes.Expr, scope: Scope) -> Tla:
        """The text of an expression."""
        match expr:
            case nodes.Const():
                return self.types.value(expr.value, expr.type)
            case nodes.Var():
                return atom(self.variables[expr.slot] + "'" * expr.primed)
            case nodes.Local():
                return scope[expr.slot]
            case nodes.Apply():
                if expr.op not in RULES:
                    return self._by_rule(expr, scope)
                return RULES[expr.op](self.types, expr, [self.expr(arg, scope) for arg in expr.args])
            case nodes.And():
                return junction("/\\", [self.expr(part, scope) for part in expr.parts], "TRUE")
            case nodes.Or():
                return junction("\\/", [self.expr(part, scope) for part in expr.parts], "FALSE")
            case nodes.Implies():
                left, right = self.expr(expr.left, scope), self.expr(expr.right, scope)
                return implied(left, right)
            case nodes.If():
                three = [self.expr(part, scope) for part in (expr.condition, expr.then, expr.orelse)]
                return clause(list(zip(("IF ", "THEN ", "ELSE "), three, strict=True)))
            case nodes.Let():
                name, inner = self.bind(expr.local, scope)
                return let(name, self.expr(expr.value, scope), self.expr(expr.body, inner))
            case nodes.Narrow() | nodes.Cover():
                return self.expr(expr.body, scope)
            case nodes.Case():
                return self._case(expr, scope)
            case nodes.Quantifier() | nodes.Choose() | nodes.Collect() | nodes.MapOf():
                return self._bound(expr, scope)
        assert_never(expr)

    def _by_rule(self, expr: nodes.Apply, scope: Scope) -> Tla:
        """As the page of rules has it, but for where there is no value: TLA+ has an unknown one there."""
        args = {slot: self.expr(arg, scope) for slot, arg in enumerate(expr.args)}
        # The rule's own names differ from all around it: TLA+ lets no name hide another.
        outer = {-1 - number: text for number, text in enumerate(scope.values())}
        return self.expr(read(expr)[1], {**outer, **args})

    def _bound(
        self, expr: nodes.Quantifier | nodes.Choose | nodes.Collect | nodes.MapOf, scope: Scope
    ) -> Tla:
        match expr:
            case nodes.Quantifier():
                return self.each("\\A" if expr.every else "\\E", expr.local, expr.domain, scope, expr.body)
            case nodes.Choose():
                return self._choose(expr, scope)
            case nodes.MapOf():
                name, inner = self.bind(expr.local, scope)
                keys = self.types.all_of(expr.local.type)
                return clause(
                    [(f"[{name} \\in ", keys), ("|-> ", self.expr(expr.body, inner))], "]", Tight.ATOM
                )
            case nodes.Collect():
                return self._collect(expr, scope)
        assert_never(expr)

    def each(self, word: str, local: nodes.Local, domain: nodes.Expr, scope: Scope, body: nodes.Expr) -> Tla:
        """A quantifier."""
        name, inner = self.bind(local, scope)
        return quantified(f"{word} {name} \\in ", self.domain(domain, scope), self.expr(body, inner))

    def domain(self, domain: nodes.Expr, scope: Scope) -> Tla:
        """The set over which a name ranges."""
        return at_least(self.expr(domain, scope), Tight.INFIX)

    def _choose(self, expr: nodes.Choose, scope: Scope) -> Tla:
        name, inner = self.bind(expr.local, scope)
        domain, test = self.domain(expr.domain, scope), self.expr(expr.body, inner)
        if expr.unique:
            return quantified(f"CHOOSE {name} \\in ", domain, test)
        # The first one: specchk has an order of values, TLA+ an arbitrary choice.
        other, outer = self.bind(expr.local, inner)
        after = self.types.at_most(expr.local.type, atom(name), atom(other), expr.span)
        rest = implied(self.expr(expr.body, outer), after)
        least = quantified(f"\\A {other} \\in ", domain, rest)
        return quantified(f"CHOOSE {name} \\in ", domain, junction("/\\", [test, least], "TRUE"))

    def _case(self, expr: nodes.Case, scope: Scope) -> Tla:
        value = self.expr(expr.scrutinee, scope)
        if isinstance(expr.scrutinee, nodes.Var | nodes.Local):
            return self._arms(expr, value, scope)
        # Named, since each arm reads it; the slot is one that no local has.
        name = self.types.names.local("matched", self.around(scope))
        return let(name, value, self._arms(expr, atom(name), {**scope, -1 - len(scope): atom(name)}))

    def _arms(self, expr: nodes.Case, value: Tla, scope: Scope) -> Tla:
        arms = [(tag, local, body) for tag, local, body in expr.arms]
        if expr.default is not None:
            arms.append((-1, None, expr.default))
        texts = []
        for tag, local, body in arms:
            if local is None:
                texts.append(self.expr(body, scope))
                continue
            name, inner = self.bind(local, scope)
            texts.append(let(name, self._content(expr, tag, value), self.expr(body, inner)))
        # The last one without a test: one of them matches (`lang.check`).
        text = texts.pop()
        for (tag, _, _), arm in zip(reversed(arms[:-1]), reversed(texts), strict=True):
            text = clause([("IF ", self._is_tag(expr, tag, value)), ("THEN ", arm), ("ELSE ", text)])
        return text

    def _is_tag(self, expr: nodes.Case, tag: int, value: Tla) -> Tla:
        kind = expr.scrutinee.type
        if isinstance(kind, Option):
            return self.types.is_some(value) if tag else compared(value, "=", self.types.none)
        own = atom(self.types.tag(of_shape(kind, Union), tag))
        return compared(call("VariantTag", value), "=", own)

    def _content(self, expr: nodes.Case, tag: int, value: Tla) -> Tla:
        kind = expr.scrutinee.type
        if isinstance(kind, Option):
            return indexed(value, atom("1"))
        return call("VariantGetUnsafe", atom(self.types.tag(of_shape(kind, Union), tag)), value)

    # Conditions of actions

    def condition(self, expr: nodes.Expr, scope: Scope) -> list[Tla]:
        """The conjuncts of a condition in an action or of an initial state.

        There TLC takes a disjunction for a choice between steps, and evaluates each part of it, also behind
        one that is true.  Where such a part may have no value, the condition is compared with TRUE.
        """
        texts = []
        for part in conjuncts(expr):
            text = self.expr(part, scope)
            texts.append(compared(text, "=", atom("TRUE")) if _is_choice(part) else text)
        return texts

    # Collections

    def _collect(self, expr: nodes.Collect, scope: Scope) -> Tla:
        if expr.gather is nodes.Gather.SUM:
            return self._sum(expr, scope)
        items = self._set_of(list(expr.binders), expr.condition, expr.body, scope)
        if expr.gather is nodes.Gather.SET:
            return items
        helper = "SetMin" if expr.gather is nodes.Gather.MIN else "SetMax"
        return call(self.types.helpers.use(helper), items)

    def _set_of(
        self, binders: list[tuple[nodes.Local, nodes.Expr]], condition: nodes.Expr | None,
        body: nodes.Expr | Callable[[Scope], Tla], scope: Scope,
    ) -> Tla:  # fmt: skip
        """The set of the values of a body; of several binders a later domain may have the earlier names."""
        (local, domain), *rest = binders
        name, inner = self.bind(local, scope)
        items = self.domain(domain, scope)
        if rest:
            part = self._set_of(rest, condition, body, inner)
            return clause([("UNION {", part), (f": {name} \\in ", items)], "}", Tight.ATOM)
        if condition is not None:
            items = clause([(f"{{{name} \\in ", items), (": ", self.expr(condition, inner))], "}", Tight.ATOM)
        if body == local:
            if condition is not None or items.level == Tight.ATOM:
                return items
            return at_least(items, Tight.ATOM)
        made = body(inner) if callable(body) else self.expr(body, inner)
        return clause([("{", made), (f": {name} \\in ", items)], "}", Tight.ATOM)

    def _sum(self, expr: nodes.Collect, scope: Scope) -> Tla:
        """The sum over all choices of the binders: equal values count each."""
        locals_ = [local for local, _ in expr.binders]
        if len(locals_) == 1:
            choices = self._set_of(list(expr.binders), expr.condition, locals_[0], scope)
            name, inner = self.bind(locals_[0], scope)
        else:
            choices = self._set_of(
                list(expr.binders), expr.condition,
                lambda within: bracketed("<<", [within[local.slot] for local in locals_], ">>"), scope,
            )  # fmt: skip
            name = self.types.names.local("each", self.around(scope))
            places = {local.slot: indexed(atom(name), atom(str(n))) for n, local in enumerate(locals_, 1)}
            inner = {**scope, -1 - len(scope): atom(name), **places}
        each = clause([(f"[{name} \\in ", choices), ("|-> ", self.expr(expr.body, inner))], "]", Tight.ATOM)
        return sum_of(self.types, expr.type, each)


def _is_choice(expr: nodes.Expr) -> bool:
    """Whether a condition has a disjunction, for TLC a choice, of which a part may have no value."""
    match expr:
        case nodes.Or() | nodes.Quantifier(every=False):
            return not is_total(expr)
        case nodes.And():
            return any(map(_is_choice, expr.parts))
        case nodes.Implies():
            return _is_choice(expr.right)
        case nodes.Quantifier():
            return _is_choice(expr.body)
    return any(map(_is_choice, results(expr)))
