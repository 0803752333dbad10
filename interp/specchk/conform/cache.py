"""Suites kept on disk, under a name made of everything that they depend on.

That is: the program with the words of its spec (classes are told in them), the kind of suite and its
bounds, and the sources of the packages that compute it.  A cache that cannot be read or written is no
reason to fail: the suite is computed again.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from specchk.conform.cases import Suite, as_json, from_json
from specchk.conform.cover import build_suite
from specchk.ir.program import Program
from specchk.lang.tables import cache_directory

_HERE = Path(__file__).parent
_MODULES = ("cases", "classes", "cover", "graph")
_SOURCES = (
    *sorted((_HERE.parent / "core").glob("*.py")),
    *sorted((_HERE.parent / "ir").glob("*.py")),
    *(_HERE / f"{name}.py" for name in _MODULES),
)


def cached_suite(
    program: Program,
    kind: str = "classes",
    bounds: Sequence[tuple[str, str]] = (),
    max_states: int | None = None,
) -> Suite:
    """As `build_suite`, from the cache where it is there."""
    directory = cache_directory()
    if directory is None:
        return build_suite(program, kind, bounds, max_states)
    path = directory / "suites" / f"{suite_key(program, kind, bounds, max_states)}.json"
    suite = _read(path)
    if suite is None:
        suite = build_suite(program, kind, bounds, max_states)
        _write(path, as_json(suite))
    return suite


def suite_key(program: Program, kind: str, bounds: Sequence[tuple[str, str]], max_states: int | None) -> str:
    """A name for everything that a suite depends on."""
    digest = hashlib.sha256()
    for source in _SOURCES:
        digest.update(source.read_bytes())
    texts = sorted({action.span.source.text for action in program.actions})
    about = (
        program.model, program.sorts, program.variables, program.starts, program.inits, program.actions,
        program.constraints, texts, kind, tuple(bounds), max_states,
    )  # fmt: skip
    digest.update(repr(about).encode())
    return digest.hexdigest()[:40]


def _read(path: Path) -> Suite | None:
    try:
        return from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
            file.write(text)
        Path(file.name).replace(path)
    except OSError:
        return
