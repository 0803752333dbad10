"""The export of a search on Spark: executors convert the ledger's slices to parts of tables.

The states and steps of a partition are one task.  A step's end is named by its hash, so that no task needs
another one's table.  The hash also determines the partition, so states with equal names would be in one task,
which compares them.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from msgspec import Struct
from pyspark import SparkContext

from specchk.export.names import names_of, require_distinct
from specchk.export.packed import PackedWriter, Written
from specchk.export.parts import Draft, Unwritten
from specchk.meaning.values import State
from specchk.native.exchange import address_of
from specchk.native.machine.loaded import Loaded
from specchk.native.tiers import load_edges
from specchk.spark.parcel import host_of, worker_host
from specchk.spark.reasons import SPARK_FAILED, root_cause
from specchk.spark.states.slices import BrokenSlice


def export_slices(
    parcel: Any, draft: Draft, levels: int, expanded: int, partitions: Iterable[int]
) -> Iterator[Written]:
    """The table parts of each partition, with their counts; `parcel` is a broadcast.

    Of the `levels` the first `expanded` ones have steps.
    """
    host, kernel = worker_host(parcel.value), _kernel(parcel.value)
    for partition in partitions:
        writer = PackedWriter(host.parcel.program, host.layout, kernel, draft, partition)
        try:
            for level in range(levels):
                with host.slices.open(level, partition) as opened:
                    for data, count in opened.blocks():
                        writer.add(level + 1, address_of(data), count, expanded=level < expanded)
            written = writer.close()
        except Unwritten as error:
            raise Unwritten(f"{error} (on {socket.gethostname()})") from error
        finally:
            writer.release()
        require_distinct(kernel, written.names)
        written.names.clear()
        yield written


@lru_cache(maxsize=2)
def _kernel(packed: bytes) -> Loaded:
    host = host_of(packed)
    return load_edges(host.parcel.program, host.layout, host.parcel.renamings, is_long=True)


class SliceSource(Struct, frozen=True):
    """The states of a search on Spark (`export.sources.SpaceSource`)."""

    context: SparkContext
    parcel: Any
    packed: bytes
    levels: int
    expanded: int

    def write(self, draft: Draft) -> Written:
        """See `SpaceSource`; raises `Unwritten`, also if Spark or a slice is the reason."""
        many = host_of(self.packed).parcel.partitions
        _kernel(self.packed)  # compiled here, executors on this machine find it
        task = partial(export_slices, self.parcel, draft, self.levels, self.expanded)
        try:
            parts: Sequence[Written] = (
                self.context.parallelize(range(many), many).mapPartitions(task).collect()
            )
        except (*SPARK_FAILED, BrokenSlice) as error:
            raise Unwritten(_reason(str(error), draft)) from error
        written = Written()
        for one in parts:
            written.add(one)
        for part in written.parts:
            # A directory that only its executor has is no place for an export.
            if not draft.has(part.file):
                raise Unwritten(
                    f"{draft.target}: an executor wrote {part.file} where this machine does not see it"
                )
        return written

    def names(self, states: list[State]) -> list[int | None]:
        """See `SpaceSource`."""
        host = host_of(self.packed)
        return names_of(states, host.parcel.program, host.layout, _kernel(self.packed))


def _reason(text: str, draft: Draft) -> str:
    """The reason of a failed task: the file that it could not write, if that is the cause."""
    kind = f"{Unwritten.__module__}.{Unwritten.__qualname__}: "
    told = [line.strip() for line in text.splitlines() if line.strip().startswith(kind)]
    return told[-1].removeprefix(kind) if told else f"{draft.target}: {root_cause(text)}"
