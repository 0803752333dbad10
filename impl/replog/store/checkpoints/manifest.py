"""`log-manifest`: the durable part of a partition's folder, with additional checksums.

    0                                           version
    partition orders-0
    cuts 2                                      how often durable records were cut
    start 0                                     log start offset
    epoch 0 0                                   leader epochs, as in leader-epoch-checkpoint
    epoch 4 120
    segment 0 8123 150 9ae0daaf 77073096 ee0e612c   base, bytes, next, chain, CRCs of indexes
    segment 150 0 150 00000000 - -              an index that may be out of date has none
    remove 0 4000 5ad1f2c3                      a file (base, bytes, chain) that was dropped and may be left
    head 1b2c3d4e                               CRC-32C of all above; this part is replaced whole
    flush 150 970 170 5d8a77f1 0c1d2e3f         appended by a flush of the last segment; CRC-32C of the line

The CRC of a record batch covers neither its base offset nor its leader epoch, and a batch does not name
its log. The chain does: it covers the first 21 bytes of every batch of a segment, the last four of
which are the CRC of the rest. So a segment is unchanged exactly if its batches' CRCs are right and
their chain ends in the number here; and reading headers is enough to compute it, a flush need not read.

Order on disk: records, then the line here, then the flush returns. So all data in the manifest were synced;
a file with fewer or other bytes is damaged; the bytes beyond are a tail that a crash may have torn. Data
cut on purpose leave the manifest first. A last line without an end was torn by a crash; any other line
that its CRC does not fit means that flushes have been forgotten (`is_whole`).

Not here: which bytes are compared with it (`survey.py`), and when it is written (`partition.py`).
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NamedTuple

from crc32c import crc32c

from replog.store.checkpoints.checkpoint import EpochEntry, check_version
from replog.store.files.errors import CorruptFileError
from replog.store.files.fs import Fs, read_file, replace_file

MANIFEST_FILE = "log-manifest"
VERSION = b"0"
FLUSH_LINES = 1000
NO_SUM = "-"

Sums = tuple[int, int]


class Mark(NamedTuple):
    """A segment up to its last synced byte; `sums` are the CRCs of its index files, where they are final."""

    base_offset: int
    size: int
    next_offset: int
    chain: int
    sums: Sums | None = None


def empty_mark(base_offset: int) -> Mark:
    """Return the mark of a segment without synced bytes."""
    return Mark(base_offset, 0, base_offset, 0)


class Removal(NamedTuple):
    """A segment file that was removed from the log: a start may delete it, if it has this size and chain."""

    base_offset: int
    size: int
    chain: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The required contents of a partition's folder. There is at least one mark."""

    name: str
    cuts: int = 0
    log_start: int = 0
    epochs: tuple[EpochEntry, ...] = ()
    marks: tuple[Mark, ...] = (empty_mark(0),)
    removals: tuple[Removal, ...] = ()

    @property
    def flushed(self) -> int:
        """The offset before which everything is durable."""
        return self.marks[-1].next_offset

    def grown(self, mark: Mark) -> "Manifest":
        """Return this manifest with a later mark of its last segment."""
        return replace(self, marks=(*self.marks[:-1], mark))


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a manifest; `fault` is the first one after its head, `lines` counts flushes."""

    manifest: Manifest
    fault: str = ""
    is_torn: bool = False
    lines: int = 0
    head_sum: int = 0

    @property
    def is_durable(self) -> bool:
        """Return whether all of it is on disk, once the directory is synced.

        A head is synced before its file gets its name. A line may be in the page cache only, even if a sync
        comes now: one that failed before the process died marked the page as written.
        """
        return not self.fault and not self.is_torn and not self.lines


class ManifestFile:
    """The file of one partition; `save` makes a manifest durable by the cheapest safe method."""

    __slots__ = ("_directory", "_fs", "_head_sum", "_lines", "_saved")

    def __init__(self, fs: Fs, directory: str, reading: Reading | None = None) -> None:
        self._fs = fs
        self._directory = directory
        self._saved = reading.manifest if reading is not None and reading.is_durable else None
        self._lines = 0
        self._head_sum = 0 if reading is None else reading.head_sum

    def save(self, wanted: Manifest) -> None:
        """Make `wanted` durable unless it is already: append a line if only the last mark has changed."""
        saved = self._saved
        if wanted == saved:
            return
        mark = wanted.marks[-1]
        # Unknown from here until all is synced: if anything below raises, the next save writes the whole file
        # instead of a line behind bytes that may be torn.
        self._saved = None
        # Appending costs one small sync per flush, a replacement two syncs and a rename. The limit keeps the
        # file, and the time to read it, small.
        if saved is not None and self._lines < FLUSH_LINES and _is_flush(saved, wanted):
            with closing(self._fs.open(f"{self._directory}/{MANIFEST_FILE}")) as file:
                file.append(render_flush(mark, self._head_sum))
                file.fsync()
            self._lines += 1
        else:
            head = render(wanted)
            replace_file(self._fs, self._directory, MANIFEST_FILE, head)
            self._head_sum, self._lines = _head_sum(head), 0
        self._saved = wanted


def _is_flush(saved: Manifest, wanted: Manifest) -> bool:
    """Return whether the last segment grew and nothing else changed."""
    mark, before = wanted.marks[-1], saved.marks[-1]
    # A line can state that bytes were added, never that any were removed: a cut replaces the file, so a torn
    # line cannot bring the cut records back.
    is_longer = mark.base_offset == before.base_offset and mark.size > before.size
    return is_longer and mark.sums is None and saved.grown(mark) == wanted


def render(manifest: Manifest) -> bytes:
    """Return the head of the file, its checksum included."""
    body = b"".join(line.encode() + b"\n" for line in _head_lines(manifest))
    return body + b"head %08x\n" % crc32c(body)


def _head_lines(manifest: Manifest) -> Iterator[str]:
    yield VERSION.decode()
    yield f"partition {manifest.name}"
    yield f"cuts {manifest.cuts}"
    yield f"start {manifest.log_start}"
    for entry in manifest.epochs:
        yield f"epoch {entry.epoch} {entry.start_offset}"
    for base, size, next_offset, chain, sums in manifest.marks:
        texts = (NO_SUM, NO_SUM) if sums is None else tuple(f"{number:08x}" for number in sums)
        yield f"segment {base} {size} {next_offset} {chain:08x} {texts[0]} {texts[1]}"
    for removal in manifest.removals:
        yield f"remove {removal.base_offset} {removal.size} {removal.chain:08x}"


def render_flush(mark: Mark, head_sum: int) -> bytes:
    """Return the line of a flush; its checksum includes the head's, so it fits no other manifest."""
    text = f"flush {mark.base_offset} {mark.size} {mark.next_offset} {mark.chain:08x}".encode()
    return text + b" %08x\n" % crc32c(text, head_sum)


