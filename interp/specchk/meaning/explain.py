"""Blame: the part of a property that failed, and the values of its bound names.

`blame` walks from a property into the part that decides its value, as a reader would: into the
first false conjunct, the first item that refutes a `forall`, the consequent of an implication whose
antecedent holds, through `not` and inlined definitions.  It stops at a part that is false by itself, shows it
in the words of the property, and the values of its operands.  `false_guards` does so for the guards of
an action.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from specchk.ir import nodes
from specchk.ir.ops import Op
from specchk.ir.program import Action, Program, Property
from specchk.ir.types import Option, Set
from specchk.ir.verify import parts
from specchk.ir.walk import conjuncts
from specchk.lang.text.source import Span
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State, show

_MAX_TEXT = 200
_LONGEST = 60
_NAME = re.compile(r"\w+")
_OUTSIDE_BRACKETS = re.compile(r"[\w.']*")
_BRACKETS = re.compile(r"\([^][(){}]*\)|\[[^][(){}]*\]|\{[^][(){}]*\}")
_NO_BRANCH = "no branch of the action is enabled here"


class Blame(Struct, frozen=True):
    """The reason why a property failed: the part that decided it, with the values of the names in scope.

    `truth` is the value of the part; None where no part decided, and `text` is a reason in words.
    """

    span: Span
    text: str
    bindings: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, str], ...] = ()
    truth: bool | None = None

    @classmethod
    def of(cls, undefined: Undefined) -> Blame:
        """The blame for an undefined expression."""
        return cls(undefined.span, undefined.reason, ())

    @classmethod
    def of_fault(cls, program: Program, fault: Faulty) -> Blame:
        """The blame for an action instance that is undefined, with the name of the instance."""
        params = zip(program.actions[fault.action].params, fault.args_, strict=True)
        bindings = tuple([(param.name, show(value, param.type)) for param, value in params])
        return cls(fault.undefined.span, fault.undefined.reason, bindings)


class _Wording:
    """The text of a part, as seen from the property: parameters of definitions are replaced by arguments.

        def apart(a: Client, b: Client): bool = a == b
        invariant exclusive: forall c, d in holds: apart(c, d)          `a == b` is shown as `c == d`

    If an argument is an atom, lowering has inserted it for the parameter; any other is bound by a `Let`
    whose span is the argument's.
    """

    def __init__(self) -> None:
        self._arguments: dict[int, str] = {}

    def note(self, let: nodes.Let) -> bool:
        """Note the argument of a parameter; returns whether it is one, and short enough to be substituted."""
        text = self.text(let.value)
        is_argument = let.span == let.value.span and not let.local.name.startswith("_")
        if not is_argument or len(text) > _LONGEST:
            return False
        self._arguments[let.local.slot] = text
        return True

    def text(self, expr: nodes.Expr) -> str:
        """The text of an expression, on one line."""
        while isinstance(expr, nodes.Let) and self.note(expr):
            expr = expr.body
        whole, text, moved = expr.span, expr.span.text, 0
        for start, (old, new) in sorted(self._replacements(expr).items()):
            at = start - whole.start + moved
            text = text[:at] + new + text[at + len(old) :]
            moved += len(new) - len(old)
        return " ".join(text.split())

    def _replacements(self, expr: nodes.Expr) -> dict[int, tuple[str, str]]:
        """Replacements, by position, for names in an expression's text that have another meaning there."""
        found: dict[int, tuple[str, str]] = {}
        for node in _own_parts(expr):
            span, new = node.span, self._word(node)
            if _is_within(span, expr.span) and new and _NAME.fullmatch(span.text) and new != span.text:
                is_whole = (span.start, span.end) == (expr.span.start, expr.span.end)
                shown = new if is_whole or _is_atom(new) else f"({new})"
                found.setdefault(span.start, (span.text, shown))
        return found

    def _word(self, node: nodes.Expr) -> str:
        match node:
            case nodes.Local():
                return self._arguments.get(node.slot, "" if node.name.startswith("_") else node.name)
            case nodes.Var():
                return f"{node.name}'" if node.name and node.primed else node.name
        return ""


def _is_within(span: Span, whole: Span) -> bool:
    return span.source is whole.source and whole.start <= span.start and span.end <= whole.end


def _own_parts(expr: nodes.Expr) -> Iterator[nodes.Expr]:
    """An expression and its parts, without those of recursive calls, which are copies of its own text."""
    left = [(expr, False)]
    while left:
        node, is_below = left.pop()
        if is_below and _is_within(expr.span, node.span):
            continue
        yield node
        # What only wraps an expression has its place in the text.
        is_below = is_below or not isinstance(node, nodes.Cover | nodes.Narrow)
        left.extend((part, is_below) for part in reversed(parts(node)))


def _is_atom(text: str) -> bool:
    """Whether a text needs no parentheses inside another: a name, a call or an index."""
    before = None
    while text != before:
        before, text = text, _BRACKETS.sub("", text)
    return _OUTSIDE_BRACKETS.fullmatch(text) is not None


