"""A cluster of replog whose records are deleted: cores, files, a controller, and messages in flight.

The binding's system, a `PartitionCluster`.  Metadata waits, by leader epoch, until a broker applies it;
the leader of the latest epoch applies changes within that epoch at once.

A choice left open by the spec has one value here: followers outside the ISR fetch seldom, so that HW does not
wait for them (I3).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from replog.core import messages
from replog.core.effects import Effect, Send
from replog.core.protocol import Protocol
from replog.core.types import CONTROLLER, BrokerImage, Error, MetadataImage
from replog.sim.disks.stored import StoreStorage
from replog_controlled import LONG_AGO_MS, NOW_MS, PARTITION, Shared, sent
from replog_partition import Disk, PartitionCluster, new_brokers, new_controller


@dataclass(frozen=True, slots=True)
class StartFetch:
    """A request of a follower in flight; once it is served, the reply."""

    epoch: int
    to: int
    request: messages.FetchRequest | messages.ListOffsetsRequest
    reply: messages.FetchReply | messages.ListOffsetsReply | None = None


@dataclass(slots=True)
class Trimming(PartitionCluster):
    """The whole cluster at one moment."""

    metadata: dict[int, MetadataImage] = field(default_factory=dict)
    """The controller's last word in each leader epoch."""
    requested: dict[int, int] = field(default_factory=dict)
    """What clients wait for that have requested a deletion, by leader."""
    deleted: int = 0
    fences: int = 0
    shrinks: int = 0

    def copy(self) -> Trimming:
        """Return a snapshot."""
        self.has_own_controller = False  # from now on neither cluster owns it
        return Trimming(
            self._controller, self.brokers.copy(), self.disks.copy(), {**self.metadata},
            {**self.requested}, self.deleted, self.fences, self.shrinks,
            fetches=self.fetches, committed=self.committed, has_own_controller=False,
        )  # fmt: skip

    def leads(self, broker: int) -> bool:
        """Return whether a broker leads in the latest epoch."""
        state = self.state(broker)
        return state.leading is not None and state.leader_epoch == self.image.leader_epoch

    def note_metadata(self) -> None:
        """Remember the metadata as the last ones of their leader epoch."""
        known = {b: BrokerImage(r.broker_epoch, r.state) for b, r in self.registry.brokers.items()}
        image = MetadataImage(self.registry.version, {PARTITION: self.image}, known)
        self.metadata[self.image.leader_epoch] = image

    def expire_session(self, broker: int) -> None:
        """Expire a broker's session now; the leader is notified."""
        PartitionCluster.expire_session(self, broker)
        self._update_leader()

    def heartbeat(self, broker: int) -> None:
        """Send a broker's heartbeat; the leader is notified of its effects."""
        PartitionCluster.heartbeat(self, broker)
        self._update_leader()

    def _update_leader(self) -> None:
        """Make the leader of the latest epoch apply the new metadata of that epoch."""
        if self.leads(self.image.leader):
            self.apply(self.image.leader, self.image.leader_epoch)

    def apply(self, broker: int, which: int) -> None:
        """Make a broker apply the metadata of one leader epoch."""
        self.date_fetches(broker, LONG_AGO_MS)
        broker_epoch = self.registry.brokers[broker].broker_epoch
        self.perform(broker, self.brokers[broker].apply(self.metadata[which], broker_epoch, NOW_MS))

    def find_late(self, leader: int, follower: int) -> bool:
        """Let a leader check its followers, with this one long behind; return whether it left the ISR."""
        leading = self.brokers[leader].state.leading
        assert leading is not None
        self.check_isr(leader, follower)
        return follower not in leading.isr

    def perform(self, broker: int, effects: list[Effect]) -> list[Effect]:
        """Perform effects, and have proposals answered at once."""
        PartitionCluster.perform(self, broker, effects)
        for proposal in sent(effects, messages.AlterPartitionRequest):
            reply = self.decide(broker, proposal)
            assert isinstance(reply, messages.AlterPartitionReply)
            self.perform(broker, self.brokers[broker].receive(CONTROLLER, reply, NOW_MS))
        return effects

    def put(self, broker: int, sent: Send) -> None:
        """Put a request in flight, or note the answer to a client."""
        match sent.message:
            case messages.FetchRequest() | messages.ListOffsetsRequest() as request:
                self.put_fetch(broker, StartFetch(self.state(broker).leader_epoch, sent.to, request))
            case messages.DeleteRecordsReply(error=error):
                offset = self.requested.pop(broker)
                self.deleted = max(self.deleted, offset if error is Error.NONE else 0)
            case _:
                pass


def new_cluster(brokers: int, first: int, rules: Protocol) -> Trimming:
    """Return a cluster with an empty partition and one leader, whose metadata all brokers have received."""
    replicas = (first, *(broker for broker in range(brokers) if broker != first))
    disks = Shared(Disk(StoreStorage()) for _ in range(brokers))
    cluster = Trimming(new_controller(rules, 1, replicas), new_brokers(rules, 1, brokers), disks)
    cluster.introduce(0)
    return cluster
