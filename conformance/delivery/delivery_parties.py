"""Broker, producer and consumer of the delivery binding, and their messages.

Not here: which of it is which action (`binding`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from replog.core.broker.groups import Commit, Groups
from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.effects import Effect, Send
from replog.core.messages import ProduceReply, ProduceRequest
from replog.core.types import BrokerImage, BrokerState, MetadataImage, PartitionImage
from replog.sim.cluster.clients import ClientObserver, Producer

BROKER, ABSENT, PRODUCER, READER = 0, 1, -1, 7
NOW_MS = 1_000_000
IMAGE = PartitionImage((BROKER, ABSENT), BROKER, 0, 0, (BROKER,))


@dataclass(slots=True)
class Acknowledged(ClientObserver):
    """The messages that were acknowledged to the producer, which causes no other call."""

    numbers: set[int] = field(default_factory=set)

    def acknowledged(self, base_offset: int, count: int, body: bytes) -> None:
        """Record the number at the end of the body."""
        self.numbers.add(int(body.rpartition(b"-")[2]))


@dataclass(slots=True)
class Parties:
    """Broker, producer and consumer at one moment."""

    messages: Replica
    commits: Replica
    known: Acknowledged
    producer: Producer
    groups: Groups = field(default_factory=Groups)
    generation: int = 0
    connection: list[tuple[int, ProduceRequest]] = field(default_factory=list)
    answers: dict[int, ProduceReply] = field(default_factory=dict)
    tries: dict[int, int] = field(default_factory=dict)
    position: int = 0
    stage: str = "idle"
    late: tuple[Commit, int] | None = None
    """The commit of a former owner and its generation, still on its way."""
    output: dict[int, int] = field(default_factory=dict)
    """How often the record at an offset was processed."""
    output_offset: int = 0
    """Where an output that stores its own offset continues."""

    def copy(self) -> Parties:
        """Return an independent copy."""
        known = Acknowledged(set(self.known.numbers))
        outstanding = [replace(waiting) for waiting in self.producer.outstanding]
        producer = replace(self.producer, observer=known, outstanding=outstanding)
        return Parties(
            self.messages.copy(), self.commits.copy(), known, producer, self.groups.copy(), self.generation,
            [*self.connection], {**self.answers}, {**self.tries}, self.position, self.stage, self.late,
            {**self.output}, self.output_offset,
        )  # fmt: skip


def leader_of(partition: str) -> Replica:
    """Return the leader of a partition, alone in its ISR."""
    replica = Replica(ReplicaState(BROKER, partition))
    replica.apply(
        MetadataImage(0, {partition: IMAGE}, {BROKER: BrokerImage(1, BrokerState.ACTIVE)}), 1, NOW_MS
    )
    return replica


def apply_minimum(replica: Replica, min_isr: int) -> None:
    """Let a leader apply another min.insync.replicas."""
    state = replica.state
    image = replace(IMAGE, partition_epoch=state.partition_epoch + 1, min_isr=min_isr)
    replica.apply(MetadataImage(1, {state.partition: image}, state.brokers), 1, NOW_MS)


def produced(leader: Replica, request: ProduceRequest) -> ProduceReply:
    """Produce to a leader that is alone in the ISR, so it answers at once."""
    (reply,) = messages_of(leader.receive(PRODUCER, request, NOW_MS), ProduceReply)
    answer: ProduceReply = reply
    return answer


def messages_of(effects: list[Effect], kind: type[Any]) -> list[Any]:
    """Return the messages of a kind among the sent ones."""
    return [
        effect.message for effect in effects if isinstance(effect, Send) and isinstance(effect.message, kind)
    ]
