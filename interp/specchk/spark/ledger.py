"""The ledger: what of a search is kept for good, and taken up again after the driver was lost.

    ledger.json              what it is a search of, and what was known when Spark took over
    levels/00017/00003.slice states of level 17 that belong to partition 3 (`slices`)

`ledger.json` is written when all levels up to the first frontier of Spark are there.  From then on a
level is done when all its slices are there; nothing else has to be remembered.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from specchk.native.checkpoint import Unusable
from specchk.native.compiler import Loaded
from specchk.native.engine import Search as NativeSearch
from specchk.native.exchange import Buckets, exchange_worker
from specchk.native.frames import Thread
from specchk.native.store import Found, Run
from specchk.spark.slices import Slice, Tally, done, tally_of, write_slice
from specchk.spark.storage import Storage

FORMAT = 1
_NAME = "ledger.json"


@dataclass(frozen=True, slots=True)
class Handed:
    """A search as Spark takes it over; of the levels the last one is to be expanded."""

    format: int
    program: str  # what it is a search of
    run: str
    partitions: int
    sizes: list[int]
    outside: int
    initial: int
    tally: Tally
    noted: list[tuple[Found, int]]  # what was found, with the number of levels then
    seconds: float


def write_handed(storage: Storage, handed: Handed) -> None:
    """Keep where Spark took over; the levels are there already."""
    storage.write(_NAME, [json.dumps(asdict(handed)).encode()])


def is_there(storage: Storage) -> bool:
    """Whether there is a ledger."""
    return storage.exists(_NAME)


def read_handed(storage: Storage, program: str) -> Handed:
    """Where Spark took over; `Unusable` if there is no ledger, or one of something else."""
    if not is_there(storage):
        raise Unusable("there is no search in the ledger")
    with storage.open(_NAME) as file:
        found = json.loads(file.read())
    if found.get("format") != FORMAT or found.get("program") != program:
        raise Unusable("the ledger is of another spec, model, option or version")
    noted = [
        (Found(one["record"], tuple(one["state"]), tuple(one["after"])), depth)
        for one, depth in found["noted"]
    ]
    return Handed(**{**found, "tally": tally_of(found["tally"]), "noted": noted})


def level_of(storage: Storage, level: int, partitions: int, state_bytes: int) -> list[Slice] | None:
    """The slices of a level, or None where one is missing."""
    slices = []
    for partition in range(partitions):
        about = done(storage, level, partition, state_bytes)
        if about is None:
            return None
        slices.append(about)
    return slices


def hand_over(search: NativeSearch, kernel: Loaded, storage: Storage, partitions: int) -> None:
    """Write all levels of a native search as slices; what constraints left out goes with the last."""
    buckets = Buckets(search.program, search.store.layout, kernel, partitions)
    worker = exchange_worker(search.program, search.store.layout)
    last = len(search.levels) - 1

    def dealt(runs: Sequence[Run]) -> list[list[bytes]]:
        shares: list[list[bytes]] = [[] for _ in range(partitions)]
        for first, count in runs:
            address = search.store.states.address + first * search.store.state_bytes
            for partition, block in buckets.deal(worker, address, count):
                shares[partition].append(block)
        for partition, block in buckets.drain():
            shares[partition].append(block)
        return shares

    def states(share: list[bytes]) -> int:
        return sum(map(len, share)) // search.store.state_bytes

    try:
        for number, runs in enumerate(search.levels):
            outside = dealt(_outside(search) if number == last else [])
            for partition, (inner, outer) in enumerate(zip(dealt(runs), outside, strict=True)):
                about = Slice(number, partition, states(inner), states(outer))
                write_slice(storage, about, [*inner, *outer])
    finally:
        buckets.release()
        worker.release()


def _outside(search: NativeSearch) -> list[Run]:
    """The states of no level."""
    if not search.store.total(Thread.OUTSIDE):
        return []
    runs = sorted(run for level in search.levels for run in level)
    found = []
    for first, end in search.store.taken():
        inner = [(a, n) for a, n in runs if first <= a < end]
        found += gaps(inner, first, end)
    return found


def gaps(runs: Sequence[Run], first: int, end: int) -> list[Run]:
    """What of first..end is in none of the runs."""
    found = []
    for start, count in [*sorted(runs), (end, 0)]:
        if first < start:
            found.append((first, start - first))
        first = start + count
    return found


def handed_of(search: NativeSearch, program: str, run: str, partitions: int) -> Handed:
    """What Spark has to know of a native search."""
    store = search.store
    tally = Tally(store.total(Thread.GENERATED), store.total(Thread.CUTS), search.coverage)
    return Handed(
        FORMAT, program, run, partitions, list(search.sizes), store.total(Thread.OUTSIDE),
        search.initial_count, tally, list(search.noted), search.meter.seconds,
    )  # fmt: skip
