"""coordinator.spec and replog: a group coordinator on each replica of the log of groups.

The system is that of replication.spec's binding, with replicas that are coordinators while they lead, and
the coordinators' answers.  The spec lets a leader write a record first, as any producer does, and
determines later that it is a commit; so does `write_commit` here.
The coordinator's timers ring in steps of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

# Of the package, since this file has the name of that one; then of that one's neighbours.
sys.path += [str(Path(__file__).resolve().parents[level]) for level in (2, 1)]

from conformance.binding import ReplogBinding

from replog.core.broker import coordinator
from replog.core.broker.coordinator import Coordinator, GroupReplica, Waiting
from replog.core.effects import Send, Timer
from replog.core.messages import CommitReply, GroupLog
from replog.core.protocol import Protocol
from replog.core.types import Error
from replog_cluster import Cluster, Rules, new_cluster
from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Impossible,
    OutsideSpec,
    Refused,
    action,
    project,
    unchanged,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec

OWNER = -200
MODEL = "offset_commits"
ONE_ELECTION = MappingProxyType({"MaxEpoch": "1"})


@dataclass(slots=True)
class GroupCluster(Cluster):
    """A cluster, and the records of acknowledged commits: their epochs and the offsets after them."""

    completed: frozenset[tuple[int, int]] = frozenset()

    def copy(self) -> Self:
        """Return a snapshot."""
        twin = Cluster.copy(self)
        twin.completed = self.completed
        return twin

    def put(self, broker: int, sent: Send) -> None:
        """A new coordinator reads its log at once."""
        if isinstance(sent.message, GroupLog):
            self.receive(broker, broker, sent.message)
        else:
            Cluster.put(self, broker, sent)

    def coordinator(self, broker: int) -> Coordinator:
        """Return the coordinator on a broker, for reading."""
        process = self.nodes.seen[broker].process
        assert isinstance(process, GroupReplica)
        return process.coordinator


class CoordinatorBinding(ReplogBinding):
    """All actions of replication.spec that its models use, and three of the coordinator."""

    spec, model = "../../spec/coordinator.spec", MODEL
    smoke = (At(MODEL, ONE_ELECTION),)
    gate = (At(MODEL),)
    exhaustive = (
        At(MODEL, suite="product"),
        At(MODEL, suite="walks"),
        At("completed_by_follower"),  # by the rule of kafka-4.1-as-is
    )
    controls = (
        BadSpec("who follows answers commits (KAFKA-20634)", MODEL,
                {**ONE_ELECTION, "completes_as_leader": "false"}),
        BadCode("HW alone completes commits (KAFKA-20634)", coordinator._is_due,
                " and not (state.protocol.completes_as_leader and _is_over(one, state))", "", MODEL,
                ONE_ELECTION),
        BadCode("commits are answered when written", coordinator._is_due, "state.log.hw >= one.end", "True",
                MODEL, ONE_ELECTION),
        BadCode("commits outlive their epoch", coordinator._is_over,
                " or state.leader_epoch != one.epoch", "", MODEL),
        BadCode("who resigns is silent", Coordinator.resign,
                "out.extend(Send(one.source, failed(one.reply, Error.NOT_COORDINATOR)) for one in over)",
                "pass", MODEL, ONE_ELECTION),
    )  # fmt: skip

    def cluster_rules(self) -> Rules:
        """Return the rules with replicas of the log of groups, and the model's rule."""
        made = super().cluster_rules()
        if self.rules:  # else it is a control's wrong spec, to compare with today's replog
            made = replace(made, protocol=Protocol(completes_as_leader=self.constants["completes_as_leader"]))
        return replace(made, boot=lambda _, state: GroupReplica(state))

    def start(self) -> GroupCluster:
        """Return a new cluster, whose first leader has loaded an empty log."""
        return new_cluster(self.cluster_rules(), GroupCluster)

    @action("write_commit")
    def write_commit(self, cluster: GroupCluster, leader: str) -> Answer:
        """The leader's last record is a commit, whose answer waits."""
        broker = self.id(leader)
        state = cluster.state(broker)
        if state is None or state.leading is None:
            return Impossible("it does not lead")
        if cluster.coordinator(broker).waiting:
            return Impossible("the spec has one commit at a time")
        if state.log.leo in (state.log.hw, state.leading.leso):
            return Impossible("it has written nothing that is not committed")
        process = cluster.nodes[broker].process
        assert isinstance(process, GroupReplica)
        process.coordinator.wait(process.state, OWNER, CommitReply(state.log.leo, Error.NONE))
        return Accepted()

    @action("complete_commit")
    def complete_commit(self, cluster: GroupCluster, broker: str) -> Answer:
        """HW has passed the commit, and the coordinator answers it."""
        number = self.id(broker)
        waiting = self._waiting(cluster, number)
        answer = self._rung(cluster, number, Timer.COMPLETE_COMMITS)
        if answer is Error.NONE:
            cluster.completed |= {(waiting[0].epoch, waiting[0].end)}
            return Accepted()
        return Refused("it answers nobody" if answer is None else answer.name)

    @action("unload")
    def unload(self, cluster: GroupCluster, broker: str) -> Answer:
        """The coordinator resigns, and answers with an error."""
        answer = self._rung(cluster, self.id(broker), Timer.RESIGN)
        if answer is Error.NOT_COORDINATOR:
            return Accepted()
        return Refused("it answers nobody" if answer is None else answer.name)

    def _waiting(self, cluster: GroupCluster, broker: int) -> tuple[Waiting, ...]:
        return () if cluster.state(broker) is None else cluster.coordinator(broker).waiting

    def _rung(self, cluster: GroupCluster, broker: int, timer: Timer) -> Error | None:
        """Let a timer of the coordinator ring; return its answer to the waiting client."""
        before = self._waiting(cluster, broker)
        if not before:
            return None
        answers = [one.message for one in cluster.fire(broker, timer) if isinstance(one, Send)]
        if len(answers) != len(before) - len(self._waiting(cluster, broker)):
            raise OutsideSpec(f"{len(before)} waited, and the coordinator sends {answers}")
        if not answers:
            return None
        assert isinstance(answers[0], CommitReply)
        return answers[0].error

    @project
    def state(self, cluster: GroupCluster) -> dict[str, Any]:
        """Return the variables of replication.spec, and those of the coordinators."""
        coordinators = dict(zip(self.names, map(cluster.coordinator, range(len(self.names))), strict=True))
        return {
            **super().state(cluster),
            "commits": {name: _commit(known.waiting) for name, known in coordinators.items()},
            "completed": [{"epoch": epoch, "end": end} for epoch, end in sorted(cluster.completed)],
        }

    @unchanged
    def as_kept(self, kept: Cluster) -> Callable[[Any], bool]:
        """Return the comparison with a kept cluster, including the coordinators."""
        assert isinstance(kept, GroupCluster)
        is_as_kept = super().as_kept(kept)
        waiting = [kept.coordinator(broker).waiting for broker in range(len(self.names))]

        def is_as(cluster: GroupCluster) -> bool:
            waits = (cluster.coordinator(broker).waiting is one for broker, one in enumerate(waiting))
            return all(waits) and cluster.completed is kept.completed and is_as_kept(cluster)

        return is_as


def _commit(waiting: tuple[Waiting, ...]) -> dict[str, int] | None:
    if len(waiting) > 1:
        raise OutsideSpec(f"{len(waiting)} commits wait")
    return {"epoch": waiting[0].epoch, "end": waiting[0].end} if waiting else None
