"""Kept trees: equal to parsed ones, only of complete texts, and never used when damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from specchk.lang.syntax import kept_trees
from specchk.lang.syntax.build import MAX_DEPTH
from specchk.lang.syntax.kept_trees import keep_tree, read_tree
from specchk.lang.syntax.parse import parse
from specchk.lang.syntax.reading import parse_expression, parse_once
from specchk.lang.text.diagnostics import Report
from specchk.lang.text.source import Source

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec" / "placement.spec"
LONG = Source("long.spec", SPEC.read_text())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the trees, not created yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "specchk" / "trees"


def test_a_kept_tree_is_the_parsed_one() -> None:
    """With every span, in one source."""
    tree = parse(LONG, Report())
    keep_tree(LONG, tree)
    found = read_tree(LONG)
    assert found == tree
    assert found is not None
    assert {decl.span.source for decl in found.decls} == {LONG}
    assert [(d.span.start, d.span.end) for d in found.decls] == [
        (d.span.start, d.span.end) for d in tree.decls
    ]


def test_a_tree_is_of_one_text() -> None:
    """A changed text has another tree."""
    keep_tree(LONG, parse(LONG, Report()))
    assert read_tree(Source("long.spec", LONG.text + "\n")) is None


def test_a_copy_under_another_path_has_the_tree_with_that_path(cache: Path) -> None:
    """Executors have files in their own folders; diagnostics name the path there."""
    keep_tree(LONG, parse(LONG, Report()))
    copy = Source("/elsewhere/copy.spec", LONG.text)
    found = read_tree(copy)
    assert found == parse(copy, Report())
    assert found is not None
    assert all(decl.span.source is copy for decl in found.decls)
    assert b"long.spec" not in next(cache.iterdir()).read_bytes()


def test_a_short_text_is_parsed_where_the_parser_is(cache: Path) -> None:
    """Random specs and expressions leave no files."""
    parse_once(LONG, Report())  # the parser is loaded now, if it was not
    kept = set(cache.iterdir())
    parse_once(Source("short.spec", "spec short\n" + "#" * (kept_trees.LEAST - 12)), Report())
    parse_expression(Source("expression", "1 + 2"), Report())
    assert set(cache.iterdir()) == kept


LOADED = """
import sys
from specchk.lang.frontend import check, choose_model
checked = check({path!r})
print(choose_model(checked, None, {{"Brokers": "3"}}) is not None, "lark" in sys.modules)
"""


def test_where_all_trees_are_kept_the_parser_is_not_loaded(tmp_path: Path) -> None:
    """Not for a short spec, nor for the expressions of `--set`; a changed text is parsed."""
    path = tmp_path / "short.spec"
    path.write_text("spec short\nsort Brokers\nconst Size: 1..9\nvar a: 0..9 = 0\n"
                    "action grow(): a' = Size\nmodel m:\n    Brokers = 2\n    Size = 3\n")  # fmt: skip

    def run() -> str:
        command = [sys.executable, "-c", LOADED.format(path=str(path))]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    # A text is kept where it had the parser loaded: in the first run the spec, in the second the option.
    assert [run(), run(), run()] == ["True True\n", "True True\n", "True False\n"]
    path.write_text(path.read_text().replace("= 3", "= 4"))
    assert [run(), run()] == ["True True\n", "True False\n"]


def test_an_expression_is_not_a_file_of_the_same_text() -> None:
    """The meaning of a text depends on the parser's start symbol."""
    text = Source("--set", "spec")
    keep_tree(text, parse(text, Report()))
    assert read_tree(text, "expr") is None


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped"])
def test_a_damaged_tree_is_none(cache: Path, damage: str) -> None:
    """An incompletely written file is parsed again."""
    keep_tree(LONG, parse(LONG, Report()))
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    flipped = bytes([*whole[:-900], whole[-900] ^ 1, *whole[-899:]])
    file.write_bytes({"empty": b"", "cut": whole[:1000], "flipped": flipped}[damage])
    assert read_tree(LONG) is None


def test_a_text_with_errors_is_read_again_each_time(cache: Path) -> None:
    """Its diagnostics are those of parsing; two runs report the same."""
    wrong = Source("wrong.spec", LONG.text + "\ninvariant broken: (1 +\n")
    reports = Report(), Report()
    for report in reports:
        parse_once(wrong, report)
    assert not cache.exists()
    assert [item.code for item in reports[0].found] == [item.code for item in reports[1].found] == ["S103"]


def test_the_deepest_tree_is_kept() -> None:
    """One more level and the builder refuses it."""
    whole, refused = Report(), Report()
    tree = parse(nested(MAX_DEPTH), whole)
    parse(nested(MAX_DEPTH + 1), refused)
    assert (whole.found, [item.code for item in refused.found]) == ([], ["S104"])
    keep_tree(nested(MAX_DEPTH), tree)
    assert read_tree(nested(MAX_DEPTH)) == tree


def nested(depth: int) -> Source:
    """A long text with an expression of this depth."""
    return Source("deep.spec", "spec deep\ndef d(): int = " + "-" * depth + "1\n#" + "x" * kept_trees.LEAST)
