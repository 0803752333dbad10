"""Suites of etcd_raft.spec on real nodes of go.etcd.io/raft: a step is one input of one node (go/serve.go).

As in the spec there is no network.  What the nodes have sent is kept here, and received from here; a piece of
a leader's log, and a refusal, are written here, as they may have been sent at any time.  What a node answers
tells which step it has taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from raft_tracing import ROLES

from specchk import Accepted, Answer, At, BadFile, BadSpec, Impossible, Refused, action, never
from specchk.conform.adapter import ProcessBinding, RemoteSystem
from specchk.conform.contract.values import Table

TICKS = 3  # an election timeout; here a node waits for the longest, five
REPLIES = MappingProxyType(
    {"MsgApp": "MsgAppResp", "MsgSnap": "MsgAppResp", "MsgHeartbeat": "MsgHeartbeatResp",
     "MsgVote": "MsgVoteResp", "MsgPreVote": "MsgPreVoteResp"}
)  # fmt: skip
SENT = ("kind", "from", "to", "term", "index", "log_term", "reject", "forced")
ASKED = ("from", "term", "last", "length", "pre", "forced")
GRANTED = ("voter", "to", "term", "pre")
FORCED = "Q2FtcGFpZ25UcmFuc2Zlcg=="  # CampaignTransfer, raft's mark of a request that is the leader's wish
Node = Mapping[str, Any]
# What a node replies, what it was and what it is: whether it has taken the step, another one, or (None) none.
Outcome = Callable[[list[Node], Node, Node], bool | None]


class Input(NamedTuple):
    """What a node is given."""

    s: str
    do: str
    outcome: Outcome
    args: Mapping[str, Any] = MappingProxyType({})


class History(Struct, frozen=True):
    """The nodes as last seen, and what was sent.  It is never changed, so that to save it costs nothing."""

    constants: Mapping[str, Any]
    nodes: Mapping[str, Node]
    sent: frozenset[tuple[Any, ...]] = frozenset()
    led: Mapping[tuple[int, str], tuple[list[int], int]] = MappingProxyType({})
    base: Mapping[str, list[int]] = MappingProxyType({})  # of a node that has installed a snapshot
    moved: int = 0

    def __deepcopy__(self, _: object) -> History:
        return self

    def log(self, s: str, node: Node) -> list[int]:
        """The whole log of a node."""
        return [*self.base.get(s, ())[: node["start"]], *node["log"]]

    def leader(self, t: int) -> tuple[str, list[int], int]:
        """The leader of a term, its log, and what it has committed."""
        return next(((s, *at) for (u, s), at in self.led.items() if u == t), ("", [], 0))

    def acked(self, t: int, s: str) -> int:
        """What a node has acknowledged in a term."""
        acks = (m[4] for m in self.sent if (m[0], m[1], m[3], m[6]) == ("MsgAppResp", s, t, False))
        return max(acks, default=0)

    def leads(self, s: str) -> bool:
        """Whether a node leads."""
        return "match" in self.nodes[s]

    def message(self, kind: str, o: str, s: str, t: int, outcome: Outcome, **fields: Any) -> Input | None:
        """A message between two nodes; if there are replies to its kind, it has one in its term."""

        def replied(sent: list[Node], before: Node, after: Node) -> bool | None:
            replies = [m for m in sent if (m["kind"], m["to"], m["term"]) == (REPLIES.get(kind), o, t)]
            return outcome(replies, before, after) if replies or kind not in REPLIES else None

        shown = {"type": kind, "from": int(o[1:] or 0), "to": int(s[1:]), "term": t, **fields}
        return Input(s, "message", replied, {"with": shown}) if o not in ("", s) else None

    def received(self, kind: str, o: str, s: str, t: int, outcome: Outcome, which: Any = max) -> Input | None:
        """A message that was sent; of several, the one of the last log or of the first."""
        sent = [m[4:] for m in self.sent if (*m[:4], m[6]) == (kind, o, s, t, False)]
        if not sent:
            return None
        index, last, _, forced = which(sent, key=lambda m: (m[1], m[0]))
        context = {"context": FORCED} if forced else {}
        return self.message(kind, o, s, t, outcome, index=index, logTerm=last, **context)

    def heard(self, kind: str, o: str, s: str, outcome: Outcome, **fields: Any) -> Input | None:
        """An answer in the node's term, which the other one must have reached."""
        t = self.nodes[s]["term"]
        return self.message(kind, o, s, t, outcome, **fields) if self.nodes[o]["term"] >= t else None

    def refusal(self, s: str, o: str) -> Input | None:
        """A refusal of a vote or of a tentative one."""
        kind = "MsgPreVoteResp" if self.nodes[s]["role"] == "StatePreCandidate" else "MsgVoteResp"
        return self.heard(kind, o, s, changed, reject=True)

    def later(self, s: str, o: str, t: int) -> Input | None:
        """An answer in a later term."""
        is_later = self.nodes[s]["term"] < t <= self.nodes[o]["term"]
        return self.message("MsgHeartbeatResp", o, s, t, changed) if is_later else None

    def by_leader(self, s: str) -> Outcome:
        """A leader takes a step also if it changes nothing."""
        return taken if self.leads(s) else changed

    def acknowledgement(self, s: str, o: str, to: int) -> Input | None:
        """An answer to an append, which may be late."""
        t = self.nodes[s]["term"]
        return (
            self.message("MsgAppResp", o, s, t, self.by_leader(s), index=to)
            if to <= self.acked(t, o)
            else None
        )

    def due(self, s: str, leads: bool, to: int, outcome: Outcome) -> Input | None:
        """As many ticks as it takes, unless it is too early."""
        early = self.constants["Timeout"] > 0 and self.nodes[s]["elapsed"] + 1 < TICKS
        return None if early or leads != self.leads(s) else Input(s, "tick", outcome, {"to": to})

    def tick(self, s: str) -> Input | None:
        """One tick; of a node that campaigns or reviews then, it is another step."""
        to = self.nodes[s]["elapsed"] + 1
        timed = self.constants["Timeout"] > 0
        return Input(s, "tick", lambda _, __, n: bool(n["elapsed"] == to), {"to": to}) if timed else None

    def transfer(self, s: str, o: str) -> Input | None:
        """A leader's wish, of which the model has so many."""
        left = self.moved < self.constants["Transfers"]
        return Input(s, "transfer", changed, {"to": int(o[1:])}) if left else None

    def entries(
        self, name: str, s: str, t: int, at: int, count: int | None = None, commits: str = ""
    ) -> Input | None:
        """A piece of the log of a term's leader; the reply tells whether it is stored, skipped or refused."""
        leader, log, decided = self.leader(t)
        early = at < self.nodes[s]["commit"]
        terms = log[at : at + (self.constants["Batch"] if count is None else count)]

        def outcome(replies: list[Node], *_: Node) -> bool:
            return name == ("refuse" if replies[0]["reject"] else "skip" if early else "append")

        if at > len(log) or len(terms) < (count or 0):
            return None
        return self.message(
            "MsgApp", leader, s, t, outcome, index=at, logTerm=log[at - 1] if at else 0,
            entries=[{"term": term, "index": at + n} for n, term in enumerate(terms, 1)],
            commit=decided if commits == "all" else 0,
        )  # fmt: skip

    def heartbeat(self, s: str, t: int, committed: int) -> Input | None:
        """It commits no more than the node has acknowledged."""
        leader, _, decided = self.leader(t)
        sendable = committed <= min(decided, self.acked(t, s))
        return self.message("MsgHeartbeat", leader, s, t, taken, commit=committed) if sendable else None

    def snapshot(self, s: str, t: int, to: int) -> Input | None:
        """What a term's leader has committed."""
        leader, log, decided = self.leader(t)
        if not 0 < to <= decided:
            return None
        of = {"index": to, "term": log[to - 1], "conf_state": {"voters": [int(o[1:]) for o in self.nodes]}}
        return self.message("MsgSnap", leader, s, t, taken, snapshot={"metadata": of})


