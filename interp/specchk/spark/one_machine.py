"""Levels computed on one machine: one task per partition, all at once, exchanging files.

Through Spark's shuffle each level is a stage of its own, whose blocks the JVM copies some five times,
and each task opens its partition's table.  Where all tasks are on one machine and there is a core for
each, one barrier stage makes all levels instead, with the tables in the tasks' memory:

    SOURCE/LEVEL    the successors of a partition's slice, and who gets which (`Sent`)
    wanted          exists as long as the driver wants more levels
    SOURCE.ended    a partition's task has found nothing new
    refusal         the reason why no task can continue: a slice is damaged, or the ledger is full

The files are in a folder that the driver has made for this job.  A file is whole or does not exist, and a
task waits for what others send by waiting for their files.  Spark ends all tasks of a barrier stage if one of
them fails, even those that wait; the driver then restarts after the last complete level.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, BinaryIO

from crc32c import crc32c
from msgspec import Struct, convert, to_builtins

from specchk import kept
from specchk.export.storage import Unwritable
from specchk.native.exchange import address_of_bytes
from specchk.native.machine.memory import naming, write_fully
from specchk.native.visited import InMemory, VisitedSet
from specchk.spark.parcel import Host, worker_host
from specchk.spark.states.memory import free_bytes
from specchk.spark.states.slices import BrokenSlice, SliceTally, SpoiledSlice, ended, read_end
from specchk.spark.tasks import making_of, opened, successors, tally_from

SHARE = 2  # all tables have one part in this many of the free memory; larger ones are in files
FIRST_PAUSE, LONGEST_PAUSE = 0.0002, 0.005  # seconds between two checks for a file


class Stopped(Exception):
    """The driver requests no more levels."""


Place = tuple[int, int, int]  # first byte, size and checksum of a block


class Sent(Struct, frozen=True):
    """The header of a file of successors: its owner, and the blocks for each partition."""

    source: int
    level: int
    blocks: tuple[tuple[Place, ...], ...]
    tally: SliceTally


def make_levels(parcel: Any, level: int, folder: Path, partitions: Iterable[int]) -> Iterator[int]:
    """Compute all levels after `level`, as one task of a barrier stage; returns the last one computed.

    `parcel` is a broadcast of the parcel; `folder` has nothing but `wanted`.
    """
    host = worker_host(parcel.value)
    for partition in partitions:
        with closing(Maker(host, partition, folder)) as maker:
            try:
                yield maker.levels_after(level)
            except (SpoiledSlice, Unwritable) as error:
                refuse(folder, error)
                yield level


class Maker:
    """The part of one partition in computing levels; call `close` when done."""

    def __init__(self, host: Host, partition: int, folder: Path) -> None:
        self.host, self.partition = host, partition
        self._folder = folder
        # Spark's daemon: once it has ended, a task has another parent, and nothing would end the task.
        self._parent = os.getppid()
        # Divided beforehand: tasks do not know how much memory the others take.
        self._room = free_bytes() // SHARE // host.parcel.partitions
        self._visited: VisitedSet | None = None

    def levels_after(self, level: int) -> int:
        """Compute levels until there are no new states or the driver stops; returns the last one computed."""
        try:
            while True:
                self._forget(level - 2)  # all that sent from the level before have read this
                with ExitStack() as files:
                    self._send(level)
                    # Opened before anything is absorbed, so that every sender's file is known to be whole.
                    came = Arrivals(
                        self, level, [files.enter_context(self._awaited(level, n)) for n in self._sources]
                    )
                    self._absorb(level + 1, came)
                level += 1
                # All tasks decide alike, since each reads what was sent to any of them.  The empty slices are
                # written before: they show the driver, and a search that is resumed, that no level follows.
                if came.is_nothing:
                    # Before it returns: a task that still waits for this one must be able to see that
                    # nothing will come.
                    self._ended(self.partition).touch()
                    return level
        except Stopped:
            return level

    def look(self) -> None:
        """Raise `Stopped` if the driver requests no more."""
        if not wanted_file(self._folder).exists():
            raise Stopped

    @property
    def _sources(self) -> range:
        return range(self.host.parcel.partitions)

    def _send(self, level: int) -> None:
        """Expand the slice of a level."""
        path = self._place(self.partition, level)
        path.parent.mkdir(exist_ok=True)
        draft = path.with_suffix(".draft")
        # `x`: an existing draft would be another task's for the same partition.
        with naming(draft), draft.open("xb", buffering=0) as file:
            write_fully(file.fileno(), ended(to_builtins(self._expanded(level, file))))
        # Others wait for this name: renamed, it is whole from the first moment.  Nothing is synced, for the
        # folder does not outlive the job.
        draft.rename(path)

    def _forget(self, level: int) -> None:
        """Remove the data sent from the slice of a level."""
        self._place(self.partition, level).unlink(missing_ok=True)

    def _place(self, source: int, level: int) -> Path:
        return self._folder / f"{source:05d}" / f"{level:05d}"

    def _expanded(self, level: int, file: Any) -> Sent:
        host, end = self.host, 0
        places: list[list[Place]] = [[] for _ in self._sources]
        with host.worker() as worker:
            about = host.slices.about(level, self.partition)
            for target, block in successors(host, worker, [about]):
                self.look()
                write_fully(file.fileno(), block)
                places[target].append((end, len(block), crc32c(block)))
                end += len(block)
            return Sent(self.partition, level, tuple(map(tuple, places)), tally_from(worker))

    def _awaited(self, level: int, source: int) -> BinaryIO:
        """The file sent by a task, as soon as it exists; `BrokenSlice` if it existed, and is lost."""
        path, pause = self._place(source, level), FIRST_PAUSE
        while True:
            is_past = self._is_past(level, source)  # checked first: all that it sent before is then there
            try:
                return path.open("rb", buffering=0)
            except FileNotFoundError:
                if is_past:
                    raise BrokenSlice(f"{path} is lost") from None
                if os.getppid() != self._parent:  # Spark has ended, and so have the senders
                    raise BrokenSlice(f"partition {source} sends no data: Spark's process ended") from None
            self.look()
            time.sleep(pause)
            pause = min(LONGEST_PAUSE, 1.5 * pause)

    def _is_past(self, level: int, source: int) -> bool:
        """Whether a task has certainly sent the successors of a level."""
        later = self._place(source, level + 1)
        # The next level's file, even a draft, is begun only after this level was sent.
        marks = (later, later.with_suffix(".draft"), self._ended(source))
        return source == self.partition or any(mark.exists() for mark in marks)

    def _ended(self, source: int) -> Path:
        return self._folder / f"{source:05d}.ended"

    def _absorb(self, level: int, came: Arrivals) -> None:
        """Write the slice of a level, unless it exists; with tables in files if memory is insufficient."""
        # After a failed job, some partitions may have this level's slice, and others not.  Those that have it
        # expand it, and do not make it again.
        if self.host.slices.done(level, self.partition) is not None:
            return
        try:
            if self._visited is None:
                self._visited = InMemory(self.host.layout.words, self.host.kernel, self._room)
            self._absorbed(self._visited, level, came)
        except MemoryError:
            # The table in files begins with the levels that the ledger has, so the part of this one that
            # was absorbed does not matter; `came` can be read again.
            self.close()
            self._visited = opened(self.host, level, self.partition)
            self._absorbed(self._visited, level, came)

    def _absorbed(self, visited: VisitedSet, level: int, came: Arrivals) -> None:
        with making_of(self.host, visited, level, self.partition) as making:
            for block in came.blocks():
                making.take(address_of_bytes(block), len(block))
            making.keep(came.tally)

    def close(self) -> None:
        """Free the partition's table."""
        if self._visited is not None:
            self._visited.close()
            self._visited = None


