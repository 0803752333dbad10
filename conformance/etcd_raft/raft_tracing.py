"""Recordings of go.etcd.io/raft in terms of etcd_raft.spec: inputs of nodes, messages, the state then.

The harness (go/) writes one line for an input of a node: a tick, a proposal, or a message, which is `with`.
There are no silent steps.  Which step a message is, follows from its kind and from the answer in `sent`;
whether it may be that step is the spec's to say.  Entries are identified by term and index, as Raft does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import Call, ImpossibleEvent, Seen, Tracing, Ways, event
from specchk.ir.program import Program

ROLES = MappingProxyType(
    {
        "StateFollower": "follower", "StatePreCandidate": "pre_candidate", "StateCandidate": "candidate",
        "StateLeader": "leader",
    }
)  # fmt: skip
FIELDS = MappingProxyType(
    {
        "term": "term[{0}]",
        "commit": "commit[{0}]",
        "last": "len(log[{0}])",
        "last_term": "last_term(log[{0}])",
    }
)
Step = tuple[Call, ...]


def answers(found: Event, kind: str) -> list[Mapping[str, Any]]:
    """The messages of a kind to the sender of the one that is handled."""
    return [m for m in found.get("sent", ()) if m["kind"] == kind and m["to"] == found["with"]["from"]]


def message(kind: str) -> Callable[[Callable[..., Iterable[Step]]], Callable[..., Ways]]:
    """Mark the steps of a message that a node has received from another one: (me, other, its term)."""

    def mark(steps: Callable[..., Iterable[Step]]) -> Callable[..., Ways]:
        @event(kind)
        def handler(self: RaftTracing, found: Event) -> Ways:
            m = found["with"]
            if m["to"] != found["at"]:
                raise ImpossibleEvent("a message arrives at another node")
            self.receive(m)
            return self.calls(found, *steps(self, found, found["at"], m["from"], m["term"]))

        return handler

    return mark


class RaftTracing(Tracing):
    """All events of the harness."""

    spec, model, reads = "../../spec/raft/etcd_raft.spec", "recordings", "etcd-raft/1"

    def __init__(self, program: Program, recording: Recording) -> None:
        super().__init__(program, recording)
        self._logs: dict[str, tuple[int, list[int]]] = {}
        self._sent_messages: dict[str, Mapping[str, Any]] = {}
        self._numbers: dict[str, int] = {}
        self._copies: dict[str, int] = {}
        self._starts: dict[str, int] = {}
        self._longest = 2 * recording.header["election_ticks"]

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        """The configuration, and sufficient bounds."""
        header = recording.header
        return {
            "Server": str(header["servers"]),
            "FirstTerm": str(header["first_term"]),
            "Timeout": str(header["election_ticks"]),
            "pre_vote": str(header["pre_vote"]).lower(),
            "check_quorum": str(header["check_quorum"]).lower(),
        }

    def calls(self, found: Event, *ways: Step) -> Ways:
        """One of the ways, and then what is sent."""
        sent = tuple(self._sent(found))
        return Ways(tuple((*way, *sent) for way in ways))

    def _sent(self, found: Event) -> Iterable[Call]:
        me, starts = found["at"], found["after"]["starts"]
        start, log = self._log(found)
        if starts != self._starts.get(me, 0) + (found["event"] == "restart"):
            raise ImpossibleEvent(
                f"it has started {starts} times, and {self._starts.get(me, 0)} times before"
            )
        self._starts[me] = starts
        applied = [Call("apply", (me, to)) for to in found.get("applied", ())]
        done = 0
        for m in found.get("sent", ()):
            self._number(m)
            yield from applied[done : m.get("batch", 0)]
            done = m.get("batch", 0)
            if (
                m["kind"] in ("MsgApp", "MsgSnap", "MsgHeartbeat", "MsgTimeoutNow")
                and m["term"] != found["after"]["term"]
            ):
                raise ImpossibleEvent(f"{m['kind']} of term {m['term']} is sent in another one")
            entries = m.get("entries", [])
            if m["kind"] in ("MsgApp", "MsgSnap"):
                shown = [(m["index"] + n, term) for n, term in enumerate([m["log_term"], *entries])]
                for at, term in shown:
                    if at > start and (at > start + len(log) or log[at - start - 1] != term):
                        raise ImpossibleEvent(
                            f"an entry {at} of term {term} is sent, which the log does not have"
                        )
            if m["kind"] == "MsgApp":
                yield Call("send_entries", (me, m["index"], len(entries), m["commit"]))
            elif m["kind"] == "MsgSnap":
                yield Call("send_snapshot", (me, m["index"]))
            elif m["kind"] == "MsgHeartbeat":
                yield Call("send_heartbeat", (me, m["to"], m["commit"]))
        yield from applied[done:]

    def _number(self, m: Mapping[str, Any]) -> None:
        """The messages of a node are numbered without gaps."""
        sender, number = m["id"].split("/")
        before = self._numbers.get(sender, 0)
        if int(number) != before + 1:
            raise ImpossibleEvent(f"message {m['id']} is sent after {sender}/{before}")
        self._numbers[sender], self._sent_messages[m["id"]] = before + 1, m

    def receive(self, m: Mapping[str, Any]) -> None:
        """A message is received as it was sent, once or more often."""
        copy = self._copies.get(m["id"], 0)
        if self._sent_messages.get(m["id"]) != {field: m[field] for field in m if field != "copy"}:
            raise ImpossibleEvent(f"message {m['id']} was not sent like this")
        if m.get("copy", 0) != copy:
            raise ImpossibleEvent(f"message {m['id']} is received as copy {m.get('copy', 0)}, after {copy}")
        self._copies[m["id"]] = copy + 1

    def _log(self, found: Event) -> tuple[int, list[int]]:
        me, after = found["at"], found["after"]
        before = self._logs.get(me, (0, []))
        if (after["start"] != before[0]) != (found["event"] == "compact") and found["event"] != "MsgSnap":
            raise ImpossibleEvent(f"its log starts at {after['start']}, and at {before[0]} before")
        self._logs[me] = after["start"], after.get("log", before[1])
        return self._logs[me]

    @event("tick")
    def tick(self, found: Event) -> Ways:
        """Nothing, an election, or a leader's review."""
        me, kinds = found["at"], {m["kind"] for m in found.get("sent", ())}
        if kinds & {"MsgVote", "MsgPreVote"}:
            return self.calls(found, (Call("campaign", (me,)),))
        alone = [(Call("campaign", (me,)),)] if found["after"]["role"] == "StateLeader" else []
        return self.calls(found, (Call("tick", (me,)),), (Call("review", (me,)),), *alone)

    @event("propose")
    def propose(self, found: Event) -> Ways:
        """A leader has an entry more."""
        return self.calls(found, (Call("propose", (found["at"],)),))

    @event("transfer")
    def transfer(self, found: Event) -> Ways:
        """A leader is to hand over."""
        return self.calls(found, (Call("hand_over", (found["at"], found["to"])),))

    @event("restart")
    def restart(self, found: Event) -> Ways:
        """What was not stored is forgotten."""
        return self.calls(found, (Call("restart", (found["at"],)),))

    @event("compact")
    def compact(self, found: Event) -> Ways:
        """Entries are forgotten that a snapshot has."""
        return self.calls(found, ())

    @event("snapshot-failed")
    def snapshot_failed(self, found: Event) -> Ways:
        """A leader may send something else."""
        return self.calls(found, ())

    @event("lost")
    def lost(self, found: Event) -> Ways:
        """The end: every other message was received."""
        if self._sent_messages.keys() - self._copies.keys() != set(found.get("lost", ())):
            raise ImpossibleEvent("a message was neither received nor lost")
        return Ways(((),))

    @event("panic")
    def panic(self, found: Event) -> Ways:
        """A node has found its own state impossible."""
        raise ImpossibleEvent(f"the node panics: {found['why']}")

    @message("MsgVote")
    def vote(self, found: Event, me: str, other: str, term: int) -> Iterable[Step]:
        """A vote, a refusal, or silence."""
        replies = answers(found, "MsgVoteResp")
        for reply in replies:
            yield (Call("refuse_vote" if reply["reject"] else "vote", (me, other, term)),)
        if not replies:
            yield (Call("ignore_request", (me, other, term, False)),)
            yield (Call("ignore_earlier", (me, term, False, False)),)

    @message("MsgPreVote")
    def pre_vote(self, found: Event, me: str, other: str, term: int) -> Iterable[Step]:
        """The same, but a request of an earlier term is refused."""
        replies = answers(found, "MsgPreVoteResp")
        for reply in replies:
            yield (Call("refuse_tentatively" if reply["reject"] else "vote_tentatively", (me, other, term)),)
        if not replies:
            yield (Call("ignore_request", (me, other, term, True)),)

    @message("MsgVoteResp")
    def vote_answer(self, found: Event, me: str, other: str, term: int) -> Iterable[Step]:
        """A vote or a refusal is counted, unless it is too late."""
        yield (Call("count_refusal" if found["with"]["reject"] else "count_vote", (me, other)),)
        yield from self._late(me, other, term, "candidate")

    @message("MsgPreVoteResp")
    def pre_vote_answer(self, found: Event, me: str, other: str, term: int) -> Iterable[Step]:
        """The same."""
        if found["with"]["reject"]:
            yield (Call("count_refusal", (me, other)),)
            yield from self._late(me, other, term, "pre_candidate")
        else:
            yield (Call("count_pre_vote", (me, other, term)),)
            yield (Call("ignore_stranger", (me, other)),)
            yield (Call("ignore_earlier", (me, term, False, False)),)
            yield (Call("ignore_answer", (me, other, term, "pre_candidate")),)

    def _late(self, me: str, other: str, term: int, role: str) -> Iterable[Step]:
        yield (Call("learn_term", (me, other, term)),)
        yield (Call("ignore_stranger", (me, other)),)
        yield (Call("ignore_earlier", (me, term, False, False)),)
        yield (Call("ignore_answer", (me, other, term, role)),)

    @message("MsgApp")
    def append(self, found: Event, me: str, other: str, term: int) -> Iterable[Step]:
        """The entries are stored, skipped or refused, as the answer says."""
        count, replies = len(found["with"].get("entries", ())), answers(found, "MsgAppResp")
        if term < found["after"]["term"]:
            yield (Call("ignore_earlier", (me, term, True, bool(replies))),)
        for reply in replies if term == found["after"]["term"] else ():
            if reply["reject"]:
                yield (Call("refuse_entries", (me, term, found["with"]["index"])),)
            else:
                if reply["index"] == found["with"]["index"] + count:
                    commit = Call("has_committed", (me, min(found["with"]["commit"], reply["index"])))
                    yield (Call("append_entries", (me, term, found["with"]["index"], count)), commit)
                if reply["index"] == found["after"]["commit"]:
                    yield (Call("skip_entries", (me, term, found["with"]["index"])),)

    @message("MsgHeartbeat")
    def heartbeat(self, found: Event, me: str, other: str, term: int) -> Iterable[Step]:
        """It is answered, in an earlier term as an append is."""
        if answers(found, "MsgHeartbeatResp"):
            yield (Call("heartbeat", (me, term, found["with"]["commit"])),)
        yield (Call("ignore_earlier", (me, term, True, bool(answers(found, "MsgAppResp")))),)

    @message("MsgSnap")
    def snapshot(self, found: Event, me: str, other: str, term: int) -> Iterable[Step]:
        """It is installed, or was not needed."""
        yield (Call("install", (me, term, found["with"]["index"])),)
        yield (Call("ignore_earlier", (me, term, False, False)),)

    @message("MsgAppResp")
    def append_answer(self, found: Event, me: str, other: str, term: int) -> Iterable[Step]:
        """A leader counts what its follower has."""
        if not found["with"]["reject"]:
            yield (Call("acknowledge", (me, other, found["with"]["index"])),)
        # Also an answer that says nothing new.
        yield (Call("hear", (me, other)),)
        yield from self._late(me, other, term, "leader")

    @message("MsgHeartbeatResp")
    def heartbeat_answer(self, found: Event, me: str, other: str, term: int) -> Iterable[Step]:
        """A leader has heard of its follower."""
        yield (Call("hear", (me, other)),)
        yield from self._late(me, other, term, "leader")

    @message("MsgTimeoutNow")
    def timeout_now(self, found: Event, me: str, other: str, term: int) -> Iterable[Step]:
        """A follower stands for election at once."""
        yield (Call("stand_at_once", (me, term)),)
        yield (Call("stay", (me, term)),)
        yield (Call("ignore_earlier", (me, term, False, False)),)

    def after(self, found: Event) -> Iterable[Seen]:
        """What the node is after the step."""
        me, after = found["at"], found.get("after")
        if after is None:
            return
        for field, expression in FIELDS.items():
            yield Seen(field, expression.format(me), after[field])
        # Who does not vote counts on, and nothing comes of it.
        yield Seen("elapsed", f"elapsed[{me}]", min(after["elapsed"], self._longest))
        yield Seen("role", f"role[{me}]", ROLES[after["role"]])
        for field, variable in (("vote", "voted"), ("lead", "lead"), ("transfer", "transfer")):
            yield Seen(field, f"{variable}[{me}]", after[field] or None)
        if "log" in after:
            yield Seen("log", f"suffix(log[{me}], {after['start']})", after["log"])
        for other, n in after.get("match", {}).items():
            yield Seen("match", f"matched[{me}][{other}]", n)
        if after["role"] in ("StateCandidate", "StatePreCandidate"):
            yield Seen("yes", f"yes[{me}]", frozenset(after.get("yes", ())))
            yield Seen("no", f"no[{me}]", frozenset(after.get("no", ())))
        if after["role"] == "StateLeader":
            yield Seen("active", f"active[{me}] - {{{me}}}", frozenset(after.get("active", ())))
