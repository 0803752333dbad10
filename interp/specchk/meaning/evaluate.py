"""THE meaning of expressions.

`Evaluator.compile` turns a core expression into a Python function of an environment, by one rule a
node; every other engine is checked against these rules.  An environment is one flat list:

    [ variables before the step | variables after it | locals ... ]

so that reading any name is one index.  Rules are compositional: a node's is of its parts' values and
nothing else.  Most rules are texts (`texts.joined`), and the text of a node has those of its parts in it,
so that an expression is one function and not one for each node: calls cost more than what they compute.
Where a value does not exist, `Undefined` is raised with the span to blame; a value above a `nat upto`
horizon raises `BeyondHorizon`, which `meaning.step` turns into "this step is not taken".

The meaning of the strict operators is in `meaning.operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import assert_never

from specchk.ir import nodes
from specchk.ir.ranges import without_horizons
from specchk.ir.types import Bag, Int, Map, Option, Record, Seq, Set, Type, Union, show
from specchk.lang.text.source import Source, Span
from specchk.meaning.operators import RULES, TextRule
from specchk.meaning.rules import distinct
from specchk.meaning.texts.joined import (
    MOST_DEEP,
    RuleText,
    applied,
    body_of,
    called,
    filled,
    function_of,
    indented,
    loop,
    named,
)
from specchk.meaning.texts.places import is_put_in_place
from specchk.meaning.undefined import BeyondHorizon, Undefined, fault
from specchk.meaning.values import State, universe

Env = list[nodes.Value]
Check = Callable[[nodes.Value], None]
_NOWHERE = Span(Source("", ""), 0, 0)  # of a fault that is not reported


class Evaluator:
    """Compiles expressions over `variables` state variables; `counts` collects coverage.

    Without `horizons` a `nat upto` has no upper end: for engines that do not enumerate.
    """

    def __init__(self, variables: int, counts: list[int] | None = None, *, horizons: bool = True) -> None:
        self.variables = variables
        self.counts = counts
        self.horizons = horizons
        # Collects the stored numbers above their horizons; None: the first one raises `BeyondHorizon`.
        self.above: list[BeyondHorizon] | None = None
        self.first_local = 2 * variables
        # A subclass that compiles nodes in its own way is to see every node, unless its texts do, too.
        self._joins = type(self).compile is Evaluator.compile
        self._paths: dict[int, RuleText] = {}  # locals that are put in place
        self._level = 0  # of blocks in blocks

    def compile(self, expr: nodes.Expr) -> Callable[[Env], nodes.Value]:
        """The function of an expression."""
        match expr:
            case nodes.Const():
                value = expr.value
                return lambda e: value
            case nodes.Local() if expr.slot in self._paths:
                return function_of(self._paths[expr.slot])
            case nodes.Var() | nodes.Local():
                return itemgetter(self.index(expr))  # as `lambda e: e[index]`, in C
            case nodes.Apply() | nodes.And() | nodes.Or() | nodes.Implies():
                return function_of(self._text(expr))
            case nodes.Cover() if self.counts is None:
                # Explanations evaluate parts again, which must not count as coverage.
                return self.compile(expr.body)
            case nodes.Narrow():
                return function_of(self._narrow(expr))
            case nodes.Collect():
                return body_of(self._gathered(expr))
            case (
                nodes.Quantifier() | nodes.Choose() | nodes.MapOf() | nodes.Let() | nodes.Case() | nodes.If()
            ):
                return body_of(self._lines(expr))
            case nodes.Cover():
                return body_of([RuleText("{}[{}] += 1", (self.counts, expr.point)), *self._rest(expr.body)])
            case _:
                assert_never(expr)

    def of_state(self, expr: nodes.Expr, locals_: int) -> Callable[[State], nodes.Value]:
        """The function of an expression over one state; the next one has the same values, and is not read."""
        function, room = self.compile(expr), [0] * (locals_ + 1)
        return lambda state: function([*state, *state, *room])

    def part(self, expr: nodes.Expr) -> RuleText:
        """A part of an expression as text: either inlined into the whole, or a call of its function."""
        if not self._joins:
            return called(self.compile(expr))
        text = self._text(expr)
        return text if text.depth < MOST_DEEP else called(function_of(text))

    def _text(self, expr: nodes.Expr) -> RuleText:
        """The text of an expression; a call of its function if its rule does not produce text."""
        match expr:
            case nodes.Const():
                return RuleText("{}", (expr.value,))
            case nodes.Local() if expr.slot in self._paths:
                return self._paths[expr.slot]
            case nodes.Var() | nodes.Local():
                return RuleText("e[{}]", (self.index(expr),))
            case nodes.Apply():
                rule = RULES[expr.op]
                if isinstance(rule, TextRule):
                    return rule.text(expr, [self.part(arg) for arg in expr.args])
                return called(rule(expr, [self.compile(arg) for arg in expr.args]))
            case nodes.And() | nodes.Or():
                word = " and " if isinstance(expr, nodes.And) else " or "
                return filled(f"({word.join(['{}'] * len(expr.parts))})", list(map(self.part, expr.parts)))
            case nodes.Implies():
                return filled("(not {} or {})", [self.part(expr.left), self.part(expr.right)])
            case nodes.If():
                three = map(self.part, (expr.then, expr.condition, expr.orelse))
                return filled("({} if {} else {})", list(three))
            case nodes.Narrow():
                return self._narrow(expr)
            case nodes.Cover() if self.counts is None:
                return self._text(expr.body)
            case nodes.Let() if self._joins and is_put_in_place(expr):
                with self._in_place(expr):
                    return self._text(expr.body)
        return called(self.compile(expr))

    def _lines(self, expr: nodes.Expr) -> list[RuleText]:
        """The body of a function that returns an expression's value."""
        match expr:
            case nodes.Quantifier():
                return self._quantifier(expr)
            case nodes.Choose():
                found = filled("if {}: return e[{}]", [self.part(expr.body), self._slot(expr.local)])
                missing = RuleText("{}()", (fault(expr.span, expr.reason),))
                return [*self._loop(expr.local, self.part(expr.domain), [found]), missing]
            case nodes.MapOf():
                return self._map_of(expr)
            case nodes.Case():
                return self._case(expr)
            case nodes.If():
                test = filled("if {}:", [self.part(expr.condition)])
                return [test, *self._inside(expr.then), *self._rest(expr.orelse)]
            case nodes.Let() if self._joins and is_put_in_place(expr):
                with self._in_place(expr):
                    return self._lines(expr.body)
            case nodes.Let():
                binding = filled("e[{}] = {}", [self._slot(expr.local), self.part(expr.value)])
                # No separate function for a name bound after another one.
                return [binding, *self._rest(expr.body)]
        return self._returned(expr)

    def _rest(self, expr: nodes.Expr) -> list[RuleText]:
        """The lines that return an expression's value, placed after others."""
        return self._lines(expr) if self._joins else self._returned(expr)

    def _inside(self, expr: nodes.Expr) -> list[RuleText]:
        """The lines that return an expression's value, in a block of their own."""
        # Python bounds how deep blocks are nested, as it does for expressions.
        if self._level == MOST_DEEP:
            return indented(self._returned(expr))
        self._level += 1
        try:
            return indented(self._rest(expr))
        finally:
            self._level -= 1

    @contextmanager
    def _in_place(self, expr: nodes.Let) -> Iterator[None]:
        """In this context, the value's text replaces the name."""
        self._paths[expr.local.slot] = self._text(expr.value)
        try:
            yield
        finally:
            del self._paths[expr.local.slot]

    def _returned(self, expr: nodes.Expr) -> list[RuleText]:
        return [filled("return {}", [self.part(expr)])]

    def index(self, name: nodes.Var | nodes.Local) -> int:
        """The index of a name's value in the environment."""
        if isinstance(name, nodes.Local):
            return self.first_local + name.slot
        return name.slot + (self.variables if name.primed else 0)

    def _slot(self, local: nodes.Local) -> RuleText:
        return RuleText("{}", (self.index(local),))

    def _loop(self, local: nodes.Local, items: RuleText, lines: Sequence[RuleText]) -> list[RuleText]:
        """The lines of a loop that assigns each item to a local."""
        return loop(self.index(local), items, lines)

    def _quantifier(self, expr: nodes.Quantifier) -> list[RuleText]:
        condition = "not {}" if expr.every else "{}"
        test = filled(f"if {condition}: return {not expr.every}", [self.part(expr.body)])
        return [*self._loop(expr.local, self.part(expr.domain), [test]), RuleText(f"return {expr.every}")]

    def _items(self, expr: nodes.Collect) -> Callable[[Env], Iterator[nodes.Value]]:
        """The values of the body for every choice of the binders."""
        slots = [self.index(local) for local, _ in expr.binders]
        domains = [self.compile(domain) for _, domain in expr.binders]
        condition = self.compile(expr.condition) if expr.condition is not None else None
        body = self.compile(expr.body)

        def items(e: Env, depth: int = 0) -> Iterator[nodes.Value]:
            if depth == len(slots):
                if condition is None or condition(e):
                    yield body(e)
                return
            for e[slots[depth]] in domains[depth](e):  # type: ignore[union-attr]
                yield from items(e, depth + 1)

        return items

    def _gathered(self, expr: nodes.Collect) -> list[RuleText]:
        """A loop that collects values: over one binder's domain, or over a generator of those of several."""
        if len(expr.binders) > 1:
            begin, lines, end = _gathering(expr, RuleText("item"))
            return [begin, filled("for item in {}:", [called(self._items(expr))]), *indented(lines), end]
        ((local, domain),) = expr.binders
        begin, lines, end = _gathering(expr, self.part(expr.body))
        if expr.condition is not None:
            lines = [filled("if {}:", [self.part(expr.condition)]), *indented(lines)]
        return [begin, *self._loop(local, self.part(domain), lines), end]

    def _map_of(self, expr: nodes.MapOf) -> list[RuleText]:
        assert isinstance(expr.type, Map)
        # Of the type: lowering refuses a comprehension over any other domain.
        keys = RuleText("{}", (tuple(sorted(universe(expr.type.key))),))
        append = filled("out.append({})", [self.part(expr.body)])
        return [RuleText("out = []"), *self._loop(expr.local, keys, [append]), RuleText("return tuple(out)")]

    def _case(self, expr: nodes.Case) -> list[RuleText]:
        # `()` is none and `(x,)` is some: the length is the variant.
        is_option = isinstance(expr.scrutinee.type, Option)
        lines = [
            filled("value = {}", [self.part(expr.scrutinee)]),
            RuleText("tag = len(value)" if is_option else "tag = value[0]"),
        ]
        arms = [(tag, local, body) for tag, local, body in expr.arms]
        if expr.default is not None:
            arms.append((-1, None, expr.default))
        # The last one without a test: one of them matches (`lang.check`).
        for tag, local, body in arms[:-1]:
            lines += [RuleText(f"if tag == {tag}:"), *indented(self._content(local)), *self._inside(body)]
        _, local, body = arms[-1]
        return [*lines, *self._content(local), *self._rest(body)]

    def _content(self, local: nodes.Local | None) -> list[RuleText]:
        return [filled("e[{}] = value[-1]", [self._slot(local)])] if local is not None else []

    def _narrow(self, expr: nodes.Narrow) -> RuleText:
        # Without horizons only the lower end is left to check.
        kind = expr.type if self.horizons else without_horizons(expr.type)
        check, body, above = checker(kind, expr.span), self.part(expr.body), self.above

        def checked(value: nodes.Value) -> nodes.Value:
            try:
                check(value)
            except BeyondHorizon as beyond:
                if above is None:
                    raise
                above.append(beyond)
            return value

        # Most are numbers within their ends.
        if isinstance(kind, Int):
            ends = (RuleText("{}", (kind.low,)), RuleText("{}", (kind.high,)))
            code = "({}(x) if (x := {}) < {} or x > {} else x)"
            return named(code, [RuleText("{}", (checked,)), body, *ends])
        return applied(checked, [body])


