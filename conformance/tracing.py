"""replog's recordings in terms of recorded.spec: the action of each event, and the recorded fields.

    fetch serve answer apply       a fetch in flight, counted, answered late, accepted
    produce shrink judge settle    records; an ISR proposal, the controller's decision, its arrival
    elect fence unfence register   the controller; a registration is the spec's `restart`
    lead follow brokers            metadata is applied
    checkpoint flush crash power-loss

The effect of a leader's clock on its followers (`late`) is a step of the spec before the event, `pass_time`.
The silent steps are `lose_fetch`, since the loss of a message is not observed, and `ask_again`, a proposal
that is repeated because its refusal was lost.

The identifying fields of an event are in every line: its writer, message and brokers.  Any other
field may be missing; then it is unknown, and not compared.  `after` is missing if nothing is shown, and
empty if the broker is down.

Two checks concern the abstraction itself.  The spec identifies a record by its leader epoch and offset, so
two logs with the same epochs and ends must have the same checksum.  And a message, identified in the spec
by its content, is sent, counted, answered and accepted once each, in this order; its numbers increase.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

from cluster_tracing import FAULTS, ClusterTracing, Field, single
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, Call, ImpossibleEvent, Ways, event
from specchk.conform.contract.values import Table
from specchk.ir.program import Program

TIMED = ("serve", "produce", "settle", "lead", "shrink")
# What constants are rounded up to.  A program takes as long as a thousand events, and one more epoch slows no
# event down; most recordings need up to 16.
ROOMS = MappingProxyType({**dict.fromkeys((*FAULTS, "MaxOffset", "MaxVersion"), 128), "MaxEpoch": 24})
# A broker's recorded state, in the spec's words.
TEXTS = MappingProxyType(
    {
        "status": "status[{0}]", "leo": "leo(log[{0}])", "hw": "hw[{0}]", "epochs": "log[{0}]",
        "flushed": "flushed[{0}]", "checkpoint": "checkpoint[{0}]", "epoch": "epoch[{0}]",
        "role": "is_leader({0})", "late": "late[{0}] - isr[{0}]", "isr": "isr[{0}]",
        "fenced": "knows[{0}].fenced", "version": "version[{0}]", "pending": "pending({0})",
        "proposed": "get(alter[{0}]).isr", "offset": "get(fetch[{0}]).offset",
        "reply": "get(fetch[{0}]).body is Diverging", "waits": "found_nothing({0})",
        "to": "meta[get(fetch[{0}]).epoch].leader",
    }
)  # fmt: skip

CONTROLLER_TEXTS = MappingProxyType(
    {
        "epoch": "current", "leader": "meta[current].leader", "isr": "meta[current].isr",
        "version": "meta[current].version", "fenced": "fenced",
    }
)  # fmt: skip
MOST_LOGS = 1 << 14  # many times those of recordings


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

    spec, model, reads = "../spec/recorded.spec", "recordings", "replog-recording/1"
    silent: ClassVar[tuple[str, ...]] = ("lose_fetch", "ask_again")
    rooms = ROOMS

    def __init__(self, program: Program, recording: Recording) -> None:
        super().__init__(program, recording)
        self._checksums: dict[tuple[Any, ...], int] = {(0,): 0}
        self._fields = shown_fields(tuple(self.names), self.epochs)

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        """The bounds, and the rules that the header determines."""
        rules = {"min_isr": str(recording.header["min_isr"]), "acks": str(recording.header["acks"])}
        return {**super().constants(recording), **rules}

    def near(self, found: Event) -> Sequence[Call]:
        """A lost message matters when the next one is sent, a lost refusal at the next verdict."""
        if found["event"] == "fetch":
            return (self.lost(found),)
        return (self.call("ask_again", found["leader"]),) if found["event"] == "judge" else ()

    def message(self, found: Event) -> Iterator[tuple[Field, Any]]:
        """The request, or its answer; of a proposal the verdict."""
        kind = found["event"]
        if kind in ("fetch", "serve"):
            of = self._fields.of_broker[self.name(found["follower"]) if kind == "serve" else self.me(found)]
            if "offset" in found:
                yield of["offset"], found["offset"]
            if kind == "serve" and "reply" in found:
                yield of["reply"], {"waits": False, "records": False, "diverges": True}[found["reply"]]
                yield of["waits"], found["reply"] == "waits"
            if kind == "fetch" and "to" in found:
                yield of["to"], self.name(found["to"])
        elif kind == "judge" and "verdict" in found:
            yield ("verdict", f"get(alter[{self.name(found['leader'])}]).state"), found["verdict"]

    @event("produce")
    def produce(self, found: Event) -> Ways:
        """Records are appended: one if the event has no count, since producers send single records."""
        return self.in_time(found, *(self.call("produce", found["at"]),) * int(found.get("count", 1)))

    @event("shrink")
    def shrink(self, found: Event) -> Ways:
        """Lagging replicas are to leave the ISR."""
        if "gone" not in found:
            one = self.in_time(found, Call("shrink_isr", (self.me(found), ANY)))
            several = self.in_time(found, Call("shrink_isr_by", (self.me(found), ANY)))
            return Ways((*one.ways, *several.ways))
        gone = self.gone(found)
        if len(gone) == 1:
            return self.in_time(found, Call("shrink_isr", (self.me(found), gone[0])))
        return self.in_time(found, Call("shrink_isr_by", (self.me(found), frozenset(gone))))

    @event("settle")
    def settle(self, found: Event) -> Ways:
        """The controller's decision arrives."""
        return self.in_time(found, self.call("apply_alter_reply", found["at"]))

    judge = single("judge", "alter_partition", "leader")  # granted, or refused because of its members
    fence = single("fence", "fence_broker", "broker")
    brokers = single("brokers", "hear_of_brokers")
    flush = single("flush", "flush")  # the page cache is written
    power_loss = single("power-loss", "power_loss")  # with the unflushed data

    @event("lead")
    def lead(self, found: Event) -> Ways:
        """Metadata in which this broker leads."""
        return self.in_time(found, Call("become_leader", (self.me(found), found.get("epoch", ANY))))

    @event("follow")
    def follow(self, found: Event) -> Call:
        """Metadata in which another broker leads, or none."""
        return Call("become_follower", (self.me(found), found.get("epoch", ANY)))

    def controller(self, shown: Mapping[str, Any]) -> Iterator[tuple[Field, Any]]:
        """The recorded state of the controller."""
        read: dict[str, Any] = {
            "epoch": lambda epoch: epoch,
            "leader": lambda leader: None if leader is None else self.name(leader),
            "isr": self.set_of,
            "version": lambda version: version - 1,
            "fenced": self.set_of,
        }
        for field, expression in CONTROLLER_TEXTS.items():
            if field in shown:
                yield (f"controller.{field}", expression), read[field](shown[field])

    def broker(self, found: Event, shown: Mapping[str, Any]) -> Iterator[tuple[Field, Any]]:
        """The recorded state of a running broker."""
        role, of = shown.get("role"), self._fields.of_broker[self.me(found)]
        if role is not None:
            yield of["status"], "starting" if role == "none" else "running"
        for field in ("leo", "hw"):
            if field in shown:
                yield of[field], shown[field]
        if "leo" in shown and "epochs" in shown:
            yield of["epochs"], self._log(shown)
        if "flushed" in shown:
            yield of["flushed"], shown["flushed"]
        if shown.get("checkpoint") is not None:
            yield of["checkpoint"], shown["checkpoint"]
        # Of a broker without a role the spec has an epoch that means nothing.
        if role not in (None, "none"):
            if "epoch" in shown:
                yield of["epoch"], shown["epoch"]
            yield of["role"], role == "leader"
        yield from self._leader(found, shown, of)

    def _leader(
        self, found: Event, shown: Mapping[str, Any], of: Mapping[str, Field]
    ) -> Iterator[tuple[Field, Any]]:
        """The recorded state of a leader."""
        if "isr" in shown:
            isr = self.set_of(shown["isr"])
            if found["event"] in TIMED and "late" in found:
                yield of["late"], self.set_of(found["late"]) - isr
            yield of["isr"], isr
        if "fenced" in shown:
            yield of["fenced"], self.set_of(shown["fenced"])
        if "version" in shown:
            yield of["version"], shown["version"] - 1
        if "proposed" in shown:
            proposed = shown["proposed"]
            yield of["pending"], proposed is not None
            if proposed is not None:
                yield of["proposed"], self.set_of(proposed)
        remote = self._fields.remote[self.me(found)]
        for other, leo in shown.get("remote", {}).items():
            number = int(other)
            self.name(number)  # there may be no such broker
            yield remote[number], None if leo < 0 else leo

    def _log(self, shown: Mapping[str, Any]) -> Table:
        """The log in terms of the spec; logs with the same terms must have the same content."""
        log, content = self._fields.log(shown["epochs"], shown["leo"])
        if "crc" in shown and self._checksums.setdefault(content, shown["crc"]) != shown["crc"]:
            raise ImpossibleEvent(
                f"a log with the ends {[*log['ends'].values()]} had the checksum "
                f"{self._checksums[content]}, and has {shown['crc']}"
            )
        return log
