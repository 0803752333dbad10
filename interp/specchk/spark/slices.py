"""Slices: the states of one level that belong to one partition, kept for good.

    states to expand | states outside the constraints | tally, as JSON | its length | magic

A slice is written once, whole (`storage`); that it is there says that its part of the level is done.
Who does the work again finds it and takes its word.  Two attempts at one slice have the same states
and the same tally, in another order at most.

A tally is what was counted and noted on the way.  What tasks that expanded a level have to tell is
in the next level's slice of partition 0.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from io import SEEK_END
from typing import Any, BinaryIO

from specchk.native.store import Found
from specchk.spark.storage import Data, Storage

_END = struct.Struct("<Q8s")
_MAGIC = b"SPECSLC1"
AT_ONCE = 1 << 22  # bytes of states read at once


class Broken(Exception):
    """A slice, or what came to make one, is not whole."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted and noted."""

    generated: int = 0
    cuts: int = 0
    counts: tuple[int, ...] = ()  # coverage
    found: tuple[Found, ...] = ()  # of each record the smallest

    def __add__(self, other: Tally) -> Tally:
        counts = [self.counts, other.counts]
        both = tuple(map(sum, zip(*counts, strict=True))) if all(counts) else self.counts or other.counts
        return Tally(
            self.generated + other.generated,
            self.cuts + other.cuts,
            both,
            smallest((*self.found, *other.found)),
        )


def smallest(found: Iterable[Found]) -> tuple[Found, ...]:
    """Of each record the smallest state, and of these the smallest after it."""
    best: dict[int, Found] = {}
    for one in found:
        known = best.get(one.record)
        if known is None or (one.state, one.after) < (known.state, known.after):
            best[one.record] = one
    return tuple(best[record] for record in sorted(best))


@dataclass(frozen=True, slots=True)
class Slice:
    """What a slice says about itself; `attempt` is the task attempt that made it."""

    level: int
    partition: int
    inside: int
    outside: int
    received_bytes: int = 0
    attempt: int = 0
    tally: Tally = field(default_factory=Tally)


def path_of(level: int, partition: int) -> str:
    """Where a slice is below the ledger."""
    return f"levels/{level:05d}/{partition:05d}.slice"


def write_slice(storage: Storage, about: Slice, parts: Iterable[Data]) -> None:
    """Keep a slice; the parts are the states inside, then those outside."""

    def everything() -> Iterator[Data]:
        yield from parts
        yield ended(about)

    storage.write(path_of(about.level, about.partition), everything())


def read_slice(file: BinaryIO, state_bytes: int) -> Slice:
    """What an open slice says; it is then at its first state.  `Broken` where it is not whole."""
    found, size = read_end(file)
    about = _slice(found)
    if (about.inside + about.outside) * state_bytes != size:
        raise Broken(f"slice {about.partition} of level {about.level} does not have the states it says")
    file.seek(0)
    return about


def ended(about: Any) -> bytes:
    """The end of a file of states: what a dataclass says of them."""
    text = json.dumps(asdict(about)).encode()
    return text + _END.pack(len(text), _MAGIC)


def read_end(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """What the end of a file says, and how many bytes come before; `Broken` where it has no end."""
    size = file.seek(0, SEEK_END)
    file.seek(max(0, size - _END.size))
    end = file.read(_END.size)
    length, magic = _END.unpack(end) if len(end) == _END.size else (0, b"")
    if magic != _MAGIC:
        raise Broken("a file of states is cut off")
    file.seek(size - _END.size - length)
    return json.loads(file.read(length)), size - _END.size - length


def done(storage: Storage, level: int, partition: int, state_bytes: int) -> Slice | None:
    """What a slice says, or None where there is none yet."""
    path = path_of(level, partition)
    if not storage.exists(path):
        return None
    with storage.open(path) as file:
        return read_slice(file, state_bytes)


def blocks_of(file: BinaryIO, about: Slice, state_bytes: int) -> Iterator[tuple[bytearray, int]]:
    """The states to expand, some at once, each with their number; the buffer is used again."""
    most = max(1, AT_ONCE // state_bytes)
    buffer = bytearray(min(most, max(1, about.inside)) * state_bytes)
    for first in range(0, about.inside, most):
        count = min(most, about.inside - first)
        fill(file, memoryview(buffer)[: count * state_bytes])
        yield buffer, count


def fill(file: BinaryIO, view: memoryview) -> None:
    """Read as many bytes as there is room for; `Broken` where there are fewer."""
    at = 0
    while at < len(view):
        got = file.readinto(view[at:])  # type: ignore[attr-defined]
        if not got:
            raise Broken("a slice is cut off")
        at += got


def _slice(found: dict[str, Any]) -> Slice:
    about = Slice(**found)
    return replace(about, tally=tally_of(about.tally))  # type: ignore[arg-type]


def tally_of(found: dict[str, Sequence[object]]) -> Tally:
    """A tally as JSON gives it."""
    notes: list[dict[str, object]] = list(found["found"])  # type: ignore[arg-type]
    return Tally(
        found["generated"], found["cuts"], tuple(found["counts"]),  # type: ignore[arg-type]
        tuple(Found(n["record"], tuple(n["state"]), tuple(n["after"])) for n in notes),  # type: ignore[arg-type]
    )  # fmt: skip
