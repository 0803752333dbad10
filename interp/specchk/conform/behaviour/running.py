"""All runs of an implementation, on all cores, compared with their accepted behaviour.

Each process takes every n-th run; a run does not depend on earlier ones, nor on the number of
processes.  A run that raises ends with an observation of the exception, and is compared like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.behaviour import transcripts
from specchk.conform.behaviour.comparison import Difference, difference
from specchk.conform.behaviour.symbols import digest_of, symbols_of
from specchk.conform.behaviour.texts import Texts, Written, written
from specchk.conform.contract.behaviours import Behaviours, Run, RunWatch
from specchk.conform.contract.failures import LEAVING, is_implementations
from specchk.conform.contract.hangs import contained
from specchk.conform.work.forks import each
from specchk.conform.work.lock_file import Symbols

SHARES = 4
"""Pieces for each process: runs differ in length."""


class Behaved(Struct, frozen=True):
    """The results of all runs: digests by run, and differences from the lock, in the order of the runs.

    `unknown` are runs that the lock lacks, `lacking` those that it has and that are no more.
    """

    runs: Mapping[str, Symbols]
    observations: int
    differences: tuple[Difference, ...] = ()
    unknown: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    is_compared: bool = False

    @property
    def steps(self) -> int:
        """The number of steps of all runs."""
        return sum(symbols.steps for symbols in self.runs.values())

    @property
    def is_accepted(self) -> bool:
        """Whether there is no difference from the lock."""
        return not (self.differences or self.unknown or self.lacking)


class TakenRun(Struct, frozen=True):
    """A run that was taken: its digests, its number of observations, and its difference from the lock."""

    name: str
    symbols: Symbols
    observations: int
    difference: Difference | None = None


def observed(run: Run) -> RunWatch:
    """Execute a run to its end."""
    watch = RunWatch()
    try:
        with contained():
            run(watch)
    except LEAVING as error:  # an exception is an output of the implementation
        if not is_implementations(error):
            raise
        watch.note("the run", "raises", error=type(error).__name__, text=str(error))
    return watch


def taken(name: str, run: Run, accepted: Symbols | None) -> TakenRun:
    """Take a run, and compare it with its accepted behaviour, if there is one."""
    # Steps without outputs carry no information, and would be most of a lock.
    shown, texts = [step for step in observed(run).steps if step.seen], Texts()
    steps: list[Written] = [written(step, texts) for step in shown]
    count = sum(map(len, steps))
    # Where nothing differs, the digest shows that, and the symbols are those of the lock.
    is_same = accepted is not None and digest_of(steps) == accepted.digest
    symbols = accepted if accepted is not None and is_same else symbols_of(steps)
    made = TakenRun(name, symbols, count)
    if accepted is None or is_same:
        # Kept where it is accepted, or about to be: a later report has its values.
        transcripts.keep(symbols.digest, steps)
        return made
    about = [step.about for step in shown]
    before = transcripts.recall(accepted.digest)
    return replace(made, difference=difference(name, steps, about, accepted, before))


def behave(behaviours: Behaviours, accepted: Mapping[str, Symbols] | None, workers: int) -> Behaved:
    """Take all runs, and compare them with a lock if there is one."""
    runs = behaviours.runs()
    names = list(runs)
    count = workers * SHARES if workers > 1 else 1
    shares = [names[first::count] for first in range(min(count, len(names)))]
    tasks = [partial(_share, [(name, runs[name]) for name in share], accepted or {}) for share in shares]
    made = {run.name: run for share in each(tasks, workers) for run in share}
    ordered = [made[name] for name in names]
    return Behaved(
        {run.name: run.symbols for run in ordered},
        sum(run.observations for run in ordered),
        tuple(run.difference for run in ordered if run.difference is not None),
        () if accepted is None else tuple(name for name in names if name not in accepted),
        () if accepted is None else tuple(name for name in accepted if name not in runs),
        accepted is not None,
    )


def _share(runs: Sequence[tuple[str, Run]], accepted: Mapping[str, Symbols]) -> list[TakenRun]:
    return [taken(name, run, accepted.get(name)) for name, run in runs]
