"""The options of a gate: controls, the lock, and the files kept by a build server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import ClassVar

import click
from msgspec import Struct
from msgspec.structs import replace

from specchk.cli.common import refusals, write_text
from specchk.cli.deciding import decided_conditions, impossible_conditions
from specchk.cli.exits import Exit
from specchk.cli.groups import option
from specchk.cli.output import rewrite_line
from specchk.cli.written import try_file
from specchk.conform.gate.choices import listed_of
from specchk.conform.gate.chosen import NotExplored, explored
from specchk.conform.gate.conditions import SearchCut, determined, is_current
from specchk.conform.gate.gate import BoundSpec, Held, Noticed, compare, hold, update
from specchk.conform.gate.lock import Lowered, digest_of, of_spec
from specchk.conform.gate.tiers import BUDGETS, Part, SuiteBudget, run_part, run_parts
from specchk.conform.mutation.mutants import MutantError
from specchk.conform.mutation.mutants import load as load_mutants
from specchk.conform.mutation.outcomes import MutantOutcome
from specchk.conform.mutation.patches import StalePatch
from specchk.conform.mutation.proof import prove
from specchk.conform.mutation.scores import CURATED
from specchk.conform.mutation.scores_file import NoScores, Scores, read_scores
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.report import gate_report
from specchk.conform.report.gate_report import ConditionStatus, Standing
from specchk.conform.report.junit import junit
from specchk.conform.report.page import listed, sections
from specchk.conform.work import lock_file
from specchk.conform.work.lock_file import NAME, BadLock, Choices, GateConditions

Run = tuple["Gate", list[Part], list[SuiteResult]]


@dataclass(frozen=True, slots=True)
class GateOptions:
    """The options for comparing a gate with a lock, and for its outputs."""

    heading: ClassVar[str] = "Gate"
    lock: bool = option("--lock", help=f"Compare the gate with {NAME} beside the binding.")
    update_lock: bool = option("--update-lock", help=f"Write {NAME}, for review.")
    update_choices: bool = option(
        "--update-choices",
        help=f"Determine the choices that the implementation never makes, and write them to {NAME}.",
    )  # fmt: skip
    update_conditions: bool = option(
        "--update-conditions",
        help=f"Determine the conditions that decide in no model of the gate, and write them to {NAME}.",
    )  # fmt: skip
    mutants: tuple[str, ...] = option(
        "--mutants", metavar="FILE",
        help="Output of `specchk mutate --json`, for the lock and the HTML page; repeatable.",
    )  # fmt: skip
    junit: str | None = option(
        "--junit", metavar="FILE",
        help="Write the cases as JUnit XML; with several bindings, FILE is a folder with a file for each.",
    )  # fmt: skip

    def check(self, tier: str | None) -> None:
        """Reject incompatible options."""
        is_written = self.update_lock or self.update_choices or self.update_conditions
        if (self.lock or is_written) and tier != "gate":
            raise click.UsageError(
                "a lock, the choices and the conditions cover the whole gate; omit options that select a "
                "part of it"
            )
        # Here, too: a file that cannot be read is reported before a run of minutes, not behind it.
        self.scores()

    def try_outputs(self, folder: Path) -> None:
        """Reject files that cannot be written: the lock beside a binding in this folder, and JUnit XML."""
        if self.junit is not None:
            try_file(Path(self.junit), "--junit")
        wanted = {
            "--update-lock": self.update_lock, "--update-choices": self.update_choices,
            "--update-conditions": self.update_conditions,
        }  # fmt: skip
        for updates in filter(wanted.get, wanted):
            try_file(folder / NAME, updates)

    def junit_of(self, binding: str) -> str | None:
        """The file for one of several bindings: named by its path, in the folder, which is created."""
        if self.junit is None:
            return None
        # Now and not at the end: a folder that cannot be made is reported before a run of minutes.
        with refusals(OSError, about=f"cannot write to {self.junit}: "):
            Path(self.junit).mkdir(parents=True, exist_ok=True)
        parts = [part for part in Path(binding).with_suffix(".xml").parts if part not in ("/", "..")]
        return str(Path(self.junit, "-".join(parts)))

    def run(self, bound: BoundSpec, parts: Sequence[Part], budget: SuiteBudget, tier: str | None) -> Run:
        """Run the suites and the controls, and compare the run with the lock."""
        gate = Gate(self, _near(bound.path.parent / NAME), budget)
        # Without the present choices: listed classes would not be missed, and so not explored.
        if self.update_choices:
            parts = [replace(part, listed=None) for part in parts]
        results = run_parts(parts, budget)
        parts = list(parts)
        green = not any(result.divergence or result.vacuous for result in results)
        if green and self.update_choices:
            parts, results = _choose(bound, parts, results, budget)
        if green and tier == "gate":
            if (known := choices_beside(bound.path)) is not None:
                standing = gate_report.standing(
                    gate.path, known, bound, parts, results, written=self.update_choices
                )
                gate = replace(gate, standing=standing)
            gate = replace(gate, status=_status(bound, parts, update=self.update_conditions))
        if green and tier == "gate" and (bound.cls.controls or self.lock or self.update_lock):
            scores = self.scores()
            held = hold(bound, parts, results, budget, scores.kills)
            # Figures of other models do not apply to this gate, so they are compared with no lock.
            if gate.status is not None and gate.status.is_current:
                held = replace(held, found=replace(held.found, conditions=gate.status.conditions.counts))
            gate = replace(gate, held=self._locked(held, gate.path, bound))
        return gate, parts, results

    def _locked(self, held: Held, path: Path, bound: BoundSpec) -> Held:
        """The result, compared with the lock or written to it; a gate whose controls fail never writes it."""
        with refusals(BadLock, OSError):
            if self.update_lock and not held.vacuous:
                return update(held, path, partial(_proof, bound.path))
            return _counted(compare(held, path), path.parent / "mutants") if self.lock else held

    def scores(self) -> Scores:
        """The mutation scores from the given files."""
        with refusals(NoScores):
            return read_scores(self.mutants)


class Gate(Struct, frozen=True):
    """The results of a gate; None for parts that were not run."""

    options: GateOptions
    path: Path = Path(NAME)
    budget: SuiteBudget = BUDGETS["gate"]
    held: Held | None = None
    standing: Standing | None = None
    status: ConditionStatus | None = None

    def exit_of(self, otherwise: Exit) -> Exit:
        """The exit code of the gate, given that of the suites.

        13  a suite diverges (`conform.replay`), or a call does not return (`conform.contract.hangs`)
        21  a suite or the controls are vacuous (`replay.suites`, `gate.controls`)
        14  below the lock (`gate.lock.lowered`, `_counted`), or a class listed as never taken is taken
        20  a suite is incomplete: a limit ended it

        Only reported: missed classes, conditions that never decide, one outdated control.
        """
        # A divergence first. Then a blind gate, since its figures prove nothing, so that they are compared
        # last.
        if otherwise not in (Exit.OK, Exit.BUDGET):
            return otherwise
        if self.held is not None and self.held.vacuous:
            return Exit.INCONCLUSIVE
        if self.standing is not None and self.standing.wrong:
            return Exit.BELOW_LOCK
        return Exit.BELOW_LOCK if self.held is not None and self.held.below else otherwise

    def head(self) -> str:
        """The line before the suites' report; empty if the report contains it all."""
        if self.held is not None and self.held.vacuous:
            return f"vacuous: {self.held.vacuous}"
        if self.held is not None and self.held.below:
            return f"below its lock: {self.held.below[0]}"
        if self.standing is not None and self.standing.wrong:
            count = len(self.standing.wrong)
            return f"wrong: {count} classes that {self.standing.path} lists as never taken were taken"
        return ""

    @property
    def _files(self) -> list[Standing | ConditionStatus]:
        """The reports of the files beside the binding, except the lock."""
        return [report for report in (self.standing, self.status) if report is not None]

    def text(self) -> str:
        """The text below the suites' report; empty if there is none."""
        lines: list[str] = []
        for report in self._files:
            lines += report.lines()
        if self.held is not None:
            lines += gate_report.render_held(self.held, self.path)
        return "\n".join(lines)

    def json(self) -> dict[str, object]:
        """The members to add to the suites' report."""
        members: dict[str, object] = {}
        for report in self._files:
            members |= report.json()
        return members if self.held is None else members | gate_report.held_json(self.held)

    def sections(self, parts: Sequence[Part], results: Sequence[SuiteResult]) -> list[str]:
        """The sections to add to a page."""
        files = [listed(file.title, file.lines(), is_wrong=file.is_wrong) for file in self._files]
        return sections(parts, results, self.held, self.options.scores().rows) + files

    def write_junit(self, parts: Sequence[Part], results: Sequence[SuiteResult]) -> None:
        """Write the cases for a build server, if requested."""
        if self.options.junit is not None:
            write_text(Path(self.options.junit), junit(parts, results, self.budget, self.held))


