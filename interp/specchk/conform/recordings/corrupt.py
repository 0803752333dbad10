"""Trace power: copies of accepted recordings with one planted error, which must be rejected.

A validator that accepts everything would accept every recording; so each accepted one is corrupted in
every way below, renumbered as if it had been recorded so, and must no longer be explained.

    flip        one field that an event shows has another value
    drop        one event is missing
    swap        two successive events of one writer are exchanged
    duplicate   one event is duplicated

Not every corrupted copy is wrong: it may be possible as well (a request without an
answer may not have been served; two events of one writer may be independent).  So the share of
rejected copies is a measure, for which a campaign has a minimum, and not a law for each copy.
"""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.contract.recording import Event, Recording, renumbered, shown_after

KINDS = ("flip", "drop", "swap", "duplicate")


class SpoiledCopy(Struct, frozen=True):
    """A copy with one planted error, and its description."""

    what: str
    recording: Recording


def spoil(recording: Recording, kind: str, random: Random) -> SpoiledCopy | None:
    """A copy with one planted error of a kind; None if the kind does not apply."""
    events = list(recording.events)
    if kind == "flip":
        shown = [n for n, event in enumerate(events) if shown_after(event)]
        if not shown:
            return None
        at = random.choice(shown)
        after = dict(shown_after(events[at]))
        # Sorted, since the members of an object have the order of the recording's writer.
        field = random.choice(sorted(after))
        after[field] = _other(after[field], random)
        what = f"{field} of {_named(events, at)} is {after[field]!r}"
        is_object = isinstance(events[at]["after"], dict)
        events[at] = {**events[at], "after": after if is_object else after["after"]}
    elif not events:
        return None
    elif kind == "drop":
        at = random.randrange(len(events))
        what = f"{_named(events, at)} is missing"
        del events[at]
    elif kind == "duplicate":
        at = random.randrange(len(events))
        what = f"{_named(events, at)} is duplicated"
        events.insert(at, events[at])
    else:
        pairs = _successive(events)
        if not pairs:
            return None
        at, next_ = random.choice(pairs)
        what = f"{_named(events, at)} comes after {_named(events, next_)}"
        events[at], events[next_] = events[next_], events[at]
    return SpoiledCopy(what, replace(recording, events=renumbered(events)))


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
