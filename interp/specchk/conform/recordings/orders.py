"""An order of the lines of several writers that have no common clock, in which the spec explains them.

What is known is a partial order (`LogTracing`): each writer's own order, messages, and time boxes.  A
recording is a behaviour if one of the orders that extend it is explained.  The search goes depth first
through the cuts (how many lines of each writer are taken), in the order of times where there are some; a
state in which the spec was at a cut is not followed twice.  So it is complete, and for a recording that is
explained it mostly goes straight.  What it gives is an order: one that is explained, or if there is none, the
one that was explained the furthest.  A recording in that order is treated as any other (`validate`).

Theory: Wing and Gong, "Testing and verifying concurrent objects" (1993), with the memory of Lowe, "Testing
for linearizability" (2017).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.contract.log_tracing import LogTracing, field_of
from specchk.conform.contract.recording import BadRecording, Event, Recording
from specchk.conform.contract.tracing import ImpossibleEvent
from specchk.conform.recordings.events.reading import ReadEvent
from specchk.conform.recordings.events.steps import Horizons
from specchk.conform.recordings.validate import Explained, Haste, TooMany, Validator
from specchk.meaning.paths import NotSymbolic
from specchk.meaning.values import State

MOST_TAKEN = 50_000  # lines from cuts, of one search: about a minute

Cut = tuple[int, ...]  # the number of lines taken, by writer


class Lines(Struct, frozen=True):
    """A partial order: each writer's lines, as indices of a recording's events, and the needs of each line.

    A need is a cut that has all lines before the line; `rank` orders lines that may be in any order.
    """

    chains: tuple[tuple[int, ...], ...]
    needs: tuple[Cut, ...]
    rank: tuple[float, ...]

    def ready(self, cut: Cut) -> list[int]:
        """The writers whose next line may come now, the likeliest first."""
        heads = [
            (chain[cut[writer]], writer)
            for writer, chain in enumerate(self.chains)
            if cut[writer] < len(chain)
        ]
        free = [(self.rank[line], writer) for line, writer in heads
                if all(done >= need for done, need in zip(cut, self.needs[line], strict=True))]  # fmt: skip
        return [writer for _, writer in sorted(free)]


def lines_of_writers(cls: type[LogTracing], events: Sequence[Event]) -> Lines:
    """The partial order of a recording's lines."""
    chains: dict[Any, list[int]] = {}
    for number, event in enumerate(events):
        chains.setdefault(event["at"], []).append(number)
    places = {
        line: (writer, done)
        for writer, chain in enumerate(chains.values())
        for done, line in enumerate(chain)
    }
    needs = [[0] * len(chains) for _ in events]
    sent: dict[Any, int] = {}
    for number, event in enumerate(events):
        if (key := _key(cls.sends, event)) is not None:
            sent.setdefault(key, number)
    for number, event in enumerate(events):
        first = sent.get(_key(cls.receives, event))
        if first is not None and places[first][0] != places[number][0]:
            writer, done = places[first]
            needs[number][writer] = done + 1
    boxes = [cls.box(event) for event in events]
    for writer, chain in enumerate(chains.values()):
        ends = sorted(
            (box[1], done + 1) for done, line in enumerate(chain) if (box := boxes[line]) is not None
        )
        most = list(accumulate((done for _, done in ends), max))
        for number, box in enumerate(boxes):
            at = bisect_left(ends, (box[0], 0)) if box is not None else 0
            if at and places[number][0] != writer:
                needs[number][writer] = max(needs[number][writer], most[at - 1])
    times = [0.0 if box is None else sum(box) / 2 for box in boxes]
    rank = [times[line] or places[line][1] for line in range(len(events))]
    return Lines(tuple(map(tuple, chains.values())), tuple(map(tuple, needs)), tuple(rank))


def _key(table: Mapping[str, tuple[str, ...]], event: Event) -> tuple[str, ...] | None:
    fields = table.get(event["event"])
    return None if fields is None else tuple(str(field_of(event, path)) for path in fields)


