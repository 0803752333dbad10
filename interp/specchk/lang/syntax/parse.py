"""From text to syntax tree, with every syntax error of the file.

A file is cut into chunks at lines that start in column 1 with a letter, one declaration each, and
each chunk is parsed alone: an error in one leaves the others readable, and error recovery needs no
grammar of its own.  Neither the LALR parse nor the construction of the tree (lang/syntax/build.py) recurses,
so deep input needs no Python stack; `build` refuses trees deeper than the later passes can traverse.

Callers that need no tokens use `lang/syntax/reading.py`, which has the kept trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pkgutil import get_data
from types import MappingProxyType
from typing import cast

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from specchk.lang.syntax import decls, tree, unexpected
from specchk.lang.syntax.build import TooDeep
from specchk.lang.syntax.build_decls import Builder
from specchk.lang.syntax.habits import habit_hint
from specchk.lang.syntax.layout import LayoutError, LayoutFilter
from specchk.lang.syntax.tables import load_parser
from specchk.lang.text.diagnostics import Report
from specchk.lang.text.source import Source, Span

_BARE = re.compile(r"\b(forall|exists|choose|filter|if|let)\s+\Z")
# A letter, not any character: `)` or `}` in column 1 closes what the lines above opened, and `#` is a
# comment.
_CHUNK = re.compile(r"^[^\W\d]", re.MULTILINE)
# A declaration that opens a block, with nothing indented below it.
_OPENED = re.compile(r"[^\n]*:[ \t]*(?:#[^\n]*)?\n(?:(?:[^ \t\n][^\n]*)?\n)*")
_WORD = re.compile(r"\w+")


class Parser:
    """A Lark parser with its builder; one per process is enough (see `parser`)."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.layout = LayoutFilter()
        grammar = get_data("specchk.lang.syntax", "grammar.lark")  # from a zip file, too, on a cluster
        assert grammar is not None
        self.lark = load_parser(grammar.decode("utf-8"), self.layout)

    def run(self, source: Source, start: int, end: int, rule: str) -> object:
        """Parse the characters `start..end` of a source as `decl` or `expr`."""
        text = source.text[start:end]
        # The layout reads characters after the token (its rule 3), so it needs the chunk and not only
        # its tokens.
        self.layout.text = text
        self.layout.ends_line = rule == "decl"
        return self.builder.build(self.lark.parse(text, start=rule), source, start)


# Loading its tables takes as long as parsing a spec. Layout and builder hold the state of one parse, so the
# parser is neither reentrant nor for several threads.
@cache
def parser() -> Parser:
    """The parser of this process, built on first use."""
    return Parser()


def parse(source: Source, report: Report) -> decls.Module:
    """The tree of a file; syntax errors go to `report` and their declarations are left out."""
    declarations = []
    for start, end in chunk_places(source, report):
        decl = _parse_chunk(source, start, end, "decl", report)
        if decl is not None:
            declarations.append(decl)
    return decls.Module(Span(source, 0, len(source.text)), tuple(cast("list[decls.Decl]", declarations)))


def parse_tokens(source: Source, report: Report) -> list[tuple[int, list[Token]]]:
    """The tokens of each declaration as the parser saw them, with the declaration's offset.

    Line ends and blocks appear as `_NEWLINE`, `_INDENT` and `_DEDENT`; comments are not tokens.
    """
    declarations = []
    for start, end in chunk_places(source, report):
        if _parse_chunk(source, start, end, "decl", report) is not None:
            declarations.append((start, parser().layout.seen))
    return declarations


def parse_declaration(source: Source, report: Report) -> tuple[decls.Decl | None, list[Token]]:
    """The tree of a text that is one chunk, or None with a diagnostic, and the tokens that were read."""
    parser().layout.seen = []  # none are read where the first word begins no declaration
    decl = _parse_chunk(source, 0, len(source.text), "decl", report)
    return cast("decls.Decl | None", decl), parser().layout.seen


def possible_next(text: str) -> tuple[frozenset[str], list[tuple[str, str]]]:
    """The terminals that can follow the beginning of a declaration, and its tokens: types and texts.

    Behind an error no terminal can follow.
    """
    # Up to a character that begins no token: at the end of a text the layout would close its blocks.
    layout, whole = parser().layout, text + "\0"
    layout.text, layout.ends_line, layout.seen = whole, True, []
    parse = parser().lark.parse_interactive(whole, start="decl")
    try:
        parse.exhaust_lexer()
    except UnexpectedCharacters as error:
        if error.pos_in_stream == len(text):
            accepted = frozenset(parse.accepts())  # type: ignore[no-untyped-call]
            return accepted, [(token.type, str(token)) for token in layout.seen]
    except (UnexpectedInput, LayoutError):
        pass
    return frozenset(), [(token.type, str(token)) for token in layout.seen]


@cache
def words() -> MappingProxyType[str, str]:
    """The words of the language by the names of their terminals."""
    fixed = {item.name: item.pattern.value for item in parser().lark.terminals if item.pattern.type == "str"}
    return MappingProxyType({"ELSE_BRANCH": "else", "OR_BRANCH": "or", **fixed})


def parse_expression(source: Source, report: Report) -> tree.Expr | None:
    """The tree of a lone expression (`--set`, the REPL), or None with a diagnostic."""
    if _comments_only(source.text):
        report.add("S101", Span(source, 0, len(source.text)), "an expression is expected here")
        return None
    return cast("tree.Expr | None", _parse_chunk(source, 0, len(source.text), "expr", report))


