"""Recordings explained elsewhere: the jobs of a crew, on places that only the crew can access.

    driver                         where a piece is done
    Piece(name, entries)     ->    read, explained, written as rows of tables
    PieceAnswer                   <-    a tally, and the entries that may grow

A piece and its answer have a bounded size, whatever its recordings are: their bytes are never sent.

Not here: which pieces there are, and what becomes of one that is lost (`by_crew`).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.contract.recording import BadRecording, Recording, Unfinished
from specchk.conform.recordings.contradiction import Contradiction
from specchk.conform.recordings.explainer import CampaignOptions, RecordingExplainer, rare_collections
from specchk.conform.recordings.result import RecordingResult, Tally
from specchk.conform.recordings.rows import Row, rows_of
from specchk.lang.frontend import check

ALL_AFTER = 32  # pieces
# The bytes at a place; None, unread, where there are as many as before.  Raises `OSError`.
Read = Callable[[str, int], bytes | None]
# Writes a part of each table, by name.
Write = Callable[[str, Mapping[str, Sequence[Row]]], None]


class PlacedRecording(Struct, frozen=True):
    """A recording by its number among all, and its place.

    `lost` is why it has no verdict, where that is known.  While it `may_grow`, a recording without its end
    has none either; one that still has `size` bytes is not read again.
    """

    number: int
    place: str
    lost: str = ""
    may_grow: bool = False
    size: int = -1

    @property
    def name(self) -> str:
        """The name in reports: the last part of its path."""
        name = self.place.rstrip("/").rpartition("/")[2]
        return unquote(name) if "://" in self.place else name


class Piece(Struct, frozen=True):
    """Some recordings, and the name of their table parts, unique to this piece."""

    name: str
    entries: tuple[PlacedRecording, ...]


class PieceAnswer(Struct, frozen=True):
    """The results of a piece: all of its recordings, and those that may still grow, outside the tally."""

    tally: Tally
    entries: tuple[PlacedRecording, ...]
    unfinished: tuple[PlacedRecording, ...] = ()


class Explaining(Struct, frozen=True):
    """A `crews.Job` that explains recordings; `spec` is the path of its file where the campaign began."""

    wanted: CampaignOptions
    spec: str
    read: Read
    write: Write | None = None

    def __call__(self, cls: Any, folder: Path) -> Callable[[Piece], PieceAnswer]:
        """The function that explains, by the spec of a tracing named by its original path."""
        there = str(folder / cls.spec)
        checked = check(there)
        explainer = RecordingExplainer(cls, checked, self.wanted)
        names = str(Path(there).parent), str(Path(self.spec).parent)

        number = count(1)

        def answer(piece: Piece) -> PieceAnswer:
            with rare_collections():
                done = self._answer(explainer, names, piece)
            # Spark's daemon collects after each task: all that pieces leave after some of them only, since a
            # visit takes a sixth of a piece's time.
            if next(number) % ALL_AFTER:
                gc.freeze()
            return done

        return answer

    def _answer(self, explainer: RecordingExplainer, names: tuple[str, str], piece: Piece) -> PieceAnswer:
        tally, entries, unfinished = Tally(), [], []
        rows: dict[str, list[Row]] = {}
        for entry in piece.entries:
            result = self._result(explainer, entry)
            if isinstance(result, PlacedRecording):
                entries.append(result)
                unfinished.append(result)
                continue
            entries.append(entry)
            result = _renamed(result, *names)
            tally += Tally.of(entry.number, result)
            for table, more in rows_of(entry.place, result).items():
                rows.setdefault(table, []).extend(more)
        if self.write is not None and rows:
            self.write(piece.name, rows)
        return PieceAnswer(tally, tuple(entries), tuple(unfinished))

    def _result(
        self, explainer: RecordingExplainer, entry: PlacedRecording
    ) -> RecordingResult | PlacedRecording:
        """The result of a recording; an entry if it may still grow, with its current number of bytes."""
        if entry.lost:
            return RecordingResult(entry.name, bad=f"{entry.name}: {entry.lost}")
        size = entry.size
        try:
            data = _bytes_of(self.read, entry, unless=size if entry.may_grow else -1)
            if data is None:
                return entry
            size = len(data)
            return explainer.explained(explainer.cls.decoded(entry.name, {entry.name: data}))
        except Unfinished as error:
            if entry.may_grow:
                return replace(entry, size=size)
            return RecordingResult(entry.name, bad=str(error))
        except BadRecording as error:
            return RecordingResult(entry.name, bad=str(error))


def contradicting(
    wanted: CampaignOptions, read: Read, cls: Any, folder: Path
) -> Callable[[tuple[PlacedRecording, int]], Contradiction | None]:
    """A `crews.Job` that finds the smallest contradiction of a recording that is blocked at an event."""
    explainer = RecordingExplainer(cls, check(str(folder / cls.spec)), wanted)

    def recording(entry: PlacedRecording) -> Recording:
        data = _bytes_of(read, entry, unless=-1) or b""
        return explainer.cls.decoded(entry.name, {entry.name: data})

    return lambda piece: explainer.contradiction(partial(recording, piece[0]), piece[1])


def _bytes_of(read: Read, entry: PlacedRecording, *, unless: int) -> bytes | None:
    """The file of a recording, or None if it has this many bytes; raises `BadRecording`."""
    try:
        return read(entry.place, unless)
    except OSError as error:
        raise BadRecording(f"{entry.name}: {error}") from None


def _renamed(result: RecordingResult, here: str, there: str) -> RecordingResult:
    """A result with the folder of the spec's files replaced by another one."""
    if result.blocked is None:
        return result
    misses = tuple(
        {
            **miss,
            "guards": [{**guard, "where": _moved(guard["where"], here, there)} for guard in miss["guards"]],
        }
        for miss in result.blocked.misses
    )
    return replace(result, blocked=replace(result.blocked, misses=misses))


def _moved(where: str, here: str, there: str) -> str:
    return there + where.removeprefix(here) if where.startswith(here) else where
