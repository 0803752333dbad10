"""The manifests: their text, the accepted part of a damaged one, and the times of writing."""

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st
from store_support import CONFIG, KEY, LARGE, stopped

from replog.sim.disks.disk import CrashedError, SimFs
from replog.store.checkpoints.checkpoint import EpochEntry
from replog.store.checkpoints.manifest import (
    FLUSH_LINES,
    MANIFEST_FILE,
    Manifest,
    ManifestFile,
    Mark,
    Removal,
    parse,
    read_manifest,
    render,
)
from replog.store.checkpoints.registry import REGISTRY_FILE, Known, Registry, read_registry
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import CorruptFileError, ForeignVersionError
from replog.store.files.fs import make_directory, read_file, replace_file
from replog.store.partition import PartitionLog
from replog.store.segments.records import Record, encode_batch

numbers = st.integers(0, 2**63 - 1)
sums = st.integers(0, 2**32 - 1)
manifests = st.builds(
    Manifest,
    st.from_regex(r"[a-zA-Z0-9._-]{1,20}-[0-9]", fullmatch=True),
    numbers,
    numbers,
    st.lists(st.builds(EpochEntry, numbers, numbers), max_size=3).map(tuple),
    st.lists(
        st.builds(Mark, numbers, numbers, numbers, sums, st.none() | st.tuples(sums, sums)), min_size=1
    ).map(tuple),
    st.lists(st.builds(Removal, numbers, numbers, sums), max_size=2).map(tuple),
)
TEXT = b"""0
partition orders-0
cuts 2
start 10
epoch 0 10
epoch 4 120
segment 0 8123 150 9ae0daaf 77073096 ee0e612c
segment 150 0 150 00000000 - -
remove 3 4000 0000000a
"""
MANIFEST = Manifest(
    "orders-0",
    2,
    10,
    (EpochEntry(0, 10), EpochEntry(4, 120)),
    (Mark(0, 8123, 150, 0x9AE0DAAF, (0x77073096, 0xEE0E612C)), Mark(150, 0, 150, 0)),
    (Removal(3, 4000, 10),),
)


def saved(*wanted: Manifest) -> SimFs:
    """Save manifests one after another."""
    fs = SimFs()
    make_directory(fs, "d")
    file = ManifestFile(fs, "d")
    for manifest in wanted:
        file.save(manifest)
    return fs


def grown(size: int) -> Manifest:
    return MANIFEST.grown(Mark(150, size, 150 + size, size))


@given(manifests)
def test_manifests_survive_the_round_trip(manifest: Manifest) -> None:
    """A rendered manifest is parsed back."""
    assert parse(render(manifest)).manifest == manifest


def test_the_text_is_documented() -> None:
    """Version, partition, cuts, log start, epochs, segments, removals, checksum."""
    assert render(MANIFEST).rpartition(b"head ")[0] == TEXT


def test_a_flush_of_the_last_segment_appends_a_line() -> None:
    """No earlier line is rewritten; any other change replaces the file, and so do many flushes."""
    fs = saved(MANIFEST, grown(100), grown(200))
    content = read_file(fs, f"d/{MANIFEST_FILE}")
    assert content.startswith(render(MANIFEST))
    assert content.count(b"\nflush 150 ") == 2
    assert parse(content).manifest == grown(200)
    for other in (
        replace(grown(300), log_start=11),
        replace(grown(300), cuts=3),
        replace(grown(300), epochs=()),
    ):
        fs = saved(MANIFEST, grown(100), other)
        assert read_file(fs, f"d/{MANIFEST_FILE}") == render(other)
    fs = saved(*(grown(size) for size in range(FLUSH_LINES + 2)))
    assert read_file(fs, f"d/{MANIFEST_FILE}") == render(grown(FLUSH_LINES + 1))


@given(st.data())
def test_every_flipped_bit_of_a_manifest_is_noticed(data: st.DataObject) -> None:
    """In the first part it is an error; after it, the flushes from there on are not trusted."""
    content = bytearray(read_file(saved(MANIFEST, grown(100), grown(200)), f"d/{MANIFEST_FILE}"))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    if at < len(render(MANIFEST)):
        with pytest.raises(CorruptFileError):
            parse(bytes(content))
        return
    reading = parse(bytes(content))
    assert reading.manifest in (MANIFEST, grown(100))
    assert reading.fault or reading.is_torn


@given(st.integers(0, 300))
def test_a_flush_that_was_torn_is_as_if_it_had_not_begun(size: int) -> None:
    """The remains of the last line are not a fault, and the next save rewrites the file."""
    content = read_file(saved(MANIFEST, grown(100), grown(200)), f"d/{MANIFEST_FILE}")
    content = content[: max(len(render(MANIFEST)), len(content) - size)]
    reading = parse(content)
    assert reading.fault == ""
    assert reading.manifest in (MANIFEST, grown(100), grown(200))
    fs = saved(MANIFEST)
    replace_file(fs, "d", MANIFEST_FILE, content)
    ManifestFile(fs, "d", read_manifest(fs, "d")).save(grown(300))
    assert parse(read_file(fs, f"d/{MANIFEST_FILE}")).manifest == grown(300)


def test_another_version_is_named_only_if_its_checksum_is_right() -> None:
    """A flipped digit is damage; an intact file was written by newer software."""
    newer = b"1" + TEXT[1:]
    with pytest.raises(ForeignVersionError, match="version 1"):
        parse(newer + b"head %08x\n" % crc32c(newer))
    with pytest.raises(CorruptFileError, match="checksum"):
        parse(b"1" + render(MANIFEST)[1:])


