"""The view of an open log's reader, compared with what was written: reads, refusals, files, indexes.

The reference has no files and no indexes: the batches by their offsets, `written`, and where segments begin.
What differs is `OutsideSpec`, since the spec has no state for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from struct import Struct

from replog.store.checkpoints.checkpoint import EPOCH_FILE
from replog.store.checkpoints.manifest import MANIFEST_FILE, read_manifest
from replog.store.files.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidRecordError,
    OffsetOutOfRangeError,
    StoreError,
)
from replog.store.files.fs import Fs, read_file
from replog.store.files.quarantine import is_quarantined
from replog.store.partition import PartitionLog
from replog.store.segments.batch import BatchHeader, iterate_headers
from replog.store.segments.records import Record, encode_batch
from specchk.conform.contract.binding import OutsideSpec

RECORDS = 2
MANY_RECORDS = 40
"""Of a batch that no segment here has room for."""
LARGE = 1 << 20
INDEX_ENTRY, TIME_ENTRY = Struct(">ii"), Struct(">qi")
ENTRIES = {"index": INDEX_ENTRY, "timeindex": TIME_ENTRY}
Headers = list[tuple[int, BatchHeader]]


@lru_cache(4096)
def batch_of(number: int, base_offset: int = 0, epoch: int = -1, records: int = RECORDS) -> bytes:
    """Return records that no other batch has; one batch and the next ones differ in size.

    Timestamps fall from each odd number to the next: an index has the largest so far, not the last.
    """
    time = number ^ 1
    made = [
        Record(b"%06d-%d" % (number, place) + b"+" * (number % 3), timestamp=time + place)
        for place in range(records)
    ]
    return encode_batch(made, base_offset=base_offset, leader_epoch=epoch)


BATCH_BYTES = len(batch_of(2))
"""Of the largest batch of two records."""


def headers_of(fs: Fs, path: str, base: int) -> Headers:
    """Read the headers of a segment file, without the store."""
    return list(iterate_headers(read_file(fs, f"{path}/{base:020d}.log")))


def check_reads(log: PartitionLog, written: Mapping[int, bytes]) -> None:
    """Read from every offset: everything, one batch, and up to every limit."""
    # The last one first, where a hint of an earlier log would lead to.
    offsets = range(log.log_start, log.log_end + 1)
    for offset in (*offsets[-2:-1], *offsets):
        segment = list(_from(log, written, offset))
        for limit in range(offset, log.log_end + 1):
            wanted = b"".join(batch for base, batch in segment if base + RECORDS <= limit)
            # Without a limit at the end: it is where a read ends anyway.
            read = log.read(offset, LARGE, limit if limit < log.log_end else None)
            if read != wanted:
                raise OutsideSpec(f"a read from {offset} up to {limit} returns {_offsets(read)}")
        first = segment[0][1] if segment else b""
        # The smallest size, and one short of two batches: always a batch, and never half of one.
        for size in (1, len(first) + len(batch_of(0)) - 1):
            if log.read(offset, size) != first:
                raise OutsideSpec(f"a read of {size} bytes from {offset} does not return the batch there")
    bases = [base for base in sorted(written) if log.log_start < base + RECORDS <= log.log_end]
    if [header.base_offset for header in log.headers(log.log_start)] != bases:
        raise OutsideSpec("the headers of the log are not those of its batches")
    for offset in (log.log_start - 1, log.log_end + 1):
        check_refused(f"a read from {offset}", OffsetOutOfRangeError, partial(log.read, offset, 1))


def _from(log: PartitionLog, written: Mapping[int, bytes], offset: int) -> Iterator[tuple[int, bytes]]:
    """Yield the batches from the one with an offset to the end of its segment, with their offsets."""
    ends = [*log.segment_bases[1:], log.log_end]
    end = next((end for end in ends if offset < end), log.log_end)
    yield from ((base, written[base]) for base in sorted(written) if offset < base + RECORDS <= end)


def _offsets(data: bytes) -> str:
    try:
        return f"batches at {[header.base_offset for _, header in iterate_headers(data)]}"
    except CorruptBatchError:
        return f"{len(data)} bytes that are no batches"


def check_refused(what: str, error: type[StoreError], call: Callable[[], object]) -> None:
    """Check that the store refuses a call; unchanged state is left to the comparison of states."""
    try:
        call()
    except error:
        return
    raise OutsideSpec(f"{what} is not refused")


def check_refusals(log: PartitionLog) -> None:
    """Try the calls that no log may accept, in whatever state."""
    end, epoch = log.log_end, max((entry.epoch for entry in log.epochs), default=0)
    following, hole = batch_of(0, end, epoch), batch_of(0, end + RECORDS + 1, epoch)
    fetched = {
        "a replicated batch behind a hole": (hole, InvalidRecordError),
        # Half of a reply in the log would be an end that no leader has sent.
        "a reply with a hole": (following + batch_of(0, end + 2 * RECORDS, epoch), InvalidRecordError),
        "a replicated batch with another CRC": (flipped(following), CorruptBatchError),
    }
    if end >= RECORDS:
        fetched["a batch that is there"] = batch_of(0, end - RECORDS, epoch), InvalidRecordError
    for what, (data, error) in fetched.items():
        check_refused(what, error, partial(log.append_as_follower, data))
    produced = {
        "a produced batch with another CRC": (flipped(batch_of(0)), CorruptBatchError),
        "a produced batch with an offset": (batch_of(0, 1), InvalidRecordError),
        "two produced batches in one": (batch_of(0) * 2, StoreError),
        "a batch larger than a segment": (batch_of(0, 0, -1, MANY_RECORDS), BatchTooLargeError),
    }
    for what, (data, error) in produced.items():
        check_refused(what, error, partial(log.append_as_leader, data, epoch))
    check_refused(
        "a log start beyond the end", OffsetOutOfRangeError, partial(log.advance_log_start, end + 1)
    )


def flipped(batch: bytes) -> bytes:
    """Return a batch with its last bit flipped."""
    return batch[:-1] + bytes([batch[-1] ^ 1])


def check_folder(fs: Fs, path: str, bases: Sequence[int]) -> None:
    """Check that a folder contains the log's files and indexes, and otherwise only files kept by starts."""
    names = set(fs.listdir(path))
    needed = {f"{base:020d}.log" for base in bases} | {MANIFEST_FILE}
    # A segment gets its indexes when it has had its last batch.
    needed |= {f"{base:020d}{suffix}" for base in bases[:-1] for suffix in (".index", ".timeindex")}
    allowed = needed | {EPOCH_FILE, f"{bases[-1]:020d}.index", f"{bases[-1]:020d}.timeindex"}
    if missing := sorted(needed - names):
        raise OutsideSpec(f"the folder has no {missing[0]}")
    if strange := sorted(name for name in names - allowed if not is_quarantined(name)):
        raise OutsideSpec(f"the folder has {strange[0]}, which is no file of this log")


