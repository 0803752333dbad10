"""The index: each name of a text refers to a symbol, the one that the checker means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specchk.lang.check.levels import children
from specchk.lang.syntax import tree
from specchk.lsp.analysis import Analysis, analyse
from specchk.lsp.names import index_of
from specchk.lsp.texts import KeptChunks

SPECS = sorted((Path(__file__).resolve().parents[2] / "spec").rglob("*.spec"))
# These have declarations of every kind; the others are slow.
SAMPLE = {
    "replication",
    "recorded",
    "kafka_stories",
    "two_round_fetch_log",
    "multi_paxos",
    "fair_channel",
    "tcp",
}
# What the checker calls the kinds of symbols: `typeset` is a sort or type as the set of its values.
KINDS = {
    "local": {"local", "parameter", "lane"}, "operator": {"parameter"}, "variable": {"variable"},
    "constant": {"constant"}, "def": {"definition"}, "member": {"member"}, "constructor": {"variant"},
    "typeset": {"sort", "type", "built-in"}, "builtin": {"built-in"}, "action": {"action"},
    "property": {"invariant", "reachable", "constraint"}, "element": {"element"}, "first": {"built-in"},
}  # fmt: skip


def names_and_calls(node: tree.Node) -> Iterator[tree.Node]:
    if isinstance(node, tree.Name | tree.CallExpr):
        yield node
    for part in children(node):
        yield from names_and_calls(part)


def kinds(analysis: Analysis) -> Iterator[tuple[int, str]]:
    """The place of each name whose meaning the checker has noted, and what it calls its kind."""
    text = analysis.text
    assert text is not None
    for start, chunk in text.chunks:
        for node in names_and_calls(chunk.node) if chunk.node is not None else ():
            ref = analysis.facts.refs.get(id(node))
            if ref is not None:
                name = node.callee if isinstance(node, tree.CallExpr) else node
                assert isinstance(name, tree.Name)
                yield (
                    start + name.span.start + len(f"{name.qualifier}.") * (name.qualifier is not None),
                    ref.kind,
                )


@pytest.mark.parametrize("path", [
    pytest.param(path, id=path.stem, marks=() if path.stem in SAMPLE else pytest.mark.slow) for path in SPECS
])  # fmt: skip
def test_every_name_of_a_bundled_spec_resolves_as_the_checker_has_it(path: Path) -> None:
    analysis = analyse(str(path), {}, KeptChunks())
    index = index_of(analysis)
    assert analysis.diagnostics == ()
    assert index.open[str(path)] == []
    for place, kind in kinds(analysis):
        occurrence = index.at(str(path), place)
        assert occurrence is not None
        assert occurrence.symbol.kind in KINDS[kind], (occurrence, kind)
        assert occurrence.symbol.home or kind in ("builtin", "first", "typeset"), occurrence
