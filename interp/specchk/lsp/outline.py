"""The declarations of a text by their first lines: also of a text that cannot be parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType

from lsprotocol import types as lsp
from msgspec import Struct

from specchk.lang.text.source import Source

_HEAD = re.compile(
    r"^(spec|sort|const|type|var|def|helper action|action|step invariant|invariant|reachable|liveness"
    r"|constraint|model|scenario|view)[ \t]+([A-Za-z_]\w*)",
    re.MULTILINE,
)
_NEXT = re.compile(r"^[^\W\d]", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#.*(?:\n[ \t]*#.*)+", re.MULTILINE)
_KINDS: MappingProxyType[str, lsp.SymbolKind] = MappingProxyType({
    "spec": lsp.SymbolKind.Module, "sort": lsp.SymbolKind.Class, "const": lsp.SymbolKind.Constant,
    "type": lsp.SymbolKind.Struct, "var": lsp.SymbolKind.Variable, "def": lsp.SymbolKind.Function,
    "action": lsp.SymbolKind.Event, "helper action": lsp.SymbolKind.Method, "model": lsp.SymbolKind.Object,
    "scenario": lsp.SymbolKind.Array, "view": lsp.SymbolKind.Interface,
})  # fmt: skip


class OutlineEntry(Struct, frozen=True):
    """A declaration: the word before its name, its name, and offsets of it, of its name and of its end."""

    word: str
    name: str
    start: int
    named: int
    end: int

    @property
    def kind(self) -> lsp.SymbolKind:
        """What an editor shows it as; properties are those left."""
        return _KINDS.get(self.word, lsp.SymbolKind.Boolean)


def outline(text: str) -> Iterator[OutlineEntry]:
    """The declarations with a name, each up to its last line that is no comment."""
    for head in _HEAD.finditer(text):
        following = _NEXT.search(text, head.end())
        lines = text[head.start() : following.start() if following else len(text)].splitlines(keepends=True)
        while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
            lines.pop()
        end = head.start() + len("".join(lines).rstrip())
        yield OutlineEntry(head[1], head[2], head.start(), head.start(2), end)


def folds(source: Source) -> Iterator[lsp.FoldingRange]:
    """The declarations and the comments of more than one line."""
    for kind, spans in (
        (lsp.FoldingRangeKind.Region, ((entry.start, entry.end) for entry in outline(source.text))),
        (lsp.FoldingRangeKind.Comment, (match.span() for match in _COMMENT.finditer(source.text))),
    ):
        for start, end in spans:
            first, last = source.position(start)[0], source.position(end)[0]
            if last > first:
                yield lsp.FoldingRange(first - 1, last - 1, kind=kind)
