"""The membership of one broker process in the cluster: registration, heartbeats, and metadata in order.

Theory: KIP-500/KIP-631 (broker registration, broker epochs, fencing), rules A23 and A29 of the project's
Kafka reference. Metadata is a log: a running broker applies every version in order; one that has just
started, that is further behind than the controller remembers, or that is set to `coalesces`, may begin with,
or jump to, the latest version (a snapshot).

Not here: partitions.  `Broker` ties one membership and the replicas of one process together.
"""

from __future__ import annotations

from dataclasses import dataclass

from replog.core.effects import Effect, Send, SetTimer, ShutDown, Timer
from replog.core.messages import (
    HeartbeatReply,
    HeartbeatRequest,
    MetadataRequest,
    MetadataUpdate,
    RegisterReply,
    RegisterRequest,
)
from replog.core.types import CONTROLLER, METADATA_HISTORY, Error, MetadataImage

HEARTBEAT_MS = 2_000


@dataclass(slots=True)
class Membership:
    """A broker process's view of its own membership; `metadata_version` is the last version applied."""

    broker_id: int
    incarnation: int
    previous_broker_epoch: int = -1
    coalesces: bool = False
    broker_epoch: int = -1
    metadata_version: int = -1
    is_fenced: bool = True
    wants_shutdown: bool = False
    metadata_history: int = METADATA_HISTORY

    def beat(self) -> list[Effect]:
        """Register, or send a heartbeat, and set the timer for the next one."""
        request: RegisterRequest | HeartbeatRequest = self._heartbeat()
        if self.broker_epoch < 0:
            request = RegisterRequest(self.broker_id, self.incarnation, self.previous_broker_epoch)
        # The same timer drives both, so a lost registration is repeated like a lost heartbeat.
        return [Send(CONTROLLER, request), SetTimer(Timer.HEARTBEAT, HEARTBEAT_MS)]

    def request_shutdown(self) -> list[Effect]:
        """Request a controlled shutdown (A29), with every heartbeat until it is granted."""
        self.wants_shutdown = True
        return [Send(CONTROLLER, self._heartbeat())] if self.broker_epoch >= 0 else []

    def registered(self, reply: RegisterReply) -> list[Effect]:
        """Adopt the broker epoch of this incarnation and request metadata."""
        # A reply to an earlier incarnation may still be under way: its broker epoch would make this process
        # look like the one that died.
        if reply.incarnation != self.incarnation or reply.error is not Error.NONE or self.broker_epoch >= 0:
            return []
        self.broker_epoch = reply.broker_epoch
        return [
            # Requested, not awaited: the announcement that the registration caused may be lost or overtaken.
            Send(CONTROLLER, MetadataRequest(self.broker_id, self.metadata_version)),
            Send(CONTROLLER, self._heartbeat()),
        ]

    def on_heartbeat_reply(self, reply: HeartbeatReply) -> list[Effect]:
        """Apply the controller's view of this broker; register again if this incarnation is unknown."""
        if reply.broker_epoch != self.broker_epoch:
            return []
        if reply.error is not Error.NONE:
            # The controller does not have this incarnation. The next beat registers again, not repeating
            # a heartbeat that will be refused.
            self.broker_epoch, self.is_fenced = -1, True
            return []
        self.is_fenced = reply.is_fenced
        return [ShutDown()] if reply.should_shut_down and self.wants_shutdown else []

    def next_images(self, update: MetadataUpdate) -> tuple[tuple[MetadataImage, ...], list[Effect]]:
        """Return the images to apply now, in order, and a request if earlier images are missing."""
        fresh = tuple(image for image in update.images if image.version > self.metadata_version)
        # Without a broker epoch this process is not a member yet: applying metadata would give it a role, and
        # a role would let it serve.
        if not fresh or self.broker_epoch < 0:
            return (), []
        # A start has no history to replay, so the newest image suffices. A broker this late would request
        # forever what the controller no longer keeps.
        is_lost = fresh[0].version > self.metadata_version + self.metadata_history
        if self.metadata_version < 0 or self.coalesces or is_lost:
            fresh = fresh[-1:]
        # A version is missing. Skipping it could hide an epoch in which this broker should have cut its log,
        # so it is requested instead.
        elif fresh[0].version != self.metadata_version + 1:
            return (), [Send(CONTROLLER, MetadataRequest(self.broker_id, self.metadata_version))]
        self.metadata_version = fresh[-1].version
        return fresh, []

    def _heartbeat(self) -> HeartbeatRequest:
        return HeartbeatRequest(self.broker_id, self.broker_epoch, self.metadata_version, self.wants_shutdown)
