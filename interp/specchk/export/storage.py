"""Storage of a ledger or an export: a directory that the driver and all executors reach by the same name.

A file is either whole or not there: it is written under a name of its own, synced and renamed.  Plain
paths and `file:` are the machine's own, and here; any other scheme (`hdfs:`, `s3:`, `gs:`) is in `arrow`.

A driver claims the directory before it reads or writes there (`native.claims`): by a lock, or by files
alone where the storage has no locks.
"""

from __future__ import annotations

import os
import shutil
import socket
import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from specchk.native.claims import claimed
from specchk.native.machine.memory import sync_folder, write_fully
from specchk.search.engine import Unusable

Data = bytes | memoryview
CONNECT_S = 5.0  # seconds for a connection to a store
ARROW_NAMES = MappingProxyType({"s3a": "s3", "s3n": "s3", "gcs": "gs"})
# For each object store, the variables that name another endpoint, and its own endpoint.
_STORES = MappingProxyType({
    "s3": (("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), "s3.amazonaws.com"),
    "gs": (("STORAGE_EMULATOR_HOST", "CLOUD_STORAGE_EMULATOR_ENDPOINT"), "storage.googleapis.com"),
})  # fmt: skip


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


def storage_at(place: str, *, durable: bool = True) -> Storage:
    """The storage of a path or URI; `Unusable` for an unsupported scheme."""
    path = local_path(place)
    if path is not None:
        return LocalStorage(path, durable)
    try:
        # By name: pyarrow takes 27 MB, which an executor with a path does not need.
        storage: Storage = import_module("specchk.export.arrow").storage_of(place)
        return storage
    except OSError as error:
        raise Unusable(f"{place}: {error}") from error


def answering(place: str) -> Storage:
    """As `storage_at`; `Unusable` also if its host accepts no connection."""
    require_answer(place)
    return storage_at(place)


def local_path(place: str) -> Path | None:
    """The path of a place on this machine, plain or `file:`; None for a place in another file system."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(place) if len(parts.scheme) <= 1 else None  # a path, or a drive letter


def require_answer(place: str) -> None:
    """Raise `Unusable` if the host of a URI accepts no connection; its client might retry for minutes."""
    address = _address_of(place)
    if address is None:
        return
    try:
        socket.create_connection(address, CONNECT_S).close()
    except OSError as error:
        host, port = address
        reason = error.strerror or error
        raise Unusable(
            f"{place} cannot be reached from {socket.gethostname()} ({host}:{port}: {reason})"
        ) from error


def _address_of(place: str) -> tuple[str, int] | None:
    """The host and port that serve a URI, if known."""
    parts = urlsplit(place)
    default = _STORES.get(ARROW_NAMES.get(parts.scheme, parts.scheme))
    if default is None:
        # Without a port it is a name that only Hadoop's configuration knows.
        is_known = parts.scheme == "hdfs" and parts.hostname and parts.port
        return (parts.hostname or "", parts.port or 0) if is_known else None
    variables, host = default
    chosen = next((os.environ[name] for name in variables if os.environ.get(name)), f"https://{host}")
    endpoint = urlsplit(chosen if "://" in chosen else f"//{chosen}")
    return endpoint.hostname or host, endpoint.port or (80 if endpoint.scheme == "http" else 443)


def as_all_name_it(place: str) -> str:
    """A path or URI independent of the process's directory, since executors have another one."""
    return str(Path(place).absolute()) if len(urlsplit(place).scheme) <= 1 else place
