"""Common parts of the tests of the language: spec texts, mutations of them, and their diagnostics."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import strategies as st

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import Diagnostic, SpecError

HERE = Path(__file__).parent
SPECS = sorted((HERE.parents[1] / "spec").rglob("*.spec"))
EVERYTHING = HERE / "everything.spec"

SMALL = 8_000

Findings = Callable[[str], tuple[Diagnostic, ...]]
TOKEN = re.compile(r"#[^\n]*|\n *|\w+|[^\w\s]+| +")


def diagnostics(path: str, text: str | None = None) -> tuple[Diagnostic, ...]:
    """All diagnostics of a spec file: from the check, otherwise from each model's constants."""
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


@pytest.fixture(scope="session")
def diagnose() -> Callable[[str, str | None], tuple[Diagnostic, ...]]:
    """Diagnose a file, or a text in its place."""
    return diagnostics


@pytest.fixture
def findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Findings:
    """Write a text to `a.spec` in an empty directory and return its diagnostics."""
    monkeypatch.chdir(tmp_path)

    def run(text: str) -> tuple[Diagnostic, ...]:
        Path("a.spec").write_text(text, encoding="utf-8", newline="")
        return diagnostics("a.spec")

    return run


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture(scope="session")
def spec_texts() -> dict[Path, str]:
    """The smaller specs of the repository, and one that uses each construct of the language."""
    texts = {path: path.read_text(encoding="utf-8") for path in [EVERYTHING, *SPECS]}
    return {path: text for path, text in texts.items() if len(text) < SMALL}


@st.composite
def mutations(draw: st.DrawFn, texts: dict[Path, str]) -> tuple[Path, str]:
    """A spec with a few of its tokens or lines deleted, doubled, swapped or replaced."""
    path = draw(st.sampled_from(list(texts)))
    unit = draw(st.sampled_from(["token", "line"]))
    parts = TOKEN.findall(texts[path]) if unit == "token" else texts[path].splitlines(keepends=True)
    pool = sorted(set(TOKEN.findall(texts[EVERYTHING])))
    places = st.integers(0, len(parts) - 1)
    for _ in range(draw(st.integers(1, 4))):
        at, length = draw(places) % len(parts), draw(st.sampled_from([1, 1, 2, 5, 20]))
        match draw(st.sampled_from(["delete", "double", "swap", "replace", "insert"])):
            case "delete":
                parts[at : at + length] = [""]
            case "double":
                parts[at:at] = parts[at : at + length]
            case "swap":
                other = draw(places) % len(parts)
                parts[at], parts[other] = parts[other], parts[at]
            case "replace":
                parts[at] = draw(st.sampled_from(pool))
            case _:
                parts.insert(at, draw(st.sampled_from(pool)))
    return path, "".join(parts)


@pytest.fixture(scope="session")
def mutated(spec_texts: dict[Path, str]) -> st.SearchStrategy[tuple[Path, str]]:
    """Typical wrong specs: a path, and the text in its place."""
    return mutations(spec_texts)
