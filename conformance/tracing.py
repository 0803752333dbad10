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
from types import MappingProxyType
from typing import Any, ClassVar

from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, Call, ImpossibleEvent, Seen, Tracing, Ways, event
from specchk.ir.program import Program

CONTROLLER = -1
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
        "proposed": "get(alter[{0}]).isr",
    }
)  # fmt: skip
STAGES = MappingProxyType({"fetch": 0, "serve": 1, "answer": 2, "apply": 3})


def single(name: str, action: str, broker: str = "at") -> Any:
    """Return the method for an event that is one step of the broker in a field of it."""

    @event(name)
    def method(tracing: ReplogTracing, found: Event) -> Call:
        return Call(action, (tracing.name(found[broker]),))

    return method


class ReplogTracing(Tracing):
    """All events of replog's recorder."""

    spec, model, reads = "../spec/recorded.spec", "waiting_fetches", "replog-recording/1"
    silent: ClassVar[tuple[str, ...]] = ("lose_fetch", "ask_again")

    def __init__(self, program: Program, recording: Recording) -> None:
        super().__init__(program, recording)
        self.names = program.sorts[0].members
        epochs = next(one.value for one in program.constants if one.name == "MaxEpoch")
        self.epochs = range(int(str(epochs)) + 1)
        self.taken = frozenset(e["message"] for e in recording.events if e["event"] == "apply")
        self._stages: dict[str, int] = {}
        self._numbers: dict[int, int] = {}
        self._logs: dict[tuple[Any, ...], int] = {(0,): 0}
        self._words: dict[str, dict[str, Any]] = {}  # most events show a log that another one has shown
        self._texts = {
            name: {field: text.format(name) for field, text in TEXTS.items()} for name in self.names
        }
        self._shown: dict[bytes, tuple[Seen, ...]] = {}  # many show all that another one has
        self._calls: dict[tuple[str, str], Call] = {}

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
        faults = {
            "MaxCrashes": kinds.count("crash") + kinds.count("power-loss") + 1,
            "MaxPowerLosses": kinds.count("power-loss") + 1,
            "MaxFences": kinds.count("fence") + 1,
            "MaxShrinks": kinds.count("shrink") + 1,
            "MaxOffset": max((_number(one, "leo") for one in shown), default=0) + produced,
            "MaxEpoch": max((_number(one, "epoch") for one in shown), default=0) + unseen["epoch"] + 1,
            "MaxVersion": max((_number(one, "version") for one in shown), default=0) + unseen["version"] + 1,
        }
        header = recording.header
        rules = {
            "Broker": str(header["brokers"]),
            "first_leader": f"b{int(header['first_leader']) + 1}",
            "min_isr": str(header["min_isr"]),
            "acks": str(header["acks"]),
            "one_record": "true",
        }
        return rules | {name: str(room_for(value, ROOM[name])) for name, value in faults.items()}

    def near(self, found: Event) -> Sequence[Call]:
        """A lost message matters where the next one is sent, a lost refusal at the next verdict."""
        if found["event"] == "fetch":
            return (self._call("lose_fetch", found["at"]),)
        return (self._call("ask_again", found["leader"]),) if found["event"] == "judge" else ()

    def _call(self, action: str, broker: Any) -> Call:
        """A step of a broker; made once, since there are few."""
        key = action, self.name(broker)
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = Call(action, key[1:])
        return call

    def after(self, found: Event) -> Iterable[Seen]:
        """What brokers and the controller show of themselves."""
        shown, kind = found.get("after"), found["event"]
        seen: list[Seen] = []
        if shown:
            seen += self._all_shown(found, shown)
        elif shown is not None and found["at"] != CONTROLLER:
            seen.append(Seen("status", f"status[{self._me(found)}]", "down"))
        if kind in ("fetch", "serve"):
            seen += self._fetch(found)
        if kind == "judge" and "verdict" in found:
            leader = self.name(found["leader"])
            seen.append(Seen("verdict", f"get(alter[{leader}]).state", found["verdict"]))
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
        asker = self.name(found["follower"]) if serves else self._me(found)
        if "offset" in found:
            yield Seen("offset", f"get(fetch[{asker}]).offset", found["offset"])
        if serves and "reply" in found:
            kind = f"get(fetch[{asker}]).body is Diverging"
            yield Seen("reply", kind, {"waits": False, "records": False, "diverges": True}[found["reply"]])

    def _me(self, found: Event) -> str:
        return self.name(found["at"])

    def name(self, number: Any) -> str:
        """A broker's name in the spec."""
        if not isinstance(number, int) or not 0 <= number < len(self.names):
            raise ImpossibleEvent(f"there is no broker {number!r}")
        return self.names[number]

    @event("fetch")
    def fetch(self, found: Event) -> Call:
        """A request that the network has."""
        self._stage(found)
        return self._call("send_fetch", found["at"])

    @event("serve")
    def serve(self, found: Event) -> Ways:
        """The leader counts it."""
        self._stage(found)
        return self._in_time(found, Call("serve_fetch", (self._me(found), self.name(found["follower"]))))

    def _in_time(self, found: Event, *calls: Call) -> Ways:
        """Steps of a leader, after time has passed for its followers or without."""
        late = self._set(found["late"]) if "late" in found else ANY
        passed = Call("pass_time", (self._me(found), late))
        return Ways((calls, (passed, *calls)))

    @event("answer")
    def answer(self, found: Event) -> Ways:
        """A fetch that has waited is answered; for nobody, if the follower never takes the answer."""
        self._stage(found)
        step = Call("complete_fetch", (self._me(found), self.name(found["follower"])))
        return Ways(((step,),) if found["message"] in self.taken else ((),))

    @event("apply")
    def apply(self, found: Event) -> Call:
        """The follower takes an answer."""
        self._stage(found)
        return self._call("apply_response", found["at"])

    def _stage(self, found: Event) -> None:
        """Messages go one way, once."""
        message, stage = found["message"], STAGES[found["event"]]
        if stage == 0:
            asker, number = map(int, message.split("/"))
            if number <= self._numbers.get(asker, 0):
                raise ImpossibleEvent(f"the message {message} is sent after {asker}/{self._numbers[asker]}")
            self._numbers[asker] = number
        before = self._stages.get(message, -1)
        is_next = before in (1, 2) if stage == 3 else before == stage - 1
        if not is_next:
            done = "" if before < 0 else f" after its `{list(STAGES)[before]}`"
            raise ImpossibleEvent(
                f"the message {message} has its `{found['event']}`{done or ' before it was sent'}"
            )
        self._stages[message] = stage

    @event("produce")
    def produce(self, found: Event) -> Ways:
        """Records are appended: one where the event has no count, since that is what the producers send."""
        return self._in_time(found, *(self._call("produce", found["at"]),) * int(found.get("count", 1)))

    @event("shrink")
    def shrink(self, found: Event) -> Ways:
        """Laggards are to leave the ISR."""
        if "gone" not in found:
            one = self._in_time(found, Call("shrink_isr", (self._me(found), ANY)))
            several = self._in_time(found, Call("shrink_isr_by", (self._me(found), ANY)))
            return Ways((*one.ways, *several.ways))
        gone = [self.name(one) for one in found["gone"]]
        if len(gone) == 1:
            return self._in_time(found, Call("shrink_isr", (self._me(found), gone[0])))
        return self._in_time(found, Call("shrink_isr_by", (self._me(found), frozenset(gone))))

    @event("settle")
    def settle(self, found: Event) -> Ways:
        """The controller's verdict arrives."""
        return self._in_time(found, self._call("apply_alter_reply", found["at"]))

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
        return self._in_time(found, Call("become_leader", (self._me(found), found.get("epoch", ANY))))

    @event("follow")
    def follow(self, found: Event) -> Call:
        """Metadata in which another broker leads, or none."""
        return Call("become_follower", (self._me(found), found.get("epoch", ANY)))

    def _controller(self, shown: Mapping[str, Any]) -> Iterable[Seen]:
        if "epoch" in shown:
            yield Seen("controller.epoch", "current", shown["epoch"])
        if "leader" in shown:
            leader = None if shown["leader"] is None else self.name(shown["leader"])
            yield Seen("controller.leader", "meta[current].leader", leader)
        if "isr" in shown:
            yield Seen("controller.isr", "meta[current].isr", self._set(shown["isr"]))
        if "version" in shown:
            yield Seen("controller.version", "meta[current].version", shown["version"] - 1)
        if "fenced" in shown:
            yield Seen("controller.fenced", "fenced", self._set(shown["fenced"]))

    def _set(self, numbers: Iterable[Any]) -> frozenset[str]:
        return frozenset(map(self.name, numbers))

    def _broker(self, found: Event, shown: Mapping[str, Any]) -> list[Seen]:
        me, role = self._me(found), shown.get("role")
        texts = self._texts[me]
        seen: list[Seen] = []
        if role is not None:
            seen.append(Seen("status", texts["status"], "starting" if role == "none" else "running"))
        if "leo" in shown:
            seen.append(Seen("leo", texts["leo"], shown["leo"]))
        if "hw" in shown:
            seen.append(Seen("hw", texts["hw"], shown["hw"]))
        if "leo" in shown and "epochs" in shown:
            seen.append(Seen("epochs", texts["epochs"], self._log(shown)))
        if "flushed" in shown:
            seen.append(Seen("flushed", texts["flushed"], shown["flushed"]))
        if shown.get("checkpoint") is not None:
            seen.append(Seen("checkpoint", texts["checkpoint"], shown["checkpoint"]))
        # Of a broker without a role the spec has an epoch that means nothing.
        if role not in (None, "none"):
            if "epoch" in shown:
                seen.append(Seen("epoch", texts["epoch"], shown["epoch"]))
            seen.append(Seen("role", texts["role"], role == "leader"))
        return seen + self._leader(found, me, shown)

    def _leader(self, found: Event, me: str, shown: Mapping[str, Any]) -> list[Seen]:
        """What only a leader shows."""
        texts = self._texts[me]
        seen: list[Seen] = []
        if "isr" in shown:
            isr = self._set(shown["isr"])
            if found["event"] in TIMED and "late" in found:
                seen.append(Seen("late", texts["late"], self._set(found["late"]) - isr))
            seen.append(Seen("isr", texts["isr"], isr))
        if "fenced" in shown:
            seen.append(Seen("fenced", texts["fenced"], self._set(shown["fenced"])))
        if "version" in shown:
            seen.append(Seen("version", texts["version"], shown["version"] - 1))
        if "proposed" in shown:
            proposed = shown["proposed"]
            seen.append(Seen("pending", texts["pending"], proposed is not None))
            if proposed is not None:
                seen.append(Seen("proposed", texts["proposed"], self._set(proposed)))
        for other, leo in shown.get("remote", {}).items():
            text = f"remote[{me}][{self.name(int(other))}]"
            seen.append(Seen("remote", text, None if leo < 0 else leo))
        return seen

    def _log(self, shown: Mapping[str, Any]) -> dict[str, Any]:
        """The log in the spec's words; what has the same words must have the same content."""
        entries, leo = shown["epochs"], shown["leo"]
        text = repr((entries, leo))
        if text not in self._words:
            self._words[text] = self._log_words(entries, leo)
        words = self._words[text]
        key = tuple(words["ends"].values()) if leo else (0,)
        if "crc" in shown and self._logs.setdefault(key, shown["crc"]) != shown["crc"]:
            raise ImpossibleEvent(
                f"a log with the ends {[*words['ends'].values()]} had the checksum {self._logs[key]}, "
                f"and has {shown['crc']}"
            )
        return words

    def _log_words(self, entries: Sequence[Sequence[int]], leo: int) -> dict[str, Any]:
        ends: list[int] = []
        count = len(self.epochs)
        for epoch, start in entries:
            # Those before it end where it begins.
            ends += [start] * (min(epoch, count) - len(ends))
        ends += [leo] * (count - len(ends))
        return {"ends": dict(zip(self.epochs, ends, strict=True)), "cached": {epoch for epoch, _ in entries}}


def room_for(value: int, step: int) -> int:
    """A bound, rounded up so that recordings share programs."""
    # At least one step: a recording without records has the room, and the program, of the others.
    return max(-(-value // step), 1) * step


def _number(shown: Mapping[str, Any], name: str) -> int:
    found = shown.get(name)
    return found if isinstance(found, int) else 0
