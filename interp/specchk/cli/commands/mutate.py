"""`specchk mutate`: check that the gate kills mutants of the implementation and of the harness."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from time import perf_counter

import click
from msgspec import to_builtins
from msgspec.structs import replace

from specchk.cli.common import leave, refusals, rejections
from specchk.cli.exits import Exit
from specchk.cli.groups import option, takes
from specchk.cli.options.given import PythonFile
from specchk.cli.output import echo, rewrite_line
from specchk.conform.contract.binding import BindingError
from specchk.conform.contract.load import NoBinding, load_binding
from specchk.conform.mutation import scores
from specchk.conform.mutation.harness import run_harness
from specchk.conform.mutation.members import bench_of, listed
from specchk.conform.mutation.members import load as load_module
from specchk.conform.mutation.mutants import Mutant, MutantError, chosen, diff, load
from specchk.conform.mutation.mutate import MutationCampaign, Settings
from specchk.conform.mutation.operators import argued, generated, sampled
from specchk.conform.mutation.outcomes import MutantOutcome
from specchk.conform.mutation.patches import StalePatch
from specchk.conform.mutation.reach import reaches, touched
from specchk.conform.mutation.scores import Score
from specchk.conform.replay.selfcheck import Detection, NothingToSabotage, self_check

SELF_CHECK_STATES = 200_000


@dataclasses.dataclass(frozen=True, slots=True)
class MutateChoice:
    """The mutants to run, the members that run them, and the time limits."""

    mutants: str | None = option(
        "--mutants", type=click.Path(exists=True, file_okay=False), metavar="DIR",
        help="Folder of the mutants; by default `mutants` beside the binding.",
    )  # fmt: skip
    generated: bool = option(
        "--generated", help="Run mutants made by mutation operators instead of the curated ones."
    )
    harness: bool = option(
        "--harness", help="Run mutants of the harness instead; its self-check must detect them."
    )
    is_self_check: bool = option(
        "--self-check", help="Only check that the harness detects its planted sabotages."
    )
    only: tuple[str, ...] = option("--only", metavar="ID", help="Run only this mutant; repeatable.")
    sample: int | None = option("--sample", help="Run a random sample of N mutants.")
    seed: int = option("--seed", type=int, default=0, help="Seed of the sample.")
    show: str | None = option(
        "--show", metavar="ID", help="Print a mutant's description and diff without running it."
    )
    members: str = option(
        "--members", default="*", metavar="GLOBS", show_default=False,
        help="Run only the members of the gate that match one of these patterns, separated by commas.",
    )  # fmt: skip
    max_seconds: float = option(
        "--max-seconds", default=1800.0, help="Stop a mutant after S seconds; it is then undecided."
    )
    test_work: int | None = option(
        "--test-work", help="Fail a test after N loops and calls; by default 20 times its usual number."
    )
    workers: int | None = option("--workers", help="Number of processes; by default one per core.")
    no_cache: bool = option("--no-cache", help="Rerun mutants whose results are cached.")
    no_control: bool = option(
        "--no-control",
        help="Do not run the unchanged implementation; a lock rejects the score of such a run.",
    )  # fmt: skip

    @property
    def kind(self) -> str:
        """The source of the mutants; a usage error if two are given."""
        if self.generated and self.harness:
            raise click.UsageError("--generated and --harness exclude each other")
        return scores.GENERATED if self.generated else scores.HARNESS if self.harness else scores.CURATED

    @property
    def requirement(self) -> scores.Requirement:
        """The share of the mutants that must be killed, and the minimal number of tests that kill each."""
        return scores.REQUIRED[self.kind]

    @property
    def settings(self) -> Settings:
        """The settings of a campaign."""
        return Settings(
            self.max_seconds, self.test_work or 0, self.workers or 0, self.members,
            is_cached=not self.no_cache, enough=self.requirement.tests,
        )  # fmt: skip

    def folder(self, binding: Path) -> Path:
        """The folder of the mutants."""
        return Path(self.mutants).resolve() if self.mutants else binding.parent / "mutants"

    def sampled(self, mutants: Sequence[Mutant]) -> Sequence[Mutant]:
        """A sample of some mutants; all of them without `--sample`."""
        return mutants if self.sample is None else sampled(mutants, self.sample, self.seed)


@click.command("mutate")
@click.argument("binding", type=PythonFile())
@takes(choice=MutateChoice)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(binding: str, choice: MutateChoice, as_json: bool) -> None:
    """Run the gate against mutants: implementations with one flaw each, which the gate must detect.

    BINDING is a file as for `specchk conform`.  Exit codes: 0 the score is high enough, 14 it is not,
    20 a mutant was stopped before its result, 30 the spec, the binding or the mutants were rejected.
    """
    kind, path = choice.kind, Path(binding).resolve()
    with refusals(NoBinding):
        load_binding(path)
    try:
        if choice.show is not None:
            _show(_mutants(path, dataclasses.replace(choice, only=(choice.show,)))[0])
            return
        begun = perf_counter()
        with rejections(as_json=as_json):
            if choice.is_self_check:
                _finish_self_check(_self_check(path, choice.folder(path)), as_json=as_json)
            elif kind == scores.HARNESS:
                todo = choice.sampled(_mutants(path, choice))
                options = ["--mutants", str(choice.folder(path))]
                ground, outcomes = run_harness(todo, path, options, _progress(len(todo)))
                seconds = perf_counter() - begun
                _finish(Score(kind, choice.requirement, tuple(outcomes), ground, seconds), as_json)
            else:
                score = _run(path, choice)
                _finish(replace(score, seconds=perf_counter() - begun), as_json)
    except (MutantError, StalePatch, NothingToSabotage, BindingError) as error:
        echo(f"error: {error}", err=True)
        sys.exit(Exit.REJECTED)


def _mutants(path: Path, choice: MutateChoice) -> tuple[Mutant, ...]:
    """The chosen mutants; raises `MutantError` or `StalePatch` for one that does not apply."""
    folder = choice.folder(path)
    load_module(path)  # so that its neighbours can be found, by `members.py`, too
    if choice.kind == scores.GENERATED:
        every = [mutant for module in listed(folder, "TARGETS") for mutant in generated(module)]
        return chosen(argued(every, folder / "equivalent" / "generated.toml"), choice.only)
    mutants = chosen(load(folder / "harness" if choice.kind == scores.HARNESS else folder), choice.only)
    for mutant in mutants:
        # Each patch is tried on its source now: one that is stale stops here, and not hours into a campaign.
        diff(mutant)
    return mutants


def _run(path: Path, choice: MutateChoice) -> Score:
    """Run a campaign of curated or generated mutants."""
    every: Sequence[Mutant] = _mutants(path, choice)
    bench = bench_of(path)
    bench.binding()  # a file that is none is an error before any mutant runs
    packages = {module.split(".")[0] for mutant in every for module in mutant.modules}
    folder = choice.folder(bench.folder / bench.main)
    campaign = MutationCampaign(bench, folder, tuple(packages), choice.settings)
    ground = None if choice.no_control else campaign.survey()
    if ground is not None and choice.kind == scores.GENERATED:
        # Before the sample is drawn: a change that no member runs would only be one more survivor.
        reached = list(ground.lines.values())
        every = [m for m in every if any(reaches(lines, touched(m.patches)) for lines in reached)]
    todo = choice.sampled(every)
    is_sound = ground is None or ground.is_sound
    # Where the unchanged implementation fails, a mutant that fails shows nothing.
    outcomes = campaign.run(todo, _progress(len(todo))) if is_sound else []
    many = sum(not mutant.equivalent for mutant in every)
    sample = None if choice.sample is None else scores.Sample(many, choice.seed)
    return Score(choice.kind, choice.requirement, tuple(outcomes), ground, 0.0, sample)


def _finish(score: Score, as_json: bool) -> None:
    code = Exit.BUDGET if score.is_late else Exit.BELOW_LOCK if score.shortfall else Exit.OK
    leave(code, as_json=as_json, json=lambda: scores.as_json(score, code), text=lambda: scores.render(score))


def _self_check(path: Path, folder: Path) -> list[Detection]:
    """Run the self-check on the binding's smallest suite, and the checks of the mutants' folder."""
    bench = bench_of(path)
    cls = bench.binding()
    at = cls.smoke[0]
    checks = list(self_check(cls, bench.instance(at), bench.suite(at, SELF_CHECK_STATES)))
    return checks + [Detection(name, "", wrong(bench)) for name, wrong in listed(folder, "SELF_CHECKS")]


def _finish_self_check(checks: Sequence[Detection], *, as_json: bool) -> None:
    """Print the verdict and a line for each sabotage, and exit with the code of the self-check."""
    wrong = [check for check in checks if not check.is_right]
    code = Exit.BELOW_LOCK if wrong else Exit.OK
    sabotages = sum(bool(check.wanted) for check in checks)
    passed = f"all {sabotages} sabotages detected, {len(checks) - sabotages} other checks passed"
    first = f"self-check failed: {wrong[0]}" if wrong else f"self-check: {passed}"
    rows = [{**to_builtins(check), "right": check.is_right} for check in checks]
    report = {"schema": "specchk.selfcheck/1", "checks": rows, "exit_code": int(code)}
    text = "\n".join([first, *(f"  {check}" for check in checks)])
    leave(code, as_json=as_json, json=lambda: report, text=lambda: text)


def _show(mutant: Mutant) -> None:
    """Print a mutant for the user."""
    about = [f"{mutant.id} ({mutant.flaw})", f"  {mutant.story}"]
    about += [f"  seen in model {mutant.shown}"] if mutant.shown else []
    about += [f"  equivalent: {mutant.equivalent}"] if mutant.equivalent else []
    echo("\n".join([*about, "", diff(mutant)]))


def _progress(total: int) -> Callable[[MutantOutcome], None]:
    """Report the progress of a campaign on a terminal."""
    numbers = count(1)

    def done(outcome: MutantOutcome) -> None:
        number = next(numbers)
        rewrite_line(f"{number} of {total}: {outcome.mutant.id} {outcome.verdict()}", is_last=number >= total)

    return done
