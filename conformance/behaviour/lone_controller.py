"""Runs of the controller alone: brokers register, beat and propose as no replog process would.

In a cluster a request follows from its sender's state.  Here a seed determines it, from the controller's
answers and announcements: epochs of this life or an earlier one, any members, sessions that end in any order.
"""

from __future__ import annotations

from random import Random

from observed_world import note_effect
from walk_clients import CLIENT

from replog.core import messages
from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState
from replog.core.effects import Effect, Event, Fired, Received, Send, Timer
from replog.core.protocol import preset
from replog.core.types import MetadataImage
from replog.sim.cluster.world import OPERATOR
from specchk.conform.contract.behaviours import RunWatch

NAME = "t-0"
BROKERS = 4
REPLICAS = (0, 1, 2)


class LoneController:
    """One run; `lives` are the broker epochs given to each broker, the last one last."""

    def __init__(self, watch: RunWatch, seed: int, protocol: str) -> None:
        self.watch = watch
        self.random = Random(seed)  # noqa: S311  # chance that must be repeatable
        choice = self.random.choice
        config = ControllerConfig(choice((1, 2, 2)), choice((2_000, 9_000)), 1_000, choice((3, 50)))
        self.controller = Controller(ControllerState(config, preset(protocol)))
        self.controller.create_partition(NAME, REPLICAS)
        self.now_ms = 0
        self.lives: dict[int, list[int]] = {broker: [] for broker in range(BROKERS)}
        self.processes = dict.fromkeys(range(BROKERS), 0)
        self.known: MetadataImage | None = None

    def run(self, actions: int) -> None:
        """Give the controller this many events."""
        random = self.random
        self._perform(self.controller.start())
        for broker in range(BROKERS):
            self._register(broker)
        ways, weights = zip(
            (self._register, 10), (self._beat, 30), (self._propose, 30), (self._operate, 10),
            (self._let_time_pass, 10), (self._send_something_else, 1), strict=True,
        )  # fmt: skip
        for way in random.choices(ways, weights, k=actions):
            way(random.randrange(BROKERS))

    def _give(self, event: Event) -> None:
        self.watch.step(event)
        self._perform(self.controller.handle(event, self.now_ms))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            note_effect(self.watch, "controller", effect)
            if not isinstance(effect, Send):
                continue
            if isinstance(effect.message, messages.RegisterReply) and effect.message.broker_epoch >= 0:
                self.lives[effect.to].append(effect.message.broker_epoch)
            elif isinstance(effect.message, messages.MetadataUpdate) and effect.message.images:
                self.known = effect.message.images[-1]

    def _send(self, source: int, message: messages.Message) -> None:
        self._give(Received(source, message))

    def _life(self, broker: int) -> int:
        """Return a broker's epoch: usually the current one."""
        lives = self.lives[broker] or [-1]
        return self.random.choice((lives[-1], lives[-1], lives[-1], lives[-1], self.random.choice(lives), -1))

    def _register(self, broker: int) -> None:
        """Let a new or known process register, with any marker of an earlier stop."""
        self.processes[broker] += self.random.random() < 0.8
        self.now_ms += self.random.choice((0, 1, 10_000))
        self._send(broker, messages.RegisterRequest(broker, self.processes[broker], self._life(broker)))

    def _beat(self, broker: int) -> None:
        version = self.known.version if self.known is not None else -1
        version += self.random.choice((0, 0, 0, 0, 0, -1, 1, -4))
        wish = self.random.random() < 0.1
        self._send(broker, messages.HeartbeatRequest(broker, self._life(broker), version, wish))

    def _propose(self, broker: int) -> None:
        """Let a broker, usually the leader, propose any ISR."""
        random = self.random
        if self.known is None or NAME not in self.known.partitions:
            return
        image = self.known.partitions[NAME]
        leader = image.leader if image.leader >= 0 and random.random() < 0.9 else broker
        others = [member for member in range(BROKERS) if member != leader and random.random() < 0.5]
        members = [leader, *others] if random.random() < 0.95 else [*others, *others[:1]]
        request = messages.AlterPartitionRequest(
            random.randrange(99), NAME if random.random() < 0.97 else "t-9", leader, self._life(leader),
            image.leader_epoch + random.choice((0, 0, 0, 0, 0, 0, 1, -1)),
            image.partition_epoch + random.choice((0, 0, 0, 0, 0, 0, 1, -1)),
            tuple((member, self._life(member)) for member in members), random.random() < 0.25,
        )  # fmt: skip
        self._send(leader, request)

    def _operate(self, broker: int) -> None:
        random, name = self.random, NAME if self.random.random() < 0.95 else "t-9"
        target = tuple(random.sample(range(BROKERS + 1), random.choice((0, 2, 3, 3))))
        requests: tuple[messages.Message, ...] = (
            messages.ElectRequest(1, name), messages.ElectRequest(2, name, True),
            messages.ConfigureRequest(3, name, random.randrange(4)),
            messages.ReassignRequest(4, name, target),
            messages.MetadataRequest(broker, random.randrange(-1, 9)),
        )  # fmt: skip
        self._send(OPERATOR, random.choice(requests))

    def _let_time_pass(self, broker: int) -> None:
        del broker
        self.now_ms += self.random.choice((1, 500, 1_000, 2_000, 2_001, 9_000))
        self._give(Fired(Timer.SESSION_CHECK))

    def _send_something_else(self, broker: int) -> None:
        """Send a message that is not for a controller."""
        if self.random.random() < 0.5:
            self._give(Fired(Timer.SEND_FETCH))
        else:
            self._send(CLIENT, messages.RegisterReply(broker, 0, 1))  # type: ignore[arg-type]
