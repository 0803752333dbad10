"""Sealed files: the content read is the content written under this very name, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchk import kept
from specchk.lang.syntax.layout import LayoutFilter
from specchk.lang.syntax.tables import load_parser
from specchk.sealed import Damaged, sealed, unsealed

CONTENT = b"first line\nsecond line\n\x00\xff"


def test_what_was_sealed_comes_back() -> None:
    """Content of any bytes, also none."""
    for content in (CONTENT, b""):
        assert unsealed("kind 1", sealed("kind 1", content)) == content


def test_no_flipped_bit_is_believed() -> None:
    """Any one of all bits, including those of the seal."""
    whole = sealed("kind 1", CONTENT)
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged):
            unsealed("kind 1", bytes(flipped))


def test_no_other_length_is_believed() -> None:
    """Truncated anywhere, or with appended data."""
    whole = sealed("kind 1", CONTENT)
    for data in (
        *(whole[:length] for length in range(len(whole))),
        whole + b"\0",
        whole + whole,
        b"\n" + whole,
    ):
        with pytest.raises(Damaged):
            unsealed("kind 1", data)


def test_a_file_under_another_name_is_not_believed() -> None:
    """Though undamaged, it belongs to something else."""
    with pytest.raises(Damaged, match="kind 2"):
        unsealed("kind 2", sealed("kind 1", CONTENT))


def test_what_cannot_be_written_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is unchanged, and there is nothing beside it."""
    kept.write(tmp_path / "file", b"before")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    kept.write(tmp_path / "file", b"after")
    assert kept.read(tmp_path / "file") == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_tables_of_another_grammar_in_their_place_are_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two exchanged files of the cache: each parser is that of its grammar."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    grammar = (
        'decl: "a" NAME _NEWLINE\nexpr: NAME\nNAME: /[b-z]/\n_NEWLINE: /\\n/\n%declare _INDENT _DEDENT\n'
    )
    other = grammar.replace('"a"', '"b"').replace("b-z", "ac-z")
    for text in (grammar, other):
        load_parser(text, LayoutFilter())
    first, second = sorted((tmp_path / "specchk" / "grammars").iterdir())
    contents = first.read_bytes(), second.read_bytes()
    second.write_bytes(contents[0])
    first.write_bytes(contents[1])
    assert load_parser(grammar, LayoutFilter()).parse("ab", start="decl").pretty().split() == ["decl", "b"]
    assert load_parser(other, LayoutFilter()).parse("ba", start="decl").pretty().split() == ["decl", "a"]
