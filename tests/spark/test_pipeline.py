"""Recordings read by executors: the report of one process, tables of all, and the alarms of a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from pyarrow import fs
from pyspark import SparkContext

from spark.coins import RIGHT, WRONG, lines, rows
from specchk.cli.commands import validate
from specchk.conform.recordings.pieces import PlacedRecording
from specchk.conform.recordings.rows import TABLES
from specchk.conform.work.crews import Job
from specchk.search.engine import Unusable
from specchk.spark.pipeline import files
from specchk.spark.pipeline import tables as tables_at
from specchk.spark.pipeline.stream import Growth, follow, name_of, place_of
from specchk.spark.pipeline.tables import TablesAt


def validated(bank: Path, *args: str) -> tuple[int, Any]:
    """Exit code and report, times aside."""
    found = CliRunner().invoke(
        validate.command, [str(bank / "tracing.py"), str(bank / "in"), "--partial", "--json", *args]
    )
    assert found.stdout, (found.output, found.exception)
    report = json.loads(found.stdout)
    return found.exit_code, {**report, "seconds": 0, "events_per_second": 0, "workers": 0}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--tables", "x"), "--tables requires --master"),
        (("--follow",), "--follow requires --master"),
        (("--idle", "5", "--master", "local[2]"), "--idle requires --follow"),
        (("other", "--follow", "--master", "local[2]"), "--follow is for one folder"),
    ],
)
def test_options_that_do_not_go_together_are_refused(bank: Path, args: tuple[str, ...], words: str) -> None:
    """No option is silently ignored."""
    found = CliRunner().invoke(validate.command, [str(bank / "tracing.py"), str(bank / "in"), *args])
    assert found.exit_code == 2
    assert words in " ".join(found.output.split())


ODD = ("50%.ndjson", "a b.ndjson", "a%20b.ndjson", "n#1.ndjson", "what?.ndjson")


def test_names_of_recordings_may_have_what_a_uri_escapes(bank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that is a path, a `file:` URI, or a URI of another file system: each is read and named."""
    for name in ODD:
        (bank / "in" / name).write_text(name)

    def reached(place: str) -> tuple[Any, str]:
        return fs.FileSystem.from_uri(place.replace("far://host/", "file:///", 1))

    monkeypatch.setattr(files, "system_of", reached)
    folder = bank / "in"
    for place in (str(folder), folder.as_uri(), folder.as_uri().replace("file:///", "far://host/", 1)):
        found = files.listed(place)
        assert [(files.read(one) or b"").decode() for one in found] == list(ODD)
        assert [files.read(one, unless=len(name)) for one, name in zip(found, ODD, strict=True)] == [None] * 5
        assert [PlacedRecording(0, one).name for one in found] == list(ODD)


@pytest.mark.parametrize("name", ODD)
def test_spark_and_the_executors_mean_the_same_file(name: str) -> None:
    """Spark's names have no escapes."""
    for place in (f"/in a/{name}", f"hdfs://host:1/in%20a/{quote(name)}"):
        assert place_of(name_of(place)) == place
    assert name_of(f"hdfs://host:1/in%20a/{quote(name)}") == f"hdfs://host:1/in a/{name}"


@pytest.mark.parametrize("folder", ["/runs/[1]/in", "file:///runs/%2A", "hdfs://host/runs-{1,2}"])
def test_a_folder_that_spark_reads_as_a_pattern_is_not_followed(folder: str) -> None:
    """It would list other folders, or none."""
    with pytest.raises(Unusable, match="as a pattern"):
        follow(None, folder, "/checkpoint", lambda *_: None, lambda _: False, list)  # type: ignore[arg-type]


def test_what_does_not_grow_is_not_read_again(tmp_path: Path) -> None:
    """A job is due for what is new, has grown, did not grow for long, or cannot be seen from the driver."""
    now, half = [0.0], tmp_path / "half.ndjson"
    growth, places = Growth(8.0, lambda: now[0]), [str(half)]
    half.write_text(RIGHT[:70])
    assert [growth.is_due([]), growth.is_due(places), growth.is_due(places)] == [False, True, False]
    now[0] = 7.0
    assert not growth.is_due(places)
    half.write_text(RIGHT[:80])
    assert [growth.is_due(places), growth.is_due(places)] == [True, False]
    now[0] = 14.0
    assert not growth.is_due(places)
    now[0] = 15.0
    assert growth.is_due(places)
    half.unlink()
    assert [growth.is_due(places), growth.is_due(places)] == [True, True]


