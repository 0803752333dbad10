"""An excerpt in a document is contained in its file."""

from __future__ import annotations

import re

import pytest

from docs.blocks import DOCUMENTS, ELISION, ROOT, Block, blocks

EXCERPTS = [
    (path, block)
    for path in DOCUMENTS
    for block in blocks(path.read_text(encoding="utf-8"))
    if block.language in ("python", "yaml") and block.words
]


@pytest.mark.parametrize(
    ("path", "block"), EXCERPTS, ids=[f"{path.stem}:{block.start}" for path, block in EXCERPTS]
)
def test_an_excerpt_stands_in_its_file(path, block: Block):
    """Line by line and in order; a line `...` represents any lines."""
    text = (ROOT / block.words[0]).read_text(encoding="utf-8")
    at = 0
    for part in "\n".join(block.lines).split(f"\n{ELISION}\n"):
        found = text.find(part, at)
        assert found >= 0, f"{path.name}:{block.start}: not in {block.words[0]}:\n{part}"
        at = found + len(part)


def test_there_are_excerpts():
    """The excerpts are found: a change of their form would otherwise test nothing."""
    assert len(EXCERPTS) >= 4


MODULES = re.compile(
    r"`((?:cli|lang|ir|core|meaning|compile|search|explore|native|spark|symbolic|report|conform|store|sim)/[\w/]+)\*?`"
)


def test_the_modules_that_a_walk_names_are_there():
    """ARCHITECTURE.md, flows and decisions name files that exist; a renamed file must be renamed there."""
    docs = ROOT / "docs"
    paths = (ROOT / "ARCHITECTURE.md", docs / "flows.md", *(docs / "decisions").glob("*.md"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    tops = (ROOT / "interp" / "specchk", ROOT / "impl" / "replog")
    named = set(MODULES.findall(text))
    assert len(named) > 30
    assert not {name for name in named if not any(list(top.glob(f"{name}*")) for top in tops)}
