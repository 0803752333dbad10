"""reassignment.spec and replog: the replacement of a partition's replicas while records are written.

The system is replog's controller and a core for each broker (`moving_cluster`).  A rule disabled in a model,
and for which replog has a switch, is disabled in replog, too.  Where a replica must be chosen the
controller takes the first in the order of the assignment, which an operator determines: a way of the action.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # of `replog_partition`

from moving_cluster import Moving, SpecWords, abstract

from replog.core.broker import leader as broker_leader
from replog.core.broker.replica import Replica
from replog.core.controller import election, reassignment
from replog.core.effects import Send
from replog.core.messages import (
    AlterPartitionReply,
    ReassignReply,
    ReassignRequest,
)
from replog.core.protocol import Protocol
from replog.core.types import CONTROLLER, NO_LEADER, Error
from replog.sim.cluster.storage import MemoryStorage
from replog_controlled import OPERATOR, PARTITION, taken_or
from replog_partition import PartitionBinding, new_partition
from specchk.conform.contract.binding import Accepted, Answer, At, Impossible, Refused, action, never, project
from specchk.conform.contract.known_bad import BadCode, BadSpec

# Of two brokers or three each may be the one that an operator has put first.
ORDERS = ("the first one first", "the last one first")
# Rules of the spec that replog follows always; of the others it has switches.
SETTLED = MappingProxyType({
    "completes_when": "target_in_sync", "removal_bumps_epoch": True, "expands_on_fetch": True,
    "cancel_needs_isr": True, "first_partition": True,
})  # fmt: skip
TWICE = "removed_and_added"
AGAIN = MappingProxyType({"MaxVersion": "5"})
TWO = MappingProxyType({"Broker": "2", "MaxOffset": "0", "MaxVersion": "6", "cancels": "true"})
FENCED = MappingProxyType({"MaxOffset": "0", "MaxVersion": "7"})
LATE = MappingProxyType({"first_replicas": "Broker", "MaxOffset": "0", "MaxVersion": "5"})
CONTROLS = (
    BadSpec("a follower joins by what it has fetched once (B25)", TWICE,
            {**AGAIN, "expands_on_fetch": "false", "reset_remote": "false"}),
    BadSpec("a removal has no new epoch (KAFKA-15324)", TWICE, {**AGAIN, "removal_bumps_epoch": "false"}),
    BadCode("a fetch from before the removal counts (B25)", broker_leader.fence,
            "epoch < state.leader_epoch", "False", TWICE, AGAIN),
    BadCode("a leader remembers who was removed", broker_leader._begin_epoch,
            " and state.protocol.keeps_remote_leo", "", TWICE, AGAIN),
    BadCode("the leader epoch stays with the leader", election.changed,
            "(removed and", "(False and", TWICE, AGAIN),
    BadCode("a removed replica keeps its log", Replica._leave, "state.log.reset(0)", "pass", TWICE, AGAIN),
    BadCode("a removed replica keeps its files", Replica._leave, "out.append(Delete())", "pass",
            TWICE, AGAIN),
    BadCode("a reassignment never ends", reassignment.completed, "not image.is_reassigning", "True",
            "overridden", TWO),
    BadCode("those that are added are enough (KAFKA-15665)", reassignment.completed, "not set(target)",
            "not set(image.adding)", "overridden", TWO),
    BadCode("a request leaves the marks of the earlier one", reassignment.requested,
            "if rules.override_replaces:", "if False:", "overridden", TWO),
    BadCode("a cancellation keeps what was added", reassignment._reverted,
            "for replica in old.replicas if replica not in old.adding", "for replica in old.replicas",
            "overridden", TWO),
    BadCode("who is removed stays eligible", election.changed, "if rules.protocol.removed_leave_elr",
            "if False", "ends_after_fencing", FENCED),
)  # fmt: skip


class ReassignmentBinding(PartitionBinding[Moving]):
    """All 14 actions of the spec on replog's controller and brokers."""

    spec, model = "../../spec/reassignment.spec", TWICE
    smoke = (At("overridden", TWO),)
    gate = (At(TWICE, AGAIN), At("overridden", TWO), At("ends_after_fencing", FENCED))
    exhaustive = (
        At("two_must_have_it", LATE),
        At("b25_must_fetch", AGAIN),  # by the rules of kafka-4.1-as-is
        At("override_ignored", TWO),
        At("ends_after_fencing", {**FENCED, "elr": "false"}),
        *(At(model, suite="walks") for model in ("two_replicas", "false_suspicion", "other_leader")),
        At(TWICE, AGAIN, "product"),
    )
    controls = CONTROLS
    rules = SETTLED
    acks = -1  # all in the ISR

    def start(self) -> Moving:
        """A partition without records, whose metadata all brokers have received."""
        rules = self.constants
        first = self.id(rules["first_leader"])
        others = sorted(self.ids(rules["first_replicas"]) - {first})
        protocol = Protocol()
        if self.rules:  # else it is a control's wrong spec, to compare with today's replog
            protocol = Protocol(
                elr=rules["elr"], keeps_remote_leo=not rules["reset_remote"],
                removed_leave_elr=rules["removed_leave_elr"], override_replaces=rules["override_replaces"],
            )  # fmt: skip
        replicas = (first, *others)
        cluster = new_partition(
            Moving, MemoryStorage, protocol,
            min_isr=rules["min_isr"], brokers=len(self.names), replicas=replicas,
        )  # fmt: skip
        cluster.target = frozenset(replicas)
        return cluster

    def ids(self, names: Collection[str]) -> frozenset[int]:
        """Return the numbers of brokers."""
        return frozenset(map(self.id, names))

    @action("reassign", ways=ORDERS)
    def reassign(self, cluster: Moving, to: Collection[str], way: str) -> Answer:
        """An operator requests other replicas; the first of them is preferred."""
        wanted = self.ids(to)
        if cluster.spent.reassignments == self.constants["MaxReassignments"]:
            return Impossible("no more reassignments in this model")
        if wanted == cluster.target or len(wanted) < self.constants["smallest"]:
            return Impossible("the operator of this model requests something else")
        # For a request that changes nothing Kafka writes nothing: this one names others, or another order.
        self._order(cluster, ORDERS[way == ORDERS[0]])
        request = ReassignRequest(1, PARTITION, tuple(sorted(wanted, reverse=way != ORDERS[0])))
        answer = self._operate(cluster, request, wanted)
        if answer == Accepted():
            cluster.spent = replace(cluster.spent, reassignments=cluster.spent.reassignments + 1)
        return answer

    @action("cancel", ways=ORDERS)
    def cancel(self, cluster: Moving, way: str) -> Answer:
        """An operator cancels the reassignment."""
        if not self.constants["cancels"]:
            return Impossible("the operator of this model cancels none")
        self._order(cluster, way)
        originals = frozenset(cluster.image.replicas) - frozenset(cluster.image.adding)
        return self._operate(cluster, ReassignRequest(1, PARTITION, None), originals)

    def _operate(self, cluster: Moving, request: ReassignRequest, target: frozenset[int]) -> Answer:
        reply = cluster.decide(OPERATOR, request)
        assert isinstance(reply, ReassignReply)
        if reply.error is not Error.NONE:
            return Refused(reply.error.name)
        cluster.target = target
        return Accepted()

    def _order(self, cluster: Moving, way: str) -> None:
        """Make the order of the assignment that of the names, or the reverse."""
        ordered = tuple(sorted(cluster.image.replicas, reverse=way != ORDERS[0]))
        cluster.controller.state.partitions[PARTITION] = replace(cluster.image, replicas=ordered)

    @action("alter_partition", ways=ORDERS)
    def alter_partition(self, cluster: Moving, leader: str, way: str) -> Answer:
        """The proposal arrives.  A refusal is known at once; the leader learns of a grant later."""
        broker = self.id(leader)
        request = cluster.proposals.get(broker)
        if request is None:
            return Impossible("nothing is proposed")
        self._order(cluster, way)
        reply = cluster.decide(broker, request)
        assert isinstance(reply, AlterPartitionReply)
        if reply.error is Error.INELIGIBLE_REPLICA:
            del cluster.proposals[broker]
            cluster.receive(broker, CONTROLLER, reply)
        elif reply.error in (Error.NONE, Error.NEW_LEADER_ELECTED):
            cluster.answers[broker] = reply
        else:
            return Refused(reply.error.name)
        return Accepted()

    @action("fence_broker", ways=ORDERS)
    def fence_broker(self, cluster: Moving, broker: str, way: str) -> Answer:
        """The session of a live broker expires."""
        number = self.id(broker)
        if cluster.spent.fences == self.constants["MaxFences"] or cluster.is_fenced(number):
            return Impossible("no more suspicions in this model, or it is fenced already")
        self._order(cluster, way)
        cluster.expire_session(number)
        cluster.spent = replace(cluster.spent, fences=cluster.spent.fences + 1)
        return taken_or(cluster.is_fenced(number), "it is not fenced")

    @action("elect")
    def elect(self, cluster: Moving, broker: str) -> Answer:
        """An operator requests this leader: it is made the preferred one."""
        image = cluster.image
        if cluster.spent.elections == self.constants["MaxElections"] or image.leader == NO_LEADER:
            return Impossible("no more elections in this model, or nobody leads")
        if self.id(broker) not in image.replicas:
            return Refused("it is no replica")
        answer = self.elected(cluster, broker)
        if answer == Accepted():
            cluster.spent = replace(cluster.spent, elections=cluster.spent.elections + 1)
        return answer

    @action("apply_metadata", ways=("alone", "after the answer"))
    def apply_metadata(self, cluster: Moving, broker: str, version: int, way: str) -> Answer:
        """A broker applies a decision; the answer to its own proposal may arrive before."""
        number = self.id(broker)
        if version not in cluster.metadata or version <= cluster.applied[number]:
            return Impossible("no such metadata, or it is old")
        answer = cluster.answers.get(number)
        if answer is not None and answer.partition_epoch == version and way != "alone":
            cluster.receive(number, CONTROLLER, answer)
        cluster.apply(number, version)
        return Accepted()

    @action("serve_fetch")
    def serve_fetch(self, cluster: Moving, leader: str, follower: str) -> Answer:
        """The fetch arrives; without records to send, the leader answers when the wait is over."""
        slot = self.request_of(cluster, follower, leader)
        if slot is None:
            return Impossible("no such request is on its way to this broker")
        reply = self.served(cluster, slot.to, self.id(follower), slot.request)
        if reply.error is not Error.NONE:
            return Refused(reply.error.name)
        cluster.put_fetch(self.id(follower), replace(slot, reply=reply))
        return Accepted()

    @action("shrink_isr")
    def shrink_isr(self, cluster: Moving, leader: str, follower: str) -> Answer:
        """The leader checks its ISR: this follower was caught up long ago, all others just now."""
        broker, late = self.id(leader), self.id(follower)
        leading = cluster.state(broker).leading
        if leading is None or late not in leading.remotes:
            return Impossible("no leader with such a follower")
        if cluster.spent.shrinks == self.constants["MaxShrinks"]:
            return Impossible("no more laggards in this model")
        if not any(isinstance(effect, Send) for effect in cluster.check_isr(broker, late)):
            return Refused("no proposal is sent")
        cluster.spent = replace(cluster.spent, shrinks=cluster.spent.shrinks + 1)
        return Accepted()

    expand_isr = never("expand_isr", "a follower joins the ISR by a fetch of this epoch")  # B25

    @project
    def state(self, cluster: Moving) -> dict[str, Any]:
        """Every variable of the spec."""
        versions = range(self.constants["MaxVersion"] + 1)
        return abstract(cluster, SpecWords(self.names, self.epochs, versions))
