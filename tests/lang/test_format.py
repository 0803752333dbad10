"""The formatter: idempotent, keeps the tree, the comments and the author's line breaks."""

from __future__ import annotations

import random
import re
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from seeded import few_of
from specchk.lang.format.formatter import format_source
from specchk.lang.syntax.decls import Module
from specchk.lang.syntax.parse import parse
from specchk.lang.text.diagnostics import Report, SpecError
from specchk.lang.text.source import Source

SPECS = sorted((Path(__file__).parents[2] / "spec").rglob("*.spec"))
EVERYTHING = Path(__file__).with_name("everything.spec")
SMALL_SPECS = [path for path in SPECS if path.stat().st_size < 8_000][:6]
GAP = re.compile(r"(?<=\S)( +)(?=[^\s#])")


@lru_cache(maxsize=4)  # the laws need the trees of a text before and after, often the same text
def tree(text: str) -> Module | None:
    """The syntax tree of a text without errors, else None."""
    report = Report()
    module = parse(Source("a.spec", text), report)
    return None if report.found else module


def comments(text: str) -> list[str]:
    """The comments of a text, in order, without blanks at their ends."""
    return [found.rstrip() for found in re.findall(r"#[^\n]*", text)]


def holds_the_laws(text: str) -> str:
    """Check: formatting twice equals once; tree and comments stay; no blanks at the ends of lines.

    Returns the formatted text.
    """
    formatted = format_source(text)
    assert tree(formatted) == tree(text)
    assert comments(formatted) == comments(text)
    assert formatted == text or format_source(formatted) == formatted
    assert formatted.endswith("\n") or not formatted
    assert not re.search(r"[ \t\r]\n|\n\n\n\n|\A\n|\n\n\Z", formatted)
    return formatted


@pytest.mark.parametrize("path", few_of([EVERYTHING, *SPECS], 12), ids=lambda path: path.stem)
def test_every_spec_keeps_tree_comments_and_line_breaks(path: Path) -> None:
    """The laws hold for real specs, and each line of one remains a line."""
    text = path.read_text(encoding="utf-8")
    formatted = holds_the_laws(text)

    def lines(of: str) -> list[str]:
        return [re.sub(r"\s", "", line) for line in of.splitlines() if line.strip()]

    assert lines(formatted) == lines(text)


@st.composite
def respaced(draw: st.DrawFn) -> str:
    """A real spec with other gaps, indentation, blank lines and comments, but the same tree."""
    text = draw(st.sampled_from([EVERYTHING, *SMALL_SPECS])).read_text(encoding="utf-8")
    unit = draw(st.sampled_from([1, 2, 3, 4, 7]))
    rng = random.Random(draw(st.integers(0, 2**32)))
    tight, often = draw(st.booleans()), draw(st.sampled_from([0.0, 0.05, 0.5]))
    lines = []
    for line in text.splitlines():
        indent = (len(line) - len(line.lstrip())) * unit // 4
        code, hash_, comment = line.strip().partition("#")
        if tight:
            code = re.sub(r" *([-+*<>=(),:{}\[\]|]+) *", r"\1", code)
        code = GAP.sub(lambda gap: gap[0] * (rng.choice([1, 2, 5]) if rng.random() < often else 1), code)
        if rng.random() < often / 2:
            lines.append(" " * rng.randrange(9) + rng.choice(["", "", "# aside", "\t"]))
        end = rng.choice(["", "  ", "   # more", "\t"]) if not hash_ and rng.random() < often else ""
        lines.append(" " * indent + code + hash_ + comment + end)
    return "\n".join(lines)


@given(respaced())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_any_spacing_of_a_spec_keeps_the_laws(text: str) -> None:
    """Gaps, indentation, blank lines and comments may be anything that parses."""
    assume(tree(text) is not None)
    holds_the_laws(text)


@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_parses_keeps_the_laws(
    data: st.DataObject, mutated: st.SearchStrategy[tuple[Path, str]]
) -> None:
    """Mutated specs too; those with syntax errors are refused."""
    _, text = data.draw(mutated)
    if tree(text) is None:
        with pytest.raises(SpecError):
            format_source(text)
    else:
        holds_the_laws(text)


