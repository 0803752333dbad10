"""log_start.spec and replog: deletion of records from the front of a partition's logs.

The system is replog's controller, a core for each broker, and its files (`start_cluster`).  A rule that a
model turns back, and that replog has a switch for, is turned back in replog, too.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # of `replog_partition`

from start_cluster import StartWords, Trimming

from replog.core.broker import deletion, follower
from replog.core.effects import Timer
from replog.core.log.epochs import EpochCache
from replog.core.messages import DeleteRecordsReply, DeleteRecordsRequest, FetchRequest, ListOffsetsRequest
from replog.core.protocol import Protocol
from replog.core.types import Error
from replog.sim.disks.stored import StoreStorage
from replog_controlled import CLIENT, sent, taken_or
from replog_partition import PartitionBinding, new_partition
from specchk.conform.contract.binding import Accepted, Answer, At, Impossible, Refused, action, never, project
from specchk.conform.contract.known_bad import BadCode, BadSpec

# Rules of the spec that replog follows always; of the others it has switches.
SETTLED = MappingProxyType({
    "deletes_up_to": "high_watermark", "follower_adopts": True, "waits_for_replicas": True,
    "keeps_epoch_of_start": True, "empty_reply_keeps_epoch": True, "moves_logs": False,
    "hw_follows_start": True, "start_read_last": False,
})  # fmt: skip
SMALL = MappingProxyType({"MaxOffset": "1"})
LAGS = MappingProxyType({"MaxOffset": "1", "MaxEpoch": "0", "MaxShrinks": "1"})
FENCED = MappingProxyType({"MaxOffset": "1", "MaxEpoch": "1", "MaxFences": "1"})
UNCLEAN = MappingProxyType({"MaxOffset": "1", "requests": "false"})
CONTROLS = (
    BadSpec("a client is answered at once", "two_brokers", {**SMALL, "waits_for_replicas": "false"}),
    BadSpec("a follower keeps its log start", "two_brokers", {**SMALL, "follower_adopts": "false"}),
    BadSpec("who joins need not know the log start", "false_suspicion",
            {**FENCED, "join_needs_start": "false"}),
    BadCode("a client deletes what is not committed", deletion.on_request, "offset <= log.hw",
            "offset <= log.leo", "two_brokers", SMALL),
    BadCode("a log start is not written", deletion.advance_start,
            "out.append(AdvanceStart(state.log.log_start))", "pass", "two_brokers", SMALL),
    BadCode("the epoch of the log start is forgotten", EpochCache.truncate_from_start, "if covering:",
            "if False:", "two_brokers", SMALL),
    BadCode("the leader's log start is not adopted", follower.on_fetch_reply,
            "advance_start(state, reply.log_start, out)", "pass", "two_brokers", SMALL),
    BadCode("a follower keeps what does not touch the leader's log", follower.on_list_offsets,
            "elif reply.offset > state.log.leo:", "elif False:", "slow_follower", LAGS),
    BadCode("a cut below the log start leaves it", follower.truncate, "if offset < log.log_start:",
            "if False:", "unclean", UNCLEAN),
)  # fmt: skip


class LogStartBinding(PartitionBinding[Trimming]):
    """All 13 actions of the spec on replog's controller, brokers and files."""

    spec, model = "../../spec/log_start.spec", "two_brokers"
    companions = ("start_tracing.py",)
    smoke = (At("slow_follower", LAGS),)
    gate = (
        At("two_brokers", SMALL),
        At("slow_follower", LAGS),
        At("false_suspicion", FENCED),
        At("unclean", UNCLEAN),
    )
    exhaustive = (
        At("joins_without_start", FENCED),  # by the rules of kafka-4.1-as-is
        *(At(model, suite="walks") for model in ("two_brokers", "three_epochs", "three_brokers", "unclean")),
    )
    controls = CONTROLS
    rules = SETTLED
    acks = 1  # the leader alone

    def start(self) -> Trimming:
        """A partition without records, whose metadata all brokers have received."""
        rules = self.constants
        protocol = Protocol(unclean_election=rules["unclean_election"])
        if self.rules:  # else it is a control's wrong spec, to compare with today's replog
            protocol = replace(protocol, join_needs_start=rules["join_needs_start"])
        brokers, first = len(self.names), self.id(rules["first_leader"])
        replicas = tuple(sorted(range(brokers), key=lambda broker: broker != first))
        return new_partition(Trimming, StoreStorage, protocol, min_isr=1, brokers=brokers, replicas=replicas)

    @action("delete_records")
    def delete_records(self, cluster: Trimming, leader: str, to: int) -> Answer:
        """A client requests a deletion; one at a time, and of existing records."""
        broker = self.id(leader)
        if not self.constants["requests"] or broker in cluster.requested:
            return Impossible("the clients of this model do not request that")
        if to <= cluster.state(broker).log.log_start:
            return Impossible("these records are deleted")
        cluster.requested[broker] = to
        effects = cluster.receive(broker, CLIENT, DeleteRecordsRequest(1, to, 1_000))
        errors = [r.error for r in sent(effects, DeleteRecordsReply) if r.error is not Error.NONE]
        return Refused(errors[0].name) if errors else Accepted()

    @action("retain")
    def retain(self, cluster: Trimming, broker: str, start: int) -> Answer:
        """The limit is the size of the records to keep; then the timer of retention rings."""
        number = self.id(broker)
        if not self.constants["retention"] or start <= cluster.state(number).log.log_start:
            return Impossible("no retention in this model, or these records are deleted")
        replica = cluster.brokers[number]
        rest = sum(batch.size_bytes for batch in replica.state.log.batches if batch.base_offset >= start)
        config = replica.state.config
        trial = replica.copy()
        trial.state.config = replica.state.config = replace(config, retention_bytes=rest)
        trial.fire(Timer.RETENTION, 0, 0)
        is_deleted = trial.state.log.log_start == start
        if is_deleted:
            cluster.fire(number, Timer.RETENTION)
        replica.state.config = config
        return Accepted() if is_deleted else Refused("it keeps some of these records")

    @action("serve_fetch")
    def serve_fetch(self, cluster: Trimming, leader: str, follower: str) -> Answer:
        """The fetch arrives; without records to send, the leader answers when the wait is over."""
        return self._serve(cluster, leader, follower, FetchRequest)

    @action("list_offsets")
    def list_offsets(self, cluster: Trimming, leader: str, follower: str) -> Answer:
        """The request for an end of the leader's log arrives."""
        return self._serve(cluster, leader, follower, ListOffsetsRequest)

    def _serve(self, cluster: Trimming, leader: str, follower: str, kind: type[Any]) -> Answer:
        slot = self.request_of(cluster, follower, leader)
        if slot is None or not isinstance(slot.request, kind):
            return Impossible("no such request is on its way to this broker")
        if not cluster.leads(slot.to):
            return Impossible("in the spec a deposed leader serves no fetch")
        reply = self.served(cluster, slot.to, self.id(follower), slot.request)
        if reply.error not in (Error.NONE, Error.OFFSET_OUT_OF_RANGE):
            return Refused(reply.error.name)
        cluster.put_fetch(self.id(follower), replace(slot, reply=reply))
        return Accepted()

    # replog moves no logs between directories.
    move_log = never("move_log", "a log stays in its directory")

    @action("shrink_isr")
    def shrink_isr(self, cluster: Trimming, follower: str) -> Answer:
        """The leader finds that this follower lags, and the controller agrees."""
        late, leader = self.id(follower), cluster.image.leader
        if cluster.shrinks == self.constants["MaxShrinks"] or late == leader or not cluster.leads(leader):
            return Impossible("no more laggards in this model, or nobody to find them")
        if late not in cluster.image.isr:
            return Impossible("it is out already")
        cluster.check_isr(leader, late)
        leading = cluster.state(leader).leading
        if leading is None or late in leading.isr:
            return Refused("it stays in the ISR")
        cluster.shrinks += 1
        return Accepted()

    @action("elect")
    def elect(self, cluster: Trimming, broker: str) -> Answer:
        """An operator requests this leader: it is made the preferred one."""
        if cluster.image.leader_epoch == self.constants["MaxEpoch"]:
            return Impossible("no more elections in this model")
        return self.elected(cluster, broker)

    @action("fence_broker")
    def fence_broker(self, cluster: Trimming, broker: str) -> Answer:
        """The session of a live broker expires; another broker may lead without it."""
        number, image = self.id(broker), cluster.image
        if cluster.fences == self.constants["MaxFences"] or cluster.is_fenced(number):
            return Impossible("no more suspicions in this model, or it is fenced already")
        if image.leader == number:
            heirs = image.replicas if self.constants["unclean_election"] else image.isr
            able = any(other != number and not cluster.is_fenced(other) for other in heirs)
            if not able or image.leader_epoch == self.constants["MaxEpoch"]:
                return Impossible("in the spec somebody leads")
        cluster.expire_session(number)
        cluster.fences += 1
        return taken_or(cluster.is_fenced(number), "it is not fenced")

    @action("apply_metadata")
    def apply_metadata(self, cluster: Trimming, broker: str, epoch: int) -> Answer:
        """A broker applies the last metadata of a leader epoch."""
        number = self.id(broker)
        if epoch not in cluster.metadata or epoch <= cluster.state(number).leader_epoch:
            return Impossible("no such metadata, or it is old")
        cluster.apply(number, epoch)
        return Accepted()

    @project
    def state(self, cluster: Trimming) -> dict[str, Any]:
        """Every variable of the spec."""
        rules = self.constants
        return StartWords(self.names, rules["first_leader"], self.epochs).abstract(cluster)
