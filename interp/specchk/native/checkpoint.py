"""Checkpoints: a search on disk, resumed to the same answer.

A directory holds two files: `states.bin`, to which new states are only ever appended, and
`search.json`, which says how many of them count and where the search was; it is replaced at once
(write, sync, rename).  Whatever happens in between, the directory is a checkpoint.  The table is not
kept: it follows from the states.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from specchk.native.memory import write_fully
from specchk.native.store import Found, Run, Store

_AT_ONCE = 1 << 26
FORMAT = 1


class Unusable(Exception):
    """A checkpoint of something else, or none."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Where a search was, apart from its states."""

    format: int
    program: str  # what it is a checkpoint of
    words: int
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
    found: list[tuple[int, list[int], list[int], int]]  # record, state, after, level


class Checkpoints:
    """The checkpoint of one search in one directory."""

    def __init__(self, directory: Path, program: str) -> None:
        self.directory = directory
        self.program = program
        self._states = directory / "states.bin"
        self._search = directory / "search.json"
        self._written = 0
        self._holes: list[Run] = []

    def save(self, store: Store, saved: Saved) -> None:
        """Write a checkpoint; `OSError` leaves the one before as it was."""
        self.directory.mkdir(parents=True, exist_ok=True)
        size = store.state_bytes
        file = os.open(self._states, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            for start, end in self._changed(saved):
                os.lseek(file, start * size, os.SEEK_SET)
                for at in range(start * size, end * size, _AT_ONCE):
                    write_fully(file, store.states.view(at, min(_AT_ONCE, end * size - at)))
            os.fsync(file)
        finally:
            os.close(file)
        draft = self._search.with_suffix(".new")
        with draft.open("w", encoding="utf-8") as out:
            json.dump(asdict(saved), out)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(self._search)
        self._written = saved.used
        self._holes = _gaps(saved.taken, saved.used)

    def _changed(self, saved: Saved) -> list[Run]:
        """Ranges whose states are not in the file: new ones, and numbers that were free last time."""
        return [*self._holes, (self._written, saved.used)]

    def load(self, store: Store) -> Saved:
        """Read the checkpoint, states and all; `Unusable` if it is not one of this search."""
        try:
            found: dict[str, Any] = json.loads(self._search.read_text(encoding="utf-8"))
            saved = Saved(**found)
        except (OSError, ValueError, TypeError) as error:
            raise Unusable(f"there is no checkpoint in {self.directory}") from error
        if saved.format != FORMAT or saved.program != self.program or saved.words != store.layout.words:
            raise Unusable(f"the checkpoint in {self.directory} is of another spec, model or option")
        size = saved.used * store.state_bytes
        with self._states.open("rb") as file:
            for at in range(0, size, _AT_ONCE):
                view = store.states.view(at, min(_AT_ONCE, size - at))
                if file.readinto(view) != len(view):
                    raise Unusable(f"the states in {self.directory} are cut off")
        self._written, self._holes = saved.used, _gaps(saved.taken, saved.used)
        return saved


def _gaps(taken: list[Run], used: int) -> list[Run]:
    gaps, first = [], 0
    for start, end in [*taken, (used, used)]:
        if first < start:
            gaps.append((first, start))
        first = end
    return gaps


def found_of(entry: tuple[int, list[int], list[int], int]) -> tuple[Found, int]:
    """A saved finding and the number of its level."""
    record, state, after, level = entry
    return Found(record, tuple(state), tuple(after)), level
