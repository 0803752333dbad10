"""The smallest contradiction: the fewest lines of a blocked recording that no behaviour explains.

A line claims that its step was taken, and that its fields have these values after it.  A line that is *left
open* claims neither: its step may have been taken or not.  The more lines are open, the more behaviours
explain the rest; so from the unexplained line backwards as many as possible are left open, in one piece,
while the rest stays unexplained.  The line before the piece is needed, and the search continues before it:

    1 2 3 4 5 6 7 8 9       9 is not explained
    1 2 3 4 5 . . . 9       nor without 6 to 8, but without 5 to 8 it is: 5 is needed
    . . . . 5 . . . 9       not even without 1 to 4: 5 and 9 contradict each other

Of each line that is left the step, or the fields, that are not needed are left open as well.  The result is
minimal: whichever claim of it is left open, a behaviour explains the others.

Lines left open multiply the candidates.  If they are more than `MOST_OPEN`, or all searches together have
followed `MOST_FOLLOWED`, the search ends: then the lines before do not contradict by themselves, but are
assumed (`Contradiction.given`), and undecided claims are kept (`is_minimal` is false).

Theory: minimal unsatisfiable subsets by binary search, as in Hemery, Lecoutre, Sais, Boussemart,
"Extracting MUCs from constraint networks" (2006).

Lines of several writers may also be in another order than their steps: then one move of a line explains
them (`Contradiction.order`).

Not here: why no candidate takes the unexplained line (`nearmiss`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.contract.log_tracing import LogTracing
from specchk.conform.contract.recording import Recording
from specchk.conform.contract.tracing import ImpossibleEvent, Meaning, Tracing
from specchk.conform.contract.values import words
from specchk.conform.recordings.validate import Haste, TooMany, Validator
from specchk.meaning.paths import NotSymbolic
from specchk.meaning.values import State

MOST_OPEN = 256  # candidates at once
MOST_FOLLOWED = 20_000  # candidates of all searches for one recording: some seconds
NEAR, LONGEST = 8, 2_000  # lines across which one is moved, in a recording blocked among so many


class NeededLine(Struct, frozen=True):
    """A line of a contradiction: whether its step is needed, and which fields' recorded values are."""

    number: int
    event: Mapping[str, Any]
    step: bool
    fields: Mapping[str, str]


class Contradiction(Struct, frozen=True):
    """Lines that no behaviour explains together, after the first `given` lines as recorded.

    `order`: all would be explained so far if the first of these two lines came right after the second, which
    another writer wrote, or came first (0); no lines where the tracing refuses one by itself.
    """

    lines: tuple[NeededLine, ...]
    given: int
    is_minimal: bool
    order: tuple[int, int] | None = None


class LinesOutcome(Enum):
    """Whether lines are explained, with some of them left open."""

    BLOCKED = "blocked"
    EXPLAINED = "explained"
    BOUND = "a bound ended the search"


def contradiction_of(
    validator: Validator, tracing: Tracing, recording: Recording, number: int
) -> Contradiction | None:
    """The smallest contradiction of a recording's first lines, the last of which is not explained.

    Without an `order`, None where the tracing refuses a line by itself, so that the spec has no part in it,
    or where the lines before the last have too many candidates.
    """
    # Of a log without a clock all orders were tried.
    is_ordered = not (isinstance(tracing, LogTracing) and tracing.per_writer)
    order = _other_order(validator, tracing, recording, number - 1) if is_ordered else None
    events = recording.events[:number]
    reader = tracing.again()
    try:
        meanings = [reader.meaning(event) for event in events]
        smallest = _Shrinking(validator, reader, recording, meanings).smallest()
    except (ImpossibleEvent, NotSymbolic, TooMany):
        smallest = None
    return smallest if order is None else replace(smallest or Contradiction((), 0, True), order=order)


def _other_order(
    validator: Validator, tracing: Tracing, recording: Recording, last: int
) -> tuple[int, int] | None:
    """The order of writers' lines that explains a recording up to a line, as in `Contradiction`."""
    for line, place in _moves(recording, last):
        events = list(recording.events)
        events.insert(place, events.pop(line))
        moved = replace(recording, events=tuple(events[: max(last, place) + 1]))
        explained = validator.explain(tracing.again(), moved)
        if explained.blocked is None and not explained.gave_up:
            return line + 1, place if place < line else place + 1
    return None


def _moves(recording: Recording, last: int) -> Iterator[tuple[int, int]]:
    """A line and its new index: a line, or one just before it, moved across some of other writers."""
    writers = [event["at"] for event in recording.events] if last < LONGEST else []
    for distance in range(1, NEAR + 1):
        for line, place in ((last, last - distance), (last, last + distance), (last - distance, last)):
            low, high = min(line, place), max(line, place)
            if low >= 0 and high < len(writers) and writers[low : high + 1].count(writers[line]) == 1:
                yield line, place


