"""The files at the top of a log directory: checkpoints with checksums in the registry, and what to open.

Reading reports errors and changes nothing; writing records the checksums first (`registry.py`).

Not here: what to do about a file without its checksum (`directory.py`), and which numbers to write.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TypeVar

from replog.store.checkpoints import checkpoint
from replog.store.checkpoints.checkpoint import TopicPartition, parse_partition_name
from replog.store.checkpoints.manifest import MANIFEST_FILE
from replog.store.checkpoints.registry import (
    NOTHING,
    REGISTRY_FILE,
    Known,
    Registry,
    read_registry,
)
from replog.store.files.errors import CorruptFileError, StoreError
from replog.store.files.findings import OpenPoint
from replog.store.files.fs import Fs, read_file, replace_file

T = TypeVar("T")

LOCK_FILE = ".lock"
DELETE_SUFFIX = "-delete"
"""As Kafka's: the end of the name of a folder that is being deleted."""
LONGEST_NAME = 255  # bytes, in the file systems that matter; a topic has only one-byte characters
OFFSET_FILES = (checkpoint.HIGH_WATERMARK_FILE, checkpoint.RECOVERY_POINT_FILE, checkpoint.LOG_START_FILE)
OWN_FILES = LOCK_FILE, checkpoint.CLEAN_SHUTDOWN_FILE, REGISTRY_FILE, *OFFSET_FILES


