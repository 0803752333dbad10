"""replog's recordings in the words of replication.spec: which action an event is, and what it shows.

    fetch serve answer apply       a fetch on its way, counted, answered late, taken
    produce shrink judge settle    records; an ISR proposal, the controller's verdict, its arrival
    elect fence unfence register   the controller; a registration is the spec's `restart`
    lead follow brokers            metadata is applied
    checkpoint flush crash power-loss

What a leader's clock makes of its followers (`late`) is a step of the spec before the event, `pass_time`.
The silent steps are `lose_fetch`, since nobody sees a message get lost, and `ask_again`, a proposal that
is repeated because its refusal was lost.  What the recording's number of
elections, crashes, ... needs of the model is counted beforehand (`constants`), so no bound of the model
is in the way.

What identifies an event is in every line: its writer, message and the brokers that it is about.  Any other
field may be missing; then it is unknown, and not compared.  `after` is missing where nothing is shown, and
empty where the broker is down.

Two checks are of the abstraction itself.  The spec knows a record by its leader epoch and offset, so
two logs with the same epochs and ends must have the same checksum.  And a message, which the spec
knows by its content, is sent, counted, answered and taken once each, in this order; its numbers rise.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

from cluster_tracing import CONTROLLER, MOST_VALUES, ClusterTracing, SeenValues, room_for, single
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, Call, ImpossibleEvent, Seen, Ways, event
from specchk.conform.contract.values import Table
from specchk.ir.program import Program

TIMED = ("serve", "produce", "settle", "lead", "shrink")
# What constants are rounded up to.  A program takes as long as a thousand events, and one more epoch slows no
# event down; most recordings need up to 16.
ROOM = MappingProxyType(
    dict.fromkeys(("MaxCrashes", "MaxPowerLosses", "MaxFences", "MaxShrinks", "MaxOffset", "MaxVersion"), 128)
    | {"MaxEpoch": 24}
)
# What a broker shows of itself, in the spec's words.
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


class ShownValues:
    """All that brokers of these names may show of themselves; of epochs that are numbers in this range."""

    def __init__(self, names: Sequence[str], epochs: range) -> None:
        self.epochs = epochs
        self.of_broker = {
            name: {field: SeenValues(field, text.format(name)) for field, text in TEXTS.items()}
            for name in names
        }
        self.remote = {
            name: [SeenValues("remote", f"remote[{name}][{other}]") for other in names] for name in names
        }
        self._logs: dict[tuple[str, bytes], tuple[Seen, tuple[int, ...]]] = {}

    def log(self, name: str, entries: Sequence[Sequence[int]], leo: int) -> tuple[Seen, tuple[int, ...]]:
        """A log in the spec's words, and where its epochs' records end."""
        key = name, marshal.dumps((entries, leo), 2)
        known = self._logs.get(key)
        if known is None:
            if len(self._logs) == MOST_VALUES:
                self._logs.clear()
            ends = self._ends(entries, leo)
            words = {
                "ends": dict(zip(self.epochs, ends, strict=True)),
                "cached": {epoch for epoch, _ in entries},
            }
            seen = Seen("epochs", TEXTS["epochs"].format(name), Table(words.items()))
            known = self._logs[key] = seen, tuple(ends) if leo else (0,)
        return known

    def _ends(self, entries: Sequence[Sequence[int]], leo: int) -> list[int]:
        """Where each epoch's records end."""
        ends: list[int] = []
        count = len(self.epochs)
        for epoch, start in entries:
            # Those before it end where it begins.
            ends += [start] * (min(epoch, count) - len(ends))
        return ends + [leo] * (count - len(ends))


@lru_cache(maxsize=16)
def shown_values(names: tuple[str, ...], epochs: range) -> ShownValues:
    """Kept for all recordings of clusters of one size, since most have the same few values."""
    return ShownValues(names, epochs)


