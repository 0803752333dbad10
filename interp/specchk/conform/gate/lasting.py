"""The values of an implementation that outlive a case: of modules, of classes, and of function defaults.

    imported          the calls and values of an import of the binding, in a process that has none of it yet
    changed_values    the names of the values that differ from those

A case that changes one may change what another case does, and no call shows it: a table that is made where
it is first needed is found there by all that come later.  So values are compared with those that an import
leaves, by digests of their structure, which are equal in all processes.

Objects created by the import, such as a table or a registry, exist in every case.

Not here: systems, and objects that only they refer to.  They are created for each case.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
import types
import warnings
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from specchk.conform.contract.failures import FAILURES
from specchk.conform.contract.load import load_binding
from specchk.conform.gate.calls import ELSEWHERE, CallTracer, Function
from specchk.kept import replace

DIGITS = 16
CACHES = ("__", "_abc_", "_value2member_map_")  # members of classes that Python fills itself
UNKNOWN = ""  # the digest of a value with an opaque part, such as a lock
_PLAIN = (bool, int, float, complex, str, bytes, range, type(None), type(...), type(NotImplemented))
_NAMED = (
    types.BuiltinFunctionType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.MethodDescriptorType, types.ModuleType, types.WrapperDescriptorType,
)  # fmt: skip
Values = Mapping[str, str]  # a digest of each, by the file's shown path and the name
_PROGRAM = "from specchk.conform.gate.lasting import note_import; note_import()"


def lasting_values(binding: type, names: Mapping[str, str]) -> Values:
    """The current values of a binding and of the modules in some files; `names` has their shown paths."""
    found: dict[str, str] = {}
    for file, members in _modules(binding):
        shown = names.get(_resolved(file))
        if shown is not None:
            for name, value in [*members.items()]:  # a lazy import would change it meanwhile
                if not (name.startswith("__") and name.endswith("__")):
                    found[f"{name} of {shown}"] = _digest(value, names)
    return found


def own_values(binding: Any, names: Mapping[str, str]) -> Values:
    """The values of a binding's attributes, which all cases of a suite share."""
    own = ((name, value) for name, value in vars(binding).items() if name not in ("program", "constants"))
    return {f"{name} of {type(binding).__name__}": _digest(value, names) for name, value in own}


def _digest(value: Any, names: Mapping[str, str]) -> str:
    digest = _Digest(names)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is deprecated to take some parts apart
            text = digest.of([value])
    except FAILURES:  # it is nested too deeply, or its own code fails
        return UNKNOWN
    return UNKNOWN if digest.is_unknown else text


def changed_values(then: Values, now: Values) -> list[str]:
    """The names of the values that have changed, or may have changed."""
    both = {*then, *now}
    return sorted(name for name in both if then.get(name) != now.get(name) or now.get(name) == UNKNOWN)


def _modules(binding: type) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is not None:
            yield file, vars(module)
    # The binding's own file is run, not imported.
    for member in vars(binding).values():
        if isinstance(member, types.FunctionType):
            yield member.__code__.co_filename, member.__globals__
            return


@cache  # for a thousand modules, each time that values are compared
def _resolved(file: str) -> str:
    return str(Path(file).resolve())


