"""Slices: the states of one level that belong to one partition, kept permanently.

    states to expand | states outside the constraints | end, as JSON | its checksum and length, magic

A slice is written once, whole (`storage`); once it is there, its part of the level is done, and a repeated
attempt uses it instead of making another one.  Two attempts at one slice have the same states
and the same tally, in another order at most.

Its end names it (run, level, partition) and has a checksum (CRC-32C) for each block of the states.
Nothing that is read is used before it was compared with its checksum: a slice that is damaged, cut off,
lost or in the place of another one is `BrokenSlice`, with a sentence that names it.

A tally has the counts and records of an expansion.  That of the tasks that expanded a level is in the next
level's slice of partition 0.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import SEEK_END
from typing import Any, BinaryIO

from crc32c import crc32c
from msgspec import Struct, convert, field, to_builtins

from specchk.export.storage import Data, Storage
from specchk.native.store import NotedState, smallest

_END = struct.Struct("<IQ8s")
_MAGIC = b"SPECSLC2"
AT_ONCE = 1 << 22  # bytes of states read at once, which have a checksum


class BrokenSlice(Exception):
    """A slice, or its input, is incomplete; the text names it."""


class SpoiledSlice(BrokenSlice):
    """A slice is incomplete for every reader; the text includes the remedy."""


class SliceTally(Struct, frozen=True):
    """The counts and records of a slice."""

    generated: int = 0
    cuts: int = 0
    counts: tuple[int, ...] = ()  # coverage
    found: tuple[NotedState, ...] = ()  # of each record the smallest

    def __add__(self, other: SliceTally) -> SliceTally:
        counts = [self.counts, other.counts]
        # An empty tally has no coverage points at all, not zeroes that could be added.
        both = tuple(map(sum, zip(*counts, strict=True))) if all(counts) else self.counts or other.counts
        return SliceTally(
            self.generated + other.generated,
            self.cuts + other.cuts,
            both,
            tuple(one for _, one in sorted(smallest((*self.found, *other.found)).items())),
        )


class Slice(Struct, frozen=True):
    """The description of a slice.

    `place`: a number for the directory and machine of the table with which it was made; `table`: the states
    there afterwards; `caught_up`: the levels that had to be read from slices before, because the table was
    made elsewhere or lost.
    """

    level: int
    partition: int
    inside: int
    outside: int
    received_bytes: int = 0
    tally: SliceTally = field(default_factory=SliceTally)
    place: int = 0
    table: int = 0
    caught_up: int = 0


class Checks:
    """The checksums of blocks of this many bytes, computed as the bytes arrive."""

    def __init__(self, block: int) -> None:
        self._block = self._room = block
        self._open = 0
        self._whole: list[int] = []

    def add(self, data: Data) -> None:
        """Add some more bytes."""
        view, at = memoryview(data), 0
        while at < len(view):
            # Parts are of any size, blocks of one: a reader can then check a block without reading what is
            # before it.
            some = view[at : at + self._room]
            self._open, self._room, at = crc32c(some, self._open), self._room - len(some), at + len(some)
            if not self._room:
                self._whole.append(self._open)
                self._open, self._room = 0, self._block

    @property
    def values(self) -> list[int]:
        """The checksums of all blocks, the last one of the bytes so far."""
        return [*self._whole, *([self._open] if self._room < self._block else [])]


class Opened(Struct, frozen=True):
    """A slice open for reading, whose trailer was already checked."""

    file: BinaryIO
    about: Slice
    checks: Sequence[int]
    name: str
    state_bytes: int

    def blocks(self) -> Iterator[tuple[bytearray, int]]:
        """The states to expand, in blocks, each with its number of states; the buffer is reused."""
        block, size = block_bytes(self.state_bytes), self._size
        # One buffer for all blocks: the kernel reads it by address before the next block is read into it.
        buffer = bytearray(min(block, max(1, size)))
        inside = self.about.inside * self.state_bytes
        for number, first in enumerate(range(0, inside, block)):
            self._fill(memoryview(buffer)[: min(block, size - first)], number)
            yield buffer, min(block, inside - first) // self.state_bytes

    def fill(self, view: memoryview) -> None:
        """Read all states, including those outside, into a view of that size; `BrokenSlice`."""
        block = block_bytes(self.state_bytes)
        for number, first in enumerate(range(0, self._size, block)):
            self._fill(view[first : min(first + block, self._size)], number)

    @property
    def _size(self) -> int:
        return (self.about.inside + self.about.outside) * self.state_bytes

    def _fill(self, view: memoryview, number: int) -> None:
        at = 0
        while at < len(view):
            with reading(self.name):
                got = self.file.readinto(view[at:])  # type: ignore[attr-defined]
            if not got:
                raise BrokenSlice(f"{self.name} is truncated")
            at += got
        if crc32c(view) != self.checks[number]:
            first = number * block_bytes(self.state_bytes)
            raise BrokenSlice(f"{self.name} is damaged in its bytes {first} to {first + len(view)}")


class Slices(Struct, frozen=True):
    """The slices of one run; those of its first `handed` levels cannot be recomputed."""

    storage: Storage
    run: str
    state_bytes: int
    handed: int = 0

    def path(self, level: int, partition: int) -> str:
        """The path of a slice below the ledger."""
        return f"{folder_of(self.run)}/{level:05d}/{partition:05d}.slice"

    def write(self, about: Slice, parts: Iterable[Data]) -> None:
        """Write a slice; the parts are the states inside, then those outside."""

        def everything() -> Iterator[Data]:
            checks = Checks(block_bytes(self.state_bytes))
            for part in parts:
                checks.add(part)
                yield part
            # At the end, because the checksums are known only when the states were written.
            yield ended({"run": self.run, **to_builtins(about), "checks": checks.values})

        self.storage.write(self.path(about.level, about.partition), everything())

    @contextmanager
    def open(self, level: int, partition: int) -> Iterator[Opened]:
        """Open a slice at its first state; `SpoiledSlice`, also while it is read."""
        with self._blamed(level, partition) as name:
            with reading(name):
                file = self.storage.open(self.path(level, partition))
            with file:
                yield self._opened(file, level, partition)

    def done(self, level: int, partition: int) -> Slice | None:
        """The description of a slice, or None if it does not exist yet; `SpoiledSlice`."""
        with self._blamed(level, partition) as name, reading(name):
            is_there = self.storage.exists(self.path(level, partition))
        return self.about(level, partition) if is_there else None

    def about(self, level: int, partition: int) -> Slice:
        """The description of an existing slice; `SpoiledSlice`."""
        with self.open(level, partition) as opened:
            return opened.about

    def level(self, level: int, partitions: int) -> list[Slice] | None:
        """The slices of a level, or None if one does not exist yet; `SpoiledSlice`."""
        slices = []
        for partition in range(partitions):
            about = self.done(level, partition)
            if about is None:
                return None
            slices.append(about)
        return slices

    def _opened(self, file: BinaryIO, level: int, partition: int) -> Opened:
        name = self._name(level, partition)
        end, size = read_end(file, name)
        # In the wrong place, too, a slice has the right checksum: copied, or restored under another name.
        if (end["run"], end["level"], end["partition"]) != (self.run, level, partition):
            raise BrokenSlice(f"{name} was replaced by another slice")
        about = convert(end, Slice)
        if (about.inside + about.outside) * self.state_bytes != size:
            raise BrokenSlice(f"{name} does not have the states that it declares")
        file.seek(0)
        return Opened(file, about, end["checks"], name, self.state_bytes)

    @contextmanager
    def _blamed(self, level: int, partition: int) -> Iterator[str]:
        """A context with a slice's name in errors; a `BrokenSlice` includes the remedy."""
        try:
            yield self._name(level, partition)
        except BrokenSlice as error:
            if level < self.handed:
                remedy = "start a new search in another place"
            else:
                remedy = "remove that file; --resume creates it again"
            raise SpoiledSlice(f"{error}: {remedy}") from error

    def _name(self, level: int, partition: int) -> str:
        return self.storage.name_of(self.path(level, partition))