def explained_in_order(
    validator: Validator, tracing: LogTracing, recording: Recording
) -> tuple[Explained, Recording]:
    """As `Validator.explain`, in an order that explains the most, with the recording in that order.

    Raises `BadRecording` if the lines cannot be in any order.
    """
    lines = lines_of_writers(type(tracing), recording.events)
    first = in_any_order(lines, recording)
    by, tried = validator, set[Horizons]()
    while True:
        tried.add(by.horizons)
        search = _Search(
            by, tracing, replace(recording, events=tuple(recording.events[n] for n in first)), lines, first
        )
        try:
            order = search.order()
        except (NotSymbolic, TooMany) as error:
            return Explained(gave_up=f"no order of its lines was found: {error}", by=validator), recording
        ordered = replace(recording, events=tuple(recording.events[n] for n in order))
        explained = validator.explain(tracing.again(), ordered)
        reached = explained.by or validator
        # Blocked by one that takes more steps than this search did: another order may do for it.
        if explained.blocked is None or reached.horizons in tried:
            return explained, ordered
        by = reached


def in_any_order(lines: Lines, recording: Recording) -> list[int]:
    """The lines in an order that the partial order allows; raises `BadRecording` if there is none."""
    cut: Cut = (0,) * len(lines.chains)
    order: list[int] = []
    while len(order) < len(recording.events):
        ready = lines.ready(cut)
        if not ready:
            heads = [chain[done] for chain, done in zip(lines.chains, cut, strict=True) if done < len(chain)]
            places = ", ".join(recording.place(line + 1) for line in heads)
            why = "each of these lines is after another one, by messages or time boxes"
            raise BadRecording(f"{recording.name}: {why}: {places}")
        order.append(lines.chains[ready[0]][cut[ready[0]]])
        cut = _after(cut, ready[0])
    return order


def _after(cut: Cut, writer: int) -> Cut:
    return (*cut[:writer], cut[writer] + 1, *cut[writer + 1 :])


class _Search:
    """The search with one validator."""

    def __init__(
        self,
        validator: Validator,
        tracing: LogTracing,
        recording: Recording,
        lines: Lines,
        first: Sequence[int],
    ) -> None:
        self.validator, self.tracing, self.lines, self.first = validator, tracing, lines, first
        self.reads: dict[int, ReadEvent | None] = {}
        reader = tracing.again()
        for line, event in zip(first, recording.events, strict=True):
            try:
                self.reads[line] = validator.reader.read(reader.meaning(event))
            except ImpossibleEvent:
                self.reads[line] = None  # refused in any order

    def order(self) -> list[int]:
        """All lines, as far as possible in an order that is explained."""
        for haste in (Haste.LAZY, Haste.EAGER) if self.tracing.silent else (Haste.LAZY,):
            taken = self._furthest(haste)
            if len(taken) == len(self.first):
                break
        done = set(taken)
        return [*taken, *(line for line in self.first if line not in done)]

    def _furthest(self, haste: Haste) -> list[int]:
        """The lines of the longest order that is explained; raises `TooMany` if there are too many to try."""
        cut: Cut = (0,) * len(self.lines.chains)
        known: dict[Cut, set[State]] = {}
        path: list[int] = []
        best: list[int] = []
        stack = [self._onward(cut, self.validator.initial, haste)]
        count = 0
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
                del path[-1:]
                continue
            count += 1
            if count > MOST_TAKEN:
                raise TooMany(f"{MOST_TAKEN} were tried; name messages or time boxes that order more of them")
            line, cut, states = found
            old = known.setdefault(cut, set())
            fresh = tuple(state for state in states if state not in old)
            if not fresh:
                continue
            old.update(fresh)
            path.append(line)
            if len(path) > len(best):
                best = list(path)
                if len(best) == len(self.first):
                    return best
            stack.append(self._onward(cut, fresh, haste))
        return best

    def _onward(
        self, cut: Cut, states: tuple[State, ...], haste: Haste
    ) -> Iterator[tuple[int, Cut, tuple[State, ...]]]:
        """Each line that may be next, with the cut and the states after it."""
        for writer in self.lines.ready(cut):
            line = self.lines.chains[writer][cut[writer]]
            read = self.reads[line]
            if read is None or read.refusal is not None:
                continue
            after = self.validator.taken(read, states)
            after = self.validator.onward_from(self.tracing, read, states, haste, after).after
            if after and not self.validator.broken(after):
                yield line, _after(cut, writer), after
