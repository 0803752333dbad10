"""controller_log.spec and replog: a quorum of controllers that fails over, and the brokers that follow it.

The system is three controllers, a broker process for each broker with its log, and messages between them
(`quorum_cluster`).  A rule that a model turns back is turned back in replog, too.

Reasons to propose an ISR, and to refuse one, belong to other specs (`replication`, `proposals`): a leader
proposes the model's choice, and a controller refuses because its brokers are leaving at that moment.

Not here: the projection of the state (`quorum_state`).
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from types import MappingProxyType
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # of `replog_controlled`

from quorum_cluster import LATE_MS, VOTERS, Controllers, inner, new_controllers, tentative
from quorum_state import SpecWords, abstract

from replog.core import messages
from replog.core.broker import isr as broker_isr
from replog.core.broker import leader as broker_leader
from replog.core.broker.contact import Contact
from replog.core.controller.state import expire_session
from replog.core.effects import Effect, Fired, Received, Send, Timer
from replog.core.protocol import Protocol
from replog.core.quorum import records
from replog.core.quorum.node import TICK_MS, ControllerNode
from replog.core.quorum_messages import MetadataFetch, NotController, VoteRequest
from replog.core.types import Batch, BrokerState, Error, MetadataImage
from replog_controlled import CLIENT, NOW_MS, PARTITION, sent, taken_or
from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Impossible,
    Refused,
    action,
    project,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import CopyingBinding
from specchk.ir.program import Program

MODEL = "one_start"
NEXT, NEWEST = "the next", "the newest"
# Rules of the spec that replog follows always here; the others it turns back with a model.
SETTLED = MappingProxyType({
    "answered_when": "committed", "applied_when": "committed", "learns_first": True,
})  # fmt: skip
BOUNDS = MappingProxyType({
    "Controller": "{ c1, c2, c3 }", "Broker": "{ b1, b2 }", "active_first": "{ c1 }", "leads_first": "{ b1 }",
})  # fmt: skip
THREE_TERMS = MappingProxyType({"MaxTerm": "3"})
SHORT = MappingProxyType({**BOUNDS, "MaxLog": "3", "MaxTerm": "2"})
CONTROLS = (
    BadSpec("an answer before its record is committed", MODEL, {"answered_when": "appended"}),
    BadSpec("metadata before it is committed", MODEL, {"applied_when": "appended"}),
    BadSpec("no record of its own (KAFKA-12619)", MODEL, {"own_record": "false"}),
    BadSpec("a broker goes by an older controller", MODEL, {"newest_only": "false"}),
    BadCode("a late fetch acknowledges", ControllerNode._serve, "if fetch.term == self.term:", "if True:",
            "no_own_record", SHORT),
    BadCode("a vote for who lacks records", ControllerNode._vote, "and is_new", "", MODEL),
    BadCode("a vote by the lengths of the logs", records.is_as_new,
            "(candidate.term, candidate.end) >= (own.term, own.end)", "candidate.end >= own.end", MODEL,
            THREE_TERMS),
    BadCode("who votes stays active", ControllerNode._adopt, "self._resign()", "pass", MODEL),
    BadCode("a term is not written", ControllerNode._adopt, "out.append(StoreVote(term, vote))", "pass",
            MODEL),
    BadCode("a record is not written", ControllerNode._append,
            "out.append(StoreRecords(len(self.log), (record,)))", "pass", MODEL),
    BadCode("a new controller decides at once", ControllerNode._begin_if_committed,
            "is_own or not self.protocol.own_record", "True", MODEL),
    BadCode("a grant is sent at once", ControllerNode._address_timers, "0 if is_early else len(self.log)",
            "0", MODEL),
    BadCode("metadata is sent at once", ControllerNode._applicable,
            "self.protocol.applied_when is RecordIs.APPENDED", "True", MODEL),
    BadCode("one controller is a majority", ControllerNode._advance, "(len(self.voters) - 1) // 2", "-1",
            MODEL),
    BadCode("the tail of an old controller stays", ControllerNode._take, "self.log[start:] = reply.records",
            "self.log.extend(reply.records)", MODEL),
    BadCode("followers learn of no commit", ControllerNode._take, "max(self.hw, committed)", "self.hw",
            MODEL),
    BadCode("a new controller forgets the partition", records.restored, "dict(record.image.partitions)",
            "{}", MODEL),
    BadCode("an older controller is believed", Contact.accept,
            "message.term < self.newest and self.newest_only", "False", MODEL),
    BadCode("who shrinks the ISR waits no more", broker_isr.maximal_isr, "return pending.committed",
            "return pending.proposed", MODEL),
)  # fmt: skip


class ControllerLogBinding(CopyingBinding[Controllers]):
    """All 15 actions of the spec on replog's controllers and brokers."""

    spec, model = "../../spec/controller_log.spec", MODEL
    smoke = (At(MODEL, {"MaxLog": "2"}),)
    # With two terms no vote depends on the term of a record.
    gate = (At(MODEL, THREE_TERMS), At("no_own_record", SHORT))
    exhaustive = (
        At(MODEL, suite="product"),
        At("old_refuses", SHORT),
        At("three_terms", BOUNDS, "walks"),
    )
    controls = CONTROLS
    rules = SETTLED
    hint = "replog turns this rule back alone in stories and simulations; choose a model with today's"

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        members = {sort.name: sort.members for sort in program.sorts}
        self.controllers: tuple[str, ...] = members["Controller"]
        self.brokers: tuple[str, ...] = members["Broker"]
        self.words = SpecWords(self.controllers, self.brokers)

    def start(self) -> Controllers:
        """The first controller is active, the first broker leads, and all have received the metadata."""
        rules, protocol = self.constants, Protocol()
        if self.rules:  # else it is a control's wrong spec, to compare with today's replog
            protocol = Protocol(newest_only=rules["newest_only"], own_record=rules["own_record"])
        return new_controllers(protocol, len(self.brokers))

    def voter(self, name: str) -> int:
        """Return a controller's number."""
        return self.controllers.index(name)

    def id(self, name: str) -> int:
        """Return a broker's number."""
        return self.brokers.index(name)

    # The quorum.

    @action("elect")
    @tentative
    def elect(self, cluster: Controllers, c: str, voter: str) -> Answer:
        """A controller stands for election, and one other controller votes; twice if its term was behind."""
        me, other = self.voter(c), self.voter(voter)
        nodes = cluster.nodes.seen
        if me == other or max(nodes[me].term, nodes[other].term) == self.constants["MaxTerm"]:
            return Impossible("no more terms in this model")
        if self.constants["own_record"] and self.is_full(cluster, me):
            return Impossible("no more records in this model")
        for _ in range(2):
            requests = cluster.perform(me, cluster.nodes[me].stand(NOW_MS))
            cluster.pass_on(other, me, cluster.pass_on(me, other, requests))
            if cluster.nodes.seen[me].is_active:
                return Accepted()
        return Refused("no vote")

    def is_full(self, cluster: Controllers, number: int) -> bool:
        """Return whether a controller's log has as many records as the model allows."""
        return len(cluster.nodes.seen[number].log) == self.constants["MaxLog"]

    @action("fetch_metadata")
    @tentative
    def fetch_metadata(self, cluster: Controllers, d: str, c: str) -> Answer:
        """A controller fetches all records of the active one, and acknowledges them."""
        me, active = self.voter(d), self.voter(c)
        if me == active:
            return Impossible("it does not fetch from itself")
        before = self._logs(cluster)
        cluster.give_up(me)
        if not cluster.exchange(me, active) or not cluster.nodes.seen[active].is_active:
            return Refused("the other is not active, or is older")
        return Refused("there is no news") if self._logs(cluster) == before else Accepted()

    def _logs(self, cluster: Controllers) -> list[Any]:
        return [(node.term, node.is_active, node.hw, [*node.log]) for node in cluster.nodes.seen]

    @action("fetch_late")
    def fetch_late(self, cluster: Controllers, d: str, c: str) -> Answer:
        """A fetch of an earlier term arrives at the active controller, whose answer is lost."""
        source, active = cluster.nodes.seen[self.voter(d)], cluster.nodes.seen[self.voter(c)]
        if source is active or not active.is_active or source.term >= active.term:
            return Impossible("the other is not active, or is not of a later term")
        fetch = MetadataFetch(source.term, records.end_of(source.log))
        cluster.handle(self.voter(c), Received(source.address, fetch))
        return Accepted()

    @action("stand_in_turn")
    def stand_in_turn(self, cluster: Controllers) -> Answer:
        """All but an active one have last heard of it now, and their timers ring until one of them stands."""
        nodes = cluster.nodes.seen
        if len({node.term for node in nodes}) > 1:
            return Impossible("they are in different terms")
        waiting = [node.copy() for node in nodes if not node.is_active]
        for node in waiting:
            node.heard_ms = NOW_MS
        for now_ms in range(NOW_MS, LATE_MS, TICK_MS):
            sends = [sent(node.handle(Fired(Timer.QUORUM), now_ms), VoteRequest) for node in waiting]
            if any(sends):
                return taken_or(sum(map(bool, sends)) == 1, "several stand at the same time")
        return Refused("nobody stands")

    @action("check_sessions")
    def check_sessions(self, cluster: Controllers, c: str) -> Answer:
        """The timer of the session check rings as the sessions of who was heard of last are about to end."""
        node = cluster.nodes[self.voter(c)]
        if node.controller is None:
            return Refused("it does not decide")
        about_ms = NOW_MS + node.config.session_timeout_ms
        cluster.perform(self.voter(c), node.handle(Fired(Timer.SESSION_CHECK, node.term), about_ms))
        return Accepted()

    @action("send_on")
    def send_on(self, cluster: Controllers, c: str, b: str) -> Answer:
        """A controller names another one as active, twice: what the broker sends must have an end."""
        node = cluster.nodes.seen[self.voter(c)]
        if node.is_active:
            return Impossible("it is active")
        other = VOTERS[(self.voter(c) + 1) % len(VOTERS)]
        for _ in range(2):
            again = cluster.receive(
                self.id(b), node.address, messages.OfTerm(node.term, NotController(other))
            )
        return taken_or(not again, "it is sent on at once, again and again")

    @action("fail_over")
    @tentative
    def fail_over(self, cluster: Controllers, c: str) -> Answer:
        """The leader's session has expired when the active controller checks."""
        number = self.voter(c)
        if self.is_full(cluster, number):
            return Impossible("no more records in this model")
        cluster.introduce(number)
        node = cluster.nodes[number]
        if node.controller is None:
            return Refused("it does not decide")
        image = node.controller.state.partitions[PARTITION]
        if len(image.isr) == 1:
            return Impossible("the leader is alone")
        expire_session(node.controller.state, image.leader, NOW_MS)
        length = len(node.log)
        cluster.handle(number, Fired(Timer.SESSION_CHECK, node.term))
        return taken_or(len(node.log) > length, "nothing was decided")

    # The brokers.

    @action("apply", ways=(NEXT, NEWEST))
    @tentative
    def apply(self, cluster: Controllers, b: str, c: str, way: str) -> Answer:
        """A broker requests metadata from a controller, and applies the next version or the newest."""
        broker, number = self.id(b), self.voter(c)
        answer, images = self._news(cluster, broker, number)
        if answer is None or not images:
            return Refused("it has no news")
        chosen = images[0] if way == NEXT else images[-1]
        return taken_or(cluster.apply(broker, number, answer.term, chosen), "it ignores it")

    def _news(
        self, cluster: Controllers, broker: int, number: int
    ) -> tuple[messages.OfTerm | None, list[MetadataImage]]:
        """Return a controller's answer to a metadata request, and the part new to the broker's replica."""
        version = cluster.brokers.seen[broker].broker.membership.metadata_version
        answer = cluster.request(broker, number, version)
        if answer is None or not isinstance(answer.message, messages.MetadataUpdate):
            return None, []
        known = cluster.state(broker).partition_epoch
        images = [i for i in answer.message.images if i.partitions[PARTITION].partition_epoch > known]
        return answer, images

    @action("propose")
    def propose(self, cluster: Controllers, b: str, isr: Collection[str]) -> Answer:
        """A leader proposes any ISR; a joining member has just fetched."""
        broker, members = self.id(b), sorted(map(self.id, isr))
        leading = cluster.state(broker).leading
        if leading is None or leading.pending is not None:
            return Refused("it does not lead, or has proposed already")
        joins = [member for member in members if member not in leading.isr]
        if broker not in members or set(members) == set(leading.isr):
            return Impossible("a leader proposes a change, and itself")
        if cluster.has(broker) and not all(map(cluster.has, joins)):
            return Impossible("a leader does not propose who lacks a record")
        replica = cluster.brokers[broker].broker.replica
        for member in joins:
            # Its fetch of this epoch, from the leader that it knows now.
            log = cluster.state(member).log
            last = log.epochs.entries[-1][0] if log.leo else -1
            epoch = replica.state.leader_epoch
            cluster.receive(broker, member, messages.FetchRequest(1, member, epoch, log.leo, last))
        out: list[Effect] = []
        assert replica.state.leading is not None
        broker_isr.propose(replica.state, replica.state.leading, tuple(members), out)
        return Accepted()

    def _send_proposal(self, cluster: Controllers, broker: int, number: int) -> list[Send] | None:
        """Make a broker that follows a controller repeat its proposal there; return the answers."""
        leading = cluster.state(broker).leading
        if leading is None or leading.pending is None:
            return None
        node, contact = cluster.nodes.seen[number], cluster.brokers[broker].contact
        if node.is_active and contact.newest < node.term and contact.newest_only:
            # Sent before the broker has heard of the term: it has tried one controller after the other.
            contact.address, length = node.address, len(node.log)
            sends = self._proposed(cluster, broker, number)
            if len(cluster.nodes.seen[number].log) > length:
                return sends
        return self._proposed(cluster, broker, number) if cluster.meet(broker, number) else None

    def _proposed(self, cluster: Controllers, broker: int, number: int) -> list[Send]:
        leading = cluster.state(broker).leading
        assert leading is not None
        assert leading.pending is not None
        sends = cluster.fire(broker, Timer.ALTER_RETRY, leading.pending.correlation)
        (request,) = (
            send for send in sends if isinstance(inner(send.message), messages.AlterPartitionRequest)
        )
        assert request.to == VOTERS[number]
        return cluster.handle(number, Received(broker, request.message))

    @action("receive")
    @tentative
    def receive(self, cluster: Controllers, c: str, b: str) -> Answer:
        """A proposal arrives at a controller, which appends the change."""
        broker, number = self.id(b), self.voter(c)
        if self.is_full(cluster, number):
            return Impossible("no more records in this model")
        cluster.introduce(number)
        length = len(cluster.nodes.seen[number].log)
        if self._send_proposal(cluster, broker, number) is None:
            return Refused("nothing is proposed, or not to this controller")
        return taken_or(len(cluster.nodes.seen[number].log) > length, "it appends nothing")

    @action("grant")
    @tentative
    def grant(self, cluster: Controllers, c: str, b: str) -> Answer:
        """The answer arrives; or, if it was lost with its term, the metadata of the change."""
        broker, number = self.id(b), self.voter(c)
        state, node = cluster.state(broker), cluster.nodes.seen[number]
        pending = None if state.leading is None else state.leading.pending
        if pending is None:
            return Impossible("nothing is proposed")
        answer = cluster.answers.get((number, broker))
        if answer is not None and answer.term == node.term and node.is_active:
            cluster.receive(broker, VOTERS[number], answer)
            if cluster.state(broker).partition_epoch > state.partition_epoch:
                cluster.isr[broker] = pending.proposed
                return Accepted()
        wanted = (broker, state.leader_epoch, state.partition_epoch + 1, set(pending.proposed))
        # A new controller has the change of an earlier one as its own once its first record repeats it.
        committed = node.log[: node.hw]
        own = [r.image for r in committed if r.term == node.term and _shown(r.image) == wanted]
        update, images = self._news(cluster, broker, number)
        if update is None or not own or images[:1] != own[:1]:
            return Refused("no answer, and no news of this controller")
        return taken_or(cluster.apply(broker, number, update.term, images[0]), "it ignores it")

    @action("refuse")
    @tentative
    def refuse(self, cluster: Controllers, c: str, b: str) -> Answer:
        """A proposal arrives while its members are about to leave."""
        broker, number = self.id(b), self.voter(c)
        cluster.introduce(number, BrokerState.SHUTTING_DOWN)
        sends = self._send_proposal(cluster, broker, number)
        if sends is None:
            return Refused("nothing is proposed, or not to this controller")
        for send in sends:
            reply = inner(send.message)
            if isinstance(reply, messages.AlterPartitionReply) and reply.error is Error.INELIGIBLE_REPLICA:
                cluster.receive(broker, VOTERS[number], send.message)
        leading = cluster.state(broker).leading
        return taken_or(leading is not None and leading.pending is None, "it is not refused")

    # The data.

    @action("produce")
    def produce(self, cluster: Controllers, b: str) -> Answer:
        """The only record is produced."""
        broker = self.id(b)
        if cluster.acked or any(map(cluster.has, range(len(self.brokers)))):
            return Impossible("there is one record in this spec")
        request = messages.ProduceRequest(1, Batch(0, -1, 1), -1, 1_000)
        cluster.receive(broker, CLIENT, request)
        return taken_or(cluster.has(broker), "nothing was appended")

    @action("fetch")
    def fetch(self, cluster: Controllers, f: str, b: str) -> Answer:
        """A follower fetches, and its next fetch shows its new log end."""
        follower, leader = self.id(f), self.id(b)
        if follower == leader or cluster.has(follower) == cluster.has(leader):
            return Impossible("there is nothing to fetch")
        before = cluster.has(follower)
        cluster.fetch(follower, leader)
        cluster.fetch(follower, leader)
        return taken_or(cluster.has(follower) != before, "it follows another, or in another epoch")

    @action("acknowledge")
    def acknowledge(self, cluster: Controllers, b: str) -> Answer:
        """A producer repeats its batch, and receives the answer once HW has passed it."""
        broker = self.id(b)
        leading = cluster.state(broker).leading
        if cluster.acked or leading is None or not cluster.has(broker):
            return Refused("it is acknowledged already, or not there")
        replica = cluster.brokers[broker].broker.replica
        out: list[Effect] = []
        assert replica.state.leading is not None
        # A refused proposal moves no HW: the next fetch does, which changes nothing else.
        broker_leader.advance_hw(replica.state, replica.state.leading, NOW_MS, out)
        if replica.state.log.hw < 1:
            return Refused("HW is below it")
        cluster.acked = True
        return Accepted()

    @project
    def state(self, cluster: Controllers) -> dict[str, Any]:
        """Every variable of the spec."""
        return abstract(cluster, self.words)


def _shown(metadata: MetadataImage) -> tuple[int, int, int, set[int]]:
    image = metadata.partitions[PARTITION]
    return image.leader, image.leader_epoch, image.partition_epoch, set(image.isr)