def read_manifest(fs: Fs, directory: str) -> Reading | None:
    """Read a partition's manifest; None without a file.

    Raises `CorruptFileError` where its head is damaged, `ForeignVersionError` where newer software wrote it.
    """
    path = f"{directory}/{MANIFEST_FILE}"
    return parse(read_file(fs, path)) if fs.exists(path) else None


def parse(data: bytes) -> Reading:
    """Parse the content of a manifest; errors as `read_manifest`."""
    body, mark, rest = data.partition(b"\nhead ")
    body += b"\n"
    # Before the version: a flipped bit in it would look like the work of newer software.
    if not mark or rest[:9] != b"%08x\n" % crc32c(body):
        raise CorruptFileError(f"{MANIFEST_FILE}: the checksum of its first part is wrong")
    # A correct checksum shows that the rest was written so, not that this program wrote it.
    try:
        version, *lines = body.decode().removesuffix("\n").split("\n")
        check_version(MANIFEST_FILE, version)
        manifest = _parse_head(lines)
    except (ValueError, IndexError, KeyError) as error:
        raise CorruptFileError(f"{MANIFEST_FILE}: a line of its first part cannot be read") from error
    return _parse_flushes(manifest, rest[9:], crc32c(body))


def _parse_head(lines: list[str]) -> Manifest:
    rows: dict[str, list[list[str]]] = {"epoch": [], "segment": [], "remove": []}
    for line in lines:
        word, *fields = line.split(" ")
        rows.setdefault(word, []).append(fields)
    marks = tuple(_parse_mark(fields) for fields in rows["segment"])
    if not marks:
        raise ValueError
    return Manifest(
        rows["partition"][0][0],
        int(rows["cuts"][0][0]),
        int(rows["start"][0][0]),
        tuple(EpochEntry(int(epoch), int(start)) for epoch, start in rows["epoch"]),
        marks,
        tuple(Removal(int(base), int(size), int(chain, 16)) for base, size, chain in rows["remove"]),
    )


def _parse_mark(fields: list[str]) -> Mark:
    base, size, next_offset, chain, *texts = fields
    sums = None if not texts or NO_SUM in texts else (int(texts[0], 16), int(texts[1], 16))
    return Mark(int(base), int(size), int(next_offset), int(chain, 16), sums)


def _parse_flush(fields: list[bytes]) -> Mark | None:
    try:
        return _parse_mark([field.decode() for field in fields])
    except ValueError:
        return None


def _parse_flushes(manifest: Manifest, data: bytes, head_sum: int) -> Reading:
    *lines, rest = data.split(b"\n")
    for number, line in enumerate(lines):
        text, _, checksum = line.rpartition(b" ")
        word, *fields = text.split(b" ")
        is_right = checksum == b"%08x" % crc32c(text, head_sum) and word == b"flush" and len(fields) == 4
        mark = _parse_flush(fields) if is_right else None
        # A line that has its end was written whole, so a wrong checksum is damage and no torn write; the
        # bytes that it vouched for are unknown.
        if mark is None or mark.base_offset != manifest.marks[-1].base_offset:
            fault = f"{MANIFEST_FILE}: the flush on line {number + 1} behind its first part is damaged"
            return Reading(manifest, fault)
        manifest = manifest.grown(mark)
    # A rest without its newline was torn by a crash: that flush never returned, so nothing relies on it.
    return Reading(manifest, "", bool(rest), len(lines), head_sum)


def _head_sum(head: bytes) -> int:
    return crc32c(head[: head.rindex(b"head ")])
