"""proposals.spec and replog: the controller's decisions on ISR proposals, and its own removals from an ISR.

The system is a controller with one partition of two replicas and three brokers.  The versions of the
metadata, which are the brokers' epochs, are not compared: a proposal names a broker's epoch by its age.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState
from replog.core.effects import Effect, Event, Fired, Received, Send, Timer
from replog.core.messages import (
    AlterPartitionReply,
    AlterPartitionRequest,
    HeartbeatRequest,
    RegisterRequest,
)
from replog.core.types import BrokerState, Error, PartitionImage
from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Impossible,
    OutsideSpec,
    Refused,
    action,
    project,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import CopyingBinding

LEADER, OTHER, STRANGER = 0, 1, 2
PARTITION, NOW_MS, LONG_MS = "t-0", 1_000_000, 9_000
STATES = MappingProxyType({
    BrokerState.FENCED: "fenced", BrokerState.ACTIVE: "active", BrokerState.SHUTTING_DOWN: "leaving",
})  # fmt: skip
ORDERS = MappingProxyType({"older": -1, "same": 0, "newer": 1})
AGES = MappingProxyType({"earlier": -1, "present": 0, "later": 1})
ANSWERS = MappingProxyType({
    Error.NONE: "granted", Error.STALE_BROKER_EPOCH: "stale_broker", Error.FENCED_LEADER_EPOCH: "old_epoch",
    Error.NOT_CONTROLLER: "not_controller", Error.INVALID_REQUEST: "invalid",
    Error.INVALID_UPDATE_VERSION: "old_version", Error.INELIGIBLE_REPLICA: "ineligible",
})  # fmt: skip
Members = tuple[tuple[int, int], ...]
"""Brokers with their epochs."""


@dataclass(slots=True)
class Court:
    """A controller and its last decision."""

    controller: Controller
    answer: str = "nothing"

    def copy(self) -> Court:
        """Return an independent copy."""
        return Court(self.controller.copy(), self.answer)

    @property
    def image(self) -> PartitionImage:
        """Return the partition."""
        return self.controller.state.partitions[PARTITION]

    def epoch_of(self, broker: int, age: str) -> int:
        """Return a broker epoch of this age."""
        return -1 if age == "unknown" else self.controller.state.brokers[broker].broker_epoch + AGES[age]

    def receive(self, source: int, message: Any) -> list[Any]:
        """Let the controller handle a message; return its answers to the sender."""
        effects = self.handle(Received(source, message))
        return [e.message for e in effects if isinstance(e, Send) and e.to == source]

    def handle(self, event: Event) -> list[Effect]:
        """Let the controller handle an event; `judge` records the answer to a proposal."""
        self.answer = "nothing"
        return self.controller.handle(event, NOW_MS)

    def register(self, broker: int, life: int, previous: int = -1) -> None:
        """Let a process register."""
        self.receive(broker, RegisterRequest(broker, life, previous))

    def beat(self, broker: int, *, leaves: bool = False) -> None:
        """Deliver a heartbeat of a broker that has applied everything."""
        known = self.controller.state.brokers[broker].broker_epoch
        self.receive(broker, HeartbeatRequest(broker, known, self.controller.state.version, leaves))

    def judge(
        self, sender: int, age: str, epoch: int, version: int, members: Members, *, recovers: bool = False
    ) -> None:
        """Propose, and record the decision; the state must agree with a grant.

        Leader epoch and version are relative to the partition's; `age` is that of the sender's epoch.
        """
        image = self.image
        request = AlterPartitionRequest(
            1, PARTITION, sender, self.epoch_of(sender, age), image.leader_epoch + epoch,
            image.partition_epoch + version, members, recovers,
        )  # fmt: skip
        (reply,) = (m for m in self.receive(sender, request) if isinstance(m, AlterPartitionReply))
        self.answer = ANSWERS.get(reply.error, reply.error.name)
        image = self.image
        granted = reply.leader_epoch, reply.partition_epoch, reply.isr
        if reply.error is Error.NONE and granted != (image.leader_epoch, image.partition_epoch, image.isr):
            raise OutsideSpec(f"it grants {granted}, and has {image}")


class ProposalsBinding(CopyingBinding[Court]):
    """Proposals of any kind, and the decisions of replog's controller."""

    spec, model = "../../spec/proposals.spec", "two_lives"
    smoke = (At("sessions"),)
    gate = (At("two_lives"),)
    controls = (
        BadSpec("a leader leaves its ISR", "two_lives", {"leader_is_member": "false"}),
        BadSpec("a member of another process", "two_lives", {"own_process": "false"}),
        BadSpec("a member that is fenced", "two_lives", {"alive": "false"}),
        BadSpec("an old proposal", "two_lives", {"newest_only": "false"}),
        BadSpec("who registers keeps its place", "two_lives", {"rejoins": "false"}),
        BadCode("the epoch before the sender", Controller._check_epochs, "request.broker_id != image.leader",
                "False", "two_lives"),
        BadCode("a member twice", Controller.check_proposal, "max(members.values()) == 1", "True",
                "two_lives"),
        BadCode("a leader of the future is fenced", Controller._check_epochs, "return Error.NOT_CONTROLLER",
                "return Error.FENCED_LEADER_EPOCH", "two_lives"),
    )  # fmt: skip
    rules = MappingProxyType({
        "leader_is_member": True, "own_process": True, "alive": True, "newest_only": True, "rejoins": True,
    })  # fmt: skip

    def start(self) -> Court:
        """Broker 0 leads a new partition; broker 1 is in its ISR, and has never been live."""
        court = Court(Controller(ControllerState(ControllerConfig())))
        court.controller.create_partition(PARTITION, (LEADER, OTHER))
        for broker in (LEADER, OTHER, STRANGER):
            court.register(broker, 1)
        court.beat(LEADER)
        court.beat(STRANGER)
        return court

    @action("propose_for")
    def propose_for(
        self, court: Court, sender: int, own: str, epoch: str, version: str, nobody: bool
    ) -> Answer:
        """A proposal of any broker, for any epoch and version, with both replicas or none."""
        members = () if nobody else tuple((m, court.epoch_of(m, "present")) for m in (LEADER, OTHER))
        court.judge(sender, own, ORDERS[epoch], ORDERS[version], members)
        return self._within(court)

    @action("propose")
    def propose(
        self, court: Court, members: frozenset[int], process: str, twice: bool, recovering: bool
    ) -> Answer:
        """A proposal of the leader, with some members."""
        named = [(m, court.epoch_of(m, process if m == OTHER else "present")) for m in sorted(members)]
        times = (1 if LEADER in members else 2) if twice else 0
        again = [(LEADER, court.epoch_of(LEADER, "present"))] * times
        court.judge(LEADER, "present", 0, 0, (*named, *again), recovers=recovering)
        return self._within(court)

    @action("unfence")
    def unfence(self, court: Court) -> Answer:
        """A heartbeat of broker 1 arrives, which has applied the metadata of its registration."""
        if _standing(court) != "fenced":
            return Impossible("it is not fenced")
        court.beat(OTHER)
        return self._within(court)

    @action("expire")
    def expire(self, court: Court) -> Answer:
        """Broker 1 was silent for too long when the sessions are checked."""
        if _standing(court) == "fenced":
            return Impossible("its session is over already")
        brokers = court.controller.state.brokers
        brokers[OTHER] = replace(brokers[OTHER], last_seen_ms=NOW_MS - LONG_MS - 1)
        court.handle(Fired(Timer.SESSION_CHECK, 0))
        return self._within(court)

    @action("leave")
    def leave(self, court: Court) -> Answer:
        """A heartbeat of broker 1 arrives, with a request to leave."""
        if _standing(court) != "active":
            return Impossible("it does not live")
        court.beat(OTHER, leaves=True)
        return self._within(court)

    @action("register")
    def register(self, court: Court, is_clean: bool) -> Answer:
        """The next process of broker 1 registers, with or without the mark of a clean stop."""
        old = court.controller.state.brokers[OTHER]
        if old.state is not BrokerState.FENCED or old.incarnation == self.constants["MaxLives"]:
            return Impossible("the one before may live, or no more processes in this model")
        court.register(OTHER, old.incarnation + 1, old.broker_epoch if is_clean else -1)
        if court.controller.state.brokers[OTHER].incarnation == old.incarnation:
            return Refused("it is not registered")
        return self._within(court)

    def _within(self, court: Court) -> Answer:
        if court.image.partition_epoch > self.constants["MaxVersion"]:
            return Impossible("no more versions in this model")
        return Accepted()

    @project
    def state(self, court: Court) -> dict[str, Any]:
        """The partition, and broker 1."""
        image = court.image
        if image.leader != LEADER or image.elr:
            raise OutsideSpec(f"broker 0 leads no more, or others are eligible: {image}")
        return {
            "standing": _standing(court),
            "lives": court.controller.state.brokers[OTHER].incarnation,
            "isr": frozenset(image.isr),
            "version": image.partition_epoch,
            "epoch": image.leader_epoch,
            "answer": court.answer,
        }


def _standing(court: Court) -> str:
    return STATES[court.controller.state.brokers[OTHER].state]
