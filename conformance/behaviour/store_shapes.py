"""Runs of the store on small files in every shape, and on batches in every shape.

    starts    a log directory whose text files are, one at a time, missing, empty, cut, doubled, renumbered,
              or of another program
    batches   any batch of a producer: any byte changed under a right CRC, records packed by a codec, batches
              larger than one read

Walks of the store damage files, too, but a shape that only one file gives a meaning to is rare there.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from random import Random

from file_damage import ATTRIBUTES, COUNT, LAST_DELTA, files_of, with_crc
from store_walks import FOLDER, StoreWalk

from replog.dump import Dump
from replog.store.files.config import LogConfig
from replog.store.files.fs import read_file
from replog.store.segments.batch import HEADER_BYTES, LENGTH_START
from replog.store.segments.records import ProducerFields, Record, encode_batch

BINARY = (".log", ".index", ".timeindex")
FOREIGN = (
    b"", b"\n", b"0\n", b"1\n0\n", b"0\n0\n", b"0\n1\n", b"0\n-1\n", b"\xff\xfe", b"[]", b"{}", b"null",
    b'{"version":0,"brokerEpoch":7}', b'{"version":1,"brokerEpoch":7}', b'{"version":0,"brokerEpoch":true}',
    b'{"version":0,"brokerEpoch":"7"}', b"{" * 5_000, b"version: 0\ntopic_id: abc\n", b"version: 1\n",
)  # fmt: skip
LARGE_BYTES = (1 << 20) + 99
CODECS = range(1, 8)


class ShapesWalk(StoreWalk):
    """A walk that ends with one start for each shape of each text file."""

    def run(self, actions: int) -> None:
        """Fill a directory by this many actions, and start on every shape of it."""
        ways = (StoreWalk._append, StoreWalk._append, StoreWalk._follow, StoreWalk._store_epochs,
                StoreWalk._checkpoint, StoreWalk._flush, StoreWalk._advance)  # fmt: skip
        self._open()
        for _ in range(actions):
            self.watch.step("a directory is filled")
            if self.directory is None:
                self._open()
            else:
                self.random.choice(ways)(self)
        (self._stop if self.directory is not None and self.random.random() < 0.5 else self._leave)()
        before = self.disk.snapshot()
        for path in files_of(self.disk):
            if path.endswith(BINARY):
                continue
            for what, data in shapes(read_file(self.disk, path), self.random):
                self.watch.step(f"{path} is {what}")
                self._put(path, data)
                self._open()
                self._leave()
                self.disk.restore(before)

    def _put(self, path: str, data: bytes | None) -> None:
        """Replace a file, durably; None removes it."""
        if data is None:
            self.disk.unlink(path)
            return
        file = self.disk.create(path)
        file.append(data)
        file.fsync()


def shapes(data: bytes, random: Random) -> Iterator[tuple[str, bytes | None]]:
    """Return shapes of a text file, each with a description."""
    yield "missing", None
    for number, text in enumerate(FOREIGN):
        yield f"another text, number {number}", text
    yield "cut by a byte", data[:-1]
    yield "without its first byte", data[1:]
    lines = data.splitlines(keepends=True)
    for at in range(min(len(lines), 8)):
        yield f"without line {at}", b"".join(lines[:at] + lines[at + 1 :])
        yield f"with line {at} twice", b"".join(lines[:at] + lines[at : at + 1] + lines[at:])
        yield f"with a word more in line {at}", b"".join([*lines[:at], b"1 ", *lines[at:]])
    numbers = list(re.finditer(rb"\d+", data))
    for place in random.sample(numbers, min(len(numbers), 10)):
        here, there = data[: place.start()], data[place.end() :]
        others = [other[0] for other in random.sample(numbers, min(len(numbers), 2))]
        # Not a set: its order is another in each process.
        for digits in dict.fromkeys((*others, b"%d" % (int(place[0]) + 1), b"9" * 20, b"-1", b"x")):
            yield f"with {digits.decode()} at {place.start()}", here + digits + there


class BatchesWalk(StoreWalk):
    """A walk that appends batches in every shape, reads them back, and dumps what was accepted."""

    def run(self, actions: int) -> None:
        """Append the batches, after this many actions."""
        StoreWalk.run(self, actions)
        self.config = LogConfig(max_batch_bytes=2 * LARGE_BYTES, segment_bytes=8 * LARGE_BYTES)
        self._open()
        producer = self.random.choice((ProducerFields(), ProducerFields(7, 0, 3)))
        headers = (("h", b"1"), ("n", None))
        records = [Record(b"value" * 3, b"k", 1_000, headers=headers), Record(None, None, 990)]
        plain, large = (
            encode_batch(records, producer),
            encode_batch([Record(b"v" * LARGE_BYTES, None, 1_000)]),
        )
        shown = [*changed(plain, self.random), *packed(plain), plain + plain, plain[:-1], large, plain]
        for number, batch in enumerate(shown):
            self.watch.step(f"batch {number}")
            self._with_log("append", lambda log, batch=batch: tuple(log.append_as_leader(batch, 1)))
        self._with_log("read", lambda log: log.read(log.log_start, 400))
        self._leave()
        for is_deep in (False, True):
            self.watch.step("a dump of what was accepted")
            dump = Dump(True, is_deep, self.disk)
            self._answer("dump", lambda dump=dump: tuple(dump.lines(FOLDER)))
        self.watch.step("a start with what was accepted")
        self._open()
        self._leave()


def changed(batch: bytes, random: Random) -> Iterator[bytes]:
    """Return a batch with each of its bytes changed, by one bit, under a CRC that fits."""
    for at in range(len(batch)):
        spoiled = bytearray(batch)
        spoiled[at] ^= 1 << random.randrange(8)
        yield with_crc(bytes(spoiled))


def packed(batch: bytes) -> Iterator[bytes]:
    """Return a batch with its records packed by each codec, correctly and not, or with other records."""
    body = batch[HEADER_BYTES:]
    squeezed = gzip.compress(body, mtime=0)
    for codec in CODECS:
        for content in (body, squeezed, squeezed[:-4], squeezed + b"x", gzip.compress(body[:-1], mtime=0)):
            yield resized(batch, content, codec)
    for content in (b"", body[:-1], body + b"\0", body + body, b"\xff" * 20, b"\x01" + body[1:]):
        yield resized(batch, content, 0)
    yield resized(batch, body, 0, count=0)
    yield resized(batch, body, 0, count=1)
    yield resized(batch, body + body, 0, count=4)


def resized(batch: bytes, body: bytes, codec: int, count: int | None = None) -> bytes:
    """Return a batch with another body, and with matching length, codec and count."""
    made = bytearray(batch[:HEADER_BYTES] + body)
    made[8:LENGTH_START] = (len(made) - LENGTH_START).to_bytes(4, "big")
    made[ATTRIBUTES + 1] |= codec
    if count is not None:
        made[LAST_DELTA : LAST_DELTA + 4] = max(count - 1, 0).to_bytes(4, "big")
        made[COUNT : COUNT + 4] = count.to_bytes(4, "big")
    return with_crc(bytes(made))
