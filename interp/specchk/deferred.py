"""Dataclasses with slots whose methods are written when they are first used.

`dataclasses` compiles up to six functions for each class while its module is imported: half a millisecond a
class, a third of the time that `specchk run` takes to start, which uses 140 to 190 of 240 classes.  Here, a
class gets its slots at once, and for each method a descriptor; the first that is looked up has `dataclasses`
write all of the class's methods, which then take the descriptors' places.
What a class does is what `dataclasses.dataclass` makes it do: only the moment differs (and a class without a
docstring does not get its signature for one).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import field
from inspect import get_annotations
from threading import RLock
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field"]
_COMPARED = ("__lt__", "__le__", "__gt__", "__ge__")
_DESCRIBED = ("__match_args__", "__dataclass_fields__", "__dataclass_params__")
_NAMES = "_deferred_names"

# A class is completed once, though two threads look up its methods at a time; its bases are completed within.
_completing = RLock()


def _dataclass(cls: type | None = None, /, **options: Any) -> Any:
    """`dataclasses.dataclass`, with its methods deferred if the class has slots."""
    if cls is None:
        return lambda decorated: _dataclass(decorated, **options)
    return _with_slots(cls, options) if options.get("slots") else dataclasses.dataclass(**options)(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _with_slots(cls: type, options: dict[str, Any]) -> type:
    body = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
    own = [name for name, kind in get_annotations(cls).items() if not _of_class(kind)]
    if "__weakref__" in own:
        raise TypeError(f"{cls.__qualname__} has a field __weakref__: write weakref_slot=True")
    inherited = [name for base in cls.__mro__[1:] for name in _slots(base)]
    slots = [*own, "__weakref__"] if options.get("weakref_slot") else own
    kept = {name: value for name, value in body.items() if name not in own}
    slotted = _made(cls, kept | {"__slots__": tuple(name for name in slots if name not in inherited)})
    names = dict.fromkeys(getattr(slotted, _NAMES, ()))
    setattr(slotted, _NAMES, (*names, *(name for name in own if name not in names)))

    def complete() -> None:
        written: type = dataclasses.dataclass(**options)(_made(cls, body))
        if [one.name for one in dataclasses.fields(written)] != list(getattr(slotted, _NAMES)):
            raise TypeError(f"{cls.__qualname__} has fields other than the annotations of it or its bases")
        for name, method in list(vars(slotted).items()):
            if isinstance(method, _Deferred):
                if name in written.__dict__:
                    setattr(slotted, name, written.__dict__[name])
                else:
                    delattr(slotted, name)

    for name in _written(body, options):
        setattr(slotted, name, _Deferred(slotted, name, complete))
    if options.get("eq", True) and not options.get("frozen") and body.get("__hash__") is None:
        slotted.__hash__ = None  # type: ignore[assignment]
    if options.get("frozen"):
        # A frozen instance refuses the assignments by which pickle restores one.
        for name, method in (("__getstate__", _state), ("__setstate__", _restore)):
            if name not in body:
                setattr(slotted, name, method)
    return slotted


def _written(body: dict[str, Any], options: dict[str, Any]) -> list[str]:
    """The names that `dataclasses` defines in a class, except those that its body defines."""
    frozen, eq = options.get("frozen", False), options.get("eq", True)
    names = [*_DESCRIBED]
    names += ["__init__"] if options.get("init", True) else []
    names += ["__repr__"] if options.get("repr", True) else []
    names += ["__eq__"] if eq else []
    names += _COMPARED if options.get("order") else ()
    names += ["__setattr__", "__delattr__"] if frozen else []
    given = [name for name in names if name not in body]
    # A body with `__eq__` alone has a `__hash__` of None, which Python put there.
    return given + (["__hash__"] if frozen and eq and body.get("__hash__") is None else [])


class _Deferred:
    """A method, or a descriptor, that its class does not have yet."""

    __slots__ = ("_complete", "_name", "_owner")

    def __init__(self, owner: type, name: str, complete: Callable[[], None]) -> None:
        self._owner, self._name, self._complete = owner, name, complete

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        with _completing:
            if self._owner.__dict__.get(self._name) is self:
                self._complete()
        # The class looked at may be derived from the owner; what the owner lacks, its bases may have.
        if self._name not in self._owner.__dict__:
            return getattr(super(self._owner, kind if instance is None else instance), self._name)
        found = self._owner.__dict__[self._name]
        return found.__get__(instance, kind) if hasattr(found, "__get__") else found


def _made(cls: type, body: dict[str, Any]) -> type:
    """A class with this body, otherwise like the given one."""
    made = type(cls)(cls.__name__, cls.__bases__, dict(body))
    made.__qualname__ = cls.__qualname__
    return made


def _of_class(kind: object) -> bool:
    """Whether an annotation is `ClassVar`, so that the attribute is not a field."""
    text = kind if isinstance(kind, str) else repr(kind)
    return text.removeprefix("typing.").startswith("ClassVar")


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(self, _NAMES)]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(self, _NAMES), state, strict=True):
        object.__setattr__(self, name, value)
