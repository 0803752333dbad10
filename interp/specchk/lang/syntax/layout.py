"""Lines and blocks: the tokens of the lexer become logical lines with indents and dedents.

The rules, in the order in which they are tried at a line end (all outside comments and blank lines):

1. inside brackets the line continues;
2. after a binary operator, a comma, `=`, `then`, `else` or the colon of a quantifier it continues
   (`=` at the end of a `def` line opens a block instead);
3. before a line that starts with a binary operator, `then`, `else` or `where` it continues; before one that
   starts with `-`, which may also begin an expression, only if that is indented deeper than the block;
4. otherwise the logical line ends, and the next line's indentation opens or closes blocks.

An indentation that no line has opened reaches the parser as `_INDENT` and is rejected there.
The lexer is contextual (words like `states` are reserved only where they have a meaning), so this
module never reads a token ahead: rule 3 looks at the characters of the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType

from lark import Token

# Parentheses leave no node in the tree, so `build.MAX_DEPTH` does not see how deep they are; this bound does.
MAX_BRACKETS = 100

_OPEN = MappingProxyType({"LPAR": "RPAR", "ARROW_OPEN": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"})
_CLOSE = frozenset(_OPEN.values())
_QUANTIFIERS = frozenset({"FORALL", "EXISTS", "CHOOSE", "FILTER"})
_GOES_ON_AFTER = frozenset({
    "AND", "OR", "IMPLIES", "IFF", "LEADSTO", "NOT", "IF", "THEN", "ELSE", "IN", "IS", "UNION",
    "INTERSECT", "COMPARE", "PLUS", "MINUS", "STAR", "PERCENT", "COMMA", "EQUAL", "VBAR", "WITH",
    "__ANON_0", "REQUIRE", "ASSERT", "ALWAYS", "EVENTUALLY",
})  # fmt: skip
_OPERATOR_TEXTS = ("..", "++", "//", "->")
_GOES_ON_BEFORE = re.compile(
    # Such a word before a colon is a label of an argument or a field, and not a continuation.
    r"(?:(?:and|or|implies|iff|leadsto|union|intersect|subset|then|else|where|is|in)\b(?![ \t]*:)"
    r"|not[ \t]+in\b|==|!=|<=|>=|<|>|\+|-|\*|//|%|\.\.|\|)"
)
_MINUS = re.compile(r"-(?!>)")
_BLANK = re.compile(r"[ \t\f]*(?:#[^\n]*)?(?:\r?\n|\Z)")


class LayoutError(Exception):
    """The lines do not form blocks: `code` is a diagnostic code, offsets are into the chunk."""

    def __init__(self, code: str, start: int, end: int, message: str, hint: str | None = None) -> None:
        self.code = code
        self.start = start
        self.end = end
        self.message = message
        self.hint = hint
        super().__init__(code, start, end, message, hint)


class LayoutFilter:
    """Lark's post-lexer: `process` rewrites the token stream of one declaration."""

    # Inside an expression the parser expects no line end, and the contextual lexer would reject one there. It
    # must be passed on, since only the layout can decide that the line continues.
    always_accept = ("_NEWLINE",)

    def __init__(self) -> None:
        self.text = ""
        self.seen: list[Token] = []  # what `process` has yielded for this declaration
        self.ends_line = True  # a declaration does, a lone expression does not

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Yield the tokens of one declaration as logical lines, and record them in `seen`."""
        self.seen = []
        for token in self._lines(stream):
            self.seen.append(token)
            yield token

    def _lines(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Yield the tokens with `_NEWLINE`, `_INDENT` and `_DEDENT` as the rules require."""
        line = _LogicalLine()
        indents = [0]
        last: Token | None = None
        for token in stream:
            if token.type == "_NEWLINE":
                if not self._ends_line(token, line, indents[-1]):
                    continue
                yield token
                last = token
                yield from self._blocks(token, indents)
                line = _LogicalLine()
                continue
            line.see(token)
            last = token
            yield token
        line.check_closed()
        # The grammar ends every statement with a line end, and a file need not end with one.
        if self.ends_line and last is not None and last.type != "_NEWLINE":
            yield Token.new_borrow_pos("_NEWLINE", "\n", last)
        if last is not None:
            for _ in indents[1:]:
                yield Token.new_borrow_pos("_DEDENT", "", last)

    def _ends_line(self, newline: Token, line: _LogicalLine, indent: int) -> bool:
        after = _end(newline)
        # By the characters and not the next token: the lexer reads a token in the state of the parser,
        # which is not known before the line has ended or not.
        if _BLANK.match(self.text, after) or line.goes_on:
            return False
        # `let n = x` above `-n < 0`: at the block's own indentation it is the next conjunct.
        if _MINUS.match(self.text, after) and len(_space(newline)) <= indent:
            return True
        return not _GOES_ON_BEFORE.match(self.text, after)

    def _blocks(self, newline: Token, indents: list[int]) -> Iterator[Token]:
        space = _space(newline)
        if "\t" in space:
            raise LayoutError(
                "S107", _end(newline) - len(space), _end(newline), "a tab indents this line",
                "indent with spaces, 4 for each level",
            )  # fmt: skip
        width = len(space)
        if width > indents[-1]:
            indents.append(width)
            yield Token.new_borrow_pos("_INDENT", space, newline)
        # Before they are closed: the hint names all that were open above this line.
        open_widths = indents[1:] or [0]
        while width < indents[-1]:
            indents.pop()
            yield Token.new_borrow_pos("_DEDENT", space, newline)
        # After a deeper line the width must be one of those that are open, or blocks would begin in the
        # middle of one.
        if width != indents[-1]:
            raise LayoutError(
                "S102", _end(newline) - width, _end(newline) + 1,
                "this line's indentation fits no block above it",
                f"line it up with a block above: indent it by {' or '.join(map(str, open_widths))} spaces",
            )  # fmt: skip