class Arrivals:
    """The data sent by all tasks, restricted to one partition.

    `size` and `tally` are right when all blocks were read, once or again.
    """

    def __init__(self, maker: Maker, level: int, files: Sequence[BinaryIO]) -> None:
        self._maker = maker
        self._files = [(file, sent_of(file, source, level)) for source, file in enumerate(files)]
        self.size = 0
        self.tally = SliceTally()

    @property
    def is_nothing(self) -> bool:
        """Whether no data at all were sent."""
        return not any(places for _, sent in self._files for places in sent.blocks)

    def blocks(self) -> Iterator[bytes]:
        """The blocks; `BrokenSlice` if one is missing."""
        self.size, self.tally = 0, SliceTally()
        for file, sent in self._files:
            for first, size, check in sent.blocks[self._maker.partition]:
                self._maker.look()
                block = os.pread(file.fileno(), size, first)
                if len(block) != size or crc32c(block) != check:
                    raise BrokenSlice(
                        f"{file.name} is truncated, or damaged in its bytes {first} to {first + size}"
                    )
                self.size += size
                yield block
            # One partition has the tallies of all, or they would be counted once for each.
            if self._maker.partition == 0:
                self.tally += sent.tally


def sent_of(file: BinaryIO, source: int, level: int) -> Sent:
    """The header of a file of successors; `BrokenSlice` if it is incomplete, or belongs to another search."""
    header, _ = read_end(file, file.name)
    sent = convert(header, Sent)
    if (sent.source, sent.level) != (source, level):
        raise BrokenSlice(f"{file.name} was replaced by another file")
    return sent


def refuse(folder: Path, error: SpoiledSlice | Unwritable) -> None:
    """Leave a record for the driver, and stop all other tasks; if that fails, so does the task."""
    # Before `wanted` is removed: a driver that sees the tasks stop must find the reason there.
    kept.replace(folder / "refusal", f"{type(error).__name__} {error}".encode())
    wanted_file(folder).unlink(missing_ok=True)


def refusal_in(folder: Path) -> SpoiledSlice | Unwritable | None:
    """The record left by a task."""
    try:
        kind, _, told = (folder / "refusal").read_text(encoding="utf-8").partition(" ")
    except FileNotFoundError:
        return None
    return Unwritable(told) if kind == Unwritable.__name__ else SpoiledSlice(told)


def wanted_file(folder: Path) -> Path:
    """The file without which no more levels are computed."""
    return folder / "wanted"
