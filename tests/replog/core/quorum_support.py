"""Three controllers stepped by hand: a message waits until a test delivers it, or it is lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from core_support import NOW, PARTITION

from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState
from replog.core.effects import Effect, Received, Send, StoreRecords, StoreVote
from replog.core.messages import HeartbeatRequest, Message, OfTerm, RegisterReply, RegisterRequest
from replog.core.protocol import CURRENT, Protocol
from replog.core.quorum.node import ControllerNode
from replog.core.quorum.records import record_of
from replog.core.types import MetadataRecord

A, B, C = VOTERS = (-1, -2, -3)
CONFIG = ControllerConfig(min_isr=1)


def first_record(term: int = 1) -> MetadataRecord:
    """A partition of brokers 0 and 1, before any is registered."""
    controller = Controller(ControllerState(CONFIG))
    controller.create_partition(PARTITION, (0, 1))
    return record_of(controller.state, term)


@dataclass
class Trio:
    """The controllers, and the messages in flight; brokers are 0 and 1."""

    protocol: Protocol = CURRENT
    nodes: dict[int, ControllerNode] = field(default_factory=dict)
    sent: list[tuple[int, Send]] = field(default_factory=list)
    stored: list[tuple[int, Effect]] = field(default_factory=list)
    now: int = NOW

    def __post_init__(self) -> None:
        first = first_record()
        for address in VOTERS:
            self.nodes[address] = ControllerNode(address, VOTERS, CONFIG, self.protocol, 1, [first], hw=1)

    def __getitem__(self, address: int) -> ControllerNode:
        return self.nodes[address]

    def perform(self, address: int, effects: list[Effect]) -> list[Effect]:
        self.sent += [(address, effect) for effect in effects if isinstance(effect, Send)]
        self.stored += [(address, e) for e in effects if isinstance(e, StoreVote | StoreRecords)]
        return effects

    def give(self, address: int, source: int, message: Message) -> list[Effect]:
        return self.perform(address, self.nodes[address].handle(Received(source, message), self.now))

    def deliver(self, *to: int) -> None:
        """Deliver until no message is in flight between these controllers; the rest is lost."""
        while self.sent:
            source, send = self.sent.pop(0)
            if send.to in to and source in to:
                self.give(send.to, source, send.message)

    def elect(self, address: int, *voters: int) -> None:
        """Make these controllers elect one, which commits its own record."""
        self.sent.clear()
        self.perform(address, self.nodes[address].stand(self.now))
        self.deliver(address, *voters)

    def replicate(self, address: int, *others: int) -> list[Any]:
        """Let others fetch all records of a controller; return the messages it sends to brokers meanwhile."""
        self.sent.clear()
        for other in others:
            self.perform(other, self.nodes[other].fetch())
        out: list[Any] = []
        while self.sent:
            source, send = self.sent.pop(0)
            if send.to >= 0:
                out.append(send)
            elif send.to in (address, *others):
                self.give(send.to, source, send.message)
        return out

    def ask(self, address: int, broker: int, message: Message, term: int | None = None) -> list[Any]:
        """Deliver a broker's request that names a term, the controller's own one by default."""
        known = self.nodes[address].term if term is None else term
        return [
            send
            for send in self.give(address, broker, OfTerm(known, message))
            if isinstance(send, Send) and send.to >= 0
        ]

    def register_all(self, address: int, *others: int) -> dict[int, int]:
        """Register brokers 0 and 1, unfence them, and return their epochs."""
        epochs = {}
        for broker in (0, 1):
            early = self.ask(address, broker, RegisterRequest(broker, 1))
            answers = [send.message.message for send in (*early, *self.replicate(address, *others))]
            (reply,) = (answer for answer in answers if isinstance(answer, RegisterReply))
            epochs[broker] = reply.broker_epoch
        for broker in (0, 1):
            self.ask(address, broker, HeartbeatRequest(broker, epochs[broker], 99))
            self.replicate(address, *others)
        return epochs


def inner(sends: list[Send], kind: type[Any]) -> list[Any]:
    """The messages of a kind to brokers, without their envelope."""
    return [s.message.message for s in sends if isinstance(s.message.message, kind)]
