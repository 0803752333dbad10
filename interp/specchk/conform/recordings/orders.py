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
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from math import inf
from typing import Any

from msgspec.structs import replace

from specchk.conform.contract.log_tracing import LogTracing, field_of
from specchk.conform.contract.recording import BadRecording, Event, Recording, asked
from specchk.conform.contract.tracing import ImpossibleEvent
from specchk.conform.recordings.events.reading import ReadEvent
from specchk.conform.recordings.events.steps import Horizons
from specchk.conform.recordings.validate import Explained, Haste, TooMany, Validator, Waiting
from specchk.meaning.paths import NotSymbolic
from specchk.meaning.values import State

MOST_TAKEN = 50_000  # lines from cuts, of one search: about a minute

Cut = tuple[int, ...]  # the number of lines taken, by writer
Found = tuple[int, Cut, tuple[State, ...]]  # a line that may be next, with the cut and the states after it


class Lines:
    """A partial order: `chains` has each writer's lines, `needs` those of others that are before a line."""

    def __init__(self, cls: type[LogTracing], events: Sequence[Event]) -> None:
        writers: dict[Any, list[int]] = {}
        for line, event in enumerate(events):
            writers.setdefault(event["at"], []).append(line)
        self.chains = list(writers.values())
        place = {
            line: (writer, n) for writer, chain in enumerate(self.chains) for n, line in enumerate(chain, 1)
        }
        self.needs: list[list[tuple[int, int]]] = [[] for _ in events]  # (a writer, how many of its lines)
        sent: dict[tuple[str, ...] | None, list[tuple[int, int]]] = {None: []}
        for line, event in enumerate(events):
            if (key := _key(cls.sends, event)) is not None:
                sent.setdefault(key, []).append(place[line])
        for line, event in enumerate(events):
            sends = sent.get(_key(cls.receives, event), [])
            # Of several senders any may be the one of this line.
            if len({writer for writer, _ in sends}) == 1 and sends[0][0] != place[line][0]:
                self.needs[line].append(sends[0])
        self._boxes = boxes = [cls.box(event) or (-inf, inf) for event in events]
        for writer, chain in enumerate(self.chains):
            # The earliest end of each line and those after it: if one of them is before a line, so is it.
            ends = list(accumulate((boxes[line][1] for line in reversed(chain)), min))[::-1]
            for line, (begin, _) in enumerate(boxes):
                if place[line][0] != writer and (count := bisect_left(ends, begin)):
                    self.needs[line].append((writer, count))
        self._rank = [(begin, place[line][1]) for line, (begin, _) in enumerate(boxes)]

    @property
    def start(self) -> Cut:
        """The cut before all lines."""
        return (0,) * len(self.chains)

    def ready(self, cut: Cut) -> list[tuple[int, Cut]]:
        """The lines that may be next, the likeliest first, each with the cut after it."""
        heads = [
            (chain[n], w) for w, (chain, n) in enumerate(zip(self.chains, cut, strict=True)) if n < len(chain)
        ]
        free = [(line, (*cut[:w], cut[w] + 1, *cut[w + 1 :])) for line, w in heads
                if all(cut[other] >= count for other, count in self.needs[line])]  # fmt: skip
        return sorted(free, key=lambda item: self._rank[item[0]])

    def heads(self, cut: Cut) -> list[tuple[int, int | None]]:
        """Each writer's next line, and one of another writer that it waits for, if it does."""
        left = [chain[n] for chain, n in zip(self.chains, cut, strict=True) if n < len(chain)]
        waits = [
            [self.chains[w][count - 1] for w, count in self.needs[line] if cut[w] < count] for line in left
        ]
        return [(line, next(iter(others), None)) for line, others in zip(left, waits, strict=True)]

    def cut_after(self, lines: Collection[int]) -> Cut:
        """The cut after some lines."""
        return tuple(sum(line in lines for line in chain) for chain in self.chains)

    def _after(self, line: int, other: int, recording: Recording) -> str:
        gap = self._boxes[line][0] - self._boxes[other][1]
        by = f" (its box begins {gap:.3g} later than that ends)" if gap > 0 else ""
        return f"{recording.place(line + 1)} is after {recording.place(other + 1)}{by}"

    def in_any_order(self, recording: Recording) -> list[int]:
        """The lines in an order that the partial order allows; raises `BadRecording` if there is none."""
        cut, order = self.start, list[int]()
        while ready := self.ready(cut):
            line, cut = ready[0]
            order.append(line)
        if left := self.heads(cut):
            pairs = ", ".join(
                self._after(line, other, recording) for line, other in left if other is not None
            )
            raise BadRecording(f"{recording.name}: messages or time boxes contradict the files: {pairs}")
        return order


