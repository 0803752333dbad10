"""Golden texts of reports, kept in tests/golden; `--rewrite` rewrites them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
Golden = Callable[[str, str], None]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text, with its seconds and rates masked, with the golden file of a name."""

    def compare(name: str, text: str) -> None:
        said = re.sub(r"\d+\.\d\d s \(\d+ (states|steps)/s\)", r"N s (N \1/s)", text).rstrip() + "\n"
        path = GOLDEN / name
        if request.config.getoption("--rewrite"):
            path.write_text(said, encoding="utf-8")
        assert said == path.read_text(encoding="utf-8"), f"{name}: --rewrite accepts what is said now"

    return compare
