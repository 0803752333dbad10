"""The text of `replog dump` for a segment, a batch and a record: one line each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from replog.store.segments.batch import BatchHeader
from replog.store.segments.index import OffsetIndex, TimeIndex
from replog.store.segments.records import Record

VALUE_WIDTH = 60


@dataclass(slots=True)
class SegmentText:
    """The result of scanning a segment, batch by batch."""

    base: int
    end: int = -1
    size: int = 0
    batches: int = 0
    epochs: tuple[int, int] = (-1, -1)
    last_offsets: dict[int, int] = field(default_factory=dict)
    timestamps: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin at the base offset."""
        self.end = self.base

    def add(self, position: int, header: BatchHeader) -> None:
        """Add the next batch."""
        self.epochs = (header.leader_epoch if not self.batches else self.epochs[0], header.leader_epoch)
        self.batches += 1
        self.end = header.next_offset
        self.size = position + header.size_bytes
        self.last_offsets[position] = header.last_offset - self.base
        self.timestamps[header.last_offset - self.base] = header.max_timestamp

    def summary(self) -> str:
        """Return the summary of the segment's contents."""
        if not self.batches:
            return "empty"
        first, last = self.epochs
        epochs = f"epoch {first}" if first == last else f"epochs {first}..{last}"
        count = f"{self.batches} batch{'es' * (self.batches != 1)}"
        return f"{count}, offsets {self.base}..{self.end - 1}, {epochs}, {self.size} bytes, CRCs correct"

    def check_index(self, data: bytes) -> int | None:
        """Return the number of entries of an offset index, or None if one is not that of a batch here."""
        index = OffsetIndex.decode(data, self.size + 1)
        return None if index is None else _fitting(index.positions, index.offsets, self.last_offsets)

    def check_time_index(self, data: bytes) -> int | None:
        """Return the number of entries of a time index, or None if one is not that of a batch here."""
        index = TimeIndex.decode(data)
        return None if index is None else _fitting(index.offsets, index.timestamps, self.timestamps)


def _fitting(keys: list[int], values: list[int], known: Mapping[int, int]) -> int | None:
    """Return the number of entries, or None if one differs from what is known."""
    return len(keys) if [known.get(key) for key in keys] == values else None


def batch_text(position: int, header: BatchHeader) -> str:
    """Describe a batch by its header."""
    producer = ""
    if header.producer_id >= 0:
        producer = f", producer {header.producer_id}/{header.producer_epoch} from seq {header.base_sequence}"
    span = f"{header.base_offset}..{header.last_offset}"
    return f"@{position} offsets {span}, epoch {header.leader_epoch}, {header.size_bytes} bytes{producer}"


def record_text(record: Record) -> str:
    """Show a record's offset, key and value, shortened and printable."""
    key = "" if record.key is None else f"{_short(record.key)} = "
    return f"{record.offset}: {key}{_short(record.value)}"


def _short(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = data[:VALUE_WIDTH].decode("utf-8", "backslashreplace")
    printable = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return printable + ("..." if len(data) > VALUE_WIDTH else "")
