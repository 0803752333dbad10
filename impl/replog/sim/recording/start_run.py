"""Recorded simulation runs in which records are deleted from the front of logs: from a seed to a recording.

    lines = record_starts(7, "delete")     a client deletes records
    lines = record_starts(7, "retain")     each broker keeps a few only, on the real store

Faults are those of a reader that knows no lost page cache: lost and late messages, links cut between two
brokers, crashes of a process, sessions that expire under a live broker, preferred elections, leaders that
miss an epoch, followers that lag.  The rules are the defaults, `Protocol()`; min.insync.replicas is 1.

Not here: what an event is (`start_world`), and recordings of everything else (`record_run`).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from replog.sim.cluster.clients import Cleaner, ClientObserver
from replog.sim.cluster.node import Network, Node
from replog.sim.cluster.options import WorldOptions
from replog.sim.disks.stored import StoreStorage
from replog.sim.faults.profiles import Profile
from replog.sim.oracles.pace import MAX_EVENTS
from replog.sim.recording.record import RecordedEvent, RecordedWorld
from replog.sim.recording.record_run import WEATHER, RecordedRun
from replog.sim.recording.start_world import StartWorld

FORMAT = "replog-start-recording/1"
CLEANER = -50
_DELETE = replace(WEATHER, name="delete", about="a client deletes the oldest records", deletes=True)
_RETAIN = replace(
    WEATHER, name="retain", about="each broker deletes what is more than it has to keep",
    uses_store=True, retention_bytes=300,
)  # fmt: skip
WEATHERS = MappingProxyType({weather.name: weather for weather in (_DELETE, _RETAIN)})
"""By name, as of the profiles of simulations."""


class StartRun(RecordedRun):
    """One run; `events` are the events recorded so far."""

    faults = ("crash", "cut", "cut", "cut", "expire", "elect", "elect", "miss")

    def __init__(self, seed: int, weather: Profile, max_events: int) -> None:
        super().__init__(seed, weather=weather, max_events=max_events)
        if weather.deletes:
            choose, observer = self.random.randrange, ClientObserver()
            cleaner = Cleaner(CLEANER, self._find_leader, choose, self._choose_offset, observer, 500, 2_000)
            self.world.start_client(CLEANER, cleaner, choose(2_000))

    def _make_world(self, options: WorldOptions) -> RecordedWorld:
        self.min_isr = 1
        storage = StoreStorage if self.weather.uses_store else options.make_storage
        config = replace(options.config, retention_check_ms=1_000)
        mine = replace(options, min_isr=1, config=config, make_storage=storage)
        return StartWorld(mine, Network(), self.random, self.events.append)

    def _choose_offset(self) -> int:
        """Return an offset up to which a leader could delete, most of the time."""
        leader = self.world.nodes.get(self.world.image.leader)
        if leader is None or leader.broker is None:
            return 1
        log = leader.broker.state.log
        return log.log_start + 1 + self.random.randrange(max(log.hw - log.log_start, 1))

    def _inject(self, fault: str, node: Node) -> None:
        assert isinstance(self.world, StartWorld)
        if fault not in ("crash", "expire") or self.world.may_go(node.broker_id):
            super()._inject(fault, node)

    def _peers(self) -> tuple[int, ...]:
        return tuple(self.world.nodes)

    def header(self) -> RecordedEvent:
        """Return the first line."""
        return {**super().header(), "format": FORMAT}


def record_starts(seed: int, profile: str = "delete", max_events: int = MAX_EVENTS) -> list[str]:
    """Return a recording, line by line; an exception of a core is passed on to the caller."""
    return StartRun(seed, WEATHERS[profile], max_events).lines()
