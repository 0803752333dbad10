"""The space between two tokens of a formatted line (see lang/format/formatter.py).

| between | is |
|---|---|
| a name and its arguments or suffix: `f(x)`, `m[k]`, `x'`, `T?`, `set[T]` | nothing |
| `.` and `..` and their operands; a sign and its number | nothing |
| a bracket `(` or `[` and its contents | nothing |
| a brace and its fields, pairs or comprehension: `{ a: 1 }`, `{ x for x in S }` | a space |
| a brace and a list of items: `{a, b}` or `{ a, b }` | a space where the author has one; `{}` is empty |
| the text before `,` `;` `:` | nothing, but `const N : int` and `var x : T` have a space |
| everything else, binary operators above all | a space |
"""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

_NOTHING_BEFORE = frozenset({")", "]", ",", ";", "'", "?", ".", ".."})
_NOTHING_AFTER = frozenset({"(", "[", ".", ".."})
_ENDS_OPERAND = frozenset({")", "]", "}", "'", "?"})
_CONTAINERS = frozenset({"set", "seq", "bag", "map"})
_VALUES = frozenset({"TRUE", "FALSE", "NONE", "BOOL", "INT"})
_OPENING = frozenset({"(", "[", "{"})
_CLOSING = frozenset({")", "]", "}"})
_DECLARED_WITH_SPACE = frozenset({"const", "var"})
# A line may begin with these, and continues the one above (`syntax.layout`, rule 3).
_LEADS_ON = frozenset(
    {"AND", "OR", "IMPLIES", "IFF", "LEADSTO", "UNION", "INTERSECT", "THEN", "ELSE", "WHERE"}
)


class Spacing:
    """Decides the spaces inside one declaration, whose tokens arrive in order."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.declaring_colon = _declaring_colon(tokens)
        self._depths, self._is_spaced = _brackets(tokens)

    def joined(self, first: int, last: int) -> str:
        """The text of tokens `first` up to but not including `last` on one line."""
        parts: list[str] = []
        for index in range(first, last):
            if index > first and self.space_before(index):
                parts.append(" ")
            parts.append(str(self.tokens[index]))
        return "".join(parts)

    def breaks(self, first: int, last: int) -> list[tuple[int, int]]:
        """The places where the text of `joined` may be broken: offsets, with their bracket depths."""
        places = []
        at = 0
        for index in range(first, last):
            if index > first and self.space_before(index):
                at += 1
                if self.tokens[index].type in _LEADS_ON or str(self.tokens[index - 1]) == ",":
                    places.append((at, self._depths[index]))
            at += len(self.tokens[index])
        return places

    def space_before(self, index: int) -> bool:
        """Whether there is a space between a token and the previous one."""
        here, before = str(self.tokens[index]), str(self.tokens[index - 1])
        if before == "{" or here == "}":
            return not (before == "{" and here == "}") and self._is_spaced[index]
        if here == ":":
            return index == self.declaring_colon
        if here in _NOTHING_BEFORE or before in _NOTHING_AFTER or self.is_sign(index - 1):
            return False
        # Applied to the expression before them, or opening a group of their own; only the former touch it.
        if here in ("(", "["):
            return not (self._ends_operand(index - 1) or (here == "[" and before in _CONTAINERS))
        return True

    def is_sign(self, index: int) -> bool:
        """Whether a token is the `-` of a negative number and not of a difference."""
        return str(self.tokens[index]) == "-" and (index == 0 or not self._ends_operand(index - 1))

    def _ends_operand(self, index: int) -> bool:
        token = self.tokens[index]
        return token.type == "NAME" or token.type in _VALUES or str(token) in _ENDS_OPERAND


def _declaring_colon(tokens: Sequence[Token]) -> int:
    """The index of the colon of `const N : T` or `var x : T`; -1 in other declarations."""
    if not tokens or str(tokens[0]) not in _DECLARED_WITH_SPACE:
        return -1
    return next((index for index, token in enumerate(tokens) if str(token) == ":"), -1)


def _brackets(tokens: Sequence[Token]) -> tuple[list[int], dict[int, bool]]:
    """The open brackets before each token; for each brace, whether spaces are inside it."""
    depths: list[int] = []
    is_spaced: dict[int, bool] = {}
    open_: list[int] = []
    labelled: set[int] = set()  # braces around fields, pairs or a comprehension
    for index, token in enumerate(tokens):
        text = str(token)
        if text in _CLOSING and open_:
            opening = open_.pop()
            has_space = tokens[opening].end_pos != tokens[opening + 1].start_pos  # in the author's text
            is_spaced[opening + 1] = is_spaced[index] = opening in labelled or has_space
        elif (text == ":" or token.type in ("FOR", "WITH")) and open_:
            labelled.add(open_[-1])
        depths.append(len(open_))
        if text in _OPENING:
            open_.append(index)
    return depths, is_spaced
