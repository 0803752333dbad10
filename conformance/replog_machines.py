"""replog's machines in a binding: the start, snapshots and observation of a cluster, and the events of disks.

The actions of replication.spec that no message brings: the page cache is written, the HW's checkpoint,
processes die and start again.  `binding.py` has the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from replog.core.effects import Timer
from replog.core.log.epochs import EpochCache
from replog.core.protocol import Protocol
from replog.core.types import NO_LEADER, BrokerState, Error, PartitionImage, Role
from replog_cluster import Cluster, Rules, new_cluster
from replog_controlled import DOWN, ControlledBinding, taken_or
from replog_rules import TODAY
from replog_state import Kept, abstract
from specchk.conform.contract.binding import Accepted, Answer, Impossible, action, project, reopen, unchanged
from specchk.ir.program import Program


class MachinesBinding(ControlledBinding[Cluster]):
    """Clusters of replog, and the actions of their machines."""

    rules = TODAY

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.acks = -1 if self.constants["acks"] == "all" else 1

    def cluster_rules(self) -> Rules:
        """Return the parameters of the model's clusters: replog's defaults, and disks in memory."""
        leader = self.id(self.constants["first_leader"])
        return Rules(len(self.names), leader, self.constants["min_isr"], Protocol())

    def start(self) -> Cluster:
        """Return a new cluster."""
        return new_cluster(self.cluster_rules())

    @reopen
    def again(self, cluster: Cluster) -> Cluster:
        """Return the cluster with the log and the epoch cache of every running broker as its disk has them.

        HW is kept: the disk has the last checkpoint.  So are epochs that have no record yet, which a
        recovery drops, and the count of records until the next flush.
        """
        reopened = cluster.copy()
        for broker in range(len(self.names)):
            node = reopened.nodes[broker]
            if node.process is None:
                continue
            disk = node.storage.copy()
            disk.crash()
            log = disk.recover().log
            state = node.process.state
            empty = [entry for entry in state.log.epochs.entries if entry[1] >= log.leo]
            kept = [entry for entry in log.epochs.entries if entry[1] < log.leo]
            log.epochs = EpochCache((*kept, *empty))
            log.hw, log.unflushed = state.log.hw, state.log.unflushed
            state.log = log
        return reopened

    @project
    def state(self, cluster: Cluster) -> dict[str, object]:
        """Return every variable of the spec."""
        return abstract(cluster, self.names, self.epochs)

    @unchanged
    def as_kept(self, kept: Cluster) -> Callable[[Any], bool]:
        """Return the comparison of clusters that refused a step with the cluster they were restored from."""
        return Kept(kept, self.names, self.epochs).is_as

    @action("checkpoint_hw")
    def checkpoint_hw(self, cluster: Cluster, broker: str) -> Answer:
        """The checkpoint's timer rings, unless its result is never read."""
        number = self.id(broker)
        state = cluster.state(number)
        if state is None or cluster.spent.crashes == self.constants["MaxCrashes"]:
            return DOWN if state is None else Impossible("no more crashes in this model")
        if cluster.nodes.seen[number].storage.hw_checkpoint == state.log.hw:
            return Impossible("there is nothing new to write")
        cluster.fire(number, Timer.HW_CHECKPOINT)
        is_written = cluster.nodes[number].storage.hw_checkpoint == cluster.running(number).log.hw
        return taken_or(is_written, "it has no role yet")

    @action("flush")
    def flush(self, cluster: Cluster, broker: str) -> Answer:
        """The operating system writes back its page cache."""
        storage = cluster.nodes.seen[self.id(broker)].storage
        state = cluster.state(self.id(broker))
        if cluster.spent.losses == self.constants["MaxPowerLosses"] or storage.flushed() == storage.end():
            return Impossible("no more power losses in this model, or nothing to write")
        if state is None or state.role is Role.NONE:
            return Impossible("the spec lets brokers flush that run and know their role")
        cluster.nodes[self.id(broker)].storage.flush()
        return Accepted()

    @action("crash")
    def crash(self, cluster: Cluster, broker: str) -> Answer:
        """The process dies; the page cache is kept."""
        number = self.id(broker)
        if cluster.state(number) is None or cluster.spent.crashes == self.constants["MaxCrashes"]:
            return Impossible("no process, or no more crashes in this model")
        cluster.nodes[number].storage.crash()
        cluster.end_process(number)
        cluster.spent = replace(cluster.spent, crashes=cluster.spent.crashes + 1)
        return Accepted()

    @action("stop")
    def stop(self, cluster: Cluster, broker: str) -> Answer:
        """The process stops cleanly: HW is written, all is synced, the marker is left."""
        number = self.id(broker)
        state = cluster.state(number)
        if not self.constants["clean_stops"] or cluster.spent.crashes == self.constants["MaxCrashes"]:
            return Impossible("no more stops in this model")
        if state is None or state.role is Role.NONE:
            return DOWN if state is None else Impossible("the spec lets brokers stop that know their role")
        cluster.fire(number, Timer.HW_CHECKPOINT)
        node = cluster.nodes[number]
        node.storage.close(node.broker_epochs[-1])
        cluster.end_process(number)
        cluster.spent = replace(cluster.spent, crashes=cluster.spent.crashes + 1)
        return Accepted()

    @action("power_loss")
    def power_loss(self, cluster: Cluster, broker: str) -> Answer:
        """The machine loses power, and all data that was not flushed."""
        number = self.id(broker)
        spent, storage = cluster.spent, cluster.nodes.seen[number].storage
        is_over = (
            self.constants["MaxCrashes"] == spent.crashes or self.constants["MaxPowerLosses"] == spent.losses
        )
        if cluster.state(number) is None or is_over or storage.flushed() == storage.end():
            return Impossible("no process, nothing to lose, or no more power losses in this model")
        cluster.nodes[number].storage.lose_power(lambda choices: 0)
        cluster.end_process(number)
        cluster.spent = replace(spent, crashes=spent.crashes + 1, losses=spent.losses + 1)
        return Accepted()

    @action("restart")
    def restart(self, cluster: Cluster, broker: str) -> Answer:
        """A new process starts on the disk, and registers."""
        number, image = self.id(broker), cluster.image
        if cluster.state(number) is not None:
            return Impossible("a process is running")
        is_clean = cluster.nodes.seen[number].storage.copy().recover().previous_broker_epoch >= 0
        elr = [member for member in image.elr if is_clean or member != number]
        brokers = cluster.registry.brokers
        heirs = [b for b in candidates(image.isr, elr, image) if brokers[b].state is BrokerState.ACTIVE]
        if image.leader == NO_LEADER and heirs and image.leader_epoch == self.epochs[-1]:
            return Impossible("no more elections in this model")
        error = cluster.register(number)
        return taken_or(error is Error.NONE, error.name)


def candidates(isr: Collection[int], elr: Collection[int], image: PartitionImage) -> Collection[int]:
    """Return the brokers that may lead with this ISR and this ELR, live or not."""
    return isr or elr or ((image.last_known_leader,) if image.last_known_leader != NO_LEADER else ())
