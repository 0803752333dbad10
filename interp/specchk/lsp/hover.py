"""What an editor shows of a name: its declaration, type and comment, and a constant's value."""

from __future__ import annotations

import re

from specchk.compile.lower import Lowering
from specchk.lang.check.builtins import MEANINGS
from specchk.lang.check.types import is_complete, show
from specchk.lang.frontend import CheckedSpec, choose_model
from specchk.lang.text.diagnostics import SpecError
from specchk.lang.text.source import Source
from specchk.lsp.analysis import Analysis
from specchk.lsp.symbols import NameIndex, Occurrence, Symbol
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import show as show_value

MOST_LINES = 12  # of a declaration that is shown whole
_COMMENT = re.compile(r"\s*#.*")
_WHOLE = frozenset({
    "constant", "type", "variable", "sort", "invariant", "reachable", "liveness", "constraint",
    "step invariant", "model", "scenario",
})  # fmt: skip


def hover(analysis: Analysis, index: NameIndex, occurrence: Occurrence, model: str | None) -> str:
    """What there is to show, as Markdown."""
    symbol = occurrence.symbol
    parts = [f"```specchk\n{_head(analysis, index, occurrence)}\n```"]
    if symbol.kind == "constant" and (value := constant_value(analysis, symbol, model)):
        parts.append(value)
    if symbol.kind == "built-in":
        parts += MEANINGS.get(symbol.name, ())
    place = index.declared.get(symbol)
    text = next((text for text in analysis.texts if place and text.source.path == place[0]), None)
    if place is not None and text is not None:
        parts.append(comment(text.source, place[1]))
    return "\n\n".join(part for part in parts if part)


def _head(analysis: Analysis, index: NameIndex, occurrence: Occurrence) -> str:
    """The declaration of a name as written, or its kind, name and type."""
    symbol = occurrence.symbol
    place = index.declared.get(symbol)
    text = next((text for text in analysis.texts if place and text.source.path == place[0]), None)
    if (
        text is not None
        and place is not None
        and symbol.kind in (*_WHOLE, "definition", "action", "helper action")
    ):
        return declaration(text.source, place[1], is_whole=symbol.kind in _WHOLE)
    has_type = occurrence.type is not None and is_complete(occurrence.type)
    return f"{symbol.kind} {symbol.name}" + (
        f" : {show(occurrence.type)}" if has_type and occurrence.type else ""
    )


def declaration(source: Source, offset: int, *, is_whole: bool) -> str:
    """The text of the declaration that has its name at an offset: all of it, or its first line."""
    first = source.position(offset)[0]
    lines = [_COMMENT.sub("", source.line(first)).rstrip()]
    for number in range(first + 1, len(source.line_starts) + 1):
        line = source.line(number)
        is_open = sum(map(lines[-1].count, "([{")) > sum(map(lines[-1].count, ")]}"))
        if not (is_whole or is_open) or (line and not line[0].isspace() and line[0] not in ")]}"):
            break
        if line.strip() and not line.lstrip().startswith("#"):
            lines.append(_COMMENT.sub("", line).rstrip())
    shown = lines[:MOST_LINES] + ["    ..."] * (len(lines) > MOST_LINES)
    return "\n".join(shown).removesuffix(":").removesuffix("=").rstrip()


def comment(source: Source, offset: int) -> str:
    """The comment of the declaration on an offset's line: the lines above it, or else the one behind it."""
    number = source.position(offset)[0]
    above: list[str] = []
    for line in range(number - 1, 0, -1):
        text = source.line(line).strip()
        if not text.startswith("#") or "----" in text:
            break
        above.insert(0, text.removeprefix("#").strip())
    _, mark, behind = source.line(number).partition("#")
    return " ".join(above) if above else behind.strip() if mark else ""


def constant_value(analysis: Analysis, symbol: Symbol, model: str | None) -> str:
    """The value of a constant in a model (the first by default); empty if it has none there."""
    spec = analysis.spec
    if spec is None or analysis.diagnostics:
        return ""
    prefixes = ["", *[f"{alias}." for alias in spec.imports]]
    full = next((p + symbol.name for p, home in zip(prefixes, analysis.namespaces(), strict=False)
                 if symbol.name in home.consts), symbol.name)  # fmt: skip
    checked = CheckedSpec(spec, analysis.facts)
    try:
        fixed = choose_model(checked, model if model in spec.models else None, {})
        kind, value = Lowering(checked, fixed).ground.constant(full)
        return f"`{full} = {show_value(value, kind)}` in model `{fixed.name}`"
    except (SpecError, Undefined, KeyError, RecursionError):
        return ""
