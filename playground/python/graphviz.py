"""In place of the library that runs the `dot` program: Graphviz itself, which the worker has loaded."""

from __future__ import annotations

from typing import Any

import js


class ExecutableNotFound(Exception):
    """Never raised: Graphviz is always there."""


class Source:
    """A picture in DOT, with as much of the library's interface as specchk uses."""

    def __init__(self, text: str, engine: str) -> None:
        self._text, self._engine = text, engine

    def pipe(self, format: str, neato_no_op: int | None = None, quiet: bool = False) -> bytes:  # noqa: A002
        """The picture in a format, SVG or what else `@viz-js/viz` has."""
        # `neato -n2` has a name of its own there.
        engine = f"nop{neato_no_op}" if neato_no_op else self._engine
        drawn: Any = js.graphviz(self._text, engine, format)
        return str(drawn).encode()