def _gathering(expr: nodes.Collect, body: RuleText) -> tuple[RuleText, list[RuleText], RuleText]:
    """The lines before a loop that collects values, those for each value, and those after the loop."""
    match expr.gather:
        case nodes.Gather.SET:
            # Of the items themselves, which are ascending and each there once, as in their domain.
            is_part = len(expr.binders) == 1 and expr.body == expr.binders[0][0]
            end = RuleText("return tuple(out)") if is_part else RuleText("return {}(out)", (distinct,))
            return RuleText("out = []"), [filled("out.append({})", [body])], end
        case nodes.Gather.SUM:
            return RuleText("out = 0"), [filled("out = out + {}", [body])], RuleText("return out")
    compare = "<" if expr.gather is nodes.Gather.MIN else ">"
    choose = RuleText(f"if out is None or new {compare} out: out = new")
    empty = fault(expr.span, f"`{expr.gather.name.lower()}` of an empty collection")
    end = RuleText("return {}() if out is None else out", (empty,))
    return RuleText("out = None"), [filled("new = {}", [body]), choose], end


def checker(kind: Type, span: Span) -> Check:
    """A function that raises if a value is outside the type's ranges and limits."""
    match kind:
        case Int():
            return _check_int(kind, span)
        case Option() | Set():
            return _check_each([checker(kind.item, span)], span, repeat=True)
        case Map():
            return _check_each([checker(kind.value, span)], span, repeat=True)
        case Seq() | Bag():
            return _check_each([checker(kind.item, span)], span, limit=kind.limit, repeat=True)
        case Record():
            return _check_each([checker(item, span) for _, item in kind.fields], span)
        case Union():
            by_tag = [checker(record, span) for _, record in kind.variants]
            return lambda value: by_tag[value[0]](value[1])  # type: ignore[index]
    return lambda value: None