class _Explainer:
    def __init__(self, evaluator: Evaluator, env: list[Any]) -> None:
        self.evaluator = evaluator
        self.env = env
        self.bindings: list[tuple[str, str]] = []
        self.words = _Wording()

    def value(self, expr: nodes.Expr) -> Any:
        return self.evaluator.compile(expr)(self.env)

    def bind(self, local: nodes.Local, value: Any) -> None:
        self.env[self.evaluator.index(local)] = value
        # Names that lowering made up mean nothing to a reader.
        if not local.name.startswith("_"):
            self.bindings.append((local.name, show(value, local.type)))

    def descend(self, expr: nodes.Expr, found: bool) -> Blame:
        """Explain why `expr` evaluates to `found`."""
        match expr:
            case nodes.Cover():
                return self.descend(expr.body, found)
            case nodes.And() | nodes.Or():
                return self._junction(expr, found)
            case nodes.Implies():
                # True, an implication has two reasons and none of them alone; false it has one.
                return self.descend(expr.right, found=False) if not found else self._leaf(expr, found)
            case nodes.Quantifier():
                return self._quantifier(expr, found)
            case nodes.If():
                return self.descend(expr.then if self.value(expr.condition) else expr.orelse, found)
            case nodes.Let():
                value = self.value(expr.value)
                # An expression in place of a parameter needs no value of its own: its operands show theirs.
                if self.words.note(expr):
                    self.env[self.evaluator.index(expr.local)] = value
                else:
                    self.bind(expr.local, value)
                return self.descend(expr.body, found)
            case nodes.Case():
                return self._case(expr, found)
            case nodes.Apply(op=Op.NOT):
                return self.descend(expr.args[0], not found)
        return self._leaf(expr, found)

    def _junction(self, expr: nodes.And | nodes.Or, found: bool) -> Blame:
        if isinstance(expr, nodes.And) is found:
            return self._leaf(expr, found)  # all parts together decide
        for part in expr.parts:
            if bool(self.value(part)) is found:
                return self.descend(part, found)
        return self._leaf(expr, found)

    def _quantifier(self, expr: nodes.Quantifier, found: bool) -> Blame:
        if expr.every is found:
            return self._leaf(expr, found)
        slot = self.evaluator.index(expr.local)
        for item in self.value(expr.domain):
            # The slot without the note: only the item that decides is shown.
            self.env[slot] = item
            if bool(self.value(expr.body)) is found:
                self.bind(expr.local, item)
                return self.descend(expr.body, found)
        return self._leaf(expr, found)

    def _case(self, expr: nodes.Case, found: bool) -> Blame:
        value = self.value(expr.scrutinee)
        tag = len(value) if isinstance(expr.scrutinee.type, Option) else value[0]
        for index, local, body in expr.arms:
            if index == tag:
                if local is not None:
                    self.bind(local, value[-1])
                return self.descend(body, found)
        assert expr.default is not None
        return self.descend(expr.default, found)

    def _leaf(self, expr: nodes.Expr, found: bool) -> Blame:
        values: list[tuple[str, str]] = []
        for part in _operands(expr):
            text = _shortened(self.words.text(part))
            shown = show(self.value(part), part.type)
            # A literal explains nothing by its value.
            if text != shown and (text, shown) not in [*values, *self.bindings]:
                values.append((text, shown))
        text = _shortened(self.words.text(expr))
        return Blame(expr.span, text, tuple(self.bindings), tuple(values), found)


def _operands(expr: nodes.Expr) -> Sequence[nodes.Expr]:
    """The operands that explain a part that failed by itself."""
    if isinstance(expr, nodes.And | nodes.Or):  # all parts together decided
        return [operand for part in expr.parts for operand in _operands(part)]
    if isinstance(expr, nodes.Let):
        return _operands(expr.body)
    if isinstance(expr, nodes.Quantifier) and isinstance(expr.domain.type, Set) and expr.domain.type.keyed:
        return (expr.domain,)  # `k in m`, of a partial map
    if not isinstance(expr, nodes.Apply):
        return ()
    operands: list[nodes.Expr] = []
    for arg in expr.args:
        if isinstance(arg, nodes.Const):
            continue
        operands.append(arg)
        if isinstance(arg, nodes.Apply) and arg.op in (Op.ADD, Op.SUB, Op.MIN, Op.MAX):
            operands.extend(part for part in arg.args if not isinstance(part, nodes.Const))
    return operands


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."


def blame(prop: Property, evaluator: Evaluator, env: Sequence[Any]) -> Blame:
    """Why a property is false in the environment; an undefined part is blamed with its reason."""
    try:
        return _Explainer(evaluator, [*env, *([0] * (prop.locals + 1))]).descend(prop.body, found=False)
    except Undefined as undefined:
        return Blame.of(undefined)


def false_guards(evaluator: Evaluator, action: Action, state: State, args: Sequence[Any]) -> list[Blame]:
    """The false conjuncts of an action's guards above its first choice, as at least one reason."""
    env: list[Any] = [*state, *state, *([0] * (action.locals + len(state) + 1))]
    env[evaluator.first_local : evaluator.first_local + len(args)] = args
    found: list[Blame] = []
    try:
        for stmt in action.body:
            match stmt:
                case nodes.Bind():
                    env[evaluator.index(stmt.local)] = evaluator.compile(stmt.value)(env)
                case nodes.Unwrap():
                    value: Any = evaluator.compile(stmt.value)(env)
                    if not value:
                        return [
                            *found,
                            Blame(stmt.value.span, f"{stmt.value.span.text} != none", (), truth=False),
                        ]
                    env[evaluator.index(stmt.local)] = value[0]
                case nodes.Guard():
                    for part in conjuncts(stmt.condition):
                        if not evaluator.compile(part)(env):
                            prop = Property("guard", action.name, part, action.locals, part.span)
                            found.append(blame(prop, evaluator, env))
                case nodes.Assign():
                    continue  # guards read the state before the step
                case _:
                    # After a choice, guards may depend on what was chosen; those before it are decided.
                    break
    except Undefined as undefined:
        found = found or [Blame.of(undefined)]
    return found or [Blame(action.span, _NO_BRANCH, ())]
