"""Random walks on executors: those of one machine."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from pyspark import SparkContext

from spark.small import SPEC, program
from specchk.cli.commands import simulate as command
from specchk.explore.simulate import Walks
from specchk.explore.walkers import simulate_on
from specchk.search.verdict import Outcome, Violated
from specchk.spark import walks as on_spark
from specchk.spark.walks import simulate


def quiet(outcome: Outcome) -> Outcome:
    """The outcome without the time."""
    return replace(outcome, statistics=replace(outcome.statistics, seconds=0.0))


def test_a_cluster_walks_the_same_walks(context: SparkContext) -> None:
    """Counts, coverage and witnesses are those of the same seed on one machine."""
    checked, walks = program("kafka/kip320.spec", "small"), Walks(5, 130, 30)
    assert quiet(simulate(checked, walks, None)) == quiet(simulate_on(checked, walks, 1))


def test_a_cluster_finds_the_same_violation(context: SparkContext) -> None:
    """The first block in order with a finding counts."""
    checked, walks = program("kafka/kip101.spec", "fast_failover"), Walks(3, 2000, 40)
    found = simulate(checked, walks, None)
    assert isinstance(found.verdict, Violated)
    assert quiet(found) == quiet(simulate_on(checked, walks, 1))


def test_walks_whose_spark_ends_have_none(context: SparkContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, exit code 21; with `--json` an object, too, as of every command that ends early."""

    def ended(*_: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(on_spark, "_taken", ended)
    line = [str(SPEC / "kafka" / "kip320.spec"), "--engine", "reference", "--master", "local[2]"]
    found = CliRunner().invoke(command.command, line)
    assert found.exit_code == 21
    assert "Error: Spark failed: " in found.output
    found = CliRunner().invoke(command.command, [*line, "--json"])
    assert found.exit_code == 21
    assert "Error: Spark failed: " in found.stderr
    answer = json.loads(found.stdout)
    assert answer["schema"] == "specchk.ended/1"
    assert answer["reason"].startswith("Spark failed: ")