class ReplogTracing(ClusterTracing):
    """All events of replog's recorder."""

    spec, model, reads = "../spec/recorded.spec", "waiting_fetches", "replog-recording/1"
    silent: ClassVar[tuple[str, ...]] = ("lose_fetch", "ask_again")

    def __init__(self, program: Program, recording: Recording) -> None:
        super().__init__(program, recording)
        self._checksums: dict[tuple[Any, ...], int] = {(0,): 0}
        self._values = shown_values(tuple(self.names), self.epochs)
        self._shown: dict[bytes, tuple[Seen, ...]] = {}  # many show all that another one has

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        """Room for the recording's elections, records and faults; rounded up, so that programs are shared."""
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
        """A lost message matters where the next one is sent, a lost refusal at the next verdict."""
        if found["event"] == "fetch":
            return (self.lost(found),)
        return (self.call("ask_again", found["leader"]),) if found["event"] == "judge" else ()

    def after(self, found: Event) -> Iterable[Seen]:
        """What brokers and the controller show of themselves."""
        shown, kind = found.get("after"), found["event"]
        seen: Sequence[Seen] = ()
        if shown:
            seen = self._all_shown(found, shown)
        elif shown is not None and found["at"] != CONTROLLER:
            seen = (self._values.of_broker[self.me(found)]["status"]["down"],)
        if kind in ("fetch", "serve"):
            return [*seen, *self._fetch(found)]
        if kind == "judge" and "verdict" in found:
            leader = self.name(found["leader"])
            return [*seen, Seen("verdict", f"get(alter[{leader}]).state", found["verdict"])]
        return seen

    def _all_shown(self, found: Event, shown: Mapping[str, Any]) -> Sequence[Seen]:
        """The part of a state in an event."""
        late = found.get("late", ...) if found["event"] in TIMED else ...
        # By their bytes, which differ where a number is a truth or a fraction.
        key = marshal.dumps((found["at"], shown, late), 2)
        seen = self._shown.get(key)
        if seen is None:
            every = self._controller(shown) if found["at"] == CONTROLLER else self._broker(found, shown)
            seen = self._shown[key] = tuple(every)
        return seen

    def _fetch(self, found: Event) -> Iterable[Seen]:
        """The request, or what it was answered with."""
        serves = found["event"] == "serve"
        values = self._values.of_broker[self.name(found["follower"]) if serves else self.me(found)]
        if "offset" in found:
            yield values["offset"].number(found["offset"])
        if serves and "reply" in found:
            yield values["reply"][{"waits": False, "records": False, "diverges": True}[found["reply"]]]

    @event("produce")
    def produce(self, found: Event) -> Ways:
        """Records are appended: one where the event has no count, since that is what the producers send."""
        count = int(found.get("count", 1))
        if count == 1:
            return self.step_in_time(found, "produce", found["at"])
        return self.in_time(found, *(self.call("produce", found["at"]),) * count)

    @event("shrink")
    def shrink(self, found: Event) -> Ways:
        """Laggards are to leave the ISR."""
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
        """The controller's verdict arrives."""
        return self.step_in_time(found, "apply_alter_reply", found["at"])

    judge = single("judge", "alter_partition", "leader")  # granted, or refused for who is in it
    elect = single("elect", "elect", "broker")  # as an operator wants
    fence = single("fence", "fence_broker", "broker")
    unfence = single("unfence", "unfence_broker", "broker")
    register = single("register", "restart", "broker")  # a new incarnation is admitted
    brokers = single("brokers", "hear_of_brokers")
    checkpoint = single("checkpoint", "checkpoint_hw")
    flush = single("flush", "flush")  # the page cache is written
    crash = single("crash", "crash")
    power_loss = single("power-loss", "power_loss")  # with what was not flushed

    @event("lead")
    def lead(self, found: Event) -> Ways:
        """Metadata in which this broker leads."""
        return self.in_time(found, Call("become_leader", (self.me(found), found.get("epoch", ANY))))

    @event("follow")
    def follow(self, found: Event) -> Call:
        """Metadata in which another broker leads, or none."""
        return Call("become_follower", (self.me(found), found.get("epoch", ANY)))

    def _controller(self, shown: Mapping[str, Any]) -> Iterable[Seen]:
        if "epoch" in shown:
            yield Seen("controller.epoch", "current", shown["epoch"])
        if "leader" in shown:
            leader = None if shown["leader"] is None else self.name(shown["leader"])
            yield Seen("controller.leader", "meta[current].leader", leader)
        if "isr" in shown:
            yield Seen("controller.isr", "meta[current].isr", self.set_of(shown["isr"]))
        if "version" in shown:
            yield Seen("controller.version", "meta[current].version", shown["version"] - 1)
        if "fenced" in shown:
            yield Seen("controller.fenced", "fenced", self.set_of(shown["fenced"]))

    def _broker(self, found: Event, shown: Mapping[str, Any]) -> list[Seen]:
        me, role = self.me(found), shown.get("role")
        values = self._values.of_broker[me]
        seen: list[Seen] = []
        if role is not None:
            seen.append(values["status"]["starting" if role == "none" else "running"])
        if "leo" in shown:
            seen.append(values["leo"].number(shown["leo"]))
        if "hw" in shown:
            seen.append(values["hw"].number(shown["hw"]))
        if "leo" in shown and "epochs" in shown:
            seen.append(self._log(me, shown))
        if "flushed" in shown:
            seen.append(values["flushed"].number(shown["flushed"]))
        if shown.get("checkpoint") is not None:
            seen.append(values["checkpoint"].number(shown["checkpoint"]))
        # Of a broker without a role the spec has an epoch that means nothing.
        if role not in (None, "none"):
            if "epoch" in shown:
                seen.append(values["epoch"].number(shown["epoch"]))
            seen.append(values["role"][role == "leader"])
        return seen + self._leader(found, me, shown)

    def _leader(self, found: Event, me: str, shown: Mapping[str, Any]) -> list[Seen]:
        """What only a leader shows."""
        values = self._values.of_broker[me]
        seen: list[Seen] = []
        if "isr" in shown:
            isr = self.set_of(shown["isr"])
            if found["event"] in TIMED and "late" in found:
                seen.append(values["late"][self.set_of(found["late"]) - isr])
            seen.append(values["isr"][isr])
        if "fenced" in shown:
            seen.append(values["fenced"][self.set_of(shown["fenced"])])
        if "version" in shown:
            seen.append(values["version"].number(shown["version"] - 1))
        if "proposed" in shown:
            proposed = shown["proposed"]
            seen.append(values["pending"][proposed is not None])
            if proposed is not None:
                seen.append(values["proposed"][self.set_of(proposed)])
        remote = self._values.remote[me]
        for other, leo in shown.get("remote", {}).items():
            number = int(other)
            self.name(number)  # there may be no such broker
            seen.append(remote[number].number(None if leo < 0 else leo))
        return seen

    def _log(self, me: str, shown: Mapping[str, Any]) -> Seen:
        """The log in the spec's words; what has the same words must have the same content."""
        seen, content = self._values.log(me, shown["epochs"], shown["leo"])
        if "crc" in shown and self._checksums.setdefault(content, shown["crc"]) != shown["crc"]:
            raise ImpossibleEvent(
                f"a log with the ends {[*seen.value['ends'].values()]} had the checksum "
                f"{self._checksums[content]}, and has {shown['crc']}"
            )
        return seen


def _most(shown: Sequence[Mapping[str, Any]], name: str) -> int:
    """The largest number that events show of a field."""
    return max([value for one in shown if isinstance(value := one.get(name), int)], default=0)
