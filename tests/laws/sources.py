"""The source files as read by the laws: parsed, with their imports and the places of these."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = {"specchk": ROOT / "interp" / "specchk", "replog": ROOT / "impl" / "replog"}


@dataclass(frozen=True)
class Import:
    """One imported module; `hidden` if the import is inside a function or class."""

    module: str
    line: int
    hidden: bool


@dataclass(frozen=True)
class Module:
    """One file of a package."""

    name: str  # specchk.search.reference
    path: Path
    text: str
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def room(self) -> str:
        """`specchk.search` for `specchk.search.reference`; a top-level module is a room of its own."""
        return ".".join(self.name.split(".")[:2])

    @property
    def folder(self) -> str:
        """`specchk.lang.syntax` for `specchk.lang.syntax.tree`; for a top-level module its own name."""
        parent = self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]
        return self.name if parent in PACKAGES else parent

    @property
    def shown(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def functions(self) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        """Every function and method with its dotted name."""
        yield from _functions(self.tree, ())


def _functions(
    node: ast.AST, outer: tuple[str, ...]
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = (*outer, child.name)
            if not isinstance(child, ast.ClassDef):
                yield ".".join(name), child
            yield from _functions(child, name)
        else:
            yield from _functions(child, outer)


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the two packages, by name."""
    found = [
        _read(package, path)
        for package, top in PACKAGES.items()
        for path in top.rglob("*.py")
        if "starters" not in path.parts  # what `specchk init` copies: data here
    ]
    return tuple(sorted(found, key=lambda module: module.name))


@cache
def names() -> frozenset[str]:
    return frozenset(module.name for module in modules())


def _read(package: str, path: Path) -> Module:
    parts = [package, *path.relative_to(PACKAGES[package]).with_suffix("").parts]
    name = ".".join(part for part in parts if part != "__init__")
    return parsed(name, path, path.read_text(encoding="utf-8"))


def parsed(name: str, path: Path, text: str) -> Module:
    """A module with this text."""
    tree = ast.parse(text, str(path))
    top = {id(node) for node in _at_top(tree.body)}
    found = [Import(target, node.lineno, id(node) not in top)
             for node in _statements(tree) for target in _targets(node, name, path)]  # fmt: skip
    return Module(name, path, text, tree, tuple(found))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements inside: expressions, of which there are many more, contain none."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from _statements(child)


def last_name(node: ast.expr) -> str:
    """`c` for `c` and `a.b.c`, otherwise empty: a hundred times faster than the text of the node."""
    return getattr(node, "attr", None) or getattr(node, "id", "")


def _at_top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, inside `if` and `try` too."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _at_top([*node.body, *node.orelse])


def _targets(node: ast.AST, importer: str, path: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            package = importer.split(".") if path.name == "__init__.py" else importer.split(".")[:-1]
            base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
        yield from (_submodule(base, alias.name) for alias in node.names)


def _submodule(base: str, name: str) -> str:
    """`from package import module` imports the module, `from module import name` the containing module."""
    top = base.split(".")[0]
    if top not in PACKAGES:
        return base
    inside = PACKAGES[top].joinpath(*base.split(".")[1:], name)
    return f"{base}.{name}" if inside.is_dir() or inside.with_suffix(".py").is_file() else base
