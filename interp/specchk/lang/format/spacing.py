"""The space between two tokens of a formatted line (see lang/format/formatter.py).

| between | is |
|---|---|
| a name and what it is applied to: `f(x)`, `m[k]`, `x'`, `T?`, `set[T]` | nothing |
| `.` and `..` and what stands around them; a sign and its number | nothing |
| a bracket `(` or `[` and what is in it | nothing |
| a brace and what is in it | a space; `{}` is empty |
| what stands before `,` `;` `:` | nothing, but `const N : int` and `var x : T` have a space |
| everything else, binary operators above all | a space |
"""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

_NOTHING_BEFORE = frozenset({")", "]", ",", ";", "'", "?", ".", ".."})
_NOTHING_AFTER = frozenset({"(", "[", ".", ".."})
_ENDS_OPERAND = frozenset({")", "]", "}", "'", "?"})
_CONTAINERS = frozenset({"set", "seq", "bag"})
_VALUES = frozenset({"TRUE", "FALSE", "NONE", "BOOL", "INT"})
_DECLARED_WITH_SPACE = frozenset({"const", "var"})


class Spacing:
    """Decides the gaps inside one declaration, whose tokens arrive in order."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.declaring_colon = _declaring_colon(tokens)

    def joined(self, first: int, last: int) -> str:
        """The text of tokens `first` up to but not including `last` on one line."""
        parts: list[str] = []
        for index in range(first, last):
            if index > first and self.space_before(index):
                parts.append(" ")
            parts.append(str(self.tokens[index]))
        return "".join(parts)

    def space_before(self, index: int) -> bool:
        """Whether there is a space between a token and the previous one."""
        here, before = str(self.tokens[index]), str(self.tokens[index - 1])
        if before == "{" or here == "}":
            return not (before == "{" and here == "}")
        if here == ":":
            return index == self.declaring_colon
        if here in _NOTHING_BEFORE or before in _NOTHING_AFTER or self.is_sign(index - 1):
            return False
        # Applied to what is before them, or opening a group of their own; only the former touch it.
        if here in ("(", "["):
            return not (self._ends_operand(index - 1) or (here == "[" and before in _CONTAINERS))
        return True

    def is_sign(self, index: int) -> bool:
        """Whether a token is the `-` of a negative number and not that of a difference."""
        return str(self.tokens[index]) == "-" and (index == 0 or not self._ends_operand(index - 1))

    def _ends_operand(self, index: int) -> bool:
        token = self.tokens[index]
        return token.type == "NAME" or token.type in _VALUES or str(token) in _ENDS_OPERAND


def _declaring_colon(tokens: Sequence[Token]) -> int:
    """The index of the colon of `const N : T` or `var x : T`; -1 in other declarations."""
    if not tokens or str(tokens[0]) not in _DECLARED_WITH_SPACE:
        return -1
    return next((index for index, token in enumerate(tokens) if str(token) == ":"), -1)
