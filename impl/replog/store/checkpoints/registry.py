"""`directory-manifest`: the partitions of a log directory, and the checksums of its checkpoints.

    0                                                        version
    partition orders-0 2 41                                  how often its log was cut, and synced to where
    file replication-offset-checkpoint 9ae0daaf 77073096     CRC-32C of the last content, and the one before
    head 1b2c3d4e                                            CRC-32C of all above

Kafka's checkpoint files have no checksums, and a flipped digit is a number too. So theirs are kept here.
This file is replaced before they are, and has the checksums of both contents: a crash in between leaves
checkpoints that are vouched for. One that is not was damaged, or is an old copy, and its safe default is
taken (`directory.py`).

A partition that is listed must be there, with a manifest that was cut as often, or more often. If it was cut
as often, its log must reach the recovery point here; each cut lowers both numbers in one write.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from crc32c import crc32c

from replog.store.checkpoints.checkpoint import TopicPartition, check_version, parse_partition_name
from replog.store.files.errors import CorruptFileError
from replog.store.files.fs import Fs, read_file, replace_file

REGISTRY_FILE = "directory-manifest"
VERSION = "0"


class Known(NamedTuple):
    """The registry's entry of a partition: how often it was truncated, and its recovery point."""

    cuts: int = 0
    recovery_point: int = 0


NOTHING = Known()


@dataclass(slots=True)
class Registry:
    """The content: the partitions, and the valid checksums of each file."""

    partitions: dict[TopicPartition, Known] = field(default_factory=dict)
    sums: dict[str, tuple[int, ...]] = field(default_factory=dict)
    saved: bytes = b""

    def vouches_for(self, name: str, data: bytes) -> bool:
        """Return whether a file's content is a written one; if so, it becomes the only valid one."""
        actual = crc32c(data)
        if actual not in self.sums.get(name, ()):
            return False
        # From now on an older content under this name is a file that was put back, not one a crash left.
        self.sums[name] = (actual,)
        return True

    def expect(self, name: str, data: bytes) -> None:
        """Record the next content of a file; its present content stays valid until it is replaced."""
        # Both contents are right until the file is replaced, since a crash may come before or after its
        # rename.
        self.sums[name] = (crc32c(data), *self.sums.get(name, ())[:1])

    def settle(self) -> None:
        """Record that all files have their expected content."""
        self.sums = {name: sums[:1] for name, sums in self.sums.items()}

    def save(self, fs: Fs, directory: str) -> None:
        """Replace the file, durably, unless its content is the same."""
        lines = [VERSION]
        for (topic, number), known in sorted(self.partitions.items()):
            lines.append(f"partition {topic}-{number} {known.cuts} {known.recovery_point}")
        for name, sums in sorted(self.sums.items()):
            lines.append(" ".join(["file", name, *(f"{checksum:08x}" for checksum in sums)]))
        body = "".join(f"{line}\n" for line in lines).encode()
        if body != self.saved:
            # If the replacement fails, the next save must write again.
            self.saved = b""
            replace_file(fs, directory, REGISTRY_FILE, body + b"head %08x\n" % crc32c(body))
            self.saved = body


def read_registry(fs: Fs, directory: str) -> Registry | None:
    """Read the file; None if there is none.

    Raises `CorruptFileError` for a wrong checksum, `ForeignVersionError` for another version.
    """
    path = f"{directory}/{REGISTRY_FILE}"
    if not fs.exists(path):
        return None
    body, _, rest = read_file(fs, path).partition(b"head ")
    if rest != b"%08x\n" % crc32c(body):
        raise CorruptFileError(f"{REGISTRY_FILE}: its checksum is wrong")
    # A correct checksum shows that the rest was written so, not that this program wrote it.
    try:
        version, *lines = body.decode().removesuffix("\n").split("\n")
        check_version(REGISTRY_FILE, version)
        return _parse(lines, body)
    except (ValueError, TypeError) as error:
        raise CorruptFileError(f"{REGISTRY_FILE}: a line of it cannot be read") from error


def _parse(lines: list[str], body: bytes) -> Registry:
    registry = Registry(saved=body)
    for line in lines:
        word, name, *numbers = line.split(" ")
        key = parse_partition_name(name)
        if word == "partition" and key is not None:
            registry.partitions[key] = Known(*map(int, numbers))
        elif word == "file":
            registry.sums[name] = tuple(int(number, 16) for number in numbers)
    return registry
