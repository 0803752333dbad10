"""metadata.spec and replog: the membership of a broker process, and the metadata that it applies.

The system is a controller with one partition, all that it ever announced, and a broker process with the
timers that it has set.  The process applies metadata to a replica that notes the versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from replog.core import messages
from replog.core.broker.broker import Broker
from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState
from replog.core.effects import Effect, Fired, Received, Send, SetTimer, ShutDown, Timer
from replog.core.types import CONTROLLER, Error, MetadataImage, PartitionImage
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

BROKER, OPERATOR, PARTITION, NOW_MS = 0, -101, "t-0", 1_000_000
FIRST = 1
"""The version that the partition's creation makes: the spec's version 0."""


class Noting(Replica):
    """A replica that records the versions applied to it."""

    __slots__ = ("versions",)

    def __init__(self, state: ReplicaState) -> None:
        super().__init__(state)
        self.versions: list[int] = []

    def copy(self) -> Noting:
        """Return an independent copy, with nothing recorded."""
        return Noting(self.state.copy())

    def apply(self, metadata: MetadataImage, broker_epoch: int, now_ms: int) -> list[Effect]:
        """Record the version, and apply it."""
        self.versions.append(metadata.version - FIRST)
        return super().apply(metadata, broker_epoch, now_ms)


@dataclass(slots=True)
class Cluster:
    """A controller, its announcements, and a process of a broker."""

    controller: Controller
    broker: Broker
    images: list[MetadataImage]
    contents: list[PartitionImage]
    """The partition in each image, as it was announced."""
    epochs: dict[int, int] = field(default_factory=dict)
    timers: int = 0
    out: tuple[Any, ...] = ()

    def copy(self) -> Cluster:
        """Return an independent copy, in which what the controller and its announcements share is shared."""
        broker = Broker(replace(self.broker.membership), self.broker.replica.copy())
        controller, now = self.controller.copy(), self.controller.state.partitions
        own = controller.state.partitions
        images = [replace(i, partitions=own) if i.partitions is now else i for i in self.images]
        controller.state.history = images[-len(controller.state.history) :]
        return Cluster(
            controller, broker, images, self.contents.copy(), self.epochs.copy(), self.timers, self.out
        )

    @property
    def version(self) -> int:
        """Return the newest version, as numbered in the spec."""
        return self.controller.state.version - FIRST

    def decide(self, source: int, message: messages.Message) -> list[Any]:
        """Let the controller handle a message; return its answers to the sender."""
        effects = self.controller.handle(Received(source, message), NOW_MS)
        if self.controller.state.version > self.images[-1].version:
            self.images.append(self.controller.state.history[-1])
            self.contents.append(self.images[-1].partitions[PARTITION])
        return [e.message for e in effects if isinstance(e, Send) and e.to == source]

    def receive(self, message: messages.Message) -> None:
        """Let the process handle a message of the controller."""
        self.perform(self.broker.handle(Received(CONTROLLER, message), NOW_MS))

    def perform(self, effects: Iterable[Effect]) -> None:
        """Record the process's applied versions and sent messages, and set its timers."""
        replica = self.broker.replica
        assert isinstance(replica, Noting)
        applied, replica.versions = replica.versions, []
        if applied and applied != list(range(applied[0], applied[-1] + 1)):
            raise OutsideSpec(f"these versions are applied in this order: {applied}")
        seen = [("Apply", {"first": applied[0], "last": applied[-1]})] if applied else []
        for effect in effects:
            match effect:
                case SetTimer(timer=Timer.HEARTBEAT):
                    self.timers += 1
                case Send(to=to, message=message) if to == CONTROLLER:
                    seen.append(self._sent(message))
                case ShutDown():
                    seen.append(("Stop", {}))
                case _:
                    pass
        self.out = tuple(seen)

    def _sent(self, message: messages.Message) -> Any:
        match message:
            case messages.RegisterRequest(incarnation=life):
                return ("Register", {"life": life})
            case messages.HeartbeatRequest(
                broker_epoch=epoch, metadata_version=version, wants_shutdown=leaves
            ):
                return ("Beat", {"epoch": epoch - FIRST, "applied": _version(version), "leaves": leaves})
            case messages.MetadataRequest(after_version=version):
                return ("Request", {"after": _version(version)})
            case _:
                raise OutsideSpec(f"the process sends {message}")


