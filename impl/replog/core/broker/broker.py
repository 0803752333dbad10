"""One broker process: a membership and a replica of each partition, behind one `handle`.

    one partition         Send(2, FetchRequest(...))                       SetTimer(...)
    several               Send(2, ForPartition("t-0", FetchRequest(...)))  Of("t-0", SetTimer(...))

The object that a runner drives: `sim.cluster.world`, for the demo on real files as well, or
`run.serve.host`, for clients of the network.  Partitions share the process, its membership and its metadata,
and nothing else.  A single partition has no name, because one is enough for every property of the protocol.

Invariant: a broker that has no broker epoch serves no client: it applies no metadata, so its replicas have no
role.
"""

from __future__ import annotations

from replog.core.broker.contact import Contact
from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.effects import (
    Effect,
    Event,
    Fired,
    Of,
    Received,
    Send,
    ShutDown,
    StoreRecords,
    StoreVote,
    Timer,
    TimerOf,
)
from replog.core.messages import (
    ForPartition,
    HeartbeatReply,
    MetadataUpdate,
    OfTerm,
    RegisterReply,
)
from replog.core.quorum_messages import NotController
from replog.core.types import CONTROLLER


class Broker:
    """All the volatile state of one broker process."""

    __slots__ = ("contact", "membership", "replicas")

    def __init__(
        self, membership: Membership, replica: Replica, *others: Replica, contact: Contact | None = None
    ) -> None:
        self.membership = membership
        self.contact = contact
        """Which of several controllers it goes by; None where there is one."""
        self.replicas = {each.state.partition: each for each in (replica, *others)}

    @property
    def replica(self) -> Replica:
        """The first replica; a runner may replace it with a copy."""
        return next(iter(self.replicas.values()))

    @replica.setter
    def replica(self, replica: Replica) -> None:
        assert replica.state.partition == self.state.partition
        self.replicas[replica.state.partition] = replica

    @property
    def state(self) -> ReplicaState:
        """Return the state of the first replica."""
        return self.replica.state

    def start(self) -> list[Effect]:
        """Arm the timers and register."""
        timers = [e for name, replica in self.replicas.items() for e in self._named(name, replica.start())]
        return self._addressed([*timers, *self.membership.beat()])

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event at the local time `now_ms`; return the effects, to be performed in order."""
        if self.contact is not None and isinstance(event, Received) and isinstance(event.message, OfTerm):
            message = self.contact.accept(event.source, event.message)
            if message is None:
                return []
            if isinstance(message, NotController):
                return self._addressed(self._beat_again())
            event = Received(CONTROLLER, message)
        return self._addressed(self._handle(event, now_ms))

    def _addressed(self, effects: list[Effect]) -> list[Effect]:
        """Address messages to the controller, if there are several."""
        return effects if self.contact is None else self.contact.addressed(effects)

    def _beat_again(self) -> list[Effect]:
        """Return a registration or heartbeat in addition to those of the timer, which is already armed."""
        return [effect for effect in self.membership.beat() if isinstance(effect, Send)]

    def _handle(self, event: Event, now_ms: int) -> list[Effect]:
        if isinstance(event, TimerOf):
            replica, fired = self.replicas[event.partition], event.fired
            return self._named(event.partition, replica.fire(fired.timer, fired.token, now_ms))
        if isinstance(event, Fired):
            if event.timer is Timer.HEARTBEAT:
                return self.membership.beat()
            return self.replica.fire(event.timer, event.token, now_ms)
        assert isinstance(event, Received)
        message = event.message
        if isinstance(message, MetadataUpdate):
            return self._update(message, now_ms)
        if isinstance(message, HeartbeatReply):
            return self.membership.on_heartbeat_reply(message)
        if isinstance(message, RegisterReply):
            return self.membership.registered(message)
        if isinstance(message, ForPartition):
            return self._receive(event.source, message, now_ms)
        return self.replica.receive(event.source, message, now_ms)

    def _receive(self, source: int, message: ForPartition, now_ms: int) -> list[Effect]:
        """Pass a message to its replica; a message for a partition that is not here is ignored."""
        replica = self.replicas.get(message.partition)
        if replica is None:
            return []
        return self._named(message.partition, replica.receive(source, message.message, now_ms))

    def _named(self, partition: str, effects: list[Effect]) -> list[Effect]:
        """Add the partition's name to its effects, if there are several partitions."""
        return effects if len(self.replicas) == 1 else [named(partition, effect) for effect in effects]

    def shut_down(self) -> list[Effect]:
        """Request a controlled shutdown."""
        return self._addressed(self.membership.request_shutdown())

    def _update(self, update: MetadataUpdate, now_ms: int) -> list[Effect]:
        """Apply new metadata versions in order, and report the last applied version to the controller."""
        images, out = self.membership.next_images(update)
        for image in images:
            for name, replica in self.replicas.items():
                out.extend(self._named(name, replica.apply(image, self.membership.broker_epoch, now_ms)))
        # A fenced broker is unfenced by a heartbeat with the version it applied. Waiting for the next beat
        # would cost up to two seconds at every start.
        if images and self.membership.is_fenced:
            out.extend(self._beat_again())
        return out


def named(partition: str, effect: Effect) -> Effect:
    """Return an effect of a replica, with the name of its partition."""
    if isinstance(effect, Send):
        return Send(effect.to, ForPartition(partition, effect.message))
    foreign = Of | ShutDown | StoreVote | StoreRecords
    assert not isinstance(effect, foreign), "a replica is one of a partition, and ends no process"
    return Of(partition, effect)
