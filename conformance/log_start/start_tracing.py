"""replog's recordings of moving log starts in terms of log_start.spec: the action of each event.

    fetch serve list answer apply    a fetch or a request for an end of the log
    produce delete time-out retain shrink
    elect fence unfence register     the controller; a registration is the spec's `restart`
    lead follow                      metadata is applied
    checkpoint crash

The effect of a leader's clock on its followers (`late`) is a step of the spec before the event, `pass_time`;
the silent step is `lose_fetch`.  The identifying fields of an event are in every line, others may be missing.

Two checks are of the abstraction itself, as in `conformance/tracing.py`: two logs with the same start, epochs
and ends have the same checksum, and a message is sent, counted, answered and taken once each, in this order.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

sys.path.append(str(Path(__file__).resolve().parents[1]))  # of `cluster_tracing`

from cluster_tracing import ClusterTracing, Field, single
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, Call, ImpossibleEvent, Ways, event
from specchk.ir.program import Program

REPLIES = MappingProxyType({"diverges": "Diverging", "out-of-range": "OutOfRange"})
REQUESTS = MappingProxyType({"end": "AskedEnd", "start": "AskedStart"})


class StartTracing(ClusterTracing):
    """All events of the recorder of log starts."""

    spec, model, reads = "../../spec/recorded_start.spec", "waiting_fetches", "replog-start-recording/1"
    silent: ClassVar[tuple[str, ...]] = ("lose_fetch",)
    stages = MappingProxyType({**ClusterTracing.stages, "list": 1})
    rooms = MappingProxyType({
        "MaxCrashes": 32, "MaxFences": 32, "MaxShrinks": 32, "MaxOffset": 128, "MaxEpoch": 8,
    })  # fmt: skip

    def __init__(self, program: Program, recording: Recording) -> None:
        super().__init__(program, recording)
        self._checksums: dict[tuple[Any, ...], int] = {}

    def near(self, found: Event) -> Sequence[Call]:
        """A lost message matters when the next one is sent."""
        return (self.lost(found),) if found["event"] == "fetch" else ()

    @event("list")
    def list_offsets(self, found: Event) -> Call:
        """The leader answers with an end of its log."""
        self.stage(found)
        return self.call("list_offsets", found["at"], found["follower"])

    @event("produce")
    def produce(self, found: Event) -> Ways:
        """Records are appended."""
        return self.in_time(found, *(self.call("produce", found["at"]),) * int(found.get("count", 1)))

    @event("delete")
    def delete(self, found: Event) -> Call:
        """A client requests a deletion."""
        return Call("delete_records", (self.me(found), found["to"]))

    @event("retain")
    def retain(self, found: Event) -> Call:
        """A broker deletes records by retention."""
        return Call("retain", (self.me(found), found["to"]))

    @event("shrink")
    def shrink(self, found: Event) -> Ways:
        """Lagging replicas have left the ISR."""
        gone = self.gone(found)
        one = Call("shrink_isr", (gone[0],))
        return self.in_time(found, one if len(gone) == 1 else Call("shrink_isr_by", (frozenset(gone),)))

    @event("lead")
    def lead(self, found: Event) -> Ways:
        """Metadata in which this broker leads."""
        here = (self.me(found), found.get("epoch", ANY))
        return Ways(((Call("apply_metadata", here),), (Call("start", here),)))

    @event("follow")
    def follow(self, found: Event) -> Ways:
        """Metadata in which another broker leads."""
        return self.lead(found)

    @event("fence")
    def fence(self, found: Event) -> Ways:
        """A session has expired; HW may move at the leader, for whose followers time has passed."""
        step = Call("fence_broker", (self.name(found["broker"]),))
        passed = [(Call("pass_time", (name, ANY)), step) for name in self.names]
        return Ways(((step,), *passed))

    time_out = single("time-out", "time_out")

    def message(self, found: Event) -> Iterator[tuple[Field, Any]]:
        """The request, or its answer."""
        if found["event"] == "fetch":
            yield from self._request(found)
        if found["event"] == "serve" and "reply" in found:
            body = f"get(fetch[{self.name(found['follower'])}]).body"
            for reply, kind in REPLIES.items():
                yield ("reply", f"{body} is {kind}"), found["reply"] == reply

    def _request(self, found: Event) -> Iterator[tuple[Field, Any]]:
        body = f"get(fetch[{self.me(found)}]).body"
        if "asks" in found:
            for asks, kind in REQUESTS.items():
                yield ("asks", f"{body} is {kind}"), found["asks"] == asks
        for name in ("offset", "start"):
            if name in found:
                yield (name, f"{name}_of({body})"), found[name]

    def controller(self, shown: Mapping[str, Any]) -> Iterator[tuple[Field, Any]]:
        """The recorded state of the controller."""
        if "epoch" in shown:
            yield ("controller.epoch", "current"), shown["epoch"]
        if shown.get("leader") is not None:
            yield ("controller.leader", "meta[current].leader"), self.name(shown["leader"])
        if "leader_hw" in shown:
            yield ("leader_hw", "hw[meta[current].leader]"), shown["leader_hw"]
        for name in ("isr", "fenced"):
            if name in shown:
                yield (f"controller.{name}", f"meta[current].{name}"), self.set_of(shown[name])

    def broker(self, found: Event, shown: Mapping[str, Any]) -> Iterator[tuple[Field, Any]]:
        """The recorded state of a running broker."""
        me, role = self.me(found), shown.get("role")
        if role is not None:
            yield ("status", f"status[{me}]"), "starting" if role == "none" else "running"
        if "hw" in shown:
            yield ("hw", f"hw[{me}]"), shown["hw"]
        if all(name in shown for name in ("leo", "start", "epochs")):
            yield ("log", f"log[{me}]"), self._log(shown)
        if shown.get("checkpoint") is not None:
            yield ("checkpoint", f"checkpoint[{me}]"), shown["checkpoint"]
        # Of a broker without a role the spec has an epoch that means nothing.
        if role in (None, "none"):
            return
        if "epoch" in shown:
            yield ("epoch", f"epoch[{me}]"), shown["epoch"]
        yield ("role", f"is_leader({me})"), role == "leader"
        if "phase" in shown:
            yield ("phase", f"phase[{me}]"), shown["phase"].replace("-", "_")
        yield from self._leader(me, shown)

    def _leader(self, me: str, shown: Mapping[str, Any]) -> Iterator[tuple[Field, Any]]:
        """The recorded state of a leader."""
        if "isr" in shown:
            yield ("isr", f"meta[epoch[{me}]].isr"), self.set_of(shown["isr"])
        if "fenced" in shown:
            yield ("known fenced", f"meta[epoch[{me}]].fenced"), self.set_of(shown["fenced"])
        for other, leo in shown.get("remote", {}).items():
            start = shown.get("starts", {}).get(other)
            told = None if leo < 0 else {"leo": leo, "start": start}
            if start is not None:
                yield ("remote", f"remote[{me}][{self.name(int(other))}]"), told
        if "deletes" in shown:
            waiting = shown["deletes"]
            yield ("deletes", f"pending[{me}]"), waiting[0] if waiting else None

    def _log(self, shown: Mapping[str, Any]) -> dict[str, Any]:
        """The log in terms of the spec; logs with the same terms must have the same content."""
        entries, leo, start = shown["epochs"], shown["leo"], shown["start"]
        ends, at = [], 0
        for epoch in self.epochs:
            while at < len(entries) and entries[at][0] <= epoch:
                at += 1
            ends.append(max(entries[at][1] if at < len(entries) else leo, start))
        if leo < start:
            raise ImpossibleEvent(f"a log from {start} to {leo}")
        for epoch, begin in entries:
            if begin != (ends[epoch - 1] if epoch else start):
                raise ImpossibleEvent(
                    f"epoch {epoch} starts at {begin}, not as the records from {start} to {leo}"
                )
        key = (start, *ends)
        if "crc" in shown and self._checksums.setdefault(key, shown["crc"]) != shown["crc"]:
            raise ImpossibleEvent(f"a log from {start} with the ends {ends} had another checksum")
        return {
            "start": start,
            "ends": dict(zip(self.epochs, ends, strict=True)),
            "cached": {epoch for epoch, _ in entries},
        }