def folder_of(run: str) -> str:
    """The folder of a run's slices below the ledger."""
    return f"run-{run}"


def block_bytes(state_bytes: int) -> int:
    """The number of bytes per checksum: whole states, about `AT_ONCE`."""
    return max(1, AT_ONCE // state_bytes) * state_bytes


def ended(about: dict[str, Any]) -> bytes:
    """The trailer of a file of states: their description."""
    text = json.dumps(about).encode()
    return text + _END.pack(_check_of_end(text), len(text), _MAGIC)


def _check_of_end(text: bytes) -> int:
    """The checksum of a trailer, including the magic, since zeroes alone have the checksum zero."""
    return crc32c(text, crc32c(_MAGIC))


def read_end(file: BinaryIO, name: str) -> tuple[dict[str, Any], int]:
    """The trailer of a file, and the number of bytes before it; `BrokenSlice` if it is missing."""
    with reading(name):
        size = file.seek(0, SEEK_END)
        # From the end, because its length is there; a file that is too short has no room for one.
        file.seek(max(0, size - _END.size))
        end = file.read(_END.size)
        check, length, magic = _END.unpack(end) if len(end) == _END.size else (0, 0, b"")
        if magic != _MAGIC or length > size - _END.size:
            raise BrokenSlice(f"{name} is truncated, or damaged at its end")
        file.seek(size - _END.size - length)
        text = file.read(length)
    if len(text) != length or _check_of_end(text) != check:
        raise BrokenSlice(f"{name} is damaged at its end")
    return json.loads(text), size - _END.size - length


@contextmanager
def reading(name: str) -> Iterator[None]:
    """A context that turns system errors into `BrokenSlice`, with a file's name."""
    try:
        yield
    except FileNotFoundError as error:
        raise BrokenSlice(f"{name} is missing") from error
    except OSError as error:
        raise BrokenSlice(f"{name} cannot be read ({error.strerror or error})") from error
