"""Canonical text of a tree: equal trees have equal texts, in every version of the tree classes.

    Binary(left=Name(text='a') op='>' right=IntLiteral(value=0))

For digests that are kept in files.  Each field has its name, in alphabetical order, and one with its default
value is left out: a node class that gains a field gives the trees of all older specs the text that they had.
`repr` does not; and the formatter's output has the layout in it, which each of its rules may change.

Not here: spans, comments and layout, which are in no comparison of trees.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, is_dataclass


def canonical(value: object) -> str:
    """The canonical text of a tree, or of tuples, lists and mappings of trees; `TypeError` for others."""
    match value:
        case None | bool() | int() | str():
            return repr(value)
        case tuple() | list():
            return f"({' '.join(map(canonical, value))})"
        case dict():
            return f"{{{' '.join(f'{canonical(key)}: {canonical(item)}' for key, item in value.items())}}}"
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} is not a part of a tree")
    parts = [
        f"{part.name}={canonical(own)}"
        for part in sorted(fields(value), key=lambda part: part.name)
        if part.compare and not _is_default(part, own := getattr(value, part.name))
    ]
    return f"{type(value).__name__}({' '.join(parts)})"


def _is_default(part: Field[object], value: object) -> bool:
    if part.default_factory is not MISSING:
        return bool(value == part.default_factory())
    # Not by equality alone: 0, 0.0 and False are equal, and mean different things.
    return type(value) is type(part.default) and value == part.default
