"""Where the ledger is: a directory that the driver and all executors reach under one name.

A file is either whole or not there: it is written under a name of its own, synced and renamed.  Plain
paths and `file:` are the machine's own; any other scheme (`hdfs:`, `s3:`, `gs:`) goes through
`pyarrow.fs`, where renaming a file is as atomic as the store makes it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from specchk.native.checkpoint import Unusable
from specchk.native.memory import write_fully

Data = bytes | memoryview


class Storage(Protocol):
    """Files by their path below the ledger, parts separated by `/`."""

    def write(self, path: str, parts: Iterable[Data]) -> None:
        """Make a file, whole, in place of what may be there; `OSError` leaves that."""

    def open(self, path: str) -> BinaryIO:
        """A file to read, with `seek`; `FileNotFoundError`."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A directory of this machine, or one that all machines have mounted.

    Without `durable` files are not synced: for what need not outlive the machine's next crash.
    """

    root: Path
    durable: bool = True

    def write(self, path: str, parts: Iterable[Data]) -> None:
        """See `Storage`."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            with draft.open("wb", buffering=0) as file:
                for part in parts:
                    write_fully(file.fileno(), part)
                if self.durable:
                    os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    def open(self, path: str) -> BinaryIO:
        """See `Storage`."""
        return (self.root / path).open("rb", buffering=0)

    def exists(self, path: str) -> bool:
        """See `Storage`."""
        return (self.root / path).exists()


@dataclass(frozen=True, slots=True)
class ArrowStorage:
    """A directory of a file system that pyarrow knows."""

    system: Any
    root: str

    def write(self, path: str, parts: Iterable[Data]) -> None:
        """See `Storage`."""
        target = f"{self.root}/{path}"
        folder, name = target.rsplit("/", 1)
        self.system.create_dir(folder, recursive=True)
        draft = f"{folder}/.{name}.{uuid.uuid4().hex}"
        with self.system.open_output_stream(draft) as file:
            for part in parts:
                file.write(part)
        self.system.move(draft, target)

    def open(self, path: str) -> BinaryIO:
        """See `Storage`."""
        return self.system.open_input_file(f"{self.root}/{path}")  # type: ignore[no-any-return]

    def exists(self, path: str) -> bool:
        """See `Storage`."""
        found = self.system.get_file_info(f"{self.root}/{path}")
        return bool(found.type != fs.FileType.NotFound)


def storage_at(place: str, *, durable: bool = True) -> Storage:
    """The storage of a path or URI; `Unusable` for a scheme that nothing here knows."""
    parts = urlsplit(place)
    if len(parts.scheme) <= 1:  # a path, or a drive letter
        return LocalStorage(Path(place), durable)
    if parts.scheme == "file":
        return LocalStorage(Path(unquote(parts.path)), durable)
    try:
        system, root = fs.FileSystem.from_uri(place)
    except (ValueError, OSError) as error:
        raise Unusable(f"{place}: {error}") from error
    return ArrowStorage(system, root)