class _LogicalLine:
    """The facts that the rules need about the current logical line."""

    def __init__(self) -> None:
        self.brackets: list[Token] = []
        self.pending_colons = 0
        self.is_def = False
        self.last: Token | None = None
        self.colon_of_quantifier = False

    @property
    def goes_on(self) -> bool:
        # A lone expression may begin with line ends; before the first token they end nothing.
        if self.brackets or self.last is None:
            return True
        if self.last.type == "EQUAL":
            return not self.is_def
        if self.last.type == "COLON":
            return self.colon_of_quantifier
        return self.last.type in _GOES_ON_AFTER or str(self.last) in _OPERATOR_TEXTS

    def see(self, token: Token) -> None:
        kind = token.type
        if self.last is None:
            self.is_def = kind == "DEF"
        if kind in _OPEN:
            self._open(token)
        elif kind in _CLOSE:
            self._close(token)
        # Colons in brackets follow keys, labels and patterns, and a quantifier in brackets ends with
        # them: neither decides whether the line opens a block.
        elif not self.brackets:
            self._count_colon(kind)
        self.last = token

    def _open(self, token: Token) -> None:
        self.brackets.append(token)
        if len(self.brackets) > MAX_BRACKETS:
            raise LayoutError(
                "S104", _start(token), _end(token), f"more than {MAX_BRACKETS} brackets are open here",
                "name parts of the expression with `def` or `let`",
            )  # fmt: skip

    def _close(self, token: Token) -> None:
        opened = self.brackets.pop() if self.brackets else None
        if opened is None or _OPEN[opened.type] != token.type:
            hint = f"`{opened}` is open here" if opened else "no bracket is open here"
            raise LayoutError("S103", _start(token), _end(token), f"`{token}` closes nothing", hint)

    def _count_colon(self, kind: str) -> None:
        if kind in _QUANTIFIERS or kind == "LET":  # after a `let` statement no colon opens a block
            self.pending_colons += 1
        elif kind == "COLON":
            # A line may have both kinds, as `when forall x in S: p(x):` has: each quantifier claims one
            # colon, and only a colon that none claims opens a block.
            self.colon_of_quantifier = self.pending_colons > 0
            self.pending_colons -= self.colon_of_quantifier

    def check_closed(self) -> None:
        if self.brackets:
            token = self.brackets[-1]
            raise LayoutError(
                "S103", _start(token), _end(token), f"`{token}` is never closed",
                "lines of one declaration after its first are indented; a line in column 1 starts a new one",
            )  # fmt: skip


def _space(newline: Token) -> str:
    return str(newline).rsplit("\n", 1)[1]


def _start(token: Token) -> int:
    return token.start_pos if token.start_pos is not None else 0


def _end(token: Token) -> int:
    return token.end_pos if token.end_pos is not None else _start(token)