class MetadataBinding(CopyingBinding[Cluster]):
    """Messages of a controller, in any order, and the reactions of a broker of replog."""

    spec, model = "../../spec/metadata.spec", "two_processes"
    smoke = (At("jumps", {"MaxVersion": "1", "changes": "false"}),)
    gate = (At("two_processes"), At("far_behind"), At("jumps"))
    controls = (
        BadSpec("an answer to another process counts", "two_processes", {"own_answer": "false"}),
        BadSpec("versions are skipped", "far_behind", {"requests_gaps": "false"}),
        BadSpec("timers multiply", "two_processes", {"one_timer": "false"}),
        BadCode("an unknown process goes on", Membership.on_heartbeat_reply,
                "self.broker_epoch, self.is_fenced = -1, True", "self.is_fenced = True", "two_processes"),
        BadCode("answers to heartbeats of others", Membership.on_heartbeat_reply,
                "reply.broker_epoch != self.broker_epoch", "False", "two_processes"),
        BadCode("metadata before a registration", Membership.next_images, " or self.broker_epoch < 0", "",
                "two_processes"),
        BadCode("a part of the history", Controller._updates_after,
                " or (later and later[0].version != version + 1)", "", "far_behind"),
        BadCode("a stop that nobody wanted", Membership.on_heartbeat_reply, " and self.wants_shutdown", "",
                "two_processes"),
    )  # fmt: skip
    rules = MappingProxyType({"own_answer": True, "requests_gaps": True, "one_timer": True})

    def start(self) -> Cluster:
        """A partition without a leader, and the first process of its broker."""
        config = ControllerConfig(metadata_history=self.constants["history"])
        controller = Controller(ControllerState(config))
        controller.create_partition(PARTITION, (BROKER,))
        image = controller.state.history[-1]
        cluster = Cluster(controller, self._process(1), [image], [image.partitions[PARTITION]])
        cluster.perform(cluster.broker.start())
        return cluster

    def _process(self, life: int) -> Broker:
        """Return a process without any state of the previous one."""
        rules = self.constants
        member = Membership(BROKER, life, coalesces=rules["coalesces"], metadata_history=rules["history"])
        return Broker(member, Noting(ReplicaState(BROKER, PARTITION)))

    @action("register")
    def register(self, cluster: Cluster) -> Answer:
        """The registration arrives at the controller."""
        life = cluster.broker.membership.incarnation
        if life in cluster.epochs or cluster.version == self.constants["MaxVersion"]:
            return Impossible("it is registered, or no more versions in this model")
        cluster.out = ()
        (reply,) = cluster.decide(BROKER, messages.RegisterRequest(BROKER, life))[:1]
        cluster.epochs[life] = reply.broker_epoch
        return Accepted()

    @action("change")
    def change(self, cluster: Cluster) -> Answer:
        """An operator changes the partition."""
        if not self.constants["changes"] or cluster.version == self.constants["MaxVersion"]:
            return Impossible("no more versions in this model")
        cluster.out = ()
        cluster.decide(OPERATOR, messages.ConfigureRequest(1, PARTITION, cluster.version + 2))
        return Accepted()

    @action("answer")
    def answer(self, cluster: Cluster, after: int | None) -> Answer:
        """A request for metadata arrives at the controller."""
        if cluster.broker.membership.incarnation not in cluster.epochs:
            return Impossible("it is no member")
        known = -1 if after is None else after + FIRST
        (update,) = cluster.decide(BROKER, messages.MetadataRequest(BROKER, known))
        versions = [image.version - FIRST for image in update.images]
        if versions and versions != list(range(versions[0], versions[-1] + 1)):
            raise OutsideSpec(f"the controller sends these versions: {versions}")
        cluster.out = (("Answer", {"first": versions[0], "last": versions[-1]}),) if versions else ()
        return Accepted()

    @action("restart")
    def restart(self, cluster: Cluster) -> Answer:
        """The next process starts."""
        life = cluster.broker.membership.incarnation
        if life == self.constants["MaxLives"]:
            return Impossible("no more processes in this model")
        cluster.broker, cluster.timers = self._process(life + 1), 0
        cluster.perform(cluster.broker.start())
        return Accepted()

    @action("ring")
    def ring(self, cluster: Cluster) -> Answer:
        """The timer of the heartbeat rings."""
        if not cluster.timers:
            return Impossible("no timer is set")
        cluster.timers -= 1
        cluster.perform(cluster.broker.handle(Fired(Timer.HEARTBEAT, 0), NOW_MS))
        return Accepted()

    @action("registered")
    def registered(self, cluster: Cluster, life: int, accepted: bool) -> Answer:
        """An answer to a registration arrives."""
        if life not in cluster.epochs:
            return Impossible("this process has not registered")
        error = Error.NONE if accepted else Error.DUPLICATE_BROKER_REGISTRATION
        cluster.receive(messages.RegisterReply(life, error, cluster.epochs[life] if accepted else -1))
        return Accepted()

    @action("answered")
    def answered(
        self, cluster: Cluster, life: int, is_known: bool, is_fenced: bool, may_leave: bool
    ) -> Answer:
        """An answer to a heartbeat arrives."""
        if life not in cluster.epochs or (not is_known and (may_leave or not is_fenced)):
            return Impossible("this process has not registered, or there is no such answer")
        error = Error.NONE if is_known else Error.STALE_BROKER_EPOCH
        cluster.receive(messages.HeartbeatReply(cluster.epochs[life], error, is_fenced, may_leave))
        return Accepted()

    @action("receive")
    def receive(self, cluster: Cluster, first: int, last: int) -> Answer:
        """Metadata arrives."""
        if first > last or last > cluster.version:
            return Impossible("there are no such versions")
        cluster.receive(messages.MetadataUpdate(tuple(cluster.images[first : last + 1])))
        return Accepted()

    @action("leave")
    def leave(self, cluster: Cluster) -> Answer:
        """A controlled shutdown starts."""
        if cluster.broker.membership.wants_shutdown:
            return Impossible("it leaves already")
        cluster.perform(cluster.broker.shut_down())
        return Accepted()

    @project
    def state(self, cluster: Cluster) -> dict[str, Any]:
        """Versions and broker epochs, as numbered in the spec."""
        member = cluster.broker.membership
        if [image.partitions[PARTITION] for image in cluster.images] != cluster.contents:
            raise OutsideSpec("metadata has changed since it was announced")
        return {
            "version": cluster.version,
            "since": {
                life: cluster.epochs.get(life, FIRST) - FIRST
                for life in range(1, self.constants["MaxLives"] + 1)
            },
            "life": member.incarnation,
            "member": _version(member.broker_epoch),
            "applied": _version(member.metadata_version),
            "fenced": member.is_fenced,
            "leaves": member.wants_shutdown,
            "timers": cluster.timers,
            "out": cluster.out,
        }


def _version(version: int) -> int | None:
    """Return a version as numbered in the spec, or None for none."""
    return None if version < 0 else version - FIRST
