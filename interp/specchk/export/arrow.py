"""Storage accessible by `pyarrow.fs`: object stores and Hadoop file systems.

Renaming a file is as atomic there as the store makes it.  `s3a:`, Hadoop's name, is `s3:`.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from types import MappingProxyType
from typing import Any, BinaryIO

from msgspec import Struct
from pyarrow import fs

from specchk.export.storage import ARROW_NAMES, Data, Unwritable
from specchk.native.claims import BidFolder, bid

_HADOOP = "; it needs Hadoop's client: HADOOP_HOME, CLASSPATH (`hadoop classpath --glob`) and JAVA_HOME"
_NEEDS = MappingProxyType({"hdfs": _HADOOP, "viewfs": _HADOOP})


class ArrowStorage(Struct, frozen=True):
    """A directory of a file system that pyarrow supports."""

    system: Any
    root: str

    def write(self, path: str, parts: Iterable[Data]) -> None:
        """See `Storage`."""
        target = f"{self.root}/{path}"
        folder, name = target.rsplit("/", 1)
        # As in `LocalStorage`: no two attempts write under one name.
        draft = f"{folder}/.{name}.{uuid.uuid4().hex}"
        try:
            self.system.create_dir(folder, recursive=True)
            with self.system.open_output_stream(draft) as file:
                for part in parts:
                    file.write(part)
            # As atomic as the store makes it; a slice that is cut short is detected by its checksums in any
            # case.
            self.system.move(draft, target)
        except OSError as error:
            with suppress(OSError):
                self.system.delete_file(draft)
            raise Unwritable(f"{target}: {error.strerror or error}") from error

    def open(self, path: str) -> BinaryIO:
        """See `Storage`."""
        return self.system.open_input_file(f"{self.root}/{path}")  # type: ignore[no-any-return]

    def exists(self, path: str) -> bool:
        """See `Storage`."""
        info = self.system.get_file_info(f"{self.root}/{path}")
        return bool(info.type != fs.FileType.NotFound)

    def size(self, path: str) -> int:
        """See `Storage`."""
        info = self.system.get_file_info(f"{self.root}/{path}")
        if info.type != fs.FileType.File:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.name_of(path))
        return int(info.size)

    def folders(self) -> list[str]:
        """See `Storage`."""
        return [info.base_name for info in self._below("") if info.type == fs.FileType.Directory]

    def remove(self, folder: str) -> None:
        """See `Storage`."""
        with suppress(OSError):
            self.system.delete_dir(f"{self.root}/{folder}".rstrip("/"))

    def claim(self, purpose: str) -> AbstractContextManager[None]:
        """See `Storage`."""
        return bid(_bids_in(ArrowStorage(self.system, f"{self.root}/claims")), self.root, purpose)

    def name_of(self, path: str) -> str:
        """See `Storage`."""
        return f"{self.root}/{path}"

    def _below(self, folder: str) -> list[Any]:
        wanted = fs.FileSelector(f"{self.root}/{folder}", allow_not_found=True)
        return sorted(self.system.get_file_info(wanted), key=lambda info: str(info.base_name))

    def file_names(self, folder: str) -> list[str]:
        """See `Storage`."""
        return [info.base_name for info in self._below(folder) if info.type == fs.FileType.File]

    def remove_file(self, path: str) -> None:
        """See `Storage`."""
        self.system.delete_file(f"{self.root}/{path}")


def _bids_in(storage: ArrowStorage) -> BidFolder:
    def write(name: str, data: bytes) -> None:
        try:
            storage.write(name, [data])
        except Unwritable as error:
            raise OSError(str(error)) from error

    def read(name: str) -> bytes:
        with storage.open(name) as file:
            return file.read()

    return BidFolder(write, read, names=lambda: storage.file_names(""), remove=storage.remove_file)


def storage_of(place: str) -> ArrowStorage:
    """The storage of a URI; raises `OSError` with a reason of one line."""
    return ArrowStorage(*system_of(place))


def system_of(place: str) -> tuple[Any, str]:
    """The file system of a URI, and the path in it; raises `OSError` with a reason of one line."""
    scheme, colon, rest = place.partition(":")
    try:
        system, name = fs.FileSystem.from_uri(f"{ARROW_NAMES.get(scheme, scheme)}{colon}{rest}")
    except (ValueError, OSError) as error:  # of a scheme that pyarrow does not have, or has no library for
        raise OSError(f"{str(error).partition(chr(10))[0]}{_NEEDS.get(scheme, '')}") from error
    return system, name
