"""A leader that deletes at any offset, also inside batches, and a follower that lags behind it, or dies.

The gate of conformance/log_start has batches of one record; here they have up to three.
"""

from __future__ import annotations

from random import Random

import pytest
from core_support import CLIENT, NOW, leading, metadata, produce, replica_of

from replog.core.broker.replica import Replica
from replog.core.broker.state import Config
from replog.core.effects import Effect, Send, SetTimer, Timer
from replog.core.messages import DeleteRecordsRequest
from replog.sim.disks.stored import StoreStorage

CONFIG = Config(fetch_wait_ms=0, fetch_max_bytes=150, hw_checkpoint_ms=1)


class Pair:
    """Broker 0 leads, alone in the ISR; broker 1 follows.  Every effect is on disk before the next event."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.leader, self.follower = leading(isr=(0,), config=CONFIG), replica_of(1, config=CONFIG)
        self.disks = {0: StoreStorage(), 1: StoreStorage()}
        self.begins_again = 0
        for disk in self.disks.values():
            disk.recover()
        self.perform(1, self.follower.apply(metadata(0, isr=(0,)), 2, NOW))

    def perform(self, broker: int, effects: list[Effect]) -> list[Send]:
        for effect in effects:
            if not isinstance(effect, Send | SetTimer):
                self.disks[broker].perform(effect)
        return [effect for effect in effects if isinstance(effect, Send) and effect.to in (0, 1)]

    def produce(self) -> None:
        self.perform(0, produce(self.leader, acks=1, count=self.random.randint(1, 3)))

    def delete(self) -> None:
        log = self.leader.state.log
        offset = self.random.randint(log.log_start, log.hw)
        self.perform(0, self.leader.receive(CLIENT, DeleteRecordsRequest(1, offset, 1), NOW))

    def exchange(self) -> None:
        """One request of the follower, and its reply."""
        before = self.follower.state.log.log_start
        for request in self.perform(1, self.follower.fire(Timer.SEND_FETCH, 0, NOW)):
            for reply in self.perform(0, self.leader.receive(1, request.message, NOW)):
                self.perform(1, self.follower.receive(0, reply.message, NOW))
        log = self.follower.state.log
        self.begins_again += log.log_start > before and not log.batches
        assert log.log_start <= log.hw <= log.leo

    def die(self) -> None:
        """End the follower's process, and start another one on its disk."""
        self.disks[1].crash()
        log = self.disks[1].recover().log
        assert log.cells() == self.follower.state.log.cells()
        self.follower = Replica(replica_of(1, log, config=CONFIG).state)
        self.perform(1, self.follower.apply(metadata(0, isr=(0,)), 2, NOW))

    def settle(self) -> None:
        for _ in range(60):
            self.exchange()


@pytest.mark.parametrize("seed", range(12))
def test_a_follower_gets_what_the_leader_keeps(seed):
    """A8, A9, A35: the same records from the same start, in memory and on disk, after any deletions."""
    pair = Pair(seed)
    for _ in range(60):
        step = pair.random.choice([pair.produce, pair.produce, pair.delete, pair.exchange, pair.die])
        step()
    pair.settle()
    ours, theirs = pair.leader.state.log, pair.follower.state.log
    assert (ours.log_start, ours.leo, ours.cells()) == (theirs.log_start, theirs.leo, theirs.cells())
    for broker, log in ((0, ours), (1, theirs)):
        found = pair.disks[broker].copy().recover().log
        assert (found.log_start, found.cells()) == (log.log_start, log.cells())


def test_the_runs_meet_what_they_are_for():
    """Some followers restart at the leader's log start, and some starts are inside a batch."""
    pairs = [Pair(seed) for seed in range(12)]
    inside = 0
    for pair in pairs:
        for _ in range(60):
            pair.random.choice([pair.produce, pair.produce, pair.delete, pair.exchange])()
            log = pair.leader.state.log
            inside += bool(log.batches) and log.batches[0].base_offset < log.log_start
    assert sum(pair.begins_again for pair in pairs) > 3
    assert inside > 10