def _open(meaning: Meaning) -> Meaning:
    """A line without claims."""
    return meaning._replace(ways=(*meaning.ways, ()), seen=())


class _Shrinking:
    """One search: the remaining claims of each line, and the candidates before each line for these."""

    def __init__(
        self, validator: Validator, tracing: Tracing, recording: Recording, meanings: list[Meaning]
    ) -> None:
        self.validator, self.tracing, self.events = validator, tracing, recording.events
        self.meanings = meanings
        self.before: list[tuple[State, ...]] = [validator.initial]
        self.followed = 0
        self.last = len(meanings) - 1
        # Kept, since each trial begins in the middle.
        self._renew(0)

    def smallest(self) -> Contradiction | None:
        if self._test(self.last, {}) is not LinesOutcome.BLOCKED:
            return None  # a tracing that reads the same line differently: there is no answer
        needed, given, is_minimal = [self.last], 0, True
        end = self.last
        while end > 0:
            first, outcome = self._opened(end)
            self.meanings[first:end] = map(_open, self.meanings[first:end])
            if first == 0:
                break
            if outcome is LinesOutcome.BOUND:
                given, is_minimal = first, False
                break
            # With this line open all would be explained, so it is one of them; before it the search begins
            # again.
            end = first - 1
            needed.append(end)
        needed.reverse()
        self._renew(given)
        lines = []
        for number in needed:
            line, decided = self._claims(number)
            is_minimal = is_minimal and decided
            lines.append(line)
        return Contradiction(tuple(lines), given, is_minimal)

    def _opened(self, end: int) -> tuple[int, LinesOutcome]:
        """The first of the lines before `end` that can all be left open, and why not the line before it."""
        works, fails, why, size = end, -1, LinesOutcome.BLOCKED, 1
        while works - fails > 1:
            # Doubling and then halving: of thousands of lines before a contradiction usually all can be left
            # open, and sometimes the one just before cannot.
            first = max(0, works - size) if fails < 0 else (works + fails) // 2
            found = self._test(first, {number: _open(self.meanings[number]) for number in range(first, end)})
            if found is LinesOutcome.BLOCKED:
                works, size = first, 2 * size
            else:
                fails, why = first, found
        return works, why

    def _claims(self, number: int) -> tuple[NeededLine, bool]:
        """A needed line with its needed claims, and whether no bound kept a further claim."""
        trials: list[LinesOutcome] = []
        # Fields first: where the step alone, or a field alone, would do, the step is easier to follow.
        if self._weaken(number, self.meanings[number]._replace(seen=())) is not LinesOutcome.BLOCKED:
            for name in dict.fromkeys(one.field for one in self.meanings[number].seen):
                others = tuple(one for one in self.meanings[number].seen if one.field != name)
                trials.append(self._weaken(number, self.meanings[number]._replace(seen=others)))
        is_step_needed = True
        if number != self.last:
            ways = (*self.meanings[number].ways, ())
            trials.append(self._weaken(number, self.meanings[number]._replace(ways=ways)))
            is_step_needed = trials[-1] is not LinesOutcome.BLOCKED
        fields = {one.field: words(one.value) for one in self.meanings[number].seen}
        return NeededLine(
            number + 1, self.events[number], is_step_needed, fields
        ), LinesOutcome.BOUND not in trials

    def _weaken(self, number: int, meaning: Meaning) -> LinesOutcome:
        """Leave a claim open if the rest is still unexplained."""
        found = self._test(number, {number: meaning})
        if found is LinesOutcome.BLOCKED:
            self.meanings[number] = meaning
            self._renew(number)
        return found

    def _renew(self, first: int) -> None:
        """Recompute the candidates after a line with changed claims, up to the last line."""
        del self.before[first + 1 :]
        for number in range(first, self.last):
            self.before.append(self._onward(self.meanings[number], self.before[-1]))

    def _test(self, first: int, other: Mapping[int, Meaning]) -> LinesOutcome:
        """Whether the lines from one on are explained, with some claims changed."""
        states = self.before[first]
        for number in range(first, self.last + 1):
            try:
                states = self._onward(other.get(number, self.meanings[number]), states)
            except (NotSymbolic, TooMany):
                return LinesOutcome.BOUND
            # Open lines allow what no recording would: without bounds the search would become one of the
            # whole spec.
            if len(states) > MOST_OPEN or self.followed > MOST_FOLLOWED:
                return LinesOutcome.BOUND
            if not states:
                return LinesOutcome.BLOCKED
        return LinesOutcome.EXPLAINED

    def _onward(self, meaning: Meaning, before: Sequence[State]) -> tuple[State, ...]:
        self.followed += len(before)
        return self.validator.onward(self.tracing, meaning, tuple(before), Haste.EAGER).after
