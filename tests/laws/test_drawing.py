"""The rooms and their imports as a picture, docs/rooms.svg: every arrow goes down.

The picture's text is compared; `--rewrite` writes both.  An import that others imply is not drawn.
"""

from __future__ import annotations

from pathlib import Path

import graphviz
import pytest

from laws.sources import PACKAGES, modules

DOCS = Path(__file__).parents[2] / "docs"


def imports() -> dict[str, set[str]]:
    """The rooms imported by each room, over all modules; a package's programs are one room."""
    found: dict[str, set[str]] = {}
    rooms = {module.room for module in modules() if module.room not in PACKAGES}
    for module in modules():
        if module.room in rooms:
            used = {".".join(item.module.split(".")[:2]) for item in module.imports}
            found.setdefault(module.room, set()).update((used & rooms) - {module.room})
    return found


def reach(graph: dict[str, set[str]], room: str) -> set[str]:
    """All rooms that a room imports from, directly or not."""
    found, todo = set[str](), list(graph[room])
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += graph[one]
    return found


def drawn(graph: dict[str, set[str]]) -> str:
    """The picture's text, without the arrows that others imply."""
    lines = [
        "digraph rooms {",
        "  rankdir=TB; node [shape=box, fontname=Helvetica, fontsize=11, height=0.3];",
    ]
    for room in sorted(graph):
        implied = {further for one in graph[room] for further in reach(graph, one)}
        lines.append(f'  "{room}" [label="{room.partition(".")[2]}"];')
        lines += [f'  "{room}" -> "{below}";' for below in sorted(graph[room] - implied)]
    return "\n".join([*lines, "}", ""])


def test_the_rooms_are_drawn_as_they_are(request: pytest.FixtureRequest) -> None:
    """Without a circle, every arrow can go down; the picture in ARCHITECTURE.md is up to date."""
    graph = imports()
    assert not [room for room in graph if room in reach(graph, room)]
    text, file = drawn(graph), DOCS / "rooms.dot"
    if request.config.getoption("--rewrite"):
        file.write_text(text, encoding="utf-8")
        graphviz.Source(text).render(outfile=DOCS / "rooms.svg", cleanup=True)
    assert file.read_text(encoding="utf-8") == text
