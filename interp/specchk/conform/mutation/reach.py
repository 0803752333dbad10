"""The lines of an implementation that a member of the gate runs: where it could detect a mutant at all.

Lines are recorded by a trace function that ignores a function once all of its lines were seen, or
none was new for `PATIENCE` calls, when all of them count as run: so the cost falls as the run continues,
and no line is missed.  Threads that start while lines are recorded are followed; a forked process
reports nothing, so then every line counts.  Lines of a module or class body do not count:
importing runs them, in every test.

Invariant: a member that runs none of the lines that a mutant changes takes the same steps with it as
without it, so it is not run.  A change outside functions concerns every member.
"""

from __future__ import annotations

import ast
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from msgspec import Struct, field

from specchk.conform.mutation.patches import Patch, source_of

PATIENCE = 3_000
Lines = dict[str, frozenset[int]]  # by module


class _Function(Struct):
    """A function's code, with the lines that were run and those that were not."""

    code: CodeType
    run: set[int]
    left: set[int]
    calls: int = 0  # since a line was new

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Handle a call of the function, or the execution of one of its lines."""
        line = frame.f_lineno
        # Checked before the kind of event: a call, too, is at a line.
        if line in self.left:
            self.left.discard(line)
            self.run.add(line)
            self.calls = 0
        elif event == "call":
            self.calls += 1
            if self.calls > PATIENCE:
                # A line that counts as run too much costs a test; one too few would leave out a member that
                # sees the mutant.
                self.run |= self.left
                self.left.clear()
            if not self.left:
                return None
        return self


class LineTracer(Struct):
    """Records lines of the files of some packages, by file name."""

    names: Mapping[str, str]  # file -> module
    seen: dict[int, _Function] = field(default_factory=dict)  # by identity: hashing code is slow
    is_on: bool = False
    has_forked: bool = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Handle a call: trace the function if it is in one of the packages and has unseen lines."""
        code = frame.f_code
        function = self.seen.get(id(code))
        if function is None:
            # Without a local trace function a foreign frame costs one call and no lines.
            if code.co_filename not in self.names:
                return None
            lines = {line for _, _, line in code.co_lines() if line}
            function = self.seen[id(code)] = _Function(code, {frame.f_lineno}, lines)
        return function(frame, event, argument)

    def note_fork(self) -> None:
        """Note that the process is about to be forked."""
        self.has_forked |= self.is_on

    def lines(self) -> Lines:
        """The lines that were run in functions."""
        if self.has_forked:
            return {
                module: _lines_inside(Path(file).read_text(encoding="utf-8"))
                for file, module in self.names.items()
            }
        run: dict[str, set[int]] = {}
        # A list, since threads may still run.
        for function in list(self.seen.values()):
            code = function.code
            if code.co_flags & _NEWLOCALS and code.co_name != "<module>":
                run.setdefault(self.names[code.co_filename], set()).update(function.run)
        return {module: frozenset(lines) for module, lines in run.items()}


_NEWLOCALS = 0x2 | 0x1  # set for functions; a class body has neither


@contextmanager
def recording(packages: Iterable[str]) -> Iterator[LineTracer]:
    """Record the lines of packages that are run inside the block, preferably before they are loaded.

    Threads that run already are not followed.
    """
    files = {str(path): module for package in packages for path, module in modules_of(package)}
    tracer = LineTracer(files)
    before, of_threads = sys.gettrace(), threading.gettrace()
    tracer.is_on = True
    # For good, since a hook cannot be taken back.
    os.register_at_fork(before=tracer.note_fork)
    threading.settrace(tracer)
    sys.settrace(tracer)
    try:
        yield tracer
    finally:
        sys.settrace(before)
        threading.settrace(of_threads)
        tracer.is_on = False


def modules_of(package: str) -> Iterator[tuple[Path, str]]:
    """The files of a package, or of a single module, with the names of their modules."""
    top = source_of(package)
    if top.name != "__init__.py":
        yield top, package
        return
    for path in sorted(top.parent.rglob("*.py")):
        parts = [package, *path.relative_to(top.parent).with_suffix("").parts]
        yield path, ".".join(part for part in parts if part != "__init__")


def touched(patches: Iterable[Patch]) -> tuple[tuple[str, frozenset[int]], ...] | None:
    """The lines of functions that patches change, by module; None if a patch is outside all functions."""
    changed = []
    for patch in patches:
        source = source_of(patch.module).read_text(encoding="utf-8")
        begin = source.index(patch.old) if patch.at is None else patch.at
        first = source.count("\n", 0, begin) + 1
        # All lines of the text that is replaced, also those that stay the same: a line too many has a member
        # run in vain, a line too few would leave out one that can kill.
        lines = frozenset(range(first, first + patch.old.rstrip("\n").count("\n") + 1))
        inside = _lines_inside(source)
        if not lines & inside:
            # A default, a decorator or a constant of a class: run at import, by any importer.
            return None
        changed.append((patch.module, lines & inside))
    return tuple(changed)


def _lines_inside(source: str) -> frozenset[int]:
    """The lines of the bodies of functions."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines.update(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


def reaches(lines: Lines, changed: tuple[tuple[str, frozenset[int]], ...] | None) -> bool:
    """Whether a member that runs these lines could detect a change."""
    return changed is None or any(lines.get(module, frozenset()) & those for module, those in changed)
