"""Answers of a bounded size, from which every part can be reached."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from specchk.mcp.pages import CHARS_PER_TOKEN, NoPart, fitted, page, part

TEXTS = some.text(max_size=40)
JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | TEXTS,
    lambda inner: some.lists(inner, max_size=40) | some.dictionaries(TEXTS, inner, max_size=40),
    max_leaves=60,
)


@given(JSON, some.integers(200, 1000))
def test_an_answer_fits(value: Any, tokens: int) -> None:
    """However long the value is, and whatever its shape."""
    for text in (fitted(value, tokens), page({"part": value}, "/part", 0, tokens)):
        assert len(text) <= tokens * CHARS_PER_TOKEN
        json.loads(text)


@given(some.lists(some.dictionaries(TEXTS, some.text(max_size=300), max_size=9), max_size=60))
def test_every_item_is_reached_by_reading_on(value: list[Any]) -> None:
    """A client that follows the stubs of a list has all of its items."""
    report = {"rows": value, "other": 1}
    rows: list[Any] = []
    while True:
        got = json.loads(page(report, "/rows", len(rows), 1000))
        more = got.pop() if got and isinstance(got[-1], dict) and got[-1].get("more") == "/rows" else None
        assert got or more is None
        rows += got
        if more is None:
            break
        assert more["from"] == len(rows)
    assert rows == value


def test_a_small_part_is_shown_whole_beside_a_large_one() -> None:
    """What a small member leaves of its share is for the others."""
    shown = json.loads(fitted({"verdict": "holds", "levels": list(range(10_000)), "note": "x" * 50}, 300))
    assert shown["verdict"] == "holds"
    assert shown["note"] == "x" * 50
    assert shown["levels"][:20] == list(range(20))
    assert shown["levels"][-1]["more"] == "/levels"


def test_a_missing_part_is_a_sentence_with_the_parts_there_are() -> None:
    """For a name, and for a number."""
    with pytest.raises(NoPart, match="rows"):
        part({"rows": [1]}, "/none", 0)
    with pytest.raises(NoPart, match="0"):
        part({"rows": [1]}, "/rows/7", 0)