def check_kept(fs: Fs, path: str, names: Iterable[str], end: int, lost_from: int | None) -> None:
    """Check the files that a start set aside: torn ones, and remains that only a power failure leaves.

    That is a segment with records from `lost_from` on, which were not synced, or behind the log's `end`, from
    a truncation; and an index without its segment.
    """
    for name in names:
        stem = name.rpartition(".quarantine")[0]
        base, _, kind = stem.partition(".")
        is_torn = kind in ENTRIES and len(read_file(fs, f"{path}/{name}")) % ENTRIES[kind].size > 0
        if kind.startswith("log.at-") or is_torn:
            continue
        is_left = kind == "log" and lost_from is not None and int(base) >= min(lost_from, end + 1)
        is_alone = kind in ENTRIES and lost_from is not None and not fs.exists(f"{path}/{base}.log")
        if not (is_left or is_alone):
            raise OutsideSpec(f"a start moves {stem} aside, which nothing has damaged")


def check_indexes(fs: Fs, path: str, bases: Sequence[int]) -> None:
    """Compare the index files with the batches: those of full segments, and any that the manifest lists."""
    reading = read_manifest(fs, path)
    marks = reading.manifest.marks if reading else ()
    # The last segment may have batches that the index of its mark is not about.
    listed = {mark.base_offset: mark.size for mark in marks if mark.sums}
    for base in bases:
        if base != bases[-1] or base in listed:
            end = LARGE if base != bases[-1] else listed[base]
            headers = [pair for pair in headers_of(fs, path, base) if pair[0] < end]
            _check_index(base, headers, read_file(fs, f"{path}/{base:020d}.index"))
            _check_time_index(base, headers, read_file(fs, f"{path}/{base:020d}.timeindex"))


def _check_index(base: int, headers: Headers, data: bytes) -> None:
    """Check an index: with an interval of 0 bytes each batch except the first has an entry."""
    wanted = [(header.last_offset - base, position) for position, header in headers[1:]]
    if data != b"".join(INDEX_ENTRY.pack(*entry) for entry in wanted):
        raise OutsideSpec(f"the index of segment {base} does not lead to its batches")


def _check_time_index(base: int, headers: Headers, data: bytes) -> None:
    """Check that each entry is the largest timestamp so far with its batch's last offset."""
    largest: list[tuple[int, int]] = []
    needed: set[tuple[int, int]] = set()
    for number, (_, header) in enumerate(headers):
        if not largest or header.max_timestamp > largest[-1][0]:
            largest.append((header.max_timestamp, header.last_offset - base))
        # As in the other index; an earlier end of the segment leaves an entry for its first batch as well.
        needed |= {largest[-1]} if number else set()
    needed |= set(largest[-1:])
    entries = list(TIME_ENTRY.iter_unpack(data)) if len(data) % TIME_ENTRY.size == 0 else []
    if entries != [entry for entry in largest if entry in needed or entry in entries]:
        raise OutsideSpec(f"the time index of segment {base} has {entries}, and its batches {largest}")
