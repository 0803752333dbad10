"""A binding to an implementation that follows some of its spec's rules, but not the others.

A spec has rules of other times as constants; the implementation follows one choice of them.  A model
that turns another rule on would be held to an implementation that never claimed it.

`CopyingBinding` is the same for a system that can copy itself.

Not here: the rules themselves (each binding's `rules`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, Self, TypeVar

from specchk.conform.contract.binding import Binding, BindingError, Mistake, restore, snapshot
from specchk.ir.program import Program

S = TypeVar("S")


class Copied(Protocol):
    """A system that can copy itself."""

    def copy(self) -> Self:
        """Another system in the same state, which shares no mutable part with this one."""


C = TypeVar("C", bound=Copied)


class RuledBinding(Binding[S]):
    """A binding only for models with the implementation's rules, except for a control's wrong spec."""

    rules: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """The constants that are rules, with the values that the implementation follows."""
    hint: ClassVar[str] = "the implementation follows other rules here; choose a model of these"
    """What to do about a model of other rules."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        other = [name for name, value in self.rules.items() if self.constants[name] != value]
        if self.rules:
            other.extend(self.also_other())
        if other:
            raise BindingError(tuple(Mistake(f"the model sets `{name}`", self.hint) for name in other))

    def also_other(self) -> Iterator[str]:
        """The constants that break a rule only in combination."""
        yield from ()

    @classmethod
    def against(cls, program: Program) -> Binding[S]:
        """The binding for a spec that deliberately has other rules."""
        ruleless: type[Binding[S]] = type(cls.__name__, (cls,), {"rules": MappingProxyType({})})
        return ruleless(program)


class CopyingBinding(RuledBinding[C]):
    """A binding to a system that copies itself, instead of being pickled for each step."""

    @snapshot
    def keep(self, system: C) -> C:
        """A copy that is never changed."""
        return system.copy()

    @restore
    def back(self, kept: C) -> C:
        """A new copy, for running."""
        return kept.copy()