@pytest.mark.parametrize("config", [CONFIG, LARGE, LogConfig(segment_bytes=700, flush_messages=1)])
def test_a_manifest_never_lists_more_than_is_synced(config: LogConfig) -> None:
    """At whatever change of the disk the power fails, every listed byte is there."""
    for moment in range(0, 400, 3):
        fs = SimFs()
        fs.faults.crash_in = moment
        with suppress(CrashedError):
            log = LogDirectory.open(fs, "data", config).log(*KEY)
            work(log)
        fs.power_loss(Random(moment).randrange)
        path = f"data/t-0/{MANIFEST_FILE}"
        for mark in parse(read_file(fs, path)).manifest.marks if fs.exists(path) else ():
            if mark.size:
                segment = f"data/t-0/{mark.base_offset:020d}.log"
                assert len(read_file(fs, segment)) >= mark.size
        assert LogDirectory.open(fs, "data", config).damaged == {}


def work(log: PartitionLog) -> None:
    """Perform operations that change the manifest, repeatedly."""
    for i in range(40):
        log.append_as_leader(encode_batch([Record(b"%d" % i), Record(b"x" * 90)]), i // 7)
        if i % 3 == 0:
            log.flush()
        if i % 11 == 5:
            log.truncate_to(log.log_end - 7)
        if i % 13 == 6:
            log.advance_log_start(min(log.log_start + 5, log.log_end))
        if i % 23 == 22:
            log.reset(log.log_end + 3)


def test_a_segment_that_was_dropped_is_removed_by_the_next_start() -> None:
    """A crash between the manifest and the removal leaves the file; only one of that size is removed."""
    for moment in range(8):
        fs = stopped()
        directory = LogDirectory.open(fs, "data", CONFIG)
        fs.faults.crash_in = moment
        with suppress(CrashedError):
            directory.logs[KEY].advance_log_start(45)
        fs.process_crash()
        again = LogDirectory.open(fs, "data", CONFIG).logs[KEY]
        files = {int(name[:20]) for name in fs.listdir("data/t-0") if name.endswith(".log")}
        assert files == set(again.segment_bases)
        assert again.log_start in (0, 45)
        assert not [name for name in fs.listdir("data/t-0") if ".quarantine" in name]


def test_a_segment_with_the_name_of_a_dropped_one_stays() -> None:
    """After a reset the same batches have the same files again; a later cut does not list them as dropped."""
    fs = stopped(synced=True)
    log = LogDirectory.open(fs, "data", CONFIG).logs[KEY]
    batches = [log.read(header.base_offset, 1) for header in log.headers()]
    log.reset(0)
    for batch in batches:
        log.append_as_follower(batch)
    log.flush()
    log.truncate_to(58)
    fs.process_crash()
    again = LogDirectory.open(fs, "data", CONFIG)
    assert (again.damaged, again.logs[KEY].log_end) == ({}, 58)
    assert [again.logs[KEY].read(offset, 1) for offset in range(0, 58, 2)] == batches[:-1]


def test_the_registry_survives_the_round_trip() -> None:
    """Partitions with their cuts and recovery points; checksums of this content and the one before."""
    fs = SimFs()
    make_directory(fs, "d")
    registry = Registry({("a-b", 3): Known(2, 41), ("a", 0): Known()})
    registry.expect("x", b"old")
    registry.expect("x", b"new")
    registry.save(fs, "d")
    again = read_registry(fs, "d")
    assert again is not None
    assert again.partitions == registry.partitions
    assert not again.vouches_for("x", b"other")
    assert not again.vouches_for("y", b"new")
    assert again.vouches_for("x", b"old")
    assert not again.vouches_for("x", b"new"), "what it holds is known now"


@given(st.data())
def test_every_flipped_bit_of_the_registry_is_noticed(data: st.DataObject) -> None:
    """It has its own checksum."""
    fs = stopped()
    content = bytearray(read_file(fs, f"data/{REGISTRY_FILE}"))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    replace_file(fs, "data", REGISTRY_FILE, bytes(content))
    with pytest.raises(CorruptFileError):
        read_registry(fs, "data")


NAMES = ["0", "partition", "a-0", "cuts", "start", "epoch", "segment", "remove", "file", "-", "x"]
WORDS = st.sampled_from(NAMES)
LINES = st.lists(st.lists(WORDS | st.text(max_size=3), max_size=7).map(" ".join), max_size=7)


@given(LINES, st.text(max_size=20))
@example([], "")
@example(["0", "partition a-0 1 2 3"], "")
@example(["0", "partition a-0", "cuts 0", "start 0", "segment 0 0 0 00000000"], "flush x x x x")
def test_a_right_checksum_makes_no_noise_readable(lines: list[str], flush: str) -> None:
    """Other software may have written it: a documented error, and nothing else."""
    body = "".join(f"{line}\n" for line in lines).encode()
    checksum = crc32c(body)
    fs = SimFs()
    make_directory(fs, "d")
    replace_file(fs, "d", REGISTRY_FILE, body + b"head %08x\n" % checksum)
    with suppress(CorruptFileError):
        read_registry(fs, "d")
    tail = flush.encode()
    with suppress(CorruptFileError):
        parse(body + b"head %08x\n%b %08x\n" % (checksum, tail, crc32c(tail, checksum)))


def test_a_registry_of_nothing_is_moved_aside() -> None:
    """The checksum of nothing is 0, and is correct."""
    fs = SimFs()
    make_directory(fs, "data")
    replace_file(fs, "data", REGISTRY_FILE, b"head 00000000\n")
    directory = LogDirectory.open(fs, "data")
    assert "is not a version: ignored, and kept as" in directory.notes[0]
    directory.abandon()
