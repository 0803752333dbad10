"""The two ways in which an expression can be undefined, and the fault of an action instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specchk.lang.text.source import Span


class Undefined(Exception):
    """The expression at `span` has no value; `reason` explains it. Reported as a violation."""

    def __init__(self, span: Span, reason: str) -> None:
        self.span = span
        self.reason = reason
        super().__init__(reason)

    def __reduce__(self) -> tuple[type[Undefined], tuple[object, ...]]:
        return type(self), (self.span, self.reason)


def fault(span: Span, reason: str) -> Callable[[], Any]:
    """A function that raises `Undefined`."""

    def undefined() -> Any:
        raise Undefined(span, reason)

    return undefined


class BeyondHorizon(Exception):
    """A stored number is above its `nat upto` horizon."""


class Faulty(Exception):
    """An action instance has no meaning in a state: some expression of it is undefined."""

    def __init__(self, action: int, args: tuple[Any, ...], undefined: Undefined) -> None:
        self.action = action
        self.args_ = args
        self.undefined = undefined
        super().__init__(undefined.reason)

    def __reduce__(self) -> tuple[type[Faulty], tuple[object, ...]]:
        return type(self), (self.action, self.args_, self.undefined)
