"""Syntax trees, cached in the user's cache directory between runs (`kept`).

A tree depends on nothing but the text, the sources of this room, Lark and Python.  Reading it takes an eighth
of the time of parsing the text again, which was the largest part of starting a check.  Its places name the
text by a number, so that a copy of a file under another path has the same tree, with that path.
"""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from specchk import kept
from specchk.lang.syntax import decls, tree
from specchk.lang.text.source import Source

ROOMS = ("lang",)  # whose sources determine a tree
Start = Literal["decl", "expr"]  # a file of declarations, or a lone expression
LEAST = 1024  # characters; a shorter text is parsed in the time that a file takes
PARSER = kept.library("lark")


def read_tree(source: Source, start: Start = "decl") -> Any:
    """The tree cached for an equal source, parsed from the same start; or None."""
    data = kept.read(_place(source, start))
    return None if data is None else read_with(data, (source,))


def keep_tree(source: Source, parsed: decls.Module | tree.Expr, start: Start = "decl") -> None:
    """Cache the tree of a text without errors, if possible."""
    kept.write(_place(source, start), written(parsed, (source,)))


def read_with(data: bytes, sources: Sequence[Source]) -> Any:
    """The value from the bytes of `written`, with these sources in place of the original ones."""
    # As for compiled code, anyone who can write into this user's cache can run code as this user.
    return _Unpickler(BytesIO(data), sources).load()


def written(value: Any, sources: Sequence[Source]) -> bytes:
    """A value as bytes, in which each of the sources is replaced by its number."""
    data = BytesIO()
    # Pickle recurses, and Python's stack has room for the deepest tree that the builder makes.
    _Pickler(data, sources).dump(value)
    return data.getvalue()


class _Pickler(pickle.Pickler):
    """Writes sources as numbers."""

    def __init__(self, data: BytesIO, sources: Sequence[Source]) -> None:
        super().__init__(data, protocol=pickle.HIGHEST_PROTOCOL)
        # Not `persistent_id`: that is called for every number and text, too.
        self.dispatch_table = {**copyreg.dispatch_table, Source: self._source}
        self._numbers = {source: number for number, source in enumerate(sources)}

    def _source(self, source: Source) -> tuple[Any, ...]:
        number = self._numbers.get(source)
        # One of an option is written whole.
        return (Source, (source.path, source.text)) if number is None else (numbered, (number,))


def numbered(number: int) -> Source:
    """The source with a number; a reader replaces this function by one that knows its sources."""
    raise LookupError(number)


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: BytesIO, sources: Sequence[Source]) -> None:
        super().__init__(data)
        self._sources = sources

    def find_class(self, module: str, name: str) -> Any:
        """The class or function of a name; for `numbered`, the lookup in these sources."""
        found = super().find_class(module, name)
        return self._sources.__getitem__ if found is numbered else found


def _place(source: Source, start: Start) -> Path | None:
    name = kept.name_of(PARSER, start, source.text, kept.sources(*ROOMS))
    return kept.place("trees", name)
