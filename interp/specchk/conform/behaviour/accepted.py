"""The lock file of accepted behaviour: the digests of each run, as text.

    [runs."walk 3"]
    digest = "9b2f..."      of all that left the implementation
    group = 2               steps that share checks
    trace = "aXk..."        where a difference is (`symbols`)
    checks = "C0a-b..."     and in which field

Invariants: `read` is the inverse of `write`, and refuses other content (`seal`).  Not here: the
differences (`comparison`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from specchk.conform.behaviour.symbols import Symbols
from specchk.conform.work import seal

NAME = "behaviour.lock"
VERSION = 1
MEND = "restore the reviewed file, or write a new one with --update-lock"
HEAD = """\
# The behaviour of this implementation that was accepted last: short digests of all that left it in each run.
# Written by `specchk behaviour FILE --update-lock`.
# It is not a verdict against a spec: a change must be intended; others check whether it is right.
"""


class BadAccepted(Exception):
    """A file that is not a lock of accepted behaviour."""


def write(path: Path, runs: Mapping[str, Symbols]) -> None:
    """Write a lock."""
    seal.write(path, _lines(runs))


def read(path: Path) -> dict[str, Symbols] | None:
    """Return the runs of a lock, None if there is no file; raises `BadAccepted`."""
    return seal.load(path, _runs, version=VERSION, people="", mend=MEND, error=BadAccepted)


def _lines(runs: Mapping[str, Symbols]) -> Iterator[str]:
    yield from HEAD.split("\n")
    yield f"version = {VERSION}"
    for name, symbols in sorted(runs.items()):
        yield from seal.table(f"runs.{seal.quoted(name)}", asdict(symbols))


def _runs(table: Mapping[str, Any]) -> dict[str, Symbols]:
    return {name: Symbols(**run) for name, run in table.get("runs", {}).items()}
