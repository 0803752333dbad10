"""One broker process: a membership and a replica, behind one `handle`.

What a runner drives.  A process with several partitions has one `Replica` for each and one `Membership`;
the simulator needs one partition, because one is enough for every property of the protocol.

Invariant: a broker that has no broker epoch serves no client: it applies no metadata, so its replica has no
role.
"""

from __future__ import annotations

from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.effects import Effect, Event, Fired, Received, Send, Timer
from replog.core.messages import HeartbeatReply, MetadataUpdate, RegisterReply


class Broker:
    """All the volatile state of one broker process."""

    __slots__ = ("membership", "replica")

    def __init__(self, membership: Membership, replica: Replica) -> None:
        self.membership = membership
        self.replica = replica

    @property
    def state(self) -> ReplicaState:
        """Return the state of the replica."""
        return self.replica.state

    def start(self) -> list[Effect]:
        """Begin: arm the timers and register."""
        return [*self.replica.start(), *self.membership.beat()]

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event at the local time `now_ms`; return the effects, to be performed in order."""
        if isinstance(event, Fired):
            if event.timer is Timer.HEARTBEAT:
                return self.membership.beat()
            return self.replica.fire(event.timer, event.token, now_ms)
        assert isinstance(event, Received)
        message = event.message
        if isinstance(message, MetadataUpdate):
            return self._update(message, now_ms)
        if isinstance(message, HeartbeatReply):
            return self.membership.heard(message)
        if isinstance(message, RegisterReply):
            return self.membership.registered(message)
        return self.replica.receive(event.source, message, now_ms)

    def shut_down(self) -> list[Effect]:
        """Request a controlled shutdown."""
        return self.membership.request_shutdown()

    def _update(self, update: MetadataUpdate, now_ms: int) -> list[Effect]:
        """Apply new metadata versions in order, and report to the controller how far this broker is."""
        images, out = self.membership.next_images(update)
        for image in images:
            out.extend(self.replica.apply(image, self.membership.broker_epoch, now_ms))
        # A fenced broker is unfenced by a heartbeat with the version it applied. Waiting for the next beat
        # would cost up to two seconds at every start; the timer that is already armed is not doubled.
        if images and self.membership.is_fenced:
            out.extend(effect for effect in self.membership.beat() if isinstance(effect, Send))
        return out
