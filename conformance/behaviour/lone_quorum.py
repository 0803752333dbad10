"""Runs of three controllers alone, whose messages arrive in any order, repeatedly, or never.

In a cluster most elections are won by the controller that waited longest, with a complete log.  Here a seed
determines the candidates, the arriving messages, and the progress of each at the start of the next one.
"""

from __future__ import annotations

from random import Random

from observed_world import note_effect

from replog.core.broker.contact import Contact
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState
from replog.core.effects import Effect, Event, Fired, Received, Send, Timer
from replog.core.messages import HeartbeatRequest, MetadataRequest, OfTerm, RegisterRequest
from replog.core.protocol import preset
from replog.core.quorum.node import ControllerNode
from replog.core.quorum.records import record_of
from replog.core.types import CONTROLLER
from replog.sim.cluster.quorum import addresses
from specchk.conform.contract.behaviours import RunWatch

VOTERS = addresses(3)
BROKERS = 3
UNDER_WAY = 30


class LoneQuorum:
    """One run: the controllers, and the messages in flight between them and to brokers."""

    def __init__(self, watch: RunWatch, seed: int, protocol: str) -> None:
        self.watch = watch
        self.random = Random(seed)  # noqa: S311  # chance that must be repeatable
        rules, config = preset(protocol), ControllerConfig(1, 4_000)
        controller = Controller(ControllerState(config, rules))
        controller.create_partition("t-0", tuple(range(BROKERS)))
        first = record_of(controller.state, 1)
        self.nodes = {a: ControllerNode(a, VOTERS, config, rules, 1, [first], hw=1) for a in VOTERS}
        self.contacts = [Contact(VOTERS, rules.newest_only) for _ in range(BROKERS)]
        self.under_way: list[tuple[int, Send]] = []
        self.now_ms = 0

    def run(self, actions: int) -> None:
        """Take this many steps."""
        ways, weights = zip(
            (self._deliver, 60), (self._tick, 12), (self._stand, 1), (self._request, 14), (self._check, 4),
            (self._replace, 1), strict=True,
        )  # fmt: skip
        for way in self.random.choices(ways, weights, k=actions):
            way(self.random.choice(VOTERS))

    def _give(self, address: int, event: Event) -> None:
        self.watch.step(event)
        self._perform(address, self.nodes[address].handle(event, self.now_ms))

    def _perform(self, address: int, effects: list[Effect]) -> None:
        for effect in effects:
            note_effect(self.watch, f"controller {address}", effect)
            if isinstance(effect, Send):
                self.under_way.append((address, effect))
        del self.under_way[:-UNDER_WAY]

    def _deliver(self, address: int) -> None:
        """Deliver a message, usually the oldest; sometimes it stays in flight."""
        del address
        if not self.under_way:
            return
        index = 0 if self.random.random() < 0.7 else self.random.randrange(len(self.under_way))
        source, send = self.under_way[index]
        if self.random.random() < 0.9:
            del self.under_way[index]
        if send.to in self.nodes:
            self._give(send.to, Received(source, send.message))
        elif isinstance(send.message, OfTerm):
            self.contacts[send.to].accept(source, send.message)

    def _tick(self, address: int) -> None:
        self.now_ms += self.random.choice((50, 200, 200, 600))
        self._give(address, Fired(Timer.QUORUM))

    def _stand(self, address: int) -> None:
        self.watch.step(f"controller {address} stands for election")
        self._perform(address, self.nodes[address].stand(self.now_ms))

    def _request(self, address: int) -> None:
        """Let a broker register, beat, or request metadata, at the controller that its contact knows."""
        del address
        broker = self.random.randrange(BROKERS)
        life, version = self.random.randrange(1, 3), self.random.randrange(12)
        message = self.random.choice(
            (RegisterRequest(broker, life), HeartbeatRequest(broker, 2 + version, version),
             MetadataRequest(broker, version - 1))
        )  # fmt: skip
        (send,) = self.contacts[broker].addressed([Send(CONTROLLER, message)])
        assert isinstance(send, Send)
        self._give(send.to, Received(broker, send.message))

    def _check(self, address: int) -> None:
        self.now_ms += self.random.choice((0, 1_000))
        self._give(address, Fired(Timer.SESSION_CHECK, self.nodes[address].term))

    def _replace(self, address: int) -> None:
        """Continue with copies, which must be equal to the originals."""
        self.nodes[address] = self.nodes[address].copy()
        self.contacts = [contact.copy() for contact in self.contacts]
