"""Recordings that executors read: the report of one process, tables of all, and the alarms of a stream."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyarrow import fs
from pyspark import SparkContext

from hang import HANG_S
from spark.cluster import wait_for
from specchk.cli import sql
from specchk.cli.commands import validate
from specchk.conform.recordings.pieces import PlacedRecording
from specchk.conform.recordings.rows import TABLES
from specchk.search.engine import Unusable
from specchk.spark.pipeline import files
from specchk.spark.pipeline import tables as tables_at
from specchk.spark.pipeline.stream import follow, name_of, place_of
from specchk.spark.pipeline.tables import TablesAt

BANK = """spec bank
sort Account
var balance : Account -> 0..4 = { a: 2 for a in Account }

action transfer(a: Account, b: Account):
    require a != b and balance[a] > 0
    balance'[a] = balance[a] - 1
    balance'[b] = balance[b] + 1
model small:
    Account = 2
    expect holds
"""
TRACING = """
import os
from specchk.conform.contract.tracing import Call, Seen, Tracing, event


class BankTracing(Tracing):
    spec, model, reads = "bank.spec", "small", "bank/1"

    @event("moved")
    def moved(self, found):
        if "kill" in found:
            os._exit(9)
        return Call("transfer", (found["from"], found["to"]))

    def after(self, found):
        return [Seen("balance", f"balance[{found['from']}]", found["left"])]
"""


def lines(left: int, **more: Any) -> str:
    """A recording of a coin that moves there and back; `left` is what is shown at last."""
    moved = {"at": "bank", "event": "moved"}
    events = [{**moved, "seq": 1, "from": "a1", "to": "a2", "left": 1, **more},
              {**moved, "seq": 2, "from": "a2", "to": "a1", "left": left}]  # fmt: skip
    every = [{"format": "bank/1"}, *events, {"end": True, "events": 2}]
    return "\n".join(map(json.dumps, every)) + "\n"


RIGHT, WRONG = lines(2), lines(3)


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Path]:
    """A tracing, and a folder `in` for recordings; its path has what a URI would escape, and an escape."""
    folder = tmp_path / "a bank #1%20"
    (folder / "in").mkdir(parents=True)
    (folder / "bank.spec").write_text(BANK)
    (folder / "tracing.py").write_text(TRACING)
    path = list(sys.path)
    yield folder
    sys.path[:] = path
    sys.modules.pop("tracing", None)


def validated(bank: Path, *args: str) -> tuple[int, Any]:
    """Exit code and report, times aside."""
    found = CliRunner().invoke(
        validate.command, [str(bank / "tracing.py"), str(bank / "in"), "--partial", "--json", *args]
    )
    assert found.stdout, (found.output, found.exception)
    report = json.loads(found.stdout)
    return found.exit_code, {**report, "seconds": 0, "events_per_second": 0, "workers": 0}


def rows(tables: Path, query: str) -> list[Any]:
    found = CliRunner().invoke(sql.command, [str(tables), query, "--json"])
    assert found.exit_code == 0, found.output
    answer: list[Any] = json.loads(found.stdout)["rows"]
    return answer


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
    """Nothing that was given is ignored."""
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


def test_tables_are_of_one_run_at_a_time(tmp_path: Path) -> None:
    """Two that began at once would write parts of one name; a claim that is left is in nobody's way."""
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
    """What was found is printed, and the exit code is that of wrong usage."""
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
    """In one sentence with the worker's host; so is a scheme that nobody knows, and an empty folder."""
    del context
    for place, words in (
        (str(bank / "nowhere"), "cannot list"), ("what://is/this", "cannot list"),
        (str(bank / "in"), "there is no recording"),
    ):  # fmt: skip
        line = [str(bank / "tracing.py"), place, "--master", "local[2]"]
        found = CliRunner().invoke(validate.command, line)
        assert found.exit_code == 2
        assert words in " ".join(found.output.split())


