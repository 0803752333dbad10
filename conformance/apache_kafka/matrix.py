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
_BEGIN = "<!-- matrix: by `python -m conformance.apache_kafka matrix` -->\n"
_END = "<!-- end of the matrix -->\n"


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


def runs_of(cells: Sequence[Cell], story: str, release: str, repaired: bool = False) -> list[Cell]:
    """The runs of a story on a release, in their order."""
    return [cell for cell in cells if (cell.story, cell.release, cell.repaired) == (story, release, repaired)]


def decided(runs: Sequence[Cell]) -> Cell | None:
    """The last decided run, or the last one if all are undecided."""
    told = [cell for cell in runs if cell.verdict.outcome is not Outcome.UNDECIDED]
    return next(iter((told or runs)[-1:]), None)


def missing(
    cells: Sequence[Cell], stories: Sequence[str], releases: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The stories and releases without a decided run."""
    for story in stories:
        for release in releases:
            cell = decided(runs_of(cells, story, release))
            if cell is None or cell.verdict.outcome is Outcome.UNDECIDED:
                yield story, release


def render(cells: Sequence[Cell]) -> str:
    """The table, and below it where and how each release prevents what it prevents."""
    lines = [f"| story | {' | '.join(RELEASES)} |", f"|---|{'---|' * len(RELEASES)}"]
    shown = [(story, repaired) for story in STORIES.values() for repaired in (False, True)]
    for story, repaired in shown:
        row = [_text(runs_of(cells, story.name, release, repaired)) for release in RELEASES]
        if any(row) or not repaired:
            name = f"[{story.name}](#story-{story.name.lower()})"
            title = f"{name}, with the repair" if repaired else f"{name}: {story.title}"
            lines.append(f"| {title} | {' | '.join(row)} |")
    for story in STORIES.values():
        anchor = f'<a id="story-{story.name.lower()}"></a>'
        lines += ["", f"{anchor}**{story.name}**, scenario `{story.scenario}`:", ""]
        lines += _reasons(cells, story.name, repaired=False)
        lines += _reasons(cells, story.name, repaired=True)
    return "\n".join(lines) + "\n"


def _text(runs: Sequence[Cell]) -> str:
    """What came of it, where, and, of several runs, of how many."""
    cell = decided(runs)
    if cell is None:
        return ""
    verdict = cell.verdict
    same = sum((run.verdict.outcome, run.verdict.step) == (verdict.outcome, verdict.step) for run in runs)
    times = f", {same} of {len(runs)}" if len(runs) > 1 else ""
    if verdict.outcome is Outcome.REPRODUCED:
        return f"**reproduced**{times}"
    return f"{verdict.outcome.value} at {verdict.step}{times}"


def _reasons(cells: Sequence[Cell], story: str, repaired: bool) -> Iterator[str]:
    """One line for each verdict, with the releases that share it."""
    by_text: dict[str, list[str]] = {}
    for release in RELEASES:
        cell = decided(runs_of(cells, story, release, repaired))
        if cell is not None:
            by_text.setdefault(str(cell.verdict), []).append(release)
    for text, releases in by_text.items():
        yield f"- {', '.join(releases)}{', repaired' if repaired else ''}: {text}"


def rewrite(cells: Sequence[Cell], page: Path = PAGE) -> None:
    """Put the table into the page, in place of the one that is there."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(_BEGIN) + ".*" + re.escape(_END), re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{_BEGIN}\n{render(cells)}\n{_END}", text), encoding="utf-8")
