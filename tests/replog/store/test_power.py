"""Promises that hold if the power fails right after a call returned: one test each, many seeds."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from replog.sim.disks.disk import CrashedError, SimFs
from replog.store.checkpoints.checkpoint import (
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    read_epochs,
    read_offsets,
)
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.fs import read_file
from replog.store.files.quarantine import is_quarantined
from replog.store.partition import PartitionLog
from replog.store.segments.records import Record, encode_batch

KEY = ("t", 0)
CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=150)
SEEDS = range(25)


def filled() -> tuple[SimFs, LogDirectory, PartitionLog]:
    """Open a log of 20 one-record batches in several segments, synced and checkpointed."""
    fs = SimFs()
    directory = LogDirectory.open(fs, "data", CONFIG)
    log = directory.log(*KEY)
    for i in range(20):
        log.append_as_leader(encode_batch([Record(b"x" * 40)]), i // 7)
    log.flush()
    directory.checkpoint({KEY: 20})
    return fs, directory, log


def after_power_loss(fs: SimFs, seed: int) -> PartitionLog:
    fs.power_loss(Random(seed).randrange)
    return LogDirectory.open(fs, "data", CONFIG).logs[KEY]


@pytest.mark.parametrize("offset", [0, 3, 11, 19])
def test_nothing_truncated_comes_back(offset: int) -> None:
    """A truncation is durable when it returns: log end, segments and epochs."""
    for seed in SEEDS:
        fs, _, log = filled()
        assert log.truncate_to(offset) == offset
        again = after_power_loss(fs, seed)
        assert again.log_end == offset
        assert again.epochs == tuple(e for e in ((0, 0), (1, 7), (2, 14)) if e[1] < offset)


def test_nothing_of_a_reset_log_comes_back() -> None:
    """After a reset the log is empty at its new start, or the checkpointed one if that is later."""
    for seed in SEEDS:
        fs, _, log = filled()
        log.reset(50)
        again = after_power_loss(fs, seed)
        assert (again.log_start, again.log_end, again.epochs) == (50, 50, ())


def test_nothing_flushed_is_lost() -> None:
    """Whatever the last unsynced bytes do."""
    for seed in SEEDS:
        fs, _, log = filled()
        log.append_as_leader(encode_batch([Record(b"y" * 40)]), 2)
        assert log.flushed == 20
        assert after_power_loss(fs, seed).log_end in (20, 21)


def test_a_flush_syncs_all_segments_that_were_written_to() -> None:
    """Also those that were left unsynced when the next one was started."""
    for seed in SEEDS:
        fs = SimFs()
        lazy = replace(CONFIG, flush_on_roll=False)
        log = LogDirectory.open(fs, "data", lazy).log(*KEY)
        for _ in range(20):
            log.append_as_leader(encode_batch([Record(b"x" * 40)]), 0)
        assert len(log.segment_bases) > 2
        log.flush()
        again = after_power_loss(fs, seed)
        assert [header.base_offset for header in again.headers()] == list(range(20)), "no hole, either"


def test_a_cut_below_the_log_start_lowers_it() -> None:
    """Also inside the first segment, which has records of before the log start."""
    fs = SimFs()
    log = LogDirectory.open(fs, "data", replace(CONFIG, segment_bytes=100_000)).log(*KEY)
    for _ in range(20):
        log.append_as_leader(encode_batch([Record(b"x" * 40)]), 0)
    log.advance_log_start(13)
    log.truncate_to(10)
    assert (log.log_start, log.log_end) == (10, 10)
    log.append_as_leader(encode_batch([Record(b"y" * 40)]), 1)
    log.flush()
    again = after_power_loss(fs, 1)
    assert (again.log_start, again.log_end) == (10, 11)


def test_a_power_loss_in_a_cut_below_the_log_start_damages_no_file() -> None:
    """Records before the old log start may be left; the epoch file gets theirs, and nothing is set aside."""
    seen = set()
    for crash in count():
        fs = SimFs()
        log = LogDirectory.open(fs, "data", CONFIG).log(*KEY)
        for epoch in range(2):
            log.append_as_leader(encode_batch([Record(b"x"), Record(b"y")]), epoch)
        log.advance_log_start(3)
        fs.faults.crash_in = crash
        with suppress(CrashedError):
            log.truncate_to(0)
        if not fs.is_dead:
            break
        again = after_power_loss(fs, crash)
        whole = ((0, 0), (1, 2))[: again.log_end // 2]
        assert again.epochs == (((1, 3),) if again.log_start == 3 else whole)
        assert (read_epochs(fs, "data/t-0") or ()) == again.epochs
        assert again.recovery.notes == ()
        assert not any(map(is_quarantined, fs.listdir("data/t-0")))
        seen.add((again.log_start, again.log_end))
    assert seen == {(3, 4), (0, 4), (0, 0)}


def test_the_recovery_point_is_what_was_synced() -> None:
    """A checkpoint promises no record that is only in the page cache (KAFKA-10101)."""
    fs, directory, log = filled()
    log.append_as_leader(encode_batch([Record(b"y" * 40)]), 2)
    directory.checkpoint({KEY: 20})
    assert read_offsets(fs, "data", RECOVERY_POINT_FILE) == {KEY: 20}


@pytest.mark.parametrize("offset", [0, 11, 19])
def test_no_recovery_point_is_above_a_cut(offset: int) -> None:
    """In whichever segment the log is cut (KAFKA-10101)."""
    fs, _, log = filled()
    log.truncate_to(offset)
    assert read_offsets(fs, "data", RECOVERY_POINT_FILE) == {KEY: offset}


def test_what_is_written_below_an_earlier_log_start_is_kept() -> None:
    """A truncation below the log start lowers its checkpoint; a restart does not drop what follows."""
    for seed in SEEDS:
        fs, directory, log = filled()
        log.advance_log_start(13)
        directory.checkpoint({})
        log.truncate_to(10)
        log.append_as_leader(encode_batch([Record(b"y" * 40)]), 3)
        log.flush()
        again = after_power_loss(fs, seed)
        assert (again.log_start, again.log_end) == (10, 11)


def test_no_checkpoint_speaks_of_more_than_a_truncation_left() -> None:
    """Recovery point and log start are lowered before the log is cut below them."""
    fs, directory, log = filled()
    log.advance_log_start(13)
    directory.checkpoint({})
    log.truncate_to(10)
    assert read_offsets(fs, "data", RECOVERY_POINT_FILE) == {KEY: 10}
    assert read_offsets(fs, "data", LOG_START_FILE) == {KEY: 10}
    again = after_power_loss(fs, 1)
    assert (again.log_start, again.log_end) == (10, 10)


def test_the_recovery_point_is_lowered_before_a_cut_inside_the_log() -> None:
    """New records in place of synced ones are not mistaken for synced (KAFKA-10101)."""
    fs, _, log = filled()
    log.truncate_to(6)
    assert read_offsets(fs, "data", RECOVERY_POINT_FILE) == {KEY: 6}


def test_what_a_recovery_found_is_durable_once_it_counts_as_flushed() -> None:
    """After the death of a process the tail is only in the page cache, until the next start has synced it."""
    for seed in SEEDS:
        fs, _, log = filled()
        log.append_as_leader(encode_batch([Record(b"y" * 40)]), 2)
        fs.process_crash()
        assert LogDirectory.open(fs, "data", CONFIG).logs[KEY].flushed == 21
        assert after_power_loss(fs, seed).log_end == 21


def test_a_power_loss_after_a_clean_start_is_no_clean_stop() -> None:
    """The broker does not claim an epoch of a clean stop (KIP-966)."""
    for seed in SEEDS:
        fs, directory, _ = filled()
        directory.shut_down({KEY: 20}, 3)
        log = LogDirectory.open(fs, "data", CONFIG).logs[KEY]
        log.append_as_leader(encode_batch([Record(b"y" * 40)]), 2)
        fs.power_loss(Random(seed).randrange)
        assert LogDirectory.open(fs, "data", CONFIG).broker_epoch is None


def test_a_checkpointed_log_start_stays_where_it_was() -> None:
    """Records below it, in a segment that is kept for its later ones, do not come back."""
    for seed in SEEDS:
        fs, directory, log = filled()
        log.advance_log_start(13)
        directory.checkpoint({})
        again = after_power_loss(fs, seed)
        assert again.log_start == 13 > again.segment_bases[0]
        assert again.epochs[0] == (1, 13)


def test_an_epoch_is_durable_before_its_first_record() -> None:
    """Any record that survives has its epoch in the file, whatever else is lost."""
    for seed in SEEDS:
        fs, _, log = filled()
        log.append_as_leader(encode_batch([Record(b"y")]), 9)
        fs.power_loss(Random(seed).randrange)
        path = f"data/t-0/{log.segment_bases[-1]:020d}.log"
        if fs.exists(path) and b"y" in read_file(fs, path):
            assert b"9 20\n" in read_file(fs, "data/t-0/leader-epoch-checkpoint")


@pytest.mark.parametrize("as_leader", [True, False], ids=["leader", "follower"])
@pytest.mark.parametrize("end", ["power", "process"])
def test_an_epoch_is_in_its_file_whenever_its_first_record_is(end: str, as_leader: bool) -> None:
    """At whatever moment of the append the machine or the process dies."""
    for moment in range(10):
        fs, _, log = filled()
        fs.faults.crash_in = moment
        with suppress(CrashedError):
            if as_leader:
                log.append_as_leader(encode_batch([Record(b"y")]), 9)
            else:
                log.append_as_follower(encode_batch([Record(b"y")], base_offset=20, leader_epoch=9))
        if end == "power":
            fs.power_loss(Random(moment).randrange)
        else:
            fs.process_crash()
        path = f"data/t-0/{log.segment_bases[-1]:020d}.log"
        if fs.exists(path) and b"y" in read_file(fs, path):
            assert b"9 20\n" in read_file(fs, "data/t-0/leader-epoch-checkpoint")


@pytest.mark.parametrize(
    "act",
    [
        lambda directory, log: log.assign_epoch(8, 20),
        lambda directory, log: directory.checkpoint({KEY: 19}),
        lambda directory, log: log.advance_log_start(13),
        lambda directory, log: directory.shut_down({KEY: 20}, 3),
    ],
)
def test_calls_that_do_not_write_records_lose_none(
    act: Callable[[LogDirectory, PartitionLog], object],
) -> None:
    """Epochs, checkpoints, retention and a clean stop keep every record that was synced."""
    for seed in SEEDS:
        fs, directory, log = filled()
        act(directory, log)
        again = after_power_loss(fs, seed)
        assert again.log_end == 20
        assert [h.base_offset for h in again.headers()][-1] == 19


def test_segments_that_retention_removes_have_no_durable_name() -> None:
    """The next manifest no longer lists them, whenever the power fails."""
    fs, _, log = filled()
    kept = log.advance_log_start(11) and log.segment_bases
    assert kept
    fs.power_loss(lambda _: 0)
    logs = sorted(name for name in fs.listdir("data/t-0") if name.endswith(".log"))
    assert logs == [f"{base:020d}.log" for base in kept]


@pytest.mark.parametrize("cuts", [True, False], ids=["a cut", "a roll"])
def test_no_index_is_vouched_for_that_changes(cuts: bool) -> None:
    """A log continues after a clean stop, its last segment gets other indexes, and the process dies."""
    fs = SimFs()
    config = replace(CONFIG, index_interval_bytes=0, flush_on_roll=False)
    directory = LogDirectory.open(fs, "data", config)
    for _ in range(3):
        directory.log(*KEY).append_as_leader(encode_batch([Record(b"x" * 40)]), 0)
    directory.shut_down({})
    log = LogDirectory.open(fs, "data", config).logs[KEY]
    while log.log_end < 4 if cuts else len(log.segment_bases) < 2:
        log.append_as_leader(encode_batch([Record(b"x" * 40)]), 0)
    if cuts:
        log.truncate_to(3)
    fs.process_crash()
    assert LogDirectory.open(fs, "data", config).notes == []
