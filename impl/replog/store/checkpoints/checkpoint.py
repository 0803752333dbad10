"""Kafka's checkpoint files: small text files, replaced whole and durably.

    leader-epoch-checkpoint          replication-offset-checkpoint      .kafka_cleanshutdown
    0              version           0              version             {"version":0,"brokerEpoch":7}
    2              entries           1              entries
    0 0            epoch, start      orders 3 41    topic, partition,   partition.metadata
    4 120                                           offset              version: 0
                                                                        topic_id: AAAAAAAAAAAAAAAAAAAAAA

A reader takes an empty file as no entries, and anything else that is not exactly this as an error with the
file's name and line: another version is `ForeignVersionError` (never overwritten: newer software wrote it),
the rest is `CorruptFileError`. What to do about it is the caller's decision (`directory.py`,
`partition.py`).
"""

import json
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from replog.store.files.errors import CorruptFileError, ForeignVersionError
from replog.store.files.fs import Fs, read_file, replace_file

EPOCH_FILE = "leader-epoch-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
METADATA_FILE = "partition.metadata"

VERSION = 0
MAX_NUMBER = (1 << 63) - 1
TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")

PARTITION_NAME = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")

TopicPartition = tuple[str, int]


def parse_partition_name(name: str) -> TopicPartition | None:
    """Split `orders-3` into its topic and partition; None if it is not the name of a partition."""
    match = PARTITION_NAME.fullmatch(name)
    return None if match is None else (match[1], int(match[2]))


class EpochEntry(NamedTuple):
    """A leader epoch and the offset at which its leader started."""

    epoch: int
    start_offset: int


def write_epochs(fs: Fs, directory: str, entries: Iterable[EpochEntry]) -> None:
    """Replace the partition's epoch checkpoint, durably."""
    replace_file(fs, directory, EPOCH_FILE, _render(f"{e.epoch} {e.start_offset}" for e in entries))


def read_epochs(fs: Fs, directory: str) -> tuple[EpochEntry, ...] | None:
    """Read the epoch checkpoint; None without a file. Both fields must strictly increase."""
    rows = _read_rows(fs, directory, EPOCH_FILE, fields=2)
    if rows is None:
        return None
    entries = tuple(
        EpochEntry(_number(EPOCH_FILE, line, epoch), _number(EPOCH_FILE, line, start))
        for line, (epoch, start) in enumerate(rows, 3)
    )
    for line, (before, after) in enumerate(pairwise(entries), 4):
        if before.epoch >= after.epoch or before.start_offset >= after.start_offset:
            raise CorruptFileError(f"{EPOCH_FILE}: line {line}: epochs and offsets must increase")
    return entries


def render_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Return the content of an offset checkpoint, in sorted order."""
    rows = (f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))
    return _render(rows)


def read_offsets(fs: Fs, directory: str, name: str) -> dict[TopicPartition, int]:
    """Read an offset checkpoint; a missing file has no entries."""
    offsets: dict[TopicPartition, int] = {}
    for line, (topic, partition, offset) in enumerate(_read_rows(fs, directory, name, fields=3) or (), 3):
        key = topic, _number(name, line, partition)
        if key in offsets:
            raise CorruptFileError(f"{name}: line {line}: {topic}-{partition} is listed twice")
        offsets[key] = _number(name, line, offset)
    return offsets


def render_clean_shutdown(broker_epoch: int) -> bytes:
    """Return the content of the marker that lets the next start skip recovery."""
    return json.dumps({"version": VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def read_clean_shutdown(fs: Fs, directory: str) -> int | None:
    """Return the marker's broker epoch, -1 for an empty (old) marker, None if there is no marker."""
    path = f"{directory}/{CLEAN_SHUTDOWN_FILE}"
    if not fs.exists(path):
        return None
    text = _decode(CLEAN_SHUTDOWN_FILE, read_file(fs, path))
    if not text.strip():
        return -1
    try:
        marker = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"{CLEAN_SHUTDOWN_FILE}: not JSON: {error}") from error
    # By its type: to `isinstance` a bool is an int, and `true` would be an epoch.
    if not isinstance(marker, dict) or type(marker.get("brokerEpoch")) is not int:
        raise CorruptFileError(f"{CLEAN_SHUTDOWN_FILE}: no brokerEpoch")
    check_version(CLEAN_SHUTDOWN_FILE, str(marker.get("version")))
    return int(marker["brokerEpoch"])


def read_metadata(fs: Fs, directory: str) -> str | None:
    """Return the topic id, or None without a file."""
    path = f"{directory}/{METADATA_FILE}"
    if not fs.exists(path):
        return None
    fields = dict(
        [*line.split(": ", 1), ""][:2] for line in _decode(METADATA_FILE, read_file(fs, path)).split("\n")
    )
    check_version(METADATA_FILE, fields.get("version", ""))
    topic_id = fields.get("topic_id", "")
    if not TOPIC_ID.fullmatch(topic_id):
        raise CorruptFileError(f"{METADATA_FILE}: no topic_id of 22 characters")
    return topic_id


def _render(rows: Iterable[str]) -> bytes:
    lines = list(rows)
    return "\n".join([str(VERSION), str(len(lines)), *lines, ""]).encode()


def _read_rows(fs: Fs, directory: str, name: str, fields: int) -> list[list[str]] | None:
    """Split a checkpoint into rows of `fields` words, checking version, count and shape."""
    path = f"{directory}/{name}"
    if not fs.exists(path):
        return None
    lines = _decode(name, read_file(fs, path)).split("\n")
    # An empty file has no entries, as in Kafka (W5).
    if lines == [""]:
        return []
    check_version(name, lines[0])
    # The last line could be a number that was cut short, and would still parse.
    if lines[-1] != "":
        raise CorruptFileError(f"{name}: line {len(lines)}: cut off (no newline at the end)")
    rows = [line.split(" ") for line in lines[2:-1]]
    # The only redundancy of the format: it shows lines that are missing, if no digit that is wrong.
    count = _number(name, 2, lines[1]) if len(lines) > 2 else -1
    if count != len(rows):
        raise CorruptFileError(f"{name}: line 2: {lines[1]!r} entries announced, {len(rows)} found")
    for line, row in enumerate(rows, 3):
        if len(row) != fields:
            raise CorruptFileError(f"{name}: line {line}: {fields} fields expected, {len(row)} found")
    return rows


def check_version(name: str, text: str) -> None:
    """Raise `ForeignVersionError` for another version, `CorruptFileError` for an invalid version."""
    if text == str(VERSION):
        return
    # A number that is another version is the work of newer software, and must survive; noise is damage.
    if text.isascii() and text.isdecimal():
        raise ForeignVersionError(f"{name}: version {text} is not supported (only {VERSION})")
    raise CorruptFileError(f"{name}: {text[:40]!r} is not a version")


def _number(name: str, line: int, text: str) -> int:
    # int() alone takes signs, spaces, underscores and digits of other scripts, none of which Kafka writes.
    if text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= MAX_NUMBER:
        return int(text)
    raise CorruptFileError(f"{name}: line {line}: {text[:40]!r} is not an offset, epoch or count")


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"{name}: not text: {error}") from error
