"""A broker's log directory as it lies on disk: what each replica has, and what is wrong with it by itself.

Nothing is changed, and nothing need run.  Files are as Kafka leaves them: segments of message format 0 to 2,
indexes that are preallocated (not read), a log start that only a checkpoint has, and after an unclean stop
an end that is torn, or entries of epochs that a start would drop.  None of that is a fault.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path

import crc32c
from conformance.apache_kafka.batches import Batch, Producer, parse_batches
from conformance.apache_kafka.metadata_log import METADATA_LOG
from msgspec import Struct

from replog.dump import ReadOnlyFs
from replog.store.checkpoints import checkpoint
from replog.store.files.errors import StoreError

_FS = ReadOnlyFs()
_ENTRY = struct.Struct(">qhiqiqiq")  # of a snapshot of producers
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_CRC_FROM = 6
_SEQUENCES = 1 << 31


class Fault(Struct, frozen=True):
    """What is wrong, its kind, and where: a partition, and a broker if it is of that replica alone."""

    partition: str
    broker: str
    kind: str
    text: str

    def __str__(self) -> str:
        where = f"{self.partition}, broker {self.broker}" if self.broker else self.partition
        return f"{where}: {self.kind}: {self.text}"


class Mark(Struct, frozen=True):
    """A batch without its records; batches of two replicas are the same if their marks are."""

    base: int
    last: int
    epoch: int | None  # None in message formats 0 and 1
    sum: int  # of all its bytes
    producer: Producer

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record."""
        return (self.producer.sequence + self.last - self.base) % _SEQUENCES


class Replica(Struct):
    """A partition in a broker's folder; `end` is the offset after its last whole batch."""

    partition: str
    broker: str
    is_clean: bool
    start: int
    end: int
    hw: int
    marks: list[Mark]
    gaps: list[tuple[int, int]]
    topic_id: str | None
    faults: list[Fault]

    def blame(self, kind: str, text: str) -> None:
        """Add a fault of this replica."""
        self.faults.append(Fault(self.partition, self.broker, kind, text))


class Broker(Struct):
    """A log directory: its broker's number, and the replicas by partition."""

    number: str
    path: Path
    replicas: dict[tuple[str, int], Replica]


class NoFolder(Exception):
    """A folder that is not a broker's log directory; the message says why."""


def read_broker(path: Path) -> Broker:
    """Read a log directory.  Raises NoFolder."""
    if not (path / "meta.properties").is_file():
        raise NoFolder(f"{path} is not a log directory of Kafka: it has no meta.properties")
    lines = (path / "meta.properties").read_text(encoding="utf-8", errors="replace").splitlines()
    properties = dict(line.split("=", 1) for line in lines if "=" in line)
    number = properties.get("node.id", properties.get("broker.id", path.name))
    try:
        is_clean = checkpoint.read_clean_shutdown(_FS, str(path)) is not None
        names = (
            checkpoint.HIGH_WATERMARK_FILE,
            checkpoint.RECOVERY_POINT_FILE,
            checkpoint.LOG_START_FILE,
        )
        offsets = [checkpoint.read_offsets(_FS, str(path), name) for name in names]
    except StoreError as error:
        raise NoFolder(f"{path} cannot be judged: {error}") from error
    replicas = {}
    for folder in sorted(path.iterdir()):
        key = checkpoint.parse_partition_name(folder.name)
        if key is not None and folder.is_dir() and folder.name != METADATA_LOG:
            hw, recovery, start = (each.get(key, 0) for each in offsets)
            replica = Replica(folder.name, number, is_clean, start, 0, hw, [], [], None, [])
            _read_replica(folder, replica, recovery)
            replicas[key] = replica
    return Broker(number, path, replicas)


def _read_replica(folder: Path, replica: Replica, recovery: int) -> None:
    _read_log(folder, replica)
    try:
        replica.topic_id = checkpoint.read_metadata(_FS, str(folder))
        _check_epochs(checkpoint.read_epochs(_FS, str(folder)), replica)
    except StoreError as error:
        replica.blame("file", str(error))
    _check_sequences(replica)
    for snapshot in sorted(folder.glob("*.snapshot")):
        _check_producers(snapshot, replica)
    names = {"high watermark": replica.hw, "log start": replica.start}
    if replica.is_clean:
        names["recovery point"] = recovery
    for name, offset in names.items():
        if offset > replica.end:
            replica.blame("checkpoint", f"the {name} is {offset}, and the log ends at {replica.end}")


