"""The files of one editor and what is known of them; pure but for reading files.

Everything that a client requests is answered from an analysis of the newest text: an edit drops the analyses
of all specs that need the file, and the next request makes a new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from msgspec import Struct, field
from pygls.uris import to_fs_path

from specchk.lang.load import needed_files
from specchk.lang.text.diagnostics import Diagnostic
from specchk.lang.text.source import REGION, Source
from specchk.lsp.analysis import Analysis, analyse
from specchk.lsp.names import index_of
from specchk.lsp.symbols import NameIndex, Occurrence, Place, Symbol
from specchk.lsp.texts import KeptChunks, SpecText

MOST_FILES = 2000  # of a folder in which uses of a name are searched


class Workspace(Struct):
    """Open texts by path, folders, and the analyses that are up to date."""

    drafts: dict[str, str] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)  # the chosen model of a spec, by path
    kept: KeptChunks = field(default_factory=KeptChunks)
    _analyses: dict[str, Analysis] = field(default_factory=dict)
    _indexes: dict[str, NameIndex] = field(default_factory=dict)

    def open(self, path: str, text: str) -> None:
        """Take over a new text of a file."""
        # As `load` reads a file; the editor's columns are the same, as it counts no line end as a column.
        self.drafts[path] = text.removeprefix("\N{BYTE ORDER MARK}").replace("\r\n", "\n")
        self.forget(path)

    def close(self, path: str) -> None:
        """Return to the text on the disk."""
        self.drafts.pop(path, None)
        self.forget(path)

    def forget(self, path: str) -> None:
        """Drop what is known of a file that has changed, and of all that need it."""
        stale = [
            root for root, analysis in self._analyses.items()
            # One with a file missing may need what is new.
            if any(text.source.path == path for text in analysis.texts) or path not in self.drafts
            or any(item.code == "S006" for item in analysis.diagnostics) or root == path
        ]  # fmt: skip
        for root in stale:
            del self._analyses[root]
            self._indexes.pop(root, None)

    def is_fresh(self, path: str) -> bool:
        """Whether the newest text of a spec has been analysed."""
        return path in self._analyses

    def analysis(self, path: str) -> Analysis:
        """The analysis of the newest text of a spec."""
        if path not in self._analyses:
            self._analyses[path] = analyse(path, self.drafts, self.kept)
        return self._analyses[path]

    def index(self, path: str) -> NameIndex:
        """The names of the newest text of a spec, and of all that it needs."""
        if path not in self._indexes:
            self._indexes[path] = index_of(self.analysis(path))
        return self._indexes[path]

    def at(self, path: str, position: lsp.Position) -> tuple[Analysis, SpecText, Occurrence] | None:
        """The name at an editor's place."""
        analysis = self.analysis(path)
        text = analysis.text
        if text is None:
            return None
        occurrence = self.index(path).at(path, text.offset(position))
        return (analysis, text, occurrence) if occurrence is not None else None

    def text(self, path: str, analysis: Analysis) -> SpecText | None:
        """The text of a file that an analysis has read."""
        return next((text for text in analysis.texts if text.source.path == path), None)

    def read(self, path: str) -> SpecText:
        """The newest text of a file, which need not be analysed."""
        if path in self._analyses and (text := self._analyses[path].text) is not None:
            return text
        content = self.drafts.get(path)
        return SpecText(Source(path, content if content is not None else Path(path).read_text("utf-8")), ())

    def beside(self, path: str) -> list[Path]:
        """The other specs in the folder of a file."""
        return [file for file in sorted(Path(path).parent.glob("*.spec")) if str(file) != path]

    def location(self, place: Place, analysis: Analysis) -> lsp.Location | None:
        """A place in a file that an analysis has read, as an editor names it."""
        text = self.text(place[0], analysis)
        return lsp.Location(uri_of(place[0]), text.range(place[1], place[2])) if text is not None else None

    def users(self, path: str) -> list[str]:
        """A file, and the specs that need it by `extends`, `import` or `refines`, directly or not."""
        needs = {
            file: {str(needed) for _, needed in needed_files(Path(file), text)} for file, text in self.files()
        }
        users = [path]
        for user in users:  # grows
            users += [file for file, needed in needs.items() if user in needed and file not in users]
        return users

    def files(self) -> Iterator[tuple[str, str]]:
        """Path and text of the open files and of those in the folders."""
        yield from self.drafts.items()
        files = [file for folder in self.folders for file in sorted(folder.rglob("*.spec"))]
        for file in files[:MOST_FILES]:
            if str(file) not in self.drafts:
                try:
                    yield str(file), file.read_text("utf-8")
                except (OSError, UnicodeDecodeError):
                    continue

    def roots(self, path: str, symbol: Symbol) -> list[str]:
        """A spec, and those that need the file in which one of its symbols is declared."""
        declared = self.index(path).declared.get(symbol)
        return list(dict.fromkeys([path, *self.users(declared[0] if declared is not None else path)]))

    def uses(self, path: str, symbol: Symbol) -> Iterator[tuple[Analysis, Place]]:
        """All places that name a symbol of a spec, in it and in the specs that need the symbol's file."""
        met: set[Place] = set()
        for root in self.roots(path, symbol):
            for place in self.index(root).of(symbol):
                if place not in met:
                    met.add(place)
                    yield self.analysis(root), place


