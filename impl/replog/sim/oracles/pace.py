"""The pace of a run: event by event up to a moment, with a limit on the number of events.

A world in which messages beget messages without delay has no passing time; only a count ends it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replog.sim.cluster.world import START_MS, World
from replog.sim.oracles.promises import ViolationError

MAX_EVENTS = 1_000_000
"""About a hundred times what a run takes."""


@dataclass(slots=True)
class Pace:
    """Counts the events of one world over its whole run."""

    world: World
    max_events: int = MAX_EVENTS
    events: int = 0

    def until(self, end_ms: int) -> Iterator[None]:
        """Execute all events before `end_ms`, yielding after each, and advance the time to it.

        `ViolationError` (step-limit) if the run takes more than `max_events`.
        """
        while self.world.now_ms < end_ms:
            if self.events == self.max_events:
                passed_ms = self.world.now_ms - START_MS
                raise ViolationError("step-limit", f"{self.events} events in {passed_ms / 1000:.1f} seconds")
            # Nothing is left to happen; the rest of the time is empty.
            if not self.world.step():
                self.world.now_ms = end_ms
                return
            self.events += 1
            yield
