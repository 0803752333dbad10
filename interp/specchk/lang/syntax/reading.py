"""The tree of a text: the cached one, or else the parser's.

Parsing is nine tenths of the cost of loading, and several specs extend one file, so the trees of the last
few texts are kept in memory: a tree is a frozen value, and facts about it are kept beside it.
Others are kept on disk (lang/syntax/kept_trees.py).  If each text has a kept tree, neither the parser is
imported nor Lark and its tables, whose import takes as long as parsing a spec of 300 lines.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from specchk.lang.syntax import decls, tree
from specchk.lang.syntax.kept_trees import LEAST, Start, keep_tree, read_tree
from specchk.lang.text.diagnostics import Diagnostic, Report, SpecError
from specchk.lang.text.source import Source

KEPT = 128  # texts whose trees are kept: more than the specs of one project


@cache
def _parser() -> Any:
    return import_module("specchk.lang.syntax.parse")


def parse(source: Source, report: Report) -> decls.Module:
    """The tree of a file; syntax errors go to `report` and their declarations are left out."""
    module: decls.Module = _parser().parse(source, report)
    return module


def parse_once(source: Source, report: Report) -> decls.Module:
    """As `parse`, but returns the same tree for equal sources; its spans are in the first such source."""
    try:
        module, diagnostics, lost = _parsed(source)
    except SpecError:  # more errors than are reported: as many as `report` has room for
        return parse(source, report)
    for item in diagnostics:
        report.add(item.code, item.span, item.message, item.hint, item.notes)
    report.lost |= lost
    return module


@lru_cache(maxsize=KEPT)
def _parsed(source: Source) -> tuple[decls.Module, tuple[Diagnostic, ...], frozenset[str]]:
    report = Report()
    module: decls.Module = _tree(source, "decl", report)
    return module, tuple(report.found), frozenset(report.lost)


def parse_expression(source: Source, report: Report) -> tree.Expr | None:
    """The tree of a lone expression (`--set`, the REPL), or None with a diagnostic."""
    node: tree.Expr | None = _tree(source, "expr", report)
    return node


def _tree(source: Source, start: Start, report: Report) -> Any:
    """The cached tree, or else the parser's, which is cached if the text has no errors."""
    # A parser that is there parses a short text in the time that a file takes.
    is_kept = len(source.text) >= LEAST or not _parser.cache_info().currsize
    found = read_tree(source, start) if is_kept else None
    if found is None:
        before = len(report.found)
        parser = _parser()
        found = (parser.parse if start == "decl" else parser.parse_expression)(source, report)
        if is_kept and len(report.found) == before:
            keep_tree(source, found, start)
    return found
