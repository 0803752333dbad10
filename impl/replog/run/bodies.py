"""Bodies of batches on real files: in memory only until they are written, and while a message carries them.

    arrives   Batch(..., body=b"...")       -> Batch(..., body=StoredBody)    what the core keeps
    Append    its bytes go to the segment, and out of memory
    leaves    Batch(..., body=StoredBody)   -> Batch(..., body=b"...")        read from the segment

Kafka has the same two kinds: `MemoryRecords` of a produce request, and `FileRecords`, a part of a segment
that goes from the page cache to the socket.  There is no cache of ours either: the page cache has the tail of
the log, which is what followers and most consumers read.

A handle has no position.  The sparse index of the segment, and the place where its last read ended, find a
batch by its offset, and a position would be wrong after a segment was rewritten.  It has the CRC-32C of the
body: with it two logs are compared without reading them, and other bytes in a segment are detected.

Two bodies are bytes in a core: those of the log of groups on its way from the disk to its coordinator, and
those of records that a coordinator writes, which are no longer than a handle, until the next start.

Not here: the files (`replog.store`), who puts handles in and out (`stored`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from replog.core.messages import FetchReply, ForPartition, GroupLog, Message, ProduceRequest
from replog.core.types import Batch, Body
from replog.store.files.errors import CorruptBatchError
from replog.store.partition import PartitionLog
from replog.store.segments.batch import HEADER_BYTES, BatchHeader, checksum, iterate_headers
from replog.store.segments.records import first_value

RECORD_BYTES = 32
"""More than any record has beside its value, as `encode` writes it."""

Batches = tuple[Batch, ...]


class StoredBody:
    """A body in a segment, or not yet written: its size, its CRC, and until it is written its bytes."""

    __slots__ = ("_crc", "_size", "_unwritten")

    def __init__(self, content: bytes) -> None:
        self._size = len(content)
        self._crc = checksum(content)
        self._unwritten: bytes | None = content

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredBody):
            return NotImplemented
        return (self._size, self._crc) == (other._size, other._crc)

    def __hash__(self) -> int:
        return hash((self._size, self._crc))

    def __repr__(self) -> str:
        return f"StoredBody({self._size} bytes, CRC {self._crc:08x})"

    @property
    def unwritten(self) -> bytes:
        """Return the bytes, which are not in a segment yet."""
        assert self._unwritten is not None, "the body is in a segment"
        return self._unwritten

    def is_of(self, content: bytes) -> bool:
        """Return whether the body has these bytes, as far as size and CRC show."""
        return self._size == len(content) and self._crc == checksum(content)

    def written(self) -> StoredBody:
        """Release the bytes, which are in a segment now."""
        self._unwritten = None
        return self


def is_body(content: bytes, body: Body) -> bool:
    """Return whether a body, or the body of a handle, has these bytes."""
    return body.is_of(content) if isinstance(body, StoredBody) else body == content


def with_batches(message: Message, change: Callable[[Batches], Batches]) -> Message:
    """Return a message with its batches changed; a message without batches is returned unchanged."""
    match message:
        case ProduceRequest(batch=batch):
            return replace(message, batch=change((batch,))[0])
        case FetchReply(batches=batches) | GroupLog(batches=batches) if batches:
            return replace(message, batches=change(batches))
        case ForPartition(message=inner):
            changed = with_batches(inner, change)
            return message if changed is inner else replace(message, message=changed)
        case _:
            return message


def is_own_log(message: Message) -> bool:
    """Return whether a message is a broker's own log, which it sends itself with its bytes."""
    return isinstance(message.message if isinstance(message, ForPartition) else message, GroupLog)


def handles_of(batches: Batches) -> Batches:
    """Return batches whose bodies are handles."""
    return tuple(with_body(batch, StoredBody(batch.content)) for batch in batches)


def with_body(batch: Batch, body: Body) -> Batch:
    """Return a batch with another body: the result of `replace`, in a third of its time."""
    return Batch(
        batch.base_offset,
        batch.epoch,
        batch.count,
        batch.producer_id,
        batch.producer_epoch,
        batch.first_seq,
        body,
    )


def read_bodies(log: PartitionLog, batches: Batches) -> Batches:
    """Return contiguous batches of a log with their bytes, read from the segments.

    Raises `StoreError` if they cannot be read, or are others.
    """
    found = tuple(_read(log, batches)) if batches else ()
    # The file has its own CRC of each batch, which does not show whether it is this one.
    if len(found) != len(batches) or not all(map(_is_same, found, batches)):
        raise CorruptBatchError(f"other batches than those written, from offset {batches[0].base_offset} on")
    return found


def _is_same(read: Batch, kept: Batch) -> bool:
    place = read.base_offset, read.epoch, read.count
    return place == (kept.base_offset, kept.epoch, kept.count) and is_body(read.content, kept.body)


def _read(log: PartitionLog, batches: Sequence[Batch]) -> Iterator[Batch]:
    # The log may start inside of its first batch, which is whole all the same.
    start, end = max(batches[0].base_offset, log.log_start), batches[-1].next_offset
    room = sum(HEADER_BYTES + batch.count * (RECORD_BYTES + len(batch.body)) for batch in batches)
    while start < end:
        # Once for each segment, as a rule.
        data = log.read(start, room, end)
        if not data:
            raise CorruptBatchError(f"no whole batch at offset {start} below {end}")
        for position, header in iterate_headers(data):
            yield decoded(header, memoryview(data)[position : position + header.size_bytes])
            start = header.next_offset


def decoded(header: BatchHeader, data: bytes | memoryview) -> Batch:
    """Return a batch in the protocol's form: the body is the value of each record."""
    value = first_value(data, header)
    return Batch(
        header.base_offset,
        header.leader_epoch,
        header.record_count,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        b"" if value is None else value,
    )
