"""Semantic tokens: what each word of a text is, for its colour."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType

from lsprotocol import types as lsp

from specchk.lsp.symbols import NameIndex
from specchk.lsp.texts import WORD, SpecText

TYPES = (
    "namespace", "type", "enumMember", "variable", "parameter", "function", "method", "property", "keyword",
    "number", "comment", "class", "event",
)  # fmt: skip
MODIFIERS = ("declaration", "readonly", "defaultLibrary")
_SHOWN_AS = MappingProxyType({
    "namespace": ("spec", "file", "import", "refinement"), "type": ("sort", "type"),
    "enumMember": ("member", "element", "variant"), "variable": ("variable", "constant"),
    "parameter": ("local", "parameter", "lane"), "function": ("definition", "built-in"), "event": ("action",),
    "method": ("helper action",), "property": ("field", "label"), "class": ("model", "scenario"),
})  # fmt: skip
_OF_KINDS = MappingProxyType({kind: shown for shown, kinds in _SHOWN_AS.items() for kind in kinds})
_COMMENT = re.compile("#.*")


def legend() -> lsp.SemanticTokensLegend:
    """The words by which tokens name their kinds."""
    return lsp.SemanticTokensLegend(list(TYPES), list(MODIFIERS))


def semantic_tokens(text: SpecText, index: NameIndex) -> list[int]:
    """The tokens of a text as the protocol has them: five numbers each, places relative to the one before."""
    data: list[int] = []
    line, column = 0, 0
    for start, end, kind, modifiers in sorted(_tokens(text, index)):
        place = text.position(start)
        # Names, words and numbers are ASCII.
        length = (
            end - start if kind != TYPES.index("comment") else text.position(end).character - place.character
        )
        before = column if place.line == line else 0
        data += (place.line - line, place.character - before, length, kind, modifiers)
        line, column = place.line, place.character
    return data


def _tokens(text: SpecText, index: NameIndex) -> Iterator[tuple[int, int, int, int]]:
    for occurrence in index.names.get(text.source.path, []):
        kind = occurrence.symbol.kind
        modifiers = occurrence.declares + 2 * (kind == "constant") + 4 * (kind == "built-in")
        yield occurrence.start, occurrence.end, TYPES.index(_OF_KINDS.get(kind, "function")), modifiers
    for offset, chunk in text.chunks:
        for word in chunk.words:
            if word.type != WORD and (word.text[0].isalnum()):
                kind = "keyword" if word.text[0].isalpha() else "number"
                yield offset + word.start, offset + word.start + len(word.text), TYPES.index(kind), 0
    for match in _COMMENT.finditer(text.source.text):
        yield *match.span(), TYPES.index("comment"), 0
