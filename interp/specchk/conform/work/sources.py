"""The files of an implementation: the imports of a binding, and their imports.

A module counts if it was loaded from a file of the user's: not of the standard library, not of an
installed package, not of specchk.  The binding's own file comes first.  Imports by name at
run time are not detected.

Invariants: files are named by their path from the binding's folder, with `/`; the order is the same
everywhere.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path, PurePath

_OWN = Path(__file__).parents[2]
_FOREIGN = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
DIGITS = 16
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # of statements that have others inside


def files_of(binding: Path, patterns: Sequence[str] = ()) -> tuple[Path, ...]:
    """The files of the implementation of a loaded binding; the binding itself is the first.

    With `patterns` the files that these name, from the binding's folder, instead of the imported ones.
    """
    own = binding.resolve()
    if patterns:
        # A binding that names its files starts the implementation in other ways than by importing it.
        named = {path.resolve() for pattern in patterns for path in own.parent.glob(pattern)}
        return own, *sorted(path for path in named - {own} if path.is_file())
    files: dict[Path, None] = {own: None}
    loaded = cache(_loaded)
    # Over the syntax, because a module has no record of its imports; those inside functions count, too.
    queue = [(own, "")]
    while queue:
        path, package = queue.pop()
        for name in imported_names(path, package):
            imported = loaded(name)
            if imported is not None and imported not in files:
                files[imported] = None
                queue.append((imported, name))
    return own, *sorted(path for path in files if path != own)


def is_theirs(path: Path) -> bool:
    """Whether a file belongs to the user."""
    return not any(path.is_relative_to(place) for place in (_OWN, *_FOREIGN))


def imported_names(path: Path, module: str) -> Iterator[str]:
    """The modules that a file imports, anywhere in it."""
    # Blocks alone: an import is a statement, and most of what `ast.walk` finds are parts of expressions.
    blocks: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while blocks:
        block = blocks.pop()
        for part in BLOCKS:
            for node in getattr(block, part, ()):
                yield from _names(node, module, path)
                blocks.append(node)


def _loaded(name: str) -> Path | None:
    """The file from which a user's module was loaded; None for a module not loaded, and for others."""
    # A module that was never loaded has no file yet; such an import has not run, so it is not a part of the
    # implementation.
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or not file.endswith(".py"):
        return None
    found = Path(file).resolve()
    return found if is_theirs(found) else None


def _names(node: ast.AST, module: str, path: Path) -> Iterator[str]:
    """The modules that an import may denote, including enclosing packages."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from accumulate(alias.name.split("."), "{}.{}".format)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = module.split(".")
            # In `__init__.py` a relative import counts from the package itself, in a module from the
            # package around it.
            kept = parts[: len(parts) - node.level + (path.name == "__init__.py")]
            base = ".".join([*kept, *filter(None, [node.module])])
        yield from accumulate(base.split("."), "{}.{}".format)
        # `from package import name` may name a module; a name that is none is in no `sys.modules`.
        yield from (f"{base}.{alias.name}" for alias in node.names)


def shown(path: Path, folder: Path) -> str:
    """A file's path relative to a folder, the same on every system."""
    up = PurePath(path)
    root = folder.resolve()
    steps = 0
    while not up.is_relative_to(root):
        root, steps = root.parent, steps + 1
    return "/".join([*[".."] * steps, *up.relative_to(root).parts])


def fingerprint(files: Sequence[Path], folder: Path) -> str:
    """A short name of the files' contents and places."""
    digest = hashlib.sha256()
    for name, path in sorted((shown(path, folder), path) for path in files):
        # Line ends aside: the lock is the same after a checkout on another system.
        content = hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
        digest.update(f"{name} {content}\n".encode())
    return digest.hexdigest()[:DIGITS]
