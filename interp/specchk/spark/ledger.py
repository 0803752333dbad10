"""The ledger: the permanent part of a search, with which it continues after the loss of the driver.

    claim                      the driver that has the ledger while it runs (`native.claims`)
    ledger.json                sealed: the identity of the search, and its state when Spark took over
    run-X/00017/00003.slice    states of level 17 that belong to partition 3 (`slices`)

`ledger.json` is written once all levels up to Spark's first frontier are there.  From then on, a level is
done once all its slices are there; nothing else is recorded.  Each run has a folder of its own, so that the
folder of a run that ended before its `ledger.json` belongs to no search; the next run removes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec import Struct, convert, to_builtins

from specchk.export.storage import Storage
from specchk.native import compiler
from specchk.native.engine import NativeEngine
from specchk.native.exchange import Buckets, exchange_worker
from specchk.native.identity import Identity, refuse_others
from specchk.native.machine.frames import Thread
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.runs import Run, gaps
from specchk.native.store import NotedState
from specchk.sealed import Damaged, sealed, unsealed
from specchk.search.engine import Unusable
from specchk.spark.states.slices import Slice, Slices, SliceTally, SpoiledSlice, folder_of

ROOMS = (*compiler.ROOMS, "spark", "export")  # whose sources decide what is found
_NAME = "ledger.json"
_SEAL = "ledger"
_AGAIN = "start a new search in another place"


class Handed(Struct, frozen=True):
    """A search as taken over by Spark; the last of its levels is to be expanded."""

    identity: Identity  # of the search
    run: str
    partitions: int
    sizes: list[int]
    outside: int
    initial: int
    tally: SliceTally
    noted: list[tuple[NotedState, int]]  # findings, with the number of levels then
    seconds: float


def require_search(storage: Storage) -> None:
    """Raise `Unusable` if there is no ledger; called before a claim, which would create its directory."""
    try:
        is_there = storage.exists(_NAME)
    except OSError as error:
        raise Unusable(f"{storage.name_of(_NAME)} cannot be read ({error})") from error
    if not is_there:
        raise Unusable("there is no search in the ledger")


def make_ready(storage: Storage) -> None:
    """Check that a new search can be kept here: `Unusable` if there is one already."""
    try:
        if storage.exists(_NAME):
            raise Unusable("the ledger already has a search: use --resume, or choose another place")
        # Without a `ledger.json` no run can be resumed, so leftovers of earlier ones are only in the way.
        for folder in storage.folders():
            if folder.startswith(folder_of("")):
                storage.remove(folder)
    except OSError as error:
        raise Unusable(f"{storage.name_of('')} cannot be read ({error})") from error


def write_handed(storage: Storage, handed: Handed) -> None:
    """Record where Spark took over, once the levels are there.  `Unwritable`."""
    storage.write(_NAME, [sealed(_SEAL, json.dumps(to_builtins(handed)).encode())])


def read_handed(storage: Storage, identity: Identity) -> Handed:
    """The state in which Spark took over; `Unusable` without a ledger, or with a damaged or foreign one."""
    try:
        with storage.open(_NAME) as file:
            content = json.loads(unsealed(_SEAL, file.read()))
    except FileNotFoundError as error:
        raise Unusable("there is no search in the ledger") from error
    except (OSError, Damaged) as error:
        name = storage.name_of(_NAME)
        raise Unusable(f"{name} is damaged, or of another version of specchk ({error}): {_AGAIN}") from error
    refuse_others("the ledger", content["identity"], identity)
    return convert(content, Handed)


def look_through(slices: Slices, handed: Handed) -> None:
    """Check that all levels handed over are there; `SpoiledSlice` if one is not."""
    for level, size in enumerate(handed.sizes):
        made = slices.level(level, handed.partitions)
        # A lost file of an early level would otherwise be detected only when a table is rebuilt or a trace is
        # found, perhaps hours later.
        if made is None or sum(about.inside for about in made) != size:
            place = slices.storage.name_of(folder_of(slices.run))
            raise SpoiledSlice(f"{place} does not have the {size} states of level {level + 1}: {_AGAIN}")


def hand_over(native: NativeEngine, kernel: Loaded, slices: Slices, partitions: int) -> None:
    """Write all levels of a native search as slices; the last level has the count of excluded states.

    `Unwritable`.
    """
    # For the largest level: its states themselves are dealt, so this is more than enough.
    buckets = Buckets(native.program, native.store.layout, kernel, partitions, max(native.search.levels))
    worker = exchange_worker(native.program, native.store.layout)
    last = len(native.levels) - 1

    def dealt(runs: Sequence[Run]) -> list[list[bytes]]:
        shares: list[list[bytes]] = [[] for _ in range(partitions)]
        for first, count in runs:
            address = native.store.states.address + first * native.store.state_bytes
            for partition, block in buckets.deal(worker, address, count):
                shares[partition].append(block)
        for partition, block in buckets.drain():
            shares[partition].append(block)
        return shares

    def states(share: list[bytes]) -> int:
        return sum(map(len, share)) // native.store.state_bytes

    try:
        for number, runs in enumerate(native.levels):
            # States outside the constraints are in no level, but belong in the visited sets, which keep them
            # from being checked and counted again.  Any level will do, so the last one has them.
            outside = dealt(_outside(native) if number == last else [])
            for partition, (inner, outer) in enumerate(zip(dealt(runs), outside, strict=True)):
                about = Slice(number, partition, states(inner), states(outer))
                slices.write(about, [*inner, *outer])
    finally:
        buckets.release()
        worker.release()


def _outside(native: NativeEngine) -> list[Run]:
    """The states that belong to no level."""
    if not native.store.total(Thread.OUTSIDE):
        return []
    runs = sorted(run for level in native.levels for run in level)
    left = []
    for first, end in native.store.taken():
        inner = [(a, n) for a, n in runs if first <= a < end]
        left += gaps(inner, first, end)
    return left


def handed_of(native: NativeEngine, identity: Identity, run: str, partitions: int) -> Handed:
    """The data of a native search that Spark needs."""
    store = native.store
    tally = SliceTally(store.total(Thread.GENERATED), store.total(Thread.CUTS), native.coverage)
    return Handed(
        identity, run, partitions, list(native.search.levels), store.total(Thread.OUTSIDE),
        native.initial_count, tally, list(native.noted), native.search.meter.seconds,
    )  # fmt: skip