def test_a_text_with_syntax_errors_is_not_formatted() -> None:
    """All its errors are reported instead."""
    with pytest.raises(SpecError) as caught:
        format_source("spec a\nvar x = 1\nvar y : = 2\n", "b.spec")
    assert [d.where for d in caught.value.diagnostics] == ["b.spec:2:7", "b.spec:3:9"]


@pytest.mark.parametrize(
    ("written", "formatted"),
    [
        ("", ""),
        ("\n\n# only a comment  \n\n", "# only a comment\n"),
        ("\ufeffspec a\r\n\r\n\r\n\r\n\r\nsort  R\r\n", "spec a\n\n\nsort R\n"),
        ("def s( c : T ) = {c}  union { c }", "def s(c: T) = {c} union { c }\n"),
        ("type E = enum {a,b}", "type E = enum {a, b}\n"),
        ("const N:int=-1", "const N : int = -1\n"),
        ("var x : set [ 0 .. N-1 ]=  {  }", "var x : set[0..N - 1] = {}\n"),
        ("var x : {a:int,b:T ? }  in {{a:1,b:none}}", "var x : { a: int, b: T? } in {{ a: 1, b: none }}\n"),
        ("def f( n:int ):int=- n+(- 1)*g ( n )[ - 2 ]", "def f(n: int): int = -n + (-1) * g(n)[-2]\n"),
        ("invariant p:not(x')in[ 1,2 ]", "invariant p: not (x') in [1, 2]\n"),
        ("type M = A(x:int)|B", "type M = A(x: int) | B\n"),
        ("action a():\n  require x ; skip # why\n", "action a():\n    require x; skip  # why\n"),
        ("action a():\n  x'[ k ] . f=1\n  y' in S\n", "action a():\n    x'[k].f = 1\n    y' in S\n"),
        ("action a():\n\n\n\n skip\n  # end\n# next", "action a():\n\n    skip\n    # end\n# next\n"),
        ("model m :\n  N=1,M=first\n  expect  holds", "model m:\n    N = 1, M = first\n    expect holds\n"),
    ],
)
def test_one_layout_for_what_is_written_differently(written: str, formatted: str) -> None:
    """Gaps, blank lines, line ends and indentation are the formatter's."""
    assert format_source(written) == formatted


def test_lines_that_go_on_keep_their_distance_to_the_first() -> None:
    """Only the first line of a statement is moved to its block's column."""
    text = "action a():\n  x' = f(1,\n         2)\n  require p\n  and q\ninvariant i: a and\n b\n"
    assert format_source(text) == (
        "action a():\n    x' = f(1,\n           2)\n    require p\n    and q\ninvariant i: a and\n    b\n"
    )


def test_long_lines_are_cut_at_the_outermost_place_that_fits() -> None:
    """Before a connecting word, or after a comma; a comment stays at the end."""
    part = "f(aaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbb)"
    text = f"invariant i: {part} and {part} and {part} and {part}  # why\n"
    assert format_source(text) == (f"invariant i: {part} and {part}\n    and {part} and {part}  # why\n")
    holds_the_laws(text)
    only = f"action a():\n    x' = g({', '.join([part] * 4)})\n"
    assert format_source(only) == (
        f"action a():\n    x' = g({', '.join([part] * 2)},\n        {', '.join([part] * 2)})\n"
    )
    holds_the_laws(only)
    assert format_source(f"invariant {'i' * 140}: p\n") == f"invariant {'i' * 140}: p\n"


def test_what_was_lined_up_stays_lined_up_and_nothing_else_is() -> None:
    """Names, colons, equals signs and comments keep a common column, as far left as it can be."""
    lined_up = "sort    R\nconst   longer  : int   = 1     # one\nvar     x       : 0..3  = 2     # two\n"
    assert format_source(lined_up) == (
        "sort  R\nconst longer : int  = 1         # one\nvar   x      : 0..3 = 2         # two\n"
    )
    by_chance = "const   longer : int = 1\nvar x    : 0..3  = 2\n"
    assert format_source(by_chance) == "const longer : int = 1\nvar x : 0..3 = 2\n"


def test_trailing_comments_move_right_together() -> None:
    """A comment column is kept if the code leaves space, otherwise the run moves together."""
    text = "const A:int=1 # a\nconst B:int=22# b\nconst C:int=1 # c\n"
    assert format_source(text) == (
        "const A : int = 1   # a\nconst B : int = 22  # b\nconst C : int = 1   # c\n"
    )
