"""Omissions: whether the fast tests of a room notice that something was left out of its code.

    python bench/gate/omissions.py [--seed 1] [--each 6] [--rooms ir,lang] [--list]

In a copy of the repository one thing at a time is taken out of a module: an element of a table, a case of
a `match`, or the rest of a function that gives nothing back or yields.  Then the fast tests of the room
are run.  What they do not notice is printed, to be judged: it changes nothing (a type alias, a short cut),
or a test is missing.  The same seed plants the same.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
IN_CORE = ("ir", "meaning", "compile", "search", "explore")  # tested in tests/ir and tests/core
ROOMS = (*IN_CORE, "lang", "report", "native", "conform", "symbolic")
TESTS = dict.fromkeys(IN_CORE, ("ir", "core"))
PER_TEST_RUN_S = 3600


def tables(text: str) -> Iterator[tuple[str, str]]:
    """Each element of a literal at module level left out: what, and the text without it."""
    data, ends = text.encode(), [0]
    for line in text.splitlines(keepends=True):
        ends.append(ends[-1] + len(line.encode()))
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(
            node.value, ast.Call | ast.Dict | ast.Set | ast.Tuple
        ):
            continue  # a subscript is a type's other name
        name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        for first, last in _elements(node.value):
            begin = ends[first.lineno - 1] + first.col_offset
            end = ends[(last.end_lineno or 0) - 1] + (last.end_col_offset or 0)
            after = data[end:].lstrip()
            comma = len(data) - len(after) + 1 if after.startswith(b",") else end
            yield f"{name} without {data[begin:end].decode()[:50]}", (data[:begin] + data[comma:]).decode()


def _elements(value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    for literal in ast.walk(value):
        if isinstance(literal, ast.Set | ast.List) and len(literal.elts) > 1:
            yield from zip(literal.elts, literal.elts, strict=True)
        elif isinstance(literal, ast.Dict) and len(literal.keys) > 1:
            yield from ((key, item) for key, item in zip(literal.keys, literal.values, strict=True) if key)


def ends(text: str) -> Iterator[tuple[str, str]]:
    """Each function that gives nothing back, or yields, ended at once."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("__"):
            continue
        yields = any(isinstance(one, ast.Yield | ast.YieldFrom) for one in ast.walk(node))
        words = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
        body = node.body[1:] if words else node.body
        if body and (yields or (node.returns is not None and ast.unparse(node.returns) == "None")):
            at = body[0].lineno - 1
            ended = [*lines[:at], " " * body[0].col_offset + "return\n", *lines[at:]]
            yield f"{node.name} (line {node.lineno}) ends at once", "".join(ended)


def cases(text: str) -> Iterator[tuple[str, str]]:
    """Each case of a `match` with three or more left out."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        for case in node.cases if isinstance(node, ast.Match) and len(node.cases) > 2 else ():
            left = [*lines[: case.pattern.lineno - 1], *lines[case.body[-1].end_lineno :]]
            yield f"line {case.pattern.lineno} without case {ast.unparse(case.pattern)[:50]}", "".join(left)


KINDS = {"table": tables, "end": ends, "case": cases}


def planted(room: str, kind: str) -> Iterator[tuple[Path, str, str]]:
    """Everything of a kind that can be left out of a room, and is still Python."""
    for path in sorted((ROOT / "interp" / "specchk" / room).rglob("*.py")):
        for what, text in KINDS[kind](path.read_text(encoding="utf-8")):
            try:
                ast.parse(text)
            except SyntaxError:
                continue
            yield path.relative_to(ROOT), what, text


def noticed(copy: Path, room: str) -> str:
    """The first test of a room that fails, empty if none does."""
    env = {**os.environ, "PYTHONPATH": f"{copy}/interp:{copy}/impl", "PYTHONDONTWRITEBYTECODE": "1",
           "PYTHONHASHSEED": "0", "XDG_CACHE_HOME": str(copy / ".cache")}  # fmt: skip
    tests = [f"tests/{name}" for name in TESTS.get(room, (room,))]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-m", "not slow", *tests],
        cwd=copy, env=env, capture_output=True, text=True, check=False, timeout=PER_TEST_RUN_S,
    )  # fmt: skip
    found = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "" if done.returncode == 0 else (found or [f"pytest ended with {done.returncode}"])[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=6, help="of each kind in each room")
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--list", action="store_true", help="print them and run nothing")
    asked = parser.parse_args()
    count, missed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(copy)], check=True)
        for room in asked.rooms.split(","):
            for kind in KINDS:
                every = list(planted(room, kind))
                for path, what, text in random.Random(f"{asked.seed} {room} {kind}").sample(
                    every, min(asked.each, len(every))
                ):
                    count += 1
                    if asked.list:
                        print(f"{path}: {what}")
                        continue
                    began, whole = time.monotonic(), (copy / path).read_text(encoding="utf-8")
                    (copy / path).write_text(text, encoding="utf-8")
                    by = noticed(copy, room)
                    (copy / path).write_text(whole, encoding="utf-8")
                    missed += not by
                    word = f"noticed by {by}" if by else "NOT NOTICED"
                    print(f"{path}: {what}: {word} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{count} left out" if asked.list else f"{count - missed} of {count} noticed")


if __name__ == "__main__":
    main()
