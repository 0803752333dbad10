"""The loop of Lark's contextual lexer over its own patterns, without counting lines and columns.

The state of the parser decides which terminals are allowed.  Lark has an expression for each set of them,
some 90 for a spec, and compiling these takes a quarter of a first parse.  Here, the expression of all
terminals is matched first: its match is the match of the state's expression if the state allows the terminal,
because both try their terminals in the same order.  Whether a word is a keyword of such a set is decided
once.  If a state does not allow the terminal, its own expression is matched, and if that does not match
either, Lark's own loop continues, so that errors are Lark's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from lark import Token
from lark.lexer import ContextualLexer, LexerState
from msgspec import Struct, field

Match = Any  # of an expression of `re`


class Expected(Struct):
    """The terminals of some states, and the kinds of the words matched so far; "" for what is not allowed."""

    lexer: Any  # Lark's
    allowed: frozenset[str]
    root: dict[str, Callable[[Token], Token]]
    kinds: dict[tuple[str, str], str] = field(default_factory=dict)

    def kind(self, kind: str, text: str) -> str:
        """The kind of a word that has this kind among all terminals."""
        keyword = self.root[kind](Token(kind, text)).type
        found = next((one for one in (keyword, kind) if one in self.allowed), "")
        self.kinds[kind, text] = found
        return found

    def own(self, text: str, place: int, end: int) -> tuple[str, str] | None:
        """The kind and the value of what the terminals of these states alone match."""
        scanner = self.lexer.scanner
        (expression,) = scanner._mres  # one: Python limits groups no longer
        match = expression.match(text, place, end)
        if match is None:
            return None
        kind, value = match.lastgroup, match.group()
        callback = self.lexer.callback.get(kind)
        return (kind if callback is None else callback(Token(kind, value)).type), value


class TokenReader:
    """Lexes like Lark's contextual lexer, but a token's place consists of offsets alone."""

    def __init__(self, lexer: ContextualLexer) -> None:
        self.lexer = lexer
        root = cast("Any", lexer.root_lexer)
        (expression,) = root.scanner._mres
        self.match: Callable[[str, int, int], Match | None] = expression.match
        self.ignored: frozenset[str] = root.ignore_types
        self.words: dict[str, Callable[[Token], Token]] = root.callback  # of kinds that include keywords
        self.scans: dict[Any, Expected] = {}  # by the state of the parser
        self.same: dict[int, Expected] = {}  # by the identity of Lark's lexer: several states have one

    def scan(self, state: Any) -> Expected:
        """The terminals of a state."""
        lexer = cast("Any", self.lexer.lexers[state])
        scan = self.same.get(id(lexer))
        if scan is None:
            allowed = frozenset(terminal.name for terminal in lexer.terminals)
            scan = self.same[id(lexer)] = Expected(lexer, allowed, self.words)
        self.scans[state] = scan
        return scan

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[Token]:
        """The tokens of a text, each lexed in the current state of the parser."""
        scans, stack, text = self.scans, parser_state.state_stack, lexer_state.text
        find, ignored, words = self.match, self.ignored, self.words
        whole, place, end = cast("str", text.text), text.start, text.end
        token: Token | None = None
        while place < end:
            scan = scans.get(stack[-1]) or self.scan(stack[-1])
            match = find(whole, place, end)
            kind, value = ("", "") if match is None else (match.lastgroup, match.group())
            if kind in ignored:
                place += len(value)
                continue
            if kind in words:
                known = scan.kinds.get((kind, value))
                kind = scan.kind(kind, value) if known is None else known
            if kind not in scan.allowed:
                own = scan.own(whole, place, end)
                if own is None:
                    lexer_state.line_ctr.feed(whole[text.start : place])
                    lexer_state.last_token = token
                    yield from self.lexer.lex(lexer_state, parser_state)  # raises, with the expected ones
                    return
                kind, value = own
            start, place = place, place + len(value)
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
