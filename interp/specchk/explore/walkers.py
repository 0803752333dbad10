"""Random simulation on all cores: the walks do not depend on the worker that takes them.

Walks come in blocks of `BLOCK`, each with its own seed that is derived from the seed of the run,
so neither the walks nor the report depends on the number of processes: blocks are merged in
order, and the first with a violation is the last that counts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from random import Random

from msgspec.structs import replace

from specchk.explore.simulate import Walks, found_nothing, simulate, walked
from specchk.ir.program import Program
from specchk.meaning.values import State
from specchk.parallel import results_of
from specchk.search.budget import Budget, Meter, Progress, resident_bytes
from specchk.search.verdict import Inconclusive, Outcome, Trace, Violated, WalkCounts, stopped_by

# A part of a seed's meaning: with another size the same seed would give other walks.
BLOCK = 50

Block = tuple[Outcome, frozenset[State]]


def simulate_on(
    program: Program, walks: Walks, workers: int, on_progress: Callable[[Progress], None] | None = None
) -> Outcome:
    """As `simulate`, in blocks, on `workers` processes."""
    meter = Meter(walks.budget)
    seen: set[State] = set()
    done: list[Outcome] = []
    stopped: Inconclusive | None = None
    try:
        # Closed on the way out, which ends the processes that are ahead.
        with closing(_taken(program, blocks(walks), workers)) as taken:
            for outcome, states in taken:
                done.append(outcome)
                seen |= states
                if on_progress is not None:
                    left = max(0, walks.walks - BLOCK * len(done))
                    on_progress(Progress(len(seen), *_totals(done), left, meter.seconds, resident_bytes()))
                # A budget that this block used up does not hide a violation that it found: `_merged` looks
                # for that first.
                limit = meter.exceeded(len(seen))
                stopped = Inconclusive(limit, budget=True) if limit else _early(outcome)
                if isinstance(outcome.verdict, Violated) or stopped:
                    break
    except KeyboardInterrupt as interrupt:
        stopped = stopped_by(interrupt)
    if not done:
        return replace(simulate(program, replace(walks, walks=0)), verdict=stopped or found_nothing(0))
    return _merged(walks, done, len(seen), meter.seconds, stopped or found_nothing(walks.walks))


def blocks(walks: Walks) -> list[Walks]:
    """The blocks of a run, with their seeds."""
    seeds = Random(walks.seed)  # noqa: S311 - reproducible walks, not secrets
    sizes = [min(BLOCK, walks.walks - first) for first in range(0, walks.walks, BLOCK)]
    # Blocks have no budget of their own: it is compared between blocks, so that a block is the same in
    # every run.
    return [replace(walks, seed=seeds.getrandbits(48), walks=size, budget=Budget()) for size in sizes]


def _totals(done: list[Outcome]) -> tuple[int, int]:
    """The number of generated states, and the depth."""
    numbers = [outcome.statistics for outcome in done]
    return sum(n.generated for n in numbers), max(n.depth for n in numbers)


def _merged(
    walks: Walks, done: list[Outcome], distinct: int, seconds: float, otherwise: Inconclusive
) -> Outcome:  # fmt: skip
    """The outcome of the blocks together; `otherwise` is its verdict without a violation."""
    last = done[-1]
    generated, depth = _totals(done)
    numbers = [outcome.statistics for outcome in done]
    statistics = replace(
        last.statistics, distinct=distinct, generated=generated, depth=depth, seconds=seconds,
        horizon_cuts=sum(n.horizon_cuts for n in numbers),
        walks=_added([n.walks for n in numbers if n.walks]),
    )  # fmt: skip
    reached: dict[str, Trace] = {}
    for outcome in done:
        # The first block to reach a witness keeps it, as one process would have.
        reached = {**dict(outcome.witnesses), **reached}
    coverage = tuple(sum(counts) for counts in zip(*(outcome.coverage for outcome in done), strict=True))
    return replace(
        last, verdict=last.verdict if isinstance(last.verdict, Violated) else otherwise,
        statistics=statistics, coverage=coverage, witnesses=tuple(reached.items()), seed=walks.seed,
    )  # fmt: skip


def _added(counts: list[WalkCounts]) -> WalkCounts:
    taken = tuple(map(sum, zip(*(count.taken for count in counts), strict=True)))
    ended = sum(count.ended for count in counts)
    return WalkCounts(ended, taken, ended if counts[-1].failed else None)


def _early(outcome: Outcome) -> Inconclusive | None:
    """The reason why a block ended before its walks were finished (no initial state, an interrupt)."""
    verdict = outcome.verdict
    return verdict if isinstance(verdict, Inconclusive) and not verdict.budget else None


def _taken(program: Program, todo: list[Walks], workers: int) -> Generator[Block, None, None]:
    """The outcomes of the blocks in order; a few blocks are computed ahead by other processes."""
    if workers == 1 or len(todo) == 1:
        yield from (walked(program, block) for block in todo)
        return
    # Not all at once: a violation in an early block makes the others superfluous.  Ctrl-C ends those that are
    # computed at once; the outcomes merged until then are reported.
    tasks = [(program, block) for block in todo]
    with closing(results_of(walked, tasks, workers, ahead=2 * workers)) as results:
        yield from results