def uri_of(path: str) -> str:
    """The address of a file."""
    return Path(path).as_uri() if Path(path).is_absolute() else path


def path_of(uri: str) -> str:
    """The path of a file that a client names; of what is no file, as an unsaved text, the address."""
    return to_fs_path(uri) or uri if uri.startswith("file:") else uri


def reported(analysis: Analysis) -> list[lsp.Diagnostic]:
    """The diagnostics of a spec's file; those of a file that it needs are one, at the line that needs it."""
    text, shown = analysis.text, []
    if text is None:
        return [
            _shown(lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)), item) for item in analysis.diagnostics
        ]
    others: dict[str, list[Diagnostic]] = {}
    for item in analysis.diagnostics:
        place = analysis.place(item.span) if item.span is not None else (text, 0, 0)
        if place is not None and place[0] is text:
            shown.append(_shown(text.range(place[1], place[2]), item, _notes(item, analysis)))
        else:
            others.setdefault(item.span.source.path if item.span else item.path, []).append(item)
    for path, items in others.items():
        shown.append(_elsewhere(text, path, items, analysis))
    return sorted(shown, key=lambda item: (item.range.start.line, item.range.start.character, str(item.code)))


def _shown(
    where: lsp.Range, item: Diagnostic, notes: list[lsp.DiagnosticRelatedInformation] | None = None
) -> lsp.Diagnostic:  # fmt: skip
    message = f"{item.message}\nhint: {item.hint}" if item.hint else item.message
    return lsp.Diagnostic(
        where, message, lsp.DiagnosticSeverity.Error, item.code, source="specchk",
        related_information=notes or None, data={"hint": item.hint},
    )  # fmt: skip


def deeper(text: SpecText, error: dict[str, Any]) -> lsp.Diagnostic:
    """An error that `specchk check --json` reports."""
    line, column, end_line, end_column = (error[name] for name in REGION)
    starts = text.source.line_starts
    where = text.range(starts[line - 1] + column - 1, starts[end_line - 1] + end_column - 1)
    return _shown(where, Diagnostic(error["code"], error["message"], hint=error["hint"]))


def _notes(item: Diagnostic, analysis: Analysis) -> list[lsp.DiagnosticRelatedInformation]:
    notes = []
    for span, text in item.notes:
        place = analysis.place(span)
        if place is not None:
            where = lsp.Location(uri_of(place[0].source.path), place[0].range(place[1], place[2]))
            notes.append(lsp.DiagnosticRelatedInformation(where, text))
    return notes


def _elsewhere(text: SpecText, path: str, items: list[Diagnostic], analysis: Analysis) -> lsp.Diagnostic:
    """One diagnostic for the errors of another file, at the line that names the file."""
    name = Path(path).stem
    match = re.search(
        rf"^(?:extends|import|refines)\s+(?:\w+\.)*{re.escape(name)}\b", text.source.text, re.MULTILINE
    )
    start, end = match.span() if match else (0, 0)
    first = items[0]
    place = analysis.place(first.span) if first.span is not None else None
    where = f"{Path(path).name}:{place[0].position(place[1]).line + 1}" if place else Path(path).name
    message = f"{Path(path).name} has {len(items)} error{'s' * (len(items) > 1)}; {where}: {first.message}"
    return lsp.Diagnostic(
        text.range(start, end), message, lsp.DiagnosticSeverity.Error, first.code, source="specchk"
    )
