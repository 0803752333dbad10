"""The contents of a segment's bytes: the extent of whole batches, their chain, and their sparse indexes.

    note(position, header), once a batch, in order, whether the batch is written now or met by a scan

Two ways to the same contents must agree: a segment that was written, one that was scanned (`scan`) and one
that was taken over from a manifest and its index files continue alike.

Not here: files (`segment.py`).
"""

from struct import Struct

from crc32c import crc32c

from replog.store.checkpoints.manifest import Mark
from replog.store.files.fs import File
from replog.store.segments.batch import LENGTH_START, BatchHeader
from replog.store.segments.epochs import Entries, epoch_at
from replog.store.segments.index import OffsetIndex, TimeIndex

NO_TIMESTAMP = -1
LINK = Struct(">qiibI")
"""The first 21 bytes of a batch: what its CRC does not cover, and its CRC."""


def link(chain: int, base_offset: int, length: int, leader_epoch: int, magic: int, crc: int) -> int:
    """Return the chain extended by a batch."""
    return crc32c(LINK.pack(base_offset, length, leader_epoch, magic, crc), chain)


def has_chain(file: File, size: int, expected: int, epochs: Entries = ()) -> bool:
    """Return whether the headers up to byte `size` have the expected chain.

    With the leader epochs according to `epochs`, whatever the headers contain.
    """
    position = chain = 0
    while position < size:
        data = file.pread(LINK.size, position)
        if len(data) < LINK.size:
            return False
        base, length, epoch, magic, crc = LINK.unpack(data)
        right_epoch = epoch_at(epochs, base)
        chain = link(chain, base, length, epoch if right_epoch is None else right_epoch, magic, crc)
        # A negative length is damage; without the maximum it would walk back and never end.
        position += max(length, 0) + LENGTH_START
    return position == size and chain == expected


class Contents:
    """Bytes from 0 to `size` of the segment that begins at `base_offset`; made empty.

    `max_at` is the last offset, relative to the base, of the first batch that has `max_timestamp`.
    """

    __slots__ = (
        "_index_interval", "_since_index", "base_offset", "chain", "index", "max_at", "max_timestamp",
        "next_offset", "size", "time_index",
    )  # fmt: skip

    def __init__(self, base_offset: int, index_interval: int) -> None:
        self._index_interval = index_interval
        self._since_index = 0
        self.base_offset = self.next_offset = base_offset
        self.size = 0
        self.chain = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_at = 0
        self.index = OffsetIndex()
        self.time_index = TimeIndex()

    def note(self, position: int, header: BatchHeader) -> None:
        """Account for the batch at `position`, the present end."""
        base, length, epoch, magic, crc, _, delta, _, max_timestamp = header[:9]
        last = base + delta
        # With its own batch, as Kafka does: timestamps may fall, and a search by time begins at that offset.
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_at = max_timestamp, last - self.base_offset
        # The entry is for this batch, and comes before its bytes are counted, as Kafka does: files of both
        # agree.
        if self._since_index > self._index_interval:
            self.index.add(last - self.base_offset, position)
            self.time_index.add(self.max_timestamp, self.max_at)
            self._since_index = 0
        size = length + LENGTH_START
        self._since_index += size
        self.size = position + size
        self.next_offset = last + 1
        # `link`, inlined: this runs once for each batch that is written.
        self.chain = crc32c(LINK.pack(base, length, epoch, magic, crc), self.chain)

    def take_over(self, mark: Mark, index: OffsetIndex, time_index: TimeIndex) -> None:
        """Adopt the contents given by a manifest and the index files it lists, without reading a batch."""
        self.size, self.next_offset, self.chain = mark.size, mark.next_offset, mark.chain
        self.index, self.time_index = index, time_index
        if time_index.timestamps:
            self.max_timestamp, self.max_at = time_index.timestamps[-1], time_index.offsets[-1]
        # The same as if the batches had been written here: the batch of the last entry counts.
        self._since_index = mark.size - (index.positions[-1] if index.positions else 0)
