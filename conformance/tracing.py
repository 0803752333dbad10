"""replog's recordings in terms of replication.spec: the action of each event, and the recorded fields.

    fetch serve answer apply       a fetch in flight, counted, answered late, accepted
    produce shrink judge settle    records; an ISR proposal, the controller's decision, its arrival
    elect fence unfence register   the controller; a registration is the spec's `restart`
    lead follow brokers            metadata is applied
    checkpoint flush crash power-loss

The effect of a leader's clock on its followers (`late`) is a step of the spec before the event, `pass_time`.
The silent steps are `lose_fetch`, since the loss of a message is not observed, and `ask_again`, a proposal
that is repeated because its refusal was lost.  The bounds that the recording's number of
elections, crashes, ... requires of the model are counted beforehand (`constants`), so no bound of the model
is in the way.

The identifying fields of an event are in every line: its writer, message and brokers.  Any other
field may be missing; then it is unknown, and not compared.  `after` is missing if nothing is shown, and
empty if the broker is down.

Two checks concern the abstraction itself.  The spec identifies a record by its leader epoch and offset, so
two logs with the same epochs and ends must have the same checksum.  And a message, identified in the spec
by its content, is sent, counted, answered and accepted once each, in this order; its numbers increase.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

from cluster_tracing import CONTROLLER, ClusterTracing, room_for, single
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, Call, ImpossibleEvent, SeenTogether, Ways, event
from specchk.conform.contract.values import Table
from specchk.ir.program import Program

TIMED = ("serve", "produce", "settle", "lead", "shrink")
# What constants are rounded up to.  A program takes as long as a thousand events, and one more epoch slows no
# event down; most recordings need up to 16.
ROOM = MappingProxyType(
    dict.fromkeys(("MaxCrashes", "MaxPowerLosses", "MaxFences", "MaxShrinks", "MaxOffset", "MaxVersion"), 128)
    | {"MaxEpoch": 24}
)
# A broker's recorded state, in the spec's words.
TEXTS = MappingProxyType(
    {
        "status": "status[{0}]", "leo": "leo(log[{0}])", "hw": "hw[{0}]", "epochs": "log[{0}]",
        "flushed": "flushed[{0}]", "checkpoint": "checkpoint[{0}]", "epoch": "epoch[{0}]",
        "role": "is_leader({0})", "late": "late[{0}] - isr[{0}]", "isr": "isr[{0}]",
        "fenced": "knows[{0}].fenced", "version": "version[{0}]", "pending": "pending({0})",
        "proposed": "get(alter[{0}]).isr", "offset": "get(fetch[{0}]).offset",
        "reply": "get(fetch[{0}]).body is Diverging",
    }
)  # fmt: skip

CONTROLLER_TEXTS = MappingProxyType(
    {
        "epoch": "current", "leader": "meta[current].leader", "isr": "meta[current].isr",
        "version": "meta[current].version", "fenced": "fenced",
    }
)  # fmt: skip
MOST_LOGS = 1 << 14  # many times those of recordings
Field = tuple[str, str]  # a name, and an expression of the spec


class ShownFields:
    """The fields of brokers with these names, and the recorded state of logs with epochs in this range."""

    def __init__(self, names: Sequence[str], epochs: range) -> None:
        self.epochs = epochs
        self.of_broker: dict[str, dict[str, Field]] = {
            name: {field: (field, text.format(name)) for field, text in TEXTS.items()} for name in names
        }
        self.remote: dict[str, list[Field]] = {
            name: [("remote", f"remote[{name}][{other}]") for other in names] for name in names
        }
        self._logs: dict[bytes, tuple[Table, tuple[int, ...]]] = {}

    def log(self, entries: Sequence[Sequence[int]], leo: int) -> tuple[Table, tuple[int, ...]]:
        """A log in terms of the spec, and the ends of its epochs' records."""
        key = marshal.dumps((entries, leo), 2)
        known = self._logs.get(key)
        if known is None:
            if len(self._logs) == MOST_LOGS:
                self._logs.clear()
            ends = self._ends(entries, leo)
            words = {
                "ends": dict(zip(self.epochs, ends, strict=True)),
                "cached": {epoch for epoch, _ in entries},
            }
            known = self._logs[key] = Table(words.items()), tuple(ends) if leo else (0,)
        return known

    def _ends(self, entries: Sequence[Sequence[int]], leo: int) -> list[int]:
        """The end of each epoch's records."""
        ends: list[int] = []
        count = len(self.epochs)
        for epoch, start in entries:
            # Those before it end where it begins.
            ends += [start] * (min(epoch, count) - len(ends))
        return ends + [leo] * (count - len(ends))


