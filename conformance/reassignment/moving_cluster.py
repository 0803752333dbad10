"""A cluster of replog whose partition moves: cores, disks, a controller, and messages in flight.

The binding's system, a `PartitionCluster`.  Metadata waits, by partition epoch, until a broker is to apply
it, and may be skipped.

Two choices left open by the spec have one value here.  Metadata marks no broker as fenced, so
that a leader proposes any follower that fetches, and the controller refuses (replication.spec has the
leader's own check).  And followers outside the ISR fetch seldom, so that HW does not wait for them (I3).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from replog.core.broker.state import ReplicaState
from replog.core.effects import Send
from replog.core.messages import AlterPartitionReply, AlterPartitionRequest, FetchReply, FetchRequest
from replog.core.protocol import Protocol
from replog.core.types import BrokerImage, BrokerState, MetadataImage, PartitionImage
from replog.sim.cluster.storage import MemoryStorage
from replog_controlled import NOW_MS, PARTITION, Shared
from replog_partition import Disk, PartitionCluster, new_brokers, new_controller


@dataclass(frozen=True, slots=True)
class Fetch:
    """A fetch in flight: its sender at the time, and its receiver; once it is served, the reply."""

    sender: ReplicaState
    to: int
    request: FetchRequest
    reply: FetchReply | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The events of the environment so far, for which the models have budgets."""

    reassignments: int = 0
    fences: int = 0
    shrinks: int = 0
    elections: int = 0


@dataclass(slots=True)
class Moving(PartitionCluster):
    """The whole cluster at one moment."""

    target: frozenset[int]
    metadata: dict[int, PartitionImage] = field(default_factory=dict)
    """What the controller has decided, by partition epoch."""
    applied: dict[int, int] = field(default_factory=dict)
    proposals: dict[int, AlterPartitionRequest] = field(default_factory=dict)
    answers: dict[int, AlterPartitionReply] = field(default_factory=dict)
    """To proposals that were granted, until the metadata of the change, which has the same, is applied."""
    spent: Done = Done()

    def copy(self) -> Moving:
        """Return a snapshot."""
        self.has_own_controller = False  # from now on neither cluster owns it
        return Moving(
            self._controller, self.brokers.copy(), self.disks.copy(), self.target, {**self.metadata},
            {**self.applied}, {**self.proposals}, {**self.answers}, self.spent,
            fetches=self.fetches, committed=self.committed, has_own_controller=False,
        )  # fmt: skip

    def note_metadata(self) -> None:
        """Remember a decision by its partition epoch."""
        self.metadata.setdefault(self.image.partition_epoch, self.image)

    def apply(self, broker: int, which: int) -> None:
        """Make a broker apply the partition's metadata of one version."""
        registered = self.registry.brokers
        known = {b: BrokerImage(r.broker_epoch, BrokerState.ACTIVE) for b, r in registered.items()}
        update = MetadataImage(which, {PARTITION: self.metadata[which]}, known)
        self.perform(broker, self.brokers[broker].apply(update, known[broker].broker_epoch, NOW_MS))
        self.applied[broker] = which
        self.proposals.pop(broker, None)
        self.answers.pop(broker, None)

    def put(self, broker: int, sent: Send) -> None:
        """Put a request or a proposal in flight."""
        match sent.message:
            case FetchRequest() as request:
                self.put_fetch(broker, Fetch(self.state(broker).copy(), sent.to, request))
            case AlterPartitionRequest() as request:
                self.proposals[broker] = request
            case _:
                pass


def new_cluster(brokers: int, replicas: tuple[int, ...], min_isr: int, rules: Protocol) -> Moving:
    """Return a cluster with an empty partition, led by the first replica, known to all brokers."""
    disks = Shared(Disk(MemoryStorage()) for _ in range(brokers))
    controller = new_controller(rules, min_isr, replicas)
    cluster = Moving(controller, new_brokers(rules, min_isr, brokers), disks, frozenset(replicas))
    cluster.note_metadata()
    cluster.introduce(0)
    return cluster
