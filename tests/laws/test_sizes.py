"""The size ratchet: files and functions stay small, and the list of exceptions only shrinks.

`exceptions.toml` has every file and function above the caps with its present size, rounded up to
tens, and the containers at module level that could be changed.  Growing past an entry fails; so does an entry
that is no longer true, which `--rewrite` lowers or removes (it never raises or adds one).
"""

from __future__ import annotations

import ast
import tomllib

from laws.sources import ROOT, modules

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
LIST = ROOT / "tests" / "laws" / "exceptions.toml"
_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_MAKERS = {"list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict"}

Sizes = dict[str, int]


def long_files() -> Sizes:
    folders = ("interp", "impl", "conformance", "tests", "bench")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    sizes = {p.relative_to(ROOT).as_posix(): len(p.read_text(encoding="utf-8").splitlines()) for p in paths}
    return {path: _tens(size) for path, size in sizes.items() if size > MAX_FILE_LINES}


def _tens(size: int) -> int:
    return -(-size // 10) * 10


def long_functions() -> Sizes:
    return {
        f"{module.shown}:{name}": _tens(size)
        for module in modules()
        for name, node in module.functions()
        if (size := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
    }


def module_state() -> Sizes:
    """Containers at module level that could be changed, except for `__all__`; each counts 1."""
    found: Sizes = {}
    for module in modules():
        for node in module.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if not isinstance(node, ast.Assign | ast.AnnAssign) or not _could_change(node.value):
                continue
            for target in targets:
                if isinstance(target, ast.Name) and target.id != "__all__":
                    found[f"{module.shown}:{target.id}"] = 1
    return found


def _could_change(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rsplit(".", 1)[-1] in _MAKERS
    return isinstance(value, _MUTABLE)


def check(found: Sizes, table: str, rewrite: bool) -> None:
    listed: Sizes = tomllib.loads(LIST.read_text(encoding="utf-8")).get(table, {})
    grown = {name: size for name, size in found.items() if size > listed.get(name, 0)}
    assert not grown, f"above the cap ({table}); make it smaller, the list does not grow: {grown}"
    if rewrite and listed != found:
        _lower(table, found)
        return
    assert listed == found, f"{table}: smaller than listed, so shrink the list: pytest tests/laws --rewrite"


def _lower(table: str, found: Sizes) -> None:
    tables = tomllib.loads(LIST.read_text(encoding="utf-8"))
    tables[table] = found
    head = LIST.read_text(encoding="utf-8").split("\n[", 1)[0].rstrip()
    parts = [f"[{name}]\n" + "".join(f'"{k}" = {v}\n' for k, v in sorted(rows.items()))
             for name, rows in tables.items()]  # fmt: skip
    LIST.write_text(head + "\n\n" + "\n".join(parts), encoding="utf-8")


def test_files_are_at_most_600_lines(request):
    """No file of the project is longer than the cap, except for the listed ones."""
    check(long_files(), "file_lines", request.config.getoption("--rewrite"))


def test_functions_are_at_most_60_lines(request):
    """No function of the packages is longer than the cap, except for the listed ones."""
    check(long_functions(), "function_lines", request.config.getoption("--rewrite"))


def test_modules_hold_no_state(request):
    """A module's values cannot change: tuples, frozensets and mapping proxies, except for the listed ones."""
    check(module_state(), "module_state", request.config.getoption("--rewrite"))


def test_no_function_assigns_a_global():
    """`global` would be state shared by all runs of a process."""
    assert not [m.shown for m in modules() for node in ast.walk(m.tree) if isinstance(node, ast.Global)]
