"""Files that differ from what was written: detected, refused or repaired, never silently accepted."""

from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
from store_support import (
    CONFIG,
    EPOCHS,
    FOLDER,
    KEY,
    LARGE,
    LAZY,
    contents,
    edit,
    flip,
    names,
    reopened,
    stopped,
)

from replog.sim.disks.disk import CrashedError, SimFs
from replog.store.checkpoints.checkpoint import EPOCH_FILE
from replog.store.checkpoints.manifest import MANIFEST_FILE
from replog.store.checkpoints.registry import REGISTRY_FILE
from replog.store.directory import LogDirectory
from replog.store.files.errors import CorruptBatchError, DamagedLogError, StoreError
from replog.store.files.fs import read_file, replace_file
from replog.store.partition import PartitionLog
from replog.store.segments.batch import CRC_START, BatchHeader, iterate_headers
from replog.store.segments.epochs import EpochCache
from replog.store.segments.records import Record, decode_batch, encode_batch
from replog.store.segments.segment import Segment

LOG = f"{FOLDER}/{0:020d}.log"
both_stops = pytest.mark.parametrize("clean", [True, False], ids=["clean", "dirty"])


def batches(fs: SimFs, path: str = LOG) -> list[tuple[int, BatchHeader]]:
    return list(iterate_headers(read_file(fs, path)))


def read_from(fs: SimFs, offset: int) -> bytes:
    """Read at an offset after a start; raises the error of the start or the read."""
    fs.process_crash()
    return reopened(fs, LARGE).log(*KEY).read(offset, 1000)


@both_stops
@pytest.mark.parametrize("saved", [True, False], ids=["checkpointed", "flushed only"])
def test_a_flipped_bit_in_synced_records_never_cuts_them(clean: bool, saved: bool) -> None:
    """For any bit of the active segment: no byte of the folder changes, and it cannot be read."""
    for seed in range(60):
        fs = stopped(clean, saved, LARGE, synced=True)
        random = Random(seed)
        at = random.randrange(len(read_file(fs, LOG)))
        flip(fs, LOG, at, random.randrange(8))
        before = contents(fs)
        position = max(p for p, _ in batches(stopped(config=LARGE)) if p <= at)
        offset = dict(batches(stopped(config=LARGE)))[position].base_offset
        with pytest.raises((DamagedLogError, CorruptBatchError), match="repair"):
            read_from(fs, offset)
        assert contents(fs) == before


def test_a_dirty_start_refuses_what_a_clean_one_leaves_for_the_first_read() -> None:
    """A start after a crash compares the last segment at once; the partition is listed as damaged."""
    fs = stopped(config=LARGE, synced=True)
    flip(fs, LOG, 500)
    directory = reopened(fs, LARGE)
    assert "damaged at byte" in directory.damaged[KEY]
    assert directory.logs == {}
    with pytest.raises(DamagedLogError, match="stays closed"):
        directory.log(*KEY)
    assert directory.log("other", 0).log_end == 0, "the rest of the directory works"


def test_a_directory_with_a_closed_partition_does_not_count_as_stopped_cleanly() -> None:
    """A clean start would not recheck damage found before; the facts about the partition are kept."""
    fs = stopped(config=LARGE, synced=True)
    flip(fs, LOG, 500)
    known = read_file(fs, f"data/{REGISTRY_FILE}")
    reopened(fs, LARGE).shut_down({}, 5)
    again = reopened(fs, LARGE)
    assert (again.was_clean, list(again.damaged), again.high_watermarks) == (False, [KEY], {KEY: 50})
    assert b"partition t-0 0 60" in read_file(fs, f"data/{REGISTRY_FILE}")
    assert b"partition t-0 0 60" in known


@both_stops
@pytest.mark.parametrize("bit", range(8))
def test_a_wrong_last_offset_delta_is_corrupt_and_no_empty_read(clean: bool, bit: int) -> None:
    """For the last batch: a read at its offsets raises, before and after the damage is known."""
    fs = stopped(clean, config=LARGE, synced=True)
    position, header = batches(fs)[-1]
    flip(fs, LOG, position + 26, bit)
    for offset in range(header.base_offset, 60):
        with pytest.raises((DamagedLogError, CorruptBatchError)):
            read_from(fs, offset)


