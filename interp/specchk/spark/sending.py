"""How blocks of states get from the task that expanded a slice to those that absorb them.

Through Spark's shuffle a block is copied by the JVM some five times.  Where all tasks are on one
machine a task writes its blocks to a file of the run's scratch directory instead, and what goes
through the shuffle is where they are.

    sent/PARTITION/LEVEL-<hex>    blocks of one attempt to expand the partition's slice of a level

The files of a level are needed until the job that made them is done: any of its tasks may be done
again.  They are removed when a later job expands a level.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specchk.spark.parcel import Host
from specchk.spark.slices import Broken
from specchk.spark.storage import write_fully


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block is in a file of this machine."""

    path: str
    first: int
    size: int


class Outbox:
    """What an attempt sends; `close` when all is sent."""

    def __init__(self, host: Host, level: int, partition: int) -> None:
        self._file: Any = None
        self._end = 0
        if host.parcel.one_machine:
            folder = folder_of(host, partition)
            folder.mkdir(parents=True, exist_ok=True)
            self._path = folder / f"{level:05d}-{uuid.uuid4().hex}"
            self._file = self._path.open("xb", buffering=0)

    def put(self, block: bytes) -> bytes | Place:
        """What to give Spark for a block; `OSError` where the disk is full."""
        if self._file is None:
            return block
        write_fully(self._file, block)
        self._end += len(block)
        return Place(str(self._path), self._end - len(block), len(block))

    def close(self) -> None:
        """Nothing more is sent."""
        if self._file is not None:
            self._file.close()


class Inbox:
    """What came, as blocks; `close` when all is read."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}

    def block(self, sent: bytes | Place) -> bytes:
        """The block; `Broken` where its file is not there or too short."""
        if isinstance(sent, bytes):
            return sent
        try:
            if sent.path not in self._files:
                self._files[sent.path] = os.open(sent.path, os.O_RDONLY)
            found = os.pread(self._files[sent.path], sent.size, sent.first)
        except OSError as error:
            raise Broken(f"what was sent cannot be read: {error}") from error
        if len(found) != sent.size:
            raise Broken(f"{sent.path} is cut off")
        return found

    def close(self) -> None:
        """Nothing more is read."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()


def folder_of(host: Host, partition: int) -> Path:
    """Where the blocks are that were sent from a partition."""
    return host.scratch / "sent" / f"{partition:05d}"


def forget_before(host: Host, level: int, partition: int) -> None:
    """Remove what was sent from a partition's slices of earlier levels."""
    with suppress(FileNotFoundError):
        for file in folder_of(host, partition).iterdir():
            if int(file.name.partition("-")[0]) < level:
                file.unlink(missing_ok=True)
