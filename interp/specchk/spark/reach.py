"""Whether executors can use the ledger of a search, and the directory of their tables.

Each worker reads a file that the driver wrote and writes one of its own, before anything is searched: a
directory that another machine does not have, or that is full there, would otherwise end the search hours
later, or keep half of it where nobody else sees it.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyspark import SparkContext

from specchk.export.storage import LocalStorage, Storage, Unwritable, storage_at
from specchk.search.engine import Unavailable, Unusable
from specchk.spark.session import is_local

ROOM = bytes(1 << 16)  # what must fit: more than a file system keeps in its names
_FOLDER = "reach"


class Unreached(NamedTuple):
    """A host, and why it cannot use the ledger or the scratch directory; "" where it can."""

    host: str
    ledger: str
    scratch: str


@dataclass(frozen=True, slots=True)
class Token:
    """A file in a ledger, for the time of the check."""

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
        # Read first: writing would make a directory of the same name, and then it would be there.
        try:
            with storage.open(f"{_FOLDER}/{self.name}") as file:
                if file.read() != self.name.encode():
                    return f"has another directory at {self.place}"
        except FileNotFoundError:
            return f"has no {self.place}: all machines need the same directory under that name"
        except OSError as error:
            return f"cannot read {self.place} ({error.strerror or error})"
        try:
            storage.write(f"{_FOLDER}/{self.name}-{socket.gethostname()}-{own}", [ROOM])
        except Unwritable as error:
            return f"cannot write {error}"
        return ""


def of_scratch(scratch: str) -> str:
    """Why tables cannot be kept in a directory of this machine; "" where they can."""
    name = f".specchk-{uuid.uuid4().hex}"
    try:
        LocalStorage(Path(scratch), durable=False).write(name, [ROOM])
        Path(scratch, name).unlink()
    except Unwritable as error:  # of a file whose name means nothing to the reader
        return f"cannot write {scratch}: {str(error).rpartition(': ')[2]}"
    return ""


@contextmanager
def token_in(storage: Storage, place: str, scratch: str | None) -> Iterator[Token]:
    """A token that the driver wrote; `Unusable` where a ledger has no room."""
    token = Token(place, uuid.uuid4().hex, scratch)
    try:
        storage.write(f"{_FOLDER}/{token.name}-driver", [ROOM])
        storage.write(f"{_FOLDER}/{token.name}", [token.name.encode()])
        yield token
    except Unwritable as error:
        raise Unusable(f"{socket.gethostname()} cannot write {error}") from error
    finally:
        storage.remove(_FOLDER)


def see_that_all_reach(context: SparkContext, storage: Storage, token: Token) -> None:
    """Have workers on other machines use the token; `Unusable` or `Unavailable` for the first that cannot."""
    if not is_local(context):
        many = max(2, context.defaultParallelism)
        context.setJobDescription("specchk: see that the workers reach the ledger")
        answers = context.parallelize(range(many), many).mapPartitions(token).collect()
        for answer in sorted(Unreached(*fields) for fields in answers):
            if answer.ledger:
                raise Unusable(f"the worker on {answer.host} {answer.ledger}")
            if answer.scratch:
                raise Unavailable(f"--scratch: the worker on {answer.host} {answer.scratch}")
    storage.remove(_FOLDER)  # now, since a search may take days


def see_scratch(context: SparkContext, scratch: str | None) -> None:
    """`Unavailable` where the workers are on this machine, and it has no room for their tables."""
    if scratch is not None and is_local(context) and (wrong := of_scratch(scratch)):
        raise Unavailable(f"--scratch: {socket.gethostname()} {wrong}")
