"""Scenario commands for several controllers: elections, fetches, and a broker's choice of controller.

Controllers are numbered 1, 2, 3; controller 1 is active at first.  Like brokers they do nothing by
themselves: a change is committed once `replicate` lets another controller fetch it.

Not here: commands on brokers (`commands`), and what controllers do (`core.quorum`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from replog.core.effects import Timer
from replog.core.messages import HeartbeatRequest, OfTerm
from replog.core.quorum.node import ControllerNode
from replog.core.quorum_messages import MetadataFetch, MetadataFetchReply, VoteReply, VoteRequest
from replog.sim.cluster.node import Alarm, Delivery, Item
from replog.sim.cluster.quorum import ControllerHost, Quorum
from replog.sim.cluster.world import World
from replog.sim.scenarios.describe import describe_isr

BETWEEN_CONTROLLERS = (VoteRequest, VoteReply, MetadataFetch, MetadataFetchReply)


class Cluster(Protocol):
    """The parts of a scenario's cluster that a command needs."""

    world: World

    def take(self, wanted: Callable[[Item], bool]) -> bool:
        """Execute the first pending item of a kind; return whether there was one."""

    def settle(self) -> None:
        """Deliver everything between brokers and controllers."""


def quorum_of(cluster: Cluster) -> Quorum:
    """Return the controllers of a scenario; ValueError if there is only one."""
    if cluster.world.quorum is None:
        raise ValueError("the cluster has one controller")
    return cluster.world.quorum


def host_of(cluster: Cluster, number: str) -> ControllerHost:
    """Return the controller with a number."""
    return quorum_of(cluster).hosts[-int(number)]


def _alive(cluster: Cluster, number: str) -> ControllerNode:
    node = host_of(cluster, number).node
    if node is None:
        raise ValueError(f"controller {number} is down")
    return node


def _exchange(cluster: Cluster, *numbers: str) -> None:
    """Deliver all messages between these controllers, and lose those for the others."""
    among = {-int(number) for number in numbers}

    def wanted(item: Item) -> bool:
        if not isinstance(item, Delivery) or not isinstance(item.message, BETWEEN_CONTROLLERS):
            return False
        return {item.source, item.to} <= among

    while cluster.take(wanted):
        pass
    for entry in cluster.world.pending():
        item = entry[2]
        if isinstance(item, Delivery) and isinstance(item.message, BETWEEN_CONTROLLERS):
            cluster.world.drop(entry)


def elect_controller(cluster: Cluster, controller: str, by: str) -> None:
    """`elect-controller 2 by=3`: controller 2 stands for election, and controller 3 votes."""
    node = _alive(cluster, controller)
    # A second time if it was behind: from the first voter it learns the newest term.
    for attempt in range(2):
        if attempt == 0 or not node.is_active:
            quorum_of(cluster).act(host_of(cluster, controller), node.stand(cluster.world.now_ms))
            _exchange(cluster, controller, by)


def replicate(cluster: Cluster, controller: str, to: str) -> None:
    """`replicate 1 to=2`: controller 2 fetches all that controller 1 has, and acknowledges it."""
    node = _alive(cluster, to)
    node.active = host_of(cluster, controller).address
    quorum_of(cluster).act(host_of(cluster, to), node.fetch())
    _exchange(cluster, controller, to)


def crash_controller(cluster: Cluster, controller: str) -> None:
    """`crash-controller 1`: kill -9; its files stay."""
    quorum_of(cluster).crash(host_of(cluster, controller).address)


def restart_controller(cluster: Cluster, controller: str) -> None:
    """`restart-controller 1`: start the process again."""
    quorum_of(cluster).restart(host_of(cluster, controller).address)


def beat(cluster: Cluster, broker: str, controller: str) -> None:
    """`beat 0 controller=1`: a heartbeat of broker 0 arrives at controller 1, and its answer at broker 0."""
    process = cluster.world.nodes[int(broker)].broker
    if process is None or process.contact is None:
        raise ValueError(f"broker {broker} has no controllers to choose from")
    member, address = process.membership, host_of(cluster, controller).address
    request = HeartbeatRequest(member.broker_id, member.broker_epoch, member.metadata_version)
    cluster.world.send(member.broker_id, address, OfTerm(process.contact.newest, request))
    between = {member.broker_id, address}
    while cluster.take(lambda item: isinstance(item, Delivery) and {item.source, item.to} == between):
        pass


def retry(cluster: Cluster, broker: str) -> None:
    """`retry 0`: broker 0 repeats its ISR proposal to the controller that it follows."""
    node = cluster.world.nodes[int(broker)]
    leading = None if node.broker is None else node.broker.state.leading
    token = -1 if leading is None or leading.pending is None else leading.pending.correlation
    cluster.take(
        lambda item: (
            isinstance(item, Alarm)
            and (item.owner, item.timer, item.token) == (node.broker_id, Timer.ALTER_RETRY, token)
        )
    )
    cluster.settle()


def lose(cluster: Cluster, broker: str) -> None:
    """`lose 0`: messages in flight from controllers to broker 0 are lost."""
    for entry in cluster.world.pending():
        item = entry[2]
        if isinstance(item, Delivery) and item.to == int(broker) and isinstance(item.message, OfTerm):
            cluster.world.drop(entry)


def describe_controllers(quorum: Quorum) -> dict[int, str]:
    """Return a line for each controller: its term, its log, and the partition according to its log."""
    return {
        address: _describe(number, host) for number, (address, host) in enumerate(quorum.hosts.items(), 1)
    }


def _describe(number: int, host: ControllerHost) -> str:
    node = host.node
    if node is None:
        return f"controller {number}: down, {len(host.disk.log)} records on disk"
    role = "active" if node.decides else "elected" if node.is_active else "follows"
    image = next(iter(node.log[-1].image.partitions.values()))
    log = f"{len(node.log)} records, {node.hw} committed"
    return f"controller {number}: {role} in term {node.term}, {log}: {describe_isr(image)}"


COMMANDS = (elect_controller, replicate, crash_controller, restart_controller, beat, retry, lose)
