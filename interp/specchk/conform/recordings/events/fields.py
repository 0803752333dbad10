"""The values of a spec's expressions in states, compared with those in a recording.

An expression is compiled once, and those that events often show together become one function: the record of
their values, which is compared with that of the recorded ones.

Not here: which states there are (`validate`).
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from typing import Any

from specchk.compile.instantiate import Instance
from specchk.conform.contract.tracing import Seen, SeenTogether
from specchk.conform.contract.values import LASTING, NotAValue, Table, raw
from specchk.conform.recordings.events.steps import Horizons
from specchk.ir.footprint import expression_lists_horizon
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
_UNSEEN = object()
_NOWHERE = Span(Source("", ""), 0, 0)


class ShownExpression:
    """A compiled expression of the spec, with the values with which it was compared.

    Of a number and a truth the plain value is the spec's; `own` is its class, and None of other types.
    `same` has values by the addresses of plain ones.
    """

    __slots__ = ("_fields", "_read", "evaluate", "expr", "lists_horizon", "own", "same", "type")

    def __init__(self, expr: Expr, fields: Fields) -> None:
        self.expr = expr
        self.type: Type = fields.horizons.of_type(expr.type)
        self.own: type | None = (
            int if isinstance(expr.type, Int) else bool if isinstance(expr.type, Bool) else None
        )
        self.lists_horizon = expression_lists_horizon(expr)
        self._fields = fields
        self.evaluate = fields.evaluator.compile(expr)
        self._read = fields.read(self.type)
        self.same: dict[int, tuple[Any, Any]] = {}

    def value(self, state: State) -> Any:
        """The value in a state; None if it is undefined."""
        try:
            return self.evaluate(self._fields.environment(state))
        except Undefined:
            return None

    def wanted(self, value: Any) -> Any:
        """The spec's value of a plain one; if invalid, the reason as text, which equals no value."""
        # Mostly an object that was given before, since tracings make few; of a class that does not change.
        cached = self.same.get(id(value))
        if cached is None:
            cached = value, self._wanted(value)
            if value.__class__ in LASTING:
                if len(self.same) == MOST_SAME:
                    self.same.clear()
                # With the object itself, so that no other gets its address.
                self.same[id(value)] = cached
            else:
                self._fields.changing += 1
        return cached[1]

    def is_beyond(self, value: Any) -> bool:
        """Whether a plain value has a number above a horizon of the expression's type."""
        try:
            raw(value, self.type)
        except NotAValue as error:
            return error.is_beyond
        return False

    def _wanted(self, value: Any) -> Any:
        # With its type, since True is 1.
        key = (value.__class__, value) if value.__class__ in _SCALARS else _key(value)
        cached = self._read.get(key, _UNREAD)
        if cached is _UNREAD:
            try:
                cached = raw(value, self.type)
            except NotAValue as error:
                cached = str(error)
            self._read[key] = cached
        return cached


def _key(value: Any) -> bytes | str:
    """A key for values that may be unhashable, which also distinguishes the types of their parts."""
    try:
        # A third of the time of a text; version 2 has no references, so that equal values have equal bytes.
        return marshal.dumps(dict(value) if isinstance(value, Table) else value, 2)
    except ValueError:  # an object of some class
        return repr(value)


