"""The trees of longer texts, kept in the user's cache directory between runs (`kept`).

A tree depends on nothing but the text, its path, the sources of this room, Lark and Python.  Reading it
takes an eighth of the time of parsing the text again, which was the largest part of starting a check.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import lark

from specchk import kept
from specchk.lang.syntax import decls
from specchk.lang.text.source import Source

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
        # Pickle recurses, and Python's stack has room for the deepest tree that the builder makes.
        kept.write(_place(source), pickle.dumps(module, protocol=pickle.HIGHEST_PROTOCOL))


def _place(source: Source) -> Path | None:
    name = kept.name_of(PARSER, source.path, source.text, kept.sources(*ROOMS))
    return kept.place("trees", name)
