"""Links between the documents have targets."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from docs.blocks import DOCUMENTS

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_PATH = re.compile(r"`((?:interp|impl|spec|tests|docs|conformance)/[\w./-]+)`")
ROOT = Path(__file__).parents[2]
OTHERS = ("CHANGELOG.md", "bench/README.md", "docs/diagnostics.md", "editors/vscode/README.md")
LINKED = (*DOCUMENTS, *(ROOT / name for name in OTHERS))


def prose(path: Path) -> str:
    """A document without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The anchors of a document: its own, and those of headings (lower case, words joined by hyphens)."""
    headings = _HEADING.findall(prose(path))
    own = set(_ANCHOR.findall(prose(path)))
    return own | {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", LINKED, ids=lambda path: path.stem)
def test_the_links_of_a_document_lead_somewhere(path: Path):
    """A link to a file names an existing one, a link to a heading an existing heading."""
    for link in _LINK.findall(prose(path)):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_the_files_that_a_document_names_are_there(path: Path):
    """A path in code style that begins at the root of the repository is a file or a folder in it."""
    for named in _PATH.findall(prose(path)):
        assert (ROOT / named).exists(), named


def test_the_site_has_every_document():
    """Its navigation lists each page once, except for decisions, which their own page lists."""
    sections = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    listed = [page for section in sections for pages in section.values() for page in pages]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").glob("**/*.md")}
    decisions = {page for page in pages if page.startswith("decisions/")} - {"decisions/README.md"}
    assert sorted(listed) == sorted(pages - decisions | {"index.md"})


def test_the_description_of_the_package_has_no_relative_links():
    """Outside the repository, README's links lead to files of the release, and its picture to the bytes."""
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    text = before = (ROOT / "README.md").read_text(encoding="utf-8")
    for change in hatch["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    links = _LINK.findall(text)
    assert len(links) == len(_LINK.findall(before)) > 30
    assert all(link.startswith("https://") for link in links), links
    assert ["/raw/" in link for link in links] == [link.endswith(".svg") for link in links]
