"""The user's files that a job needs elsewhere: a tracing, its imports, its spec.

    the main file and its neighbours *.py, all of every package that it imports, however deep, and the spec's
    files

They are sent by their path from a folder that has all of them, so they have the same relative places,
and are imported from there.  Installed packages (`sources.is_theirs`) are not sent: they
must be installed on the workers, too.

Invariants: the same files make the same kit; where one process is given several kits, modules of
another one are forgotten.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from specchk.conform.contract.hangs import contained
from specchk.conform.contract.load import load_tracing
from specchk.conform.work.crews import Job
from specchk.conform.work.sources import files_of
from specchk.lang.check.spec import Spec
from specchk.lang.frontend import CheckedSpec


class Kit(Struct, frozen=True):
    """Files by path relative to a common folder; `main` is the user's file, imports start from `roots`."""

    files: tuple[tuple[str, bytes], ...]
    main: str
    roots: tuple[str, ...]


def kit_of(main: Path, checked: CheckedSpec) -> Kit:
    """The kit of a tracing loaded here."""
    own = main.resolve()
    imported = dict.fromkeys(files_of(own))
    paths = {*imported, *spec_files(checked.spec)}
    roots = {own.parent: None}
    # Neighbours too: a tracing may import one inside a function that has not run here.
    paths.update(path for path in own.parent.glob("*.py") if path.is_file())
    # Whole packages: what they import by name at run time must be there as well.
    for root, package in _packages(imported):
        roots[root] = None
        if package is not None:
            paths.update(path for path in package.rglob("*.py") if path.is_file())
    # The common folder: files keep their places relative to one another, which imports and `spec` rely on.
    base = Path(os.path.commonpath([*roots, *(path.parent for path in paths)]))
    files = tuple((path.relative_to(base).as_posix(), path.read_bytes()) for path in sorted(paths))
    inside = tuple(root.relative_to(base).as_posix() for root in roots)
    return Kit(files, own.relative_to(base).as_posix(), inside)


def spec_files(spec: Spec) -> set[Path]:
    """The files of a spec: itself, and those that it extends, imports and refines."""
    paths = {source.path for source in spec.all_sources()}
    return {path.resolve() for path in map(Path, paths) if path.is_file()}


def _packages(files: Iterable[Path]) -> Iterator[tuple[Path, Path | None]]:
    """The folders from which the modules of some files are imported, each with its package's, if any."""
    wanted = frozenset(files)
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).resolve() in wanted:
            path = Path(file).resolve()
            folder = path.parent if path.name == "__init__.py" else path.with_suffix("")
            # One folder up for each dot: the root is where the top package is, not where this module is.
            for _ in name.split(".")[1:]:
                folder = folder.parent
            yield folder.parent, folder if folder.is_dir() else None


class Shipped(Struct, frozen=True):
    """A worker, and how to start it where a kit is unpacked; `deep` is the recursion limit there."""

    work: Job[Any, Any]
    main: str
    roots: tuple[str, ...]
    deep: int

    def __call__(self, place: Path) -> Callable[[Any], Any]:
        """The function that processes pieces; raises the exceptions of importing the user's modules."""
        enter(place, self.roots)
        # A tracing that needed more depth here needs it there; a worker starts with Python's own limit.
        sys.setrecursionlimit(max(self.deep, sys.getrecursionlimit()))
        main = place / self.main
        cls = load_tracing(main)
        # Each piece: an implementation that calls `os._exit` diverges, as it does locally.
        return contained()(self.work(cls, main.parent))


def shipped(work: Job[Any, Any], kit: Kit) -> Shipped:
    """A worker to be sent with a kit."""
    return Shipped(work, kit.main, kit.roots, sys.getrecursionlimit())


def enter(place: Path, roots: Iterable[str]) -> None:
    """Import from a kit first, and no longer from one unpacked beside it; zip files there stay."""
    places = [str((place / root).resolve()) for root in roots]
    around = str(place.parent.resolve()) + os.sep
    sys.path[:] = [
        *places,
        *(path for path in sys.path if path.endswith(".zip") or not path.startswith(around)),
    ]
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        # Modules of an earlier kit would answer for the files of this one.
        if file.startswith(around) and ".zip" + os.sep not in file:
            del sys.modules[name]
