"""Recorded simulation runs: from a seed to a recording.

    lines = record(7)            a header, one line an event, a trailer that counts them

The same seed gives the same recording, byte for byte.  Seeds choose between two and three brokers,
min.insync.replicas of 1 and 2, and acks=all and acks=1.  Faults: lost and late messages, links cut
between any two, pauses, crashes (also between two effects), power losses, sessions that expire under a
live broker, preferred elections, followers that lag, flushes by the operating system.  Nothing keeps
faults apart, so committed records may be lost: a recording says what happened, not that it was well.

Left out, because a reader of recordings may want one record an answer and one follower a time: answers
of more than one record, batches of more than one, controlled shutdowns, disks that fail, duplicated
messages, and overlapping fetches of one follower.  The rules are the defaults, `Protocol()`.

Not here: what an event is (`record`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from replog.core.messages import ControlMessage
from replog.core.protocol import CURRENT, Protocol
from replog.core.types import CONTROLLER
from replog.sim.cluster.clients import ClientObserver, Producer
from replog.sim.cluster.node import Call, Delivery, Item, Network, Node
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.world import START_MS
from replog.sim.faults.faults import FaultyNetwork
from replog.sim.faults.profiles import Profile
from replog.sim.oracles.pace import MAX_EVENTS, Pace
from replog.sim.recording.record import RecordedEvent, RecordedWorld

FORMAT = "replog-recording/1"
WEATHER = Profile(
    "recorded", "every fault that a recording may have", duration_ms=16_000, fault_every_ms=700,
    loss=0.02, tail=0.04, tail_ms=2_000, batches=18,
)  # fmt: skip
FAULTS = (
    "crash",
    "crash-mid-effects",
    "power-loss",
    "pause",
    "cut",
    "cut",
    "expire",
    "elect",
    "elect",
    "miss",
    "flush",
)
RESTART_MS = 1_500
LAST_QUIET = 5
"""In the other four of ten runs sessions end as their broker is proposed: else no proposal is refused."""


class RecordedRun:
    """One run; `events` are the events recorded so far."""

    format = FORMAT
    faults: tuple[str, ...] = FAULTS

    def __init__(
        self, seed: int, rules: Protocol = CURRENT, weather: Profile = WEATHER, max_events: int = MAX_EVENTS
    ) -> None:
        self.seed, self.weather, self.max_events = seed, weather, max_events
        self.random = Random(seed)  # noqa: S311  # chance that must be repeatable
        self.brokers = 2 + self.random.randrange(2)
        self.min_isr = 1 + self.random.randrange(2)
        self.acks = -1 if self.random.random() < 0.75 else 1
        self.events: list[RecordedEvent] = []
        self.network = FaultyNetwork(self.random, weather, is_calm=True)
        # One byte: a reply has the first batch, whatever its size, and no second.
        config = replace(
            weather.config(), lag_ms=1_500, fetch_max_bytes=1, fetch_wait_ms=400, alter_retry_ms=5_000
        )
        options = WorldOptions(self.brokers, self.min_isr, rules, config, 3_000, coalesces_metadata=True)
        self.world = self._make_world(options)
        self._start()

    def _make_world(self, options: WorldOptions) -> RecordedWorld:
        return RecordedWorld(options, Network(), self.random, self.events.append)

    def _start(self) -> None:
        """Let all brokers register and apply epoch 0, before recording and faults begin."""
        world = self.world
        for broker in world.nodes:
            world.restart(broker)
            while entries := [entry for entry in world.pending() if _is_control(entry[2])]:
                world.take(entries[0])
        world.up = set(world.nodes)
        world.network, world.is_recording, self.network.is_calm = self.network, True, False
        producers = (Producer(-10 - i, self.acks, i == 0, self.weather.batches, self._find_leader,
                              self.random.randrange, ClientObserver(), most_records=1,
                              interval_ms=self.weather.duration_ms // self.weather.batches)
                     for i in range(2))  # fmt: skip
        for producer in producers:
            delay_ms = self.random.randrange(500)
            world.start_client(producer.address, producer, delay_ms, world.recorded)
        self._schedule_next()

    def _find_leader(self) -> int:
        leader = self.world.image.leader
        is_right = leader >= 0 and self.random.random() < 0.8
        return leader if is_right else self.random.randrange(self.brokers)

    def run(self) -> None:
        """Run to the end of the faults; an exception of a core, or an endless world, fails the run."""
        for _ in Pace(self.world, self.max_events).until(START_MS + self.weather.duration_ms):
            pass

    def lines(self) -> list[str]:
        """Run, and return the recording line by line."""
        self.run()
        events = (self.header(), *self.events, {"end": True, "events": len(self.events)})
        return [json.dumps(event, separators=(",", ":")) for event in events]

    def header(self) -> RecordedEvent:
        """Return the first line."""
        return {
            "format": self.format,
            "seed": self.seed,
            "profile": self.weather.name,
            "brokers": self.brokers,
            "first_leader": 0,
            "min_isr": self.min_isr,
            "acks": "all" if self.acks == -1 else "one",
        }

    def _schedule_next(self) -> None:
        delay_ms = int(self.random.expovariate(1 / self.weather.fault_every_ms))
        self.world.schedule(delay_ms, Call(self._strike))

    def _strike(self) -> None:
        self._schedule_next()
        leader = self.world.image.leader
        is_leader = leader >= 0 and self.random.random() < 0.4
        node = self.world.nodes[leader if is_leader else self.random.randrange(self.brokers)]
        self._inject(self.random.choice(self.faults), node)

    def _inject(self, fault: str, node: Node) -> None:
        """Inject one fault at one node, if possible."""
        world, me = self.world, node.broker_id
        if fault == "elect":
            world.elect(me)
        elif fault == "miss":
            self._miss_an_epoch(world.image.leader)
        elif fault == "expire" and self.seed % 10 > LAST_QUIET and not world.fences_joining:
            world.fences_joining = True
        elif fault == "expire":
            world.fence(me)
        elif fault == "flush":
            world.flush(me)
        elif fault == "cut":
            self._cut(me)
        elif me in world.up and node.held is None:
            if fault == "pause":
                world.pause(me)
                self._later(partial(world.resume, me))
                return
            if fault == "crash":
                world.crash(me)
            elif fault == "crash-mid-effects":
                node.effects_left = self.random.randrange(6)
            else:
                # All that is not flushed: in a recording a loss is to be as large as it can be.
                world.lose_power(me, lambda _: 0)
            self._restart_later(me)

    def _miss_an_epoch(self, leader: int) -> None:
        """Let another broker lead for a while, and then the leader again, without notifying it."""
        others = [member for member in self.world.image.isr if member != leader]
        if leader < 0 or not others:
            return
        restore = self.network.sever({(CONTROLLER, leader)})
        self.world.elect(self.random.choice(others))

        def back() -> None:
            restore()
            self.world.elect(leader)

        self.world.schedule(200 + self.random.randrange(1_000), Call(back))

    def _cut(self, me: int) -> None:
        other = self.random.choice([peer for peer in self._peers() if peer != me])
        both = self.random.random() < 0.7
        links = {(me, other), (other, me)} if both else {(me, other)}
        self._later(self.network.sever(links))

    def _peers(self) -> tuple[int, ...]:
        return (*self.world.nodes, CONTROLLER)

    def _later(self, action: Callable[[], None]) -> None:
        delay_ms = int(self.random.expovariate(1 / RESTART_MS)) + 50
        self.world.schedule(delay_ms, Call(action))

    def _restart_later(self, broker: int) -> None:
        """Restart the process after a while; check again later if it still runs."""

        def restart() -> None:
            if self.world.nodes[broker].broker is None:
                self.world.restart(broker)
            elif self.world.nodes[broker].effects_left >= 0:
                self._restart_later(broker)

        self._later(restart)


def record(seed: int, rules: Protocol = CURRENT, max_events: int = MAX_EVENTS) -> list[str]:
    """Return a recording, line by line; an exception of a core is passed on to the caller."""
    return RecordedRun(seed, rules, max_events=max_events).lines()


def _is_control(item: Item) -> bool:
    return isinstance(item, Delivery) and isinstance(item.message, ControlMessage)
