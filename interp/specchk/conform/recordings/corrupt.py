"""Trace power: copies of accepted recordings with one planted error, which must be rejected.

A validator that accepts everything would accept every recording; so each accepted one is corrupted in
every way below, renumbered as if it had been recorded so, and must no longer be explained.

    flip        one field that an event shows has another value; one that its tracing reads, if none shows any
    drop        one event is missing
    swap        two successive events of one writer are exchanged
    duplicate   one event is duplicated

Not every corrupted copy is wrong: it may be possible as well (a request without an
answer may not have been served; two events of one writer may be independent).  So the share of
rejected copies is a measure, for which a campaign has a minimum, and not a law for each copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.contract.log_tracing import OWN, LogTracing
from specchk.conform.contract.recording import Event, Recording, Unreadable, renumbered, shown_after
from specchk.conform.contract.tracing import ImpossibleEvent, Tracing

KINDS = ("flip", "drop", "swap", "duplicate")
MOST_TRIED = 32  # events in which a field is looked for that matters


class SpoiledCopy(Struct, frozen=True):
    """A copy with one planted error, and its description."""

    what: str
    recording: Recording


def spoil(
    recording: Recording, kind: str, random: Random, tracing: Tracing | None = None
) -> SpoiledCopy | None:
    """A copy with one planted error of a kind; None if the kind does not apply.

    The tracing says which fields and lines of a log matter.
    """
    events = list(recording.events)
    if kind == "flip":
        # In a log `after` is a field like any other, which its tracing may not read.
        is_log = isinstance(tracing, LogTracing)
        shown = [] if is_log else [n for n, event in enumerate(events) if shown_after(event)]
        if not shown:
            return None if tracing is None else _flipped_line(recording, random, tracing)
        at = random.choice(shown)
        after = dict(shown_after(events[at]))
        # Sorted, since the members of an object have the order of the recording's writer.
        field = random.choice(sorted(after))
        after[field] = _other(after[field], random)
        what = f"{field} of {_named(events, at)} is {after[field]!r}"
        is_object = isinstance(events[at]["after"], dict)
        events[at] = {**events[at], "after": after if is_object else after["after"]}
    elif not (steps := _steps(recording, tracing)):
        return None
    elif kind == "drop":
        at = random.choice(steps)
        what = f"{_named(events, at)} is missing"
        del events[at]
    elif kind == "duplicate":
        at = random.choice(steps)
        what = f"{_named(events, at)} is duplicated"
        events.insert(at, events[at])
    else:
        pairs = _successive(events)
        if isinstance(tracing, LogTracing):
            # Lines that differ in their times and places alone, swapped, would be the same recording.
            read = [repr(_read(tracing, event)) for event in events]
            pairs = [(at, next_) for at, next_ in pairs if read[at] != read[next_]]
        if not pairs:
            return None
        at, next_ = random.choice(pairs)
        what = f"{_named(events, at)} comes after {_named(events, next_)}"
        events[at], events[next_] = events[next_], events[at]
    return SpoiledCopy(what, replace(recording, events=renumbered(events)))


def _flipped_line(recording: Recording, random: Random, tracing: Tracing) -> SpoiledCopy | None:
    """A copy in which a field has another value, preferably another event's, that its tracing reads."""
    events = list(recording.events)
    for at in random.sample(range(len(events)), min(len(events), MOST_TRIED)):
        event = events[at]
        for field in random.sample(fields := sorted(set(event).difference(OWN)), len(fields)):
            own = event[field]
            others = {repr(one[field]): one[field] for one in events if one.get(field, own) != own}
            value = others[random.choice(sorted(others))] if others else _other(own, random)
            changed = {**event, field: value}
            if (read := _read(tracing, event)) is not None and repr(read) != repr(_read(tracing, changed)):
                what = f"{field} of {_named(events, at)} is {value!r}"
                events[at] = changed
                return SpoiledCopy(what, replace(recording, events=tuple(events)))
    return None


def _read(tracing: Tracing, event: Event) -> Any:
    """An event's ways by itself, what it shows, and the silent steps before it; None without a meaning."""
    try:
        meaning = tracing.again().meaning(event)
    except (ImpossibleEvent, Unreadable):
        return None
    return meaning.ways, list(meaning.seen), meaning.near


def _steps(recording: Recording, tracing: Tracing | None) -> Sequence[int]:
    """The events that may be dropped or duplicated: of a log, the lines that are steps."""
    every = range(len(recording.events))
    if not isinstance(tracing, LogTracing):
        return every
    read = [_read(tracing, event) for event in recording.events]
    return [at for at in every if read[at] is None or any(read[at][0])]


def _named(events: list[Event], at: int) -> str:
    return f"event {at + 1} ({events[at]['event']})"


def _successive(events: list[Event]) -> list[tuple[int, int]]:
    """Each event with the next one of its writer, if the two differ in more than their number."""
    last: dict[Any, int] = {}
    pairs = []
    for number, event in enumerate(events):
        before = last.get(event["at"])
        # Two equal events in a row, swapped, would be the same recording.
        if before is not None and {**events[before], "seq": 0} != {**event, "seq": 0}:
            pairs.append((before, number))
        last[event["at"]] = number
    return pairs


def _other(value: Any, random: Random) -> Any:
    """Another value close to the given one."""
    match value:
        case bool():
            return not value
        case int():
            # Near values are the mistakes that a spec detects least easily.
            return value + random.choice((-1, 1))
        case str():
            return {"leader": "follower", "follower": "leader"}.get(value, value + "?")
        case list() if value:
            at = random.randrange(len(value))
            kept = value[:at] + value[at + 1 :]
            return (
                kept if random.random() < 0.5 else [*value[:at], _other(value[at], random), *value[at + 1 :]]
            )
        case dict() if value:
            key = random.choice(sorted(value))
            return {**value, key: _other(value[key], random)}
        case list():
            return [0]
    return 0