class Stream:
    """`specchk validate --follow` as a process; its standard error is a file."""

    def __init__(self, bank: Path, *args: str) -> None:
        self.folder, self.errors = bank / "in", bank / f"errors-{time.monotonic_ns()}"
        own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        line = [
            sys.executable, "-m", "specchk", "validate", str(bank / "tracing.py"), str(self.folder), "--json",
            "--partial", "--no-power", "--master", "local[2]", "--conf", "spark.ui.enabled=false", "--follow",
            "--tables", str(bank / "tables"), *args,
        ]  # fmt: skip
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                line, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, **own}
            )

    def put(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def alarm(self, name: str) -> str:
        """The alarm about a recording, once it is raised."""

        def raised() -> str:
            told = self.errors.read_text()
            assert self.process.poll() is None, told
            alarms = (line for line in told.splitlines() if line.startswith("alarm: "))
            return next((line for line in alarms if f"/{name}: " in line), "")

        found: str = wait_for(raised)
        return found

    def end(self, code: int) -> Any:
        """The report after Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self.ended(code)

    def ended(self, code: int) -> Any:
        out, _ = self.process.communicate(timeout=HANG_S)
        assert self.process.returncode == code, self.errors.read_text()
        return json.loads(out)


@pytest.mark.slow
def test_a_stream_raises_alarms_and_a_later_run_continues(bank: Path) -> None:
    """Of what is wrong, garbage or never finished; half of a recording is waited for, by the next run too."""
    first = Stream(bank, "--patience", "8")
    try:
        first.put("right.ndjson", RIGHT)
        first.put("wrong.ndjson", WRONG)
        assert "explains event 2 of 2 (bank: moved)" in first.alarm("wrong.ndjson")
        first.put("garbage.ndjson", "\0\n")
        first.put("stuck.ndjson", RIGHT[:70])
        first.put("with a space.ndjson", WRONG)
        assert "not a JSON object" in first.alarm("garbage.ndjson")
        assert "explains event 2 of 2" in first.alarm("with a space.ndjson")
        old = first.folder / ".old"
        old.write_text(WRONG)
        os.utime(old, (1, 1))
        old.rename(first.folder / "old %20.ndjson")
        assert "explains event 2 of 2" in first.alarm("old %20.ndjson")
        assert "this line is not" in first.alarm("stuck.ndjson")
        wait_for(lambda: "right.ndjson" in str(written(bank)))
        found = first.end(13)
    finally:
        first.process.kill()
    counts = [found[name] for name in ("recordings", "accepted", "diverging", "without_verdict")]
    assert counts == [6, 1, 3, 2]
    assert found["blocked"][0]["contradiction"] is not None

    second = Stream(bank, "--idle", "3", "--patience", "1000")
    try:
        second.put("half.ndjson", RIGHT[:90])
        wait_for(lambda: (bank / "tables" / "growing.json").read_text().count("half"))
        found = second.ended(21)
    finally:
        second.process.kill()
    assert (found["recordings"], found["without_verdict"]) == (1, 1)

    (bank / "in" / "half.ndjson").write_text(RIGHT)
    third = Stream(bank, "--idle", "1")
    try:
        found = third.ended(0)
    finally:
        third.process.kill()
    assert (found["recordings"], found["accepted"]) == (1, 1)
    counts = rows(
        bank / "tables", "select verdict, count(*), count(distinct recording) from recordings group by all"
    )
    assert sorted(counts) == [["diverges", 3, 3], ["explained", 2, 2], ["none", 2, 2]]


@pytest.mark.slow
def test_a_batch_that_was_interrupted_is_done_again_on_other_cores(bank: Path) -> None:
    """In other pieces, whose rows replace those that are there: each recording has one."""
    begun = bank / "begun"
    slow = f"        open({str(begun)!r}, 'w').close()\n        time.sleep(0.3)\n        if"
    (bank / "tracing.py").write_text(f"import time\n{TRACING.replace('        if', slow)}")
    for number in range(24):
        (bank / "in" / f"{number:02}.ndjson").write_text(RIGHT)
    first = Stream(bank)
    try:
        wait_for(begun.exists)
        assert first.end(21)["accepted"] == 0
    finally:
        first.process.kill()
    second = Stream(bank, "--idle", "1", "--master", "local[1]")
    try:
        assert second.ended(0)["accepted"] == 24
    finally:
        second.process.kill()
    counts = rows(
        bank / "tables", "select verdict, count(*), count(distinct recording) from recordings group by all"
    )
    assert counts == [["explained", 24, 24]]


def written(bank: Path) -> list[str]:
    """The recordings that have rows already."""
    parts = (bank / "tables" / "recordings").glob("part-*.parquet")
    return [name for part in parts for name in pq.read_table(part)["recording"].to_pylist()]
