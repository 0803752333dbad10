"""Checks that executors can use the ledger of a search, and the directory of their tables.

Each worker reads a file that the driver wrote and writes one of its own, before anything is searched: a
directory that another machine does not have, or that is full there, would otherwise end the search hours
later, or keep half of it where nobody else sees it.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

from specchk.export.storage import Storage, Unwritable
from specchk.search.engine import Unavailable, Unusable
from specchk.spark.session import is_local
from specchk.spark.worker.token import FOLDER, ROOM, Token, Unreached, of_scratch


@contextmanager
def token_in(storage: Storage, place: str, scratch: str | None) -> Iterator[Token]:
    """A token written by the driver; `Unusable` if a ledger has no space."""
    token = Token(place, uuid.uuid4().hex, scratch)
    try:
        storage.write(f"{FOLDER}/{token.name}-driver", [ROOM])
        storage.write(f"{FOLDER}/{token.name}", [token.name.encode()])
        yield token
    except Unwritable as error:
        raise Unusable(f"{socket.gethostname()} cannot write {error}") from error
    finally:
        storage.remove(FOLDER)


def require_reach(context: SparkContext, storage: Storage, token: Token) -> None:
    """Check that workers on other machines can use the token; `Unusable` or `Unavailable` if one cannot."""
    if not is_local(context):
        many = max(2, context.defaultParallelism)
        context.setJobDescription("specchk: see that the workers reach the ledger")
        answers = context.parallelize(range(many), many).mapPartitions(token).collect()
        for answer in sorted(Unreached(*fields) for fields in answers):
            if answer.ledger:
                raise Unusable(f"the worker on {answer.host} {answer.ledger}")
            if answer.scratch:
                raise Unavailable(f"--scratch: the worker on {answer.host} {answer.scratch}")
    storage.remove(FOLDER)  # now, since a search may take days


def check_scratch(context: SparkContext, scratch: str | None) -> None:
    """Raise `Unavailable` if the workers are on this machine, and it has no room for their tables."""
    if scratch is not None and is_local(context) and (wrong := of_scratch(scratch)):
        raise Unavailable(f"--scratch: {socket.gethostname()} {wrong}")