@pytest.mark.parametrize("bit", range(8))
@pytest.mark.parametrize("number", [0, 7, 29])
def test_a_delta_that_changes_under_an_open_log_never_reads_as_nothing(bit: int, number: int) -> None:
    """A read below the log end returns records or raises, whatever the file contains by then."""
    fs = stopped(config=LARGE)
    log = reopened(fs, LARGE).logs[KEY]
    position, _ = batches(fs)[number]
    file = fs.open(LOG)
    content = bytearray(file.pread(1, position + 26))
    content[0] ^= 1 << bit
    file.pwrite(content, position + 26)
    for offset in range(2 * number, 60):
        for end in (None, 60, offset + 1):
            try:
                data = log.read(offset, 1000, end)
            except CorruptBatchError:
                continue
            assert data or end == offset + 1 != 60


@both_stops
@pytest.mark.parametrize(
    "text", [b"0\n3\n0 0\n1 30\n2 40\n", b"0\n3\n0 0\n1 20\n3 40\n", b"0\n2\n0 0\n2 40\n"]
)
def test_a_wrong_epoch_checkpoint_is_noticed_and_rebuilt(clean: bool, text: bytes) -> None:
    """At a clean start too, which reads no batch; the old content is kept, and a note reports it."""
    fs = stopped(clean)
    replace_file(fs, FOLDER, EPOCH_FILE, text)
    directory = reopened(fs)
    assert directory.logs[KEY].epochs == EPOCHS
    assert any("the leader epochs do not fit the log" in note for note in directory.notes)
    assert read_file(fs, f"{FOLDER}/{EPOCH_FILE}") == b"0\n3\n0 0\n1 20\n2 40\n"
    assert read_file(fs, f"{FOLDER}/{EPOCH_FILE}.quarantine1") == text