def _read_log(folder: Path, replica: Replica) -> None:
    segments = sorted(path for path in folder.glob("*.log") if path.stem.isdigit())
    if not segments:
        replica.end = replica.start
        replica.blame("file", "it has no segment")
        return
    first = int(segments[0].stem)
    replica.start = max(replica.start, first)
    replica.end = first
    for path in segments:
        replica.end = max(replica.end, int(path.stem))
        size = 0
        for batch in _batches(path):
            size = batch.position + len(batch.data)
            _add(replica, path.name, batch)
        with path.open("rb") as file:
            file.seek(size)
            rest = file.read().rstrip(b"\0")  # zeros are preallocated
        if rest and (replica.is_clean or path != segments[-1]):
            replica.blame("batch", f"{path.name} has no batch at byte {size}, where its last one ends")


def _batches(path: Path) -> Iterator[Batch]:
    if path.stat().st_size:  # an empty file cannot be mapped
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            yield from parse_batches(data)


def _add(replica: Replica, name: str, batch: Batch) -> None:
    if not batch.valid and (replica.is_clean or batch.base < replica.hw):
        replica.blame("batch", f"the batch of offset {batch.base} has a wrong checksum ({name})")
    if batch.base < replica.end and replica.marks:
        replica.blame("offsets", f"a batch of offset {batch.base} lies after {replica.end - 1} ({name})")
    is_known = batch.format == 2 or not batch.codec  # else the offset is that of the last record it has
    if batch.base > replica.end and replica.marks and is_known:
        replica.gaps.append((replica.end, batch.base))
    if replica.marks and (batch.epoch or 0) < (replica.marks[-1].epoch or 0):
        replica.blame("epochs", f"offset {batch.base} is of epoch {batch.epoch}, after a later one ({name})")
    replica.marks.append(Mark(batch.base, batch.last, batch.epoch, crc32c.crc32c(batch.data), batch.producer))
    replica.end = batch.last + 1


def _check_epochs(entries: tuple[checkpoint.EpochEntry, ...] | None, replica: Replica) -> None:
    """Compare the epochs of the checkpoint with those of the batches, from the log's start on."""
    if entries is None:
        return
    starts = [entry.start_offset for entry in entries]
    for mark in replica.marks:
        for offset in (max(mark.base, replica.start), mark.last):
            at = bisect_right(starts, offset) - 1
            epoch = entries[at].epoch if at >= 0 else None
            if mark.epoch is not None and offset >= replica.start and epoch != mark.epoch:
                text = f"offset {offset} is of epoch {mark.epoch}, and by {checkpoint.EPOCH_FILE} of {epoch}"
                replica.blame("epoch-cache", text)
                return
    if replica.is_clean and entries and entries[-1].start_offset > replica.end:
        epoch, start = entries[-1]
        replica.blame("epoch-cache", f"epoch {epoch} starts at {start}, and the log ends at {replica.end}")


def _check_sequences(replica: Replica) -> None:
    """A producer's batches have increasing sequence numbers in an epoch of its: none was written twice."""
    last: dict[tuple[int, int], int] = {}
    for mark in replica.marks:
        producer = mark.producer
        if producer.id < 0 or producer.sequence < 0:
            continue
        before = last.get((producer.id, producer.epoch), -1)
        if 0 <= before - producer.sequence < _SEQUENCES // 2:
            text = f"offset {mark.base} has sequence number {producer.sequence} of producer {producer.id}"
            replica.blame("producer-state", f"{text} again")
        last[producer.id, producer.epoch] = mark.last_sequence


def producer_entries(data: bytes) -> Iterator[tuple[int, ...]]:
    """Snapshot entries: id, epoch, last sequence number, offset, delta and time, coordinator, transaction."""
    return _ENTRY.iter_unpack(data[_SNAPSHOT_HEAD.size :])


def _check_producers(path: Path, replica: Replica) -> None:
    """Compare a snapshot of producers with the batches that it names."""
    data, taken_at = path.read_bytes(), int(path.stem)
    head = _SNAPSHOT_HEAD.size
    if len(data) < head or (len(data) - head) % _ENTRY.size:
        replica.blame("producer-state", f"{path.name} is not whole")
        return
    _, crc, _ = _SNAPSHOT_HEAD.unpack_from(data)
    if crc32c.crc32c(data[_CRC_FROM:]) != crc:
        replica.blame("producer-state", f"{path.name} has a wrong checksum")
        return
    if replica.is_clean and taken_at > replica.end:
        replica.blame("producer-state", f"{path.name} is of an offset beyond the log's end, {replica.end}")
    marks = {mark.last: mark for mark in replica.marks}
    for producer, _, sequence, offset, *_ in producer_entries(data):
        mark = marks.get(offset)
        if offset >= taken_at:
            replica.blame("producer-state", f"{path.name} has offset {offset} of producer {producer}")
        elif mark is not None and (mark.producer.id, mark.last_sequence) != (producer, sequence):
            text = f"producer {producer} ends with sequence number {sequence} at offset {offset}"
            replica.blame("producer-state", f"by {path.name} {text}, where the log has something else")
