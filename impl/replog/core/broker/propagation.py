"""The times at which a leader notifies the ZooKeeper controller of ISR changes: history, for example F9.

Theory: S43-S48, I13, A14 of the project's Kafka reference
(ZkAlterPartitionManager.maybePropagateIsrChanges), removed with AlterPartition (2.7).  A task ticks every
`TICK_MS`; it sends what has changed

    if no further change came for more than 5 s, or nothing was sent for more than 60 s      (both strictly)

so it delays notifications only, never the ISR change itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

TICK_MS = 2_500
BLACKOUT_MS = 5_000
MAX_DELAY_MS = 60_000


@dataclass(frozen=True, slots=True)
class Propagator:
    """The pending changes, and the two clocks, which both start with the broker."""

    last_change_ms: int
    last_sent_ms: int
    waiting: frozenset[str] = frozenset()

    def changed(self, partition: str, now_ms: int) -> Propagator:
        """Note an ISR change."""
        return replace(self, last_change_ms=now_ms, waiting=self.waiting | {partition})

    def tick(self, now_ms: int) -> tuple[Propagator, frozenset[str]]:
        """Return the next state, and the partitions to report to the controller now."""
        # A change that comes alone waits for company; a restarting broker changes many partitions in a row.
        is_quiet = self.last_change_ms + BLACKOUT_MS < now_ms
        # Under constant change the first rule never holds, and metadata would never leave the broker.
        is_late = self.last_sent_ms + MAX_DELAY_MS < now_ms
        if self.waiting and (is_quiet or is_late):
            return replace(self, last_sent_ms=now_ms, waiting=frozenset()), self.waiting
        return self, frozenset()
