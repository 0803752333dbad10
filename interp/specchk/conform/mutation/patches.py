"""Source patches applied while a module is imported: mutants are created without editing files.

    install((Patch("replog.core.broker.isr", old="remote.leo < state.log.hw", new="False"),))
    import replog.core.broker.isr                     # is compiled from the patched text

A finder precedes all others on `sys.meta_path`; for the named modules, and for all of
the packages whose work is counted (`work`), it returns the usual loader, except for the code, which is
compiled from the patched source and never cached.

Invariants: a text to be replaced is in the source exactly once, or, if its place is given, at that
place; anything else is `StalePatch`, so a mutant cannot silently lose its meaning.  Standard library
only, because specchk itself is patched this way too.  Not here: the patches and their reasons (`mutants`,
`operators`), and their process (`mutate`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import decode_source
from pathlib import Path
from types import CodeType, ModuleType

from msgspec import Struct

from specchk.conform.work.effort import TICK, WorkMeter, counted


class Patch(Struct, frozen=True):
    """In the source of a module, `new` instead of `old`; `at` is the place, in characters."""

    module: str
    old: str
    new: str
    at: int | None = None


class StalePatch(Exception):
    """A patch that does not fit the source, because it was made for another version."""


def patched(source: str, patches: Iterable[Patch]) -> str:
    """A source with its patches applied, those with a place first and backwards, to keep places valid."""
    # From the end, so that a replacement of another length moves no place that is still to come.
    for patch in sorted(patches, key=lambda one: -1 if one.at is None else one.at, reverse=True):
        if patch.at is not None:
            end = patch.at + len(patch.old)
            if source[patch.at : end] != patch.old:
                raise StalePatch(f"{patch.module}: at {patch.at} there is no longer `{patch.old}`")
            source = source[: patch.at] + patch.new + source[end:]
            continue
        count = source.count(patch.old)
        # Texts and not line numbers: they survive changes elsewhere, and one that no longer fits is an
        # error, not another mutant.
        if count != 1:
            first = (patch.old.strip().splitlines() or ["nothing"])[0]
            raise StalePatch(f"{patch.module}: the text that begins `{first}` is found {count} times")
        source = source.replace(patch.old, patch.new)
    return source


class Counted(Struct, frozen=True):
    """The packages whose work a meter counts, by their top-level names."""

    packages: frozenset[str]
    meter: WorkMeter


class _Loader(SourceFileLoader):
    """A loader that compiles the patched text; byte code on disk is neither read nor written."""

    def __init__(self, name: str, path: str, patches: Sequence[Patch], meter: WorkMeter | None) -> None:
        super().__init__(name, path)
        self._patches = patches
        self._meter = meter

    # Not a cached `.pyc`: byte code on disk is of the source without patches, or would be of
    # one with.
    def get_code(self, fullname: str) -> CodeType:
        """The code of the patched source."""
        text = patched(decode_source(self.get_data(self.path)), self._patches)
        if self._meter is not None:
            return counted(text, self.path)
        code: CodeType = compile(text, self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with a meter of its work."""
        if self._meter is not None:
            vars(module)[TICK] = self._meter.tick
        super().exec_module(module)


class Patcher(MetaPathFinder):
    """Finds modules that have patches or are counted; `used` are the imported modules with patches."""

    def __init__(self, patches: Iterable[Patch], counts: Counted | None = None) -> None:
        self._patches: dict[str, list[Patch]] = {}
        for patch in patches:
            self._patches.setdefault(patch.module, []).append(patch)
        self.counts = counts
        self.used: set[str] = set()

    def wanted(self, module: str) -> tuple[Patch, ...]:
        """The patches for a module."""
        return tuple(self._patches.get(module, ()))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec with a patching loader; None for all other modules."""
        is_counted = self.counts is not None and fullname.split(".")[0] in self.counts.packages
        if fullname not in self._patches and not is_counted:
            return None
        # The usual finder finds the file; only the loader is ours, so packages and resources work as
        # always.
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not isinstance(spec.loader, SourceFileLoader):
            if fullname not in self._patches:
                return None
            raise StalePatch(f"{fullname} is not a module with source")
        meter = self.counts.meter if self.counts is not None and is_counted else None
        spec.loader = _Loader(fullname, spec.origin, self.wanted(fullname), meter)
        if fullname in self._patches:
            self.used.add(fullname)
        return spec


def install(patches: Iterable[Patch], counts: Counted | None = None) -> Patcher:
    """From now on, patch the named modules, and count packages, when they are imported.

    `StalePatch` for a module that is loaded: its patch would be left out.
    """
    wanted = tuple(patches)
    for patch in wanted:
        if patch.module in sys.modules:
            raise StalePatch(f"{patch.module} is loaded already, so it can no longer be patched")
    patcher = Patcher(wanted, counts)
    # First, or the usual finder would answer before it.
    sys.meta_path.insert(0, patcher)
    return patcher


def run_file(path: Path, module: ModuleType) -> None:
    """Run a file as a module with the installed patches and count, without importing it."""
    # A binding is run as a file and not imported, so its patches are looked up here.
    finders = [finder for finder in sys.meta_path if isinstance(finder, Patcher)]
    patches = [one for finder in finders for one in finder.wanted(module.__name__)]
    meter = next((finder.counts.meter for finder in finders if finder.counts is not None), None)
    _Loader(module.__name__, str(path), patches, meter).exec_module(module)


def forget(tops: Iterable[str], folders: Iterable[Path] = ()) -> None:
    """Unload packages by top-level name, and the modules in some folders, to have them imported again."""
    names, places = frozenset(tops), {folder.resolve() for folder in folders}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.split(".")[0] in names or (file and Path(file).parent in places):
            del sys.modules[name]


def source_of(module: str) -> Path:
    """The source file of a module, found without importing it; `StalePatch` if it has none."""
    path: Sequence[str] | None = None
    # Package by package: `find_spec` of a dotted name would import the packages above it.
    parts = module.split(".")
    for number in range(len(parts)):
        module_spec = PathFinder.find_spec(".".join(parts[: number + 1]), path)
        if module_spec is None:
            raise StalePatch(f"there is no module {module}")
        path = module_spec.submodule_search_locations
    if module_spec is None or module_spec.origin is None or not module_spec.origin.endswith(".py"):
        raise StalePatch(f"{module} is not a module with source")
    return Path(module_spec.origin)
