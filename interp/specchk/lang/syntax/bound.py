"""The names bound by a binder, a `let` or an operator: one, or one for each part of a tuple."""

from __future__ import annotations

# One for each part of a tuple, as in `for (x, y) in S`; a part may be taken apart, too.
Bound = str | tuple["Bound", ...]


def shown(bound: Bound) -> str:
    """Bound names as written."""
    return bound if isinstance(bound, str) else f"({', '.join(map(shown, bound))})"


def names_in(bound: Bound) -> list[str]:
    """The bound names."""
    return [bound] if isinstance(bound, str) else [name for part in bound for name in names_in(part)]
