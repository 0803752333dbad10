"""The documents that an agent needs, as sections that fit an answer: the language, bindings, recordings.

The files in `documents` are links to docs/, whose texts an installation contains.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

from msgspec import Struct

from specchk.mcp.pages import CHARS_PER_TOKEN, TOKENS

DOCUMENTS = (
    "language", "writing-specs", "conformance", "trace-validation", "any-language",
    "reading-a-counterexample", "reading-a-divergence",
)  # fmt: skip
_HEADING = re.compile(r"^#{1,3} (.+)$")


class Section(Struct, frozen=True):
    """A part of a document, below a heading of at most the third level."""

    document: str
    heading: str
    text: str


def section(topic: str, tokens: int = TOKENS) -> str:
    """The section about a topic, after those that it may also be meant by; without a topic, all headings."""
    every = sections()
    if not topic.strip():
        return _cut(contents(), tokens)
    best = sorted(every, key=lambda each: -_relevance(each, topic.strip().lower()))[:4]
    if not _relevance(best[0], topic.strip().lower()):
        return _cut(f"nothing about {topic!r}; the headings are:\n{contents()}", tokens)
    others = [
        f"{each.heading} ({each.document})" for each in best[1:] if _relevance(each, topic.strip().lower())
    ]
    see = f"\n\nSee also: {'; '.join(others)}" if others else ""
    return _cut(best[0].text, tokens - len(see) // CHARS_PER_TOKEN - 1) + see


def contents() -> str:
    """All headings, by document."""
    headings = {name: [each.heading for each in sections() if each.document == name] for name in DOCUMENTS}
    return "\n".join(f"{name}: {'; '.join(of_document)}" for name, of_document in headings.items())


@lru_cache(1)
def sections() -> tuple[Section, ...]:
    """The sections of all documents, in their order."""
    return tuple(each for document in DOCUMENTS for each in _sections(document))


def document(name: str) -> str:
    """The whole text of a document."""
    return files("specchk.mcp").joinpath("documents", f"{name}.md").read_text(encoding="utf-8")


def _sections(name: str) -> list[Section]:
    parts: list[tuple[str, list[str]]] = []
    is_code = False
    for line in document(name).splitlines():
        is_code ^= line.startswith("```")
        heading = None if is_code else _HEADING.match(line)
        if heading:
            parts.append((heading[1].replace("`", ""), []))
        if parts:
            parts[-1][1].append(line)
    return [Section(name, heading, "\n".join(lines)) for heading, lines in parts]


def _relevance(each: Section, topic: str) -> int:
    """How well a section fits a topic; 0 if it does not mention it."""
    heading = each.heading.lower()
    named = 1000 if heading == topic else 100 if topic in heading or heading in topic else 0
    return named + min(50, each.text.lower().count(topic))


def _cut(text: str, tokens: int) -> str:
    room = tokens * CHARS_PER_TOKEN
    ending = "\n[cut: ask for a part of it by a heading, or for more tokens]"
    return text if len(text) <= room else text[: room - len(ending)] + ending
