"""quorum.spec and replog: votes, and the log that a majority has, without snapshots.

The system is three controllers that are stepped by hand.  A vote is counted when it arrives, which is when
its candidate wins: until then a granted vote is on its way, and lost with the candidate's process.  A voter
learns of a newer epoch by an answer that names it.  Other messages that are sent meanwhile are lost.

replog's terms are the spec's epochs plus one, and its logs begin with a record that the spec does not have:
the cluster's first metadata.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # of `replog_controlled`
sys.path.append(str(Path(__file__).resolve().parents[1] / "controller_log"))  # of `quorum_cluster`

from quorum_cluster import LATE_MS, VOTERS, Controllers, new_voters, tentative

from replog.core.controller.state import expire_session
from replog.core.effects import Fired, Received, Timer
from replog.core.protocol import Protocol
from replog.core.quorum import records
from replog.core.quorum.node import NOBODY, ControllerNode
from replog.core.quorum_messages import MetadataFetchReply, VoteReply, VoteRequest
from replog_controlled import NOW_MS, PARTITION, sent, taken_or
from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Impossible,
    OutsideSpec,
    Refused,
    action,
    never,
    project,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import CopyingBinding
from specchk.ir.program import Program

MODEL = "all_is_kept"
BROKERS = 4  # enough for a new leader in each record
IN_TURN = MappingProxyType({
    "MaxEpoch": "3", "restarts": "false", "Stands": "{ 0: {}, 1: { v1 }, 2: { v2 }, 3: { v1 } }",
})  # fmt: skip
CONTROLS = (
    BadSpec("votes are forgotten", MODEL, {"vote_is_stored": "false"}),
    BadSpec("a log that is behind in its epoch wins", MODEL, {"newer_log_wins": "false"}),
    BadSpec("a shorter log wins", MODEL, {"longer_log_wins": "false"}),
    BadCode("a vote in every term is free", ControllerNode._vote, "self.vote in (NOBODY, source)", "True",
            MODEL),
    BadCode("a vote is not stored", ControllerNode._vote, "out.append(StoreVote(self.term, source))", "pass",
            MODEL),
    BadCode("one vote elects", ControllerNode._is_majority, "2 * controllers > len(self.voters)", "True",
            MODEL),
    BadCode("a log is cut where its own epoch ends", ControllerNode._take,
            "min(reply.diverging.end_offset, own.end_offset)", "own.end_offset", MODEL),
    BadCode("a log that diverges is not found", records.has, "log[end.end - 1].term == end.term", "True",
            MODEL),
    BadCode("HW falls to that of a leader that knows less", ControllerNode._take, "max(self.hw, committed)",
            "committed", MODEL),
    BadCode("HW passes records of earlier epochs", ControllerNode._advance, "is_own or", "True or", MODEL),
)  # fmt: skip


@dataclass(slots=True)
class Voters:
    """The controllers, votes on their way, and the history that the spec keeps."""

    controllers: Controllers
    granted: frozenset[tuple[int, int, int]] = frozenset()
    """Votes that were not counted: the candidate, its term and the voter."""
    elected: dict[int, set[int]] = field(default_factory=dict)
    committed: tuple[int, ...] = ()
    committed_in: int = 0

    def copy(self) -> Voters:
        """Return a snapshot."""
        elected = {term: {*leaders} for term, leaders in self.elected.items()}
        return Voters(self.controllers.copy(), self.granted, elected, self.committed, self.committed_in)


class QuorumBinding(CopyingBinding[Voters]):
    """All actions of the spec but those of snapshots."""

    spec, model = "../../spec/quorum.spec", MODEL
    gate = (At(MODEL), At(MODEL, IN_TURN))
    controls = CONTROLS
    rules = MappingProxyType({
        "vote_is_stored": True, "newer_log_wins": True, "longer_log_wins": True, "counts_own_epoch": True,
        "pre_vote_counts": False, "role_is_stored": False, "waits_to_write": True,
    })  # fmt: skip
    snapshot = never("snapshot", "replog keeps all records")
    fetch_snapshot = never("fetch_snapshot", "replog has no snapshots")

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        (voters,) = (sort.members for sort in program.sorts if sort.name == "Voter")
        self.names: tuple[str, ...] = voters

    def start(self) -> Voters:
        """Three voters in epoch 0, of which none leads."""
        return Voters(new_voters(Protocol(), BROKERS))

    def number(self, name: str) -> int:
        """Return a controller's number."""
        return self.names.index(name)

    @action("stand")
    def stand(self, system: Voters, c: str) -> Answer:
        """The timer of a controller rings that has not heard of a leader for long."""
        me, node = self.number(c), system.controllers.nodes[self.number(c)]
        if node.term > self.constants["MaxEpoch"] or c not in self.constants["Stands"][node.term]:
            return Impossible("it does not stand in this model")
        if node.is_active:
            return Refused("it leads")
        requests = system.controllers.perform(me, node.handle(Fired(Timer.QUORUM), LATE_MS))
        node.heard_ms = NOW_MS
        return taken_or(bool(sent(requests, VoteRequest)), "it does not stand")

    @action("vote")
    @tentative
    def vote(self, system: Voters, v: str, c: str) -> Answer:
        """A candidate's request arrives."""
        voter, candidate = self.number(v), self.number(c)
        asking = system.controllers.nodes.seen[candidate]
        if voter == candidate or self.role(asking) != "candidate":
            return Impossible("it is no candidate")
        request = VoteRequest(asking.term, records.end_of(asking.log))
        (reply,) = sent(system.controllers.handle(voter, Received(asking.address, request)), VoteReply)
        if not reply.is_granted:
            return Refused("no vote")
        system.granted |= {(candidate, asking.term, voter)}
        return Accepted()

    @action("hear")
    def hear(self, system: Voters, v: str, o: str) -> Answer:
        """An answer to a request of an earlier epoch arrives."""
        term = system.controllers.nodes.seen[self.number(o)].term
        if system.controllers.nodes.seen[self.number(v)].term >= term:
            return Impossible("it knows the epoch")
        self._show(system, self.number(v), self.number(o), term)
        return Accepted()

    def _show(self, system: Voters, voter: int, other: int, term: int) -> None:
        if system.controllers.nodes.seen[voter].term < term:
            system.controllers.handle(voter, Received(VOTERS[other], VoteReply(term, is_granted=False)))

    @action("win")
    def win(self, system: Voters, c: str) -> Answer:
        """The votes arrive."""
        me, node = self.number(c), system.controllers.nodes[self.number(c)]
        if self.role(node) != "candidate" or self.is_full(node):
            return Impossible("it is no candidate, or has no room")
        for candidate, term, voter in sorted(system.granted):
            if (candidate, term) == (me, node.term):
                system.controllers.handle(me, Received(VOTERS[voter], VoteReply(term, is_granted=True)))
        if node.is_active:
            system.elected.setdefault(node.term, set()).add(me)
        return taken_or(node.is_active, "too few votes")

    def is_full(self, node: ControllerNode) -> bool:
        """Return whether a log has as many records as the model allows."""
        return len(node.log) > self.constants["MaxLog"]

    @action("restart")
    def restart(self, system: Voters, v: str) -> Answer:
        """The process ends, and begins again with what it has stored; what is on its way to it is lost."""
        if not self.constants["restarts"]:
            return Impossible("nobody restarts in this model")
        me = self.number(v)
        term, vote, log = system.controllers.disks[me]
        node = system.controllers.nodes.seen[me]
        system.controllers.nodes[me] = ControllerNode(
            node.address,
            node.voters,
            node.config,
            node.protocol,
            term,
            [*log],
            vote,
            heard_ms=NOW_MS,  # type: ignore[list-item]
        )
        system.granted = frozenset(each for each in system.granted if each[0] != me)
        return Accepted()

    @action("write")
    def write(self, system: Voters, l: str) -> Answer:  # noqa: E741 - the spec's name
        """The session of a partition's leader has expired."""
        me, node = self.number(l), system.controllers.nodes[self.number(l)]
        if self.is_full(node):
            return Impossible("no more records in this model")
        if node.controller is None:
            return Refused("it does not decide")
        length = len(node.log)
        system.controllers.introduce(me)
        expire_session(node.controller.state, node.controller.state.partitions[PARTITION].leader, NOW_MS)
        system.controllers.handle(me, Fired(Timer.SESSION_CHECK, node.term))
        return taken_or(len(node.log) == length + 1, "nothing was decided")

    @action("fetch")
    @tentative
    def fetch(self, system: Voters, v: str, l: str) -> Answer:  # noqa: E741
        """A voter fetches once; the leader may commit what it has, and it gets the rest."""
        return self._fetched(system, self.number(v), self.number(l), cut=False)

    @action("cut")
    @tentative
    def cut(self, system: Voters, v: str, l: str) -> Answer:  # noqa: E741
        """A voter fetches, and its log is not a beginning of the leader's."""
        return self._fetched(system, self.number(v), self.number(l), cut=True)

    def _fetched(self, system: Voters, me: int, leader: int, cut: bool) -> Answer:
        nodes = system.controllers.nodes
        if me == leader or nodes.seen[me].term > nodes.seen[leader].term:
            return Impossible("it does not fetch from itself, or from an older leader")
        self._show(system, me, leader, nodes.seen[leader].term)
        answers = system.controllers.pass_on(me, leader, nodes[me].fetch())
        replies = sent(answers, MetadataFetchReply)
        if not replies or any((reply.diverging is not None) is not cut for reply in replies):
            return Refused("it does not lead, or the logs are otherwise")
        system.controllers.pass_on(leader, me, answers)  # what it fetches next is lost
        active = system.controllers.nodes.seen[leader]
        if active.hw - 1 > len(system.committed):
            system.committed = tuple(record.term - 1 for record in active.log[1 : active.hw])
            system.committed_in = active.term - 1
        return Accepted()

    def role(self, node: ControllerNode) -> str:
        """Return the spec's word for what a controller does."""
        if node.is_active:
            return "leader"
        return "follower" if node.active != NOBODY else "candidate" if node.votes else "waiting"

    @project
    def state(self, system: Voters) -> dict[str, Any]:
        """All variables of the spec; what a controller has stored is what it has in memory."""
        nodes = dict(zip(self.names, system.controllers.nodes.seen, strict=True))
        for number, node in enumerate(nodes.values()):
            if system.controllers.disks[number] != (node.term, node.vote, tuple(node.log)):
                raise OutsideSpec(f"{self.names[number]} has not stored what it has")
        leaders = {term - 1: {self.names[each] for each in system.elected[term]} for term in system.elected}
        return {
            "epoch": {name: node.term - 1 for name, node in nodes.items()},
            "voted": {
                name: None if node.vote == NOBODY else self.names[VOTERS.index(node.vote)]
                for name, node in nodes.items()
            },
            "role": {name: self.role(node) for name, node in nodes.items()},
            "votes": {name: self._votes(system, number) for number, name in enumerate(nodes)},
            "log": {name: [record.term - 1 for record in node.log[1:]] for name, node in nodes.items()},
            "start": dict.fromkeys(nodes, 0),
            "hw": {name: max(0, node.hw - 1) for name, node in nodes.items()},
            "elected": {e: leaders.get(e, set()) for e in range(self.constants["MaxEpoch"] + 1)},
            "committed": list(system.committed),
            "committed_in": system.committed_in,
        }

    def _votes(self, system: Voters, number: int) -> set[str]:
        node = system.controllers.nodes.seen[number]
        if self.role(node) != "candidate":
            return set()
        coming = {
            voter for candidate, term, voter in system.granted if (candidate, term) == (number, node.term)
        }
        return {self.names[VOTERS.index(vote)] for vote in node.votes} | {
            self.names[voter] for voter in coming
        }
