"""A deleted partition is removed permanently, whatever happens during the deletion."""

from __future__ import annotations

from contextlib import suppress

import pytest

from replog.core.effects import Append, Delete, StoreEpochs, StoreHighWatermark
from replog.core.types import Batch
from replog.run.storage import StorageError
from replog.sim.disks.stored import DIRECTORY, StoreStorage
from replog.store.directory import LogDirectory
from replog.store.files.fs import OsFs

RECORDS = 3


def written() -> StoreStorage:
    """A disk with a log of some records."""
    disk = StoreStorage()
    disk.recover()
    disk.perform(StoreEpochs(((0, 0),)))
    for offset in range(RECORDS):
        disk.perform(Append((Batch(offset, 0, 1, body=b"%d" % offset),)))
    disk.flush()
    disk.perform(StoreHighWatermark(2))
    return disk


def test_a_deleted_partition_leaves_neither_files_nor_checkpoints():
    """The next replica of this partition begins at offset 0, without a high watermark."""
    disk = written()
    disk.perform(Delete())
    assert disk.fs.listdir(DIRECTORY) == tuple(
        name for name in disk.fs.listdir(DIRECTORY) if not name.startswith("t-0")
    )
    assert (disk.hw_checkpoint, disk.end(), disk.flushed()) == (0, 0, 0)
    disk.perform(Delete())
    recovered = disk.copy().recover()
    assert (recovered.log.leo, recovered.log.hw, recovered.log.epochs.entries) == (0, 0, [])
    disk.perform(Append((Batch(0, 4, 1, body=b"again"),)))
    disk.flush()
    disk.crash()
    assert [batch.body for batch in disk.recover().log.batches] == [b"again"]


@pytest.mark.parametrize("choice", [None, 0, 1, 9])
def test_a_death_in_the_middle_leaves_all_of_the_log_or_nothing(choice):
    """A half-deleted log would be a replica without some of its records, or a directory that stays closed."""
    ends = []
    while True:
        disk = written()
        disk.fs.faults.crash_in = len(ends)
        with suppress(StorageError):
            disk.perform(Delete())
        if not disk.fs.is_dead:
            break
        if choice is None:
            disk.crash()
        else:
            disk.lose_power(lambda choices: min(choice, choices - 1))
        log = disk.recover().log
        assert not [name for name in disk.fs.listdir(DIRECTORY) if name.endswith("-delete")]
        assert disk._directory is not None
        assert not disk._directory.damaged
        ends.append(log.leo)
    assert set(ends) == {0, RECORDS}
    assert ends == sorted(ends, reverse=True), "what is deleted does not come back"


def test_a_start_removes_what_a_deletion_left_and_nothing_else(tmp_path):
    """The suffix alone does not make a file or a folder the store's."""
    own = "t-0.0-delete", "a.b-7.12-delete", "t-1.9f8e-delete"
    foreign = "photos-delete", "t-0-delete", ".1-delete", "t.0-delete"
    for name in own + foreign:
        (tmp_path / name).mkdir()
        (tmp_path / name / "content").write_text("x")
    (tmp_path / "t-2.0-delete").write_text("a file")
    LogDirectory.open(OsFs(), str(tmp_path)).abandon()
    kept = {path.name for path in tmp_path.iterdir() if path.name.endswith("-delete")}
    assert kept == {*foreign, "t-2.0-delete"}


def test_the_longest_topic_can_be_deleted(tmp_path):
    """Its folder's name leaves no space for a suffix, also for the second topic with the same beginning."""
    topics = "t" * 249, "t" * 248 + "u"
    directory = LogDirectory.open(OsFs(), str(tmp_path))
    for topic in topics:
        directory.log(topic, 0)
    for topic in topics:
        directory.delete(topic, 0)
    directory.abandon()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
