"""Typical mistakes and their diagnostics: errors/NAME.spec, and errors/NAME.txt as printed.

`pytest tests/lang/test_errors.py --rewrite` writes the .txt files anew; read the diff.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specchk.lang.text.diagnostics import Diagnostic, render

ERRORS = Path(__file__).with_name("errors")
FILES = sorted(ERRORS.glob("*.spec"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_mistakes_are_answered_as_agreed(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    diagnose: Callable[[str], tuple[Diagnostic, ...]],
    *,
    rewrite: bool,
) -> None:
    """The whole output, errors in source order."""
    monkeypatch.chdir(ERRORS)
    printed = "\n\n".join(render(found) for found in diagnose(path.name)) + "\n"
    golden = path.with_suffix(".txt")
    if rewrite:
        golden.write_text(printed, encoding="utf-8")
    assert printed.strip()
    assert golden.read_text(encoding="utf-8") == printed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_excerpts_fit_a_terminal_of_80_columns(path: Path) -> None:
    """Source lines and carets do; messages and hints are wrapped separately."""
    lines = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    excerpts = [
        line for line in lines if line.lstrip().split(" ")[0].rstrip("|").isdigit() or "| " in line[:8]
    ]
    assert excerpts or path.stem == "imports"
    assert max((len(line) for line in excerpts), default=0) <= 80
