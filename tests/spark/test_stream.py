"""A folder that grows: alarms as they are due, and runs that continue earlier ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hang import HANG_S
from replog.sim.recording.record_run import record
from spark.cluster import wait_for
from spark.coins import RIGHT, TRACING, WRONG, rows
from spark.small import SPEC


class Stream:
    """`specchk validate --follow` as a process; its standard error is a file."""

    def __init__(self, bank: Path, *args: str, tracing: Path | None = None) -> None:
        self.folder, self.errors = bank / "in", bank / f"errors-{time.monotonic_ns()}"
        own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        line = [
            sys.executable, "-m", "specchk", "validate", str(tracing or bank / "tracing.py"),
            str(self.folder), "--json", "--partial", "--no-power", "--master", "local[2]",
            "--conf", "spark.ui.enabled=false", "--follow", "--tables", str(bank / "tables"), *args,
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
    """For wrong, garbage or unfinished recordings; the next run also waits for half a recording."""
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

    second = Stream(bank, "--idle", "3", "--patience", "1000", *logged(bank))
    try:
        second.put("half.ndjson", RIGHT[:90])
        wait_for(lambda: "half" in unfinished(bank))
        found = second.ended(21)
    finally:
        second.process.kill()
    assert (found["recordings"], found["without_verdict"]) == (1, 1)
    # As it appears, and once more in case that it has grown meanwhile; no job for each second without news.
    assert jobs_in(bank).count("specchk BankTracing: 1 recordings") == 2

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


def wrong(recording: str) -> str:
    """A recording of replog whose last shown HW is beyond all records."""
    before, shown, after = recording.rpartition('"hw":')
    return f"{before}{shown}99{after.lstrip('0123456789')}"


@pytest.mark.slow
def test_an_alarm_is_raised_before_the_next_recording_is_there(tmp_path: Path) -> None:
    """Of replog's recordings, of which the rest appears once Spark has seen a part; and of no other."""
    (tmp_path / "in").mkdir()
    stream = Stream(tmp_path, tracing=SPEC.parent / "conformance" / "tracing.py")
    try:
        for seed in range(6):
            text = "\n".join(record(seed)) + "\n"
            whole = wrong(text) if seed % 2 else text
            half = whole.index("\n", len(whole) // 2) - 3
            stream.put(f"seed-{seed}.ndjson", whole[:half])
            if seed % 2:
                wait_for(lambda name=f"seed-{seed}.ndjson": name in unfinished(tmp_path))
            with (stream.folder / f"seed-{seed}.ndjson").open("a") as file:
                file.write(whole[half:])
            if seed % 2:
                assert "no behaviour of the spec explains event" in stream.alarm(f"seed-{seed}.ndjson")
        wait_for(lambda: len(written(tmp_path)) == 6)
        found = stream.end(13)
    finally:
        stream.process.kill()
    assert (found["recordings"], found["accepted"], found["diverging"]) == (6, 3, 3)
    alarms = [line for line in stream.errors.read_text().splitlines() if line.startswith("alarm: ")]
    assert len(alarms) == 3


@pytest.mark.slow
def test_a_batch_that_was_interrupted_is_done_again_on_other_cores(bank: Path) -> None:
    """In other pieces, whose rows replace the existing ones: each recording has one."""
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


def logged(bank: Path) -> list[str]:
    """Options with which Spark logs its jobs."""
    folder = bank / "events"
    folder.mkdir()
    settings = {"enabled": "true", "dir": folder.as_uri(), "compress": "false", "rolling.enabled": "false"}
    return [word for name, value in settings.items() for word in ("--conf", f"spark.eventLog.{name}={value}")]


def jobs_in(bank: Path) -> list[str]:
    """The descriptions of the jobs that Spark has logged."""
    lines = (line for file in (bank / "events").iterdir() for line in file.read_text().splitlines())
    events = (json.loads(line) for line in lines if "SparkListenerJobStart" in line)
    return [event["Properties"].get("spark.job.description", "") for event in events]


def unfinished(bank: Path) -> str:
    """The names of the recordings that are read again when they grow."""
    kept = bank / "tables" / "growing.json"
    return kept.read_text() if kept.exists() else ""


def written(bank: Path) -> list[str]:
    """The recordings that have rows already."""
    parts = (bank / "tables" / "recordings").glob("part-*.parquet")
    return [name for part in parts for name in pq.read_table(part)["recording"].to_pylist()]
