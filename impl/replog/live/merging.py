"""The lines of all processes of a cluster in one order, a recording for each partition.

    broker-0.ndjson broker-1.ndjson controller.ndjson   ->   orders-0.ndjson orders-1.ndjson

The order keeps that of each process, and what is sent is before what is received: a fetch before it is
served, an answer before it is applied, metadata before a broker has them, a decision before its leader hears
of it.  Lines that no message orders are in the order of their clocks, which is that of one machine; but if
possible, a fetch is served before its follower sends another: a reader has the last fetch only.

A recording begins with the creation of its partition, and ends before its first reassignment.  Brokers have
numbers from 0 in it, epochs and versions count from those of the creation.

Not here: what a reader makes of it (`conformance/live_tracing.py`).
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

from replog.core.types import CONTROLLER
from replog.run.serve.host import GROUPS
from replog.store.files.errors import CorruptFileError

FORMAT = "replog-live/1"
SERVES = ("hear", "serve")
ALL = -1
"""The acks of a producer that waits for all."""
Line = dict[str, Any]


def read(folder: Path, until: int | None = None) -> dict[str, list[Line]]:
    """Return the lines of each partition, those of each process in its order; a half line is left out.

    `until` is a time after which lines are left out.  Raises `OSError`, `CorruptFileError`.
    """
    lines: list[Line] = []
    for file in sorted(folder.glob("*.ndjson")):
        for number, text in enumerate(file.read_bytes().split(b"\n")[:-1], 1):
            try:
                lines.append(json.loads(text))
            except ValueError:
                raise CorruptFileError(f"{file}:{number}: this line is not JSON") from None
    if until is not None:
        lines = [line for line in lines if line["t"] <= until]
    names = {line["partition"] for line in lines} - {"", GROUPS}
    return {name: [line for line in lines if line["partition"] in ("", name)] for name in sorted(names)}


def merged(name: str, lines: list[Line]) -> list[Line]:
    """Return the recording of a partition: header, events, trailer; [] if its creation is not recorded.

    One that was created while a replica was away has no recording either: readers begin with a whole ISR.
    """
    created = next((line for line in lines if line["event"] == "create"), None)
    if created is None or sorted(created["after"]["isr"]) != sorted(created["replicas"]):
        return []
    ids = {broker: number for number, broker in enumerate(sorted(created["replicas"]))}
    end = min((line["t"] for line in lines if line["event"] == "reassign"), default=inf)
    lines = _with_recovery([
        line for line in lines if created["t"] <= line["t"] < end and line["at"] in (CONTROLLER, *ids)
    ])  # fmt: skip
    ordered = [line for line in _ordered(lines) if line is not created]
    counts: dict[int, int] = {}
    events = [_event(line, ids, created["after"], counts) for line in ordered]
    is_all = all(line.get("acks", ALL) == ALL for line in ordered)
    header = {
        "format": FORMAT, "partition": name, "brokers": len(ids), "acks": "all" if is_all else "one",
        "first_leader": ids[created["after"]["leader"]], "min_isr": created["min_isr"],
    }  # fmt: skip
    return [header, *events, {"end": True, "events": len(events)}]


def _with_recovery(lines: list[Line]) -> list[Line]:
    """Return lines in which the start of a broker shows the log that it has found, and is its registration.

    Until then a heartbeat of the process before may still arrive, for which the broker lives.  A process that
    ended before its registration has done nothing, and is left out.
    """
    shown: dict[int, Line] = {}
    registered: dict[int, int] = {}
    kept: list[Line] = []
    for line in sorted(lines, key=lambda line: line["t"])[::-1]:
        at = line["at"]
        if line["event"] == "recover":
            shown[at] = line
            continue
        if line["event"] == "register":
            registered[line["broker"]] = line["t"]
        if line["event"] == "start" and at != CONTROLLER:
            log, t = shown.pop(at, None), registered.pop(at, None)
            if t is None:
                continue
            line = line | {"t": t - 1} | ({} if log is None else {"leo": log["leo"], "hw": log["hw"]})
        kept.append(line)
    return kept[::-1]


def _event(line: Line, ids: dict[int, int], first: Line, counts: dict[int, int]) -> Line:
    """Return a line as an event of a recording."""
    at = ids.get(line["at"], CONTROLLER)
    counts[at] = counts.get(at, 0) + 1
    own = {"at": at, "seq": counts[at], "event": line["event"]}
    facts = {k: v for k, v in line.items() if k not in ("t", "at", "partition", "event", "acks")}
    return own | _numbered(facts, ids, first)


def _numbered(facts: Line, ids: dict[int, int], first: Line) -> Line:
    """Return facts with the numbers of a recording."""
    new: Line = {}
    for key, value in facts.items():
        match key:
            case "epoch":
                # A broker that has applied no metadata has none.
                new[key] = max(value - first["epoch"], 0)
            case "version":
                new[key] = value - first["version"] + 1
            case "epochs":
                new[key] = [[epoch - first["epoch"], start] for epoch, start in value]
            case "leader" | "broker" | "follower" | "to" | "source":
                new[key] = ids.get(value)
            case "isr" | "fenced" | "late" | "gone" | "proposed":
                new[key] = None if value is None else [ids[broker] for broker in value if broker in ids]
            case "remote":
                new[key] = {str(ids[int(broker)]): leo for broker, leo in value.items()}
            case "message" if value.count("/") == 1:
                asker, _, number = value.partition("/")
                new[key] = f"{ids[int(asker)]}/{number}"
            case "after":
                new[key] = _numbered(value, ids, first)
            case _:
                new[key] = value
    return new


class _Order:
    """The order of the lines of a partition."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines
        self.needs: list[list[int]] = [[] for _ in lines]
        self.wishes: list[list[int]] = [[] for _ in lines]
        self.place: list[int] = [0] * len(lines)
        self.taken: dict[int, None] = {}

    def link(self) -> None:
        """Find what is before each line, and what should be."""
        last: dict[int, int] = {}
        sends: dict[tuple[str, object], int] = {}
        for number, line in enumerate(self.lines):
            if (before := last.get(line["at"])) is not None:
                self.needs[number].append(before)
            last[line["at"]] = number
            for kind in _sent(line):
                sends[kind] = number
        served: dict[str, list[int]] = {}
        for number, line in enumerate(self.lines):
            if line["event"] in SERVES:
                served.setdefault(line["message"], []).append(number)
            source = sends.get(_received(line))
            if source is not None and self.lines[source]["at"] != line["at"]:
                self.needs[number].append(source)
        asked: dict[int, str] = {}
        for number, line in enumerate(self.lines):
            if line["event"] == "fetch":
                self.wishes[number] = served.get(asked.get(line["at"], ""), [])
                asked[line["at"]] = line["message"]

    def by_clock(self) -> Iterator[int]:
        """Yield all lines, each after those that it needs, as far as possible by their clocks."""
        waiting = [len(needs) for needs in self.needs]
        after: list[list[int]] = [[] for _ in self.lines]
        for number, needs in enumerate(self.needs):
            for before in needs:
                after[before].append(number)
        ready = [(self.lines[n]["t"], n) for n, count in enumerate(waiting) if not count]
        heapq.heapify(ready)
        while ready:
            _, number = heapq.heappop(ready)
            yield number
            for later in after[number]:
                waiting[later] -= 1
                if not waiting[later]:
                    heapq.heappush(ready, (self.lines[later]["t"], later))

    def take(self, number: int, active: frozenset[int] = frozenset()) -> None:
        """Take a line, after those that should be before it, if they can."""
        active |= {number}
        for wish in self.wishes[number]:
            others = self._missing(wish)
            if active.isdisjoint(others):
                for other in sorted(others, key=self.place.__getitem__):
                    if other not in self.taken:
                        self.take(other, active)
        self.taken[number] = None

    def _missing(self, number: int) -> set[int]:
        """Return a line and all that it needs, as far as they are not taken."""
        missing, stack = set[int](), [number]
        while stack:
            line = stack.pop()
            if line not in self.taken and line not in missing:
                missing.add(line)
                stack += self.needs[line]
        return missing


def _sent(line: Line) -> list[tuple[str, object]]:
    match line["event"]:
        case "fetch":
            return [("fetch", line["message"])]
        case "serve":
            return [("answer", line["message"])]
        case "judge":
            return [("verdict", line["message"]), ("metadata", line["metadata"])]
    return [("metadata", line["metadata"])] if line["at"] == CONTROLLER and "metadata" in line else []


def _received(line: Line) -> tuple[str, object]:
    match line["event"]:
        case "hear" | "serve":
            return ("fetch", line["message"])
        case "apply":
            return ("answer", line["message"])
        case "settle":
            return ("verdict", line["message"])
        case "lead" | "follow" | "brokers":
            return ("metadata", line["metadata"])
    return ("", "")


def _ordered(lines: list[Line]) -> list[Line]:
    order = _Order(lines)
    order.link()
    clocked = list(order.by_clock())
    for place, number in enumerate(clocked):
        order.place[number] = place
    for number in clocked:
        if number not in order.taken:
            order.take(number)
    return [lines[number] for number in order.taken]
