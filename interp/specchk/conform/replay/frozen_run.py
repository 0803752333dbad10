"""The runner of a frozen test: this text is copied into each test, so it uses only the standard library.

A binding is written for `specchk.conform`; here it is loaded with stand-ins for these modules, and
its methods are called as the harness calls them: on a system restored from a snapshot, step by
step, the projection compared after each.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any


class Answer:
    """Returned by a handler: `Accepted` if the step was taken."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.reason == getattr(other, "reason", None)

    def __hash__(self) -> int:
        return hash(self.reason)


class Accepted(Answer):
    """The implementation accepted the step."""


class Refused(Answer):
    """The implementation refused the step."""


class Impossible(Answer):
    """No request to the implementation is possible."""


class Bag(list[Any]):
    """Items in any order, with multiplicities."""


class Items(list[Any]):
    """Distinct items in any order."""


class Some:
    """An option in an option."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Anything:
    """Replaces the names that a frozen test does not need."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


class Mismatch(AssertionError):
    """The implementation differs from the spec."""


def marker(what: object) -> Callable[[Any], Any]:
    """A decorator that marks a method."""

    def mark(function: Any) -> Any:
        function.frozen_mark = what
        return function

    return mark


class Binding:
    """The base of bindings."""

    def __init__(self, program: Any) -> None:
        self.program = program
        self.constants = program.constants

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    @marker("snapshot")
    def _keep(self, system: Any) -> Any:
        return deepcopy(system)

    @marker("restore")
    def _back(self, kept: Any) -> Any:
        return deepcopy(kept)


class CopyingBinding(Binding):
    """The base of bindings whose systems copy themselves."""

    @marker("snapshot")
    def _keep(self, system: Any) -> Any:
        return system.copy()

    @marker("restore")
    def _back(self, kept: Any) -> Any:
        return kept.copy()


def ignored(*args: Any, **_: Any) -> Any:
    """A decorator that a frozen test does not need, with or without arguments."""
    return args[0] if args and callable(args[0]) else lambda function: function


STAND_INS: Mapping[str, Any] = MappingProxyType({
    "Answer": Answer, "Accepted": Accepted, "Refused": Refused, "Impossible": Impossible, "Some": Some,
    "Binding": Binding, "RuledBinding": Binding, "CopyingBinding": CopyingBinding,
    "OutsideSpec": Mismatch, "BindingError": Mismatch, "Mistake": Anything,
    "action": lambda name, ways=(): marker(("action", name)), "project": marker("project"),
    "snapshot": marker("snapshot"), "restore": marker("restore"),
    "reopen": marker("reopen"), "silent": ignored, "interruption": ignored, "unchanged": ignored,
})  # fmt: skip


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Provides `specchk` and all its modules, each with the names above and `Anything` for all others."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the specification of a module of specchk, None for any other."""
        is_ours = name.split(".")[0] == "specchk"
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_ours else None

    def exec_module(self, module: ModuleType) -> None:
        """Set the module's names, resolved on access."""
        module.__getattr__ = lambda name: STAND_INS.get(name, Anything)  # type: ignore[method-assign]


@contextmanager
def binding_of(path: Path, name: str, spec: Mapping[str, Any], seal: str) -> Iterator[Any]:
    """The binding of a file, loaded without specchk; `sys.modules` is restored afterwards.

    The calls recorded by a `Follower` must be exactly the frozen ones.
    """
    path, finder = path.resolve(), StandIns()
    folder = path.parent
    ours = {"specchk", f"frozen_{path.stem}", *(one.stem for one in folder.glob("*.py"))}
    hidden = {one: sys.modules.pop(one) for one in list(sys.modules) if one.split(".")[0] in ours}
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, str(folder))
    try:
        found = importlib.util.spec_from_file_location(f"frozen_{path.stem}", path)
        assert found is not None
        assert found.loader is not None
        module = sys.modules[found.name] = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        sorts = [SimpleNamespace(name=sort, members=members) for sort, members in spec["sorts"].items()]
        binding = getattr(module, name)(SimpleNamespace(**{**spec, "sorts": sorts}))
        yield binding
        if seal_of([dict(spec), *getattr(binding, "heard", [])]) != seal:
            raise Mismatch(
                "this test was edited after it was frozen: a step or a value differs; freeze it again"
            )
    finally:
        sys.path.remove(str(folder))
        sys.meta_path.remove(finder)
        for one in [one for one in sys.modules if one.split(".")[0] in ours]:
            del sys.modules[one]
        sys.modules.update(hidden)


