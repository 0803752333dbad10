"""Three controllers and some brokers of replog, stepped by hand: the system under test of the binding.

An action moves a message of replog, from one process to another; other messages sent
meanwhile are lost, except for answers to ISR proposals, which wait until they are delivered.

Three things that the spec leaves out have one value here.  Brokers are registered and live whenever a
controller decides, so that no record concerns them.  Metadata has all brokers fenced, so that a leader
proposes no ISR by itself, and HW waits only for members.  And a joining follower has just fetched.

A broker has another partition, which nobody leads, so that all messages name theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from typing import Any, TypeVar, cast

from replog.core import messages
from replog.core.broker.broker import Broker
from replog.core.broker.contact import Contact
from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, ReplicaState
from replog.core.controller.state import ControllerConfig, ControllerState, Registration
from replog.core.effects import (
    Effect,
    Event,
    Fired,
    Received,
    Send,
    StoreRecords,
    StoreVote,
    Timer,
    TimerOf,
)
from replog.core.protocol import Protocol
from replog.core.quorum.node import ControllerNode
from replog.core.quorum.records import record_of
from replog.core.quorum_messages import MetadataFetch, MetadataFetchReply
from replog.core.types import BrokerImage, BrokerState, Error, MetadataImage, PartitionImage
from replog.sim.cluster.quorum import ControllerDisk, addresses
from replog_controlled import NOW_MS, PARTITION, Shared, sent
from specchk.conform.contract.binding import Accepted, Answer

F = TypeVar("F", bound=Callable[..., Answer])
VOTERS = addresses(3)
LATE_MS = NOW_MS + 1_000_000
OTHER = "t-1"
NO_NEWS = 1 << 30
"""A metadata version after which there is none."""


class Process:
    """A broker process that can be copied."""

    __slots__ = ("broker", "state")

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.state = broker.state

    @property
    def contact(self) -> Contact:
        """Return the process's view of the controllers."""
        assert self.broker.contact is not None
        return self.broker.contact

    def copy(self) -> Process:
        """Return an independent copy."""
        member, replicas = replace(self.broker.membership), self.broker.replicas.values()
        return Process(Broker(member, *(each.copy() for each in replicas), contact=self.contact.copy()))


