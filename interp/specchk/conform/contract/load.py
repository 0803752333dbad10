"""Loading the binding class of a Python file, or its tracing class, or its behaviours class."""

from __future__ import annotations

import ast
import runpy
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from specchk.conform.contract.behaviours import Behaviours
from specchk.conform.contract.binding import Binding
from specchk.conform.contract.hangs import contained
from specchk.conform.contract.tracing import Tracing
from specchk.lang.text.diagnostics import nearest

T = TypeVar("T")


class NoBinding(Exception):
    """A file that cannot be run, or does not define exactly one class of the requested kind."""


def load_binding(path: Path) -> type[Binding[Any]]:
    """The binding of a file, which may import its neighbours as a program may; raises `NoBinding`."""
    return _load(path, Binding)


def load_tracing(path: Path) -> type[Tracing]:
    """The tracing of a file, loaded like a binding; raises `NoBinding`."""
    return _load(path, Tracing)


def load_behaviours(path: Path) -> type[Behaviours]:
    """The behaviours of a file, loaded like a binding; raises `NoBinding`."""
    return _load(path, Behaviours)


def _load(path: Path, base: type[T]) -> type[T]:
    folder, known = str(path.resolve().parent), list(sys.path)
    # It stays there: a binding may import a neighbour inside a function, long after it was loaded.
    # First, as a program's own folder is: another binding's may have a file of the same name.
    sys.path[:] = [folder, *(entry for entry in known if entry != folder)]
    # `run_path` and no import: bindings may have the same file name, and an import would give the first one
    # again.
    try:
        with contained():
            names = runpy.run_path(str(path))
    # An exit, too: it would end this program with a misleading exit code.
    except (Exception, SystemExit) as error:
        sys.path[:] = known  # nothing of this folder is imported from now on
        if (outdated := _outdated_control(error, path)) is not None:
            raise NoBinding(outdated) from error
        words = error.msg if isinstance(error, SyntaxError) else error
        raise NoBinding(f"{_where(error, path)}: {type(error).__name__}: {words}") from error
    try:
        return only_class(names, base, "<run_path>", str(path))
    except LookupError as error:
        raise NoBinding(str(error)) from None


def only_class(names: Mapping[str, Any], base: type[T], module: str, shown: str) -> type[T]:
    """The one class derived from `base` that a module itself defines; `LookupError` for none or several."""
    classes = [value for value in names.values() if isinstance(value, type) and issubclass(value, base)]
    own = [cls for cls in classes if cls.__module__ == module]  # imported classes do not count
    if len(own) != 1:
        raise LookupError(
            f"{shown} has {len(own)} classes derived from {base.__name__}; exactly one is expected"
        )
    return own[0]


def _where(error: BaseException, path: Path) -> str:
    """The file and line of an error: the innermost one in the binding's folder, if any."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    folder = path.resolve().parent
    own = [frame for frame in frames if Path(frame.filename).resolve().is_relative_to(folder)]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else str(path)


def _outdated_control(error: BaseException, path: Path) -> str | None:
    """The message for a control that names something missing; None for another error."""
    if not isinstance(error, AttributeError) or error.name is None:
        return None
    lines = [part.lineno for part in traceback.extract_tb(error.__traceback__) if part.filename == str(path)]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        is_controls = any(isinstance(part, ast.Name) and part.id == "controls" for part in targets)
        if is_controls and any(line and node.lineno <= line <= (node.end_lineno or 0) for line in lines):
            owner = getattr(error.obj, "__qualname__", getattr(error.obj, "__name__", repr(error.obj)))
            hint = nearest(error.name, dir(error.obj)) or "rewrite the control"
            what = f"a control names `{owner}.{error.name}`, which was renamed or removed"
            return f"{path}:{lines[-1]}: {what}; {hint}"
    return None
