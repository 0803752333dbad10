"""Recordings of a running implementation, one line for each event: read as a whole and validated.

    {"format": "replog-recording/1", "seed": 7, "brokers": 3, ...}       header: free but for `format`
    {"at": 1, "seq": 1, "event": "fetch", "to": 0, "after": {"hw": 3}}   events
    {"end": true, "events": 412}                                         trailer

`at` names the writer of an event and `seq` counts its events from 1, so that a lost line is detected
anywhere; the trailer detects a lost end.  `event` is the event's name; all else is agreed between the
recorder and the tracing that reads it.

Not here: what events mean (`tracing`), and whether a spec explains them (`validate`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from specchk.conform.contract.failures import LEAVING, is_implementations

Event = Mapping[str, Any]


class BadRecording(Exception):
    """A file that is not a complete recording; the text names the line."""


class BadLine(BadRecording):
    """A line that is not a JSON object."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(f"{name}:{number}: this line is not a JSON object")
        self.name = name
        self.number = number

    def __reduce__(self) -> tuple[type[BadLine], tuple[object, ...]]:
        """Pickle by the place; by default an exception is rebuilt from its text."""
        return type(self), (self.name, self.number)


class Unfinished(BadRecording):
    """A file that lacks its end marker: its writer may still be writing."""


class Unreadable(BadRecording):
    """An event from which the tracing's method gives nothing that the spec has: its fault, or the log's."""


class Recording(Struct, frozen=True):
    """A header and its events, in the order written; `name` is for reports.

    `unmapped` counts the lines that are no events for the tracing, by their kinds.  `settings` has the fields
    that the tracing names, each with a reason if no line has it.
    """

    name: str
    header: Event
    events: tuple[Event, ...]
    unmapped: Mapping[str, int] = {}
    settings: Mapping[str, str] = {}

    def place(self, number: int) -> str:
        """The file and line of an event, counted from 1."""
        return str(self.events[number - 1].get("place", f"{self.name}:{number + 1}"))


def shown_after(event: Event) -> Mapping[str, Any]:
    """The fields that an event shows in `after`; one that is no object is a field of that name."""
    shown = event.get("after")
    return shown if isinstance(shown, Mapping) else {} if shown is None else {"after": shown}


@contextmanager
def asked(what: str) -> Iterator[None]:
    """A context in which an exception of a tracing's method is a `BadRecording` that begins with `what`."""
    try:
        yield
    except LEAVING as error:  # nothing has checked what the method reads
        if not is_implementations(error):
            raise
        raise BadRecording(f"{what}: {type(error).__name__}: {error}") from error


def read_bytes(path: Path) -> bytes:
    """The bytes of a file; raises `BadRecording`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadRecording(f"{path.name}: {error}") from None


def decode(name: str, data: bytes) -> Recording:
    """The recording in a file's bytes; raises `BadRecording`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data"
        raise (Unfinished if is_cut else BadRecording)(f"{name}: {error}") from None
    # Not `splitlines`, which also splits at characters that a string of JSON may have as they are.
    lines = text.removesuffix("\n").split("\n") if text else []
    try:
        return parse(name, lines)
    except BadLine as error:
        # Half of a last line is JSON of no kind.
        is_cut = error.number == len(lines) and not text.endswith("\n")
        raise (Unfinished if is_cut else BadRecording)(str(error)) from None


def parse(name: str, lines: Sequence[str]) -> Recording:
    """A recording from its lines; raises `BadRecording`."""
    objects = _objects(name, lines)
    if not objects:
        raise Unfinished(f"{name}:1: the file is empty, so its first line is not a header with a `format`")
    _check_header(name, objects[0])
    # Before the numbers of the events: a file that was cut off is reported as that, and not as one with a
    # gap.
    last = objects[-1]
    if last.get("end") is not True:
        raise Unfinished(
            f"{name}:{len(objects)}: the recording ends without its trailer, so it was truncated"
        )
    events = tuple(objects[1:-1])
    if last.get("events") != len(events):
        written = last.get("events")
        raise BadRecording(f"{name}:{len(objects)}: {written} events were written, {len(events)} were read")
    _count(name, events)
    return Recording(name, objects[0], events)


def header_of(name: str, line: bytes) -> Event:
    """The header in a file's first line; raises `BadRecording`."""
    # Bytes: anything that is not text is not JSON either.
    header = _object(name, 1, line)
    _check_header(name, header)
    return header


def _check_header(name: str, header: Event) -> None:
    if not isinstance(header.get("format"), str):
        raise BadRecording(f"{name}:1: the first line is not a header with a `format`")


def _objects(name: str, lines: Sequence[str]) -> list[dict[str, Any]]:
    """The JSON object of each line."""
    # What `loads` calls behind some checks.
    read = json.JSONDecoder().raw_decode
    objects = []
    for number, line in enumerate(lines, 1):
        try:
            data, end = read(line)
        except (ValueError, RecursionError):
            data, end = None, -1
        # Nothing around the object, as in most lines; otherwise `loads` decides.
        is_whole = end == len(line) and data.__class__ is dict
        objects.append(data if is_whole else _object(name, number, line))
    return objects


def _object(name: str, number: int, line: str | bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):  # the latter of arrays in arrays, a hundred thousand deep
        data = None
    if not isinstance(data, dict):
        raise BadLine(name, number)
    return data


def _count(name: str, events: Iterable[Event]) -> None:
    """Check that each writer's events are numbered from 1 without a gap."""
    counts: dict[Any, int] = {}
    for number, event in enumerate(events, 2):
        at, seq = event.get("at"), event.get("seq")
        # By their very types: for Python `true` is 1, and 1.0 is, too.
        if not isinstance(event.get("event"), str) or type(at) not in (int, str) or type(seq) is not int:
            raise BadRecording(f"{name}:{number}: an event needs `at`, `seq` and `event`")
        counts[at] = counts.get(at, 0) + 1
        # By writer and not by line: writers run side by side, and only the order of each is its own.
        if seq != counts[at]:
            raise BadRecording(f"{name}:{number}: event {seq} of {at} is out of order; expected {counts[at]}")


def renumbered(events: Iterable[Event]) -> tuple[Event, ...]:
    """The same events, with each writer's renumbered from 1."""
    counts: dict[Any, int] = {}
    renumbered_events = []
    for event in events:
        counts[event["at"]] = counts.get(event["at"], 0) + 1
        renumbered_events.append({**event, "seq": counts[event["at"]]})
    return tuple(renumbered_events)
