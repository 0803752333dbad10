"""Confirmation by the driver: of deadlocks noted by tasks, and of a sample of states without violations."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain

from specchk.native.exchange import address_of
from specchk.native.explain import Explainer
from specchk.native.machine.frames import DEADLOCK
from specchk.native.machine.loaded import resting
from specchk.native.machine.runs import sampled
from specchk.native.store import NotedState
from specchk.search.findings import Findings
from specchk.spark.parcel import Host


def confirmed(
    host: Host, level: int, noted: Iterable[NotedState], explain: Explainer, findings: Findings
) -> Iterator[NotedState]:
    """The confirmed records of a level's states; for deadlocks, the smallest real one."""
    for noted_state in noted:
        if noted_state.record != DEADLOCK or not explain.ends.lists_horizon:
            yield noted_state
            continue
        partitions = range(host.parcel.partitions)
        states = chain.from_iterable(_resting(host, level, partition) for partition in partitions)
        deadlock = explain.smallest_deadlock(findings, states)
        if deadlock is not None:
            yield deadlock


def _resting(host: Host, level: int, partition: int) -> Iterator[tuple[int, ...]]:
    with host.worker() as worker, host.slices.open(level, partition) as opened:
        for data, count in opened.blocks():
            thread, words = worker.block.address, host.layout.words
            yield from resting(host.kernel, thread, words, address_of(data), count)


def confirm(explain: Explainer, host: Host, levels: Sequence[int]) -> None:
    """Check some states of a search without violations against the reference semantics; `ReplayFailed`.

    Not whether the states after them are kept: only the tables of their partitions could say.
    """
    explain.confirm(_sampled(host, levels), lambda _: True)


def _sampled(host: Host, levels: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Packed states of some levels, by size, spread over all partitions; more for more states."""
    ends, many = list(accumulate(levels)), host.parcel.partitions
    for number in sampled([(0, ends[-1])]):
        with host.slices.open(bisect_right(ends, number), number % many) as opened:
            # A partition may have no states of a small level.
            data, count = next(opened.blocks(), (b"", 0))
            if count:
                size = 8 * host.layout.words
                first = number % count * size
                yield tuple(array("Q", data[first : first + size]))
