"""Opening a folder after a crash, a fault or an intrusion."""

from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_support import EPOCHS, KEY, LAZY, edit, names, reopened, stopped

from replog.core.log.epochs import EpochCache
from replog.sim.disks.disk import SimFile, SimFs
from replog.store.checkpoints.checkpoint import LOG_START_FILE, RECOVERY_POINT_FILE, read_offsets
from replog.store.directory import LogDirectory
from replog.store.files.errors import DamagedLogError, ForeignVersionError, StoreError
from replog.store.files.fs import read_file, replace_file
from replog.store.segments.records import Record, encode_batch


def batch_count(directory: LogDirectory) -> int:
    return sum(1 for _ in directory.logs[KEY].headers())


def test_a_clean_stop_is_believed_and_scans_nothing() -> None:
    """The marker skips recovery, gives the broker epoch, and is removed once the directory is open."""
    fs = stopped(clean=True)
    directory = reopened(fs)
    log = directory.logs[KEY]
    assert (directory.was_clean, directory.broker_epoch, directory.notes) == (True, 4, [])
    assert (log.log_end, log.recovery.scanned_bytes, log.epochs) == (60, 0, EPOCHS)
    assert directory.high_watermarks == {KEY: 50}
    assert ".kafka_cleanshutdown" not in fs.listdir("data")


def test_the_marker_is_removed_durably_before_anything_is_written() -> None:
    """A power loss right after a start is an unclean stop."""
    for seed in range(20):
        fs = stopped(clean=True)
        reopened(fs)
        fs.power_loss(Random(seed).randrange)
        assert not reopened(fs).was_clean


