"""The run of a gate as a whole: suites, controls, and the lock with which they are compared.

`hold` runs the controls after the suites, compares the numbers with the lock, and reports the results.
The numbers of a lock are those of the spec's cases and of sets of classes, so they do not
depend on the number of processes.

Not here: running suites (`tiers`), reporting the outcome (`gate_report`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.contract.binding import Binding
from specchk.conform.gate import lock
from specchk.conform.gate.controls import Tried, try_controls, why_vacuous
from specchk.conform.gate.lock import Lowered
from specchk.conform.gate.tiers import Part, SuiteBudget
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.work import lock_file
from specchk.conform.work.judges import judges_of
from specchk.conform.work.lock_file import BadLock, GateFigures, Kills, Numbers
from specchk.conform.work.sources import files_of, fingerprint
from specchk.lang.frontend import CheckedSpec


class BoundSpec(Struct, frozen=True):
    """The parts of a comparison: the binding's file and class, and the spec."""

    path: Path
    cls: type[Binding[Any]]
    checked: CheckedSpec


class Noticed(Struct, frozen=True):
    """How many planted flaws were tried with a changed binding, and the ids of those not noticed."""

    tried: int = 0
    unnoticed: tuple[str, ...] = ()


class Held(Struct, frozen=True):
    """The results of the controls and of the comparison with the lock.

    `vacuous` is why the gate may be blind.  `below` and `above` are the numbers that differ from the
    lock's.  If it was `written`, `before` is what it had, and `noticed` what a changed binding notices.
    """

    tried: tuple[Tried, ...]
    vacuous: str
    found: GateFigures
    lock: GateFigures | None = None
    before: GateFigures | None = None
    below: tuple[Lowered, ...] = ()
    above: tuple[Lowered, ...] = ()
    written: bool = False
    noticed: Noticed | None = None


def numbers_of(part: Part, result: SuiteResult) -> Numbers:
    """The numbers of one suite."""
    coverage = result.coverage
    if coverage is None:
        return Numbers(part.at.suite, result.states)
    return Numbers(
        part.at.suite, coverage.states, coverage.edges, len(coverage.classes), len(coverage.covered),
        len(coverage.probe_classes), len(coverage.refused), len(coverage.never),
    )  # fmt: skip


def hold(
    bound: BoundSpec, parts: Sequence[Part], results: Sequence[SuiteResult], budget: SuiteBudget,
    mutants: Mapping[str, Kills],
) -> Held:  # fmt: skip
    """Run the controls; returns their results and the figures that a lock would record."""
    # After the suites, whose cases are computed by then: controls take the same ones from the cache.
    instances = {(part.at.model or part.instance.program.model, part.bounds): part.instance for part in parts}
    tried = try_controls(bound.cls, bound.checked, budget.max_states, instances)
    spec, actions = lock.of_spec(bound.checked)
    files = files_of(bound.path, bound.cls.implementation)
    suites = {part.name: numbers_of(part, result) for part, result in zip(parts, results, strict=True)}
    # Only those that were caught: a control that the gate misses would look kept if a lock had it.
    controls = tuple(sorted(trial.name for trial in tried if trial.divergence))
    current = GateFigures(
        bound.cls.__name__, spec, tuple(sorted(bound.cls.unobserved)), controls,
        fingerprint(files, bound.path.resolve().parent), len(files), actions, suites,
        judges_of(bound.path, bound.cls), mutants=mutants,
    )  # fmt: skip
    return Held(tried, why_vacuous(bound.cls, tried), current)


def compare(held: Held, path: Path) -> Held:
    """Compare a run with the lock in a file; raises `BadLock`."""
    locked = lock_file.read(path).gate
    if locked is None:
        raise BadLock(f"there is no {path} with a gate; --update-lock writes it")
    outdated = {trial.name for trial in held.tried if trial.outdated}
    controls = tuple(name for name in locked.controls if name not in outdated)
    below = lock.lowered(replace(locked, controls=controls), held.found)
    above = lock.raised(locked, held.found)
    return replace(held, lock=locked, below=below, above=above)


def update(held: Held, path: Path, prove: Callable[[], Noticed]) -> Held:
    """Write the lock of a run; scores of mutants that this run has not are kept.

    A binding that is not the lock's must `prove` which planted flaws it notices.
    """
    contents = lock_file.read(path)
    known = contents.gate
    if known is None or known.judges != held.found.judges:
        noticed = prove()
        current = replace(held.found, unnoticed=noticed.unnoticed)
    else:
        noticed, current = None, replace(held.found, unnoticed=known.unnoticed)
    if known is not None:
        current = replace(current, mutants={**known.mutants, **current.mutants})
    lock_file.write(path, replace(contents, gate=current))
    return replace(held, found=current, before=known, lock=current, written=True, noticed=noticed)
