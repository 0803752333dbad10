"""The difference between a run and its accepted behaviour: the first step, its observation and its field.

The old run is there in full where it was kept on this machine (`transcripts`), and then old and new are
compared text by text.  Elsewhere there are its digests, which locate the step.

Invariant: two runs with the same digest have no difference; with another one they always have.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.behaviour.symbols import coded
from specchk.conform.behaviour.texts import Written, plain
from specchk.conform.work.lock_file import Symbols

MISSING, ADDED, CHANGED, ORDER = "missing", "added", "changed", "in another order"
SOMEWHERE = "somewhere in the step"
MOST_BEFORE = 3  # events before the difference


class Difference(Struct, frozen=True):
    """The first difference of a run: the `number`-th step (from 0), an event described by `about`.

    `earlier` are the events before it; `seen` is all that left the implementation in the step;
    `observation` is the number of the first one that differs, `field` its field, `before` and `after` their
    texts: each as far as it is known.  `steps` counts the steps that differ, of `all`.
    """

    run: str
    number: int
    about: str
    earlier: tuple[str, ...]
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
    run: str, steps: Sequence[Written], about: Sequence[object], now: Symbols, accepted: Symbols,
    before: Sequence[Written] | None,
) -> Difference | None:  # fmt: skip
    """Return the first difference of a run from its accepted behaviour."""
    if now.digest == accepted.digest:
        return None
    by_trace = [at for at, (old, new) in enumerate(zip_longest(accepted.trace, now.trace)) if old != new]
    # Where the letters of the trace are equal by chance, the last step stands for an unknown one.
    first = _by_text(steps, before) if before is not None else [*by_trace, len(steps) - 1][0]
    number = min(first, len(steps) - 1)
    shown = Difference(
        run, number, str(about[number]), tuple(map(str, about[max(0, number - MOST_BEFORE) : number])),
        SOMEWHERE, steps[number], max(len(by_trace), 1), len(steps),
    )  # fmt: skip
    if before is None:
        return shown
    old = before[first] if first < len(before) else ()
    return _compared(shown, old, steps[first] if first < len(steps) else ())


def _by_text(steps: Sequence[Written], before: Sequence[Written]) -> int:
    pairs = zip_longest(coded(before, {}), coded(steps, {}))
    return next(at for at, (old, new) in enumerate(pairs) if old != new)


def _compared(shown: Difference, old: Written, new: Written) -> Difference:
    """Return the difference with its observation and field, from both texts of a step."""
    at = next((at for at, (was, now) in enumerate(zip_longest(old, new)) if was != now), None)
    if at is None:  # a sentence that others have changed places with
        return shown
    if sorted(old[at : at + 2]) == sorted(new[at : at + 2]) and len(old) == len(new):
        return replace(shown, observation=at, kind=ORDER, before=_line(old, at), after=_line(new, at))
    if at >= len(new) or (len(old) > len(new) and old[at + 1 : at + 2] == new[at : at + 1]):
        return replace(shown, observation=at, kind=MISSING, before=_line(old, at))
    if at >= len(old) or (len(new) > len(old) and new[at + 1 : at + 2] == old[at : at + 1]):
        return replace(shown, observation=at, kind=ADDED, after=_line(new, at))
    was, now = next((was, now) for was, now in zip_longest(old[at], new[at]) if was != now)
    name = (now or was).partition("=")[0]
    texts = [None if text is None else plain(text) for text in (was, now)]
    return replace(shown, observation=at, kind=CHANGED, field=name, before=texts[0], after=texts[1])


def _line(step: Written, at: int) -> str:
    return plain(", ".join(step[at]))