def test_the_headers_that_a_start_needs_come_from_the_pass_that_verifies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker takes the headers of all segments: 10 GB are read once, not twice."""
    log = reopened(stopped(clean=True)).logs[KEY]
    read: list[bytes] = []
    pread = SimFile.pread

    def counted(file: SimFile, size: int, offset: int) -> bytes:
        read.append(pread(file, size, offset))
        return read[-1]

    monkeypatch.setattr(SimFile, "pread", counted)
    headers = list(log.headers())
    assert [h.base_offset for h in headers] == list(range(0, 60, 2))
    assert sum(map(len, read)) == sum(h.size_bytes for h in headers)
    assert list(log.headers(7)) == headers[3:], "and later without it"
    assert list(reopened(stopped(clean=True)).logs[KEY].headers(7)) == headers[3:]


@pytest.mark.parametrize("broker_epoch", [0, 7])
def test_a_marker_that_was_removed_does_not_come_back(broker_epoch: int) -> None:
    """After a power loss it would be an unvouched file, and cause a false note."""
    fs = stopped()
    reopened(fs).shut_down({}, broker_epoch)
    assert reopened(fs).broker_epoch == broker_epoch
    fs.power_loss(lambda _: 0)
    again = reopened(fs)
    assert (again.was_clean, again.notes) == (False, [])


def test_an_unclean_stop_scans_the_last_segment_and_what_was_not_synced() -> None:
    """Synced segments are not read before they are used, whether or not a checkpoint mentions them."""
    saved = reopened(stopped()).logs[KEY].recovery
    unsaved = reopened(stopped(saved=False)).logs[KEY].recovery
    lazy = reopened(stopped(config=LAZY)).logs[KEY].recovery
    assert 0 < saved.scanned_bytes == unsaved.scanned_bytes < 1000 < lazy.scanned_bytes
    assert saved.cut_bytes == unsaved.cut_bytes == lazy.cut_bytes == 0


@given(st.integers(1, 400))
@settings(max_examples=40)
def test_a_torn_tail_is_cut_at_the_last_whole_batch(lost: int) -> None:
    """Losing the last bytes of the last segment loses only the batches they belong to."""
    fs = stopped()
    last = names(fs, ".log")[-1]
    size = len(read_file(fs, last))
    lost = min(lost, size)
    edit(fs, last, lambda content: content.__delitem__(slice(size - lost, None)))
    directory = reopened(fs)
    log = directory.logs[KEY]
    whole = [h for h in reopened(stopped()).logs[KEY].headers() if h.base_offset >= log.segment_bases[-1]]
    kept = sum(1 for i in range(len(whole)) if sum(h.size_bytes for h in whole[: i + 1]) <= size - lost)
    assert log.log_end == (whole[kept - 1].next_offset if kept else log.segment_bases[-1])
    assert log.epochs == tuple(e for e in EPOCHS if e[1] < log.log_end)
    end = log.log_end
    log.append_as_leader(encode_batch([Record(b"after the cut")]), 9)
    fs.process_crash()
    again = reopened(fs).logs[KEY]
    assert (again.log_end, again.recovery.cut_bytes) == (end + 1, 0)


def test_a_bad_crc_cuts_there_and_puts_later_segments_aside() -> None:
    """If nothing was synced the log ends before the damaged batch, and every later byte is kept."""
    fs = stopped(config=LAZY)
    second = names(fs, ".log")[1]
    edit(fs, second, lambda content: content.__setitem__(40, content[40] ^ 1))
    content = [read_file(fs, path) for path in names(fs, ".log")[1:]]
    directory = reopened(fs)
    log = directory.logs[KEY]
    assert log.log_end == int(second.split("/")[-1][:20])
    assert log.recovery.dropped_segments > 0
    assert any("CRC" in note for note in directory.notes)
    kept = [read_file(fs, f"data/t-0/{name}") for name in fs.listdir("data/t-0") if ".quarantine" in name]
    assert sorted(kept) == sorted(content)
    assert log.append_as_leader(encode_batch([Record(b"v")]), 2).base_offset == log.log_end - 1


def test_a_bad_crc_in_the_tail_is_cut_away() -> None:
    """One flipped bit of the last record after the recovery point; the part before it is kept."""
    fs = stopped(config=LAZY)
    edit(fs, names(fs, ".log")[-1], lambda content: content.__setitem__(-1, content[-1] ^ 1))
    log = reopened(fs).logs[KEY]
    assert (log.log_end, log.recovery.dropped_segments) == (58, 0)
    assert log.recovery.cut_bytes > 0


def test_a_zeroed_tail_is_no_batch() -> None:
    """A length that survived without its data is cut (an all-zero header is not a header)."""
    fs = stopped(config=LAZY)
    edit(fs, names(fs, ".log")[-1], lambda content: content.extend(bytes(300)))
    log = reopened(fs).logs[KEY]
    assert (log.log_end, log.recovery.cut_bytes) == (60, 300)


def test_what_follows_a_cut_is_dropped_even_if_it_would_fit() -> None:
    """Garbage after the last batch of an unsynced segment ends the log there, as in Kafka."""
    fs = stopped(config=LAZY)
    paths = names(fs, ".log")
    edit(fs, paths[1], lambda content: content.extend(b"garbage"))
    log = reopened(fs).logs[KEY]
    assert log.log_end == int(paths[2].split("/")[-1][:20])
    assert log.recovery.dropped_segments == len(paths) - 2


def test_what_hangs_on_to_a_synced_segment_is_cut_off() -> None:
    """Garbage between two segments that are known to follow each other does not end the log."""
    fs = stopped()
    edit(fs, names(fs, ".log")[1], lambda content: content.extend(b"garbage"))
    directory = reopened(fs)
    assert (directory.logs[KEY].log_end, directory.logs[KEY].recovery.cut_bytes) == (60, 7)
    assert [h.base_offset for h in directory.logs[KEY].headers()] == list(range(0, 60, 2))


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("clean", [True, False])
def test_missing_and_stale_indexes_are_rebuilt(suffix: str, clean: bool) -> None:
    """Deleted, emptied, foreign or swapped index files change nothing that is read."""
    expected = reopened(stopped(clean)).logs[KEY].read(7, 700)
    damages: tuple[Callable[[SimFs, list[str]], object], ...] = (
        lambda fs, paths: [fs.unlink(path) for path in paths],
        lambda fs, paths: [edit(fs, path, bytearray.clear) for path in paths],
        lambda fs, paths: [edit(fs, path, lambda c: c.extend(b"\7" * 5)) for path in paths],
        lambda fs, paths: fs.rename(paths[0], paths[1]),
    )
    for damage in damages:
        fs = stopped(clean)
        damage(fs, names(fs, suffix))
        log = reopened(fs).logs[KEY]
        assert log.log_end == 60
        assert log.read(7, 700) == expected
        assert [h.base_offset for h in log.headers()] == list(range(0, 60, 2))


def test_a_recovery_point_that_nobody_wrote_is_noted_and_ignored() -> None:
    """A checkpoint of another content than was written promises nothing, and hides nothing."""
    fs = stopped()
    replace_file(fs, "data", "recovery-point-offset-checkpoint", b"0\n1\nt 0 9999\n")
    directory = reopened(fs)
    assert directory.logs[KEY].log_end == directory.logs[KEY].flushed == 60
    assert any(
        "recovery-point-offset-checkpoint: its content is not the one written" in n for n in directory.notes
    )


@given(st.integers(0, 2**32))
@settings(max_examples=40)
def test_the_recovery_point_promises_no_more_than_was_synced(seed: int) -> None:
    """With syncing left to the system, no checkpoint hides a lost segment from the scan after a crash."""
    fs = SimFs()
    directory = LogDirectory.open(fs, "data", LAZY)
    log = directory.log(*KEY)
    for i in range(40):
        if i == 9:
            log.flush()
        log.append_as_leader(encode_batch([Record(b"x" * 70)]), 0)
    directory.checkpoint({KEY: 5})
    assert read_offsets(fs, "data", RECOVERY_POINT_FILE) == {KEY: 9}
    fs.power_loss(Random(seed).randrange)
    again = LogDirectory.open(fs, "data", LAZY).logs[KEY]
    assert 9 <= again.log_end <= 40
    assert [header.base_offset for header in again.headers()] == list(range(again.log_end))


def test_a_cut_lowers_the_log_start_that_was_checkpointed() -> None:
    """Readers of the checkpoint afterwards read no more than the log has."""
    fs = stopped()
    directory = reopened(fs)
    directory.logs[KEY].advance_log_start(47)
    directory.checkpoint({})
    assert read_offsets(fs, "data", LOG_START_FILE) == {KEY: 47}
    directory.logs[KEY].truncate_to(30)
    assert read_offsets(fs, "data", LOG_START_FILE) == {KEY: 30}


def test_a_log_start_that_nobody_wrote_deletes_nothing() -> None:
    """The log start is in the manifest; a checkpoint with a later one is ignored, reported and kept."""
    fs = stopped()
    replace_file(fs, "data", "log-start-offset-checkpoint", b"0\n1\nt 0 100\n")
    directory = reopened(fs)
    log = directory.logs[KEY]
    assert (log.log_start, log.log_end, log.epochs) == (0, 60, EPOCHS)
    assert any("log-start-offset-checkpoint" in note for note in directory.notes)
    assert read_file(fs, "data/log-start-offset-checkpoint.quarantine1") == b"0\n1\nt 0 100\n"


@pytest.mark.parametrize(
    "content",
    [None, b"", b"0\n1\n0 0\n", b"0\n9\n", b"noise", b"0\n3\n0 0\n1 22\n2 40\n", b"0\n3\n0 0\n1 20\n2 38\n"],
)
@pytest.mark.parametrize("clean", [True, False])
def test_epochs_that_are_lost_or_wrong_are_rebuilt(content: bytes | None, clean: bool) -> None:
    """The manifest and the records have the epochs; the file is a copy."""
    fs = stopped(clean, saved=False)
    if content is None:
        fs.unlink("data/t-0/leader-epoch-checkpoint")
    else:
        replace_file(fs, "data/t-0", "leader-epoch-checkpoint", content)
    assert reopened(fs).logs[KEY].epochs == EPOCHS
    assert read_file(fs, "data/t-0/leader-epoch-checkpoint") == b"0\n3\n0 0\n1 20\n2 40\n"


def test_epochs_beyond_the_log_end_are_cut() -> None:
    """An epoch entry whose records were lost is no longer trusted."""
    fs = stopped()
    replace_file(fs, "data/t-0", "leader-epoch-checkpoint", b"0\n4\n0 0\n1 20\n2 40\n7 60\n")
    assert reopened(fs).logs[KEY].epochs == EPOCHS


def test_broken_directory_checkpoints_are_noted_and_take_their_safe_default() -> None:
    """Unreadable high watermarks are 0, an unreadable marker is none, and nothing is lost."""
    fs = stopped()
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint", ".kafka_cleanshutdown"):
        replace_file(fs, "data", name, b"0\n7\nbroken")
    directory = reopened(fs)
    assert (directory.high_watermarks, directory.was_clean) == ({}, False)
    assert len(directory.notes) == 3
    assert directory.logs[KEY].log_end == 60


@pytest.mark.parametrize(
    "path",
    ["replication-offset-checkpoint", "recovery-point-offset-checkpoint", "t-0/leader-epoch-checkpoint"],
)
def test_files_of_another_version_stop_the_opening_and_stay_as_they_are(path: str) -> None:
    """Files of newer software are neither interpreted nor overwritten."""
    fs = stopped()
    directory, _, name = f"data/{path}".rpartition("/")
    replace_file(fs, directory, name, b"1\n0\n")
    with pytest.raises(ForeignVersionError, match="version 1"):
        reopened(fs)
    assert read_file(fs, f"data/{path}") == b"1\n0\n"
    fs.unlink(f"data/{path}")
    assert reopened(fs).logs[KEY].log_end == 60


def test_a_file_that_only_looks_like_a_segment_keeps_the_partition_closed() -> None:
    """A name with the suffix of a segment but not its form may be data: it is not ignored."""
    fs = stopped()
    replace_file(fs, "data/t-0", "backup.log", b"")
    directory = reopened(fs)
    assert "backup.log" in directory.damaged[KEY]
    with pytest.raises(DamagedLogError, match=r"backup\.log"):
        directory.log(*KEY)


def test_half_written_checkpoints_go_and_strangers_stay() -> None:
    """The store removes its own remains; an index without a segment is moved aside; other names stay."""
    fs = stopped()
    ours, index = "leader-epoch-checkpoint.tmp", f"{7:020d}.index"
    others = ("x.tmp", f"{9:020d}.log.deleted", "README")
    for name in (ours, index, *others):
        replace_file(fs, "data/t-0", name, b"left")
    reopened(fs)
    left = set(fs.listdir("data/t-0"))
    assert {*others, f"{index}.quarantine1"} <= left
    assert not {ours, index} & left


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("clean", [True, False])
def test_a_synced_segment_that_is_gone_keeps_the_partition_closed(number: int, clean: bool) -> None:
    """Also the first one; the rest of the log is left unchanged."""
    fs = stopped(clean)
    paths = names(fs, ".log")
    fs.unlink(paths[number])
    left = {path: read_file(fs, path) for path in names(fs, "")}
    directory = reopened(fs)
    assert "is missing" in directory.damaged[KEY]
    assert {path: read_file(fs, path) for path in names(fs, "")} == left


def test_an_unsynced_segment_after_a_gap_is_dropped() -> None:
    """Above the recovery point a missing segment ends the log."""
    fs = stopped(config=LAZY)
    paths = names(fs, ".log")
    fs.unlink(paths[2])
    log = reopened(fs).logs[KEY]
    assert log.log_end == int(paths[2].split("/")[-1][:20])
    assert log.recovery.dropped_segments == len(paths) - 3


@given(st.integers(0, 2**32), st.integers(1, 3), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_no_damage_to_any_file_raises_anything_undocumented(
    seed: int, blows: int, clean: bool, saved: bool
) -> None:
    """Flip, cut, extend, empty or delete files: opening, reading and writing work or raise `StoreError`."""
    random = Random(seed)
    fs = stopped(clean, saved)
    files = [f"data/{n}" for n in fs.listdir("data") if not fs.is_dir(f"data/{n}")]
    files += [f"data/t-0/{n}" for n in fs.listdir("data/t-0")]
    for path in random.sample(files, min(blows, len(files))):
        blow = random.randrange(5)
        if blow == 0:
            fs.unlink(path)
        elif blow == 1:
            edit(fs, path, bytearray.clear)
        else:
            edit(fs, path, lambda content: strike(content, random))
    with suppress(StoreError):
        use(reopened(fs), random)
        fs.process_crash()
        use(reopened(fs), random)


def strike(content: bytearray, random: Random) -> None:
    at = random.randrange(len(content) + 1)
    kind = random.randrange(3)
    if kind == 0:
        del content[at:]
    elif kind == 1 or at == len(content):
        content[at:at] = random.randbytes(random.randrange(1, 40))
    else:
        content[at] ^= 1 << random.randrange(8)


def use(directory: LogDirectory, random: Random) -> None:
    log = directory.log(*KEY)
    assert log.log_start <= log.log_end
    for offset in range(log.log_start, min(log.log_end, log.log_start + 100)):
        try:
            log.read(offset, 200)
        except StoreError:
            continue
    log.append_as_leader(encode_batch([Record(b"after")]), max(log.epochs[-1].epoch if log.epochs else 0, 5))
    log.truncate_to(random.randint(log.log_start, log.log_end))
    directory.checkpoint({KEY: log.log_start})


def test_rebuilt_epochs_are_those_the_batches_carry() -> None:
    """The rebuilt file equals a cache fed with every batch in order."""
    fs = stopped()
    fs.unlink("data/t-0/leader-epoch-checkpoint")
    log = reopened(fs).logs[KEY]
    cache = EpochCache()
    for header in log.headers():
        cache.assign(header.leader_epoch, header.base_offset)
    assert list(log.epochs) == cache.entries