def _proof(binding: Path) -> Noticed:
    """The planted flaws that a changed binding notices, tried now; progress on a terminal."""
    numbers = count(1)

    def done(outcome: MutantOutcome) -> None:
        rewrite_line(f"planted flaw {next(numbers)}: {outcome.mutant.id} {outcome.verdict()}", is_last=False)

    with refusals(MutantError, StalePatch, about="the changed binding cannot be proved: "):
        return prove(binding, done)


def _counted(held: Held, folder: Path) -> Held:
    """The result, below its lock if that has the score for other curated mutants than the present ones.

    More were never tried; with fewer the score would be of mutants that cannot be tried again.
    """
    scored = held.lock.mutants.get(CURATED) if held.lock is not None else None
    names = _curated(folder)
    if scored is None or (scored.all == len(names) and scored.names == digest_of(names)):
        return held
    other = "other " if scored.all == len(names) else ""
    unscored = Lowered(f"mutants: {CURATED}", str(scored), f"{len(names)} {other}mutants, run `mutate`")
    return replace(held, below=(*held.below, unscored))


def _curated(folder: Path) -> list[str]:
    """The names of the curated mutants in a folder, as counted in scores."""
    with refusals(MutantError):
        found = load_mutants(folder) if folder.is_dir() else ()
    return [one.id for one in found if not one.equivalent]


