"""replog beside Kafka, on disk: each reads what the other wrote."""

from __future__ import annotations

import shutil

import pytest
from click.testing import CliRunner
from conformance.apache_kafka.batches import Producer, batch_of, parse_batches
from conformance.apache_kafka.metadata_log import METADATA_LOG
from conformance.apache_kafka.releases import NEWEST

from real_kafka.loads import STOPPED
from real_kafka.test_dumps import FIRST, PARTITION, compare_batches, dumped
from replog import dump, repair
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import DamagedLogError
from replog.store.files.fs import OsFs


def test_kafkas_tool_reads_what_replog_wrote(history, tmp_path):
    """Segments, and indexes that fit them by Kafka; batches and records are as they were appended."""
    assert history  # Kafka is on this machine
    directory = LogDirectory.open(
        OsFs(), str(tmp_path), LogConfig(segment_bytes=500, index_interval_bytes=50)
    )
    log = directory.log("orders", 0)
    for number in range(12):
        batch = bytearray(batch_of([b"record %d" % number] * 3, Producer(7, 0, number * 3), 1000 + number))
        log.append_as_leader(batch, number // 5)
    directory.shut_down({("orders", 0): 36})
    folder = tmp_path / PARTITION
    logs = sorted(folder.glob("*.log"))
    assert len(logs) > 1
    assert compare_batches(NEWEST, logs) == 12
    for name, lines in dumped(NEWEST, sorted(folder.glob("*.*index")), "--index-sanity-check").items():
        assert lines == [f"{name} passed sanity check."], lines


def test_replog_reads_what_kafka_wrote(history):
    """Every batch and epoch; it reports that nothing vouches for them, since Kafka writes no manifests."""
    folder = history / STOPPED / "1" / PARTITION
    shown = CliRunner().invoke(dump.command, ["--batches", str(folder)])
    lines = shown.output.splitlines()
    batches = list(parse_batches((folder / FIRST).read_bytes()))
    assert [line.split(",")[0].strip() for line in lines if line.startswith("    @")] == [
        f"@{batch.position} offsets {batch.base}..{batch.last}" for batch in batches
    ]
    assert any("0 from 0, 1 from 6, 2 from 12" in line for line in lines)
    problems = [line.split(maxsplit=2)[1] for line in lines if line.startswith("!")]
    assert shown.exit_code == 1
    # The first five are of the log directory: without its manifest, no checkpoint is the one written last.
    assert problems == [
        "directory-manifest", ".kafka_cleanshutdown", "replication-offset-checkpoint",
        "recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "log-manifest",
    ]  # fmt: skip
    assert "is missing: it was lost, or other software wrote this log" in shown.output


def test_replog_adopts_what_kafka_left(history, tmp_path):
    """It refuses logs without its manifest; a repair adopts them, and a broker of replog goes on."""
    folder = tmp_path / "1"
    shutil.copytree(history / STOPPED / "1", folder)
    shutil.rmtree(folder / METADATA_LOG)
    refusing = LogDirectory.open(OsFs(), str(folder))
    with pytest.raises(DamagedLogError, match=r"log-manifest: is missing.* `replog repair`"):
        refusing.log("orders", 0)
    refusing.abandon()
    adopted = CliRunner().invoke(repair.command, [str(folder), "--adopt", "--apply"])
    assert adopted.exit_code == 0, adopted.output
    directory = LogDirectory.open(OsFs(), str(folder))
    log = directory.log("orders", 0)
    assert log.log_end == 18
    assert log.append_as_leader(bytearray(batch_of([b"of replog"], Producer(), 1000)), 5).base_offset == 18
    directory.shut_down({("orders", 0): 19})
    assert compare_batches(NEWEST, [folder / PARTITION / FIRST]) == 10
