"""The grammar's parse tables: shipped, or cached in the user's cache directory between runs (`kept`).

Building the LALR tables takes longer than checking a spec, and they depend only on the
grammar, Lark and its options here.  So `grammar.tables` beside the grammar has those of the
Lark that the project is tested with, written by `pytest tests/lang/test_shipped_tables.py --rewrite`; if
it is of another grammar or another Lark, they are built once and kept.  Both are plain data: JSON or marshal
and not pickle, so that a file that is read can only be data, never code.
"""

from __future__ import annotations

import json
import marshal
import zlib
from collections.abc import Mapping
from pathlib import Path
from pkgutil import get_data
from types import MappingProxyType
from typing import Any, cast

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from specchk import kept
from specchk.lang.syntax.layout import LayoutFilter
from specchk.sealed import Damaged, sealed, unsealed

ROOMS = ("lang",)  # whose sources determine the tables
SHIPPED = "grammar.tables"
# The builder accesses optional parts by position: an absent one must be present as None.
OPTIONS: Mapping[str, Any] = MappingProxyType(
    {"parser": "lalr", "start": ["decl", "expr"], "maybe_placeholders": True, "propagate_positions": True}
)


def load_parser(grammar: str, layout: LayoutFilter) -> Lark:
    """The parser of a grammar, from its tables if they are shipped or cached."""
    tables = _shipped(grammar)
    if tables is None:
        path = kept.place("grammars", kept.name_of(lark.__version__, grammar, kept.sources(*ROOMS)))
        tables = _read(path)
        if tables is None:
            built = build(grammar, layout)
            kept.write(path, marshal.dumps(data_of(built)))
            return built
    options = cast("dict[str, object]", cast("dict[str, object]", tables["data"])["options"])
    # The layout holds the state of a parse and is no data; everything else of the tables is.
    options["postlex"] = layout
    return Lark.load(tables)


def build(grammar: str, layout: LayoutFilter) -> Lark:
    """The parser of a grammar, built from the grammar itself."""
    return Lark(grammar, postlex=layout, **OPTIONS)


def data_of(parser: Lark) -> dict[str, object]:
    """The tables of a parser, without its layout filter."""
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    data["options"] = {name: value for name, value in data["options"].items() if name != "postlex"}
    return {"data": data, "memo": memo}


def shipped_file(grammar: str, tables: Mapping[str, object]) -> bytes:
    """The shipped file of these tables; it is valid only for this grammar and this Lark."""
    return sealed(_name(grammar), zlib.compress(json.dumps(tables).encode(), 9))


def _shipped(grammar: str) -> dict[str, object] | None:
    try:
        data = unsealed(_name(grammar), get_data("specchk.lang.syntax", SHIPPED) or b"")
    except (OSError, Damaged):
        return None
    return cast("dict[str, object]", json.loads(zlib.decompress(data), object_hook=_numbered))


def _numbered(item: dict[str, object]) -> dict[Any, object]:
    """A JSON object whose keys were numbers, such as those of states and of the memo: all of them or none."""
    if not next(iter(item), "").isdigit():
        return cast("dict[Any, object]", item)
    return {int(key): value for key, value in item.items()}


def _name(grammar: str) -> str:
    return kept.name_of(lark.__version__, grammar, sorted(OPTIONS.items()))


def _read(path: Path | None) -> dict[str, object] | None:
    data = kept.read(path)
    try:
        return None if data is None else cast("dict[str, object]", marshal.loads(data))  # noqa: S302  data we wrote
    except (EOFError, ValueError, TypeError):
        return None
