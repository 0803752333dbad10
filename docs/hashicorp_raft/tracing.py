"""The logs of hashicorp/raft in the words of etcd_raft.spec: elections, and what a leader has replicated."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from specchk.conform.contract.log_tracing import LogTracing, field_of
from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import ANY, Call, Seen, event

# Each kind of line that is a step, or shows the state: the action, and the fields that are its arguments.
STEPS = {
    "entering candidate state": ("campaign", "at"),
    "received a requestPreVote with a newer term, grant the pre-vote": ("vote_tentatively", "at", "?", "?"),
    "lost leadership because received a requestVote with a newer term": ("vote", "at", "?", "?"),
    "pre-vote granted": ("count_pre_vote", "at", "from", "term"),
    "vote granted": ("count_vote", "at", "from"),
    "election won": ("",),
    "pipelining replication": ("append_entries", "peer.ID", "?", "?", "?"),
    "entering follower state": ("append_entries", "at", "?", "?", "?"),
    "failed to contact quorum of nodes, stepping down": ("review", "at"),
}
# What a line shows of the state after it: a field, and the spec's expression for it.
SHOWN = {
    "entering candidate state": ("term", "term[{at}] + 1"),
    "pre-vote granted": ("tally", "if role[{at}] == pre_candidate then card(yes[{at}]) else 2"),
    "vote granted": ("tally", "if role[{at}] == candidate then card(yes[{at}]) else 2"),
    "election won": ("term", "if role[{at}] == leader then term[{at}] else 0"),
    "pipelining replication": ("at", "if log[{peer[ID]}] == log[{at}] then lead[{peer[ID]}] else none"),
    "entering follower state": ("leader-id", "if role[{at}] == follower then lead[{at}] else some({at})"),
}
SAID = ("asking *", "* for self", "calculated *", "pre-vote *", "entering leader *", "* election", "peer *",
        "failed to *", "rejecting *", "initial *", "added *", "append*", "aborting *", "dupl*")  # fmt: skip


class ElectionLog(LogTracing):
    """Each node has a file; a follower's log shows when its leader says that it has everything."""

    spec, model, reads = "../../spec/raft/etcd_raft.spec", "safe", "hashicorp-raft/1"
    kind, per_writer = "@message", True
    time, within = "@timestamp", 0.005  # one clock; a line is written some milliseconds after its step
    names: ClassVar[Mapping[str, str]] = {"n1": "s1", "n2": "s2", "n3": "s3"}
    ignored: ClassVar[Mapping[str, str]] = dict.fromkeys(SAID, "another line says it, or it was only sent")

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        """Bounds beyond the log's."""
        return {"Server": "3", "FirstTerm": "1", "MaxTerm": "9", "MaxLog": "9", "Batch": "9"}

    @event(*STEPS)
    def step(self, e: Event) -> Call | tuple[()]:
        """A node's vote for itself is part of its candidacy; who follows nobody has appended nothing."""
        action, *fields = STEPS[e["event"]]
        if not action or e.get("from") == e["at"] or e.get("leader-id") == "":
            return ()
        return Call(action, tuple(ANY if field == "?" else field_of(e, field) for field in fields))

    def after(self, e: Event) -> Iterable[Seen]:
        """The field in `SHOWN`."""
        if e["event"] in SHOWN:
            field, expression = SHOWN[e["event"]]
            yield Seen(field, expression.format_map(e), e[field] or None)
