"""`specchk run --forecast`: the expected size of a search, compared with the actual one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hang import HANG_S
from specchk.cli.commands.run import command
from specchk.compile.instantiate import instantiate
from specchk.forecast.intervals import Forecast
from specchk.lang.frontend import check
from specchk.native import engine, scout
from specchk.report.forecast import compared, compared_json, count, duration, forecast_lines, size
from specchk.search.reference import search
from specchk.search.verdict import Outcome

SPEC = Path(__file__).resolve().parents[2] / "spec"
SMALL = str(SPEC / "examples" / "die_hard.spec")
LARGER = SPEC / "kafka" / "kip320.spec"


def test_a_search_that_the_sample_ends_has_an_exact_forecast() -> None:
    """The interval is the number, and no search follows."""
    found = CliRunner().invoke(command, [SMALL, "--forecast", "--json"])
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told["schema"] == "specchk.forecast/1"
    assert told["forecast"]["is_exact"]
    assert told["forecast"]["states"] == {"low": 14, "likely": 14, "high": 14}


def test_a_sample_that_is_too_small_is_reported_as_json(tmp_path: Path) -> None:
    """There is one object, with the exit code, where there is no forecast."""
    file = tmp_path / "none.spec"
    file.write_text(
        "spec none\nvar x : 0..3\ninit: x > 3\naction a():\n    skip\nmodel m:\n    expect holds\n"
    )
    found = CliRunner().invoke(command, [str(file), "--forecast", "--json"])
    told = json.loads(found.stdout)
    assert (told["verdict"], told["exit_code"], found.exit_code) == ("inconclusive", 21, 21)
    assert told["reason"].startswith("no forecast: a sample of 0 states")


def test_a_forecast_judges_no_temporal_property(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are counted; obligations do not matter."""
    monkeypatch.setattr("specchk.native.engine.StepsOfSearch", None)
    file = LARGER.parents[1] / "examples" / "alternating_bit_queues.spec"
    found = CliRunner().invoke(command, [str(file), "--forecast", "--json"])
    assert json.loads(found.stdout)["forecast"]["states"] == {"low": 240, "likely": 240, "high": 240}


def test_a_forecast_is_for_engines_that_list_states() -> None:
    """Zones cannot be counted in advance."""
    found = CliRunner().invoke(command, [SMALL, "--forecast", "--engine", "symbolic"])
    assert found.exit_code == 2
    assert "--forecast is for the native engine" in found.output


def outcome() -> Outcome:
    model = instantiate(check(str(LARGER)), "small", {"MaxRecords": "1", "MaxLeaderEpoch": "0"})
    return search(model.program)


@pytest.mark.parametrize(("low", "high", "word"), [(1, 10**6, "inside"), (10**5, 10**6, "outside")])
def test_the_outcome_is_put_beside_the_forecast(low: int, high: int, word: str) -> None:
    """One line for people, one member for programs; both state whether the forecast was right."""
    made, ended = Forecast(low, low, high, 1, 7, 0, 16, 1e6, 1 << 34), outcome()
    states = ended.statistics.distinct
    assert compared(ended, made).endswith(f"actual {states}: {word}")
    assert compared_json(ended, made)["actual"] == states
    assert compared_json(ended, made)["inside"] is (word == "inside")


def test_a_forecast_says_where_to_run_it() -> None:
    """The present machine if the upper end fits, otherwise Spark with a number of partitions."""
    assert forecast_lines(Forecast(10**6, 10**7, 10**8, 1, 7, 3, 16, 1e6, 1 << 34))[-1].endswith(
        "this machine"
    )
    assert "--engine spark" in forecast_lines(Forecast(10**6, 10**7, 10**10, 1, 7, 3, 16, 1e6, 1 << 34))[-1]


def test_numbers_are_short() -> None:
    """Three digits and a unit, for any size."""
    assert [count(950), count(12_345), count(23_071_998), count(10**30)] == [
        "950", "12.3 k", "23.1 M", "more than 999 T",
    ]  # fmt: skip
    assert [size(1 << 20), size(3 << 30)] == ["1 MB", "3 GB"]
    assert [duration(0.5), duration(120), duration(86_400 * 3), duration(1e13)] == [
        "0.5 s", "2 minutes", "3 days", "ages",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_published_model_is_forecast_from_a_part_of_it() -> None:
    """A tenth of Kip320's states for two replicas and four epochs is enough."""
    dials = {"MaxRecords": "3", "LogSize": "3", "MaxLeaderEpoch": "3", "Replicas": "2"}
    question = scout.ChosenModel(check(str(LARGER)), "small", dials)
    whole = engine.search(question.program({})).statistics.distinct
    effort = scout.ForecastLimits(whole // 10, seconds=HANG_S, searches=8, last_begins=HANG_S)
    found = scout.forecast(question, engine.NativeOptions(), effort)
    assert found.models > 0
    assert not found.is_exact
    assert found.holds(whole)
