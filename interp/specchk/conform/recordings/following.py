"""Recordings explained as they appear in a growing folder, with an alarm for each unexplained one.

A file without its end may still be written.  It is read again when it has grown, and has no verdict once it
has not grown for as long as the follower's patience, nor where the run ends before it does.

Invariant: each recording that was given is in the tally once at the end, with a verdict or with the reason
why it has none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from time import monotonic

from msgspec.structs import replace

from specchk.conform.recordings.by_crew import CrewExplainer
from specchk.conform.recordings.pieces import Piece, PieceAnswer, PlacedRecording
from specchk.conform.recordings.result import MOST_KEPT, RecordingResult, Tally

UNFINISHED = "the recording had no end when the run ended"
UNREAD = "the run ended before it was validated"


class RunEnded(Exception):
    """The run ended before all recordings of a batch were validated."""


class Follower:
    """The recordings of a run so far; `alarm` receives a line for each unexplained one."""

    def __init__(
        self, work: CrewExplainer, alarm: Callable[[str], None], patience: float,
        clock: Callable[[], float] = monotonic,
    ) -> None:  # fmt: skip
        self.work, self.alarm, self.patience, self.clock = work, alarm, patience, clock
        self.tally = Tally()
        self._count = 0
        self._has_ended = False
        # By place, with the time of the last growth.
        self._growing: dict[str, tuple[PlacedRecording, float]] = {}
        self._taken: dict[str, PlacedRecording] = {}  # of the batch that is being done
        self._diverging: dict[int, str] = {}  # the places of the first ones, by number

    @property
    def growing(self) -> list[str]:
        """The places of unfinished recordings."""
        return list(self._growing)

    def take(self, prefix: str, places: Sequence[str]) -> None:
        """Explain new recordings; `prefix` begins the names of their table parts.

        Raises `RunEnded` where `end` is called meanwhile: a batch that was not done is not to be committed.
        """
        fresh = [place for place in dict.fromkeys(places) if place not in self._growing]
        self._taken = {place: self._entry(place) for place in fresh}
        for answer in self.work.answers(self.work.pieces(list(self._taken.values()), prefix)):
            if self._has_ended:
                raise RunEnded
            self._hear(answer)
        self._taken = {}

    def expect(self, places: Sequence[str]) -> None:
        """Continue with recordings that were unfinished in an earlier run."""
        self._growing = {place: (self._entry(place), self.clock()) for place in places}

    def look_again(self) -> bool:
        """Read the recordings that may have grown; returns whether any of them now has a verdict."""
        now, before = self.clock(), self.tally.recordings
        entries = [
            replace(entry, may_grow=now - since < self.patience) for entry, since in self._growing.values()
        ]
        for answer in self.work.answers([Piece(_late(entry), (entry,)) for entry in entries]):
            self._hear(answer)
        return self.tally.recordings > before

    def end(self) -> None:
        """Request an early end of the current batch; callable from any thread."""
        self._has_ended = True

    def finish(self) -> Tally:
        """The tally of the run, in which recordings without a verdict are counted as such."""
        for entry, _ in self._growing.values():
            self._count_unread(entry, UNFINISHED)
        for entry in self._taken.values():
            if entry.place not in self._growing:
                self._count_unread(entry, UNREAD)
        return self.work.contradicted(self.tally, self._diverging)

    def _entry(self, place: str) -> PlacedRecording:
        self._count += 1
        return PlacedRecording(self._count, place, may_grow=True)

    def _count_unread(self, entry: PlacedRecording, reason: str) -> None:
        self.tally += Tally.of(entry.number, RecordingResult(entry.name, bad=f"{entry.name}: {reason}"))

    def _hear(self, answer: PieceAnswer) -> None:
        self.tally += answer.tally
        for entry in answer.entries:
            known = self._growing.pop(entry.place, None)
            self._taken.pop(entry.place, None)
            if entry in answer.unfinished:
                has_grown = known is None or known[0].size != entry.size
                since = self.clock() if known is None or has_grown else known[1]
                self._growing[entry.place] = (entry, since)
        places = {entry.number: entry.place for entry in answer.entries}
        for number, result in answer.tally.blocked.kept:
            if len(self._diverging) < MOST_KEPT:
                self._diverging[number] = places[number]
            assert result.blocked is not None
            event = f"{result.blocked.event.get('at')}: {result.blocked.event.get('event')}"
            self.alarm(
                f"{places[number]}: no behaviour of the spec explains event {result.blocked.number} of "
                f"{result.events} ({event})"
            )
        for number, reason in answer.tally.bad.kept:
            self.alarm(f"{places[number]}: no verdict: {reason}")


def _late(entry: PlacedRecording) -> str:
    """The name of a late recording's parts, by its place, so that they are overwritten after a crash."""
    return f"late-{hashlib.sha256(entry.place.encode()).hexdigest()[:16]}"
