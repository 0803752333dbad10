"""The binding class of a Python file, or its tracing class."""

from __future__ import annotations

import ast
import runpy
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specchk.conform.contract.binding import Binding
from specchk.conform.contract.tracing import Tracing
from specchk.lang.text.diagnostics import nearest


class NoBinding(Exception):
    """A file that cannot be run, or has no class derived from `Binding` (or `Tracing`), or several."""


def load_binding(path: Path) -> type[Binding[Any]]:
    """The binding of a file, which may import its neighbours, as a program may; raises `NoBinding`."""
    chosen: type[Binding[Any]] = _load(path, Binding)
    return chosen


def load_tracing(path: Path) -> type[Tracing]:
    """The tracing of a file, as for a binding; raises `NoBinding`."""
    chosen: type[Tracing] = _load(path, Tracing)
    return chosen


def _load(path: Path, base: type) -> Any:
    folder, known = str(path.resolve().parent), list(sys.path)
    # It stays there: a binding may import a neighbour inside of a function, long after it was loaded.
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # `run_path` and no import: bindings may have the same file name, and an import would give the first one
    # again.
    try:
        names = runpy.run_path(str(path))
    # An exit, too: it would end this program with a code that says something else.
    except (Exception, SystemExit) as error:
        sys.path[:] = known  # nothing of this folder is imported any more
        if (outdated := _outdated_control(error, path)) is not None:
            raise NoBinding(outdated) from error
        words = error.msg if isinstance(error, SyntaxError) else error
        raise NoBinding(f"{_where(error, path)}: {type(error).__name__}: {words}") from error
    try:
        return only_class(names, base, "<run_path>", str(path))
    except LookupError as error:
        raise NoBinding(str(error)) from None


def only_class(names: Mapping[str, Any], base: type, module: str, shown: str) -> Any:
    """The one class derived from `base` that a module defines itself; `LookupError` for none or several."""
    classes = [one for one in names.values() if isinstance(one, type) and issubclass(one, base)]
    found = [one for one in classes if one.__module__ == module]  # imported classes do not count
    if len(found) != 1:
        raise LookupError(
            f"{shown} has {len(found)} classes derived from {base.__name__}; exactly one is expected"
        )
    return found[0]


def _where(error: BaseException, path: Path) -> str:
    """The file and line of an error, the last one in the binding's folder if there is one."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    folder = path.resolve().parent
    own = [one for one in frames if Path(one.filename).resolve().is_relative_to(folder)]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else str(path)


def _outdated_control(error: BaseException, path: Path) -> str | None:
    """The message for a control that names something missing; None for another error."""
    if not isinstance(error, AttributeError) or error.name is None:
        return None
    lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == str(path)]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        is_controls = any(isinstance(one, ast.Name) and one.id == "controls" for one in targets)
        if is_controls and any(line and node.lineno <= line <= (node.end_lineno or 0) for line in lines):
            owner = getattr(error.obj, "__qualname__", getattr(error.obj, "__name__", repr(error.obj)))
            hint = nearest(error.name, dir(error.obj)) or "rewrite the control"
            what = f"a control names `{owner}.{error.name}`, which was renamed or removed"
            return f"{path}:{lines[-1]}: {what}; {hint}"
    return None
