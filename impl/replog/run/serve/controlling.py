"""The controller of a cluster in a process: its metadata on disk, its timers, and a way to each broker.

    broker --receive--> controller -> the catalog on disk -> deliver(broker, answer or announcement)

Invariant: nobody is told of a change that is not on the disk.  With one broker both are in one process; with
several, `links` brings their messages.

Not here: decisions (`core.controller`), and the file (`catalog`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from replog.core.controller.controller import Controller
from replog.core.controller.state import ControllerConfig, ControllerState
from replog.core.effects import Effect, Fired, Received, Send, SetTimer, Timer
from replog.core.messages import Message
from replog.core.protocol import CURRENT
from replog.core.quorum.records import record_of, restored
from replog.core.types import METADATA_HISTORY, BrokerState
from replog.run.serve.catalog import Catalog

OPERATOR = -99
"""The address of operators, who are answered from the metadata."""
EPOCH_MS = 1_000_000
"""What a clock shows at the start: 0 would look like "never"."""


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """Create the partitions of topics, each with its replicas; topics that exist stay as they are."""

    partitions: dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class DeletePartitions:
    """Delete partitions with all their records; those that do not exist are ignored."""

    names: tuple[str, ...]


class Watcher(Protocol):
    """Who records what a controller decides."""

    def begin(self) -> None:
        """Look at the state before a decision."""

    def decided(self, effects: list[Effect]) -> None:
        """Learn of a decision that is on the disk, and of what follows."""


Order = Message | CreatePartitions | DeletePartitions
"""What a broker sends to its controller: the core's messages, and what a client wants done to topics."""


class Clock:
    """The time of a process in milliseconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._began = loop.time()

    def now_ms(self) -> int:
        """Return the time."""
        return EPOCH_MS + int((self._loop.time() - self._began) * 1_000)


class Controlling:
    """A running controller; `failed` is called when its disk fails, after which it does nothing."""

    def __init__(
        self,
        catalog: Catalog,
        min_isr: int,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[int, Message], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._catalog = catalog
        self._loop = loop
        self._clock = Clock(loop)
        self._deliver = deliver
        self._failed = failed
        self._is_over = False
        self.watcher: Watcher | None = None
        config = ControllerConfig(min_isr=min_isr)
        # Before a session's length ago: nobody has a session with a controller that has just started.
        past = self._clock.now_ms() - config.session_timeout_ms - 1
        state = restored(catalog.record, config, CURRENT, past)
        # The versions before the last are forgotten.  With this gap no broker waits for one that it lacks.
        last = state.history[-1]
        state.history = [replace(last, version=last.version + METADATA_HISTORY + 1)]
        self._controller = Controller(state)

    @property
    def state(self) -> ControllerState:
        """The controller's state, which is read only."""
        return self._controller.state

    def begin(self, partitions: dict[str, tuple[int, ...]]) -> None:
        """Create the partitions that every cluster has, and arm the timers."""
        self.receive(OPERATOR, CreatePartitions(partitions))
        self._perform(self._controller.start())

    def receive(self, source: int, order: Order) -> None:
        """Decide on a message of a broker or an operator."""
        state = self.state
        match order:
            case CreatePartitions(partitions):
                # As a whole: of two requests for a topic, the later one must not add partitions to it.
                topics = {name.rpartition("-")[0] for name in state.partitions}
                new = {n: held for n, held in partitions.items() if n.rpartition("-")[0] not in topics}
                self._decide(lambda: self._controller.create(new) if new else [])
            case DeletePartitions(names):
                old = [name for name in names if name in state.partitions]
                self._decide(lambda: self._controller.delete(old) if old else [])
            case _:
                self._decide(lambda: self._controller.handle(Received(source, order), self._clock.now_ms()))

    def expire(self, broker_id: int) -> None:
        """End the session of a broker whose connection has ended: on one machine, its process has."""
        brokers, now_ms = self.state.brokers, self._clock.now_ms()
        known = brokers.get(broker_id)
        if known is not None and known.state is not BrokerState.FENCED:
            # Not seen since the clock began.
            brokers[broker_id] = replace(known, last_seen_ms=0)
            check = Fired(Timer.SESSION_CHECK)
            # The periodic check is armed already.
            self._decide(
                lambda: [e for e in self._controller.handle(check, now_ms) if not isinstance(e, SetTimer)]
            )

    def _decide(self, decision: Callable[[], list[Effect]]) -> None:
        if self._is_over:
            return
        version = self.state.version
        if self.watcher is not None:
            self.watcher.begin()
        effects = decision()
        if self.state.version != version:
            self._catalog.record = record_of(self.state, self._catalog.starts)
            try:
                self._catalog.save()
            except OSError as error:
                self._is_over = True
                self._failed(error)
                return
        if self.watcher is not None:
            self.watcher.decided(effects)
        self._perform(effects)

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._deliver(effect.to, effect.message)
            elif isinstance(effect, SetTimer):
                self._loop.call_later(effect.delay_ms / 1_000, self._fire, Fired(effect.timer, effect.token))

    def _fire(self, fired: Fired) -> None:
        self._decide(lambda: self._controller.handle(fired, self._clock.now_ms()))


def started(catalog: Catalog) -> Catalog:
    """Count a start of the controller, durably."""
    catalog.starts += 1
    catalog.save()
    return catalog
