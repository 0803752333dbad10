"""Simulation runs with two topics of three partitions, one of which is recorded.

    lines = record_topic(7)        partition 7 mod 6, which is t-1

The brokers, their metadata and all that goes wrong are those of all partitions; the others have producers
and elections of their own.  Seeds and faults are as in other recordings, and so is what an event is.

Not here: what an event is (`record`), and recordings of a single partition (`record_run`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from replog.core.controller.placement import assign
from replog.sim.cluster.clients import ClientObserver, Producer
from replog.sim.cluster.node import Network, Node
from replog.sim.cluster.options import WorldOptions
from replog.sim.oracles.pace import MAX_EVENTS
from replog.sim.recording.record import RecordedEvent, RecordedWorld
from replog.sim.recording.record_run import WEATHER, RecordedRun

TOPICS = (("t", 3), ("u", 3))
_TOPICS = replace(WEATHER, name="topics", about="two topics of three partitions", topics=TOPICS)


class TopicRun(RecordedRun):
    """One run; `events` are the events recorded so far of its first partition."""

    def __init__(self, seed: int, max_events: int = MAX_EVENTS) -> None:
        super().__init__(seed, weather=_TOPICS, max_events=max_events)
        for number, name in enumerate(list(self.world.partitions)[1:], 1):
            producer = Producer(
                -100 * number, self.acks, True, _TOPICS.batches, partial(self._leader_of, name),
                self.random.randrange, ClientObserver(), interval_ms=_TOPICS.duration_ms // _TOPICS.batches,
            )  # fmt: skip
            self.world.start_client(producer.address, producer, self.random.randrange(500), name)

    def _make_world(self, options: WorldOptions) -> RecordedWorld:
        placed = {
            f"{topic}-{number}": replicas
            for topic, count in self.weather.topics
            for number, replicas in enumerate(assign(range(options.brokers), count, options.brokers))
        }
        names = list(placed)
        at = self.seed % len(names)
        mine = replace(options, partitions={name: placed[name] for name in (*names[at:], *names[:at])})
        return RecordedWorld(mine, Network(), self.random, self.events.append)

    def _leader_of(self, partition: str) -> int:
        leader = self.world.controller.state.partitions[partition].leader
        return leader if leader >= 0 else self.random.randrange(self.brokers)

    def _inject(self, fault: str, node: Node) -> None:
        if fault == "elect" and self.random.random() < 0.5:
            world = self.world
            world.focus = self.random.choice(list(world.partitions)[1:])
            world.elect_preferred()
            world.focus = world.first
            return
        super()._inject(fault, node)

    def header(self) -> RecordedEvent:
        """Return the first line."""
        return {**super().header(), "partition": self.world.first}


def record_topic(seed: int, max_events: int = MAX_EVENTS) -> list[str]:
    """Return a recording, line by line; an exception of a core is passed on to the caller."""
    return TopicRun(seed, max_events).lines()
