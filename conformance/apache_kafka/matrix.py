"""The matrix of releases and stories: run cell by cell, kept as lines of JSON, shown as a table.

A cell that was undecided is run again, up to `ATTEMPTS` times; what a run showed is never replaced by
another one's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from conformance.apache_kafka.releases import RELEASES
from conformance.apache_kafka.stories import STORIES, Outcome, Verdict
from msgspec import Struct

RESULTS = Path(__file__).parents[2] / "bench" / "kafka" / "matrix.jsonl"
PAGE = Path(__file__).parents[2] / "docs" / "apache-kafka.md"
ATTEMPTS = 3
_BEGIN, _END = (
    "<!-- matrix: by `python -m conformance.apache_kafka matrix` -->\n",
    "<!-- end of the matrix -->\n",
)
_WORDS = {
    Outcome.REPRODUCED: "**reproduced**",
    Outcome.PREVENTED: "prevented",
    Outcome.NOT_DRIVABLE: "not drivable",
    Outcome.UNDECIDED: "undecided",
}


class Cell(Struct, frozen=True):
    """A run of a story on a release, and how long it took."""

    story: str
    release: str
    repaired: bool
    verdict: Verdict
    seconds: float


def read_cells(path: Path = RESULTS) -> list[Cell]:
    """All runs of a file."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Cell) for line in lines]


def append_cell(cell: Cell, path: Path = RESULTS) -> None:
    """Add a run to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(msgspec.json.encode(cell) + b"\n")


def decided(cells: Sequence[Cell], story: str, release: str) -> Cell | None:
    """The last decided run of a story on an unchanged release, or the last one if all are undecided."""
    runs = [cell for cell in cells if (cell.story, cell.release, cell.repaired) == (story, release, False)]
    told = [cell for cell in runs if cell.verdict.outcome is not Outcome.UNDECIDED]
    return told[-1] if told else runs[-1] if runs else None


def missing(
    cells: Sequence[Cell], stories: Sequence[str], releases: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The stories and releases without a decided run."""
    for story in stories:
        for release in releases:
            cell = decided(cells, story, release)
            if cell is None or cell.verdict.outcome is Outcome.UNDECIDED:
                yield story, release


def render(cells: Sequence[Cell]) -> str:
    """The table, and below it where and how each release prevents what it prevents."""
    lines = [f"| story | {' | '.join(RELEASES)} |", f"|---|{'---|' * len(RELEASES)}"]
    for story in STORIES.values():
        row = [decided(cells, story.name, release) for release in RELEASES]
        texts = ["" if cell is None else _text(cell) for cell in row]
        lines.append(f"| [{story.name}](#story-{story.name.lower()}): {story.title} | {' | '.join(texts)} |")
    for story in STORIES.values():
        lines += [
            "",
            f'<a id="story-{story.name.lower()}"></a>**{story.name}**, scenario `{story.scenario}`:',
            "",
        ]
        lines += _reasons(cells, story.name)
    return "\n".join(lines) + "\n"


def _text(cell: Cell) -> str:
    word = _WORDS[cell.verdict.outcome]
    is_early = cell.verdict.outcome in (Outcome.PREVENTED, Outcome.UNDECIDED)
    return f"{word} at {cell.verdict.step}" if is_early else word


def _reasons(cells: Sequence[Cell], story: str) -> Iterator[str]:
    """One line for each verdict, with the releases that share it."""
    by_text: dict[str, list[str]] = {}
    for release in RELEASES:
        cell = decided(cells, story, release)
        if cell is not None:
            by_text.setdefault(str(cell.verdict), []).append(release)
    for text, releases in by_text.items():
        yield f"- {', '.join(releases)}: {text}"


def rewrite(cells: Sequence[Cell], page: Path = PAGE) -> None:
    """Put the table into the page, in place of the one that is there."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(_BEGIN) + ".*" + re.escape(_END), re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{_BEGIN}\n{render(cells)}\n{_END}", text), encoding="utf-8")
