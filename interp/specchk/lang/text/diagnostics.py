"""A report of an error in a spec: a value, rendered with its source line and a caret.

A `Diagnostic` has a stable code from `lang.codes` (each with a page for `specchk explain`), a
span, a message and, where there is something to suggest, a hint.  Rooms collect diagnostics in a
`Report` and go on, so that one run shows every error; `SpecError` carries them to the caller when
a phase cannot go on.  Nothing else is raised for a wrong spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from unicodedata import combining, east_asian_width

from msgspec import Struct, field

from specchk.lang.text.source import REGION, Span

MAX_FOUND = 100
MAX_KNOWN = 300
WIDTH = 80
_CUT = "..."
_UNKNOWN = frozenset({"S201", "S501"})


class Diagnostic(Struct, frozen=True):
    """An error: `code` is stable; an error in an option has no `span`, and the option as its `path`."""

    code: str
    message: str
    span: Span | None = None
    hint: str | None = None
    notes: tuple[tuple[Span, str], ...] = ()
    path: str = ""

    @property
    def where(self) -> str:
        """`file:line:col`, or only the path if there is no text to point into."""
        return self.span.where if self.span else self.path

    def as_json(self) -> dict[str, object]:
        """The diagnostic for `--json`: code, message, path, region, hint; an option has no region."""
        path = self.span.source.path if self.span else self.path
        region = self.span.region if self.span else dict.fromkeys(REGION)
        return {"code": self.code, "message": self.message, "path": path, **region, "hint": self.hint}


class SpecError(Exception):
    """A spec, model or option was rejected; `diagnostics` gives the reasons, in source order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "; ".join(diagnostic.message for diagnostic in self.diagnostics)


def refusal(code: str, span: Span, message: str, hint: str) -> SpecError:
    """An error with a single diagnostic, such as one that appears only once the constants are known."""
    return SpecError([Diagnostic(code, message, span, hint)])


class Report(Struct):
    """Diagnostics collected in one run of the front end, at most `MAX_FOUND` of them.

    `lost` are the words of declarations that could not be read: that one of them is unknown elsewhere is not
    a separate error.
    """

    found: list[Diagnostic] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)

    def add(
        self,
        code: str,
        span: Span | None,
        message: str,
        hint: str | None = None,
        notes: Sequence[tuple[Span, str]] = (),
    ) -> None:
        """Add an error; repeated errors at one place are recorded once.

        Hundreds of errors are of no use: at the last permitted one the run ends as if at its end.
        """
        # Passes find the same mistake on several paths, such as a definition that is used twice.
        if any(d.code == code and d.span == span and d.message == message for d in self.found):
            return
        if code in _UNKNOWN and span is not None and span.text in self.lost:
            return
        self.found.append(Diagnostic(code, message, span, hint, tuple(notes)))
        if len(self.found) >= MAX_FOUND:
            self.stop_if_any()

    def stop_if_any(self) -> None:
        """Raise `SpecError` with everything found so far, in source order."""
        if self.found:
            raise SpecError(sorted(self.found, key=_order))


def _order(diagnostic: Diagnostic) -> tuple[str, int, str]:
    span = diagnostic.span
    return (span.source.path, span.start, diagnostic.code) if span else ("", 0, diagnostic.code)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A hint with the known name closest to `name`, or None if none is close."""
    # Close matches have about the same length, and comparing takes time quadratic in it for each name: a
    # large spec must not make its errors slow.
    likely = sorted(set(known), key=lambda text: (abs(len(text) - len(name)), text))[:MAX_KNOWN]
    close = get_close_matches(name, likely, n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else None


def counted(arguments: int | str) -> str:
    """`1 argument`, `2 arguments`, `1 to 2 arguments`."""
    return f"{arguments} argument{'' if str(arguments) == '1' else 's'}"


def render(diagnostic: Diagnostic) -> str:
    """The text of a diagnostic: place, code, message, source line with caret, notes, hint.

    ```
    spec/a.spec:3:9: error S201: no name `Ofset` is known here
      3 | var x : Ofset = 0
        |         ^^^^^
      hint: did you mean `Offset`?
    ```
    """
    lines = [f"{diagnostic.where}: error {diagnostic.code}: {diagnostic.message}"]
    if diagnostic.span:
        lines += excerpt(diagnostic.span)
    for span, text in diagnostic.notes:
        lines.append(f"  {span.where}: {text}")
        lines += excerpt(span)
    if diagnostic.hint:
        lines.append(f"  hint: {diagnostic.hint}")
    return "\n".join(lines)


def excerpt(span: Span) -> list[str]:
    """The source line of a span, and a line of carets below it; empty if the line is empty.

    Both fit a terminal of 80 columns: of a longer line the part around the span is shown, `...` at
    the cuts.  Wide and combining characters count as what they take on a terminal.
    """
    number, column = span.source.position(span.start)
    line = span.source.line(number)
    if not line.strip():
        return []
    before, marked, after = _around(
        line, column - 1, max(1, span.end - span.start), WIDTH - 5 - len(str(number))
    )
    return [
        f"  {number} | {before}{marked}{after}",
        f"  {' ' * len(str(number))} | {' ' * _columns(before)}{'^' * max(1, _columns(marked))}",
    ]


def _around(line: str, at: int, length: int, room: int) -> tuple[str, str, str]:
    """The line in three parts, with the marked one in the middle, within `room` columns."""
    before, marked, after = (
        _printable(part) for part in (line[:at], line[at : at + length], line[at + length :])
    )
    if _columns(before + marked + after) <= room:
        return before, marked, after
    # The part before the mark may take at least half of the width, and the part that the rest leaves.
    before = _cut(before[::-1], max(room // 2, room - _columns(marked + after)))[::-1]
    marked = _cut(marked, room - _columns(before))
    return before, marked, _cut(after, room - _columns(before + marked))


def _cut(text: str, room: int) -> str:
    """As much of the start of `text` as fits into `room` columns, ending in `...` if it was cut."""
    if _columns(text) <= room:
        return text
    while text and _columns(text) > room - len(_CUT):
        text = text[: min(len(text) - 1, room)]
    return text + _CUT[: max(0, room)]


def _printable(text: str) -> str:
    return "".join(" " if char == "\t" else char if char.isprintable() else "?" for char in text)


def _columns(text: str) -> int:
    """The number of terminal columns that the text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
