"""The partition of the demo: its clients, its reportable changes, and its final state.

Not here: the cluster (`stage`), and what a table looks like (`tables`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from replog.core.types import NO_LEADER, Role
from replog.demo.clients import LedgerConsumer, LedgerProducer
from replog.demo.files import BrokerFiles
from replog.demo.verdict import Ending, Log, Verdict, judge
from replog.sim.cluster.node import Node
from replog.sim.cluster.world import World


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """The last known state of a replica, for detecting changes."""

    role: Role = Role.NONE
    epoch: int = -1
    end: int = 0


class StagedPartition:
    """The partition of a world, its producer with acks=all, and its consumer."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.producer = LedgerProducer("order", -1, self.leader)
        self.consumer = LedgerConsumer(self.leader)
        self._seen = {broker: ReplicaStatus() for broker in self.world.nodes}
        self._image = self.world.image

    def leader(self) -> int:
        """Return the leader according to the controller."""
        return self.world.image.leader

    def look(self, broker: int) -> ReplicaStatus:
        """Return the current state of a broker's replica; if it is down, only the end of its files."""
        node = self.world.nodes[broker]
        if node.broker is None:
            return ReplicaStatus(Role.NONE, -1, node.storage.end())
        state = node.broker.replica.state
        return ReplicaStatus(state.role, state.leader_epoch, state.log.leo)

    def news(self) -> Iterator[str]:
        """Yield the changes since the last call: elections, ISR, roles, truncations."""
        before, now = self._image, self.world.image
        self._image = now
        if (now.leader, now.leader_epoch) != (before.leader, before.leader_epoch):
            who = f"broker {now.leader} leads" if now.leader >= 0 else "no leader"
            doubt = ", recovering" if now.is_recovering else ""
            yield f"controller: {who}, epoch {now.leader_epoch}, ISR {set_of(now.isr)}{doubt}"
        elif now.isr != before.isr:
            yield f"controller: ISR {set_of(before.isr)} -> {set_of(now.isr)}"
        for broker, seen in self._seen.items():
            status = self.look(broker)
            if status != seen:
                self._seen[broker] = status
                yield from _changes(broker, seen, status)

    def serving(self) -> tuple[int, int]:
        """Return the leader according to the controller and itself, and its HW; `NO_LEADER` if none."""
        image = self.world.image
        broker = None if image.leader == NO_LEADER else self.world.nodes[image.leader].broker
        if broker is None or broker.replica.state.role is not Role.LEADER:
            return NO_LEADER, 0
        state = broker.replica.state
        return (image.leader, state.log.hw) if state.leader_epoch == image.leader_epoch else (NO_LEADER, 0)

    def judge(self, serving: tuple[int, int]) -> Verdict:
        """Compare the files of stopped brokers with the clients' ledgers."""
        # From the files, not from memory: the verdict is about what would be there tomorrow.
        logs = [_files_of(node) for node in self.world.nodes.values()]
        return judge(self.producer.promised, self.consumer.read, Ending(*serving, logs))


def _changes(broker: int, before: ReplicaStatus, now: ReplicaStatus) -> Iterator[str]:
    if now.end < before.end:
        yield f"broker {broker}: truncates its log, {before.end} -> {now.end}"
    if now.role is not before.role and now.role is not Role.NONE:
        yield f"broker {broker}: {now.role.value} in epoch {now.epoch}, LEO {now.end}"


def _files_of(node: Node) -> Log:
    """Read the files of a stopped broker, without changing them."""
    assert isinstance(node.storage, BrokerFiles)
    recovered = node.storage.recover()
    # A look is a start like any other. The marker it used up is put back, so a later `dump` finds a clean
    # stop.
    node.storage.close(recovered.previous_broker_epoch)
    return {
        offset: (batch.epoch, batch.content)
        for batch in recovered.log.batches
        for offset in range(batch.base_offset, batch.next_offset)
    }


def set_of(brokers: Iterable[int]) -> str:
    """Return brokers as a set, in order."""
    return "{" + ",".join(map(str, sorted(brokers))) + "}"