class Follower:
    """Takes steps on an implementation and compares its state with the spec's after each."""

    def __init__(self, binding: Any, initial: Mapping[str, Any]) -> None:
        marks = [(member.frozen_mark, name) for base in reversed(type(binding).__mro__)
                 for name, member in vars(base).items() if hasattr(member, "frozen_mark")]  # fmt: skip
        self.methods = {mark: getattr(binding, name) for mark, name in marks}
        self.state = dict(initial)
        self.heard: list[Any] = [dict(initial)]
        binding.heard = self.heard
        self.at = "initially"
        self.system = binding.start()
        self.compare([{}])

    def ask(self, name: str, args: Sequence[Any], way: str) -> bool:
        """Whether the implementation accepts a step."""
        self.at = f"after {name}({', '.join(map(str, args))})"
        self.system = self.methods["restore"](self.methods["snapshot"](self.system))
        handler = self.methods["action", name]
        return isinstance(handler(self.system, *args, *([way] if way else [])), Accepted)

    def step(self, name: str, args: Sequence[Any], way: str, *changes: Mapping[str, Any]) -> None:
        """A step of the spec; `changes` are the variables that it may change, with their values."""
        self.heard.append(("step", name, args, way, *changes))
        if not self.ask(name, args, way):
            raise Mismatch(f"{self.at}: refused, but the spec has this step")
        self.compare(changes)

    def no_step(self, name: str, args: Sequence[Any], way: str) -> None:
        """A step that the spec does not contain."""
        self.heard.append(("no_step", name, args, way))
        if self.ask(name, args, way):
            raise Mismatch(f"{self.at}: accepted, but the spec has no such step")
        self.compare([{}])

    def is_kept(self) -> None:
        """Check that a snapshot is restored to the same state."""
        self.heard.append("is_kept")
        self.system = self.methods["restore"](self.methods["snapshot"](self.system))
        self.compare([{}])

    def is_on_disk(self) -> None:
        """Check that the state on disk is the same."""
        self.heard.append("is_on_disk")
        self.system = self.methods["reopen"](self.system)
        self.compare([{}])

    def compare(self, changes: Sequence[Mapping[str, Any]]) -> None:
        """Check that the projected state is the one before with one of the changes."""
        found = self.methods["project"](self.system)
        possible = [{**self.state, **change} for change in changes]
        for state in possible:
            if not wrong(state, found):
                self.state = state
                return
        first = possible[0]
        told = [
            f"{name} is {found.get(name)!r}, the spec has {first[name]!r}" for name in wrong(first, found)
        ]
        raise Mismatch(f"{self.at}: " + "; ".join(told))


def seal_of(what: Any) -> str:
    """A digest of plain values, independent of the layout of their file."""
    return sha256(_canonical(what).encode()).hexdigest()[:16]


def _canonical(value: Any) -> str:
    name = type(value).__name__
    match value:
        case dict():
            return (
                "{" + ", ".join(f"{_canonical(key)}: {_canonical(item)}" for key, item in value.items()) + "}"
            )
        case set():
            return "{" + ", ".join(sorted(map(_canonical, value))) + "}"
        case list() | tuple():
            return f"{name}[{', '.join(map(_canonical, value))}]"
        case Some():
            return f"{name}({_canonical(value.value)})"
    return repr(value)


def wrong(state: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """The variables whose values differ from the expected ones."""
    return [name for name, value in state.items() if name not in found or not same(value, found[name])]


def same(wanted: Any, found: Any) -> bool:
    """Whether a value equals the expected one, compared as plain values."""
    match wanted:
        case set() | Items():
            return _is_many(found) and _has_all(wanted, found) and _has_all(found, wanted)
        case Bag():
            return _is_many(found) and _same_bag(wanted, list(found))
        case dict():
            return isinstance(found, Mapping) and set(wanted) == set(found) and all(
                same(value, found[key]) for key, value in wanted.items()
            )  # fmt: skip
        case list() | tuple():
            return isinstance(found, Sequence) and _same_items(wanted, found)
        case Some():
            return hasattr(found, "value") and same(wanted.value, found.value)
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)


def _is_many(found: Any) -> bool:
    return isinstance(found, Collection) and not isinstance(found, str)


def _has_all(some: Collection[Any], others: Collection[Any]) -> bool:
    return all(any(same(one, other) or same(other, one) for other in others) for one in some)


def _same_bag(wanted: Bag, rest: list[Any]) -> bool:
    for one in wanted:
        at = next((index for index, other in enumerate(rest) if same(one, other)), None)
        if at is None:
            return False
        del rest[at]
    return not rest


def _same_items(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(some) == len(others) and all(map(same, some, others))