@lru_cache(maxsize=16)
def shown_fields(names: tuple[str, ...], epochs: range) -> ShownFields:
    """Cached for all recordings of clusters of one size, since most have the same logs."""
    return ShownFields(names, epochs)


class ReplogTracing(ClusterTracing):
    """All events of replog's recorder."""

    spec, model, reads = "../spec/recorded.spec", "waiting_fetches", "replog-recording/1"
    silent: ClassVar[tuple[str, ...]] = ("lose_fetch", "ask_again")

    def __init__(self, program: Program, recording: Recording) -> None:
        super().__init__(program, recording)
        self._checksums: dict[tuple[Any, ...], int] = {(0,): 0}
        self._fields = shown_fields(tuple(self.names), self.epochs)

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        """Return bounds of the recording's elections, records and faults; rounded up, to share programs."""
        kinds = [one["event"] for one in recording.events]
        shown = [one.get("after", {}) for one in recording.events]
        # Each change of the partition is an event of the controller; those that do not show it count as one.
        ruled = [one.get("after", {}) for one in recording.events if one["at"] == CONTROLLER]
        unseen = {name: sum(name not in one for one in ruled) for name in ("epoch", "version")}
        # A batch may have several records, as with producers of other clients.
        produced = sum(int(one.get("count", 1)) for one in recording.events if one["event"] == "produce")
        most = {name: _most(shown, name) for name in ("leo", "epoch", "version")}
        faults = {
            "MaxCrashes": kinds.count("crash") + kinds.count("power-loss") + 1,
            "MaxPowerLosses": kinds.count("power-loss") + 1,
            "MaxFences": kinds.count("fence") + 1,
            "MaxShrinks": kinds.count("shrink") + 1,
            "MaxOffset": most["leo"] + produced,
            "MaxEpoch": most["epoch"] + unseen["epoch"] + 1,
            "MaxVersion": most["version"] + unseen["version"] + 1,
        }
        rules = {"min_isr": str(recording.header["min_isr"]), "acks": str(recording.header["acks"])}
        bounds = {name: str(room_for(value, ROOM[name])) for name, value in faults.items()}
        return cls.header_constants(recording) | rules | bounds

    def near(self, found: Event) -> Sequence[Call]:
        """A lost message matters when the next one is sent, a lost refusal at the next verdict."""
        if found["event"] == "fetch":
            return (self.lost(found),)
        return (self.call("ask_again", found["leader"]),) if found["event"] == "judge" else ()

    def after(self, found: Event) -> SeenTogether:
        """The recorded state of brokers and the controller."""
        shown, kind = found.get("after"), found["event"]
        fields: list[Field] = []
        values: list[Any] = []
        if shown:
            show = self._controller if found["at"] == CONTROLLER else self._broker
            show(found, shown, fields, values)
        elif shown is not None and found["at"] != CONTROLLER:
            fields.append(self._fields.of_broker[self.me(found)]["status"])
            values.append("down")
        if kind in ("fetch", "serve"):
            self._fetch(found, fields, values)
        elif kind == "judge" and "verdict" in found:
            fields.append(("verdict", f"get(alter[{self.name(found['leader'])}]).state"))
            values.append(found["verdict"])
        return SeenTogether(tuple(fields), values)

    def _fetch(self, found: Event, fields: list[Field], values: list[Any]) -> None:
        """The request, or its answer."""
        serves = found["event"] == "serve"
        of = self._fields.of_broker[self.name(found["follower"]) if serves else self.me(found)]
        if "offset" in found:
            fields.append(of["offset"])
            values.append(found["offset"])
        if serves and "reply" in found:
            fields.append(of["reply"])
            values.append({"waits": False, "records": False, "diverges": True}[found["reply"]])

    @event("produce")
    def produce(self, found: Event) -> Ways:
        """Records are appended: one if the event has no count, since producers send single records."""
        count = int(found.get("count", 1))
        if count == 1:
            return self.step_in_time(found, "produce", found["at"])
        return self.in_time(found, *(self.call("produce", found["at"]),) * count)

    @event("shrink")
    def shrink(self, found: Event) -> Ways:
        """Lagging replicas are to leave the ISR."""
        if "gone" not in found:
            one = self.in_time(found, Call("shrink_isr", (self.me(found), ANY)))
            several = self.in_time(found, Call("shrink_isr_by", (self.me(found), ANY)))
            return Ways((*one.ways, *several.ways))
        gone = [self.name(one) for one in found["gone"]]
        if len(gone) == 1:
            return self.in_time(found, Call("shrink_isr", (self.me(found), gone[0])))
        return self.in_time(found, Call("shrink_isr_by", (self.me(found), frozenset(gone))))

    @event("settle")
    def settle(self, found: Event) -> Ways:
        """The controller's decision arrives."""
        return self.step_in_time(found, "apply_alter_reply", found["at"])

    judge = single("judge", "alter_partition", "leader")  # granted, or refused because of its members
    elect = single("elect", "elect", "broker")  # as an operator wants
    fence = single("fence", "fence_broker", "broker")
    unfence = single("unfence", "unfence_broker", "broker")
    register = single("register", "restart", "broker")  # a new incarnation is admitted
    brokers = single("brokers", "hear_of_brokers")
    checkpoint = single("checkpoint", "checkpoint_hw")
    flush = single("flush", "flush")  # the page cache is written
    crash = single("crash", "crash")
    power_loss = single("power-loss", "power_loss")  # with the unflushed data

    @event("lead")
    def lead(self, found: Event) -> Ways:
        """Metadata in which this broker leads."""
        return self.in_time(found, Call("become_leader", (self.me(found), found.get("epoch", ANY))))

    @event("follow")
    def follow(self, found: Event) -> Call:
        """Metadata in which another broker leads, or none."""
        return Call("become_follower", (self.me(found), found.get("epoch", ANY)))

    def _controller(
        self, found: Event, shown: Mapping[str, Any], fields: list[Field], values: list[Any]
    ) -> None:
        del found
        read: dict[str, Any] = {
            "epoch": lambda epoch: epoch,
            "leader": lambda leader: None if leader is None else self.name(leader),
            "isr": self.set_of,
            "version": lambda version: version - 1,
            "fenced": self.set_of,
        }
        for field, expression in CONTROLLER_TEXTS.items():
            if field in shown:
                fields.append((f"controller.{field}", expression))
                values.append(read[field](shown[field]))

    def _broker(self, found: Event, shown: Mapping[str, Any], fields: list[Field], values: list[Any]) -> None:
        me, role = self.me(found), shown.get("role")
        of, field, value = self._fields.of_broker[me], fields.append, values.append
        if role is not None:
            field(of["status"])
            value("starting" if role == "none" else "running")
        if "leo" in shown:
            field(of["leo"])
            value(shown["leo"])
        if "hw" in shown:
            field(of["hw"])
            value(shown["hw"])
        if "leo" in shown and "epochs" in shown:
            field(of["epochs"])
            value(self._log(shown))
        if "flushed" in shown:
            field(of["flushed"])
            value(shown["flushed"])
        if shown.get("checkpoint") is not None:
            field(of["checkpoint"])
            value(shown["checkpoint"])
        # Of a broker without a role the spec has an epoch that means nothing.
        if role not in (None, "none"):
            if "epoch" in shown:
                field(of["epoch"])
                value(shown["epoch"])
            field(of["role"])
            value(role == "leader")
        self._leader(found, me, shown, fields, values)

    def _leader(
        self, found: Event, me: str, shown: Mapping[str, Any], fields: list[Field], values: list[Any]
    ) -> None:
        """The recorded state of a leader."""
        of, field, value = self._fields.of_broker[me], fields.append, values.append
        if "isr" in shown:
            isr = self.set_of(shown["isr"])
            if found["event"] in TIMED and "late" in found:
                field(of["late"])
                value(self.set_of(found["late"]) - isr)
            field(of["isr"])
            value(isr)
        if "fenced" in shown:
            field(of["fenced"])
            value(self.set_of(shown["fenced"]))
        if "version" in shown:
            field(of["version"])
            value(shown["version"] - 1)
        if "proposed" in shown:
            proposed = shown["proposed"]
            field(of["pending"])
            value(proposed is not None)
            if proposed is not None:
                field(of["proposed"])
                value(self.set_of(proposed))
        remote = self._fields.remote[me]
        for other, leo in shown.get("remote", {}).items():
            number = int(other)
            self.name(number)  # there may be no such broker
            field(remote[number])
            value(None if leo < 0 else leo)

    def _log(self, shown: Mapping[str, Any]) -> Table:
        """The log in terms of the spec; logs with the same terms must have the same content."""
        log, content = self._fields.log(shown["epochs"], shown["leo"])
        if "crc" in shown and self._checksums.setdefault(content, shown["crc"]) != shown["crc"]:
            raise ImpossibleEvent(
                f"a log with the ends {[*log['ends'].values()]} had the checksum "
                f"{self._checksums[content]}, and has {shown['crc']}"
            )
        return log


def _most(shown: Sequence[Mapping[str, Any]], name: str) -> int:
    """The largest number that events record in a field."""
    return max([value for one in shown if isinstance(value := one.get(name), int)], default=0)
