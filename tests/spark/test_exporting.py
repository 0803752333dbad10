"""The export of a search on Spark: the rows of the native engine's, and the tour of the documents on both."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from pyspark import SparkContext
from pyspark.sql import SparkSession

from docs.blocks import ROOT, blocks, commands
from export.exported import TABLES, exported, graph, rows
from spark.small import program
from specchk.cli.commands.run import command
from specchk.export.export import export
from specchk.export.manifest import opened
from specchk.export.query import answered
from specchk.ir.program import Program
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.verdict import Outcome
from specchk.spark.engine import SparkOptions, search

TOUR = (ROOT / "docs" / "state-space.md").read_text(encoding="utf-8")
VIEW = re.compile(r"\b(\w+)\.(states|edges|levels|traces)\b")


@pytest.fixture(autouse=True)
def _context(context: SparkContext) -> None:
    """`run` uses the existing context."""


def on_spark(checked: Program, place: Path, options: SparkOptions) -> Outcome:
    return search(checked, replace(options, on_end=lambda found, outcome: export(found, outcome, place)))


def table(place: Path, name: str) -> list[str]:
    """The rows of a table, in any order."""
    return sorted(map(str, rows(place, name)))


@pytest.mark.parametrize(("partitions", "symmetry"), [(1, True), (2, False), (5, True)])
def test_spark_exports_the_rows_of_the_native_engine(partitions: int, symmetry: bool, tmp_path: Path) -> None:
    """On any number of partitions: ids, states, steps and all counts."""
    checked = program("kafka/kip101.spec", "fast_failover")
    wanted = SparkOptions(symmetry=symmetry, handover=100, partitions=partitions)
    on_spark(checked, tmp_path / "S", wanted)
    exported(checked, "native", tmp_path / "N", Options(symmetry=symmetry))
    for name in set(TABLES) - {"run"}:
        assert table(tmp_path / "S", name) == table(tmp_path / "N", name), name
    (mine,), (native,) = (rows(tmp_path / place, "run") for place in "SN")
    assert mine == native | {"engine": "spark", "seconds": mine["seconds"]}
    assert len(opened(tmp_path / "S").files["states"]) <= partitions


@pytest.mark.parametrize("model", [
    ("kafka/kip320.spec", "small"),
    pytest.param(("delivery.spec", "b13"), marks=pytest.mark.slow),
    pytest.param(("two_round_fetch.spec", "small"), marks=pytest.mark.slow),
])  # fmt: skip
def test_a_whole_search_and_its_part(model: tuple[str, str], tmp_path: Path) -> None:
    """Complete searches are, and of one that a budget ended every expanded state has all its steps."""
    checked = program(*model)
    on_spark(checked, tmp_path / "S", SparkOptions(handover=10, partitions=2, symmetry=False))
    exported(checked, "reference", tmp_path / "R", Options(symmetry=False))
    assert graph(tmp_path / "S") == graph(tmp_path / "R")
    assert rows(tmp_path / "S", "run")[0]["complete"] == rows(tmp_path / "R", "run")[0]["complete"]
    limit = SparkOptions(Budget(max_states=50), symmetry=False, handover=10, partitions=2)
    outcome = on_spark(checked, tmp_path / "P", limit)
    (run,) = rows(tmp_path / "P", "run")
    assert not run["complete"]
    assert run["states"] == outcome.statistics.distinct
    assert run["edges"] + 1 == run["generated"]
    known = {str(row) for row in rows(tmp_path / "S", "edges")}
    assert {str(row) for row in rows(tmp_path / "P", "edges")} <= known


def test_a_resumed_search_is_exported_whole(tmp_path: Path) -> None:
    """From the ledger of a lost driver, with the earlier levels included."""
    checked = program("kafka/kip320.spec", "small")
    wanted = SparkOptions(handover=10, partitions=2, ledger=str(tmp_path / "L"))
    search(checked, replace(wanted, budget=Budget(max_states=500)))
    on_spark(checked, tmp_path / "S", replace(wanted, resume=True))
    # Once more: all levels are there, and Spark makes none.
    on_spark(checked, tmp_path / "T", replace(wanted, resume=True))
    exported(checked, "native", tmp_path / "N")
    for name in ("states", "edges", "levels"):
        assert table(tmp_path / "S", name) == table(tmp_path / "T", name) == table(tmp_path / "N", name)


def test_a_search_that_never_was_large_is_exported(tmp_path: Path) -> None:
    """By the native engine, which executed all of it."""
    found = on_spark(program("kafka/kip320.spec", "small"), tmp_path / "S", SparkOptions())
    assert found.engine == "native"
    assert len(rows(tmp_path / "S", "states")) == found.statistics.distinct


def test_an_export_that_executors_cannot_write_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Path and reason from the executor; the verdict was printed, and nothing is left."""
    monkeypatch.setattr("specchk.export.parts.LocalDraft.at", classmethod(_elsewhere))
    line = [str(ROOT / "spec" / "kafka" / "kip320.spec"), "--engine", "spark", "--handover", "1"]
    found = CliRunner().invoke(command, [*line, "--partitions", "2", "--export", str(tmp_path / "E")])
    assert found.exit_code == 2
    assert found.stdout.startswith("holds: kip320")
    last = found.stderr.splitlines()[-1]
    assert last.startswith(f"Error: --export: cannot write {tmp_path}/E/")
    assert "No such file or directory (on " in last
    assert not list(tmp_path.iterdir())


def _elsewhere(kind: Any, target: Path) -> Any:
    """A draft in a directory that is on no machine."""
    return kind(target, target.parent / "nowhere" / "E")


def queries() -> list[tuple[list[str], str]]:
    """The queries of the tour that name plain columns: exports and SQL."""
    found = []
    for block in blocks(TOUR[TOUR.index("## A tour") : TOUR.index("**Which path leads")]):
        for one in commands(block) if block.language == "console" else ():
            match = re.fullmatch(r'specchk sql ([\w ]+) "(.*)"', one.text.replace("\\\n", "\n"), re.DOTALL)
            if match is not None:
                found.append((match[1].split(), match[2]))
    return found


@pytest.mark.slow
def test_the_tour_has_the_same_rows_on_duckdb_and_on_spark(tmp_path: Path, context: SparkContext) -> None:
    """Its queries are valid SQL for both, and the types of the files have the same meaning for both."""
    exported(program("kafka/kip320.spec", "small"), "native", tmp_path / "kip320", Options(symmetry=False))
    exported(program("isr_timing.spec"), "native", tmp_path / "today")
    exported(program("isr_timing.spec", expiration_period="2"), "native", tmp_path / "seldom")
    session = SparkSession(context)
    assert len(queries()) == 4
    for places, text in queries():
        exports = [opened(tmp_path / place) for place in places]
        for place in places:
            for name in ("states", "edges", "levels"):
                frame = session.read.parquet(str(tmp_path / place / name))
                frame.createOrReplaceTempView(f"{place}_{name}")
                if place == places[0]:
                    frame.createOrReplaceTempView(name)
        with answered(exports, text) as answer:
            wanted = list(answer.rows)
        assert wanted
        assert [tuple(row) for row in session.sql(VIEW.sub(r"\1_\2", text)).collect()] == wanted
