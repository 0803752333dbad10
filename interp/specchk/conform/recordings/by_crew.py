"""A campaign by a crew: recordings in pieces, a wave of pieces at a time.

The driver has the places of the recordings, one wave's answers, and one tally.  A piece that is lost, as
when a process is killed, is done again; a recording of which every attempt is lost has no verdict, and the
others of its piece have theirs.

Invariant: each recording is in the tally once, with a verdict or with the reason why it has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.contract.tracing import Tracing
from specchk.conform.recordings.campaign import Campaign, all_contradicted, concluded, to_contradict
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.conform.recordings.pieces import (
    Explaining,
    Piece,
    PieceAnswer,
    PlacedRecording,
    Read,
    Write,
    contradicting,
)
from specchk.conform.recordings.result import Tally
from specchk.conform.work.crews import Crew, LostWork
from specchk.lang.frontend import CheckedSpec

MOST_ENTRIES = 64  # of a piece: the work that is repeated when a process is lost
WAVE = 8  # pieces for each hand; a wave's answers are in memory at once
# Pieces of a wave at least: hands are idle at its end, half a piece long each.  Answers have some 20 kB.
LEAST_WAVE = 256
ATTEMPTS = 3


class CrewExplainer(Struct, frozen=True):
    """Explains recordings that a crew can read; `write` stores tables, if there are any."""

    cls: type[Tracing]
    checked: CheckedSpec
    wanted: CampaignOptions
    crew: Crew
    read: Read
    write: Write | None = None

    def pieces(self, entries: Sequence[PlacedRecording], prefix: str = "") -> list[Piece]:
        """All recordings in pieces; `prefix` begins the names of their table parts."""
        size = max(1, min(MOST_ENTRIES, -(-len(entries) // (2 * self.crew.hands))))
        return [
            Piece(f"{prefix}{first // size:06d}", tuple(entries[first : first + size]))
            for first in range(0, len(entries), size)
        ]

    def answers(self, pieces: Sequence[Piece]) -> Iterator[PieceAnswer]:
        """The answer of each piece, in order."""
        few = WAVE * self.crew.hands
        yield from self._by_waves(pieces, (max(LEAST_WAVE, few), few))

    def _by_waves(self, pieces: Sequence[Piece], counts: Sequence[int]) -> Iterator[PieceAnswer]:
        """The results by waves of this many pieces; a lost piece is repeated in smaller ones."""
        if not counts:
            yield from map(self._settled, pieces)
            return
        count, *smaller = counts
        for first in range(0, len(pieces), count):
            wave = pieces[first : first + count]
            try:
                yield from self._done(wave)
            except LostWork:
                yield from self._by_waves(wave, smaller)

    def contradicted(self, tally: Tally, places: Mapping[int, str]) -> Tally:
        """The tally with smallest contradictions; `places` are those of the recordings, by number."""
        chosen = [(number, event) for number, event in to_contradict(tally, self.wanted) if number in places]
        if not chosen:
            return tally
        pieces = [(PlacedRecording(number, places[number]), event) for number, event in chosen]
        job = partial(contradicting, self.wanted, self.read)
        try:
            answers = self.crew.each(job, pieces, f"{self.cls.__name__}: smallest contradictions")
        except LostWork:
            return tally  # of use to a reader, and no part of the verdict
        return all_contradicted(tally, dict(zip((number for number, _ in chosen), answers, strict=True)))

    def _done(self, wave: Sequence[Piece], write: bool = True) -> list[PieceAnswer]:
        job = Explaining(self.wanted, self.checked.spec.source.path, self.read, self.write if write else None)
        count = sum(len(piece.entries) for piece in wave)
        return self.crew.each(job, wave, f"{self.cls.__name__}: {count} recordings")

    def _settled(self, piece: Piece) -> PieceAnswer:
        """The answer of a piece with recordings that may end the process."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._done([piece])[0]
            except LostWork:
                # Each alone and without its rows, which the whole piece writes under one name.
                piece = replace(piece, entries=tuple(map(self._tried, piece.entries)))
        try:
            return self._done([piece])[0]
        except LostWork as reason:
            lost = tuple(replace(entry, lost=str(reason)) for entry in piece.entries)
            return self._done([replace(piece, entries=lost)])[0]

    def _tried(self, entry: PlacedRecording) -> PlacedRecording:
        try:
            self._done([Piece("", (entry,))], write=False)
        except LostWork as reason:
            return replace(entry, lost=str(reason))
        return entry


def run_campaign_by(work: CrewExplainer, places: Sequence[str]) -> Campaign:
    """A campaign on the recordings at some places; raises `SpecError` if the model is too small for one."""
    begun = perf_counter()
    work = replace(work, wanted=replace(work.wanted, recordings=len(places)))
    entries = [PlacedRecording(number, place) for number, place in enumerate(places)]
    tally = sum((answer.tally for answer in work.answers(work.pieces(entries))), Tally())
    tally = work.contradicted(tally, dict(enumerate(places)))
    workers = min(work.crew.hands, len(places))
    return concluded(work.cls, tally, work.wanted, perf_counter() - begun, workers)
