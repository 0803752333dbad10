"""Rules of meaning as text: Python code over an environment `e`, joined into one function of a whole.

A text has a place `{}` for each value that it uses, in order: a slot, a constant, a function.  A part
whose rule is not a text is a call of its function, `{}(e)`, so texts and functions mix at every node:

    "({} == {})" of RuleText("e[{}]", (3,)) and RuleText("{}", (7,)) is RuleText("(e[{}] == {})", (3, 7))

A text is closed: an atom of Python's grammar, or in parentheses, so that it means the same in any other.  A
law checks the operators' (`tests/laws/test_operators.py`).

Values stay out of the code, so that expressions of one shape share it: Python compiles it once, for all
programs.

Not here: what nodes and operators mean (`evaluate`, `operators`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

# From this depth on a part is a separate function: Python limits nesting, and large shapes are not shared.
MOST_DEEP = 12
LONG = 8  # number of items of a loop from which on naming the values it reads is faster
MOST_SHAPES = 1 << 14  # many times those of all specs here: a program has a few hundred
_NAMES = re.compile(r"\b[xy]\b")
_SLOT = re.compile(r"\be\[$")  # where the number of a slot follows
_READ = re.compile(r"\be\[{}\](?:\[\d+\])*|{}")  # of a slot, or of fields in it; or any other place
Fn = Callable[[Any], Any]  # environment -> value; operators get their arguments' shapes from the types


class RuleText(Struct, frozen=True):
    """Code with placeholders, and their values; `depth` is its nesting depth."""

    code: str
    values: tuple[Any, ...] = ()
    depth: int = 1


def filled(code: str, parts: Sequence[RuleText]) -> RuleText:
    """Code whose placeholders are parts."""
    # Not `format` of all parts: their own places are to stay.
    pieces = code.split("{}")
    joined = pieces[0] + "".join(part.code + piece for part, piece in zip(parts, pieces[1:], strict=True))
    values = tuple([value for part in parts for value in part.values])
    return RuleText(joined, values, 1 + max((part.depth for part in parts), default=0))


def called(function: Fn) -> RuleText:
    """A call of a function with the environment."""
    return RuleText("{}(e)", (function,))


def applied(function: Callable[..., Any], parts: Sequence[RuleText]) -> RuleText:
    """A call of a function with the values of some parts."""
    return filled(f"{{}}({', '.join(['{}'] * len(parts))})", [RuleText("{}", (function,)), *parts])


def named(code: str, parts: Sequence[RuleText]) -> RuleText:
    """Code whose placeholders are parts, and that uses their values repeatedly, as `x` and `y`."""
    # A name for each depth: a part's own names are those of smaller depths.
    depth = max(part.depth for part in parts)
    return filled(_NAMES.sub(rf"\g<0>{depth}", code), parts)


def indented(lines: Sequence[RuleText]) -> list[RuleText]:
    """The lines in a block of their own."""
    return [RuleText(f" {line.code}", line.values, line.depth) for line in lines]


def named_place(text: RuleText, place: int, name: str) -> RuleText | None:
    """A text that reads a place of the environment by name; None if functions might also read it."""
    if "(e)" in text.code:
        return None
    pieces = text.code.split("{}")
    code, values = pieces[0], []
    for value, piece in zip(text.values, pieces[1:], strict=True):
        if value == place and _SLOT.search(code) and piece.startswith("]"):
            code = code.removesuffix("e[") + name + piece[1:]
        else:
            code += "{}" + piece
            values.append(value)
    return RuleText(code, tuple(values), text.depth)


def read_once(lines: Sequence[RuleText]) -> list[RuleText]:
    """Lines that name the slots and fields read by some lines, so that each is read once; with these lines.

    Lines that call functions of the environment are as they were: those might write to it.
    """
    if any("(e)" in line.code for line in lines):
        return list(lines)
    names: dict[tuple[int, str], str] = {}
    changed = []
    for line in lines:
        code, values, end = "", [], 0
        for place, value in zip(_READ.finditer(line.code), line.values, strict=True):
            code += line.code[end : place.start()]
            end = place.end()
            if place[0] == "{}":
                code += "{}"
                values.append(value)
            else:
                code += names.setdefault((value, place[0]), f"read{len(names)}")
        changed.append(RuleText(code + line.code[end:], tuple(values), line.depth))
    reads = [RuleText(f"{name} = {place}", (slot,)) for (slot, place), name in names.items()]
    return [*reads, *changed]


def loop(place: int, items: RuleText, lines: Sequence[RuleText]) -> list[RuleText]:
    """A loop that assigns each item to a place of the environment."""
    named = [line for line in (named_place(line, place, "item") for line in lines) if line is not None]
    # A name is read faster than a slot, which called functions must read.
    if len(named) == len(lines):
        whole = [filled("for item in {}:", [items]), *indented(named)]
        is_long = items.code == "{}" and len(items.values[0]) >= LONG
        return read_once(whole) if is_long else whole
    # The slot itself: binding costs nothing, and the slot is not read outside of the body.
    return [filled("for e[{}] in {}:", [RuleText("{}", (place,)), items]), *indented(lines)]


def function_of(text: RuleText) -> Fn:
    """The function that returns the value of an expression's text."""
    if text.code == "{}(e)":
        return text.values[0]  # type: ignore[no-any-return]
    return body_of([filled("return {}", [text])])


def body_of(lines: Sequence[RuleText]) -> Fn:
    """The function with these lines as its body."""
    code = "\n".join(line.code for line in lines)
    return _maker(code)(*[value for line in lines for value in line.values])


@lru_cache(maxsize=MOST_SHAPES)
def _maker(code: str) -> Callable[..., Fn]:
    """A function that builds the function with a body, given the values of its placeholders."""
    pieces = code.split("{}")
    names = [f"v{number}" for number in range(len(pieces) - 1)]
    body = pieces[0] + "".join(name + piece for name, piece in zip(names, pieces[1:], strict=True))
    lines = "\n".join(f"        {line}" for line in body.split("\n"))
    source = f"def make({', '.join(names)}):\n    def evaluate(e):\n{lines}\n    return evaluate\n"
    namespace: dict[str, Any] = {}
    exec(compile(source, "<expression>", "exec"), namespace)  # noqa: S102 - of rules alone; values are arguments
    return namespace["make"]  # type: ignore[no-any-return]
