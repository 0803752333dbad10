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
from specchk.conform.behaviour.symbols import symbols_of
from specchk.conform.behaviour.texts import Texts, Written, written
from specchk.conform.contract.behaviours import Behaviours, Run, RunWatch
from specchk.conform.contract.failures import LEAVING, is_implementations
from specchk.conform.contract.hangs import contained
from specchk.conform.work.forks import each
from specchk.conform.work.lock_file import AcceptedBehaviour, Symbols

SHARES = 4
"""Pieces for each process: runs differ in length."""


class Behaved(Struct, frozen=True):
    """The results of all runs: digests by run, and differences from the lock, in the order of the runs.

    `unknown` are runs that the lock lacks, `lacking` those that it has and that are no more.  `texts` are
    the words of all sentences, each with the runs that have it, and `gone` those that the lock has alone.
    """

    runs: Mapping[str, Symbols]
    observations: int
    texts: Mapping[str, tuple[str, ...]]
    differences: tuple[Difference, ...] = ()
    unknown: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    is_compared: bool = False

    @property
    def accepted(self) -> AcceptedBehaviour:
        """The section of a lock that accepts all of it."""
        return AcceptedBehaviour(tuple(sorted(self.texts)), self.runs)

    @property
    def steps(self) -> int:
        """The number of steps of all runs."""
        return sum(symbols.steps for symbols in self.runs.values())

    @property
    def is_accepted(self) -> bool:
        """Whether there is no difference from the lock."""
        return not (self.differences or self.unknown or self.lacking or self.new or self.gone)


class TakenRun(Struct, frozen=True):
    """A run that was taken: its digests, its sentences, and its difference from the lock."""

    name: str
    symbols: Symbols
    texts: frozenset[str]
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
    symbols, words = symbols_of(steps)
    made = TakenRun(name, symbols, words, sum(map(len, steps)))
    if accepted is None or symbols.digest == accepted.digest:
        # Kept where it is accepted, or about to be: a later report has its values.
        transcripts.keep(symbols.digest, steps)
        return made
    about = [step.about for step in shown]
    before = transcripts.recall(accepted.digest)
    return replace(made, difference=difference(name, steps, about, symbols, accepted, before))


def behave(
    behaviours: Behaviours, accepted: AcceptedBehaviour | None, workers: int, only: Sequence[str] = ()
) -> Behaved:
    """Take all runs, or `only` some, and compare them with a lock if there is one."""
    runs = {name: run for name, run in behaviours.runs().items() if not only or name in only}
    names, known = list(runs), {} if accepted is None else accepted.runs
    count = workers * SHARES if workers > 1 else 1
    shares = [names[first::count] for first in range(min(count, len(names)))]
    tasks = [partial(_share, [(name, runs[name]) for name in share], known) for share in shares]
    made = {run.name: run for share in each(tasks, workers) for run in share}
    ordered = [made[name] for name in names]
    texts: dict[str, tuple[str, ...]] = {}
    for run in ordered:
        texts |= {text: (*texts.get(text, ()), run.name) for text in run.texts}
    behaved = Behaved(
        {run.name: run.symbols for run in ordered}, sum(run.observations for run in ordered), texts,
        tuple(run.difference for run in ordered if run.difference is not None),
    )  # fmt: skip
    if accepted is None:
        return behaved
    unknown, new = [name for name in names if name not in known], texts.keys() - {*accepted.texts}
    lacking = [] if only else [name for name in known if name not in runs]
    # What a run does not say after its first difference is gone for that reason.
    is_whole = not (only or behaved.differences)
    gone = {*accepted.texts} - texts.keys() if is_whole else ()
    return replace(
        behaved, unknown=tuple(unknown), lacking=tuple(lacking), new=tuple(sorted(new)),
        gone=tuple(sorted(gone)), is_compared=True,
    )  # fmt: skip


def _share(runs: Sequence[tuple[str, Run]], accepted: Mapping[str, Symbols]) -> list[TakenRun]:
    return [taken(name, run, accepted.get(name)) for name, run in runs]
