"""A name changed in all files that have it, if the specs then mean what they meant."""

from __future__ import annotations

import re

from specchk.lang.load import RESERVED
from specchk.lsp.analysis import Analysis, analyse
from specchk.lsp.names import index_of
from specchk.lsp.symbols import Occurrence, Place, Symbol
from specchk.lsp.texts import KeptChunks
from specchk.lsp.workspace import Workspace

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class NoRename(ValueError):
    """A name cannot be changed, with the reason."""


def renamed(workspace: Workspace, path: str, occurrence: Occurrence, new: str) -> dict[str, list[Place]]:
    """The places to be changed, by path; raises `NoRename`."""
    symbol = occurrence.symbol
    check_renamable(workspace, path, symbol)
    if not _NAME.fullmatch(new) or new in RESERVED:
        raise NoRename(f"`{new}` is not a name: letters, digits and `_`, and no word of the language")
    uses = list(workspace.uses(path, symbol))
    roots = {analysis.path: analysis for analysis, _ in uses}
    for analysis in roots.values():
        if analysis.diagnostics:
            raise NoRename(f"{analysis.path} has errors; names can be changed once it has none")
    places: dict[str, list[Place]] = {}
    for _, place in uses:
        places.setdefault(place[0], []).append(place)
    texts = {
        file: _changed(workspace.analysis(root), sorted(of_file), new)
        for file, of_file in places.items()
        for root in [next(root for root, found in roots.items() if workspace.text(file, found))]
    }
    for root in roots:
        _check_meaning(
            workspace, root, texts, {file: sorted(of_file) for file, of_file in places.items()}, new
        )
    return places


def check_renamable(workspace: Workspace, path: str, symbol: Symbol) -> None:
    """Raise `NoRename` for a name that is not written by the spec, or that is a file's."""
    place = workspace.index(path).declared.get(symbol)
    if place is None:
        raise NoRename(f"`{symbol.name}` is a {symbol.kind} and has no declaration here")
    text = workspace.text(place[0], workspace.analysis(path))
    assert text is not None
    written = text.source.text[place[1] : place[2]]
    if written != symbol.name:
        raise NoRename(
            f"`{symbol.name}` is an element by its number: name the elements, `{written} = {{a, b}}`"
        )
    if symbol.kind in ("import", "refinement") and not re.search(r"\bas\s+$", text.source.text[: place[1]]):
        raise NoRename(f"`{symbol.name}` is the file's name: give it another one with `as`")


def _changed(analysis: Analysis, places: list[Place], new: str) -> str:
    """The text of a file with a name at all places."""
    text = next(text.source.text for text in analysis.texts if text.source.path == places[0][0])
    for _, start, end in reversed(places):
        text = text[:start] + new + text[end:]
    return text


def _check_meaning(
    workspace: Workspace,
    root: str,
    texts: dict[str, str],
    places: dict[str, list[Place]],
    new: str,
) -> None:
    """Check that a spec has no errors with the new texts, and the new name at the same places only."""
    tried = analyse(root, {**workspace.drafts, **texts}, KeptChunks())
    if tried.diagnostics:
        raise NoRename(f"with the name `{new}`: {tried.diagnostics[0].message}")
    index = index_of(tried)
    own = {text.source.path for text in tried.texts}
    moved = {
        (file, start + number * (len(new) - (end - start)))
        for file, of_file in places.items() if file in own
        for number, (_, start, end) in enumerate(of_file)
    }  # fmt: skip
    first = min(moved)
    symbol = index.at(*first)
    if symbol is None or {place[:2] for place in index.of(symbol.symbol)} != moved:
        raise NoRename(f"`{new}` is the name of something else where `{root}` uses this one")
