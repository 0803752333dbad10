"""The catalogue of diagnostic codes: complete, correct, and in agreement with docs/diagnostics.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import chdir
from functools import cache
from pathlib import Path
from textwrap import dedent, fill

import pytest

from specchk.compile.instantiate import instantiate
from specchk.lang.codes.catalogue import CODES
from specchk.lang.codes.page import Page
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import Diagnostic, SpecError, render
from specchk.report.tla.module import exported
from specchk.symbolic import legality

Diagnostics = tuple[Diagnostic, ...]
Diagnose = Callable[[str], Diagnostics]
Said = Callable[[Page], Diagnostics]
ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "interp" / "specchk"
DOCUMENT = ROOT / "docs" / "diagnostics.md"
ALL = [pytest.param(page, id=code) for code, page in sorted(CODES.items())]
HEAD = """\
# Diagnostics

Everything that specchk reports about an incorrect spec, generated from the catalogue behind
`specchk explain CODE` (`pytest tests/lang/test_codes.py --rewrite` writes this file).  A run reports
all errors, in source order, and exits with 30.
"""
FAMILIES = {
    "S0": "Files",
    "S1": "Syntax",
    "S2": "Names",
    "S3": "Types",
    "S4": "Levels and assignments",
    "S5": "Models and constants",
    "S6": "Not checked yet",
    "S7": "Unbounded offsets",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory, diagnose: Diagnose) -> Said:
    """The diagnostics of a page's example, each computed once: that of S509 takes seconds."""

    @cache
    def said(page: Page) -> Diagnostics:
        directory = tmp_path_factory.mktemp(page.code)
        with chdir(directory):
            return _example(page, directory, diagnose)

    return said


def _example(page: Page, directory: Path, diagnose: Diagnose) -> Diagnostics:
    """Write the example of a page into `directory`, the current one, and return its diagnostics."""
    if page.example is None:
        return diagnose("missing.spec")
    text = page.example.lstrip("\n")
    found = re.match(r"spec (\w+)\n", text)
    assert found, "an example starts with its spec's name"
    (directory / f"{found[1]}.spec").write_bytes(text.encode("utf-8", "surrogateescape"))
    for name, other in page.others:
        (directory / name).write_text(other, encoding="utf-8")
    return _unbounded(f"{found[1]}.spec") if page.needs_engine else diagnose(f"{found[1]}.spec")


def _unbounded(path: str) -> Diagnostics:
    """The diagnostics of the symbolic engine for a spec, or those of an export in TLA+."""
    try:
        program = instantiate(check(path), None).program
        legality.check(program)
        exported(program, "M")
    except SpecError as error:
        return error.diagnostics
    return ()


def test_every_code_in_the_source_has_a_page_and_every_page_a_use() -> None:
    """The catalogue and the code name the same diagnostics."""
    used: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        if path.parent.name != "codes":
            used |= set(re.findall(r'"([SW]\d{3})"', path.read_text(encoding="utf-8")))
    assert used == set(CODES)


@pytest.mark.parametrize("page", ALL)
def test_the_example_of_a_page_yields_exactly_its_code(page: Page, said: Said) -> None:
    """One diagnostic with this code, and no other."""
    assert [d.code for d in said(page)] == [page.code]


@pytest.mark.parametrize("page", ALL)
def test_the_diagnostic_of_an_example_is_located_and_marked(page: Page, said: Said) -> None:
    """It starts with file:line:column and the code, and carets mark text of the line that is shown."""
    (found,) = said(page)
    head, *rest = render(found).splitlines()
    place = re.match(r"(\w+\.spec):(\d+):(\d+): error (S\d{3}): \S", head)
    assert place, head
    assert place[4] == page.code
    if rest and rest[0].startswith(f"  {place[2]} | "):
        shown, carets = rest[0], rest[1]
        assert len(shown) <= 80
        marked = shown[carets.index("^") : len(carets)]
        assert marked.strip() or page.code == "S107", "white space is marked only where it is the fault"
    else:
        assert page.code in {"S001", "S002", "S003"}, "only what has no text shows none"


@pytest.mark.parametrize("page", ALL)
def test_a_page_is_short_and_says_what_to_do(page: Page) -> None:
    """A title without a full stop, two pieces of prose that are sentences, at most 12 lines of example."""
    assert not page.title.endswith(".")
    assert page.meaning.strip().endswith((".", "?"))
    assert page.remedy.strip().endswith(".")
    assert len(page.listing().splitlines()) <= 12
    assert all(len(line) <= 100 for line in page.listing().splitlines())


@pytest.mark.parametrize("page", ALL)
def test_a_page_fits_a_terminal(page: Page) -> None:
    """It begins with its code and title, and its prose is 80 columns wide at most."""
    prose, _, _ = page.render().partition("For example:")
    assert prose.startswith(f"{page.code}: {page.title}\n")
    assert max(map(len, prose.splitlines())) <= 80


def document(printed: Callable[[Page], str]) -> str:
    """The whole Markdown file; `printed` gives specchk's output for a page's example."""
    parts = [HEAD]
    family = ""
    for code in sorted(CODES):
        if code[:2] != family:
            family = code[:2]
            parts.append(f"## {FAMILIES[family]}\n")
        parts.append(_section(CODES[code], printed(CODES[code])))
    return "\n".join(parts)


def _section(page: Page, printed: str) -> str:
    listing = page.listing()
    example = f"```\n{listing}\n```\n\n" if listing else ""
    return (
        f"### {page.heading}\n\n{prose(page.meaning)}\n\n{prose(page.remedy)}\n\n"
        f"{example}```\n{printed}\n```\n"
    )


def prose(text: str) -> str:
    """A page's prose as paragraphs, of lines as long as those of the other documents."""
    paragraphs = dedent(text).strip().split("\n\n")
    return "\n\n".join(fill(" ".join(one.split()), 130, break_on_hyphens=False) for one in paragraphs)


def test_the_document_is_what_the_catalogue_says(said: Said, *, rewrite: bool) -> None:
    """docs/diagnostics.md is generated; `--rewrite` generates it again."""
    text = document(lambda page: "\n".join(map(render, said(page))))
    if rewrite:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(text, encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == text
