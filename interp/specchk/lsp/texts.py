"""The texts of an editor, cut into declarations: what an edit leaves as it was is not parsed again.

A declaration is parsed alone (lang/syntax/parse.py), so its tree depends on its own text only.  Here each is
a `Chunk` with a `Source` of its own, whose offsets begin at the declaration: an edit above it moves the
chunk and changes nothing in it.  A `SpecText` has the chunks of one version of a file at their offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from lsprotocol import types as lsp
from msgspec import Struct, field

from specchk.lang.load import SpecFiles
from specchk.lang.syntax import decls
from specchk.lang.syntax.parse import chunk_places, parse_declaration
from specchk.lang.text.diagnostics import Diagnostic, Report
from specchk.lang.text.source import Source, Span

WORD = "NAME"  # the type of a token that is no keyword in its place


class Word(Struct, frozen=True):
    """A token of a declaration: its place in the chunk, and its type in the grammar."""

    start: int
    text: str
    type: str


class Chunk(Struct, frozen=True):
    """A declaration with what follows it up to the next one; `node` is None if it has a syntax error."""

    source: Source
    node: decls.Decl | None
    words: tuple[Word, ...]
    diagnostics: tuple[Diagnostic, ...]
    lost: frozenset[str]


# With a `__dict__`, in which `cached_property` keeps the places of the chunks.
class SpecText(Struct, frozen=True, dict=True):
    """One version of a file: its whole text, and its chunks with the offsets at which they begin."""

    source: Source
    chunks: tuple[tuple[int, Chunk], ...]

    @cached_property
    def offsets(self) -> dict[int, int]:
        """Where the sources of its spans begin, by identity."""
        return {id(self.source): 0, **{id(chunk.source): start for start, chunk in self.chunks}}

    def at(self, offset: int) -> tuple[int, Chunk] | None:
        """The chunk that contains a character offset, and where it begins."""
        before = [item for item in self.chunks if item[0] <= offset]
        return before[-1] if before else None

    def position(self, offset: int) -> lsp.Position:
        """The place of an offset as an editor counts: lines from 0, and UTF-16 units from 0."""
        line, column = self.source.position(min(offset, len(self.source.text)))
        text = self.source.line(line)[: column - 1]
        return lsp.Position(line - 1, column - 1 if text.isascii() else len(text.encode("utf-16-le")) // 2)

    def offset(self, position: lsp.Position) -> int:
        """The offset of an editor's place; one behind the end of a line or of the text is that end."""
        if position.line >= len(self.source.line_starts):
            return len(self.source.text)
        line = self.source.line(position.line + 1)
        units = position.character * 2
        column = len(line.encode("utf-16-le")[:units].decode("utf-16-le", "ignore"))
        return self.source.line_starts[position.line] + column

    def range(self, start: int, end: int) -> lsp.Range:
        """Offsets as a range of an editor."""
        return lsp.Range(self.position(start), self.position(end))


class Drafts(SpecFiles):
    """The files of one check: the texts of open editors before those on the disk.

    `kept` are the chunks of earlier checks by path.  A tree is given out once in a check, as facts are kept
    by node: of two equal declarations the second has a tree of its own.
    """

    def __init__(self, drafts: Mapping[str, str], kept: Mapping[str, Sequence[Chunk]]) -> None:
        super().__init__()
        self.texts: list[SpecText] = []
        self._drafts = drafts
        self._left: dict[tuple[str, str], list[Chunk]] = {}
        for path, chunks in kept.items():
            for chunk in chunks:
                self._left.setdefault((path, chunk.source.text), []).append(chunk)
        self._copies: dict[tuple[str, str], int] = {}

    def read(self, path: Path, shown: str, report: Report) -> Source | None:
        """The text of an open editor, or of the file."""
        draft = self._drafts.get(str(path))
        return Source(shown, draft) if draft is not None else super().read(path, shown, report)

    def tree(self, source: Source, report: Report) -> decls.Module:
        """The tree of a text, in which only declarations are parsed that no earlier text had."""
        before = Report()
        places = list(chunk_places(source, before))
        chunks = [(start, self._chunk(source.path, source.text[start:end])) for start, end in places]
        self.texts.append(SpecText(source, tuple(chunks)))
        parsed = decls.Module(
            Span(source, 0, len(source.text)),
            tuple([chunk.node for _, chunk in chunks if chunk.node is not None]),
        )
        for item in (*before.found, *[item for _, chunk in chunks for item in chunk.diagnostics]):
            report.add(item.code, item.span, item.message, item.hint, item.notes)
        report.lost.update(*[chunk.lost for _, chunk in chunks])
        return parsed

    def _chunk(self, path: str, text: str) -> Chunk:
        # Two sources with one text would be equal, and so would their spans: errors in them would count once.
        copies = self._copies[path, text] = self._copies.get((path, text), 0) + 1
        text += "\n" * (copies - 1)
        left = self._left.get((path, text))
        return left.pop() if left else parsed_chunk(Source(path, text))


class KeptChunks(Struct):
    """The chunks of the last check of each file, for the next one."""

    chunks: dict[str, list[Chunk]] = field(default_factory=dict)

    def keep(self, texts: Sequence[SpecText]) -> None:
        """Replace what is kept of these files."""
        new: dict[str, list[Chunk]] = {}
        for text in texts:
            new.setdefault(text.source.path, []).extend(chunk for _, chunk in text.chunks)
        self.chunks.update(new)


def parsed_chunk(source: Source) -> Chunk:
    """The chunk with this text."""
    report = Report()
    node, tokens = parse_declaration(source, report)
    words = tuple(
        [Word(token.start_pos or 0, str(token), token.type) for token in tokens if str(token).strip()]
    )
    return Chunk(source, node, words, tuple(report.found), frozenset(report.lost))