@both_stops
@pytest.mark.parametrize("config", [CONFIG, LARGE], ids=["segments", "one segment"])
def test_a_changed_leader_epoch_of_a_batch_is_noticed(clean: bool, config: object) -> None:
    """No CRC of a batch covers it, its chain does: never served, and the epoch checkpoint stays as it was."""
    for number in (-1, 0):
        for bit in range(0, 32, 5):
            fs = stopped(clean, config=config, synced=True)  # type: ignore[arg-type]
            path = names(fs, ".log")[number]
            position, header = batches(fs, path)[number]
            flip(fs, path, position + 15 - bit // 8, bit % 8)
            epochs = read_file(fs, f"{FOLDER}/{EPOCH_FILE}")
            with pytest.raises(
                (DamagedLogError, CorruptBatchError), match=r"is not the one written|not those"
            ):
                read_from(fs, header.base_offset)
            assert read_file(fs, f"{FOLDER}/{EPOCH_FILE}") == epochs


@both_stops
def test_a_changed_base_offset_is_noticed(clean: bool) -> None:
    """Zeroed or flipped: the records of another offset are never served at this one."""
    for number in (1, 29):
        for data in (bytes(8), (4).to_bytes(8, "big")):
            fs = stopped(clean, config=LARGE, synced=True)
            position, header = batches(fs)[number]
            edit(fs, LOG, lambda content, p=position, d=data: content.__setitem__(slice(p, p + 8), d))
            for offset in (header.base_offset, 0, 59):
                with pytest.raises((DamagedLogError, CorruptBatchError)):
                    read_from(fs, offset)


@both_stops
def test_a_flipped_bit_of_an_index_is_noticed_and_the_index_rebuilt(clean: bool) -> None:
    """Any bit of any index of a sealed segment: all offsets are read, and the file is right again."""
    for suffix in (".index", ".timeindex"):
        right = contents(stopped(clean))
        path = names(stopped(clean), suffix)[0]
        for at in range(len(right[path])):
            fs = stopped(clean)
            flip(fs, path, at, at % 8)
            directory = reopened(fs)
            log = directory.logs[KEY]
            assert [h.base_offset for h in log.headers()] == list(range(0, 60, 2))
            assert read_file(fs, path) == right[path]
            assert any("its checksum is wrong" in note for note in directory.notes)


@both_stops
def test_the_file_of_another_partition_is_not_taken(clean: bool) -> None:
    """Same size, same offsets, right CRCs and epochs: only the chain shows that it is not this log's."""
    fs = SimFs()
    directory = LogDirectory.open(fs, "data", CONFIG)
    for number in (0, 1):
        log = directory.log("t", number)
        for i in range(30):
            log.append_as_leader(encode_batch([Record(b"%d of %d" % (i, number))]), 0)
        log.flush()
    if clean:
        directory.shut_down({})
    fs.process_crash()
    for path in names(fs, ".log"):
        replace_file(fs, FOLDER, path.rpartition("/")[2], read_file(fs, path.replace("t-0", "t-1")))
    again = reopened(fs)
    for offset in range(30):
        with pytest.raises((DamagedLogError, CorruptBatchError)):
            again.log("t", 0).read(offset, 100)
        (record, *_) = decode_batch(again.log("t", 1).read(offset, 1))
        assert record.value == b"%d of 1" % offset


def test_folders_that_changed_places_are_refused() -> None:
    """The manifest names its partition."""
    fs = stopped(clean=True)
    for path, content in contents(fs).items():
        directory = "data/t-1"
        fs.mkdir(directory)
        replace_file(fs, directory, path.rpartition("/")[2], content)
    assert "belongs to t-0" in reopened(fs).damaged["t", 1]


@both_stops
@pytest.mark.parametrize("name", [MANIFEST_FILE, "folder"])
def test_a_partition_without_its_manifest_is_refused(clean: bool, name: str) -> None:
    """Without it the required contents are unknown: neither an empty log nor the unchanged files are used."""
    fs = stopped(clean)
    for path in [f"{FOLDER}/{name}"] if name != "folder" else names(fs, ""):
        fs.unlink(path)
    if name == "folder":
        fs.rmdir(FOLDER)
    assert "missing" in reopened(fs).damaged[KEY]


@both_stops
@pytest.mark.parametrize("at", [0, 5, 30, -3])
def test_a_damaged_manifest_is_refused(clean: bool, at: int) -> None:
    """Its first part has its own checksum."""
    fs = stopped(clean)
    flip(fs, f"{FOLDER}/{MANIFEST_FILE}", at)
    before = contents(fs)
    assert "checksum" in reopened(fs).damaged[KEY]
    assert contents(fs) == before


@pytest.mark.parametrize("cut", [PartitionLog.truncate_to, PartitionLog.reset])
def test_an_older_copy_of_a_manifest_is_refused_if_records_were_cut_since(
    cut: Callable[[PartitionLog, int], object],
) -> None:
    """It would vouch for the contents before the cut."""
    fs = stopped(synced=True)
    old = read_file(fs, f"{FOLDER}/{MANIFEST_FILE}")
    directory = reopened(fs)
    cut(directory.logs[KEY], 30)
    directory.logs[KEY].append_as_leader(encode_batch([Record(b"other")]), 9)
    directory.shut_down({})
    replace_file(fs, FOLDER, MANIFEST_FILE, old)
    assert "is an old copy" in reopened(fs).damaged[KEY]


def test_an_older_copy_of_a_manifest_is_refused_if_more_was_checkpointed() -> None:
    """The directory records the synced offset of the log."""
    fs = stopped(config=LARGE, synced=True)
    old = read_file(fs, f"{FOLDER}/{MANIFEST_FILE}")
    directory = reopened(fs, LARGE)
    directory.logs[KEY].append_as_leader(encode_batch([Record(b"more")]), 9)
    directory.shut_down({})
    replace_file(fs, FOLDER, MANIFEST_FILE, old)
    assert "is an old copy" in reopened(fs, LARGE).damaged[KEY]


def test_what_a_clean_stop_did_not_leave_is_no_part_of_the_log() -> None:
    """A segment, or bytes, added since: moved aside or cut, not read as a tail."""
    fs = stopped(clean=True)
    last = names(fs, ".log")[-1]
    batch = encode_batch([Record(b"from elsewhere")], base_offset=60, leader_epoch=2)
    edit(fs, last, lambda content: content.extend(batch))
    replace_file(fs, FOLDER, f"{60:020d}.log", batch)
    log = reopened(fs).logs[KEY]
    assert log.log_end == 60
    kept = [content for path, content in contents(fs).items() if ".quarantine" in path]
    assert kept == [batch, batch]


def test_every_byte_that_a_start_cuts_is_kept() -> None:
    """Also if nothing was synced: the tail is cut at the damage, and is in a file beside the log."""
    fs = stopped(config=LAZY)
    second = names(fs, ".log")[1]
    flip(fs, second, 200)
    tail = read_file(fs, second)[batches(fs, names(fs, ".log")[0])[2][0] :]
    reopened(fs, LAZY)
    assert any(path.startswith(second) and content in tail for path, content in contents(fs).items())


def test_the_epochs_of_an_unsynced_tail_are_compared_with_the_manifest() -> None:
    """A batch in an epoch without an entry is not valid: epochs are durable before their records."""
    fs = stopped(config=LAZY)
    path = names(fs, ".log")[1]
    position, header = batches(fs, path)[3]
    flip(fs, path, position + 15, 2)
    log = reopened(fs, LAZY).logs[KEY]
    assert log.log_end == header.base_offset
    cache = EpochCache(EPOCHS)
    cache.truncate_from_end(log.log_end)
    assert list(log.epochs) == cache.entries


def test_checkpoints_that_nobody_wrote_are_not_believed() -> None:
    """A changed digit of the high watermarks, a marker that reappears: reported, and moved aside."""
    fs = stopped(clean=True)
    marker = read_file(fs, "data/.kafka_cleanshutdown")
    edit(fs, "data/replication-offset-checkpoint", lambda content: content.__setitem__(-2, ord("9")))
    first = reopened(fs)
    assert (first.was_clean, first.high_watermarks) == (True, {})
    assert any("replication-offset-checkpoint" in note for note in first.notes)
    fs.process_crash()
    replace_file(fs, "data", ".kafka_cleanshutdown", marker)
    second = reopened(fs)
    assert (second.was_clean, second.broker_epoch) == (False, None)


def test_nothing_is_written_to_a_segment_that_was_not_compared() -> None:
    """A damaged active segment is found by the first append after a clean start, with a storage error."""
    fs = stopped(clean=True, config=LARGE)
    flip(fs, LOG, 700)
    log = reopened(fs, LARGE).logs[KEY]
    before = read_file(fs, LOG)
    for _ in range(2):
        with pytest.raises(DamagedLogError):
            log.append_as_leader(encode_batch([Record(b"v")]), 5)
        with pytest.raises(StoreError):
            log.truncate_to(10)
    assert (read_file(fs, LOG), log.log_end) == (before, 60)


def test_a_flipped_payload_bit_is_below_the_chain_and_above_the_crc() -> None:
    """Headers are read for the chain; the CRC of a batch covers the rest: one of both detects every bit."""
    fs = stopped(clean=True, config=LARGE)
    for at in (CRC_START - 1, CRC_START, CRC_START + 60):
        twin = SimFs()
        twin.restore(fs.snapshot())
        twin.process_crash()
        flip(twin, LOG, at)
        with pytest.raises(CorruptBatchError):
            read_from(twin, 0)


def dies(_: Segment) -> None:
    raise CrashedError


@pytest.mark.parametrize(
    ("suffix", "at"), [(".log", 0), (".log", 14), (".log", 20), (".timeindex", 0), (".index", 0)]
)
def test_what_is_not_the_dropped_file_is_not_removed(
    monkeypatch: pytest.MonkeyPatch, suffix: str, at: int
) -> None:
    """A start removes dropped segments that a crash left: by size and chain, and only real index files."""
    fs = stopped()
    log = reopened(fs).logs[KEY]
    with monkeypatch.context() as patches, suppress(CrashedError):
        patches.setattr(Segment, "delete", dies)
        log.advance_log_start(45)
    fs.process_crash()
    content = bytearray(read_file(fs, LOG))
    content[at] ^= 1
    name = f"{0:020d}{suffix}"
    replace_file(fs, FOLDER, name, content)
    log = reopened(fs).logs[KEY]
    assert log.log_start == 45
    assert read_file(fs, f"{FOLDER}/{name}.quarantine1") == content