def _key(table: Mapping[str, tuple[str, ...]], event: Event) -> tuple[str, ...] | None:
    """The key of a line's message; None for a line without one, or that lacks a part of it."""
    values = [field_of(event, path) for path in table.get(event["event"], ())]
    return tuple(map(str, values)) if values and None not in values else None


def explained_in_order(
    validator: Validator, tracing: LogTracing, recording: Recording
) -> tuple[Explained, Recording]:
    """As `Validator.explain`, in an order that explains the most, with the recording in that order.

    Raises `BadRecording` if the lines cannot be in any order.
    """
    with asked(f"{recording.name}: the times or messages of its lines cannot be read"):
        lines = Lines(type(tracing), recording.events)
    first = lines.in_any_order(recording)
    by, tried = validator, set[Horizons]()
    while True:
        tried.add(by.horizons)
        try:
            search = _Search(by, tracing, recording, lines, first)
            order = search.order()
        except (NotSymbolic, TooMany) as error:
            return Explained(gave_up=f"no order of its lines was found: {error}", by=validator), recording
        ordered = replace(recording, events=tuple(recording.events[line] for line in order))
        explained = validator.explain(tracing.again(), ordered)
        if explained.blocked is not None:
            others = search.waiting(order, explained.blocked.number)
            explained.blocked = replace(explained.blocked, others=others)
        reached = explained.by or validator
        # Blocked by one that takes more steps than this search did: another order may do for it.
        if explained.blocked is None or reached.horizons in tried:
            return explained, ordered
        by = reached


class _Search:
    """The search with one validator; `first` is some order of all lines, in which the tracing reads them."""

    def __init__(
        self, validator: Validator, tracing: LogTracing, recording: Recording, lines: Lines, first: list[int]
    ) -> None:
        self.validator, self.tracing, self.lines, self.first = validator, tracing, lines, first
        self.recording = recording
        self.reads: dict[int, ReadEvent] = {}  # but for lines that the tracing refuses, in any order
        reader = tracing.again()
        for line in first:
            with suppress(ImpossibleEvent):
                self.reads[line] = validator.reader.of(reader, recording.events[line])

    def order(self) -> list[int]:
        """All lines, as far as possible in an order that is explained."""
        taken = self._furthest(Haste.LAZY)
        if self.tracing.silent and len(taken) < len(self.first):
            taken = self._furthest(Haste.EAGER)
        done = set(taken)
        return [*taken, *(line for line in self.first if line not in done)]

    def waiting(self, order: Sequence[int], number: int) -> tuple[Waiting, ...]:
        """The next lines of the writers other than that of the line with a number in an order."""
        heads = self.lines.heads(self.lines.cut_after(set(order[: number - 1])))
        return tuple(
            Waiting(
                self.recording.events[line],
                self.reads[line].meaning if line in self.reads else None,
                "" if other is None else self.recording.place(other + 1),
            )
            for line, other in heads if line != order[number - 1]
        )  # fmt: skip

    def _furthest(self, haste: Haste) -> list[int]:
        """The lines of the longest order that is explained; raises `TooMany` if there are too many to try."""
        known: dict[Cut, set[State]] = {}
        path, best = list[int](), list[int]()
        stack = [self._onward(self.lines.start, self.validator.initial, haste)]
        count = 0
        while stack and len(best) < len(self.first):
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
                del path[-1:]
                continue
            count += 1
            if count > MOST_TAKEN:
                raise TooMany(f"{MOST_TAKEN} were tried; name messages or time boxes that order more of them")
            line, cut, states = found
            fresh = tuple(state for state in states if state not in known.setdefault(cut, set()))
            if fresh:
                known[cut].update(fresh)
                path.append(line)
                best = max(best, list(path), key=len)
                stack.append(self._onward(cut, fresh, haste))
        return best

    def _onward(self, cut: Cut, states: tuple[State, ...], haste: Haste) -> Iterator[Found]:
        for line, after_it in self.lines.ready(cut):
            read = self.reads.get(line)
            if read is None or read.refusal is not None:
                continue
            after = self.validator.taken(read, states)
            after = self.validator.onward_from(self.tracing, read, states, haste, after).after
            if after and not self.validator.broken(after):
                yield line, after_it, after