def _comments_only(text: str) -> bool:
    return all(not line.strip(" \t\f\r") or line.lstrip().startswith("#") for line in text.split("\n"))


def chunk_places(source: Source, report: Report) -> Iterator[tuple[int, int]]:
    """Where the declarations of a text are, each with the blank lines and comments behind it."""
    starts: list[int] = []
    for match in _CHUNK.finditer(source.text):
        if not starts or not _is_unindented(source.text, starts[-1], match.start()):
            starts.append(match.start())
    before = source.text[: starts[0]] if starts else source.text
    if not _comments_only(before):
        first = len(before) - len(before.lstrip())
        report.add(
            "S101", Span(source, first, first + 1), "a declaration is expected here, in column 1",
            f"a file starts with a declaration: {', '.join(unexpected.DECLARATIONS[:6])}, ...",
        )  # fmt: skip
    # From each start to the next: blank lines and comments between two declarations belong to the first.
    yield from pairwise([*starts, len(source.text)])


def _is_unindented(text: str, start: int, at: int) -> bool:
    """Whether a line in column 1 is meant for the empty block of the declaration before it."""
    word = _WORD.match(text, at)
    is_foreign = word is not None and word[0] not in unexpected.DECLARATIONS
    return is_foreign and _OPENED.fullmatch(text, start, at) is not None


def _parse_chunk(source: Source, start: int, end: int, rule: str, report: Report) -> object:
    before = len(report.found)
    parsed = _parsed_chunk(source, start, end, rule, report)
    if parsed is None and rule == "decl" and len(report.found) > before:
        report.lost.update(_WORD.findall(source.text, start, end))
    return parsed


def _parsed_chunk(source: Source, start: int, end: int, rule: str, report: Report) -> object:
    if rule == "decl":
        # The lexer of a state has only the words allowed there: it reads `varr x` as `var r x`.
        word = _WORD.match(source.text, start, end)
        if word is not None and word[0] not in unexpected.DECLARATIONS:
            hint = unexpected.first_word_hint(word[0], source.text[start:end].split("\n", 1)[0])
            report.add("S101", Span(source, *word.span()), f"`{word[0]}` is not expected here", hint)
            return None
    try:
        return parser().run(source, start, end, rule)
    except LayoutError as error:
        span = Span(source, start + error.start, start + error.end)
        report.add(error.code, span, error.message, error.hint)
    except TooDeep as error:
        report.add("S104", error.span, "this is nested too deeply",
                   "name parts of it with `def` or `let`")  # fmt: skip
    except UnexpectedInput as error:
        _report_unexpected(error, source, start, end, report)
    return None


def _report_unexpected(error: UnexpectedInput, source: Source, start: int, end: int, report: Report) -> None:
    if isinstance(error, UnexpectedCharacters):
        at = start + (error.pos_in_stream or 0)
        text, hint = unexpected.strange_text(source.text, at)
        named = text if text.isprintable() else text.encode("unicode_escape").decode()
        report.add("S106", Span(source, at, at + len(text)), f"`{named}` has no meaning here", hint)
        return
    token = error.token if isinstance(error, UnexpectedToken) else None
    expected = set(error.expected or ()) if isinstance(error, UnexpectedToken) else set()
    names = dict(
        sorted((t.name, t.pattern.value) for t in parser().lark.terminals if t.pattern.type == "str")
    )
    if token is None or token.type == "$END" or token.start_pos is None:
        # The end of the chunk may be many comment lines further down.
        span = _last_character(source, start, end)
        report.add("S101", span, "the declaration ends too early", unexpected.expectation(expected, names))
        return
    span = _place(token, source, start)
    # A habit of another language first: its hint states what to write, and the list of expected
    # tokens does not.
    line_start = source.line_starts[span.line - 1]
    line_end = source.text.find("\n", span.start) + 1 or len(source.text)
    declaration = source.text[start:end].split(None, 1)[0]
    before, after = source.text[line_start : span.start], source.text[span.start : line_end]
    habit, (first, last) = habit_hint(declaration, before, after)
    if last:
        place = Span(source, line_start + first, line_start + last)
        report.add("S101", place, f"`{place.text}` is not expected here", habit)
        return
    bare = _BARE.search(source.text, start, span.start)
    if bare and not habit:  # the lexer treats such a word as a name where the grammar allows none of these
        place = Span(source, bare.start(1), bare.end(1))
        hint = f"put parentheses around `{bare[1]} ...`: as an operand its end would be unclear"
        report.add("S101", place, f"`{bare[1]}` is not expected here", hint)
        return
    # A line in column 1 is in a declaration only where its block has no line: see `_is_unindented`.
    lines = "lines of a block are indented below it, by 4 spaces"
    is_unindented = not before and span.start > start and token.type != "_INDENT"
    hint = (lines if is_unindented else habit) or unexpected.token_hint(token, expected, names)
    report.add("S101", span, f"{unexpected.shown(token)} is not expected here", hint)


def _place(token: Token, source: Source, start: int) -> Span:
    """The place of a token to be marked; layout tokens have the place of the line end before them."""
    first, last = start + (token.start_pos or 0), start + (token.end_pos or 0)
    if token.type == "_INDENT":
        return Span(source, last - len(token), last + 1)
    if token.type in ("_NEWLINE", "_DEDENT"):
        # At the end of a declaration they have the place of the token before them.
        first = first if source.text[first : first + 1] == "\n" else last
        return Span(source, first, first + 1)
    return Span(source, first, max(last, first + 1))


def _last_character(source: Source, start: int, end: int) -> Span:
    last = start + len(source.text[start:end].rstrip())
    return Span(source, max(start, last - 1), last)
