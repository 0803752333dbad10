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
    # Also the specs that use the name nowhere: they may have the new one.
    roots = workspace.roots(path, symbol)
    for root in roots:
        if workspace.analysis(root).diagnostics:
            raise NoRename(f"{root} has errors; names can be changed once it has none")
    places: dict[str, list[Place]] = {}
    texts: dict[str, str] = {}
    for analysis, place in sorted(workspace.uses(path, symbol), key=lambda use: use[1], reverse=True):
        file, start, end = place
        text = workspace.text(file, analysis)
        assert text is not None
        before = texts.get(file, text.source.text)
        texts[file] = before[:start] + new + before[end:]
        places.setdefault(file, []).insert(0, place)
    kept = KeptChunks(dict(workspace.kept.chunks))
    for root in roots:
        _check_meaning(analyse(root, {**workspace.drafts, **texts}, kept), places, new)
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


def _check_meaning(tried: Analysis, places: dict[str, list[Place]], new: str) -> None:
    """Check that a spec with the new texts has no errors, and the new name at the same places only."""
    if tried.diagnostics:
        raise NoRename(f"{tried.path} with the name `{new}`: {tried.diagnostics[0].message}")
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
        raise NoRename(f"`{new}` is the name of something else where {tried.path} uses this one")
