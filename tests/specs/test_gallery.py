"""docs/gallery.md: each example has a row, and the counts in it are those of its model and of TLC."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import choose_model
from specchk.native import engine
from specchk.search.engine import Options
from specchk.search.reference import search
from specs import gallery_searches as plain
from specs.spec_runs import SPECS, spec

PAGE = (SPECS.parent / "docs" / "gallery.md").read_text(encoding="utf-8")
DIFFERENCES = PAGE.split("\n## Where counts differ\n")[1]
EXAMPLES = SPECS / "examples"
SELDOM = "multi_paxos"  # its row is of a size that no model has


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table; counts are states, transitions and depth, `-` where there is none."""

    spec: str
    model: str
    configuration: str
    published: str
    here: str
    time: str
    verdict: str


ROWS = [
    Row(cells[0], cells[1], *cells[3:8])
    for cells in re.findall(
        r"^\| \[`(\w+)`\]\S+ \| `(\w+)`" + r" \| ([^|]*)" * 7 + r" \|$", PAGE, re.MULTILINE
    )
]
EDGES = {(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.spec}-{row.model}")
def test_a_row_is_its_model(row: Row) -> None:
    """Counts are those expected by the model, and published ones differ only where the page explains it."""
    checked = spec(f"examples/{row.spec}")
    model = choose_model(checked, row.model, {})
    expects = {expect.kind: expect.number for expect in model.expects}
    chosen = checked.spec.properties if model.properties is None else [name.text for name in model.properties]
    here = row.here.split(" / ") if row.here != "-" else ["-"] * 3
    if row.spec != SELDOM:
        assert here == [str(expects.get(kind, "-")) for kind in ("states", "transitions", "depth")]
    assert ("holds" in expects) == (row.verdict == "holds")
    assert any(checked.spec.properties[name].kind == "liveness" for name in chosen) == (row.time != "no")
    assert "tlaplus/Examples" in (EXAMPLES / f"{row.spec}.spec").read_text(encoding="utf-8")
    if row.published != "-":
        published = row.published.split(" / ")
        assert published[0] == here[0]
        assert published == here or f"`{row.spec}`" in DIFFERENCES


def test_every_port_has_a_row() -> None:
    """Whatever names tlaplus/Examples as its source is compared with it."""
    ports = {
        path.stem
        for path in EXAMPLES.glob("*.spec")
        if "tlaplus/Examples" in path.read_text(encoding="utf-8")
    }
    assert ports == {row.spec for row in ROWS}
    assert len(ports) >= 25


@pytest.mark.parametrize(
    ("file", "model", "searched"),
    [
        ("einstein", "riddle", plain.einstein),
        ("leases", "two", lambda: plain.leases(2, 2, 3)),
        ("leases", "three", lambda: plain.leases(3, 3, 3)),
        ("missionaries", "all_states", lambda: plain.missionaries(3)),
        ("missionaries", "four", lambda: plain.missionaries(4)),
        ("queens", "all_of_four", lambda: plain.queens(4)),
        ("prisoners_one_switch", "unknown", lambda: plain.one_switch(3)),
        ("shared_steps", "three", lambda: plain.shared_steps(3, 3)),
        ("shared_steps", "five", lambda: plain.shared_steps(5, 1)),
        ("shared_steps", "alone", lambda: plain.shared_steps(1, 3)),
        ("spanning_tree", "one_graph", lambda: plain.spanning_tree(EDGES, 6)),
        ("termination_ring", "three", lambda: plain.termination_ring(3, parts=False)),
    ],
)
def test_counts_of_our_own_are_those_of_a_plain_search(
    file: str, model: str, searched: Callable[[], tuple[int, int, int]]
) -> None:
    """States, transitions and levels, if TLC's figures are missing or differ."""
    program = instantiate(spec(f"examples/{file}"), model).program
    statistics = search(program, Options(symmetry=False)).statistics
    assert (statistics.distinct, statistics.generated, statistics.depth) == searched()


def test_the_parts_of_a_guard_explain_what_tlc_counts() -> None:
    """2001 transitions of EWD 840 in place of 1817."""
    assert plain.termination_ring(3, parts=True) == (302, 2001, 9)


@pytest.mark.slow
def test_multi_paxos_has_the_states_of_tlc() -> None:
    """Both ballots, with symmetry as published."""
    program = instantiate(spec("examples/multi_paxos"), "one_ballot", {"MaxBallot": "2"}).program
    statistics = engine.search(program, engine.NativeOptions()).statistics
    row = next(row for row in ROWS if row.spec == SELDOM)
    assert f"{statistics.distinct} / {statistics.generated} / {statistics.depth}" == row.here
