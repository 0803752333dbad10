"""Controls: planted errors that a gate must detect, as evidence that it can detect any.

    class Bank(Binding[Ledger]):
        controls = (
            BadSpec("overdrafts are refused", "small", {"overdraft": "true"}),
            BadCode("money for nothing", Ledger.move, "self.balance[source] -= amount", "pass", "small"),
        )

A `BadSpec` is a model of the spec in which a rule differs from the implementation's; a
`BadCode` is a mistake in one function of the implementation.  If that is a process (`adapter`), a
`BadFile` is a mistake in one of its files, whatever its language, and a `BadStart` other arguments or
another environment.  All are run as a suite of the gate on the model named; one that finds no divergence
makes the whole run vacuous.

Not here: running them (`controls`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import getsource
from textwrap import dedent
from types import FunctionType
from typing import Any

from msgspec import Struct, field


class BadSpec(Struct, frozen=True):
    """A model, with constants, from which the current implementation must diverge."""

    name: str
    model: str
    bounds: Mapping[str, str] = field(default_factory=dict)


class BadCode(Struct, frozen=True):
    """A function of the implementation in which `was` occurs once; replacing it by `now` is an error."""

    name: str
    function: Callable[..., Any]
    was: str
    now: str
    model: str
    bounds: Mapping[str, str] = field(default_factory=dict)


class BadFile(Struct, frozen=True):
    """A file of the implementation in which `was` occurs once; replacing it by `now` is an error.

    The mistake is in a copy of the implementation, which is built and started instead.
    """

    name: str
    file: str
    was: str
    now: str
    model: str
    bounds: Mapping[str, str] = field(default_factory=dict)


class BadStart(Struct, frozen=True):
    """Additional arguments, or another environment, with which the implementation is wrong."""

    name: str
    model: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, str] = field(default_factory=dict)


Control = BadSpec | BadCode | BadFile | BadStart


class NoSuchText(Exception):
    """A control that no longer fits the implementation; the control must be rewritten."""


@contextmanager
def planted(mistake: BadCode) -> Iterator[None]:
    """Run the block with the mistake planted, even for callers that already hold the function."""
    function = mistake.function
    if not isinstance(function, FunctionType):
        raise NoSuchText(f"`{mistake.name}` does not name a Python function")
    # The code and not the name is replaced: whoever imported the function already runs the mistake as well.
    right = function.__code__
    function.__code__ = _compiled(function, mistake).__code__
    try:
        yield
    finally:
        function.__code__ = right


def _compiled(function: FunctionType, mistake: BadCode) -> FunctionType:
    text = dedent(getsource(function))
    # A mistake that no longer fits must not become a control that plants nothing.
    if text.count(mistake.was) != 1:
        raise NoSuchText(f"`{mistake.was}` does not occur exactly once in `{function.__qualname__}`")
    scope: dict[str, Any] = {}
    # Without decorators, which were applied when the function was made.
    plain = text[text.index("def ") :].replace(mistake.was, mistake.now)
    exec(compile(plain, function.__code__.co_filename, "exec"), function.__globals__, scope)  # noqa: S102 - the binding's own words
    made: FunctionType = scope[function.__name__]
    # A closure's cells belong to the function object, and code with other ones cannot be put in.
    if made.__code__.co_freevars != function.__code__.co_freevars:
        raise NoSuchText(
            f"`{function.__qualname__}` uses names of enclosing functions, so it cannot be replaced"
        )
    return made