class _Digest:
    """Digests a value with everything that it refers to; classes and functions of other files by name."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._seen: dict[int, int] = {}
        self.is_unknown = False
        self._kept: list[Any] = []  # so that no other value has the same id meanwhile

    def of(self, values: Iterable[Any]) -> str:
        """The digest of some values, in order."""
        digest = hashlib.sha256()
        for value in values:
            digest.update(self._one(value).encode() + b"\0")
        return digest.hexdigest()[:DIGITS]

    def _one(self, value: Any) -> str:
        if isinstance(value, _PLAIN) and type(value) in _PLAIN:
            return repr(value)
        # Of constants it depends on the compiler which are one object.
        if type(value) not in (tuple, frozenset):
            if id(value) in self._seen:
                return f"again {self._seen[id(value)]}"
            self._seen[id(value)] = len(self._seen)
            self._kept.append(value)
        return f"{type(value).__qualname__} {self._parts(value)}"

    def _parts(self, value: Any) -> str:
        if isinstance(value, _NAMED):
            return getattr(value, "__qualname__", value.__name__)
        if isinstance(value, type):
            members = vars(value).items() if self._is_theirs(value) else ()
            own = [one for name, one in members if not name.startswith(CACHES)]
            return f"{value.__module__} {value.__qualname__} {self.of(own)}"
        if isinstance(value, types.FunctionType):
            return f"{value.__qualname__} {self._of_function(value)}"
        if hasattr(value, "cache_info"):  # of `functools.lru_cache`: its entries are not accessible
            return f"{value.cache_info().currsize} {self.of([value.__wrapped__])}"
        if isinstance(value, types.UnionType):
            return self.of(value.__args__)
        if isinstance(value, property):
            return self.of([value.fget, value.fset, value.fdel])
        if isinstance(value, staticmethod | classmethod | types.MethodType):
            return self.of([value.__func__, getattr(value, "__self__", None)])
        return self._of_items(value)

    def _of_items(self, value: Any) -> str:
        kind = type(value)
        if kind in (list, tuple):
            return self.of(value)
        if kind in (dict, types.MappingProxyType):
            return self.of(part for item in value.items() for part in item)
        if isinstance(value, Set) and kind in (set, frozenset):
            # Each by itself, since the order of a set is another in each process.
            parts = [(_Digest(self._names), one) for one in value]
            texts = sorted(digest.of([one]) for digest, one in parts)
            self.is_unknown = self.is_unknown or any(digest.is_unknown for digest, _ in parts)
            return " ".join(texts)
        try:
            made = value.__reduce_ex__(4)
        except (*FAILURES, pickle.PicklingError):
            self.is_unknown = True
            return ""
        if isinstance(made, str):
            return made
        items = [list(part) for part in made[3:5] if part is not None]  # those of a list and of a mapping
        return self.of([*made[:3], *items, *made[5:]])

    def _of_function(self, value: types.FunctionType) -> str:
        if _resolved(value.__code__.co_filename) not in self._names:
            return value.__module__ or ""
        cells: list[Any] = []
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # an empty one
                cells.append(cell.cell_contents)
        return self.of([value.__defaults__, value.__kwdefaults__, dict(vars(value)), cells])

    def _is_theirs(self, value: type) -> bool:
        module = sys.modules.get(value.__module__)
        if module is None:  # of the binding's file, which is run
            return True
        file = getattr(module, "__file__", None)
        return file is not None and _resolved(file) in self._names


class Imported(Struct, frozen=True):
    """The functions run by an import, and the values that exist after it."""

    calls: frozenset[Function]
    values: Values


def imported(binding: Path, names: Mapping[str, str]) -> Imported:
    """The calls and values from importing a binding; `names` as of `CallTracer.functions`.

    `ELSEWHERE` is among the calls where the import fails there, though it did not here.
    """
    with TemporaryDirectory(prefix="specchk-") as folder:
        calls = Path(folder) / "calls.json"
        command = [sys.executable, "-P", "-c", _PROGRAM, str(binding), json.dumps(dict(names)), str(calls)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
        # Its output has been printed here, by the first import.
        done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603
        if done.returncode != 0 or not calls.exists():
            return Imported(frozenset({ELSEWHERE}), {})
        ran, values = json.loads(calls.read_text(encoding="utf-8"))
        return Imported(frozenset((file, name) for file, name in ran), values)


def note_import() -> None:
    """Import the binding given on the command line, and write what was run."""
    binding, names, calls = Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3])
    tracer = CallTracer()
    with tracer.running():
        cls = load_binding(binding)
    ran = sorted(set().union(*tracer.functions(names).values()))
    replace(calls, json.dumps([ran, lasting_values(cls, names)]).encode())
