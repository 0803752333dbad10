"""membership.spec and replog: registrations, sessions and controlled shutdowns at the controller.

The system is a controller with two partitions, its clock, and the broker epochs that it gave.  The first
partition never has a leader, since its replica is unknown; the second one is there to see whom the controller
leaves in it.  Sessions are as long as replog's default.  A unit of the spec's time, after which a session may
not be over, and two of which end it, is the longest possible one, or the shortest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState, Registration
from replog.core.effects import Fired, Received, Send, Timer
from replog.core.messages import HeartbeatReply, HeartbeatRequest, RegisterReply, RegisterRequest
from replog.core.types import NO_EPOCH, NO_LEADER, BrokerState, Error, PartitionImage
from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Impossible,
    OutsideSpec,
    action,
    project,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import CopyingBinding

SESSION_MS = 9_000
"""Kafka's broker.session.timeout.ms."""
UNKNOWN, NEW, LED = 99, "t-0", "t-1"
STATES = MappingProxyType({
    BrokerState.FENCED: "fenced", BrokerState.ACTIVE: "active", BrokerState.SHUTTING_DOWN: "leaving",
})  # fmt: skip
NOBODY = Registration(0, 0, BrokerState.FENCED, 0)


@dataclass(slots=True)
class Cluster:
    """A controller at one moment, its last answer, and the broker epoch of each process."""

    controller: Controller
    now: int = 0
    answer: str = "nothing"
    epochs: dict[tuple[int, int], int] = field(default_factory=dict)
    left_at: dict[int, int] = field(default_factory=dict)
    """The spec's ghost: in which version a broker began to leave."""

    def copy(self) -> Cluster:
        """Return an independent copy."""
        return Cluster(self.controller.copy(), self.now, self.answer, {**self.epochs}, {**self.left_at})

    def of(self, broker: int) -> Registration:
        """Return the controller's state of a broker."""
        return self.controller.state.brokers.get(broker, NOBODY)

    def is_active(self, broker: int) -> bool:
        """Return whether a broker may lead."""
        return self.of(broker).state is BrokerState.ACTIVE


