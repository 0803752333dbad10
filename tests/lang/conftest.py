"""What the tests of the language share: spec texts to diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specchk.core.instantiate import instantiate
from specchk.lang.diagnostics import Diagnostic, SpecError
from specchk.lang.frontend import check

Findings = Callable[[str], tuple[Diagnostic, ...]]


def diagnostics(path: str, text: str | None = None) -> tuple[Diagnostic, ...]:
    """Everything that is said of a spec file: when it is checked, else with each model's constants."""
    try:
        checked = check(path, text)
    except SpecError as error:
        return error.diagnostics
    found: list[Diagnostic] = []
    for model in checked.spec.models:
        try:
            instantiate(checked, model)
        except SpecError as error:
            found += [d for d in error.diagnostics if d not in found]
    return tuple(found)


@pytest.fixture
def findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Findings:
    """Write a text to `a.spec` in an empty directory and return what is said of it."""
    monkeypatch.chdir(tmp_path)

    def run(text: str) -> tuple[Diagnostic, ...]:
        Path("a.spec").write_text(text, encoding="utf-8", newline="")
        return diagnostics("a.spec")

    return run


@pytest.fixture
def diagnose() -> Callable[[str], tuple[Diagnostic, ...]]:
    """Diagnose a file that exists."""
    return diagnostics


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written anew."""
    return bool(request.config.getoption("--rewrite"))
