"""The documents avoid the phrases that STYLE.md lists: its two tables are the list.

Fenced blocks (code and program output) and inline code are left out, and docs/diagnostics.md, which is
generated from texts of the program.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from laws.sources import ROOT

STYLE = ROOT / "STYLE.md"
NAMES = ("README.md", "STYLE.md", "CONTRIBUTING.md", "ARCHITECTURE.md")
GENERATED = "diagnostics.md"
DOCUMENTS = [
    *(ROOT / name for name in NAMES),
    *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.name != GENERATED),
]
_ROW = re.compile(r"^\| ([^|]+) \|", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_VERBS = "is was are were has have had a it they the can cannot does needs".replace(" ", "|")
_CLAUSE = re.compile(
    rf"(?:^(?:[-|*] |\d\. )?|[.;:|] )((?:What|Who) (?:{_VERBS})\b)(?=[^?]*?[.:;|])", re.MULTILINE
)


def table(heading: str) -> list[str]:
    """The first column of the table of STYLE.md with these headings."""
    return _ROW.findall(STYLE.read_text(encoding="utf-8").split(heading, 1)[1].split("\n\n", 1)[0])


WORDS = [word.strip() for row in table("| avoid | write |") for word in row.split(",")]
PHRASES = table("| instead of | write |")
_WORDS = re.compile(rf"\b(?:{'|'.join(map(re.escape, WORDS))})\b", re.IGNORECASE)
_PHRASES = re.compile("|".join(map(re.escape, PHRASES)), re.IGNORECASE)


def prose(text: str) -> str:
    """A document without code, and without the tables of STYLE.md; its lines keep their numbers."""
    text = _FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)
    for heading in ("| avoid | write |", "| instead of | write |"):
        if heading in text:
            rows = text.split(heading, 1)[1].split("\n\n", 1)[0]
            text = text.replace(rows, "\n" * rows.count("\n"))
    return re.sub(r"`[^`\n]*`", "`", text)


def avoided(text: str) -> list[tuple[int, str]]:
    """Each phrase of the lists, with its line; a phrase may go over the end of a line."""
    text = prose(text)
    flat = text.replace("\n", " ")
    found = [match for pattern in (_WORDS, _PHRASES) for match in pattern.finditer(flat)]
    found += _CLAUSE.finditer(text)
    return sorted((text[: match.start()].count("\n") + 1, match[0].strip()) for match in found)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_avoids_the_phrases_of_the_list(path: Path):
    """Programs report and check; a clause is not a noun."""
    found = [f"{path.name}:{line}: {phrase}" for line, phrase in avoided(path.read_text(encoding="utf-8"))]
    assert not found, "see the tables of STYLE.md"


def test_the_lists_are_found_and_find():
    """Planted phrases are found, across lines too, and code is left out."""
    assert {"told", "taken for"} <= set(WORDS)
    assert "opened again from disk" in PHRASES
    assert avoided("The user is\ntold.\n") == [(2, "told")]
    assert avoided("It was opened again\nfrom disk.") == [(1, "opened again from disk")]
    assert [line for line, _ in avoided("One.\n\nWhat is lower ends.\nNext. What was it?\n")] == [3]
    assert not avoided("`told`\n\n```text\ntold\n```\n")
