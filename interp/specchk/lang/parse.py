"""Text to syntax tree, with every syntax error of the file.

A file is cut into chunks at lines that start in column 1 with a letter, one declaration each, and
each chunk is parsed alone: an error in one leaves the others readable, and error recovery needs no
grammar of its own.  Neither the LALR parse nor the building of the tree (lang/build.py) recurses, so
deep input costs no Python stack; `build` refuses trees deeper than the later passes can walk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import cast

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from specchk.lang import decls, tree
from specchk.lang.build import TooDeep
from specchk.lang.build_decls import Builder
from specchk.lang.diagnostics import Report, nearest
from specchk.lang.layout import Layout, LayoutError
from specchk.lang.source import Source, Span
from specchk.lang.tables import load_parser

_CHUNK = re.compile(r"^[^\W\d]", re.MULTILINE)
DECLARATIONS = (
    "spec", "import", "extends", "sort", "const", "type", "var", "init", "def", "action",
    "invariant", "step", "reachable", "liveness", "constraint", "deadlock", "fair", "strong",
    "refines", "model", "scenario", "view",
)  # fmt: skip

_INSTEAD = MappingProxyType(
    {
        "&": "conjunction is `and`",
        "!": "negation is `not`, inequality `!=`",
        "~": "negation is `not`",
        "\\": "operators are words: `and`, `or`, `in`, `union`, `subset`",
        "/": "integer division is `//`",
        "^": "there are no powers: multiply",
        "@": "a new value is written out: `x' = x + 1`",
        "$": "names have letters, digits and `_`",
        '"': "there are no strings: declare `type Name = enum {a, b}`",
        "\N{NOT SIGN}": "negation is `not`",
        "\N{LOGICAL AND}": "conjunction is `and`",
        "\N{LOGICAL OR}": "disjunction is `or`",
        "\N{ELEMENT OF}": "membership is `in`",
        "\N{LESS-THAN OR EQUAL TO}": "write `<=`",
        "\N{GREATER-THAN OR EQUAL TO}": "write `>=`",
        "\N{NOT EQUAL TO}": "write `!=`",
        "\N{RIGHTWARDS ARROW}": "write `->`",
        "\N{FOR ALL}": "write `forall`",
        "\N{THERE EXISTS}": "write `exists`",
        "\N{NO-BREAK SPACE}": "write a plain space",
    }
)


class Parser:
    """A Lark parser with its builder; one per process is enough (see `parser`)."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.layout = Layout()
        grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
        self.lark = load_parser(grammar, self.layout)

    def run(self, source: Source, start: int, end: int, rule: str) -> object:
        """Parse characters `start..end` of a source as `decl` or `expr`."""
        text = source.text[start:end]
        self.layout.text = text
        self.layout.ends_line = rule == "decl"
        self.builder.begin(source, start)
        return self.builder.transform(self.lark.parse(text, start=rule))


@cache
def parser() -> Parser:
    """The process's parser, built on first use."""
    return Parser()


def parse(source: Source, report: Report) -> decls.Module:
    """The tree of a file; syntax errors go to `report` and their declarations are left out."""
    found = []
    for start, end in _chunks(source, report):
        decl = _parse_chunk(source, start, end, "decl", report)
        if decl is not None:
            found.append(decl)
    return decls.Module(Span(source, 0, len(source.text)), tuple(cast("list[decls.Decl]", found)))


def parse_tokens(source: Source, report: Report) -> list[tuple[int, list[Token]]]:
    """The tokens of each declaration as the parser saw them, with the declaration's offset.

    Line ends and blocks stand as `_NEWLINE`, `_INDENT` and `_DEDENT`; comments are not tokens.
    """
    found = []
    for start, end in _chunks(source, report):
        if _parse_chunk(source, start, end, "decl", report) is not None:
            found.append((start, parser().layout.seen))
    return found


def parse_expression(source: Source, report: Report) -> tree.Expr | None:
    """The tree of a lone expression (`--set`, the REPL), or None with a diagnostic."""
    if _comments_only(source.text):
        report.add("S101", Span(source, 0, len(source.text)), "an expression is expected here")
        return None
    return cast("tree.Expr | None", _parse_chunk(source, 0, len(source.text), "expr", report))


def _comments_only(text: str) -> bool:
    return all(not line.strip(" \t\f\r") or line.lstrip().startswith("#") for line in text.split("\n"))