class Root:
    """The top of one log directory; created without reading any file."""

    __slots__ = ("_fs", "path", "registry")

    def __init__(self, fs: Fs, path: str) -> None:
        self._fs = fs
        self.path = path
        self.registry = Registry()

    def is_bare(self) -> bool:
        """Return whether no program has used the directory yet, so that its logs were imported."""
        if not set(OWN_FILES).isdisjoint(self._fs.listdir(self.path)):
            return False
        paths = (self.partition_path(key) for key in self.partitions())
        return not any(self._fs.exists(f"{path}/{MANIFEST_FILE}") for path in paths)

    def partition_path(self, key: TopicPartition) -> str:
        """Return the path of a partition's folder."""
        return f"{self.path}/{key[0]}-{key[1]}"

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have a folder, in order of name."""
        named = ((name, parse_partition_name(name)) for name in self._fs.listdir(self.path))
        return [key for name, key in named if key is not None and self._fs.is_dir(f"{self.path}/{name}")]

    def retired(self) -> list[str]:
        """Return the names of folders whose deletion is unfinished."""
        return [name for name in self._fs.listdir(self.path) if self._is_retired(name)]

    def _is_retired(self, name: str) -> bool:
        # Exactly as `retire` writes it. Any other name with this ending is not from this program.
        partition, _, number = name.removesuffix(DELETE_SUFFIX).rpartition(".")
        is_name = name.endswith(DELETE_SUFFIX) and number.isalnum() and parse_partition_name(partition)
        return bool(is_name) and self._fs.is_dir(f"{self.path}/{name}")

    def retire(self, key: TopicPartition) -> str:
        """Rename a partition's folder, durably, to a name that no partition has; return this name."""
        # Cut as by Kafka: the longest topic's folder has no room for a suffix in its name.
        ends = (f"-{key[1]}.{number}{DELETE_SUFFIX}" for number in count())
        names = (f"{key[0][: LONGEST_NAME - len(end)]}{end}" for end in ends)
        name = next(name for name in names if not self._fs.exists(f"{self.path}/{name}"))
        self._fs.rename(self.partition_path(key), f"{self.path}/{name}")
        # Else a power loss could bring back the old name with only some of the files.
        self._fs.fsync_dir(self.path)
        return name

    def clear(self, name: str) -> None:
        """Remove a retired folder."""
        for file in self._fs.listdir(f"{self.path}/{name}"):
            self._fs.unlink(f"{self.path}/{name}/{file}")
        self._fs.rmdir(f"{self.path}/{name}")

    def missing_partitions(self) -> list[TopicPartition]:
        """Return the registered partitions without a folder."""
        return sorted(self.registry.partitions.keys() - set(self.partitions()))

    def load_registry(self) -> bool:
        """Read the registry; return whether there is one. Raises the errors of `read_registry`.

        Without one, partitions without a folder are those that the checkpoints have: their loss must not go
        unnoticed.
        """
        self.registry = Registry()
        try:
            registry = read_registry(self._fs, self.path)
        except CorruptFileError:
            self.registry.partitions |= self._lost()
            raise
        if registry is None:
            self.registry.partitions |= self._lost()
            return False
        self.registry = registry
        return True

    def _lost(self) -> dict[TopicPartition, Known]:
        """Return the partitions that checkpoints have and no folder, with their synced offsets."""
        points: dict[TopicPartition, int] = {}
        for name in OFFSET_FILES:
            with suppress(StoreError):
                offsets = checkpoint.read_offsets(self._fs, self.path, name=name)
                is_point = name == checkpoint.RECOVERY_POINT_FILE
                points |= {key: offset if is_point else points.get(key, 0) for key, offset in offsets.items()}
        there = set(self.partitions())
        return {key: Known(recovery_point=point) for key, point in points.items() if key not in there}

    def read(self, name: str, read: Callable[[Fs, str], T], default: T) -> T:
        """Read a file with the reader of its format, or return the default if there is none.

        Raises `ForeignVersionError`, and `CorruptFileError` also for content that was not written last.
        """
        path = f"{self.path}/{name}"
        if not self._fs.exists(path):
            return default
        # The format first: another version must be refused as such, not reported as a wrong checksum.
        value = read(self._fs, self.path)
        if not self.registry.vouches_for(name, read_file(self._fs, path)):
            raise CorruptFileError(f"{name}: its content is not the one written last")
        return value

    def read_offsets(self, name: str) -> dict[TopicPartition, int]:
        """Read an offset checkpoint, like `read`."""
        return self.read(name, partial(checkpoint.read_offsets, name=name), {})

    def write_offsets(self, checkpoints: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        """Replace offset checkpoints, durably, and the registry."""
        self.write({name: checkpoint.render_offsets(offsets) for name, offsets in checkpoints.items()})

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Replace files, durably, after the registry has their checksums; raises `OSError`."""
        # Either the write before this one has succeeded, or a start has just read which of its two contents
        # each file has: from here on the other one would be a copy that was put back.
        self.registry.settle()
        for name, content in contents.items():
            self.registry.expect(name, content)
        # The checksums first. A crash after this line finds either content vouched for; in the other order it
        # would find a new file that nothing vouches for, and discard it.
        self.registry.save(self._fs, self.path)
        for name, content in contents.items():
            replace_file(self._fs, self.path, name, content)

    def forget(self, name: str) -> None:
        """Remove the checksums of a file from the registry, durably."""
        if self.registry.sums.pop(name, None) is not None:
            self.registry.save(self._fs, self.path)

    def recovery_points(self) -> dict[TopicPartition, int]:
        """Return the recovery points that the registry has."""
        return {key: known.recovery_point for key, known in self.registry.partitions.items()}

    def was_stopped_cleanly(self) -> bool:
        """Return whether there is a marker with its checksum; raises `ForeignVersionError`."""
        try:
            return self.read(checkpoint.CLEAN_SHUTDOWN_FILE, checkpoint.read_clean_shutdown, None) is not None
        except CorruptFileError:
            return False

    def point_of(self, key: TopicPartition, was_clean: bool, is_bare: bool) -> OpenPoint:
        """Return the known facts about a partition, for a caller that reads all of it."""
        known = self.registry.partitions.get(key)
        cuts, recovery_point = known or NOTHING
        may_adopt = is_bare and known is None
        return OpenPoint(recovery_point, 0, was_clean, cuts, known is not None, may_adopt, reads_all=True)
