"""The grammar's parse tables, kept in the user's cache directory between runs (`kept`).

Building the LALR tables takes longer than checking a spec, and they depend on nothing but the
grammar, Lark, Python and how this room asks for them.  So they are kept as plain data: marshal and not
pickle, since what is read back can then only be data, never code.
"""

from __future__ import annotations

import marshal
from pathlib import Path
from typing import cast

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from specchk import kept
from specchk.lang.syntax.layout import LayoutFilter

ROOMS = ("lang",)  # whose sources decide what the tables are


def load_parser(grammar: str, layout: LayoutFilter) -> Lark:
    """The parser of a grammar, from the cache where that is possible."""
    path = kept.place("grammars", kept.name_of(lark.__version__, grammar, kept.sources(*ROOMS)))
    tables = _read(path)
    if tables is not None:
        options = cast("dict[str, object]", cast("dict[str, object]", tables["data"])["options"])
        # The layout holds the state of a parse and is no data; everything else of the tables is.
        options["postlex"] = layout
        return Lark.load(tables)
    built = _build(grammar, layout)
    _write(path, built)
    return built


def _build(grammar: str, layout: LayoutFilter) -> Lark:
    return Lark(
        grammar,
        parser="lalr",
        start=["decl", "expr"],
        # The builder takes optional parts by position: an absent one has to be there as None.
        maybe_placeholders=True,
        propagate_positions=True,
        postlex=layout,
    )


def _read(path: Path | None) -> dict[str, object] | None:
    data = kept.read(path)
    try:
        return None if data is None else cast("dict[str, object]", marshal.loads(data))  # noqa: S302  data we wrote
    except (EOFError, ValueError, TypeError):
        return None


def _write(path: Path | None, parser: Lark) -> None:
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    # Without the layout, which has the state of a parse and is no data.
    data["options"] = {name: value for name, value in data["options"].items() if name != "postlex"}
    kept.write(path, marshal.dumps({"data": data, "memo": memo}))