def _near(path: Path) -> Path:
    """A path, relative to the current folder if it is inside it."""
    try:
        return path.resolve().relative_to(Path.cwd())
    except ValueError:
        return path


def choices_beside(binding: Path) -> Choices | None:
    """The choices beside a binding; raises a usage error."""
    with refusals(BadLock):
        return lock_file.read(binding.parent / NAME).choices


def _choose(
    bound: BoundSpec, parts: Sequence[Part], results: Sequence[SuiteResult], budget: SuiteBudget
) -> tuple[list[Part], list[SuiteResult]]:
    """Explore and write the choices, and repeat the suites that depend on them."""
    known = choices_beside(bound.path)
    about = Choices(
        of_spec(bound.checked)[0], gate_report.implementation_of(bound), known.suites if known else {}
    )
    with refusals(NotExplored, about="the whole product was not explored: "):
        made = explored(parts, results, budget, about)
    _write(bound.path.parent / NAME, choices=made)
    parts = [
        replace(part, listed=listed_of(made, made.spec, part.label, part.instance.program)) for part in parts
    ]
    again = [
        result if part.listed is None else run_part(part, budget, 0)
        for part, result in zip(parts, results, strict=True)
    ]
    return parts, again


def _status(bound: BoundSpec, parts: Sequence[Part], *, update: bool) -> ConditionStatus | None:
    """The conditions beside a binding, recomputed on request; None if there are none."""
    path = bound.path.parent / NAME
    with refusals(BadLock, SearchCut):
        known = lock_file.read(path).conditions
        if update:
            known = determined(bound.checked, parts, decided_conditions, known, impossible_conditions)
            _write(path, conditions=known)
    if known is None:
        return None
    return ConditionStatus(_near(path), known, is_current(known, bound.checked, parts), update)


def _write(path: Path, **sections: Choices | GateConditions) -> None:
    """Write sections of a lock; the others are as they were."""
    with refusals(BadLock, OSError):
        lock_file.write(path, replace(lock_file.read(path), **sections))
