"""The grammar's parse tables, kept in the user's cache directory between runs.

Building the LALR tables takes longer than checking a spec, and they depend on nothing but the
grammar, Lark and Python.  So they are kept as plain data in
`$XDG_CACHE_HOME/specchk/grammar-<key>.tables` (`~/.cache` without the variable), the key being a
digest of all three.  A file is one line of SHA-256 over the rest, then the marshalled tables:

- a file that is missing, cut short or changed is rebuilt and replaced, never believed;
- a file appears whole or not at all (written beside its place, then renamed);
- a directory that cannot be written costs the time to build the tables, nothing else.

Marshal and not pickle: what is read back can only be data, never code.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import cast

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from specchk.lang.layout import Layout

_FORMAT = "1"


def load_parser(grammar: str, layout: Layout) -> Lark:
    """The parser of a grammar, from the cache where that is possible."""
    directory = cache_directory()
    path = directory / f"grammar-{_key(grammar)}.tables" if directory else None
    tables = _read(path) if path else None
    if tables is not None:
        options = cast("dict[str, object]", cast("dict[str, object]", tables["data"])["options"])
        options["postlex"] = layout
        return Lark.load(tables)
    built = _build(grammar, layout)
    if path is not None:
        _write(path, built)
    return built


def cache_directory() -> Path | None:
    """Where this user's caches of specchk live, or None when the user has no home."""
    named = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if named.is_absolute():  # the XDG rule: anything else is ignored
        return named / "specchk"
    with suppress(RuntimeError):
        return Path.home() / ".cache" / "specchk"
    return None


def _build(grammar: str, layout: Layout) -> Lark:
    return Lark(
        grammar,
        parser="lalr",
        start=["decl", "expr"],
        maybe_placeholders=True,
        propagate_positions=True,
        postlex=layout,
    )


def _key(grammar: str) -> str:
    parts = (_FORMAT, lark.__version__, sys.version, grammar)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _read(path: Path) -> dict[str, object] | None:
    try:
        digest, _, data = path.read_bytes().partition(b"\n")
        if digest != _digest(data):
            return None
        return cast("dict[str, object]", marshal.loads(data))  # noqa: S302  data we wrote, and no code in it
    except (OSError, EOFError, ValueError, TypeError):
        return None


def _write(path: Path, parser: Lark) -> None:
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    data["options"] = {name: value for name, value in data["options"].items() if name != "postlex"}
    blob = marshal.dumps({"data": data, "memo": memo})
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(blob) + b"\n" + blob)
            Path(beside).replace(path)
        except OSError:
            Path(beside).unlink(missing_ok=True)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