@dataclass(slots=True)
class Controllers:
    """The whole cluster at one moment; controllers are numbered as in the spec."""

    nodes: Shared[ControllerNode]
    brokers: Shared[Process]
    first: int
    disks: dict[int, tuple[int, int, tuple[object, ...]]] = field(default_factory=dict)
    """Of each controller what it has written: its term, its vote, its log."""
    answers: dict[tuple[int, int], messages.OfTerm] = field(default_factory=dict)
    """The last grant that a controller has sent to a broker."""
    isr: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The ISR that each broker knows; replog's followers do not keep it."""
    acked: bool = False

    def copy(self) -> Controllers:
        """Return a snapshot."""
        return Controllers(
            self.nodes.copy(), self.brokers.copy(), self.first, {**self.disks}, {**self.answers},
            {**self.isr}, self.acked,
        )  # fmt: skip

    # The controllers.

    def handle(self, number: int, event: Event, now_ms: int = NOW_MS) -> list[Send]:
        """Let a controller handle an event; return the messages it sends."""
        return self.perform(number, self.nodes[number].handle(event, now_ms))

    def perform(self, number: int, effects: list[Effect]) -> list[Send]:
        """Perform a controller's writes, and hold back its grants; return the messages it sends."""
        for effect in effects:
            if isinstance(effect, StoreVote | StoreRecords):
                term, vote, log = self.disks[number]
                disk = ControllerDisk(term, vote, list(log))  # type: ignore[arg-type]
                disk.perform(effect)
                self.disks[number] = disk.term, disk.vote, tuple(disk.log)
            elif isinstance(effect, Send) and isinstance(effect.message, messages.OfTerm):
                reply = inner(effect.message)
                if isinstance(reply, messages.AlterPartitionReply) and reply.error is Error.NONE:
                    self.answers[number, effect.to] = effect.message
        return [effect for effect in effects if isinstance(effect, Send)]

    def pass_on(self, source: int, to: int, sends: list[Send]) -> list[Send]:
        """Deliver one controller's messages to another; return the messages that the other sends."""
        found: list[Send] = []
        for send in sends:
            if send.to == VOTERS[to]:
                found += self.handle(to, Received(VOTERS[source], send.message))
        return found

    def give_up(self, number: int) -> None:
        """Let an active controller miss a majority's fetches until it resigns."""
        if self.nodes.seen[number].is_active:
            self.handle(number, Fired(Timer.QUORUM), LATE_MS)

    def exchange(self, follower: int, active: int) -> bool:
        """Let a controller fetch from another all that it lacks, and acknowledge; return whether it may."""
        node = self.nodes[follower]
        node.active = VOTERS[active]
        # At most once for each term of a log; a controller that never agrees has an error.
        for _ in range(len(node.log) + 1):
            answers = self.pass_on(follower, active, self.perform(follower, node.fetch()))
            replies = [send for send in answers if isinstance(send.message, MetadataFetchReply)]
            if not replies:
                return False
            self.pass_on(active, follower, replies)
            (reply,) = (send.message for send in replies)
            assert isinstance(reply, MetadataFetchReply)
            if reply.diverging is None:
                break
        fetches = [send for send in self.perform(follower, node.fetch())
                   if isinstance(send.message, MetadataFetch)]  # fmt: skip
        self.pass_on(follower, active, fetches)  # the answer to this one is lost
        return True

    def introduce(self, number: int, state: BrokerState = BrokerState.ACTIVE) -> None:
        """Make every broker registered and live, or leaving, in a controller's view."""
        controller = self.nodes[number].controller
        if controller is not None:
            brokers = controller.state.brokers
            for broker, known in brokers.items():
                brokers[broker] = replace(known, state=state, last_seen_ms=NOW_MS)

    # The brokers.

    def state(self, broker: int) -> ReplicaState:
        """Return the state of a broker's replica, for reading."""
        return self.brokers.seen[broker].state

    def receive(self, broker: int, source: int, message: messages.Message) -> list[Send]:
        """Let a broker handle a message; return the messages it sends."""
        if not isinstance(message, messages.OfTerm):
            message = messages.ForPartition(PARTITION, message)
        return self._sent(broker, Received(source, message))

    def fire(self, broker: int, timer: Timer, token: int = 0) -> list[Send]:
        """Let a broker's timer ring; return the messages it sends."""
        return self._sent(broker, TimerOf(PARTITION, Fired(timer, token)))

    def _sent(self, broker: int, event: Event) -> list[Send]:
        effects = self.brokers[broker].broker.handle(event, NOW_MS)
        sends = [effect for effect in effects if isinstance(effect, Send)]
        return [
            Send(s.to, s.message if isinstance(s.message, messages.OfTerm) else inner(s.message))
            for s in sends
        ]

    def request(self, broker: int, number: int, after_version: int) -> messages.OfTerm | None:
        """Let a broker request metadata from a controller; return the answer."""
        known = self.brokers.seen[broker].contact.newest
        request = messages.OfTerm(known, messages.MetadataRequest(broker, after_version))
        answers = sent(self.handle(number, Received(broker, request)), messages.OfTerm)
        return next((a for a in answers if isinstance(a.message, messages.MetadataUpdate)), None)

    def meet(self, broker: int, number: int) -> bool:
        """Announce a controller to a broker without new metadata; return whether the broker follows it."""
        answer = self.request(broker, number, NO_NEWS)
        if answer is None:
            return False
        self.receive(broker, VOTERS[number], answer)
        return self.brokers.seen[broker].contact.address == VOTERS[number]

    def apply(self, broker: int, number: int, term: int, image: MetadataImage) -> bool:
        """Deliver metadata from a controller; return whether the broker's partition has changed."""
        before = self.state(broker).partition_epoch
        fenced = {b: BrokerImage(k.broker_epoch, BrokerState.FENCED) for b, k in image.brokers.items()}
        update = messages.MetadataUpdate((replace(image, brokers=fenced),))
        self.receive(broker, VOTERS[number], messages.OfTerm(term, update))
        if self.state(broker).partition_epoch == before:
            return False
        self.isr[broker] = image.partitions[PARTITION].isr
        return True

    def has(self, broker: int) -> bool:
        """Return whether a broker has the record."""
        return self.state(broker).log.leo > 0

    def fetch(self, follower: int, leader: int) -> None:
        """Let a follower fetch from this leader, if it is the one that it knows."""
        following = self.state(follower).following
        if following is None or self.state(follower).leader_id != leader:
            return
        lost = following.in_flight
        sends = self.fire(follower, Timer.SEND_FETCH if lost < 0 else Timer.FETCH_TIMEOUT, max(lost, 0))
        for request in sent(sends, messages.FetchRequest):
            for answer in self.receive(leader, follower, request):
                if isinstance(answer.message, messages.FetchReply) and answer.to == follower:
                    self.receive(follower, leader, answer.message)


