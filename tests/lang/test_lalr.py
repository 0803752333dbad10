"""The loop over the LALR tables: rules, extents, parts and errors are those of Lark's own loop."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from tests.laws.sources import ROOT

from specchk.lang.syntax import lalr, tables
from specchk.lang.syntax.build import MAX_DEPTH
from specchk.lang.syntax.layout import LayoutError, LayoutFilter
from specchk.lang.syntax.parse import parse
from specchk.lang.text.diagnostics import Report
from specchk.lang.text.source import Source

GRAMMAR = (Path(tables.__file__).parent / "grammar.lark").read_text(encoding="utf-8")
SPECS = sorted((ROOT / "spec").rglob("*.spec"))[::6]
CHUNK = re.compile(r"^(?=[^\W\d])", re.MULTILINE)


class Recorder:
    """A builder whose rules give their name, their extent and their parts."""

    def __getattr__(self, rule: str) -> Callable[..., Any]:
        if rule.startswith("__"):
            raise AttributeError(rule)
        return lambda at, parts: (rule, at, [shown(part) for part in parts])


def shown(node: Any) -> Any:
    """A part: a token with its place, a tree in the recorder's form."""
    if isinstance(node, Tree):
        return node.data, (node.meta.start_pos, node.meta.end_pos), [shown(part) for part in node.children]
    return (node.type, str(node), node.start_pos) if isinstance(node, Token) else node


@pytest.fixture(scope="module")
def parsers() -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    """Lark's own loop and ours: functions from the text of a declaration to its parse result."""
    loops = []
    for is_ours in (False, True):
        layout = LayoutFilter()
        parser = tables.load_parser(GRAMMAR, layout)
        if is_ours:
            lalr.build_while_parsing(parser, Recorder())
        loops.append(outcome_of(parser, layout, is_ours=is_ours))
    return loops[0], loops[1]


def outcome_of(parser: Lark, layout: LayoutFilter, *, is_ours: bool) -> Callable[[str], Any]:
    """The function from a text to its tree, or to its error."""

    def outcome(text: str) -> Any:
        layout.text = text
        try:
            found: Any = parser.parse(text, start="decl")
        except UnexpectedToken as error:
            return "token", error.token.type, error.token.start_pos, frozenset(error.expected)
        except UnexpectedCharacters as error:
            return "characters", error.pos_in_stream
        except LayoutError as error:
            return "layout", error.code, error.start, error.end
        return found[2] if is_ours else shown(found)

    return outcome


def chunks(text: str) -> list[str]:
    """The declarations of a file."""
    return [chunk for chunk in CHUNK.split(text) if chunk.strip() and not chunk.startswith("#")]


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.name)
def test_trees_are_those_of_larks_loop(spec: Path, parsers: tuple[Any, Any]) -> None:
    """Each declaration of a spec has the rules, extents and parts of Lark's tree."""
    larks, ours = parsers
    for chunk in chunks(spec.read_text(encoding="utf-8")):
        assert ours(chunk) == larks(chunk)


@pytest.mark.parametrize(
    "junk",
    ["", ")", "(", " and ", ":", "\n", " x ", "]", " forall ", "@", " subset", "orx", " in", "->", " else:"],
)
def test_errors_are_those_of_larks_loop(junk: str, parsers: tuple[Any, Any]) -> None:
    """A damaged declaration is refused at the same token, with the same expected tokens."""
    larks, ours = parsers
    kinds = set()
    for number, chunk in enumerate(chunks((ROOT / "spec/log.spec").read_text(encoding="utf-8"))):
        for place in range(3 + number % 7, len(chunk), 29):
            damaged = chunk[:place] + junk + chunk[place + 2 :]
            outcome = larks(damaged)
            assert ours(damaged) == outcome
            kinds.add(outcome[0])
    assert "token" in kinds


def test_an_error_behind_deep_nesting_is_the_one_that_is_reported() -> None:
    """Nesting is checked where the whole declaration can be parsed, as when trees were built afterwards."""
    deep = "not " * (MAX_DEPTH + 5) + "x"
    for text, code in ((deep, "S104"), (f"{deep})", "S103"), (f"{deep} x", "S101")):
        report = Report()
        parse(Source("a.spec", f"invariant a: {text}\n"), report)
        assert [found.code for found in report.found] == [code]