def taken(*_: Any) -> bool:
    """The step is taken."""
    return True


def changed(_: list[Node], before: Node, after: Node) -> bool | None:
    """It is if the node is not as before."""
    return True if after != before else None


def granted(replies: list[Node], *_: Node) -> bool:
    """It is if it is not refused."""
    return not replies[0]["reject"]


def refused(replies: list[Node], *_: Node) -> bool:
    """It is if it is refused."""
    return bool(replies[0]["reject"])


def given(name: str, make: Callable[..., Input | None], ways: tuple[str, ...] = ()) -> Callable[..., Answer]:
    """A handler of the spec's action that gives a node an input, if there is one."""

    @action(name, ways)
    def handler(self: NodesBinding, system: RemoteSystem, *args: Any) -> Answer:
        put = make(system.memory["history"], *args)
        return Impossible("nobody has sent it, or it is not due") if put is None else self.give(system, put)

    return handler


def recorded(name: str) -> Callable[..., Answer]:
    """An action that the spec has for recordings."""
    return never(name, "it is for recordings")


class NodesBinding(ProcessBinding):
    """Every variable is observed, except for who votes."""

    spec, model, folder = "../../spec/raft/etcd_raft.spec", "two_terms", Path(__file__).parent / "go"
    implementation, build = ("*.go", "go.*"), ("go", "build", "-o", "{build}/drive", ".")
    command = ("{build}/drive", "-serve")
    unobserved: ClassVar[Mapping[str, str]] = MappingProxyType({"config": "nobody changes it"})
    smoke = (At("timed", {"Timeout": str(TICKS), "MaxLog": "1"}),)
    gate = (
        At("two_terms", {"MaxTerm": "1", "MaxLog": "1"}),
        At("transferred", {"check_quorum": "false", "MaxLog": "1"}),
        At("timed", {"Timeout": str(TICKS)}),
    )
    controls = (
        BadSpec("votes are forgotten", "votes_are_forgotten", {"MaxTerm": "1", "MaxLog": "1"}),
        BadSpec("shorter logs win", "shorter_logs_win", {"Server": "2"}),
        BadFile(
            "term and vote are not stored",
            "raft.go",
            "must(n.disk.SetHardState(ready.HardState))",
            "_ = ready.HardState",
            "two_terms",
            {"MaxTerm": "1", "MaxLog": "1"},
        ),
    )

    def start(self) -> RemoteSystem:
        """Nothing was sent."""
        system = super().start()
        system.memory = {"history": History(self.constants, system.observe())}
        return system

    def give(self, system: RemoteSystem, put: Input) -> Answer:
        """Give a node an input, and note what it is then and sends."""
        was: History = system.memory["history"]
        s, before = put.s, was.nodes[put.s]
        system.do(put.do, {"at": int(s[1:]), **put.args})
        sent, after = system.result["sent"] or [], system.result["after"]
        most_terms = max(after["term"], *(m["term"] for m in sent), 0)
        if most_terms > self.constants["MaxTerm"] or after["last"] > self.constants["MaxLog"]:
            return Impossible("the model ends before")
        is_taken = put.outcome(sent, before, after)
        known = was.base
        if put.do == "message" and after["start"] > before["start"]:
            known = {**known, s: was.leader(after["term"])[1][: after["start"]]}
        now = replace(
            was, nodes={**was.nodes, s: after}, base=known,
            sent=was.sent.union(tuple(m.get(field, False) for field in SENT) for m in sent),
            moved=was.moved + (put.do == "transfer" and is_taken is True),
        )  # fmt: skip
        if now.leads(s):
            now = replace(now, led={**was.led, (after["term"], s): (now.log(s, after), after["commit"])})
        system.memory["history"] = now
        if is_taken is None:
            return Refused("the node does nothing")
        return Accepted() if is_taken else Impossible("the node takes another step")

    def observed(self, system: RemoteSystem, seen: Any) -> Mapping[str, Any]:
        """The nodes, and what they have sent."""
        was: History = system.memory["history"]
        terms, timed = range(self.constants["MaxTerm"] + 1), self.constants["Timeout"] > 0

        def each(value: Callable[[Node], Any]) -> dict[str, Any]:
            return {s: value(node) for s, node in seen.items()}

        def votes(field: str) -> dict[str, Any]:
            return each(lambda n: frozenset(n.get(field, ()) if n["role"].endswith("Candidate") else ()))

        def sent(kind: str) -> list[tuple[Any, ...]]:
            return [m for m in was.sent if m[0] in (f"Msg{kind}", f"MsgPre{kind}") and not m[6]]

        return {
            "term": each(lambda n: n["term"]), "voted": each(lambda n: n["vote"] or None),
            "log": {s: was.log(s, n) for s, n in seen.items()}, "commit": each(lambda n: n["commit"]),
            "role": each(lambda n: ROLES[n["role"]]), "lead": each(lambda n: n["lead"] or None),
            "elapsed": each(lambda n: min(n["elapsed"], 2 * TICKS) if timed else 0),
            "yes": votes("yes"), "no": votes("no"), "transfer": each(lambda n: n["transfer"] or None),
            "matched": each(lambda n: dict.fromkeys(seen, 0) | n.get("match", {})),
            "active": {
                s: frozenset((s, *n.get("active", ())) if "match" in n else ()) for s, n in seen.items()
            },
            "asked": frozenset(
                Table(zip(ASKED, (o, t, last, length, "Pre" in kind, forced), strict=True))
                for kind, o, _, t, length, last, _, forced in sent("Vote")
            ),
            "granted": frozenset(
                Table(zip(GRANTED, (o, s, t, "Pre" in kind), strict=True))
                for kind, o, s, t, *_ in sent("VoteResp")
            ),
            "elected": {t: frozenset(s for u, s in was.led if u == t) for t in terms},
            "led": {t: was.leader(t)[1] for t in terms},
            "decided": {t: was.leader(t)[2] for t in terms},
            "acked": {t: {s: was.acked(t, s) for s in seen} for t in terms},
            "told": frozenset((t, s) for _, _, s, t, *_ in sent("TimeoutNow")), "moved": was.moved,
        }  # fmt: skip

    tick = given("tick", lambda was, s: was.tick(s))
    campaign = given("campaign", lambda was, s: was.due(s, False, 2 * TICKS - 1, lambda sent, *_: bool(sent)))
    review = given("review", lambda was, s: was.due(s, True, TICKS, taken))
    restart = given("restart", lambda _, s: Input(s, "restart", taken))
    propose = given("propose", lambda _, s: Input(s, "propose", changed))
    hand_over = given("hand_over", lambda was, s, o: was.transfer(s, o))
    stand_at_once = given(
        "stand_at_once", lambda was, s, t: was.received("MsgTimeoutNow", was.leader(t)[0], s, t, changed)
    )
    learn_term = given("learn_term", lambda was, s, o, t: was.later(s, o, t))
    vote = given("vote", lambda was, s, o, t: was.received("MsgVote", o, s, t, granted))
    refuse_vote = given("refuse_vote", lambda was, s, o, t: was.received("MsgVote", o, s, t, refused, min))
    vote_tentatively = given(
        "vote_tentatively", lambda was, s, o, t: was.received("MsgPreVote", o, s, t, granted)
    )
    count_vote = given(
        "count_vote", lambda was, s, o: was.received("MsgVoteResp", o, s, was.nodes[s]["term"], changed)
    )
    count_pre_vote = given(
        "count_pre_vote", lambda was, s, o, t: was.received("MsgPreVoteResp", o, s, t, changed)
    )
    count_refusal = given("count_refusal", lambda was, s, o: was.refusal(s, o))
    hear = given("hear", lambda was, s, o: was.heard("MsgHeartbeatResp", o, s, was.by_leader(s)))
    acknowledge = given("acknowledge", lambda was, s, o, to: was.acknowledgement(s, o, to))
    append_entries = given(
        "append_entries",
        lambda was, s, t, at, count, commits: was.entries("append", s, t, at, count, commits),
        ("nothing", "all"),
    )
    skip_entries = given("skip_entries", lambda was, s, t, at: was.entries("skip", s, t, at))
    refuse_entries = given("refuse_entries", lambda was, s, t, at: was.entries("refuse", s, t, at))
    heartbeat = given("heartbeat", lambda was, s, t, committed: was.heartbeat(s, t, committed))
    install = given("install", lambda was, s, t, to: was.snapshot(s, t, to))

    ignore_earlier, ignore_request = recorded("ignore_earlier"), recorded("ignore_request")
    ignore_stranger, ignore_answer = recorded("ignore_stranger"), recorded("ignore_answer")
    refuse_tentatively, stay = recorded("refuse_tentatively"), recorded("stay")
    has_committed, send_entries = recorded("has_committed"), recorded("send_entries")
    send_heartbeat, send_snapshot = recorded("send_heartbeat"), recorded("send_snapshot")
