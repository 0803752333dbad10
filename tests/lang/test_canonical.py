"""The text of a tree is determined by its whole meaning, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from msgspec import Struct, defstruct
from msgspec.structs import asdict, replace

from laws.sources import ROOT
from specchk.identity import compared
from specchk.lang.format.formatter import format_source
from specchk.lang.syntax.canonical import canonical
from specchk.lang.syntax.parse import parse
from specchk.lang.text.diagnostics import Report
from specchk.lang.text.source import Source

SPECS = [ROOT / "tests" / "lang" / "everything.spec", ROOT / "spec" / "replication.spec"]


def declarations(text: str) -> Any:
    return parse(Source("s.spec", text), Report()).decls


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_layout_and_comments_are_not_in_it(path: Any) -> None:
    """Formatted, and with a comment at the end of each line."""
    text = path.read_text(encoding="utf-8")
    # Behind two blanks and a line end, which formatting takes away again.
    commented = "\n".join(f"{line}   # new  " if line.strip() else line for line in text.split("\n"))
    assert canonical(declarations(format_source(commented))) == canonical(declarations(text))


@cache
def grown(cls: type) -> type:
    """A class of nodes with one more field, as in a later version."""
    return defstruct(cls.__name__, [("added", Any, None)], bases=(cls,), kw_only=True, frozen=True)


def of_later_version(value: Any, added: object = None) -> Any:
    if isinstance(value, tuple):
        return tuple(of_later_version(item, added) for item in value)
    if not isinstance(value, Struct):
        return value
    parts = {name: of_later_version(part, added) for name, part in asdict(value).items()}
    return grown(type(value))(**parts, added=added)


@pytest.mark.parametrize("name", ["replication", "store", "reassignment"])
def test_a_field_with_a_default_changes_no_tree_without_it(name: str) -> None:
    """Every class of nodes gains one; only if it is set, the text differs."""
    found = declarations((ROOT / "spec" / f"{name}.spec").read_text(encoding="utf-8"))
    assert canonical(of_later_version(found)) == canonical(found)
    assert canonical(of_later_version(found, 1)) != canonical(found)


def changed(value: Any) -> Iterator[Any]:
    """A tree with one part changed, in each way: a name, a number, a part that is lost or doubled."""
    match value:
        case bool():
            yield not value
        case str() | int():
            yield value * 2 + type(value)(1)
        case None:
            yield "set"
        case tuple():
            for place, item in enumerate(value):
                yield (*value[:place], *value[place + 1 :])
                yield (*value[:place], item, *value[place:])
                yield from ((*value[:place], other, *value[place + 1 :]) for other in changed(item))
            yield from [value[::-1]] if value != value[::-1] else []
            yield (*value, "more")
        case _:
            for name in compared(type(value)):
                for other in changed(getattr(value, name)):
                    yield replace(value, **{name: other})


@pytest.mark.parametrize(
    "name", ["examples/raft", "examples/shared_steps", "examples/transaction", "isr_timing"]
)
def test_every_part_of_a_tree_is_in_it(name: str) -> None:
    """One name, literal, operator, flag or order changed anywhere, one part lost or doubled: another text."""
    found = declarations((ROOT / "spec" / f"{name}.spec").read_text(encoding="utf-8"))
    for decl in found:
        texts = [canonical(other) for other in changed(decl)]
        assert canonical(decl) not in texts
        assert texts


def test_what_is_no_tree_is_refused() -> None:
    """A float or a set has no text that is the same everywhere."""
    for value in (0.5, {1, 2}, object(), Report):
        with pytest.raises(TypeError, match="is not a part of a tree"):
            canonical((value,))
