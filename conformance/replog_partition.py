"""A partition of replog, stepped by hand: common to the bindings of log_start.spec and reassignment.spec.

Each broker has a core and a disk, and always runs.

Not here: waiting metadata, messages other than fetches, and projections; each binding has its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from operator import is_
from typing import Any, TypeVar

from replog.core.broker.replica import Replica
from replog.core.broker.state import Config, ReplicaState
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState
from replog.core.effects import Effect, Timer
from replog.core.log.epochs import EpochCache
from replog.core.log.logview import LogView
from replog.core.messages import ElectReply, ElectRequest, HeartbeatRequest, Message, RegisterRequest
from replog.core.protocol import Protocol as Rules
from replog.core.types import Error, PartitionImage
from replog.sim.cluster.storage import Storage
from replog_controlled import (
    LONG_AGO_MS,
    NOW_MS,
    OPERATOR,
    PARTITION,
    ControlledBinding,
    ControlledCluster,
    Shared,
    date_fetch,
    taken_or,
)
from specchk.conform.contract.binding import Answer, Impossible, action, reopen, unchanged


class Disk:
    """A broker's storage, with the log that a start finds there, once that was determined."""

    __slots__ = ("_log", "_storage")

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._log: LogView | None = None

    def perform(self, effect: Effect) -> None:
        """Perform a disk effect."""
        self._log = None
        self._storage.perform(effect)

    def recovered(self) -> LogView:
        """Return the log that a start finds."""
        if self._log is None:
            # On a copy, because a start repairs.
            self._log = self._storage.copy().recover().log
        return self._log.copy()

    def copy(self) -> Disk:
        """Return an independent copy."""
        return Disk(self._storage.copy())


@dataclass(slots=True)
class PartitionCluster(ControlledCluster):
    """The controller, the brokers and their disks at one moment."""

    brokers: Shared[Replica]
    disks: Shared[Disk]

    def state(self, broker: int) -> ReplicaState:
        """Return the state of a broker's replica, for reading."""
        return self.brokers.seen[broker].state

    def replica(self, broker: int) -> Replica:
        """Return a broker's core, for handling events."""
        return self.brokers[broker]

    def disk(self, broker: int) -> Disk:
        """Return a broker's disk, for effects."""
        return self.disks[broker]

    def is_as(self, kept: PartitionCluster) -> bool:
        """Return whether this cluster, restored from a kept one, is equal to it.

        It shares the parts that have handled no event since; a disk that was written counts as another one.
        """
        return (
            _have_same([self._controller], [kept._controller])
            and _have_same(self.brokers.seen, kept.brokers.seen)
            and all(map(is_, self.disks.seen, kept.disks.seen))
            and all(getattr(self, name) == getattr(kept, name) for name in _noted(type(self)))
        )

    def heartbeat(self, broker: int) -> None:
        """Send a broker's heartbeat, which reports that it has applied all metadata."""
        epoch = self.registry.brokers[broker].broker_epoch
        self.decide(broker, HeartbeatRequest(broker, epoch, self.registry.version))

    def receive(self, broker: int, source: int, message: Message) -> list[Effect]:
        """Let a broker handle a message; its effects are performed, and returned for inspection."""
        self.date_fetches(broker)
        return ControlledCluster.receive(self, broker, source, message)

    def date_fetches(self, leader: int, when_ms: int = LONG_AGO_MS) -> None:
        """Set the times at which the followers of a leader last fetched, and were caught up."""
        leading = self.state(leader).leading
        for follower in () if leading is None else leading.remotes:
            date_fetch(self.brokers[leader], follower, when_ms)

    def check_isr(self, leader: int, late: int) -> list[Effect]:
        """Let a leader check its ISR: this follower was caught up long ago, all others just now."""
        self.date_fetches(leader, NOW_MS)
        leading = self.brokers[leader].state.leading
        assert leading is not None
        leading.remotes[late].last_caught_up_ms = LONG_AGO_MS
        return self.fire(leader, Timer.ISR_CHECK)

    @abstractmethod
    def apply(self, broker: int, which: int) -> None:
        """Make a broker apply remembered metadata."""


@cache
def _noted(cls: type[PartitionCluster]) -> tuple[str, ...]:
    """Return the names of the fields that are not parts which snapshots share."""
    shared = {"_controller", "has_own_controller", "brokers", "disks"}
    return tuple(field.name for field in fields(cls) if field.name not in shared)


def _have_same(found: Sequence[Controller | Replica], kept: Sequence[Controller | Replica]) -> bool:
    return all(one is other or one.state == other.state for one, other in zip(found, kept, strict=True))


K = TypeVar("K", bound=PartitionCluster)
Replicas = tuple[int, ...]


def new_partition(
    kind: type[K], disk: Callable[[], Storage], rules: Rules, *, min_isr: int, brokers: int,
    replicas: Replicas,
) -> K:  # fmt: skip
    """Return a cluster with an empty partition, led by the first replica, known to all brokers."""
    controller = Controller(ControllerState(ControllerConfig(min_isr), rules))
    controller.state.partitions[PARTITION] = PartitionImage(replicas, replicas[0], 0, 0, replicas)
    config = Config(min_isr=min_isr)
    cores = Shared(Replica(ReplicaState(broker, PARTITION, config, rules)) for broker in range(brokers))
    cluster = kind(controller, cores, Shared(Disk(disk()) for _ in range(brokers)))
    cluster.note_metadata()
    for broker in range(brokers):
        cluster.decide(broker, RegisterRequest(broker, 1))
    for broker in range(brokers):
        cluster.heartbeat(broker)
    for broker in range(brokers):
        cluster.apply(broker, 0)
    return cluster


C = TypeVar("C", bound=Any)


class PartitionBinding(ControlledBinding[C]):
    """The snapshots of such clusters, and what both specs share of elections and sessions."""

    hint = "replog has no switch for this rule; choose a model with today's"

    @reopen
    def again(self, cluster: C) -> C:
        """The cluster with every log read from its disk; HW and epochs without a record are kept."""
        reopened = cluster.copy()
        for broker, disk in enumerate(cluster.disks.seen):
            before, log = cluster.state(broker).log, disk.recovered()
            empty = [entry for entry in before.epochs.entries if entry[1] >= log.leo]
            log.epochs = EpochCache((*log.epochs.entries, *empty))
            log.hw, log.unflushed = before.hw, before.unflushed
            reopened.brokers[broker].state.log = log
        return reopened

    @unchanged
    def as_kept(self, kept: C) -> Callable[[Any], bool]:
        """Return the comparison of clusters that refused a step with the cluster they were restored from."""
        return lambda cluster: bool(cluster.is_as(kept))

    def elected(self, cluster: C, broker: str) -> Answer:
        """Make a replica the preferred leader, as an operator, and hold an election."""
        replicas = sorted(cluster.image.replicas, key=lambda replica: replica != self.id(broker))
        cluster.controller.state.partitions[PARTITION] = replace(cluster.image, replicas=tuple(replicas))
        reply = cluster.decide(OPERATOR, ElectRequest(1, PARTITION))
        assert isinstance(reply, ElectReply)
        return taken_or(reply.error is Error.NONE, reply.error.name)

    @action("unfence_broker")
    def unfence_broker(self, cluster: C, broker: str) -> Answer:
        """A heartbeat shows that the broker is live."""
        number = self.id(broker)
        if not cluster.is_fenced(number):
            return Impossible("it is not fenced")
        cluster.heartbeat(number)
        return taken_or(not cluster.is_fenced(number), "it stays fenced")