class MembershipBinding(CopyingBinding[Cluster]):
    """Brokers that register, live, leave and die, in the controller's view."""

    spec, model = "../../spec/membership.spec", "two_brokers"
    smoke = (At("restarts"),)
    gate = (At("two_brokers"), At("restarts"), At("clock_is_set_back"))
    controls = (
        BadSpec("any metadata unfences", "two_brokers", {"waits_for_registration": "false"}),
        BadSpec("a broker leaves at once", "two_brokers", {"waits_for_others": "false"}),
        BadCode("a session ends at its limit", Controller._is_silent, " > ", " >= ", "restarts"),
        BadCode("who leaves never expires", Controller._fire, "is not BrokerState.FENCED",
                "is BrokerState.ACTIVE", "restarts"),
        BadCode("a process replaces one that lives", Controller.register,
                "not self._is_silent(old, now_ms)", "False", "restarts"),
        BadCode("heartbeats of a former process count", Controller._heartbeat,
                "broker.broker_epoch != request.broker_epoch", "False", "restarts"),
        BadCode("a repeated registration is a new one", Controller.register,
                "old.incarnation == request.incarnation", "False", "restarts"),
        BadSpec("a clock that is set back ends sessions", "clock_is_set_back", {"latest_counts": "false"}),
        BadCode("a broker leaves before others know", Controller._has_left,
                "broker.applied_version >= self.state.version", "True", "two_brokers"),
    )  # fmt: skip
    rules = MappingProxyType({
        "waits_for_registration": True, "waits_for_others": True, "leaving_expire": True,
        "latest_counts": True, "timeout": 1,
    })  # fmt: skip

    def start(self) -> Cluster:
        """No broker has registered."""
        replicas = tuple(range(self.constants["Brokers"]))
        partitions = {
            name: PartitionImage(members, NO_LEADER, NO_EPOCH, 0, members)
            for name, members in ((NEW, (UNKNOWN,)), (LED, replicas))
        }
        return Cluster(Controller(ControllerState(ControllerConfig(), partitions=partitions)))

    @property
    def unit_ms(self) -> int:
        """How long a unit of time is."""
        return SESSION_MS // 2 + 1 if self.constants["clock_steps"] else SESSION_MS

    @action("tick")
    def tick(self, cluster: Cluster) -> Answer:
        """Time passes."""
        if cluster.now == self.constants["MaxTime"]:
            return Impossible("no more time in this model")
        cluster.now, cluster.answer = cluster.now + 1, "nothing"
        return Accepted()

    @action("set_back")
    def set_back(self, cluster: Cluster) -> Answer:
        """The clock is set back."""
        if not self.constants["clock_steps"] or not cluster.now:
            return Impossible("no such clock in this model, or it begins")
        cluster.now, cluster.answer = cluster.now - 1, "nothing"
        return Accepted()

    @action("register")
    def register(self, cluster: Cluster, broker: int, process: int) -> Answer:
        """A process registers, or the next process does."""
        if process < 1 or process - cluster.of(broker).incarnation not in (0, 1):
            return Impossible("processes are started one after the other")
        request = RegisterRequest(broker, process, cluster.epochs.get((broker, process - 1), -1))
        (reply,) = self._handle(cluster, Received(broker, request), RegisterReply)
        cluster.answer = "registered" if reply.error is Error.NONE else "duplicate"
        if reply.error is Error.NONE:
            cluster.epochs[broker, process] = reply.broker_epoch
        return self._within(cluster)

    @action("heartbeat")
    def heartbeat(
        self, cluster: Cluster, broker: int, process: int, known: int, wants_to_leave: bool
    ) -> Answer:
        """A heartbeat of a process arrives, with the version that the process has applied."""
        last = cluster.of(broker)
        is_behind = process == last.incarnation and known < last.applied_version
        if not 1 <= process <= last.incarnation or known > cluster.controller.state.version or is_behind:
            return Impossible("no such process, or it has not applied this")
        request = HeartbeatRequest(broker, cluster.epochs[broker, process], known, wants_to_leave)
        (reply,) = self._handle(cluster, Received(broker, request), HeartbeatReply)
        cluster.answer = _meaning(reply)
        return self._within(cluster)

    @action("check_sessions")
    def check_sessions(self, cluster: Cluster) -> Answer:
        """The timer of the session check rings."""
        self._handle(cluster, Fired(Timer.SESSION_CHECK, 0), RegisterReply)
        cluster.answer = "checked"
        return self._within(cluster)

    def _handle(self, cluster: Cluster, event: Any, kind: type[Any]) -> list[Any]:
        active = {*filter(cluster.is_active, cluster.controller.state.brokers)}
        effects = cluster.controller.handle(event, cluster.now * self.unit_ms)
        led = cluster.controller.state.partitions[LED]
        gone = {broker for broker in active if not cluster.is_active(broker)}
        # Who is alone stays in the ISR, and leads no more.
        if led.leader in gone or (len(led.isr) > 1 and gone & {*led.isr}):
            raise OutsideSpec(f"{gone} are no longer active, and a partition has {led}")
        for broker, registration in cluster.controller.state.brokers.items():
            if registration.state is BrokerState.SHUTTING_DOWN:
                cluster.left_at.setdefault(broker, cluster.controller.state.version)
            else:
                cluster.left_at.pop(broker, None)
        return [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]

    def _within(self, cluster: Cluster) -> Answer:
        if cluster.controller.state.version > self.constants["MaxVersion"]:
            return Impossible("no more versions in this model")
        return Accepted()

    @project
    def state(self, cluster: Cluster) -> dict[str, Any]:
        """The controller's state of each broker."""
        brokers = {broker: cluster.of(broker) for broker in range(self.constants["Brokers"])}
        return {
            "now": cluster.now,
            "version": cluster.controller.state.version,
            "answer": cluster.answer,
            "state": {broker: STATES[one.state] for broker, one in brokers.items()},
            "life": {broker: one.incarnation for broker, one in brokers.items()},
            "since": {broker: one.broker_epoch for broker, one in brokers.items()},
            "left_at": {broker: cluster.left_at.get(broker, 0) for broker in brokers},
            "seen": {broker: one.last_seen_ms // self.unit_ms for broker, one in brokers.items()},
            "applied": {broker: max(one.applied_version, 0) for broker, one in brokers.items()},
        }


def _meaning(reply: HeartbeatReply) -> str:
    if reply.error is not Error.NONE:
        return "stale"
    if reply.should_shut_down:
        return "may_leave"
    return "stays_fenced" if reply.is_fenced else "stays"