class ShownTogether:
    """The expressions that events show together; if frequent, compiled to one function."""

    __slots__ = ("_evaluator", "_uses", "_wanted", "expressions", "names", "values")

    def __init__(
        self, names: tuple[str, ...], expressions: Sequence[ShownExpression], evaluator: Evaluator
    ) -> None:
        self.names, self.expressions = names, expressions
        self._wanted = [(shown.own, shown.same, shown.wanted) for shown in expressions]
        self._evaluator = evaluator
        self._uses = 0
        every = [shown.evaluate for shown in expressions]
        self.values: Callable[[list[Any]], Any] = lambda e: tuple([value(e) for value in every])

    def wanted(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The spec's values of the plain ones, as for each expression."""
        self._uses += 1
        if self._uses == OFTEN:
            self._join()
        return tuple(
            [
                # A number out of the type's range is no value of it, and equal to none.
                value
                if value.__class__ is own
                else (same[id(value)][1] if id(value) in same else wanted(value))
                for value, (own, same, wanted) in zip(values, self._wanted, strict=True)
            ]
        )

    def _join(self) -> None:
        kind = Record(tuple([(str(number), shown.type) for number, shown in enumerate(self.expressions, 1)]))
        parts = tuple([shown.expr for shown in self.expressions])
        self.values = self._evaluator.compile(Apply(kind, _NOWHERE, Op.RECORD, parts))


# The spec's values, and the plain ones.
WantedValues = tuple[ShownTogether, tuple[Any, ...], Sequence[Any]]


class Fields:
    """The expressions of one program that recordings show.

    `changing` counts the values given that may change.
    """

    def __init__(self, instance: Instance, horizons: Horizons = Horizons.KEPT) -> None:
        self.instance = instance
        self.horizons = horizons
        self.evaluator = self.make_evaluator()
        self._expressions: dict[str, ShownExpression] = {}
        self._together: dict[tuple[tuple[str, str], ...], ShownTogether] = {}
        self._read: dict[Type, dict[Any, Any]] = {}
        # For all states and expressions: none reads a local that it has not bound.
        self._env: list[Any] = []
        self.changing = 0

    def make_evaluator(self) -> Evaluator:
        """The compiler of the expressions."""
        variables = len(self.instance.program.variables)
        return Evaluator(variables, horizons=self.horizons is Horizons.KEPT)

    def expression(self, text: str) -> ShownExpression:
        """An expression of the spec, compiled once; raises `SpecError` if it is invalid."""
        expression = self._expressions.get(text)
        if expression is None:
            expr, count = self.instance.expression(text)
            # Compiled code has the values after a step behind those before it, and reads none.
            self._env += [0] * (2 * len(self.instance.program.variables) + count - len(self._env))
            expression = self._expressions[text] = ShownExpression(expr, self)
        return expression

    @property
    def lists_horizon(self) -> bool:
        """Whether some expression so far uses all numbers up to a horizon."""
        return any(shown.lists_horizon for shown in self._expressions.values())

    def read(self, kind: Type) -> dict[Any, Any]:
        """The spec's values of plain ones, cached across expressions of one type: brokers show equal logs."""
        return self._read.setdefault(kind, {})

    def environment(self, state: State) -> list[Any]:
        """The environment of a state."""
        self._env[: len(state)] = state
        return self._env

    def agree(self, state: State, seen: Sequence[Seen]) -> bool:
        """Whether a state agrees with the fields of an event."""
        return not seen or bool(self.having((state,), self.wanted(seen)))

    def wanted(self, seen: Sequence[Seen]) -> WantedValues:
        """The fields of an event, as values of the spec."""
        shown = seen if isinstance(seen, SeenTogether) else SeenTogether.of(seen)
        together = self._together.get(shown.fields)
        if together is None:
            if len(self._together) == MOST_TOGETHER:
                self._together.clear()
            expressions = [self.expression(text) for _, text in shown.fields]
            names = tuple([name for name, _ in shown.fields])
            together = ShownTogether(names, expressions, self.evaluator)
            self._together[shown.fields] = together
        return together, together.wanted(shown.values), shown.values

    def having(self, states: Sequence[State], shown: WantedValues) -> list[State]:
        """The states that agree with the fields of an event."""
        (together, wanted, _), env, agreeing = shown, self._env, []
        values, size = together.values, len(self.instance.program.variables)
        for state in states:
            env[:size] = state
            try:
                if values(env) == wanted:
                    agreeing.append(state)
            except Undefined:  # a value that does not exist is equal to none
                continue
        return agreeing


class Compared:
    """Up to two texts of each field's values: enough to show that a comparison is with varying values."""

    def __init__(self, seen: dict[str, set[Any]]) -> None:
        self._seen = seen
        self._first: dict[str, Any] = {}
        self._changing: set[str] = set()
        # The fields that are shown together, of which some were not seen to change.
        self._open: dict[ShownTogether, list[int]] = {}

    def add(self, together: ShownTogether, values: Sequence[Any]) -> None:
        """Record the fields of an event."""
        names, firsts = together.names, self._first
        places = self._open.get(together)
        if places is None:
            places = [at for at, name in enumerate(names) if name not in self._changing]
            self._open[together] = places
        for place in places:
            name, value = names[place], values[place]
            first = firsts.get(name, _UNSEEN)
            # Most values are the first one again, and a text of them takes longer.
            if first is not value and (first.__class__ is not value.__class__ or first != value):
                firsts.setdefault(name, value)
                self._add(name, value)
                self._open[together] = [at for at in places if names[at] not in self._changing]

    def _add(self, name: str, value: Any) -> None:
        values = self._seen.setdefault(name, set())
        if len(values) < 2:
            values.add(repr(value))
        if len(values) > 1:
            self._changing.add(name)