def misfit(kind: Type) -> Callable[[nodes.Value], bool | None]:
    """A function that describes how a value of the type's shape is outside the type's ranges and limits.

    None: it is not; True: it leaves horizons only; False: another end or a limit.
    """
    check = checker(kind, _NOWHERE)

    def found(value: nodes.Value) -> bool | None:
        try:
            check(value)
        except Undefined:
            return False
        except BeyondHorizon:
            return True
        return None

    return found


def _check_int(kind: Int, span: Span) -> Check:
    low, high, horizon = kind.low, kind.high, kind.horizon

    def check(value: nodes.Value) -> None:
        # In this order: below the range is a mistake even where the upper end is only a horizon.
        if value < low or (value > high and not horizon):  # type: ignore[operator]
            raise Undefined(span, f"{value} is outside {show(kind)}")
        if value > high:  # type: ignore[operator]
            raise BeyondHorizon

    return check


def _check_each(parts: list[Check], span: Span, limit: int | None = None, *, repeat: bool = False) -> Check:
    def check(value: nodes.Value) -> None:
        assert isinstance(value, tuple)
        beyond: BeyondHorizon | None = None
        if limit is not None and len(value) > limit:
            raise Undefined(span, f"{len(value)} items do not fit a limit of {limit}")
        for index, item in enumerate(value):
            # Undefined if one part is, whatever others are above horizons: in any order of parts.
            try:
                parts[0 if repeat else index](item)
            except BeyondHorizon as above:
                beyond = above
        if beyond is not None:
            raise beyond

    return check
