"""Quick fixes: what the hint of an error writes, where it has been found to remove the error."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from lsprotocol import types as lsp

from specchk.lang.text.diagnostics import Diagnostic
from specchk.lsp.analysis import Analysis, analyse
from specchk.lsp.texts import KeptChunks
from specchk.lsp.workspace import Workspace

MOST_TRIED = 6  # for a request: each is a check of the spec
_CODE = re.compile(r"`([^`]+)`")
_LAST_WORD = re.compile(r"\b\w+\Z")
INDENT = "    "


def fixes(workspace: Workspace, path: str, uri: str, where: lsp.Range) -> list[lsp.CodeAction]:
    """The changes of a text after which an error in a range is gone, and none is new."""
    analysis = workspace.analysis(path)
    text = analysis.text
    if text is None:
        return []
    first, last = text.offset(where.start), text.offset(where.end)
    actions = []
    for number, (title, start, end, new) in enumerate(_changes(analysis, first, last)):
        if number == MOST_TRIED:
            break
        content = text.source.text[:start] + new + text.source.text[end:]
        tried = analyse(path, {**workspace.drafts, path: content}, KeptChunks(dict(workspace.kept.chunks)))
        if len(tried.diagnostics) < len(analysis.diagnostics) and not _messages(tried) - _messages(analysis):
            edit = lsp.WorkspaceEdit({uri: [lsp.TextEdit(text.range(start, end), new)]})
            actions.append(lsp.CodeAction(title, lsp.CodeActionKind.QuickFix, edit=edit))
    return actions


def _messages(analysis: Analysis) -> Counter[tuple[str, str]]:
    return Counter((item.code, item.message) for item in analysis.diagnostics)


def _changes(analysis: Analysis, first: int, last: int) -> Iterator[tuple[str, int, int, str]]:
    """The changes that hints write: a title, the offsets that are replaced, and the new text."""
    for item in analysis.diagnostics:
        place = analysis.place(item.span) if item.span is not None else None
        if place is None or place[0] is not analysis.text or place[1] > last or place[2] < first:
            continue
        _, start, end = place
        for code in _CODE.findall(item.hint or ""):
            if "..." in code:
                continue
            if _adds(item):
                at, line = _end_of_declaration(place[0].source.text, start, code)
                yield f"add `{code}`", at, at, line
            # The mark may be around more than the name, as of a field.
            word = _LAST_WORD.search(place[0].source.text, start, end)
            for begin in dict.fromkeys((start, word.start() if word is not None else start)):
                yield f"write `{code}`", begin, end, code


def _adds(item: Diagnostic) -> bool:
    return (item.hint or "").startswith("add ")


def _end_of_declaration(text: str, start: int, code: str) -> tuple[int, str]:
    """Where a line is added, and the line: an import below the first line, the others below a declaration."""
    if code.startswith("import "):
        return text.index("\n") + 1, f"{code}\n"
    lines = text[start:].split("\n")
    length = 1
    while length < len(lines) and (lines[length].startswith((" ", "\t"))):
        length += 1
    at = start + len("\n".join(lines[:length]))
    return at, f"\n{INDENT}{code}"
