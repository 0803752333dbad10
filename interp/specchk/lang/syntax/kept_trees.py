"""Syntax trees, cached in the user's cache directory between runs (`kept`).

A tree depends on nothing but the text, the sources of this room, Lark and Python.  Reading it takes a fifth
of the time of parsing the text again, which was the largest part of starting a check.  Its places are numbers
without a path, so that a copy of a file under another path has the same tree, with that path.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from specchk import kept
from specchk.lang.syntax import decls, tree
from specchk.lang.text.source import Source, Span

ROOMS = ("lang",)  # whose sources determine a tree
Start = Literal["decl", "expr"]  # a file of declarations, or a lone expression
LEAST = 1024  # characters; a shorter text is parsed in the time that a file takes
PARSER = kept.library("lark")
_KINDS = MappingProxyType({
    name: kind
    for module in (tree, decls)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, tree.Node)
})  # fmt: skip


def read_tree(source: Source, start: Start = "decl") -> Any:
    """The tree cached for an equal source, parsed from the same start; or None."""
    return _node(kept.read_json(_place(source, start)), source)


def keep_tree(source: Source, parsed: decls.Module | tree.Expr, start: Start = "decl") -> None:
    """Cache the tree of a text without errors, if possible."""
    kept.write_json(_place(source, start), _plain(parsed))


def _plain(part: Any) -> Any:
    """A part of a tree in JSON's values: a node is a list that begins with its class, a tuple one with ""."""
    if isinstance(part, tuple):
        return ["", *map(_plain, part)]
    if not isinstance(part, tree.Node):
        return part
    span, *fields = part.__struct_fields__
    assert span == "span"
    parts = [_plain(getattr(part, field)) for field in fields]
    return [type(part).__name__, part.span.start, part.span.end, *parts]


def _node(data: Any, source: Source) -> Any:
    """The part of a tree that `_plain` wrote, with its places in this source."""
    if not isinstance(data, list):
        return data
    kind, *parts = data
    if not kind:
        return tuple([_node(part, source) for part in parts])
    start, end, *fields = parts
    return _KINDS[kind](Span(source, start, end), *[_node(field, source) for field in fields])


def _place(source: Source, start: Start) -> Path | None:
    name = kept.name_of(PARSER, start, source.text, kept.sources(*ROOMS))
    return kept.place("trees", name)
