"""A worker's part of the check that it reaches the ledger and the scratch directory (`spark.reach`).

In a module of its own, since a worker keeps what it has imported.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from specchk.export.places import storage_at
from specchk.export.storage import LocalStorage, Unwritable

ROOM = bytes(1 << 16)  # what must fit: more than a file system keeps in its names
FOLDER = "reach"


class Unreached(NamedTuple):
    """A host, and the reason why it cannot use the ledger or the scratch directory; "" if it can."""

    host: str
    ledger: str
    scratch: str


class Token(Struct, frozen=True):
    """A file in a ledger, for the duration of the check."""

    place: str
    name: str
    scratch: str | None

    def __call__(self, tasks: Iterable[int]) -> Iterator[tuple[str, str, str]]:
        """The answer of this worker, once for each task."""
        for task in tasks:
            ledger = self._of_the_ledger(f"{os.getpid()}-{task}")
            yield Unreached(socket.gethostname(), ledger, of_scratch(self.scratch) if self.scratch else "")

    def _of_the_ledger(self, own: str) -> str:
        storage = storage_at(self.place)
        # Read first: writing would make a missing directory, which would then be there.
        try:
            with storage.open(f"{FOLDER}/{self.name}") as file:
                if file.read() != self.name.encode():
                    return f"has another directory at {self.place}"
        except FileNotFoundError:
            return f"has no {self.place}: all machines need the same directory under that name"
        except OSError as error:
            return f"cannot read {self.place} ({error.strerror or error})"
        try:
            storage.write(f"{FOLDER}/{self.name}-{socket.gethostname()}-{own}", [ROOM])
        except Unwritable as error:
            return f"cannot write {error}"
        return ""


def of_scratch(scratch: str) -> str:
    """The reason why tables cannot be kept in a directory of this machine; "" if they can."""
    name = f".specchk-{uuid.uuid4().hex}"
    try:
        LocalStorage(Path(scratch), durable=False).write(name, [ROOM])
        Path(scratch, name).unlink()
    except Unwritable as error:  # of a file whose name means nothing to the reader
        return f"cannot write {scratch}: {str(error).rpartition(': ')[2]}"
    return ""
