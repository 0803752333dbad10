"""The logs of Kafka's brokers and controllers, one partition of them, in the words of kafka_recorded.spec.

    specchk validate conformance/apache_kafka/tracing.py FOLDER

The folder has what `recordings.write_recordings` made of the logs.  Each thread of a broker is a writer: its
lines are in the order in which it acted, and those of two threads, or of two brokers, in the order of their
times, as far as these are apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from specchk.conform.contract.log_tracing import LogTracing
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, Call, Seen, Ways, event


def single(name: str, action: str, *fields: str) -> Any:
    """The method for an event that is one step."""

    @event(name)
    def method(tracing: KafkaTracing, e: Event) -> Call:
        del tracing
        return Call(action, tuple(e[field] for field in fields))

    return method


class KafkaTracing(LogTracing):
    """Events of `logs`, in each of which `b` is the spec's name of the broker."""

    spec, model, reads = "../../spec/kafka_recorded.spec", "logs", "kafka-logs/1"
    per_writer, writer, time = True, "thread", "time"
    silent: ClassVar[tuple[str, ...]] = ("pass_time", "hear_of")
    most_silent: ClassVar[int] = 2

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        """The bounds that the recording needs, and its values of min.insync.replicas."""
        create = next(e for e in recording.events if e["event"] == "create")
        return {name: str(value) for name, value in create["constants"].items()}

    @classmethod
    def box(cls, found: Event) -> tuple[float, float]:
        """From when to when it may have happened."""
        return found["from"], found["to"]

    def near(self, found: Event) -> tuple[Call, ...]:
        """A leader's view of its followers matters where it waits for those outside of its ISR."""
        if not found.get("outside"):
            return ()
        return Call("pass_time", (found["b"], ANY)), Call("hear_of", (found["b"], ANY))

    @event("create")
    def create(self, e: Event) -> tuple[()]:
        """The topic's first metadata is the spec's initial state."""
        return ()

    @event("decide")
    def decide(self, e: Event) -> tuple[Call, ...]:
        """The controller's decision: its own, or one that a leader has proposed."""
        members = frozenset(e["isr"])
        calls: tuple[Call, ...] = (Call("decide", (e["epoch"], e["leader"], members)),)
        if e["by"]:
            calls = (Call("alter_partition", (e["by"],)),)
            if e["is_new_epoch"]:
                calls += (Call("complete", (e["epoch"], e["leader"], members)),)
        return *calls, Call("set_beside", (frozenset(e["elr"]), e["last_leader"]))

    @event("fenced")
    def list_fenced(self, e: Event) -> Call:
        """Brokers that are fenced or shutting down."""
        return Call("list_fenced", (frozenset(e["fenced"]),))

    @event("lead")
    def lead(self, e: Event) -> tuple[()] | Ways:
        """Metadata in which the broker leads, the newest of its epoch or an earlier one."""
        if e["version"] == 0:
            return ()
        lead = Call("become_leader", (e["b"], e["epoch"])), Call("configure", (e["b"], e["has_new_min"]))
        shelve = Call("shelve", (e["epoch"], e["version"], frozenset(e["isr"])))
        ways = (lead, (shelve, *lead, Call("unshelve", (e["epoch"],))))
        return Ways(ways if e["anew"] else (*ways, (Call("applied", (e["b"], e["version"])),)))

    @event("follow")
    def follow(self, e: Event) -> tuple[Call, ...]:
        """Metadata in which another broker leads, or none."""
        if e["version"] == 0:
            return ()
        return Call("become_follower", (e["b"], e["epoch"])), Call("configure", (e["b"], e["has_new_min"]))

    @event("produce")
    def produce(self, e: Event) -> tuple[Call, ...]:
        """A batch."""
        return Call("note", (e["b"],)), *(Call("produce", (e["b"],)),) * e["count"]

    @event("serve")
    def serve(self, e: Event) -> Ways:
        """The leader notes a follower's request, which may be one that its sender has given up."""
        proposes = Call("is_proposed" if e["joins"] else "is_not_proposed", (e["b"], e["follower"]))
        serve, swap = Call("serve_fetch", (e["b"], e["follower"])), Call("swap", (e["b"], e["follower"]))
        return Ways(((proposes, serve), (swap, proposes, serve, swap)))

    @event("shrink")
    def shrink(self, e: Event) -> Call:
        """Laggards are to leave the ISR."""
        if len(e["gone"]) == 1:
            return Call("shrink_isr", (e["b"], e["gone"][0]))
        return Call("shrink_isr_by", (e["b"], frozenset(e["gone"])))

    @event("send")
    def send(self, e: Event) -> Ways:
        """A request; the one before it has had no answer that changed anything."""
        send = Call("send_fetch", (e["b"],))
        return Ways(((send,), (Call("leave", (e["b"],)), send)))

    @event("apply")
    def apply(self, e: Event) -> Ways:
        """An answer is taken, which may have records of several epochs."""
        taken = Call("arrive", (e["b"],)), Call("apply_response", (e["b"],))
        return Ways((taken, (*taken, Call("append_further", (e["b"],)))))

    configure = single("configure", "configure", "b", "has_new_min")
    begin = single("begin", "begin", "b", "hw", "kept")
    settle = single("settle", "apply_alter_reply", "b")
    refuse = single("refuse", "refuse", "b")
    answer = single("answer", "answer", "leader", "b", "upto")
    diverge = single("diverge", "serve_fetch", "leader", "b")
    truncate = single("truncate", "apply_response", "b")

    def after(self, found: Event) -> Iterator[Seen]:
        """What the lines show."""
        e, b, kind = found, found["b"], found["event"]
        if kind == "decide":
            yield Seen("isr", "meta[current].isr", frozenset(e["isr"]))
            yield Seen("version", "meta[current].version", e["version"])
            yield Seen("leader", "meta[current].leader", e["leader"])
            return
        for field, text in (("leo", f"leo(log[{b}])"), ("hw", f"hw[{b}]"), ("epoch", f"epoch[{b}]")):
            if e.get(field) is not None:
                yield Seen(field, text, e[field])
        if e.get("least") is not None and kind in ("serve", "produce"):
            yield Seen("least", f"hw[{b}] in {{ noted, {e['least']} }}", True)
        if kind in ("lead", "settle") and e["version"]:
            yield Seen("isr", f"isr[{b}]", frozenset(e["isr"]))
            yield Seen("version", f"version[{b}]", e["version"])
        elif kind == "serve":
            yield Seen("offset", f"remote[{b}][{e['follower']}]", e["offset"])
        elif kind == "send":
            yield Seen("offset", f"get(fetch[{b}]).offset", e["offset"])
            yield Seen("asked_in", f"get(fetch[{b}]).epoch", e["asked_in"])
            yield Seen("last", f"get(fetch[{b}]).last", e["last"])
            yield Seen("leader", f"meta[epoch[{b}]].leader", e["leader"])
        elif kind == "shrink":
            yield Seen("proposed", f"get(alter[{b}]).isr", frozenset(e["proposed"]))
        elif kind == "answer":
            told = f"match reply[{b}] {{ some a: (match a.body {{ Records r: r.hw, _: 0 }}), none: 0 }}"
            yield Seen("told", told, e["told"])
        elif kind == "diverge":
            yield Seen("diverges", f"get(fetch[{b}]).body is Diverging", True)
        elif kind == "apply":
            yield Seen("further", f"further[{b}]", None)
