"""Groups of options: a frozen dataclass is a group, each of its fields an option.

A command takes whole groups (`@takes(limits=Limits)` gives it one argument `limits`), and its `--help`
lists the options of a group under the group's `heading`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, field, fields
from functools import wraps
from math import isnan
from types import MappingProxyType
from typing import Any, TypeVar, cast

import click

F = TypeVar("F", bound=Callable[..., Any])
FIRST = "Options"


def option(*names: str, heading: str = "", **given: Any) -> Any:
    """A field that is an option of a group; `heading` overrides the group's; `given` is passed to click.

    A `bool` is a flag, a tuple has one item for each time the option is given, an `int` is a number N from 1
    on, and a `float` a number S of seconds.  Defaults are shown.
    """
    return field(metadata={"names": names, "heading": heading, "given": given})


def argument(**given: Any) -> Any:
    """A field that is a positional argument of its group; `given` is for `click.argument`."""
    return field(metadata={"names": (), "given": given})


class Seconds(click.FloatRange):
    """An option type: a number of seconds above 0; `nan` would not limit anything, and is rejected."""

    def __init__(self, *, or_zero: bool = False) -> None:
        super().__init__(min=0, min_open=not or_zero)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """`2.5` to 2.5."""
        seconds: float = super().convert(value, param, ctx)
        if isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


COUNT = click.IntRange(min=1)
# What an option of a number accepts, and its place in `--help`, unless they are given.
_NUMBERS = MappingProxyType(
    {"int": {"type": COUNT, "metavar": "N"}, "float": {"type": Seconds(), "metavar": "S"}}
)


class GroupedOption(click.Option):
    """An option that is listed under a heading."""

    def __init__(self, *args: Any, heading: str, **given: Any) -> None:
        super().__init__(*args, **given)
        self.heading = heading


class GroupedCommand(click.Command):
    """A command that lists its options under the headings of their groups, those without a group first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections; called by click for `--help`."""
        sections: dict[str, list[tuple[str, str]]] = {FIRST: []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(param, "heading", FIRST), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def takes(**groups: type[Any]) -> Callable[[F], F]:
    """A decorator that adds the options of groups, each group being passed as the argument of its name."""

    def decorated(function: F) -> F:
        @wraps(function)
        def command(**values: Any) -> Any:
            made = {
                name: group(**{member.name: values.pop(member.name) for member in fields(group)})
                for name, group in groups.items()
            }
            return function(**made, **values)

        members = [(group, member) for group in groups.values() for member in fields(group)]
        found: Any = command
        for group, member in reversed(members):  # the first in `--help` is the one applied last
            found = _declared(group, member)(found)
        return cast(F, found)

    return decorated


def _declared(group: type[Any], member: Field[Any]) -> Callable[[F], F]:
    about = member.metadata
    if not about["names"]:
        return click.argument(member.name, **{"type": click.Path(), **about["given"]})
    given = {
        "is_flag": member.type == "bool", "multiple": str(member.type).startswith("tuple"),
        "show_default": "default" in about["given"],
        **_NUMBERS.get(str(member.type).removesuffix(" | None"), {}), **about["given"],
        "heading": about["heading"] or getattr(group, "heading", FIRST),
    }  # fmt: skip
    return click.option(*about["names"], member.name, cls=GroupedOption, **given)
