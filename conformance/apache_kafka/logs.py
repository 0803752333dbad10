"""What brokers and controllers log of one partition, as events of its replication.

A step is often told by several lines of one thread, with those of other threads between them.  They are put
together by the thread, so the pattern of the log has to have it (`settings.PATTERN`):

    Submitting ISR state change PendingExpandIsr(newInSyncReplicaId=2, ...)    f is proposed for the ISR
    High watermark updated from (offset=4, ...) to (offset=5, ...)             HW after the step
    Recorded replica 2 log end offset (LEO) position 5 ...                     the event `serve`

An event is placed at the last of its lines, or, if it has a line of its own, there.  What an answer carries
is known where it is taken: its leader has read that at some time between the request and then.

Which lines say what is in `log_lines.txt`.  Not here: what events mean (`tracing`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

Event = dict[str, Any]
Fields = Mapping[str, str]

_LINE = re.compile(r"\[([\d-]+ [\d:,]+)\] [A-Z]+ \[(.*?)\] (.*) \(\S+\)$")
_NODE = re.compile(r"\[(?:Broker|QuorumController|BrokerServer|ControllerServer) id=(\d+)\]")
_TABLE = Path(__file__).with_name("log_lines.txt")
_NAMELESS = ("Sending fetch", "Updating topic", "RegisterBrokerRecord", "BrokerRegistrationChangeRecord")
_BROKERS = ("b", "leader", "follower", "by", "isr", "elr", "last_leader", "fenced", "gone", "proposed")


class Unread(ValueError):
    """Logs that cannot be read as a recording; the text gives the reason."""


class Reading(Struct):
    """The events of a partition, and how many of its lines were read, repeat what others say, or were not."""

    events: list[Event]
    read: int
    repeats: int
    others: Counter[str]

    def __str__(self) -> str:
        every = self.read + self.repeats + self.others.total()
        text = (
            f"{every} lines: {self.read / every:.1%} read, {self.repeats / every:.1%} repeat what those say"
        )
        for line, count in self.others.most_common(3):
            text += f"; not read: {count} `{line}`"
        return text


def read_logs(files: Mapping[str, Sequence[str]], partition: str, within_s: float) -> Reading:
    """The events of a partition (`orders-0`) in the logs of all nodes, whose clocks may err by some seconds.

    Raises `Unread`.
    """
    reader = _Reader(partition, within_s)
    for name, lines in files.items():
        reader.file(name, lines)
    return Reading(reader.named(), reader.read, reader.repeats, reader.others)


def _ids(text: str) -> list[int]:
    return sorted(map(int, re.findall(r"\d+", text)))


class _Thread(Struct):
    """What the lines of a thread have told of a step that is not complete."""

    since: float | None = None  # the time of the first one
    shown: dict[str, int] = {}  # of HW
    proposes: int | None = None  # a follower, for the ISR
    is_refused: bool = False
    is_unassigned: bool = False  # a request of a replica that is no longer one
    step: Event | None = None  # one of which the next line may show HW
    taken: Event | None = None  # an answer that is being taken
    loaded: Event | None = None  # a log, for which a role will follow


class _Reader:
    """The methods are named after the words of `log_lines.txt`, and take the fields of a line."""

    def __init__(self, partition: str, within_s: float) -> None:
        self.partition, self.topic, self.within_s = partition, partition.rpartition("-")[0], within_s
        self.events: list[Event] = []
        self.decided: list[Event] = []
        self.read = self.repeats = 0
        self.others: Counter[str] = Counter()
        self.initial: Event | None = None
        self.minima: set[int] = set()
        own = {"P": re.escape(partition), "T": re.escape(self.topic)}
        self._lines: list[tuple[re.Pattern[str], Callable[[Fields], None] | None]] = []
        for row in _TABLE.read_text(encoding="utf-8").splitlines()[2:]:
            name, pattern = row.split(maxsplit=1)
            # A letter by itself, and not that of a named group.
            pattern = re.sub(r"\b[PT]\b(?!<)", lambda letter: own[letter[0]], pattern)
            self._lines.append((re.compile(pattern), None if name == "said" else getattr(self, f"_{name}")))
        self._start_node(0)

    def _start_node(self, node: int) -> None:
        self.node, self.place, self.thread, self.time = node, "", "", 0.0
        self._sent_at = 0.0
        self._isr: list[int] = []
        self._min: int | None = None
        self._by: int | None = None
        self._follows: Event | None = None
        self._threads: dict[str, _Thread] = {}
        self._sessions: dict[str, str | None] = {}  # of each leader, what is asked of it
        self._registered: Counter[str] = Counter()

    def file(self, name: str, lines: Sequence[str]) -> None:
        """Read the log of a node."""
        node = next((int(named[1]) for line in lines if (named := _NODE.search(line))), None)
        if node is None:
            raise Unread(
                f"{name}: no line names its node as in `[Broker id=1]`: no log of a broker or controller"
            )
        self._start_node(node)
        own = re.compile(rf"\b{re.escape(self.partition)}\b")
        for number, line in enumerate(lines, 1):
            is_own = own.search(line) is not None
            parts = _LINE.match(line) if is_own or any(text in line for text in _NAMELESS) else None
            if parts is not None:
                self.place, self.thread = f"{name}:{number}", parts[2]
                # Lines of one node and one millisecond keep their order.
                self.time = datetime.fromisoformat(parts[1]).replace(tzinfo=UTC).timestamp() + number * 1e-9
                self._line(parts[3], is_own)
            elif is_own:
                self.others[line[:90]] += 1

    def _line(self, text: str, is_own: bool) -> None:
        for pattern, method in self._lines:
            if fields := pattern.search(text):
                self.read += method is not None
                self.repeats += method is None and is_own
                if method is not None:
                    method(fields.groupdict())
                return
        if is_own:
            self.others[re.sub(r"\d+", "N", text)[:90]] += 1

    def _event(self, kind: str, **fields: Any) -> Event:
        begin, end = self.time - self.within_s, self.time + self.within_s
        return {
            "event": kind, "thread": f"{self.node} {self.thread}", "b": self.node, "log": self.place,
            "time": self.time, "from": begin, "to": end, **fields,
        }  # fmt: skip

    def _add(self, kind: str, **fields: Any) -> Event:
        self.events.append(self._event(kind, **fields))
        return self.events[-1]

    @property
    def _own(self) -> _Thread:
        return self._threads.setdefault(self.thread, _Thread())

    # What a leader does.  `outside`: some follower may be outside of its ISR.

    @property
    def _outside(self) -> bool:
        return self.initial is None or len(self._isr) < len(self.initial["replicas"])

    def _append(self, e: Fields) -> None:
        if not self.thread.startswith("ReplicaFetcher"):
            last, count = int(e["last"]), int(e["last"]) - int(e["first"]) + 1
            self._own.step = self._add("produce", count=count, leo=last + 1, outside=self._outside)

    def _hw(self, e: Fields) -> None:
        """HW has moved, or what it would be is not larger."""
        own = self._own
        shown = {name: int(e[name]) for name in ("hw", "least") if e.get(name)}
        if own.step is not None:
            own.step |= shown
            own.step = None
        else:
            own.shown, own.since = dict(shown), own.since or self.time

    def _expand(self, e: Fields) -> None:
        self._own.proposes, self._own.since = int(e["f"]), self.time

    def _unassigned(self, _: Fields) -> None:
        self._own.is_unassigned = True

    def _serve(self, e: Fields) -> None:
        own, f = self._own, int(e["f"])
        joins = own.proposes == f
        fields = {"follower": f, "offset": int(e["offset"]), "joins": joins, "outside": self._outside}
        if not own.is_unassigned:
            self._add("serve", **fields, **own.shown)["from"] = (own.since or self.time) - self.within_s
        if own.is_refused:
            self._add("refuse")
        self._threads[self.thread] = _Thread(taken=own.taken, loaded=own.loaded)

    def _lead(self, e: Fields) -> None:
        self._isr = _ids(e["isr"])
        leo = int(e["leo"]) if e.get("leo") else None
        fields = {"isr": self._isr, "leo": leo, "anew": leo is not None, "outside": self._outside}
        self._own.step = self._role("lead", e, **fields)

    def _shrinking(self, _: Fields) -> None:
        self._own.since = self.time

    def _shrink(self, e: Fields) -> None:
        proposed = _ids(" ".join(re.findall(r"brokerId=(\d+)", e["isr"])))
        since, self._own.since = self._own.since or self.time, None
        self._add("shrink", gone=_ids(e["gone"]), proposed=proposed)["from"] = since - self.within_s

    def _settle(self, e: Fields) -> None:
        self._isr = _ids(e["isr"])
        fields = {"isr": self._isr, "version": int(e["version"]), "outside": self._outside}
        self._own.step = self._add("settle", **fields)

    def _refuse(self, _: Fields) -> None:
        if self._own.proposes is None:
            self._add("refuse")
        else:
            self._own.is_refused = True  # at once, since another proposal is in flight

    # What a follower does.

    def _send(self, e: Fields) -> None:
        """A request; within a session it has only what has changed."""
        leader, own = e["leader"], rf"\b{re.escape(self.partition)}"
        if e["session"] == "INITIAL" or re.search(own, e["removed"]):
            self._sessions[leader] = None
        if data := re.search(rf"{own}=PartitionData\((.*?)\)", e["data"]):
            self._sessions[leader] = data[1]
        asked = self._sessions.get(leader)
        if asked is not None:
            self._sent_at = self.time
            words = ("fetchOffset=", r"currentLeaderEpoch=Optional\[", r"lastFetchedEpoch=Optional\[")
            numbers = [re.search(rf"{word}(\d+)", asked) for word in words]
            offset, epoch, last = (int(number[1]) if number else None for number in numbers)
            self._add("send", leader=int(leader), offset=offset, asked_in=epoch, last=last)

    def _take(self, e: Fields) -> None:
        self._own.taken = {"leader": int(e["leader"]), "told": int(e["told"]), "upto": int(e["before"])}

    def _took(self, e: Fields) -> None:
        if self._own.taken is not None:
            self._own.taken["upto"] = int(e["upto"])

    def _applied(self, e: Fields) -> None:
        taken, self._own.taken = self._own.taken, None
        if taken is not None:
            self._add("answer", **taken)["from"] = self._sent_at - self.within_s
            self._add("apply", leo=taken["upto"], hw=int(e["hw"]) if e["hw"] else None)

    def _truncate(self, e: Fields) -> None:
        self._add("diverge", leader=int(e["leader"]))["from"] = self._sent_at - self.within_s
        self._add("truncate", leo=int(e["to"]))

    # A replica's life.

    def _follow(self, e: Fields) -> None:
        self._follows = self._role("follow", e)

    def _unfetched(self, _: Fields) -> None:
        """Until its old fetcher is removed, a follower may take an answer of the epoch before."""
        if self._follows is not None:
            self._follows["to"], self._follows = self.time + self.within_s, None

    def _role(self, kind: str, e: Fields, **fields: Any) -> Event:
        """A role; the first one of a process, or of a new replica, begins with its log."""
        loaded, self._own.loaded = self._own.loaded, None
        if loaded is not None and int(e["version"]):
            self._sessions.clear()
            if loaded["kept"]:
                self._finish(int(e["leo"]))
            self._add("begin", leo=int(e["leo"]), **loaded)
        return self._add(kind, epoch=int(e["epoch"]), version=int(e["version"]), min_isr=self._min, **fields)

    def _finish(self, leo: int) -> None:
        """What was being appended when the process was killed: its log shows how far it came."""
        place, own = self.thread, dict(self._threads)
        for self.thread, thread in own.items():
            if thread.taken is not None and thread.taken["upto"] < leo:
                for kind, fields in (("answer", thread.taken | {"upto": leo}), ("apply", {"leo": leo})):
                    self._add(kind, **fields)["from"] = self._sent_at - self.within_s
            thread.taken = None
        self.thread = place

    def _created(self, e: Fields) -> None:
        self._set_min(e["min"])
        self._own.loaded = {"kept": False}

    def _loaded(self, e: Fields) -> None:
        self._own.loaded = {"kept": True, **(self._own.loaded or {}), "hw": int(e["hw"])}

    def _set_min(self, value: str | None) -> None:
        if value:
            self._min = int(value)
            self.minima.add(self._min)

    def _configure(self, e: Fields) -> None:
        self._set_min(e["min"])
        if any(event["b"] == self.node for event in self.events):
            self._add("configure", min_isr=self._min)

    # The controllers, each of which replays what one of them has decided.

    def _new(self, e: Fields) -> None:
        if self.initial is None:
            fields = {"replicas": _ids(e["replicas"]), "isr": _ids(e["isr"]), "leader": int(e["leader"])}
            self.initial = self._event("create", **fields)

    def _altered(self, e: Fields) -> None:
        self._by = int(e["by"])

    def _decide(self, e: Fields) -> None:
        changes = dict(re.findall(r"(\w+): \S.*? -> (\[.*?\]|-?\d+)", e["change"]))
        event = self._event("decide", by=self._by, is_unclean=bool(e["unclean"]), changes=changes)
        self.decided.append(event)
        self._by = None

    def _registry(self, e: Fields) -> None:
        text = e["text"]
        self._registered[text] += 1
        key = text, self._registered[text]
        if all(event.get("key") != key for event in self.decided):
            # Who registers is fenced at first.
            fenced = {"1": True, "-1": False}.get(e.get("fenced") or "1")
            is_out = True if e.get("stops") == "1" else fenced
            self.decided.append(self._event("fenced", key=key, broker=int(e["b"]), is_out=is_out))

    # All of them.

    def named(self) -> list[Event]:
        """All events, in the spec's names."""
        first = self.initial
        if first is None:
            raise Unread(
                f"no controller's log says that {self.partition} was created; begin the logs before that"
            )
        replicas = first["replicas"]
        if replicas != first["isr"]:
            raise Unread(f"{self.partition} was created with the ISR {first['isr']} of {replicas}")
        if len(self.minima) > 2:
            raise Unread(
                f"{self.partition} had {len(self.minima)} values of min.insync.replicas, and not two"
            )
        events = [event for event in self.events if event["b"] in replicas]
        events = sorted([*self._decisions(first), *events], key=lambda event: float(event["time"]))
        names = {b: f"b{n}" for n, b in enumerate(replicas, 1)}
        least, most = min(self.minima, default=1), max(self.minima, default=1)
        kinds = Counter(event["event"] for event in events)
        first["constants"] = {
            "Broker": len(replicas), "first_leader": names[first["leader"]],
            "min_isr": least, "new_min_isr": most,
            "MaxCrashes": 1 + kinds["begin"], "MaxShrinks": 1 + kinds["shrink"],
            "unclean_election": str(any(event.get("is_unclean") for event in events)).lower(),
            **{f"Max{name}": 1 + max(event.get(field) or 0 for event in events)
               for name, field in (("Offset", "leo"), ("Epoch", "epoch"), ("Version", "version"))},
        }  # fmt: skip
        first |= {"thread": "controllers", "b": None}
        for event in (first, *events):
            for key in _BROKERS:
                if isinstance(event.get(key), list):
                    event[key] = [names[b] for b in event[key] if b in names]
                elif event.get(key) is not None:
                    event[key] = names.get(event[key])
            event["has_new_min"] = least < most and event.get("min_isr") == most
        return [first, *events]

    def _decisions(self, first: Event) -> Iterator[Event]:
        """The controllers' events as one writer's, each with the whole state after it."""
        numbers = {"leader": first["leader"], "leaderEpoch": 0, "partitionEpoch": 0}
        sets: dict[str, list[int]] = {"isr": first["isr"], "elr": [], "lastKnownElr": []}
        fenced: set[int] = set()
        for event in sorted(self.decided, key=lambda event: float(event["time"])):
            before = set(fenced)
            if event["event"] == "decide":
                changes = event.pop("changes")
                numbers |= {name: int(changes[name]) for name in numbers if name in changes}
                sets |= {name: _ids(changes[name]) for name in sets if name in changes}
                event |= {
                    "leader": None if numbers["leader"] < 0 else numbers["leader"], "isr": sets["isr"],
                    "elr": sets["elr"], "last_leader": next(iter(sets["lastKnownElr"]), None),
                    "epoch": numbers["leaderEpoch"], "version": numbers["partitionEpoch"],
                    "is_new_epoch": "leaderEpoch" in changes,
                }  # fmt: skip
            elif event["is_out"] is not None:
                fenced = fenced | {event["broker"]} if event["is_out"] else fenced - {event["broker"]}
            if event["time"] > first["time"] and (event["event"] == "decide" or fenced != before):
                yield event | {"thread": "controllers", "b": None, "fenced": sorted(fenced)}
