"""The formatter: one layout for every spec, with the author's line breaks and comments.

The text is parsed first: what has syntax errors is not formatted.  The tokens are those of that
parse, so a word is a keyword here exactly where it is one there.  Then, line by line:

- a line that starts a statement is indented by 4 for each enclosing block; a continuation line
  keeps its distance to the line that it continues; a comment line follows the code around it;
- the gaps between tokens are those of `spacing`; aligned parts stay aligned (`align`);
- a line that is too long is cut (`wrap`);
- at most one blank line in a row inside a declaration and two between declarations;
- no blanks at line ends, no empty lines at the ends of the file, one line end at its end.

Laws (tests/lang/test_format.py): formatting twice is formatting once; the formatted text parses to
the same tree; the comments are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from lark import Token
from msgspec import Struct

from specchk.lang.format.align import AlignedLine, align
from specchk.lang.format.spacing import Spacing
from specchk.lang.load import fits
from specchk.lang.syntax.parse import parse_tokens
from specchk.lang.text.diagnostics import Report
from specchk.lang.text.source import Source

INDENT = 4
_NAMED = frozenset({"sort", "const", "type", "var"})
_LAYOUT = frozenset({"_NEWLINE", "_INDENT", "_DEDENT"})


class _Piece(Struct, frozen=True):
    """The tokens of one declaration on one line: `spacing.tokens[first:last]`."""

    spacing: Spacing
    first: int
    last: int
    offset: int  # of the declaration in the source
    level: int
    starts: bool  # a logical line, not a continuation

    @property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(self.spacing.tokens[self.first : self.last])


def format_source(text: str, path: str = "spec") -> str:
    """Format the text of a spec file; raises `SpecError` with its syntax errors."""
    report = Report()
    source = Source(path, text.removeprefix("\N{BYTE ORDER MARK}").replace("\r\n", "\n"))
    # Parsed first: of a text with errors it is not known which words are keywords, and so where blocks
    # begin.
    declarations = parse_tokens(source, report) if fits(source, report) else []
    report.stop_if_any()
    pieces: dict[int, _Piece] = {}
    for offset, tokens in declarations:
        pieces.update(_by_line(source, offset, tokens))
    numbers = range(1, len(source.line_starts) + 1)
    lines = [_cells(source, number, pieces.get(number)) for number in numbers]
    _indent(lines, pieces)
    return "".join(f"{line}\n" for line in _rendered(lines))


def _by_line(source: Source, offset: int, stream: list[Token]) -> Iterator[tuple[int, _Piece]]:
    """The pieces of a declaration by line number."""
    tokens = [token for token in stream if token.type not in _LAYOUT]
    spacing = Spacing(tokens)
    level, index, first = 0, 0, 0
    number, starts, next_starts = 0, True, True
    for token in stream:
        if token.type in _LAYOUT:
            level += {"_INDENT": 1, "_DEDENT": -1}.get(token.type, 0)
            next_starts = next_starts or token.type == "_NEWLINE"
            continue
        line = source.position(offset + (token.start_pos or 0))[0]
        if line != number:
            number, starts, first = line, next_starts, index
        next_starts = False
        index += 1
        # Once a token: of each line the last piece stays, and has all of its tokens.
        yield number, _Piece(spacing, first, index, offset, level, starts)


def _cells(source: Source, number: int, piece: _Piece | None) -> AlignedLine:
    """One line, cut at its alignment points, with the indentation of the source."""
    raw = source.line(number)
    if piece is None:
        return AlignedLine(_width(raw[: len(raw) - len(raw.lstrip())]), comment=raw.strip())
    base = piece.offset - source.line_starts[number - 1]
    cells = AlignedLine(_width(raw[: base + (piece.tokens[0].start_pos or 0)]), starts=piece.starts)
    cuts = _cuts(piece)
    for (first, point), (last, _) in zip(cuts, [*cuts[1:], (piece.last, "")], strict=True):
        start = base + (piece.spacing.tokens[first].start_pos or 0)
        cells.points.append(point)
        cells.texts.append(piece.spacing.joined(first, last))
        cells.breaks.append(piece.spacing.breaks(first, last))
        cells.columns.append(_width(raw[:start]))
        cells.gaps.append(len(raw[:start]) - len(raw[:start].rstrip()))
    end = base + (piece.tokens[-1].end_pos or 0)
    cells.comment = raw[end:].strip()
    cells.comment_column = _width(raw[: raw.index("#", end)]) if cells.comment else 0
    return cells


def _cuts(piece: _Piece) -> list[tuple[int, str]]:
    """The positions at which a line may be aligned: token indices and the names of the points."""
    cuts = [(piece.first, "")]
    if not piece.starts:
        return cuts
    named = piece.level == 0 and str(piece.tokens[0]) in _NAMED
    if named and len(piece.tokens) > 1:
        cuts.append((piece.first + 1, "name"))
    depth = 0
    for index, token in enumerate(piece.tokens, piece.first):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(str(token), 0)
        if named and index == piece.spacing.declaring_colon:
            cuts.append((index, ":"))
        elif str(token) == "=" and depth == 0:
            cuts.append((index, "="))
            break
    return cuts


def _width(blank: str) -> int:
    return len(blank.expandtabs(INDENT))


def _indent(lines: list[AlignedLine], pieces: dict[int, _Piece]) -> None:
    """Set the lines' new indentation; the old one is needed until all new ones are determined."""
    new: dict[int, int] = {}
    start, base = 0, 0
    for number, line in enumerate(lines, 1):
        piece = pieces.get(number)
        if piece is None:
            continue
        if piece.starts:
            start, base = line.indent, INDENT * piece.level
            new[number] = base
        else:
            # In column 1 it would start a declaration, unless it is a bracket.
            least = base if base or str(piece.tokens[0]) in ")]}" else INDENT
            # A continued line keeps its distance: how it was lined up is the author's.
            new[number] = max(base + line.indent - start, least)
    _comments(lines, new)


def _comments(lines: list[AlignedLine], new: dict[int, int]) -> None:
    """Set every line's new indentation; a comment line follows the nearest code above or below it.

    Of the two it follows the one whose column it was closer to; in column 1 it stays there.
    """
    code: tuple[int, int] | None = None
    # Two passes, since the code below a comment is not known on the way down.
    above: list[tuple[int, int] | None] = []  # of each line: old and new column of the code before it
    for number, line in enumerate(lines, 1):
        above.append(code)
        code = (line.indent, new[number]) if number in new else code
    below: tuple[int, int] | None = None
    for number in range(len(lines), 0, -1):
        line = lines[number - 1]
        if number in new:
            below = (line.indent, new[number])
            line.indent = new[number]
        else:
            line.indent = _of_comment(line.indent, below, above[number - 1])


def _of_comment(column: int, below: tuple[int, int] | None, above: tuple[int, int] | None) -> int:
    near = [code for code in (below, above) if code is not None]
    if column == 0 or not near:
        return 0
    return min(near, key=lambda code: abs(code[0] - column))[1]


def _rendered(lines: list[AlignedLine]) -> Iterator[str]:
    """The lines as text, with repeated blank lines removed."""
    blank, first = 0, True
    for is_blank, run in groupby(lines, lambda line: not (line.texts or line.comment)):
        paragraph = list(run)
        if is_blank:
            blank = len(paragraph)
            continue
        if not first:
            yield from [""] * min(blank, 1 if paragraph[0].indent else 2)
        align(paragraph)
        for line in paragraph:
            yield from line.render()
        first = False
