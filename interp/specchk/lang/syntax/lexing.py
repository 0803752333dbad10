"""The loop of Lark's contextual lexer over its own patterns, without counting lines and columns.

The state of the parser decides which terminals are allowed, and each set of them has an expression, made by
Lark when the first token is read there.  Whether a word is a keyword of such a set is decided once.  Where no
terminal matches, Lark's own loop continues, so that errors are Lark's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from lark import Token
from lark.lexer import ContextualLexer, LexerState

from specchk.deferred import dataclass, field

Match = Any  # of an expression of `re`


@dataclass(slots=True)
class Expected:
    """The terminals of some states, and the keywords among the words matched so far."""

    match: Callable[[str, int, int], Match | None]
    ignored: frozenset[str]
    callbacks: dict[str, Callable[[Token], Token]]
    kinds: dict[tuple[str, str], str] = field(default_factory=dict)

    def kind(self, kind: str, text: str) -> str:
        """The kind of a token, which may be a keyword that is used as a name."""
        found = self.kinds[kind, text] = self.callbacks[kind](Token(kind, text)).type
        return found


class TokenReader:
    """Lexes like Lark's contextual lexer, but a token's place consists of offsets alone."""

    def __init__(self, lexer: ContextualLexer) -> None:
        self.lexer = lexer
        self.scans: dict[Any, Expected] = {}  # by the state of the parser
        self.same: dict[int, Expected] = {}  # by the identity of Lark's lexer: several states have one

    def scan(self, state: Any) -> Expected:
        """The lexer of a state."""
        lexer = cast("Any", self.lexer.lexers[state])
        scan = self.same.get(id(lexer))
        if scan is None:
            (expression,) = lexer.scanner._mres  # one: Python limits groups no longer
            scan = self.same[id(lexer)] = Expected(expression.match, lexer.ignore_types, lexer.callback)
        self.scans[state] = scan
        return scan

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[Token]:
        """The tokens of a text, each lexed in the current state of the parser."""
        scans, stack, text = self.scans, parser_state.state_stack, lexer_state.text
        whole, place, end = cast("str", text.text), text.start, text.end
        token: Token | None = None
        while place < end:
            scan = scans.get(stack[-1]) or self.scan(stack[-1])
            match = scan.match(whole, place, end)
            if match is None:
                lexer_state.line_ctr.feed(whole[text.start : place])
                lexer_state.last_token = token
                yield from self.lexer.lex(lexer_state, parser_state)  # raises, with what is expected
                return
            kind, start, place = match.lastgroup, place, match.end()
            if kind in scan.ignored:
                continue
            value = match.group()
            if kind in scan.callbacks:
                kind = scan.kinds.get((kind, value)) or scan.kind(kind, value)
            token = _token(kind, value, start, place)
            yield token


def _token(kind: str, value: str, start: int, end: int) -> Token:
    # As `Token(kind, value, start, end_pos=end)`, which takes most of the time of reading a token.
    token = str.__new__(Token, value)
    token.type = kind
    token.value = value
    token.start_pos = start
    token.end_pos = end
    token.line = token.column = token.end_line = token.end_column = None
    return token