def _chunks(source: Source, report: Report) -> Iterator[tuple[int, int]]:
    starts = [match.start() for match in _CHUNK.finditer(source.text)]
    before = source.text[: starts[0]] if starts else source.text
    if not _comments_only(before):
        first = len(before) - len(before.lstrip())
        report.add(
            "S101", Span(source, first, first + 1), "a declaration is expected here, in column 1",
            f"a file starts with a declaration: {', '.join(DECLARATIONS[:6])}, ...",
        )  # fmt: skip
    yield from pairwise([*starts, len(source.text)])


def _parse_chunk(source: Source, start: int, end: int, rule: str, report: Report) -> object:
    try:
        return parser().run(source, start, end, rule)
    except LayoutError as error:
        span = Span(source, start + error.start, start + error.end)
        report.add(error.code, span, error.message, error.hint)
    except TooDeep as error:
        report.add("S104", error.span, "this is nested too deeply",
                   "name parts of it with `def` or `let`")  # fmt: skip
    except VisitError as error:
        _raise_or_report(error, report)
    except UnexpectedInput as error:
        _report_unexpected(error, source, start, end, report)
    return None


def _raise_or_report(error: VisitError, report: Report) -> None:
    cause = error.orig_exc
    if not isinstance(cause, TooDeep):
        raise error
    report.add("S104", cause.span, "this is nested too deeply",
               "name parts of it with `def` or `let`")  # fmt: skip


def _report_unexpected(error: UnexpectedInput, source: Source, start: int, end: int, report: Report) -> None:
    if isinstance(error, UnexpectedCharacters):
        at = start + (error.pos_in_stream or 0)
        char = source.text[at]
        message = f"the character {char!a} has no meaning here"
        report.add("S106", Span(source, at, at + 1), message, _INSTEAD.get(char))
        return
    token = error.token if isinstance(error, UnexpectedToken) else None
    expected = set(error.expected or ()) if isinstance(error, UnexpectedToken) else set()
    if token is None or token.type == "$END" or token.start_pos is None:
        span = _last_character(source, start, end)
        report.add("S101", span, "the declaration ends too early", _expectation(expected))
        return
    span = Span(source, start + token.start_pos, start + max(token.end_pos or 0, token.start_pos + 1))
    if token.type in ("_NEWLINE", "_DEDENT"):
        span = Span(source, start + token.start_pos, start + token.start_pos + 1)
    report.add("S101", span, f"{_shown(token)} is not expected here", _hint(token, expected, span))


def _last_character(source: Source, start: int, end: int) -> Span:
    last = start + len(source.text[start:end].rstrip())
    return Span(source, max(start, last - 1), last)


def _shown(token: Token) -> str:
    named = {"_NEWLINE": "the end of the line", "_INDENT": "this deeper indentation",
             "_DEDENT": "the end of the block"}  # fmt: skip
    return named.get(token.type, f"`{token}`")


def _hint(token: Token, expected: set[str], span: Span) -> str | None:
    column = span.source.position(span.start)[1]
    if column == 1 and token.type == "NAME":
        return nearest(str(token), DECLARATIONS) or f"declarations start with {', '.join(DECLARATIONS)}"
    if token.type in ("FORALL", "EXISTS", "CHOOSE", "IF", "LET", "FILTER"):
        return f"put parentheses around `{token} ...`: as an operand its end would be unclear"
    if token.type == "COMPARE" and "AND" in expected:
        return "comparisons do not chain: write `a <= b and b <= c`"
    if token.type == "EQUAL" and "COMPARE" in expected:
        return "`=` defines and assigns; equality is `==`"
    if str(token) == "&" or str(token) == "/":
        return "conjunction is `and`"
    return _expectation(expected)


def _expectation(expected: set[str]) -> str | None:
    words = sorted(_terminal(name) for name in expected if _terminal(name))
    if not words or len(words) > 12:
        return None
    return f"expected {', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else f"expected {words[0]}"


def _terminal(name: str) -> str:
    special = {"NAME": "a name", "INT": "a number", "_NEWLINE": "the end of the line",
               "_INDENT": "an indented block", "_DEDENT": "", "COMPARE": "a comparison"}  # fmt: skip
    if name in special:
        return special[name]
    pattern = next((t.pattern for t in parser().lark.terminals if t.name == name), None)
    return f"`{pattern.value}`" if pattern is not None and pattern.type == "str" else ""
