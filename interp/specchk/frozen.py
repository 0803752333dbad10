"""Frozen data classes that are made quickly, for the modules that have many of them.

`frozen` makes what `dataclass(frozen=True, slots=True)` makes, with one generated function in place of six:
compiling those of the classes of trees and programs took a sixth of a second of each start.  Fields, their
defaults and slots are those of the standard library, and `fields`, `replace` and patterns work.  Only
`__init__` is generated, since it makes each node of each tree; other methods read fields by an `attrgetter`.

Not here: orders, fields that are no arguments or that are only hashed or only compared, arguments by keyword
alone.  Classes with these are plain data classes, and so are those of modules that have only a few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[Kind]) -> type[Kind]:
    """A class as a frozen data class with slots; what it defines itself is kept."""
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(kind)
    members = fields(made)
    compared = _reader([member.name for member in members if member.compare])
    state = _reader([member.name for member in members])
    methods = {
        "__init__": _init(made, members),
        "__repr__": _repr([member.name for member in members if member.repr]),
        "__eq__": _eq(compared),
        "__hash__": lambda self: hash(compared(self)),
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__getstate__": lambda self: state(self),
        "__setstate__": _restore,
    }
    for name, method in methods.items():
        if name not in kind.__dict__:
            setattr(made, name, method)
    result: type[Kind] = made
    return result


def _init(made: type, members: Sequence[Field[Any]]) -> Any:
    scope: dict[str, Any] = {"put": object.__setattr__, "MISSING": MISSING}
    params, lines = [], []
    for member in members:
        name, value = member.name, member.name
        if member.default_factory is not MISSING:
            scope[f"make_{name}"] = member.default_factory
            params.append(f"{name}=MISSING")
            value = f"make_{name}() if {name} is MISSING else {name}"
        elif member.default is not MISSING:
            scope[f"of_{name}"] = member.default
            params.append(f"{name}=of_{name}")
        else:
            params.append(name)
        lines.append(f"put(self, {name!r}, {value})")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__(self, {', '.join(params)}):\n {'; '.join(lines) or 'pass'}", scope)  # noqa: S102  names of fields
    return scope["__init__"]


def _reader(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of attributes, as a tuple of any length."""
    if not names:
        return lambda self: ()
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda self: (read(self),)


def _eq(compared: Callable[[Any], tuple[Any, ...]]) -> Any:
    def equal(self: object, other: object) -> bool:
        return compared(self) == compared(other) if self.__class__ is other.__class__ else NotImplemented

    return equal


def _repr(names: Sequence[str]) -> Any:
    def shown(self: object) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"

    return shown


def _refuse(self: object, name: str, *value: object) -> None:
    raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def _restore(self: object, values: Sequence[object]) -> None:
    """The end of copying and unpickling: the inverse of `__getstate__`."""
    for member, value in zip(fields(self), values, strict=True):  # type: ignore[arg-type]  # a data class
        object.__setattr__(self, member.name, value)
