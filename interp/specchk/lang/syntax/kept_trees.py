"""The trees of longer texts, kept in the user's cache directory between runs (`kept`).

A tree depends on nothing but the text, its path, the sources of this room, Lark and Python.  Reading it
takes an eighth of the time of parsing the text again, which was the largest part of starting a check.
"""

from __future__ import annotations

import pickle
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
    # As for compiled code, whoever may write into this user's cache may run code as this user.
    return None if data is None else pickle.loads(data)  # noqa: S301


def keep_tree(source: Source, module: decls.Module) -> None:
    """Keep the tree of a text without errors, where that can be done."""
    if len(source.text) >= LEAST:
        data = BytesIO()
        # Pickle recurses, and Python's stack has room for the deepest tree that the builder makes.
        _Pickler(data, protocol=pickle.HIGHEST_PROTOCOL).dump(module)
        kept.write(_place(source), data.getvalue())


class _Pickler(pickle.Pickler):
    """Writes a node as a call of its class: a frozen class with slots finds its state field by field."""

    def reducer_override(self, part: Any) -> Any:
        """The class and the fields of a node or a place; anything else as usual."""
        if isinstance(part, tree.Node | Span):
            return type(part), tuple([getattr(part, name) for name in part.__match_args__])
        return NotImplemented


def _place(source: Source) -> Path | None:
    name = kept.name_of(PARSER, source.path, source.text, kept.sources(*ROOMS))
    return kept.place("trees", name)
