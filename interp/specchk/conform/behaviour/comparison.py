"""The difference between a run and its accepted behaviour: the first step, its observation and its field.

The old run is there in full where it was kept on this machine (`transcripts`), and then old and new are
compared text by text.  Elsewhere there are its digests, which locate the step, and the field where a single
one changed.

Invariant: two runs with the same digest have no difference; with another one they always have.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.behaviour.symbols import changed_text, check_at, symbols_of
from specchk.conform.behaviour.texts import Written
from specchk.conform.work.lock_file import Symbols

MISSING, ADDED, CHANGED, ORDER = "missing", "added", "changed", "in another order"
SOMEWHERE = "somewhere in the step"


class Difference(Struct, frozen=True):
    """The first difference of a run: the `number`-th step (from 0), an event described by `about`.

    `seen` is all that left the implementation in the step; `observation` is the number of the first one
    that differs, `field` its field, `before` and `after` their texts: each as far as it is known.  `steps`
    counts the steps that differ, of `all`.
    """

    run: str
    number: int
    about: str
    kind: str
    seen: Written
    steps: int
    all: int
    observation: int | None = None
    field: str = ""
    before: str | None = None
    after: str | None = None

    @property
    def place(self) -> str:
        """The place of the difference, without values, for counting the differences of many runs."""
        if self.observation is None or self.observation >= len(self.seen):
            return self.kind
        name = self.seen[self.observation][0]
        return f"{name}, {self.field}" if self.field else f"{name}, {self.kind}"


def difference(
    run: str,
    steps: Sequence[Written],
    about: Sequence[object],
    accepted: Symbols,
    before: Sequence[Written] | None,
) -> Difference | None:
    """Return the first difference of a run from its accepted behaviour."""
    symbols = symbols_of(steps, accepted.group)
    if symbols.digest == accepted.digest:
        return None
    count = sum(old != new for old, new in zip_longest(accepted.trace, symbols.trace))
    first = _by_text(steps, before) if before is not None else _by_symbols(symbols, accepted)
    number = min(first, len(steps) - 1)
    shown = Difference(run, number, str(about[number]), SOMEWHERE, steps[number], max(count, 1), len(steps))
    if before is not None:
        old = before[first] if first < len(before) else ()
        return _compared(shown, old, steps[first] if first < len(steps) else ())
    return _located(shown, steps, symbols, accepted)


def _by_text(steps: Sequence[Written], before: Sequence[Written]) -> int:
    return next(at for at, (old, new) in enumerate(zip_longest(before, steps)) if old != new)


def _by_symbols(symbols: Symbols, accepted: Symbols) -> int:
    """Return the first step that differs according to the digests; the last step if they show none."""
    pairs = enumerate(zip_longest(accepted.trace, symbols.trace))
    by_trace = next((at for at, (old, new) in pairs if old != new), len(symbols.trace) - 1)
    groups = range(-(-len(symbols.trace) // symbols.group))
    by_checks = next(
        (at for at in groups if check_at(symbols.checks, at) != check_at(accepted.checks, at)), None
    )
    # In an earlier group, though no letter of the trace differs there: one of 64 is the same by chance.
    if by_checks is not None and (by_checks + 1) * symbols.group <= by_trace:
        return by_checks * symbols.group
    return by_trace


def _compared(shown: Difference, old: Written, new: Written) -> Difference:
    """Return the difference with its observation and field, from both texts of a step."""
    at = next(at for at, (was, now) in enumerate(zip_longest(old, new)) if was != now)
    if sorted(old[at : at + 2]) == sorted(new[at : at + 2]) and len(old) == len(new):
        return replace(shown, observation=at, kind=ORDER, before=_line(old, at), after=_line(new, at))
    if at >= len(new) or (len(old) > len(new) and old[at + 1 : at + 2] == new[at : at + 1]):
        return replace(shown, observation=at, kind=MISSING, before=_line(old, at))
    if at >= len(old) or (len(new) > len(old) and new[at + 1 : at + 2] == old[at : at + 1]):
        return replace(shown, observation=at, kind=ADDED, after=_line(new, at))
    was, now = next((was, now) for was, now in zip_longest(old[at], new[at]) if was != now)
    return replace(
        shown, observation=at, kind=CHANGED, field=(now or was).partition("=")[0], before=was, after=now
    )


def _line(step: Written, at: int) -> str:
    return ", ".join(step[at])


def _located(shown: Difference, steps: Sequence[Written], symbols: Symbols, accepted: Symbols) -> Difference:
    """Return the difference with its field, if a single field changed in the group of the step."""
    group = shown.number // symbols.group
    text = changed_text(check_at(accepted.checks, group), check_at(symbols.checks, group))
    if text is None:
        return shown
    texts = [
        (step, at, part)
        for step in range(group * symbols.group, min((group + 1) * symbols.group, len(steps)))
        for at, seen in enumerate(steps[step])
        for part in seen
    ]
    # The quotient is that of several changes where it names no text, or one of another step.
    if text >= len(texts) or texts[text][0] != shown.number:
        return shown
    _, at, part = texts[text]
    return replace(shown, observation=at, kind=CHANGED, field=part.partition("=")[0], after=part)
