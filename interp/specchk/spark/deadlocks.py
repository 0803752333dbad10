"""Deadlocks that tasks noted, of which the driver keeps the real ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from specchk.meaning.deadlock import Ends
from specchk.native.exchange import address_of
from specchk.native.machine.frames import DEADLOCK
from specchk.native.resting import resting, smallest_deadlock
from specchk.native.store import NotedState
from specchk.search.findings import Findings
from specchk.spark.parcel import Host


def confirmed(
    host: Host, level: int, noted: Iterable[NotedState], ends: Ends, findings: Findings
) -> Iterator[NotedState]:
    """The records of the states of a level; of deadlocks the smallest real one."""
    for noted_state in noted:
        if noted_state.record != DEADLOCK or not ends.lists_horizon:
            yield noted_state
            continue
        partitions = range(host.parcel.partitions)
        states = chain.from_iterable(_resting(host, level, partition) for partition in partitions)
        state = smallest_deadlock(ends, findings, host.layout, states)
        if state is not None:
            yield NotedState(DEADLOCK, state, state)


def _resting(host: Host, level: int, partition: int) -> Iterator[tuple[int, ...]]:
    with host.worker() as worker, host.slices.open(level, partition) as opened:
        for data, count in opened.blocks():
            thread, words = worker.block.address, host.layout.words
            yield from resting(host.kernel, thread, words, address_of(data), count)
