"""The operations of a log without faults, and its refusals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replog.sim.disks.disk import SimFs
from replog.store.files.config import LogConfig
from replog.store.files.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidRecordError,
    OffsetOutOfRangeError,
)
from replog.store.files.findings import OpenPoint
from replog.store.files.fs import read_file
from replog.store.partition import PartitionLog
from replog.store.segments.batch import BatchHeader, iterate_headers
from replog.store.segments.index import OffsetIndex, TimeIndex
from replog.store.segments.records import Record, decode_batch, encode_batch

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200)


def batch(*values: bytes, time: int = 0) -> bytes:
    return encode_batch([Record(value, timestamp=time) for value in values])


def filled(count: int, config: LogConfig = SMALL, fs: SimFs | None = None) -> PartitionLog:
    """Create a log of `count` batches of two records, batch i in epoch i // 10 at time 100 * i."""
    log = PartitionLog.open(fs or SimFs(), "t-0", config)
    for i in range(count):
        log.append_as_leader(batch(b"%d" % i, b"x" * 20, time=100 * i), i // 10)
    return log


def bases(data: bytes) -> list[int]:
    return [header.base_offset for _, header in iterate_headers(data)]


def test_a_leader_stamps_offsets_and_epochs() -> None:
    """Batches get consecutive base offsets, their epoch, and keep their bytes otherwise."""
    log = PartitionLog.open(SimFs(), "t-0")
    first = log.append_as_leader(batch(b"a", b"b"), 3)
    second = log.append_as_leader(batch(b"c"), 5)
    assert (first.base_offset, second.base_offset, log.log_end) == (0, 2, 3)
    assert log.epochs == ((3, 0), (5, 2))
    stored = log.read(2, 1000)
    assert (stored[:8], stored[12:16]) == ((2).to_bytes(8, "big"), (5).to_bytes(4, "big"))
    assert stored[16:] == batch(b"c")[16:]


def test_a_reply_in_which_epochs_fall_is_refused_as_a_whole() -> None:
    """The first of its batches would do; half a reply in the log would be an end that no leader has."""
    sent = bytearray(filled(2).read(0, 1000))
    (_, first), (second, _) = iterate_headers(sent)
    sent[12:16], sent[second + 12 : second + 16] = (5).to_bytes(4, "big"), (3).to_bytes(4, "big")
    follower = PartitionLog.open(SimFs(), "t-0", SMALL)
    with pytest.raises(InvalidRecordError, match="epoch 3 follows epoch 5"):
        follower.append_as_follower(sent)
    assert (follower.log_end, follower.epochs, first.next_offset) == (0, (), 2)


def test_a_follower_stores_what_it_was_sent_byte_for_byte() -> None:
    """Copying a log by reading and appending gives equal bytes, epochs and end."""
    leader, follower = filled(30), PartitionLog.open(SimFs(), "t-0", SMALL)
    while follower.log_end < leader.log_end:
        before = follower.log_end
        follower.append_as_follower(leader.read(follower.log_end, 700))
        assert follower.log_end > before
    assert follower.epochs == leader.epochs
    assert list(follower.headers()) == list(leader.headers())
    assert follower.read(0, 10_000) == leader.read(0, 10_000)


@given(st.integers(0, 59), st.integers(1, 900), st.integers(0, 60))
def test_reads_return_whole_batches_inside_their_bounds(offset: int, max_bytes: int, end: int) -> None:
    """From the batch holding the offset, within the bytes unless one batch exceeds them, below the end."""
    log = filled(30)
    data = log.read(offset, max_bytes, end)
    headers = [header for _, header in iterate_headers(data)]
    if not headers:
        assert offset >= end or (offset | 1) >= end
        return
    assert headers[0].base_offset <= offset <= headers[0].last_offset
    assert all(header.last_offset < end for header in headers)
    assert [a.next_offset for a in headers[:-1]] == [b.base_offset for b in headers[1:]]
    assert len(data) <= max_bytes or len(headers) == 1


def test_reading_on_from_where_the_last_read_ended_sees_every_record_once() -> None:
    """A consumer that follows the batches it gets reads the whole log across segments."""
    log = filled(40)
    seen, offset = [], 0
    while data := log.read(offset, 333):
        seen += bases(data)
        offset = [header.next_offset for _, header in iterate_headers(data)][-1]
    assert seen == list(range(0, 80, 2))
    assert len(log.segment_bases) > 3


@pytest.mark.parametrize("offset", [-1, 61, 10**12])
def test_offsets_outside_the_log_are_out_of_range(offset: int) -> None:
    """Below the start and beyond the end is error 1; the end itself is an empty read."""
    log = filled(30)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(offset, 100)
    assert log.read(60, 100) == b""


def test_bad_batches_are_refused_each_with_its_error_and_change_nothing() -> None:
    """Wrong bytes, too many of them, violated rules; after each the log is unchanged."""
    log = filled(3)
    good = batch(b"v")
    bad = bytearray(good)
    bad[-1] ^= 1
    for data, error in (
        (bytes(bad), CorruptBatchError),
        (good[:30], CorruptBatchError),
        (b"", CorruptBatchError),
        (batch(b"v" * 1000), BatchTooLargeError),
        (good + good, InvalidRecordError),
    ):
        with pytest.raises(error):
            log.append_as_leader(data, 0)
    with pytest.raises(InvalidRecordError, match="older"):
        log.append_as_leader(good, -1)
    assert (log.log_end, log.epochs) == (6, ((0, 0),))
    assert log.append_as_leader(good, 0).base_offset == 6


def test_a_follower_refuses_holes_overlaps_and_falling_epochs() -> None:
    """Nothing of a fetch is written unless all of it follows the log."""
    leader = filled(30)
    log = PartitionLog.open(SimFs(), "t-0", SMALL)
    first, second = leader.read(0, 1), leader.read(2, 1)
    for data in (second, first + first, first + leader.read(4, 1), leader.read(40, 1)):
        with pytest.raises(InvalidRecordError):
            log.append_as_follower(data)
    torn = bytearray(first + second)
    torn[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        log.append_as_follower(torn)
    assert log.log_end == 0
    late = bytearray(second)
    late[12:16] = (9).to_bytes(4, "big")
    log.append_as_follower(first + bytes(late))
    with pytest.raises(InvalidRecordError, match="older"):
        log.append_as_follower(leader.read(4, 1))


def test_truncation_drops_records_and_epochs_from_there() -> None:
    """The log ends at the batch boundary at or below the offset; epochs that start there are removed."""
    log = filled(30)
    assert log.truncate_to(40) == 40
    assert log.epochs == ((0, 0), (1, 20))
    assert log.truncate_to(39) == 38, "the batch that holds 39 goes whole"
    assert log.append_as_leader(batch(b"new"), 7).base_offset == 38
    assert log.epochs == ((0, 0), (1, 20), (7, 38))
    assert log.segment_bases[-1] <= 38


@given(st.integers(1, 11), st.lists(st.integers(1, 4), min_size=3, max_size=9))
def test_after_a_truncation_the_index_leads_to_the_new_batches(offset: int, sizes: list[int]) -> None:
    """New batches in place of the old ones are found at every offset."""
    log = filled(6, LogConfig(index_interval_bytes=60))
    end = log.truncate_to(offset)
    starts = list(range(0, end, 2))
    for size in sizes:
        starts.append(log.log_end)
        log.append_as_leader(batch(*[b"new" * size] * size, time=1000 + log.log_end), 5)
    for wanted in reversed(range(log.log_end)):
        assert bases(log.read(wanted, 1)) == [max(base for base in starts if base <= wanted)]


@pytest.mark.parametrize("offset", [2, 16, 30])
def test_a_truncation_leaves_no_file_of_a_later_segment(offset: int) -> None:
    """A clean stop after it, which is trusted without a scan, ends at the cut."""
    fs = SimFs()
    log = filled(30, fs=fs)
    log.truncate_to(offset)
    files = [int(name[:20]) for name in fs.listdir("t-0") if name.endswith(".log")]
    assert tuple(sorted(files)) == log.segment_bases
    assert files
    assert max(files) <= offset


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_truncation_leaves_no_index_of_what_is_gone(suffix: str) -> None:
    """The segment that was cut has no index files until it is sealed again."""
    fs = SimFs()
    log = filled(30, fs=fs)
    log.truncate_to(log.segment_bases[1] + 2)
    indexed = [int(name[:20]) for name in fs.listdir("t-0") if name.endswith(suffix)]
    assert indexed == [log.segment_bases[0]]


def test_an_older_epoch_may_follow_one_that_never_wrote() -> None:
    """The entry without a record is removed, and the older epoch keeps its start offset."""
    log = filled(3)
    log.assign_epoch(4, 6)
    log.append_as_follower(encode_batch([Record(b"x")], base_offset=6, leader_epoch=0))
    assert (log.log_end, log.epochs) == (7, ((0, 0),))


@pytest.mark.parametrize("cut_a_later_segment", [False, True])
def test_no_older_epoch_follows_records_below_the_log_start(cut_a_later_segment: bool) -> None:
    """They are still in the files, where a start treats a decreasing epoch as damage."""
    fs = SimFs()
    log = PartitionLog.open(fs, "t-0", SMALL)
    log.append_as_leader(batch(b"a" * 100), 4)
    log.advance_log_start(1)
    if cut_a_later_segment:
        log.append_as_leader(batch(b"x" * 900), 4)
        assert log.segment_bases == (0, 1)
        log.truncate_to(1)
    with pytest.raises(InvalidRecordError, match="older"):
        log.append_as_follower(encode_batch([Record(b"b")], base_offset=1, leader_epoch=3))
    log.truncate_to(1)
    log.assign_epoch(3, 1)
    with pytest.raises(InvalidRecordError, match="older"):
        log.append_as_leader(batch(b"b"), 3)
    log.append_as_leader(batch(b"b"), 4)
    again = PartitionLog.open(fs, "t-0", SMALL, OpenPoint(0, 0, False))
    assert (again.log_end, again.epochs, again.recovery.cut_bytes) == (2, ((4, 1),), 0)


def test_truncating_at_the_end_still_cuts_the_epochs() -> None:
    """An epoch that begins at the log end and has no records is removed (KAFKA-10706)."""
    log = filled(3)
    log.assign_epoch(4, 6)
    assert log.truncate_to(6) == 6
    assert log.epochs == ((0, 0),)


def test_truncating_below_the_first_segment_leaves_an_empty_log_there() -> None:
    """After retention removed the beginning, cutting before it restarts at the offset."""
    log = filled(30)
    log.advance_log_start(40)
    assert log.truncate_to(3) == 3
    assert (log.log_start, log.log_end, log.epochs) == (3, 3, ())
    assert log.append_as_leader(batch(b"v"), 8).base_offset == 3


def test_reset_begins_an_empty_log_where_it_is_told() -> None:
    """A follower whose leader starts later than its own end discards everything."""
    log = filled(30)
    log.reset(1000)
    assert (log.log_start, log.log_end, log.flushed, log.epochs) == (1000, 1000, 1000, ())
    assert log.read(1000, 10) == b""


def test_the_log_start_moves_by_record_and_deletes_by_segment() -> None:
    """Records below are out of range at once; files are removed with their last record; epochs are cut."""
    log = filled(30)
    bases_before = log.segment_bases
    deleted = log.advance_log_start(25)
    assert deleted == sum(1 for base in bases_before[1:] if base <= 25)
    assert log.segment_bases == bases_before[deleted:]
    assert log.epochs == ((1, 25), (2, 40))
    with pytest.raises(OffsetOutOfRangeError):
        log.read(24, 100)
    assert bases(log.read(25, 1)) == [24]
    assert log.advance_log_start(10) == 0
    with pytest.raises(OffsetOutOfRangeError):
        log.advance_log_start(61)


def test_flush_policies_say_when_records_are_durable() -> None:
    """By count before the append returns; on roll; or never."""
    by_count = filled(3, LogConfig(flush_messages=4))
    assert (by_count.log_end, by_count.flushed) == (6, 4)
    on_roll = filled(30)
    assert on_roll.flushed == on_roll.segment_bases[-1]
    assert filled(30, LogConfig(segment_bytes=1000, flush_on_roll=False)).flushed == 0


@given(st.lists(st.integers(1, 50), max_size=30))
def test_index_files_survive_the_round_trip(steps: list[int]) -> None:
    """What is encoded is decoded; a lookup finds the last entry not after; trailing zeros are no entries."""
    index, times = OffsetIndex(), TimeIndex()
    total = 0
    for step in steps:
        total += step
        index.add(total, total * 10)
        times.add(total * 5, total)
    again = OffsetIndex.decode(index.encode() + bytes(16) * bool(steps), total * 10 + 1)
    assert again is not None
    assert (again.offsets, again.positions) == (index.offsets, index.positions)
    time_again = TimeIndex.decode(times.encode())
    assert time_again is not None
    assert (time_again.timestamps, time_again.offsets) == (times.timestamps, times.offsets)
    for at, offset in enumerate(index.offsets):
        assert index.lookup(offset) == index.positions[at]
        assert index.lookup(offset - 1) == (index.positions[at - 1] if at and steps[at] >= 1 else 0)


times = st.lists(st.integers(0, 30), min_size=1, max_size=12)


@given(times, times)
def test_the_time_index_leads_to_the_batch_of_its_timestamp(before: list[int], after: list[int]) -> None:
    """As in Kafka, also where timestamps fall: a search by time begins at the entry's offset."""
    fs, config = SimFs(), LogConfig(segment_bytes=600, index_interval_bytes=100)
    for moments, point in ((before, OpenPoint()), (after, OpenPoint(was_clean=True))):
        log = PartitionLog.open(fs, "t-0", config, point)
        for moment in moments:
            log.append_as_leader(batch(b"x" * 20, b"y", time=moment), 0)
        log.seal()
        log.close()
    ends = (*log.segment_bases[1:], log.log_end)
    for base, end in zip(log.segment_bases, ends, strict=True):
        segment = [header for header in log_headers(fs, config) if base <= header.base_offset < end]
        largest = {header.last_offset - base: header.max_timestamp for header in segment}
        index = TimeIndex.decode(read_file(fs, f"t-0/{base:020d}.timeindex"))
        assert index is not None
        assert [largest[offset] for offset in index.offsets] == index.timestamps
        assert max(largest.values(), default=-1) == max(index.timestamps, default=-1)


def log_headers(fs: SimFs, config: LogConfig) -> list[BatchHeader]:
    return list(PartitionLog.open(fs, "t-0", config, OpenPoint(was_clean=True)).headers())


@pytest.mark.parametrize(
    "data", [b"\0" * 7, bytes([0, 0, 0, 5, 0, 0, 0, 5] * 2), b"\xff" * 8, bytes([0, 0, 0, 5, 0, 0, 1, 0])]
)
def test_an_impossible_offset_index_is_not_believed(data: bytes) -> None:
    """Odd sizes, repeated or negative entries and positions beyond the log are refused."""
    assert OffsetIndex.decode(data, 100) is None


def test_records_read_back_are_the_records_produced() -> None:
    """End to end: values, timestamps and absolute offsets."""
    log = filled(2)
    assert [(r.offset, r.timestamp, r.value) for r in decode_batch(log.read(2, 1))] == [
        (2, 100, b"1"),
        (3, 100, b"x" * 20),
    ]
