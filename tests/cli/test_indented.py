"""The JSON of reports is that of `json`, with its indentation."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from specchk.cli.common import indented_json

TEXTS = st.text(st.characters(exclude_categories=()))  # of file names that are not UTF-8, too
ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
@example({"rate": float("inf"), "none": [float("nan")]})
@example({"path": "\udcff.spec"})
def test_the_text_is_that_of_json(value: Any) -> None:
    assert indented_json(value) == json.dumps(value, indent=2, ensure_ascii=False)


def test_numbers_of_any_size_are_exact() -> None:
    assert indented_json({"n": [2**200, -(2**64)]}) == json.dumps({"n": [2**200, -(2**64)]}, indent=2)
