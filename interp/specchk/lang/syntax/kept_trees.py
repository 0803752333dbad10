"""The trees of longer texts, kept in the user's cache directory between runs (`kept`).

A tree depends on nothing but the text, the sources of this room, Lark and Python.  Reading it takes an eighth
of the time of parsing the text again, which was the largest part of starting a check.  Its places name the
text by a number, so that a copy of a file under another path has the same tree, with that path.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import lark

from specchk import kept
from specchk.lang.syntax import decls, tree
from specchk.lang.text.source import Source, Span

ROOMS = ("lang",)  # whose sources decide what a tree is
PARSER = lark.__version__
LEAST = 1024  # characters; a shorter text is parsed in the time that a file takes


def read_tree(source: Source) -> decls.Module | None:
    """The tree that was kept for an equal source, or None."""
    data = kept.read(_place(source)) if len(source.text) >= LEAST else None
    return None if data is None else read_with(data, (source,))


def keep_tree(source: Source, module: decls.Module) -> None:
    """Keep the tree of a text without errors, where that can be done."""
    if len(source.text) >= LEAST:
        kept.write(_place(source), written(module, (source,), _NodePickler))


def read_with(data: bytes, sources: Sequence[Source]) -> Any:
    """What `written` made of a value, with these sources in the place of the ones then."""
    # As for compiled code, whoever may write into this user's cache may run code as this user.
    return _Unpickler(BytesIO(data), sources).load()


def written(value: Any, sources: Sequence[Source], pickler: type[SourcePickler] | None = None) -> bytes:
    """A value in which each of the sources is its number."""
    data = BytesIO()
    # Pickle recurses, and Python's stack has room for the deepest tree that the builder makes.
    (pickler or SourcePickler)(data, sources).dump(value)
    return data.getvalue()


class SourcePickler(pickle.Pickler):
    """Writes sources as numbers."""

    def __init__(self, data: BytesIO, sources: Sequence[Source]) -> None:
        super().__init__(data, protocol=pickle.HIGHEST_PROTOCOL)
        self._numbers = {source: number for number, source in enumerate(sources)}

    def persistent_id(self, part: Any) -> int | None:
        """The number of a source; None for anything else, a source of an option among it."""
        return self._numbers.get(part) if type(part) is Source else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: BytesIO, sources: Sequence[Source]) -> None:
        super().__init__(data)
        self._sources = sources

    def persistent_load(self, number: int) -> Source:
        """The source of a number."""
        return self._sources[number]


class _NodePickler(SourcePickler):
    """Writes a node as a call of its class: a frozen class with slots finds its state field by field."""

    def reducer_override(self, part: Any) -> Any:
        """The class and the fields of a node or a place; anything else as usual."""
        if isinstance(part, tree.Node | Span):
            return type(part), tuple([getattr(part, name) for name in part.__match_args__])
        return NotImplemented


def _place(source: Source) -> Path | None:
    name = kept.name_of(PARSER, source.text, kept.sources(*ROOMS))
    return kept.place("trees", name)
