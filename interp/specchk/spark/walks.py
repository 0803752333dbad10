"""Random simulation on executors: the blocks of `explore.walkers`, taken by free executors.

A block has a seed of its own and outcomes are taken in the blocks' order, so the walks and what is
reported are those of one machine.  Blocks go out in waves, so that a violation ends the run early.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any

from pyspark import SparkContext

from specchk.explore.simulate import Walks, walked
from specchk.explore.walkers import Block, simulate_by
from specchk.ir.program import Program
from specchk.search.budget import Progress
from specchk.search.verdict import Outcome
from specchk.spark.jobs import Failed, reason_of
from specchk.spark.reasons import SPARK_FAILED
from specchk.spark.session import session

# Enough that no core waits for the last block of a wave for long, few enough that a violation ends the run
# soon.
WAVE = 4  # blocks for each core between two checks for findings


def simulate(
    program: Program, walks: Walks, master: str | None, on_progress: Callable[[Progress], None] | None = None
) -> Outcome:
    """As `explore.walkers.simulate_on`, on a cluster; `Unavailable` without Spark, `Failed` if it ends."""
    with session(master, {}) as context:
        try:
            return simulate_by(program, walks, lambda p, todo: _taken(context, p, todo), on_progress)
        except SPARK_FAILED as error:
            raise Failed(reason_of(error)) from error


def _taken(context: SparkContext, program: Program, todo: list[Walks]) -> Generator[Block, None, None]:
    shipped = context.broadcast(pickle.dumps(program, protocol=5))
    size = max(1, WAVE * context.defaultParallelism)
    for first in range(0, len(todo), size):
        wave = todo[first : first + size]
        context.setJobDescription(f"specchk {program.spec}: walk blocks {first + 1} to {first + len(wave)}")
        # A task for each block: a worker that is slow holds up one block only.
        yield from context.parallelize(wave, len(wave)).mapPartitions(partial(_walk, shipped)).collect()


def _walk(shipped: Any, todo: Iterable[Walks]) -> Iterator[Block]:
    """The outcomes of blocks, in order; `shipped` is a broadcast of the pickled program."""
    program: Program = pickle.loads(shipped.value)  # noqa: S301 - the driver of this application packed it
    for block in todo:
        yield walked(program, block)
