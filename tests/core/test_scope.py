"""Scopes are created field by field, which is faster than `replace`, and lose none."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from specchk.compile.scope import Scope


def test_a_name_that_is_bound_changes_nothing_else() -> None:
    """Each field is that of the enclosing scope, also one that is added later."""
    given: dict[str, Any] = {one.name: object() for one in fields(Scope)} | {"names": {"a": object()}}
    outer: Scope = Scope(**given)
    expr: Any = object()
    inner = outer.bind("x", expr)
    assert inner.names == {**outer.names, "x": expr}
    for one in fields(Scope):
        assert one.name == "names" or getattr(inner, one.name) is given[one.name], one.name
