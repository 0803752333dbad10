"""Dataclasses with slots whose methods are written when they are first used.

`dataclasses` compiles up to six functions for each class while its module is imported: half a millisecond a
class, a third of the time that `specchk run` takes to start, which uses 140 to 190 of 240 classes.  Here, a
class gets its slots at once, and for each method a descriptor, which is replaced when it is first looked up.
Most classes need no more than `__init__`: that one, and those that compare and show, are each written alone
(`_WRITERS`), an `__init__` in a tenth of the library's time.  For all others `dataclasses` writes what the
class still lacks, and for a class with what the writers do not know everything (`_fields`).

What a class does is what `dataclasses.dataclass` makes it do: only the moment differs (and a class without a
docstring does not get its signature for one, and a frozen value inside itself is not shown as `...`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field
from inspect import get_annotations
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field"]
_COMPARED = ("__lt__", "__le__", "__gt__", "__ge__")
_DESCRIBED = ("__match_args__", "__dataclass_fields__", "__dataclass_params__")
_DECLARED = "_deferred_declaration"
_NAMES = "_deferred_names"

Fields = Mapping[str, "Field[Any]"]

# A method is written once, though two threads look it up at a time; those of a base are written within.
_writing = RLock()


def _dataclass(cls: type | None = None, /, **options: Any) -> Any:
    """`dataclasses.dataclass`, with its methods deferred if the class has slots."""
    if cls is None:
        return lambda decorated: _dataclass(decorated, **options)
    return _with_slots(cls, options) if options.get("slots") else dataclasses.dataclass(**options)(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


class _Declaration:
    """A class as it was written: its own fields with their annotations, its body and the options."""

    __slots__ = ("body", "fields", "options")

    def __init__(self, fields: dict[str, Any], body: dict[str, Any], options: dict[str, Any]) -> None:
        self.fields, self.body, self.options = fields, body, options


def _with_slots(cls: type, options: dict[str, Any]) -> type:
    body = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
    own = {name: kind for name, kind in get_annotations(cls).items() if not _of_class(kind)}
    if "__weakref__" in own:
        raise TypeError(f"{cls.__qualname__} has a field __weakref__: write weakref_slot=True")
    inherited = [name for base in cls.__mro__[1:] for name in _slots(base)]
    slots = [*own, "__weakref__"] if options.get("weakref_slot") else list(own)
    kept = {name: value for name, value in body.items() if name not in own}
    slotted = _made(cls, kept | {"__slots__": tuple(name for name in slots if name not in inherited)})
    names = dict.fromkeys(getattr(slotted, _NAMES, ()))
    setattr(slotted, _NAMES, (*names, *(name for name in own if name not in names)))
    setattr(slotted, _DECLARED, _Declaration(own, body, options))

    def complete(wanted: str) -> None:
        written: type = dataclasses.dataclass(**options)(_made(cls, body))
        if [one.name for one in dataclasses.fields(written)] != list(getattr(slotted, _NAMES)):
            raise TypeError(f"{cls.__qualname__} has fields other than the annotations of it or its bases")
        for name, method in list(vars(slotted).items()):
            # What has a writer of its own stays deferred: most classes never need it.
            if not isinstance(method, _Deferred) or (name in _WRITERS and name != wanted):
                continue
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
    """A method, or a description, that its class does not have yet."""

    __slots__ = ("_complete", "_name", "_owner")

    def __init__(self, owner: type, name: str, complete: Callable[[str], None]) -> None:
        self._owner, self._name, self._complete = owner, name, complete

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        with _writing:
            if self._owner.__dict__.get(self._name) is self:
                self._write()
        # The class looked at may be derived from the owner; what the owner lacks, its bases may have.
        if self._name not in self._owner.__dict__:
            return getattr(super(self._owner, kind if instance is None else instance), self._name)
        found = self._owner.__dict__[self._name]
        return found.__get__(instance, kind) if hasattr(found, "__get__") else found

    def _write(self) -> None:
        writer = _WRITERS.get(self._name)
        fields = None if writer is None else _fields(self._owner)
        if writer is None or fields is None or (method := writer(self._owner, fields)) is None:
            self._complete(self._name)
        else:
            setattr(self._owner, self._name, method)


def _fields(cls: type) -> Fields | None:
    """All fields of a class in their order; None if the library has to interpret them, or to refuse them."""
    found: dict[str, Field[Any]] = {}
    frozen = _is_frozen(cls)
    for base in reversed(cls.__mro__):
        declared: _Declaration | None = base.__dict__.get(_DECLARED)
        if declared is None:
            if "__dataclass_fields__" in base.__dict__:
                return None
            continue
        is_refused = _is_frozen(base) != frozen or (frozen and "__setattr__" in declared.body)
        if is_refused or declared.options.get("kw_only"):
            return None
        for name, kind in declared.fields.items():
            given = declared.body.get(name, MISSING)
            one = given if isinstance(given, Field) else field(default=given)
            is_special = "InitVar" in str(kind) or "KW_ONLY" in str(kind)
            if is_special or one.kw_only is True or type(one.default).__hash__ is None:
                return None
            found[name] = one
    return found


def _is_frozen(cls: type) -> bool:
    return bool(getattr(cls, _DECLARED).options.get("frozen"))


def _init(cls: type, fields: Fields) -> Any:
    """`__init__`; None for fields without default after those with one, which the library refuses."""
    used: dict[str, Any] = {"_absent": MISSING}
    given, lines = ["self"], []
    for number, (name, one) in enumerate(fields.items()):
        default, made, place = f"_default_{number}", f"_made_{number}", f"_set_{number}"
        has_default, is_made = one.default is not MISSING, one.default_factory is not MISSING
        used |= {default: one.default} if has_default else {made: one.default_factory} if is_made else {}
        if one.init:
            if not (has_default or is_made) and "=" in given[-1]:
                return None
            given.append(f"{name}={default}" if has_default else f"{name}=_absent" if is_made else name)
            value = f"{made}() if {name} is _absent else {name}" if is_made else name
        elif has_default or is_made:
            value = default if has_default else f"{made}()"
        else:
            continue  # `__post_init__` assigns it
        if _is_frozen(cls):
            # The slot itself, since the class refuses assignments; it takes half the time of
            # `object.__setattr__`.
            used[place] = getattr(cls, name).__set__
            lines.append(f"{place}(self, {value})")
        else:
            lines.append(f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return _function(cls, f"__init__({', '.join(given)})", lines or ["pass"], used, fields)


def _eq(cls: type, fields: Fields) -> Any:
    names = [name for name, one in fields.items() if one.compare]
    ours, theirs = _tuple("self", names), _tuple("other", names)
    lines = ["if other.__class__ is self.__class__:", f" return {ours} == {theirs}", "return NotImplemented"]
    return _function(cls, "__eq__(self, other)", lines, {}, fields)


def _hash(cls: type, fields: Fields) -> Any:
    names = [name for name, one in fields.items() if (one.compare if one.hash is None else one.hash)]
    return _function(cls, "__hash__(self)", [f"return hash({_tuple('self', names)})"], {}, fields)


def _repr(cls: type, fields: Fields) -> Any:
    if not _is_frozen(cls):  # it may be inside itself
        return None
    shown = ", ".join(f"{name}={{self.{name}!r}}" for name, one in fields.items() if one.repr)
    line = f'return f"{{self.__class__.__qualname__}}({shown})"'
    return _function(cls, "__repr__(self)", [line], {}, fields)


def _match_args(_: type, fields: Fields) -> tuple[str, ...]:
    return tuple(name for name, one in fields.items() if one.init)


def _dataclass_fields(cls: type, _: Fields) -> Any:
    if any(_DECLARED in base.__dict__ for base in cls.__mro__[1:]):  # whose options have to agree
        return None
    bare: Any = dataclasses.dataclass(init=False, repr=False, eq=False)
    return bare(_made(cls, getattr(cls, _DECLARED).body)).__dataclass_fields__


_WRITERS: Mapping[str, Callable[[type, Fields], Any]] = MappingProxyType({
    "__init__": _init, "__eq__": _eq, "__hash__": _hash, "__repr__": _repr, "__match_args__": _match_args,
    "__dataclass_fields__": _dataclass_fields,
})  # fmt: skip


def _tuple(of: str, names: list[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _function(cls: type, head: str, lines: list[str], used: dict[str, Any], fields: Fields) -> Any:
    """The function of this text, in which the names `used` have values; None if a field is named as those."""
    if not fields.keys().isdisjoint(used.keys() | {"self", "other"}):
        return None
    name = head.partition("(")[0]
    body = "\n  ".join(lines)
    text = f"def make({', '.join(used)}):\n def {head}:\n  {body}\n return {name}"
    space: dict[str, Any] = {"__name__": cls.__module__}
    exec(text, space)  # noqa: S102 - of the names of fields alone; values are arguments
    method = space["make"](**used)
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


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
