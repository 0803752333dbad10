"""Source positions, reports, and diagnostics as they are printed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchk.lang.text.diagnostics import Diagnostic, Report, SpecError, excerpt, nearest, render
from specchk.lang.text.source import Source, Span

LINE = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1, max_size=200)


def span_of(line: str, part: str) -> Span:
    """The span of the first `part` in a source of one line."""
    start = line.index(part)
    return Span(Source("a.spec", line), start, start + len(part))


@given(text=st.text(alphabet="ab\n", max_size=40), data=st.data())
def test_positions_count_lines_and_columns_from_one(text: str, data: st.DataObject) -> None:
    """An offset is found again from its line's start and its column."""
    source = Source("a.spec", text)
    offset = data.draw(st.integers(0, len(text)))
    line, column = source.position(offset)
    assert text[:offset].count("\n") == line - 1
    assert source.line_starts[line - 1] + column - 1 == offset
    assert source.line(line) == text.split("\n")[line - 1]


def test_a_word_is_found_whole_or_the_span_stays() -> None:
    """`leo` is not part of `leos`."""
    span = span_of("var leos_leo : leo = leo", "var leos_leo : leo = leo")
    assert span.word("leo").start == 15
    assert span.word("hw") == span


def test_a_diagnostic_is_place_code_message_excerpt_notes_and_hint() -> None:
    """In this order, carets under the span."""
    line = "var x : Ofset = 0"
    found = Diagnostic("S201", "no type", span_of(line, "Ofset"), "a hint", ((span_of(line, "x"), "a note"),))
    assert render(found).splitlines() == [
        "a.spec:1:9: error S201: no type",
        "  1 | var x : Ofset = 0",
        "    |         ^^^^^",
        "  a.spec:1:5: a note",
        "  1 | var x : Ofset = 0",
        "    |     ^",
        "  hint: a hint",
    ]
    assert found.as_json() == {
        "code": "S201", "message": "no type", "path": "a.spec", "line": 1, "column": 9,
        "end_line": 1, "end_column": 14, "hint": "a hint",
    }  # fmt: skip


def test_wide_and_combining_characters_do_not_move_the_carets() -> None:
    """Columns on the terminal, not characters, are counted."""
    assert excerpt(span_of("日本 e\u0301 x", "x")) == ["  1 | 日本 e\u0301 x", "    |        ^"]
    assert excerpt(span_of("x 日本", "日本"))[1] == "    |   ^^^^"
    assert excerpt(span_of("\tx", "x")) == ["  1 |  x", "    |  ^"]


def columns(text: str) -> int:
    """The columns that a text takes, computed independently of the product."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in ("W", "F")) for c in text
    )


@given(line=LINE, data=st.data())
def test_an_excerpt_fits_80_columns_and_shows_the_start_of_the_span(line: str, data: st.DataObject) -> None:
    """For lines of any length and spans at any place."""
    start = data.draw(st.integers(0, len(line) - 1))
    end = data.draw(st.integers(start + 1, len(line)))
    shown = excerpt(Span(Source("a.spec", line), start, end))
    if not shown:
        assert not line.strip()
        return
    text, carets = shown
    assert columns(text) <= 80
    assert carets.rstrip("^").strip() == "|"
    assert carets.endswith("^")
    before = carets.index("^")
    first = line[start] if line[start].isprintable() else " " if line[start] == "\t" else "?"
    position = next(i for i in range(len(text) + 1) if columns(text[:i]) >= before)
    assert first in text[position:]


def test_a_long_line_is_cut_around_the_span() -> None:
    """Dots mark the cuts."""
    line = "a" * 100 + " here " + "b" * 100
    text, carets = excerpt(span_of(line, "here"))
    assert text.startswith("  1 | ...aaa")
    assert text.endswith("bbb...")
    assert text[carets.index("^") : len(carets)] == "here"


def test_a_report_keeps_findings_once_and_in_source_order() -> None:
    """A repeated finding adds nothing; `stop_if_any` raises all of them."""
    report, line = Report(), "one two"
    report.stop_if_any()
    report.add("S202", span_of(line, "two"), "second")
    report.add("S201", span_of(line, "one"), "first")
    report.add("S202", span_of(line, "two"), "second")
    with pytest.raises(SpecError) as caught:
        report.stop_if_any()
    assert [d.message for d in caught.value.diagnostics] == ["first", "second"]
    assert str(caught.value) == "first; second"


def test_the_nearest_name_is_near_or_not_named() -> None:
    """A misleading hint is worse than none."""
    assert nearest("Ofset", ["Offset", "Epoch"]) == "did you mean `Offset`?"
    assert nearest("zzz", ["Offset", "Epoch"]) is None
    assert nearest("x", []) is None
    assert nearest("y77", (f"x{n}" for n in range(10_000))) is not None
