"""The grammar's parse tables: shipped, or cached in the user's cache directory between runs (`kept`).

Building the LALR tables takes longer than checking a spec, and they depend only on the
grammar, Lark and its options here.  So `grammar.tables` beside the grammar has those of the
Lark that the project is tested with, written by `pytest tests/lang/test_shipped_tables.py --rewrite`; if
it is of another grammar or another Lark, they are built once and kept.  Both are JSON, so that a file that is
read can only be data, never code.  To ship them saves 0.25 s of the first answer after an installation.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
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
    packed = _shipped(grammar)
    if packed is None:
        path = kept.place("grammars", kept.name_of(lark.__version__, grammar, kept.sources(*ROOMS)))
        packed = kept.read(path)
        if packed is None:
            built = build(grammar, layout)
            kept.write(path, packed_tables(built))
            return built
    tables = json.loads(zlib.decompress(packed), object_hook=_numbered)
    # The layout holds the state of a parse and is no data; everything else of the tables is.
    tables["data"]["options"]["postlex"] = layout
    return Lark.load(tables)


def build(grammar: str, layout: LayoutFilter) -> Lark:
    """The parser of a grammar, built from the grammar itself."""
    return Lark(grammar, postlex=layout, **OPTIONS)


def packed_tables(parser: Lark) -> bytes:
    """The tables of a parser, without its layout filter."""
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    data["options"] = {name: value for name, value in data["options"].items() if name != "postlex"}
    return zlib.compress(json.dumps({"data": data, "memo": memo}).encode(), 9)


def shipped_file(grammar: str, packed: bytes) -> bytes:
    """The shipped file of these tables; it is valid only for this grammar and this Lark."""
    return sealed(_name(grammar), packed)


def _shipped(grammar: str) -> bytes | None:
    try:
        return unsealed(_name(grammar), get_data("specchk.lang.syntax", SHIPPED) or b"")
    except (OSError, Damaged):
        return None


def _numbered(item: dict[str, object]) -> dict[Any, object]:
    """A JSON object whose keys were numbers, such as those of states and of the memo: all of them or none."""
    if not next(iter(item), "").isdigit():
        return cast("dict[Any, object]", item)
    return {int(key): value for key, value in item.items()}


def _name(grammar: str) -> str:
    return kept.name_of(lark.__version__, grammar, sorted(OPTIONS.items()))
