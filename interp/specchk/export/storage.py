"""Storage of a ledger or an export: a directory that the driver and all executors reach by the same name.

A file is either whole or not there: it is written under a name of its own, synced and renamed.  The machine's
own directories are here; those of other file systems (`hdfs:`, `s3:`, `gs:`) are in `arrow`.

A driver claims the directory before it reads or writes there (`native.claims`): by a lock, or by files
alone where the storage has no locks.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Protocol

from msgspec import Struct

from specchk.native.claims import claimed
from specchk.native.machine.memory import sync_folder, write_fully

Data = bytes | memoryview
ARROW_NAMES = MappingProxyType({"s3a": "s3", "s3n": "s3", "gcs": "gs"})  # schemes as Arrow names them


class Unwritable(Exception):
    """A file that cannot be written; the text gives its name and the reason."""


class Storage(Protocol):
    """Files by path below the ledger, with parts separated by `/`."""

    def write(self, path: str, parts: Iterable[Data]) -> None:
        """Write a file completely, replacing an existing one; after `Unwritable` the old one remains."""

    def open(self, path: str) -> BinaryIO:
        """A file open for reading, with `seek`; `OSError`, and `FileNotFoundError` if it does not exist."""

    def exists(self, path: str) -> bool:
        """Whether the file exists."""

    def size(self, path: str) -> int:
        """The size of a file in bytes; `OSError`."""

    def folders(self) -> list[str]:
        """The folders directly below the ledger."""

    def file_names(self, folder: str) -> list[str]:
        """The files in a folder, which need not exist, in order; `OSError`."""

    def remove(self, folder: str) -> None:
        """Remove a folder with all its contents, as far as possible."""

    def remove_file(self, path: str) -> None:
        """Remove a file; `OSError`."""

    def claim(self, purpose: str) -> AbstractContextManager[None]:
        """Claim the ledger for one driver alone; `Unusable` if another one has it."""

    def name_of(self, path: str) -> str:
        """The full name of a file, for display."""


def _new_file(path: Path, folder: str) -> BinaryIO:
    """A new file, open for writing; its folder is created if necessary."""
    try:
        return path.open("wb", buffering=0)
    except (FileNotFoundError, NotADirectoryError):  # a file in the place of a folder is named by `mkdir`
        Path(folder).mkdir(parents=True, exist_ok=True)
        return path.open("wb", buffering=0)


class LocalStorage(Struct, frozen=True):
    """A directory of this machine, or one that all machines have mounted.

    Without `durable`, files are not synced, since they need not survive a crash of the machine.
    """

    root: Path
    durable: bool = True

    def write(self, path: str, parts: Iterable[Data]) -> None:
        """See `Storage`."""
        # Joined as texts: steps from `Path` to `Path` take as long as writing a small slice.
        target = f"{self.root}/{path}"
        folder, _, name = target.rpartition("/")
        # A name that no other attempt has: a speculative copy of the task may be writing the same slice.
        draft = Path(f"{folder}/.{name}.{uuid.uuid4().hex}")
        try:
            with _new_file(draft, folder) as file:
                for part in parts:
                    write_fully(file.fileno(), part)
                if self.durable:
                    os.fsync(file.fileno())
            # Replaces what another attempt may have written, which has the same states.
            draft.replace(target)
            if self.durable:
                self._sync_names(Path(folder))
        except OSError as error:
            raise Unwritable(f"{target}: {error.strerror or error}") from error
        finally:
            # After the rename there is no draft; after a failure it may be what filled the disk.
            with suppress(OSError):
                draft.unlink()

    def _sync_names(self, folder: Path) -> None:
        """Flush a new file's name to the disk, and those of the folders created for it."""
        for place in (folder, *folder.parents):
            sync_folder(place)
            if place == self.root:
                return

    def open(self, path: str) -> BinaryIO:
        """See `Storage`."""
        return Path(f"{self.root}/{path}").open("rb", buffering=0)

    def exists(self, path: str) -> bool:
        """See `Storage`."""
        return Path(f"{self.root}/{path}").exists()

    def size(self, path: str) -> int:
        """See `Storage`."""
        return (self.root / path).stat().st_size

    def folders(self) -> list[str]:
        """See `Storage`."""
        return sorted(entry.name for entry in self.root.iterdir() if entry.is_dir())

    def file_names(self, folder: str) -> list[str]:
        """See `Storage`."""
        place = self.root / folder
        return sorted(entry.name for entry in place.iterdir() if entry.is_file()) if place.exists() else []

    def remove(self, folder: str) -> None:
        """See `Storage`."""
        shutil.rmtree(self.root / folder, ignore_errors=True)

    def remove_file(self, path: str) -> None:
        """See `Storage`."""
        (self.root / path).unlink()

    def claim(self, purpose: str) -> AbstractContextManager[None]:
        """See `Storage`."""
        return claimed(self.root, purpose)

    def name_of(self, path: str) -> str:
        """See `Storage`."""
        return str(self.root / path)
