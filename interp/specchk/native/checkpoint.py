"""Checkpoints: a search saved on disk, and resumed with the same result.

    claim          the owner of the directory while a search runs (`claims`)
    search.json    sealed: the identity of the search, its position, and which states count, with checksums
    states-X.bin   states, to which a search only appends; X names the search

`search.json` is replaced at once (write, sync, rename), and states that it counts are never overwritten: new
ones go behind the others, or to numbers that were free, and a new search has a file of its own.  So at any
time the directory is a checkpoint.  The table is not kept, since it follows from the states.

Nothing is accepted without its checksum: CRC-32 for ranges of states, a digest for `search.json`.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any
from zlib import crc32

from msgspec import Struct, convert, to_builtins

from specchk.ir.types import Room
from specchk.native.identity import Identity, refuse_others
from specchk.native.machine.memory import sync_folder, write_fully
from specchk.native.machine.runs import Run, without
from specchk.native.store import NotedState, Store
from specchk.sealed import Damaged, sealed, unsealed
from specchk.search.engine import Unusable
from specchk.search.verdict import Inconclusive

_AT_ONCE = 1 << 26
_SEAL = "checkpoint"
Checked = tuple[int, int, int]  # states first..end, and the checksum of their bytes


class Saved(Struct, frozen=True):
    """The progress of a search, apart from its states."""

    used: int
    taken: list[Run]  # (first, end) of the states that count
    levels: list[list[Run]]
    sizes: list[int]
    rest: list[Run]
    following: list[Run]
    initial: int
    totals: list[int]
    counts: list[int]
    seconds: float
    found: list[tuple[NotedState, int]]  # with its level


class Checkpoints:
    """The checkpoint of one search in one directory, which the search has claimed."""

    def __init__(self, directory: Path, identity: Identity, room: Room) -> None:
        self.directory = directory
        self.identity = identity
        self.room = room
        self._search = directory / "search.json"
        self._states = directory / f"states-{uuid.uuid4().hex[:12]}.bin"
        self._checks: list[Checked] = []
        self._written: list[Run] = []  # the same ranges, those side by side as one

    def begin(self, *, anew: bool) -> None:
        """Check that a new search can be saved here; `Unusable` if a checkpoint would be lost.

        `anew`: an existing one is of this search, and may be lost.
        """
        if self._search.exists() and not anew:
            raise Unusable(
                f"{self.directory} already has a checkpoint: use --resume, or choose another directory"
            )

    def save(self, store: Store, saved: Saved) -> None:
        """Write a checkpoint; if `OSError` is raised, the previous one is unchanged."""
        # States first, synced with the name of their file, then the file that counts them.  If the machine
        # fails before the rename is on the disk, the old `search.json` is there; it counts fewer states, none
        # of which was overwritten.
        checks = [*self._checks, *self._appended(store, saved)]
        about = {
            "identity": self.identity,
            "room": to_builtins(self.room),
            "file": self._states.name,
            "checks": checks,
        }
        draft = self._search.with_suffix(".new")
        with draft.open("wb") as out:
            out.write(sealed(_SEAL, json.dumps({**about, "saved": to_builtins(saved)}).encode()))
            out.flush()
            # Before the rename: otherwise the new name may reach the disk before the content.
            os.fsync(out.fileno())
        draft.replace(self._search)
        # Only now: after a failed write, the next attempt begins with what the file on disk counts.
        self._checks, self._written = checks, saved.taken
        # Others were left by searches that ended before their first checkpoint: no `search.json` names them.
        for other in self.directory.glob("states-*.bin"):
            if other != self._states:
                other.unlink(missing_ok=True)

    def not_written(self, error: OSError) -> Inconclusive:
        """The reason for ending a search that cannot be saved."""
        left = "the previous one can be resumed" if self._search.exists() else "there is no previous one"
        where = error.filename or self.directory
        return Inconclusive(
            f"the checkpoint cannot be written ({where}: {error.strerror}); {left}", budget=True
        )

    def _appended(self, store: Store, saved: Saved) -> list[Checked]:
        """Write what counts and is not yet in the file: new states, and numbers that were free last time."""
        size, checks = store.state_bytes, []
        file = os.open(self._states, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # A number that was free last time may lie before the end of the file, so this does not only
            # append.
            for first, end in without(saved.taken, self._written):
                os.lseek(file, first * size, os.SEEK_SET)
                check = 0
                for view in _views(store, first, end):
                    write_fully(file, view)
                    check = crc32(view, check)
                checks.append((first, end, check))
            os.fsync(file)
        finally:
            os.close(file)
        # The name of a new file is a change of the directory, which `fsync` of the file does not sync.
        sync_folder(self.directory)
        return checks

    def load(self, store: Store) -> Saved:
        """Read the checkpoint with its states; `Unusable` if it belongs to another search, or is damaged."""
        content = _content(self._search)
        # Before a state is read: states of another search may have another size.
        refuse_others(f"the checkpoint in {self.directory}", content["identity"], self.identity)
        # The resumed search continues in this file; what was written behind the last checkpoint is
        # overwritten.
        self._states = self.directory / content["file"]
        self._checks = convert(content["checks"], list[Checked])
        saved = convert(content["saved"], Saved)
        try:
            with self._states.open("rb") as file:
                for first, end, check in self._checks:
                    file.seek(first * store.state_bytes)
                    # Into the array at once, and checked there: states may be most of the memory, and the
                    # kernel has not begun.
                    if _read(file, store, first, end) != check:
                        raise _damaged(self._states, f"states {first} to {end} differ from those written")
        except OSError as error:
            raise _damaged(self._states, str(error.strerror)) from error
        self._written = saved.taken
        return saved


def room_of(directory: Path) -> Room | None:
    """The room of sets in the states of a checkpoint; None without a checkpoint, which `load` reports."""
    search = directory / "search.json"
    return Room(**_content(search)["room"]) if search.exists() else None


def _content(search: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(unsealed(_SEAL, search.read_bytes()))
    except FileNotFoundError as error:
        raise Unusable(f"there is no checkpoint in {search.parent}") from error
    except OSError as error:
        raise _damaged(search, str(error.strerror)) from error
    except Damaged as error:
        raise _damaged(search, str(error)) from error
    return content


def _damaged(path: Path, why: str) -> Unusable:
    return Unusable(
        f"{path} is damaged, or of another version of specchk ({why}): "
        "start a new search in another directory"
    )


def _views(store: Store, first: int, end: int) -> Iterator[memoryview]:
    size = store.state_bytes
    for at in range(first * size, end * size, _AT_ONCE):
        yield store.states.view(at, min(_AT_ONCE, end * size - at))


def _read(file: BufferedReader, store: Store, first: int, end: int) -> int:
    """Read states from a position of a file; return the checksum of the bytes read, which may be fewer."""
    check = 0
    for view in _views(store, first, end):
        if file.readinto(view) < len(view):
            # No CRC is negative: a file that is too short never compares equal.
            return -1
        check = crc32(view, check)
    return check
