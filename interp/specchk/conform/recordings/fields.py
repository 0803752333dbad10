"""The values of a spec's expressions in states, and whether they are as a recording shows them.

An expression is compiled once, and those that events often show together become one function: the record of
their values, which is compared with that of the recorded ones.

Not here: which states there are (`validate`).
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from specchk.compile.instantiate import Instance
from specchk.conform.contract.tracing import Seen
from specchk.conform.contract.values import LASTING, NotAValue, Table, raw
from specchk.ir.nodes import Apply, Expr
from specchk.ir.ops import Op
from specchk.ir.types import Bool, Int, Record, Type
from specchk.lang.text.source import Source, Span
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State

OFTEN = 16  # a function of several expressions takes as long to make as this many uses of it save
MOST_SAME = 1 << 12  # objects of one expression: many times those of recordings
MOST_TOGETHER = 1 << 12  # where fields are missing by chance, nearly every event shows other ones
_SCALARS = frozenset({int, bool, str, type(None)})
_UNREAD = object()
_TEXT = itemgetter(1)  # of a `Seen`
_NOWHERE = Span(Source("", ""), 0, 0)


class ShownExpression:
    """A compiled expression of the spec, with the values that it was compared with.

    Of a number and a truth the plain value is the spec's; `own` is its class, and None of other types.
    """

    __slots__ = ("_fields", "_read", "_same", "evaluate", "expr", "own", "type")

    def __init__(self, expr: Expr, fields: Fields) -> None:
        self.expr = expr
        self.type: Type = expr.type
        self.own: type | None = (
            int if isinstance(expr.type, Int) else bool if isinstance(expr.type, Bool) else None
        )
        self._fields = fields
        self.evaluate = fields.evaluator.compile(expr)
        self._read = fields.read(expr.type)
        self._same: dict[int, tuple[Any, Any]] = {}

    def value(self, state: State) -> Any:
        """The value in a state; None where it is undefined."""
        try:
            return self.evaluate(self._fields.environment(state))
        except Undefined:
            return None

    def wanted(self, value: Any) -> Any:
        """The spec's value of a plain one; the text of the reason, equal to no value, if it is none."""
        # Mostly an object that was given before, since tracings make few; of a class that does not change.
        known = self._same.get(id(value))
        if known is None:
            known = value, self._wanted(value)
            if value.__class__ in LASTING:
                if len(self._same) == MOST_SAME:
                    self._same.clear()
                # With the object itself, so that no other gets its address.
                self._same[id(value)] = known
        return known[1]

    def _wanted(self, value: Any) -> Any:
        # With its type, since True is 1.
        key = (value.__class__, value) if value.__class__ in _SCALARS else _key(value)
        known = self._read.get(key, _UNREAD)
        if known is _UNREAD:
            try:
                known = raw(value, self.type)
            except NotAValue as error:
                known = str(error)
            self._read[key] = known
        return known


def _key(value: Any) -> bytes | str:
    """What distinguishes values that may have no hash, by the types of their parts as well."""
    try:
        # A third of the time of a text; version 2 knows no references, so that equal values have equal bytes.
        return marshal.dumps(dict(value) if isinstance(value, Table) else value, 2)
    except ValueError:  # an object of some class
        return repr(value)


class ShownTogether:
    """The expressions that events show together; often enough, one function of their values."""

    __slots__ = ("_evaluator", "_uses", "_wanted", "expressions", "values")

    def __init__(self, expressions: Sequence[ShownExpression], evaluator: Evaluator) -> None:
        self.expressions = expressions
        self._wanted = [(shown.own, shown.wanted) for shown in expressions]
        self._evaluator = evaluator
        self._uses = 0
        every = [one.evaluate for one in expressions]
        self.values: Callable[[list[Any]], Any] = lambda e: tuple([value(e) for value in every])

    def wanted(self, seen: Sequence[Seen]) -> tuple[Any, ...]:
        """The spec's values of the plain ones, as those of each expression."""
        self._uses += 1
        if self._uses == OFTEN:
            self._join()
        return tuple(
            [
                # A number out of the type's range is no value of it, and equal to none.
                value if value.__class__ is own else wanted(value)
                for (_, _, value), (own, wanted) in zip(seen, self._wanted, strict=True)
            ]
        )

    def _join(self) -> None:
        kind = Record(tuple([(str(number), one.type) for number, one in enumerate(self.expressions, 1)]))
        parts = tuple([one.expr for one in self.expressions])
        self.values = self._evaluator.compile(Apply(kind, _NOWHERE, Op.RECORD, parts))


class Fields:
    """The expressions that recordings show of one program."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.evaluator = Evaluator(len(instance.program.variables))
        self._expressions: dict[str, ShownExpression] = {}
        self._together: dict[tuple[str, ...], ShownTogether] = {}
        self._read: dict[Type, dict[Any, Any]] = {}
        self._blank: tuple[int, ...] = ()

    def expression(self, text: str) -> ShownExpression:
        """An expression of the spec, compiled once; a `SpecError` if it is none."""
        known = self._expressions.get(text)
        if known is None:
            expr, count = self.instance.expression(text)
            # Compiled code has the values after a step behind those before it, and reads none.
            self._blank = (0,) * max(len(self._blank), len(self.instance.program.variables) + count)
            known = self._expressions[text] = ShownExpression(expr, self)
        return known

    def read(self, kind: Type) -> dict[Any, Any]:
        """The spec's values of plain ones, which expressions of one type share: brokers show equal logs."""
        return self._read.setdefault(kind, {})

    def environment(self, state: State) -> list[Any]:
        """That of a state, for all expressions: none reads a local that it has not bound."""
        return [*state, *self._blank]

    def agree(self, state: State, seen: Sequence[Seen]) -> bool:
        """Whether a state is as an event shows it."""
        return bool(self.agreeing((state,), seen))

    def agreeing(self, states: Sequence[State], seen: Sequence[Seen]) -> list[State]:
        """Those of the states that are as an event shows them."""
        if not seen:
            return list(states)
        texts = tuple(map(_TEXT, seen))
        together = self._together.get(texts)
        if together is None:
            if len(self._together) == MOST_TOGETHER:
                self._together.clear()
            together = ShownTogether([self.expression(text) for text in texts], self.evaluator)
            self._together[texts] = together
        values, wanted, agreeing = together.values, together.wanted(seen), []
        for state in states:
            try:
                if values(self.environment(state)) == wanted:
                    agreeing.append(state)
            except Undefined:  # a value that does not exist is equal to none
                continue
        return agreeing
