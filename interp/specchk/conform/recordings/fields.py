"""The values of a spec's expressions in states, and whether they are as a recording shows them.

An expression is compiled once.  Of successive states most have the same values in the few variables that an
expression reads, so its last value is kept with these, and computed again only where they differ.

Not here: which states there are (`validate`).
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from specchk.compile.instantiate import Instance
from specchk.conform.contract.tracing import Seen
from specchk.conform.contract.values import NotAValue, raw
from specchk.ir.nodes import Expr, Var
from specchk.ir.types import Type
from specchk.ir.walk import inside
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State

_SCALARS = frozenset({int, bool, str, type(None)})
_UNREAD = object()


class ShownExpression:
    """A compiled expression of the spec, with its last value and the values that it was compared with."""

    def __init__(self, expr: Expr, locals_: int, evaluator: Evaluator) -> None:
        self.type: Type = expr.type
        self._locals = [0] * locals_
        self._evaluate = evaluator.compile(expr)
        slots = sorted({node.slot for node in inside(expr) if isinstance(node, Var)})
        self._read = itemgetter(*slots) if slots else lambda state: ()
        self._parts: Any = _UNREAD
        self._value: Any = None
        self._raw: dict[Any, Any] = {}

    def agrees(self, state: State, shown: Any) -> bool:
        """Whether a plain value is the expression's in a state: as `wanted` and `value`, in one call."""
        key = (shown.__class__, shown) if shown.__class__ in _SCALARS else _key(shown)
        wanted = self._raw.get(key, _UNREAD)
        if wanted is _UNREAD:
            wanted = self.wanted(shown)
        parts = self._read(state)
        if parts is not self._parts and parts != self._parts:
            self._evaluate_in(state, parts)
        return bool(wanted == self._value)

    def value(self, state: State) -> Any:
        """The value in a state; None where it is undefined."""
        parts = self._read(state)
        if parts is not self._parts and parts != self._parts:
            self._evaluate_in(state, parts)
        return self._value

    def _evaluate_in(self, state: State, parts: Any) -> None:
        # The state twice, since compiled code has the values after a step behind those before it.
        env: list[Any] = [*state, *state, *self._locals]
        try:
            self._value = self._evaluate(env)
        except Undefined:
            self._value = None
        self._parts = parts

    def wanted(self, value: Any) -> Any:
        """The spec's value of a plain one; the text of the reason, equal to no value, if it is none."""
        # With its type, since True is 1.
        key = (value.__class__, value) if value.__class__ in _SCALARS else _key(value)
        if key not in self._raw:
            try:
                self._raw[key] = raw(value, self.type)
            except NotAValue as error:
                self._raw[key] = str(error)
        return self._raw[key]


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

    def expression(self, text: str) -> ShownExpression:
        """An expression of the spec, compiled once; a `SpecError` if it is none."""
        known = self._expressions.get(text)
        if known is None:
            known = ShownExpression(*self.instance.expression(text), self.evaluator)
            self._expressions[text] = known
        return known

    def agree(self, state: State, seen: Sequence[Seen]) -> bool:
        """Whether a state is as an event shows it."""
        known = self._expressions
        for _, text, value in seen:
            expression = known.get(text) or self.expression(text)
            if not expression.agrees(state, value):
                return False
        return True
