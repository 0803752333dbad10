"""The cached parse tables: equal to built ones, never used when damaged, never required."""

from __future__ import annotations

from pathlib import Path

import pytest
from lark import Lark

from specchk import kept
from specchk.kept import cache_directory
from specchk.lang.syntax.layout import LayoutFilter
from specchk.lang.syntax.tables import load_parser

GRAMMAR = """
decl: "a" NAME _NEWLINE
expr: NAME
NAME: /[b-z]/
_NEWLINE: /\\n/
%declare _INDENT _DEDENT
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the cache, not created yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "specchk" / "grammars"


def parsed(parser: Lark) -> str:
    """A parser's result for one text."""
    return parser.parse("ab", start="decl").pretty()


def test_read_tables_parse_as_built_ones_do(cache: Path) -> None:
    """The second parser uses the file that the first has written, alone in its directory."""
    built = parsed(load_parser(GRAMMAR, LayoutFilter()))
    (file,) = cache.iterdir()
    before = file.stat().st_mtime_ns
    assert parsed(load_parser(GRAMMAR, LayoutFilter())) == built
    assert file.stat().st_mtime_ns == before


def test_each_grammar_has_tables_of_its_own(cache: Path) -> None:
    """A changed grammar never uses old tables."""
    load_parser(GRAMMAR, LayoutFilter())
    load_parser(GRAMMAR + "// changed\n", LayoutFilter())
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "garbage"])
def test_damaged_tables_are_rebuilt(damage: str, cache: Path) -> None:
    """Whatever happened to the file, the parser is correct and so is the file afterwards."""
    expected = parsed(load_parser(GRAMMAR, LayoutFilter()))
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    flipped = bytes([*whole[:-9], whole[-9] ^ 1, *whole[-8:]])
    file.write_bytes({"empty": b"", "cut": whole[:100], "flipped": flipped, "garbage": b"\xff" * 50}[damage])
    assert parsed(load_parser(GRAMMAR, LayoutFilter())) == expected
    assert kept.read(file) is not None


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is in the place of the directory."""
    (tmp_path / "specchk").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert parsed(load_parser(GRAMMAR, LayoutFilter()))
    assert [path.name for path in tmp_path.iterdir()] == ["specchk"]


def test_the_cache_is_where_xdg_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty or relative variable is ignored."""
    monkeypatch.setenv("HOME", "/home/someone")
    for value in ["", "relative"]:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert cache_directory() == Path("/home/someone/.cache/specchk")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/someone")
    assert cache_directory() == Path("/var/cache/someone/specchk")