def tentative(handler: F) -> F:
    """Undo the changes of a step that is refused in the end.

    A lost election leaves a newer term, the first controller to fetch resigns, and a broker learns of
    a controller before that one refuses.  These are separate steps of replog; the spec combines each with its
    consequences.
    """

    @wraps(handler)
    def attempt(self: object, system: Any, *arguments: str) -> Answer:
        before = system.copy()
        answer = handler(self, system, *arguments)
        if answer != Accepted():
            for each in fields(system):
                setattr(system, each.name, getattr(before, each.name))
        return answer

    return cast("F", attempt)


def inner(message: messages.Message) -> messages.Message:
    """Return what a message is about, without its term and its partition."""
    while isinstance(message, messages.OfTerm | messages.ForPartition):
        message = message.message
    return message


def new_voters(rules: Protocol, brokers: int) -> Controllers:
    """Return controllers of which none is active, with metadata of brokers, and no brokers."""
    config = ControllerConfig(min_isr=1)
    replicas = tuple(range(brokers))
    partitions = {PARTITION: PartitionImage(replicas, 0, 0, 0, replicas)}
    known = {broker: BrokerImage(broker + 1, BrokerState.ACTIVE) for broker in replicas}
    registered = {broker: Registration(1, broker + 1, BrokerState.ACTIVE, NOW_MS) for broker in replicas}
    image = MetadataImage(0, partitions, known)
    first = record_of(ControllerState(config, rules, registered, partitions, [image]), 1)
    nodes = [ControllerNode(voter, VOTERS, config, rules, 1, [first], hw=1) for voter in VOTERS]
    return Controllers(Shared(nodes), Shared([]), 0, dict.fromkeys(range(3), (1, 0, (first,))))


def new_controllers(rules: Protocol, brokers: int) -> Controllers:
    """Return controllers of which the first is active, and brokers of which the first is the leader."""
    cluster, replicas = new_voters(rules, brokers), range(brokers)
    cluster.nodes[0].activate(NOW_MS)
    image = cluster.nodes.seen[0].log[0].image
    processes = [
        Process(
            Broker(
                Membership(broker, 1, coalesces=True),
                *(
                    Replica(ReplicaState(broker, name, Config(min_isr=1), rules))
                    for name in (PARTITION, OTHER)
                ),
                contact=Contact(VOTERS, rules.newest_only),
            )
        )
        for broker in replicas
    ]
    cluster.brokers = Shared(processes)
    for broker in replicas:
        cluster.receive(
            broker, VOTERS[0], messages.OfTerm(1, messages.RegisterReply(1, Error.NONE, broker + 1))
        )
        cluster.apply(broker, 0, 1, image)
    return cluster
