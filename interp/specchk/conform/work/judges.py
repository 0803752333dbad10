"""The sources that judge an implementation, by function: a binding, what it imports, and its companions.

Not the implementation: the files that a binding names as such, and the packages in which its controls plant
errors.  Layout, comments and docstrings do not count.  A function is named by its place in the file; what
stands outside of functions belongs to its class, or to the file, whose name is "".

Invariant: digests are the same on every machine, and in every version of Python.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from specchk.conform.contract.binding import Binding
from specchk.conform.contract.known_bad import BadCode
from specchk.conform.work.sources import imported_names, is_theirs, shown

DIGITS = 8
Digests = Mapping[str, Mapping[str, str]]  # of functions, by file


def judges_of(path: Path, cls: type[Binding[object]]) -> dict[str, dict[str, str]]:
    """The digests of all functions that judge with a binding, by file as seen from its folder."""
    own = path.resolve()
    companions = [file for pattern in cls.companions for file in sorted(own.parent.glob(pattern))]
    skipped = {file.resolve() for pattern in cls.implementation for file in own.parent.glob(pattern)}
    packages = {
        control.function.__module__.split(".")[0] for control in cls.controls if isinstance(control, BadCode)
    }
    files: dict[Path, None] = {}
    queue = [(own, ""), *((file.resolve(), "") for file in companions)]
    while queue:
        file, package = queue.pop()
        if file in files:
            continue
        files[file] = None
        for name in imported_names(file, package):
            imported = None if name.split(".")[0] in packages else _located(name)
            if imported is not None and imported not in skipped:
                queue.append((imported, name))
    texts = {shown(file, own.parent): file.read_text(encoding="utf-8") for file in files}
    return {name: digests_of(text) for name, text in sorted(texts.items())}


def _located(name: str) -> Path | None:
    """The user's file of a module, loaded or not."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None and "." not in name and name not in sys.modules:
        # A companion is not loaded here, nor are its neighbours.
        spec = PathFinder.find_spec(name)
        file = None if spec is None else spec.origin
    if file is None or not file.endswith(".py"):
        return None
    path = Path(file).resolve()
    return path if is_theirs(path) else None


def changed_between(before: Digests, after: Digests) -> list[str]:
    """The functions in which two sets of sources differ, as a person would name them."""
    names = []
    for file in sorted({*before, *after}):
        was, now = before.get(file), after.get(file)
        if was is None or now is None:
            names.append(f"{file} ({'added' if was is None else 'removed'})")
            continue
        changed = sorted(name for name in {*was, *now} if was.get(name) != now.get(name))
        names += [f"{name} of {file}" if name else f"outside of functions of {file}" for name in changed]
    return names


def digests_of(text: str) -> dict[str, str]:
    """A digest for each function of a text, and for the rest of each class and of the text."""
    parts: dict[str, list[str]] = {}
    for name, node in _parts(ast.parse(text).body, ""):
        parts.setdefault(name, []).append(_form(node))
    return {
        name: hashlib.sha256("\n".join(forms).encode()).hexdigest()[:DIGITS]
        for name, forms in sorted(parts.items())
    }


def _parts(body: Sequence[ast.stmt], owner: str) -> Iterator[tuple[str, ast.AST]]:
    """The statements of a block, each with the name to which it belongs."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{owner}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{owner}{node.name}", part) for part in (*node.bases, *node.keywords))
            yield from ((f"{owner}{node.name}", part) for part in node.decorator_list)
            yield from _parts(node.body, f"{owner}{node.name}.")
        elif not _is_text(node):
            yield owner.rstrip("."), node


def _form(node: object) -> str:
    """A tree as text, without places and docstrings; not `ast.dump`, which differs between versions."""
    if isinstance(node, list):
        return f"[{', '.join(_form(item) for item in node if not _is_text(item))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    # An empty field may be one that another version does not have.
    fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
    return f"{type(node).__name__}({', '.join(f'{name}={_form(value)}' for name, value in fields)})"


def _is_text(node: object) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False
