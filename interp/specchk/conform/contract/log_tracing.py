"""Logs that somebody else writes, one JSON object a line and of any shape, as recordings.

    class ElectionLog(LogTracing):
        spec, model = "raft.spec", "three"
        kind = "@message"                       # the field that says what happened
        ignored = {"heartbeat sent": "no step"} # kinds that are no step, each with the reason

        @event("election won")
        def won(self, e):
            return Call("become_leader", (e["at"],))

A line becomes an event with all its other fields, and with `at` (its writer), `seq`, `event` (its kind) and
`place` (file:line); a field of the line that has one of these four names gets an underscore: `at_`.  Lines
whose kind has no method are not steps; they are counted, and each such kind must be in `ignored`.  `names`
has the spec's names for those of the log (nodes, clients), which are replaced wherever they are a whole text.

With `per_writer`, a folder is one run, and each file is a writer (or each value of `writer`).  Lines of
different writers have no order but these: a message's line in `sends` is before those in `receives` with the
same key, and a line whose `box` ends before that of another begins is before it.

Not here: the search for an order (`recordings.orders`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, ClassVar

from specchk.conform.contract.binding import Mistake
from specchk.conform.contract.recording import BadLine, Event, Recording, asked, read_bytes, renumbered
from specchk.conform.contract.tracing import Tracing
from specchk.lang.text.diagnostics import nearest

OWN = ("at", "seq", "event", "place")


class LogTracing(Tracing):
    """The base of tracings of logs; see the module for its parts."""

    kind: ClassVar[str] = "event"
    writer: ClassVar[str] = ""
    names: ClassVar[Mapping[str, str]] = {}
    per_writer: ClassVar[bool] = False
    files: ClassVar[tuple[Path, ...]] = ()  # of the one run, where they are named and no folder is
    time: ClassVar[str] = ""
    within: ClassVar[float] = 0.0
    sends: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    receives: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @classmethod
    def kind_of(cls, line: Event) -> str:
        """What happened, in a word; empty for a line that does not say so."""
        value = field_of(line, cls.kind)
        return "" if value is None else str(value)

    @classmethod
    def mistakes(cls) -> tuple[Mistake, ...]:
        """The settings that have no effect on any log."""
        wrong: list[tuple[str, str]] = []
        kinds = cls.events()
        for pattern in cls.ignored:
            if pattern and not pattern.strip("*?"):
                hint = "name the kinds, or use patterns such as `failed *`: else nothing shows a new kind"
                wrong.append((f"`ignored` has the pattern `{pattern}`, which is every kind", hint))
        for table, kind, fields in cls._messages():
            if kind not in kinds:
                near = nearest(kind, kinds)
                hint = f"{near} Or write" if near else "write"
                hint += " a method for it, which may return ()"
                wrong.append((f"`{table}` has `{kind}`, which no method reads", hint))
            elif isinstance(fields, str):
                wrong.append((f"`{table}` has a text for `{kind}`", f"write ({fields!r},)"))
        if not cls.per_writer and (cls.sends or cls.receives or cls.time):
            order = "`sends`, `receives` and `time` order the lines of several writers"
            wrong.append((f"{order}, and `per_writer` is not set", "set `per_writer = True`"))
        return tuple(Mistake(message, hint, cls.__name__) for message, hint in wrong)

    @classmethod
    def _messages(cls) -> list[tuple[str, str, tuple[str, ...]]]:
        tables = {"sends": cls.sends, "receives": cls.receives}
        return [(name, kind, fields) for name, rows in tables.items() for kind, fields in rows.items()]

    @classmethod
    def _fields(cls, lines: Sequence[Event], steps: Sequence[Event]) -> dict[str, str]:
        """The fields of settings, each with a reason if none of its lines has it, and else with no text."""
        wanted: list[tuple[str, str, str, Sequence[Event]]] = [
            ("writer", "", cls.writer, lines), ("time", "", cls.time, steps)
        ]  # fmt: skip
        for table, kind, paths in cls._messages():
            own = [step for step in steps if step["event"] == kind]
            wanted += [(table, f" `{kind}`", path, own) for path in paths]
        found = {}
        for setting, kind, path, having in wanted:
            if path and having:
                reason = ""
                if all(field_of(line, path) is None for line in having):
                    known = sorted({other for line in having for other in _paths(line)})
                    inside = [f"did you mean `{other}`?" for other in known if other.endswith(f".{path}")]
                    near = inside[0] if inside else nearest(path, known)
                    reason = f"no line{kind} has the field `{path}` of `{setting}`"
                    reason += f"; {near}" if near else ""
                found[f"{setting}{kind} {path}"] = reason
        return found

    @classmethod
    def box(cls, found: Event) -> tuple[float, float] | None:
        """The earliest and the latest time of an event, on one scale for all writers; None if unknown.

        By default the field `time`, a number or as in ISO 8601 (in seconds; UTC without a zone), and `within`
        around it.
        """
        value = field_of(found, cls.time) if cls.time else None
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            # Without a zone it would be that of whichever machine validates it.
            value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        return None if value is None else (value - cls.within, value + cls.within)

    @classmethod
    def read(cls, path: Path) -> Recording:
        """The recording in a file, in `files`, or in those of a folder; raises `BadRecording`."""
        files = cls.files or (sorted(path.glob("*.ndjson")) if path.is_dir() else [path])
        return cls.decoded(path.absolute().name, {str(file): read_bytes(file) for file in files})

    @classmethod
    def decoded(cls, name: str, files: Mapping[str, bytes]) -> Recording:
        """The lines of all files that are steps; raises `BadRecording`."""
        events: list[Event] = []
        steps: list[Event] = []
        left: Counter[str] = Counter()
        methods = cls.events()
        for file, data in files.items():
            for number, line in lines_of(file, data):
                with asked(f"{file}:{number}: `kind_of` cannot be computed"):
                    kind = cls.kind_of(line)
                if kind not in methods:
                    left[kind] += 1
                    continue
                writer = field_of(line, cls.writer) if cls.writer else None
                at = writer_of(file) if writer is None else str(writer)
                own = {"at": cls.names.get(at, at), "seq": 0, "event": kind, "place": f"{file}:{number}"}
                fields = {
                    f"{key}_" if key in OWN else key: _renamed(value, cls.names)
                    for key, value in line.items()
                    if key not in (cls.kind, cls.writer)
                }
                events.append({**fields, **own})
                steps.append(line)
        settings = cls._fields(steps, events)
        return Recording(name, {"format": cls.reads}, renumbered(events), left, settings)


def writer_of(file: str) -> str:
    """The writer of a file, by its name: `n1` of `logs/n1.log`, `logs/n1.ndjson` and `logs/n1.log.ndjson`."""
    return PurePath(file).stem.removesuffix(".log")


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A value of a line, with the names of the spec in place of the log's."""
    match value:
        case str():
            return names.get(value, value)
        case list():
            return [_renamed(item, names) for item in value]
        case dict():
            return {names.get(key, key): _renamed(item, names) for key, item in value.items()}
    return value


def field_of(line: Any, path: str) -> Any:
    """A field of a line, or of an object in it after a dot; None if there is none."""
    if isinstance(line, Mapping) and path in line:
        return line[path]
    for part in path.split("."):
        line = line.get(part) if isinstance(line, Mapping) else None
    return line


def _paths(line: Event, before: str = "") -> Iterator[str]:
    """The fields of a line, and those of objects in it."""
    for key, value in line.items():
        yield before + key
        if isinstance(value, Mapping):
            yield from _paths(value, f"{before}{key}.")


def lines_of(name: str, data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with the numbers of their lines; empty lines are skipped."""
    for number, text in enumerate(data.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            raise BadLine(name, number)
        yield number, line
