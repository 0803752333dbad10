"""Damage to the files of a stopped broker, by disks, people and restored backups; batches at a limit.

any file     bytes flipped, cut off, added, zeroed; removed; an older copy; the content of another file
a segment    a field of a batch's header changed, alone or with a right CRC
a text       a number changed by one, a line removed, doubled or exchanged with the next
a folder     unrelated files
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random

from crc32c import crc32c

from replog.sim.disks.disk import SimFs
from replog.store.files.errors import CorruptBatchError
from replog.store.files.fs import read_file
from replog.store.segments.batch import CRC_START, HEADER_BYTES, iterate_headers

FOLDER = "data"
STRAY = (
    "{:020d}.log",
    "{:020d}.index",
    "{:020d}.timeindex",
    "old.log",
    "partition.metadata",
    "log-manifest.tmp",
)
METADATA = b"version: 0\ntopic_id: abc\n"
ATTRIBUTES, LAST_DELTA, COUNT = 21, 23, 57
SNAPPY, MANY = 2, (1 << 30) - 1
Change = Callable[[bytes, Random], bytes]


def files_of(disk: SimFs, path: str = FOLDER) -> list[str]:
    """Return the paths of all files below a folder."""
    files: list[str] = []
    for name in disk.listdir(path) if disk.exists(path) else ():
        below = f"{path}/{name}"
        files += files_of(disk, below) if disk.is_dir(below) else [below]
    return files


def damage(disk: SimFs, random: Random, older: Mapping[str, bytes]) -> None:
    """Damage one file, durably; `older` are copies of an earlier time."""
    files = files_of(disk)
    if not files:
        return
    logs = [path for path in files if path.endswith(".log")]
    path = random.choice(logs if logs and random.random() < 0.45 else files)
    data, draw = read_file(disk, path), random.random()
    if draw < 0.1:
        disk.unlink(path)
        return
    if draw < 0.2:
        path = f"{path.rpartition('/')[0]}/{random.choice(STRAY).format(random.randrange(9))}"
        data = random.choice((read_file(disk, random.choice(files)), b"", METADATA))
    elif draw < 0.3:
        data = older.get(path, b"")
    elif draw < 0.36:
        data = read_file(disk, random.choice(files))
    else:
        changes = BATCHES if path.endswith(".log") else TEXTS if _is_text(data) else BYTES
        data = random.choice((*BYTES, *changes, *changes))(data, random)
    file = disk.create(path)
    file.append(data)
    file.fsync()


def _is_text(data: bytes) -> bool:
    return data.isascii() and b"\0" not in data


def _flip(data: bytes, random: Random) -> bytes:
    if not data:
        return b"x"
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _lengthen(data: bytes, random: Random) -> bytes:
    return data + data[-random.choice((1, 30, 200)) :]


def _zero(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + bytes(len(data) - at)


def _change_header(data: bytes, random: Random) -> bytes:
    """Change a byte of a batch's header; in half of the cases, make the CRC match."""
    try:
        places = [(position, header.size_bytes) for position, header in iterate_headers(data)]
    except CorruptBatchError:
        return _flip(data, random)
    if not places:
        return data
    position, size = random.choice(places)
    batch = bytearray(data[position : position + size])
    at = random.randrange(HEADER_BYTES)
    batch[at] ^= random.choice((1, 2, 1))
    if random.random() < 0.5:
        batch = bytearray(with_crc(bytes(batch)))
    return data[:position] + bytes(batch) + data[position + size :]


def _change_number(data: bytes, random: Random) -> bytes:
    numbers = list(re.finditer(rb"\d+", data))
    if not numbers:
        return data
    number = random.choice(numbers)
    beside = b"%d" % max(int(number[0]) + random.choice((1, -1)), 0)
    other = random.choice((beside, random.choice(numbers)[0]))
    return data[: number.start()] + other + data[number.end() :]


def _change_line(data: bytes, random: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = random.randrange(len(lines))
    others = random.choice(([], lines[at : at + 1] * 2, lines[at : at + 2][::-1]))
    return b"".join([*lines[:at], *others, *lines[at + max(len(others) - 1, 1) :]])


BYTES: tuple[Change, ...] = (_flip, _cut, _lengthen, _zero)
BATCHES: tuple[Change, ...] = (_change_header, _change_header)
TEXTS: tuple[Change, ...] = (_change_number, _change_number, _change_line)


def with_crc(batch: bytes) -> bytes:
    """Return a batch with a matching CRC."""
    return batch[: CRC_START - 4] + crc32c(batch[CRC_START:]).to_bytes(4, "big") + batch[CRC_START:]


def huge(batch: bytes) -> bytes:
    """Return a batch that claims a thousand million records, in a codec that is stored unread."""
    changed = bytearray(batch)
    changed[ATTRIBUTES + 1] |= SNAPPY
    changed[LAST_DELTA : LAST_DELTA + 4] = MANY.to_bytes(4, "big")
    changed[COUNT : COUNT + 4] = (MANY + 1).to_bytes(4, "big")
    return with_crc(bytes(changed))
