"""What is to be noticed: bugs of earlier releases of raft, and flaws planted in copies of the newest."""

from __future__ import annotations

from typing import NamedTuple

from conformance.etcd_raft.harness import CHANGES, Flaw


class Bug(NamedTuple):
    """A bug of raft's history: where it was reported, a release that has it, and a later one without it.

    `mode` is how the nodes are configured, `event` the one that is not explained in a run that shows the bug.
    """

    report: str
    bad: str
    good: str
    mode: str
    event: str


HISTORY = (
    Bug("etcd#8339", "v3.2.0", "v3.3.0", "check-quorum", "MsgAppResp"),
    Bug("etcd#8288", "v3.2.0", "v3.3.0", "both", "MsgPreVoteResp"),
    Bug("etcd#9586", "v3.3.13", "v3.3.15", "both", "tick"),
    Bug("etcd#9204", "v3.3.27", "v3.5.0", "none", "MsgVote"),
    Bug("etcd#8501", "v3.3.27", "v3.5.0", "pre-vote", "MsgHeartbeat"),
    Bug("etcd#8243", "v3.3.27", "v3.5.0", "both", "MsgPreVote"),
)

FLAWS = (
    Flaw("votes twice", "raft.go", "canVote := r.Vote == m.GetFrom() ||", "canVote := r.Vote != None ||"),
    Flaw("votes for older logs", "raft.go", "canVote && r.raftLog.isUpToDate(candLastID)", "canVote"),
    Flaw("forgets its vote", "raft.go", "r.Vote = m.GetFrom()", "r.Vote = None"),
    Flaw("heartbeats commit all", "raft.go", "min(pr.Match, r.raftLog.committed)", "r.raftLog.committed"),
    Flaw("commits earlier terms", "log.go", "l.committed && l.matchTerm(at)", "l.committed"),
    Flaw("half is a majority", "quorum/majority.go", "pos := n - (n/2 + 1)", "pos := n - n/2"),
    Flaw("leads without a quorum", "raft.go", "if !r.trk.QuorumActive() {", "if false {"),
    Flaw("is disturbed", "raft.go", "if !force && inLease {", "if false && !force && inLease {"),
    Flaw("removes entries that fit", "log.go", "ci := l.findConflict(a.entries)",
         "ci := l.findConflict(a.entries)\n\tif len(a.entries) > 0 && a.prev.index >= l.committed {\n"
         "\t\tci = a.prev.index + 1\n\t}"),
    Flaw("commits what it was not shown", "log.go", "l.commitTo(min(committed, lastnewi))",
         "l.commitTo(min(committed, l.lastIndex()))", ("-bytes", "14")),
    Flaw("keeps its votes", "raft.go", "change r.Vote.\n\tr.step = stepCandidate\n\tr.trk.ResetVotes()",
         "change r.Vote.\n\tr.step = stepCandidate"),
    Flaw("hands over too early", "raft.go",
         "if pr.Match == r.raftLog.lastIndex() {\n\t\t\tr.sendTimeoutNow(leadTransferee)",
         "if true {\n\t\t\tr.sendTimeoutNow(leadTransferee)"),
    Flaw("new voters commit alone", "quorum/joint.go", "if idx0 < idx1 {", "if true {", CHANGES),
    Flaw("new voters elect alone", "quorum/joint.go", "r2 := c[1].VoteResult(votes)", "r2 := r1", CHANGES),
    Flaw("changes twice at once", "raft.go", "r.pendingConfIndex > r.raftLog.applied", "false", CHANGES),
    Flaw("learners stand for election", "raft.go", "pr != nil && !pr.IsLearner &&", "pr != nil &&", CHANGES),
)  # fmt: skip
