"""The values of a spec's expressions in states, and whether they are as a recording shows them.

An expression is compiled once.  Of successive states most have the same values in the few variables that an
expression reads, so its last value is kept with these, and computed again only where they differ.

Not here: which states there are (`validate`).
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from specchk.compile.instantiate import Instance
from specchk.conform.contract.tracing import Seen
from specchk.conform.contract.values import NotAValue, raw
from specchk.ir.nodes import Expr, Var
from specchk.ir.types import Bool, Int, Type
from specchk.ir.walk import inside
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State

_SCALARS = frozenset({int, bool, str, type(None)})
_UNREAD = object()


class ShownExpression:
    """A compiled expression of the spec, with its last value and the values that it was compared with.

    Of a number and a truth the plain value is the spec's; `own` is its class, and None of other types.
    """

    __slots__ = ("_environment", "_evaluate", "_raw", "last", "own", "parts", "read", "type")

    def __init__(self, expr: Expr, evaluator: Evaluator, environment: Callable[[State], list[Any]]) -> None:
        self.type: Type = expr.type
        self.own: type | None = (
            int if isinstance(expr.type, Int) else bool if isinstance(expr.type, Bool) else None
        )
        self._environment = environment
        self._evaluate = evaluator.compile(expr)
        slots = sorted({node.slot for node in inside(expr) if isinstance(node, Var)})
        self.read: Callable[[State], Any] = itemgetter(*slots) if slots else lambda state: ()
        self.parts: Any = _UNREAD
        self.last: Any = None
        self._raw: dict[Any, Any] = {}

    def value(self, state: State) -> Any:
        """The value in a state; None where it is undefined."""
        parts = self.read(state)
        if parts is not self.parts and parts != self.parts:
            self.evaluate_in(state, parts)
        return self.last

    def evaluate_in(self, state: State, parts: Any) -> None:
        """Compute the last value again, in a state with these values of what the expression reads."""
        try:
            self.last = self._evaluate(self._environment(state))
        except Undefined:
            self.last = None
        self.parts = parts

    def wanted(self, value: Any) -> Any:
        """The spec's value of a plain one; the text of the reason, equal to no value, if it is none."""
        # With its type, since True is 1.
        key = (value.__class__, value) if value.__class__ in _SCALARS else _key(value)
        known = self._raw.get(key, _UNREAD)
        if known is _UNREAD:
            try:
                known = raw(value, self.type)
            except NotAValue as error:
                known = str(error)
            self._raw[key] = known
        return known


def _key(value: Any) -> bytes | str:
    """What distinguishes values that may have no hash, by the types of their parts as well."""
    try:
        # A third of the time of a text; version 2 knows no references, so that equal values have equal bytes.
        return marshal.dumps(value, 2)
    except ValueError:  # an object of some class
        return repr(value)


class Fields:
    """The expressions that recordings show of one program."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.evaluator = Evaluator(len(instance.program.variables))
        self._expressions: dict[str, ShownExpression] = {}
        self._locals = 0
        self._state: State | None = None
        self._env: list[Any] = []

    def expression(self, text: str) -> ShownExpression:
        """An expression of the spec, compiled once; a `SpecError` if it is none."""
        known = self._expressions.get(text)
        if known is None:
            expr, count = self.instance.expression(text)
            if count > self._locals:
                self._locals, self._state = count, None
            known = ShownExpression(expr, self.evaluator, self._environment)
            self._expressions[text] = known
        return known

    def _environment(self, state: State) -> list[Any]:
        """That of a state, one for all expressions: none reads a local that it has not bound."""
        if state is not self._state:
            # The state twice, since compiled code has the values after a step behind those before it.
            self._env = [*state, *state, *([0] * self._locals)]
            self._state = state
        return self._env

    def agree(self, state: State, seen: Sequence[Seen]) -> bool:
        """Whether a state is as an event shows it."""
        expressions = self._expressions
        # `wanted` and `value` in place: an event shows some fifteen fields, and a call takes longer.
        for _, text, value in seen:
            shown = expressions.get(text) or self.expression(text)
            parts = shown.read(state)
            if parts is not shown.parts and parts != shown.parts:
                shown.evaluate_in(state, parts)
            # A number out of the type's range is no value of it, and equal to none.
            wanted = value if value.__class__ is shown.own else shown.wanted(value)
            if wanted != shown.last:
                return False
        return True
