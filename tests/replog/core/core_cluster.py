"""A controller with registered brokers and one partition, and their requests."""

from __future__ import annotations

from dataclasses import replace

from core_support import PARTITION

from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState
from replog.core.effects import Fired, Received, Send, Timer
from replog.core.messages import (
    AlterPartitionReply,
    AlterPartitionRequest,
    ConfigureReply,
    ConfigureRequest,
    ElectReply,
    ElectRequest,
    HeartbeatReply,
    HeartbeatRequest,
    RegisterReply,
    RegisterRequest,
)
from replog.core.protocol import CURRENT

NOW = 1_000_000


class Cluster:
    """A controller with three registered, active brokers and one partition led by broker 0."""

    def __init__(self, brokers=3, min_isr=2, **rules):
        settings = ControllerConfig(min_isr, session_timeout_ms=9_000)
        self.now = NOW
        self.controller = Controller(ControllerState(settings, replace(CURRENT, **rules)))
        self.controller.create_partition(PARTITION, tuple(range(brokers)))
        self.epochs = {broker: self.register(broker, 1).broker_epoch for broker in range(brokers)}
        for broker in range(brokers):
            self.beat(broker)

    @property
    def image(self):
        return self.controller.state.partitions[PARTITION]

    def tell(self, source, message, kind):
        effects = self.controller.handle(Received(source, message), self.now)
        found = [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]
        return found[0] if found else None

    def register(self, broker, incarnation, previous=-1):
        return self.tell(broker, RegisterRequest(broker, incarnation, previous), RegisterReply)

    def beat(self, broker, shutdown=False, version=None):
        version = self.controller.state.version if version is None else version
        return self.tell(
            broker, HeartbeatRequest(broker, self.epochs[broker], version, shutdown), HeartbeatReply
        )

    def expire(self, *silent):
        """Let time pass in which only these brokers are silent."""
        for _ in range(6):
            self.now += 2_000
            for broker in self.epochs:
                if broker not in silent:
                    self.beat(broker)
        self.controller.handle(Fired(Timer.SESSION_CHECK), self.now)

    def alter(self, members, **changes):
        request = AlterPartitionRequest(
            1,
            PARTITION,
            0,
            self.epochs[0],
            self.image.leader_epoch,
            self.image.partition_epoch,
            tuple((member, self.epochs.get(member, -1)) for member in members),
        )
        return self.tell(0, replace(request, **changes), AlterPartitionReply)

    def elect(self, unclean=False):
        return self.tell(-9, ElectRequest(1, PARTITION, unclean), ElectReply).error

    def configure(self, min_isr):
        return self.tell(-9, ConfigureRequest(1, PARTITION, min_isr), ConfigureReply).error
