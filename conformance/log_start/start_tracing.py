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
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

sys.path.append(str(Path(__file__).resolve().parents[1]))  # of `cluster_tracing`

from cluster_tracing import CONTROLLER, ClusterTracing, room_for, single
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, Call, ImpossibleEvent, Seen, Ways, event
from specchk.ir.program import Program

REPLIES = MappingProxyType({"diverges": "Diverging", "out-of-range": "OutOfRange"})
REQUESTS = MappingProxyType({"end": "AskedEnd", "start": "AskedStart"})


class StartTracing(ClusterTracing):
    """All events of the recorder of log starts."""

    spec, model, reads = "../../spec/recorded_start.spec", "waiting_fetches", "replog-start-recording/1"
    silent: ClassVar[tuple[str, ...]] = ("lose_fetch",)
    stages = MappingProxyType({**ClusterTracing.stages, "list": 1})

    def __init__(self, program: Program, recording: Recording) -> None:
        super().__init__(program, recording)
        self._checksums: dict[tuple[Any, ...], int] = {}

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        """Return bounds of the recording's elections, records and faults; rounded up, to share programs."""
        kinds = [one["event"] for one in recording.events]
        shown = [one.get("after", {}) for one in recording.events]
        unseen = sum(
            "epoch" not in one.get("after", {}) for one in recording.events if one["at"] == CONTROLLER
        )
        bounds = {
            "MaxCrashes": (kinds.count("crash") + 1, 32),
            "MaxFences": (kinds.count("fence") + 1, 32),
            "MaxShrinks": (kinds.count("shrink") + 1, 32),
            "MaxOffset": (max((one.get("leo", 0) for one in shown), default=0) + kinds.count("produce"), 128),
            "MaxEpoch": (max((one.get("epoch", 0) for one in shown), default=0) + unseen + 1, 8),
        }
        rooms = {name: str(room_for(value, step)) for name, (value, step) in bounds.items()}
        return cls.header_constants(recording) | rooms

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
        gone = [self.name(one) for one in found["gone"]]
        one = Call("shrink_isr", (gone[0],))
        return self.in_time(found, one if len(gone) == 1 else Call("shrink_isr_by", (frozenset(gone),)))

    @event("lead")
    def lead(self, found: Event) -> Ways:
        """Metadata in which this broker leads."""
        return self._applied(found)

    @event("follow")
    def follow(self, found: Event) -> Ways:
        """Metadata in which another broker leads."""
        return self._applied(found)

    def _applied(self, found: Event) -> Ways:
        here = (self.me(found), found.get("epoch", ANY))
        return Ways(((Call("apply_metadata", here),), (Call("start", here),)))

    @event("fence")
    def fence(self, found: Event) -> Ways:
        """A session has expired; HW may move at the leader, for whose followers time has passed."""
        step = Call("fence_broker", (self.name(found["broker"]),))
        passed = [(Call("pass_time", (name, ANY)), step) for name in self.names]
        return Ways(((step,), *passed))

    elect = single("elect", "elect", "broker")
    unfence = single("unfence", "unfence_broker", "broker")
    register = single("register", "restart", "broker")
    crash = single("crash", "crash")
    checkpoint = single("checkpoint", "checkpoint_hw")
    time_out = single("time-out", "time_out")

    def after(self, found: Event) -> Iterable[Seen]:
        """The recorded state of brokers and the controller."""
        shown = found.get("after")
        if shown:
            yield from self._controller(shown) if found["at"] == CONTROLLER else self._broker(found, shown)
        elif shown is not None and found["at"] != CONTROLLER:
            yield Seen("status", f"status[{self.me(found)}]", "down")
        if found["event"] == "fetch":
            yield from self._request(found)
        if found["event"] == "serve" and "reply" in found:
            body = f"get(fetch[{self.name(found['follower'])}]).body"
            for reply, kind in REPLIES.items():
                yield Seen("reply", f"{body} is {kind}", found["reply"] == reply)

    def _request(self, found: Event) -> Iterable[Seen]:
        body = f"get(fetch[{self.me(found)}]).body"
        if "asks" in found:
            for asks, kind in REQUESTS.items():
                yield Seen("asks", f"{body} is {kind}", found["asks"] == asks)
        if "offset" in found:
            yield Seen("offset", f"offset_of({body})", found["offset"])
        if "start" in found:
            yield Seen("start", f"start_of({body})", found["start"])

    def _controller(self, shown: Mapping[str, Any]) -> Iterable[Seen]:
        if "epoch" in shown:
            yield Seen("controller.epoch", "current", shown["epoch"])
        if shown.get("leader") is not None:
            yield Seen("controller.leader", "meta[current].leader", self.name(shown["leader"]))
        if "leader_hw" in shown:
            yield Seen("leader_hw", "hw[meta[current].leader]", shown["leader_hw"])
        for name in ("isr", "fenced"):
            if name in shown:
                yield Seen(f"controller.{name}", f"meta[current].{name}", self.set_of(shown[name]))

    def _broker(self, found: Event, shown: Mapping[str, Any]) -> Iterable[Seen]:
        me, role = self.me(found), shown.get("role")
        if role is not None:
            yield Seen("status", f"status[{me}]", "starting" if role == "none" else "running")
        if "hw" in shown:
            yield Seen("hw", f"hw[{me}]", shown["hw"])
        if all(name in shown for name in ("leo", "start", "epochs")):
            yield Seen("log", f"log[{me}]", self._log(shown))
        if shown.get("checkpoint") is not None:
            yield Seen("checkpoint", f"checkpoint[{me}]", shown["checkpoint"])
        # Of a broker without a role the spec has an epoch that means nothing.
        if role in (None, "none"):
            return
        if "epoch" in shown:
            yield Seen("epoch", f"epoch[{me}]", shown["epoch"])
        yield Seen("role", f"is_leader({me})", role == "leader")
        if "phase" in shown:
            yield Seen("phase", f"phase[{me}]", shown["phase"].replace("-", "_"))
        yield from self._leader(me, shown)

    def _leader(self, me: str, shown: Mapping[str, Any]) -> Iterable[Seen]:
        """The recorded state of a leader."""
        if "isr" in shown:
            yield Seen("isr", f"meta[epoch[{me}]].isr", self.set_of(shown["isr"]))
        if "fenced" in shown:
            yield Seen("known fenced", f"meta[epoch[{me}]].fenced", self.set_of(shown["fenced"]))
        for other, leo in shown.get("remote", {}).items():
            start = shown.get("starts", {}).get(other)
            told = None if leo < 0 else {"leo": leo, "start": start}
            if start is not None:
                yield Seen("remote", f"remote[{me}][{self.name(int(other))}]", told)
        if "deletes" in shown:
            waiting = shown["deletes"]
            yield Seen("deletes", f"pending[{me}]", waiting[0] if waiting else None)

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
