"""Batches as their producers encoded them: their bytes go from the socket to a segment and back unread.

    arrives   61 bytes of header, records    ->  Batch(..., body=Encoded)    checked: shape, count, CRC
    Append    base offset and epoch stamped in the first 16 bytes, which the CRC leaves out; then released
    leaves    the bytes of the segment, as they are

Other batches have the value of each record as their body (`files`).  In one log both may occur: records
that a coordinator of groups writes itself have values.

Not here: the files (`partitions`), and who may append (`replog.core`).
"""

from __future__ import annotations

from collections.abc import Iterator

from replog.core.types import Batch
from replog.run.files import encode
from replog.store.files.errors import InvalidRecordError
from replog.store.segments.batch import (
    HEADER_BYTES,
    BatchHeader,
    check_crc,
    check_produced,
    iterate_headers,
    stamped_parts,
)

TRANSACTIONAL_OR_CONTROL = 0x30


class Encoded:
    """The records of one batch: their size, the batch's CRC, and until it is written all its bytes."""

    __slots__ = ("_crc", "_size", "_unwritten")

    def __init__(self, header: BatchHeader, unwritten: bytes | None = None) -> None:
        self._size = header.size_bytes - HEADER_BYTES
        self._crc = header.crc
        self._unwritten = unwritten

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Encoded):
            return NotImplemented
        return (self._size, self._crc) == (other._size, other._crc)

    def __hash__(self) -> int:
        return hash((self._size, self._crc))

    @property
    def crc(self) -> int:
        """Return the CRC in the batch's header."""
        return self._crc

    @property
    def unwritten(self) -> bytes:
        """Return the bytes of the whole batch, which are not in a segment yet."""
        assert self._unwritten is not None, "the batch is in a segment"
        return self._unwritten

    def release(self) -> None:
        """Forget the bytes, which are in a segment now."""
        self._unwritten = None


def produced(records: bytes) -> Batch:
    """Return the batch of a produce request; raises `InvalidRecordError` or `CorruptBatchError`."""
    header = check_produced(records)
    if header.attributes & TRANSACTIONAL_OR_CONTROL:
        raise InvalidRecordError("transactions are not supported")
    return _batch_of(header, records)


def replicated(records: bytes) -> Iterator[Batch]:
    """Yield the batches of a leader's answer; raises `CorruptBatchError`."""
    for position, header in iterate_headers(records):
        check_crc(records, header, position)
        yield _batch_of(header, records[position : position + header.size_bytes])


def stored(header: BatchHeader) -> Batch:
    """Return a batch that is in a segment."""
    return _batch_of(header, None)


def _batch_of(header: BatchHeader, unwritten: bytes | None) -> Batch:
    return Batch(
        header.base_offset,
        header.leader_epoch,
        header.last_offset_delta + 1,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        Encoded(header, unwritten),
    )


def stamped(batch: Batch) -> bytes:
    """Return the bytes of a batch that its leader has given its place."""
    if not isinstance(batch.body, Encoded):
        return encode(batch)
    return b"".join(stamped_parts(batch.body.unwritten, batch.base_offset, batch.epoch))
