"""The examples in the tables of docs/language.md are the results of the interpreter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.blocks import ROOT, blocks
from specchk.cli.commands.repl import Session
from specchk.compile.instantiate import instantiate
from specchk.lang.check.builtins import BUILTINS
from specchk.lang.frontend import check
from specchk.search.verdict import Trace

LANGUAGE = ROOT / "docs" / "language.md"
_ROW = re.compile(r"^\| `(?P<expression>.+?)` \| `+(?P<value>.+?)`+ \|$")


def rows() -> list[tuple[str, str]]:
    """The rows of the tables headed `expression | is`."""
    found = []
    inside = False
    for line in LANGUAGE.read_text(encoding="utf-8").splitlines():
        if line == "| expression | is |":
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and (row := _ROW.match(line)):
            found.append((row["expression"], row["value"]))
    return found


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    text = LANGUAGE.read_text(encoding="utf-8")
    block = next(block for block in blocks(text) if block.words == ("values.spec",))
    path: Path = tmp_path_factory.mktemp("examples") / "values.spec"
    path.write_text("\n".join(block.lines) + "\n", encoding="utf-8")
    session = Session(instantiate(check(str(path))))
    session.trace = Trace(session.initial[0], ())
    return session


def test_there_are_examples():
    """The tables are found: a change of their form would otherwise test nothing."""
    assert len(rows()) >= 60


@pytest.mark.parametrize(("expression", "value"), rows(), ids=[expression for expression, _ in rows()])
def test_an_example_has_the_value_that_stands_beside_it(session: Session, expression: str, value: str):
    """Each row of the reference is a fact about the interpreter."""
    (answer,) = session.answer(expression)
    assert answer == value


def test_every_built_in_function_is_in_the_reference():
    """The table of functions is complete."""
    text = LANGUAGE.read_text(encoding="utf-8")
    section = text.split("## Built-in functions", 1)[1].split("\n## ", 1)[0]
    assert set(re.findall(r"`([a-z]+)\(", section)) >= set(BUILTINS)
