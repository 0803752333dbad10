"""Canonical text of a tree: equal trees have equal texts, in every version of the tree classes.

    Binary(left=Name(text='a') op='>' right=IntLiteral(value=0))

For digests that are kept in files.  Each field has its name, in alphabetical order, and one with its default
value is left out: a node class that gains a field gives the trees of all older specs the text that they had.
`repr` does not; and the formatter's output has the layout in it, which each of its rules may change.

Not here: spans, comments and layout, which are in no comparison of trees.
"""

from __future__ import annotations

from msgspec import Struct

from specchk.identity import Identified, compared


def canonical(value: object) -> str:
    """The canonical text of a tree, or of tuples, lists and mappings of trees; `TypeError` for others."""
    match value:
        case None | bool() | int() | str():
            return repr(value)
        case tuple() | list():
            return f"({' '.join(map(canonical, value))})"
        case dict():
            return f"{{{' '.join(f'{canonical(key)}: {canonical(item)}' for key, item in value.items())}}}"
    if not isinstance(value, Struct):
        raise TypeError(f"{type(value).__name__} is not a part of a tree")
    kind = type(value)
    defaults = dict(zip(reversed(kind.__struct_fields__), reversed(kind.__struct_defaults__), strict=False))
    names = compared(kind) if issubclass(kind, Identified) else kind.__struct_fields__
    parts = [
        f"{name}={canonical(own)}"
        for name in sorted(names)
        # Not by equality alone: 0, 0.0 and False are equal, and mean different things.
        if type(own := getattr(value, name)) is not type(default := defaults.get(name, ...)) or own != default
    ]
    return f"{kind.__name__}({' '.join(parts)})"