def test_tables_are_of_one_run_at_a_time(tmp_path: Path) -> None:
    """Two started at once would write parts of one name; a claim that is left blocks no other run."""
    tables = TablesAt(str(tmp_path / "tables"), dict(TABLES))
    with tables.claimed("one", may_continue=False):
        with pytest.raises(Unusable, match="for one"), tables.claimed("two", may_continue=False):
            pass
        tables.keep_growing(["/in/half.ndjson"])
    with pytest.raises(Unusable, match="has something"), tables.claimed("two", may_continue=True):
        pass
    with TablesAt(str(tmp_path / "new"), {}).claimed("one", may_continue=False):
        pass
    with TablesAt(str(tmp_path / "new"), {}).claimed("two", may_continue=False):
        pass
    assert tables.growing() == ["/in/half.ndjson"]
    (tmp_path / "tables" / "growing.json").write_text("[")
    with pytest.raises(Unusable, match="is damaged"):
        tables.growing()


def test_a_listing_is_a_job(tmp_path: Path) -> None:
    """As `kit.shipped` runs it on an executor: called with the user's class and folder, it lists a place."""
    (tmp_path / "a b.ndjson").write_text("")
    job: Job[str, list[str]] = files.RecordingListing()
    assert job(object, tmp_path)(str(tmp_path)) == [str(tmp_path / "a b.ndjson")]
    with pytest.raises(Unusable, match="cannot list"):
        job(object, tmp_path)(str(tmp_path / "none"))


@pytest.mark.slow
def test_executors_report_as_one_process_does(context: SparkContext, bank: Path) -> None:
    """Of files of all kinds: the same JSON and exit code, and a row for each; tables are never mixed."""
    del context
    for number in range(40):
        (bank / "in" / f"{number:02}.ndjson").write_text(WRONG if number in (3, 30) else RIGHT)
    for name, data in (
        ("cut", RIGHT[:70]),
        ("empty", ""),
        ("garbage", "\0\n"),
        ("other", '{"format": "x/1"}'),
    ):
        (bank / "in" / f"{name}.ndjson").write_text(data)
    (bank / "in" / "folder.ndjson").mkdir()
    tables = bank / "tables"
    here = validated(bank)
    there = validated(bank, "--master", "local[2]", "--tables", str(tables))
    assert here[0] == there[0] == 13
    assert here[1] == there[1]
    assert rows(tables, "select verdict, count(*) from recordings group by verdict order by verdict") == [
        ["diverges", 2], ["explained", 38], ["none", 5],
    ]  # fmt: skip
    assert rows(tables, "select event, sum(count) from coverage group by event") == [["moved", 78]]
    assert rows(tables, "select distinct number, fields from unexplained") == [[2, ["balance"]]]
    assert rows(tables, "select count(*) from copies")[0][0] == here[1]["copies"]
    again = CliRunner().invoke(
        validate.command,
        [str(bank / "tracing.py"), str(bank / "in"), "--master", "local[2]", "--tables", str(tables)],
    )
    assert again.exit_code == 2
    assert "has something" in again.output


@pytest.mark.slow
def test_tables_that_the_driver_does_not_see_leave_the_report(
    context: SparkContext, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The findings are printed, and the exit code is that of wrong usage."""
    del context
    (bank / "in" / "right.ndjson").write_text(RIGHT)
    monkeypatch.setattr(tables_at, "_parts_of", lambda *_: [])
    line = [str(bank / "tracing.py"), str(bank / "in"), "--partial", "--no-power", "--json"]
    line += ["--master", "local[2]", "--tables", str(bank / "tables")]
    found = CliRunner().invoke(validate.command, line)
    assert found.exit_code == 2
    assert "sees 0 rows" in found.stderr
    report = json.loads(found.stdout)
    assert (report["verdict"], report["accepted"], report["exit_code"]) == ("explained", 1, 2)
    assert not (bank / "tables" / "manifest.json").exists()


@pytest.mark.slow
def test_a_recording_that_ends_its_worker_is_the_only_one_without_a_verdict(
    context: SparkContext, bank: Path
) -> None:
    """The others of its task have theirs, and Spark does more work afterwards."""
    for number in range(8):
        (bank / "in" / f"{number}.ndjson").write_text(lines(2, kill=True) if number == 5 else RIGHT)
    code, report = validated(bank, "--master", "local[2]", "--no-power")
    assert (code, report["accepted"], report["without_verdict"]) == (21, 7, 1)
    assert report["vacuous"][0].startswith("5.ndjson: ")
    assert context.parallelize([1]).count() == 1


@pytest.mark.slow
def test_a_folder_that_executors_do_not_have_is_refused(context: SparkContext, bank: Path) -> None:
    """In one sentence with the worker's host; so is an unknown scheme, and an empty folder."""
    del context
    for place, words in (
        (str(bank / "nowhere"), "cannot list"), ("what://is/this", "cannot list"),
        (str(bank / "in"), "there is no recording"),
    ):  # fmt: skip
        line = [str(bank / "tracing.py"), place, "--master", "local[2]"]
        found = CliRunner().invoke(validate.command, line)
        assert found.exit_code == 2
        assert words in " ".join(found.output.split())
