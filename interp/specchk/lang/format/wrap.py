"""Wrapping of long lines where the language allows a line to continue (see lang/format/formatter.py).

A line is cut at the outermost place that fits: before `and`, `or` and other connecting words, or after a
comma.  The rest is indented more than a line that starts a statement, and as much as a line
that continues one, so that formatting it again cuts it at the same places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

WIDTH = 132
# A cut so far to the left leaves most of the line behind it.
_LEAST = 24

Break = tuple[int, int]  # an offset in the code, and how many brackets are open there


def wrapped(code: str, indent: int, further: int, breaks: Sequence[Break]) -> Iterator[str]:
    """The lines of indented code; those after the first are indented by `further` more."""
    while len(code) > WIDTH:
        places = [(at, depth) for at, depth in breaks if at > indent + _LEAST]
        fitting = [(depth, -at) for at, depth in places if at <= WIDTH + 1]
        if not places:
            break
        cut = -min(fitting)[1] if fitting else places[0][0]
        yield code[:cut].rstrip()
        code = " " * further + code[cut:]
        breaks = [(at - cut + further, depth) for at, depth in places if at > cut]
        indent = further
    yield code
