"""One partition of a cluster, as if it were the only one.

    view = PartitionView(world, "t-1")
    view.image, view.nodes[2].broker.replica, view.nodes[2].storage

A view has what the watch over a world reads, and changes nothing.  Not here: the world itself (`world`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.controller.controller import Controller
from replog.core.types import PartitionImage
from replog.sim.cluster.node import Node
from replog.sim.cluster.quorum import Quorum
from replog.sim.cluster.several import SeveralStorage
from replog.sim.cluster.storage import Storage
from replog.sim.cluster.world import World


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A broker process with one replica."""

    membership: Membership
    replica: Replica


@dataclass(frozen=True, slots=True)
class NodeView:
    """A machine with one partition's disk."""

    node: Node
    partition: str

    @property
    def broker_id(self) -> int:
        """Return the broker's number."""
        return self.node.broker_id

    @property
    def incarnation(self) -> int:
        """Return the number of the broker's current process."""
        return self.node.incarnation

    @property
    def broker(self) -> BrokerView | None:
        """Return the process, if one runs."""
        broker = self.node.broker
        return None if broker is None else BrokerView(broker.membership, broker.replicas[self.partition])

    @property
    def storage(self) -> Storage:
        """Return the partition's disk."""
        storage = self.node.storage
        return storage.parts[self.partition] if isinstance(storage, SeveralStorage) else storage


class PartitionView:
    """A world restricted to one of several partitions."""

    def __init__(self, world: World, partition: str) -> None:
        self.world = world
        self.partition = partition
        self.nodes = {number: NodeView(node, partition) for number, node in world.nodes.items()}

    @property
    def image(self) -> PartitionImage:
        """Return the controller's current metadata on the partition."""
        return self.world.controller.state.partitions[self.partition]

    @property
    def controller(self) -> Controller:
        """Return the controller of all partitions."""
        return self.world.controller

    @property
    def quorum(self) -> Quorum | None:
        """Return the controllers, if there are several."""
        return self.world.quorum

    def running(self) -> Iterator[NodeView]:
        """Yield the nodes with a living process, by id."""
        return (self.nodes[node.broker_id] for node in self.world.running())


AnyWorld = World | PartitionView
AnyNode = Node | NodeView


def is_current(world: AnyWorld, member: int) -> bool:
    """Return whether a member runs, with the incarnation known to the controller."""
    broker, known = world.nodes[member].broker, world.controller.state.brokers.get(member)
    return broker is not None and known is not None and broker.membership.broker_epoch == known.broker_epoch
