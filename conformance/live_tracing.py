"""Recordings of running brokers (`replog cluster --record`, `replog merge`) in terms of live.spec.

They are read as those of simulations, except for

    produce gather checkpoint      batches of several records; HW is gathered before it is written
    fetch hear serve apply         a fetch is counted when it arrives, and again when it is answered
    start                          of a broker: the process before has died.  Of the controller: no step

A process that was killed may have taken a last step without writing it down, which the log or the metadata
at its next start show.  The checks of the abstraction are those of `tracing`: equal logs have equal
checksums, and a message is sent, served and accepted in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from cluster_tracing import CONTROLLER, FAULTS, Field
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, Call, ImpossibleEvent, Meaning, Ways, event
from specchk.ir.program import Program
from tracing import TIMED, ReplogTracing

# No offset is enumerated, so there is room for all.
ROOMS = MappingProxyType({**dict.fromkeys((*FAULTS, "MaxVersion"), 128), "MaxEpoch": 8, "MaxOffset": 4096})


MOMENTS = 32  # how many decisions a leader may be behind


class LiveTracing(ReplogTracing):
    """All events of the recorder of running brokers."""

    spec, model, reads = "../spec/live.spec", "live", "replog-live/1"
    rooms = ROOMS
    timed = (*TIMED, "hear")
    rare: ClassVar[Mapping[str, str]] = MappingProxyType({"power-loss": "no machine is switched off"})

    def __init__(self, program: Program, recording: Recording) -> None:
        super().__init__(program, recording)
        self._ends: dict[int, int] = {}
        self._applied: set[int] = set()
        self._moments = [(0, 0)]  # the versions of metadata, each with what the spec calls it

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        """The bounds, and that a start is a crash."""
        starts = sum(one["event"] == "start" for one in recording.events)
        room = str(max(-(-(starts + 1) // 128), 1) * 128)
        return {
            **super().constants(recording),
            "one_record": "false",
            "MaxMoments": str(MOMENTS - 1),
            "MaxCrashes": room,
        }

    def message(self, found: Event) -> Iterator[tuple[Field, Any]]:
        """The request, or the end of its answer; of a proposal the verdict."""
        if found["event"] == "hear":
            yield self._fields.of_broker[self.name(found["follower"])]["offset"], found["offset"]
        elif found["event"] == "start" and "leo" in found:
            of = self._fields.of_broker[self.me(found)]
            yield from ((of["leo"], found["leo"]), (of["hw"], found["hw"]))
        else:
            yield from super().message(found)

    def stage(self, found: Event) -> None:
        """Check that a message is sent once, then counted or served, and accepted after it was served."""
        message, kind = found["message"], found["event"]
        asker, number = map(int, message.split("/"))
        if found["follower" if kind in ("hear", "serve") else "at"] != asker:
            raise ImpossibleEvent(f"the message {message} is not one of this broker")
        other = {"fetch": found.get("to"), "apply": found.get("source")}.get(kind, found["at"])
        if other != self._others.setdefault(message, other):
            raise ImpossibleEvent(f"the message {message} is between {asker} and {self._others[message]}")
        last = self._last.get(message)
        if kind == "fetch":
            if number <= self._numbers.get(asker, 0):
                raise ImpossibleEvent(f"the message {message} is sent after {asker}/{self._numbers[asker]}")
            self._numbers[asker] = number
        elif last not in {"hear": ("fetch", "hear"), "serve": ("fetch", "hear")}.get(kind, ("serve",)):
            raise ImpossibleEvent(f"the message {message} has its `{kind}` after its `{last}`")
        elif number != self._numbers[asker]:
            raise ImpossibleEvent(f"the message {message} is not the last one of broker {asker}")
        self._last[message] = kind

    @event("produce")
    def produce(self, found: Event) -> Ways:
        """A batch is appended."""
        return self.in_time(found, Call("produce_batch", (self.me(found), found["count"])))

    @event("hear")
    def hear(self, found: Event) -> Ways:
        """A fetch arrives, and counts."""
        self.stage(found)
        return self.in_time(found, self.call("count_fetch", found["at"], found["follower"]))

    @event("serve")
    def serve(self, found: Event) -> Ways:
        """A fetch is answered, and counts again unless the logs diverge."""
        self.stage(found)
        leader, follower = self.me(found), self.name(found["follower"])
        answer = Call("answer_fetch", (leader, follower, found["end"]))
        if found["diverges"]:
            return self.in_time(found, answer)
        return self.in_time(found, Call("count_fetch", (leader, follower)), answer)

    @event("apply")
    def apply(self, found: Event) -> Call:
        """The follower processes an answer."""
        self.stage(found)
        return self.call("apply_answer", found["at"])

    @event("gather")
    def gather(self, found: Event) -> Call:
        """HW is to be written."""
        return self.call("gather_hw", found["at"])

    @event("checkpoint")
    def checkpoint(self, found: Event) -> Call:
        """The gathered HW is written."""
        return self.call("write_checkpoint", found["at"])

    @event("lead", "follow")
    def change(self, found: Event) -> Ways:
        """Metadata are applied; the first of all are those with which a recording begins."""
        if found["event"] == "lead":
            call = Call("lead_by", (self.me(found), self._heard(found)))
        else:
            call = Call("become_follower", (self.me(found), found.get("epoch", ANY)))
        is_first = found["at"] not in self._applied and found.get("epoch") == 0
        self._applied.add(found["at"])
        ways = self.in_time(found, call) if found["event"] == "lead" else Ways(((call,),))
        return Ways(((), *ways.ways)) if is_first else ways

    @event("brokers")
    def brokers(self, found: Event) -> Call:
        """Metadata about brokers."""
        return Call("hear_by", (self.me(found), self._heard(found)))

    def _heard(self, found: Event) -> int:
        """The last decision about the partition in the metadata that are applied."""
        return next(moment for version, moment in reversed(self._moments) if version <= found["metadata"])

    def meaning(self, found: Event) -> Meaning:
        """The meaning of an event; each of the controller is announced."""
        meaning = super().meaning(found)
        if found["at"] != CONTROLLER:
            return meaning
        moment = (self._moments[-1][1] + 1) % MOMENTS
        self._moments.append((found["metadata"], moment))
        announce = Call("announce", (moment,))
        return meaning._replace(ways=tuple((*way, announce) for way in meaning.ways))

    @event("start")
    def start(self, found: Event) -> Ways:
        """A process begins; the one before may have ended with a step that it did not write down."""
        if found["at"] == CONTROLLER:
            decisions = ("alter_partition", "fence_broker", "unfence_broker", "restart")
            last = [Call(action, (name,)) for name in self.names for action in decisions]
            return Ways(((), *((each,) for each in last)))
        self._applied.add(found["at"])
        me = found["at"]
        crash, more = self.call("crash", me), found.get("leo", 0) - self._ends.get(me, 0)
        last = [self.call("apply_answer", me), self.call("write_checkpoint", me)]
        last += [Call("produce_batch", (self.me(found), more))] if more > 0 else []
        return Ways(((crash,), *((each, crash) for each in last)))

    def broker(self, found: Event, shown: Mapping[str, Any]) -> Iterator[tuple[Field, Any]]:
        """The recorded state of a running broker."""
        self._ends[found["at"]] = shown.get("leo", 0)
        yield from super().broker(found, shown)
