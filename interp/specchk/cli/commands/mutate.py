"""`specchk mutate`: whether the gate kills mutants of the implementation, and of the harness."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import perf_counter

import click

from specchk.cli.common import Seconds, print_json, rejections
from specchk.cli.crews import ClusterChoice, crew_on
from specchk.cli.exits import Exit
from specchk.cli.groups import takes
from specchk.cli.output import echo, is_terminal
from specchk.conform.contract.binding import BindingError
from specchk.conform.mutation import scores
from specchk.conform.mutation.harness import run_harness
from specchk.conform.mutation.members import Bench, binding_in, listed
from specchk.conform.mutation.members import load as load_module
from specchk.conform.mutation.mutants import Mutant, MutantError, chosen, diff, load
from specchk.conform.mutation.mutate import MutationCampaign, Settings
from specchk.conform.mutation.mutate_by import ByCrew, kit_for
from specchk.conform.mutation.operators import argued, generated, sampled
from specchk.conform.mutation.outcomes import MutantOutcome
from specchk.conform.mutation.patches import StalePatch
from specchk.conform.mutation.reach import reaches, touched
from specchk.conform.mutation.scores import Score
from specchk.conform.replay.selfcheck import NothingToSabotage, Noticed, self_check
from specchk.lang.frontend import check

SELF_CHECK_STATES = 200_000


@dataclass(frozen=True, slots=True)
class Wish:
    """The selected mutants: a kind, some ids, a sample."""

    kind: str
    only: tuple[str, ...]
    sample: int | None
    seed: int


@click.command("mutate")
@click.argument("binding", type=click.Path(exists=True, dir_okay=False))
@click.option("--mutants", type=click.Path(exists=True, file_okay=False), metavar="DIR",
              help="Folder of the mutants; by default `mutants` beside the binding.")  # fmt: skip
@click.option(
    "--generated", is_flag=True, help="Run mutants made by mutation operators instead of the curated ones."
)
@click.option(
    "--harness", is_flag=True, help="Run mutants of the harness instead; its self-check must detect them."
)
@click.option(
    "--self-check",
    "is_self_check",
    is_flag=True,
    help="Only check that the harness detects its planted sabotages.",
)
@click.option("--only", multiple=True, metavar="ID", help="Run only this mutant; repeatable.")
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Run a random sample of N mutants.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample.")
@click.option("--show", metavar="ID", help="Print a mutant's story and diff without running it.")
@click.option(
    "--members",
    default="*",
    metavar="GLOBS",
    help="Run only the members of the gate that match one of these patterns, separated by commas.",
)
@click.option("--max-seconds", type=Seconds(), default=1800.0, show_default=True,
              metavar="S", help="Stop a hanging mutant after S seconds, undecided.")  # fmt: skip
@click.option("--test-work", type=click.IntRange(min=1), metavar="N",
              help="Fail a test after N loops and calls; by default 20 times its usual number.")  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Number of processes; by default one per core."
)
@click.option("--no-cache", is_flag=True, help="Rerun mutants whose results are cached.")
@click.option(
    "--no-control", is_flag=True, help="Do not run the unchanged implementation; a lock rejects such a score."
)
@takes(cluster=ClusterChoice)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(
    binding: str, mutants: str | None, generated: bool, harness: bool, is_self_check: bool,
    only: tuple[str, ...], sample: int | None, seed: int, show: str | None, members: str, max_seconds: float,
    test_work: int | None, workers: int | None, no_cache: bool, no_control: bool, cluster: ClusterChoice,
    as_json: bool,
) -> None:  # fmt: skip
    """Run the gate against mutants, implementations with one flaw each, all of which it must kill.

    BINDING is a file as for `specchk conform`.  Exit codes: 0 the score is high enough,
    14 it is not, 20 a mutant was stopped undecided, 30 the spec, the binding or the mutants were rejected.
    """
    if generated and harness:
        raise click.UsageError("--generated and --harness exclude each other")
    cluster.not_with(harness, "--harness", "its mutants are of specchk itself")
    cluster.not_with(is_self_check, "--self-check", "it is not distributed")
    cluster.not_with(workers, "--workers", "it counts the processes of this machine")
    path = Path(binding).resolve()
    folder = Path(mutants).resolve() if mutants else path.parent / "mutants"
    kind = scores.GENERATED if generated else scores.HARNESS if harness else scores.CURATED
    wish = Wish(kind, only, sample, seed)
    try:
        if show is not None:
            _show(chosen(_mutants(path, folder, Wish(kind, (show,), None, 0)), [show])[0])
            return
        wanted = scores.WANTED_GENERATED if generated else scores.WANTED_CURATED
        settings = Settings(
            max_seconds, test_work or 0, workers or 0, members, is_cached=not no_cache, enough=wanted.tests
        )
        begun = perf_counter()
        with rejections(as_json=as_json):
            if is_self_check:
                _tell_self_check(_self_check(path, folder), as_json=as_json)
            elif harness:
                todo = _sampled(_mutants(path, folder, wish), wish)
                ground, outcomes = run_harness(todo, path, ["--mutants", str(folder)], _progress(len(todo)))
                seconds = perf_counter() - begun
                _finish(Score(kind, scores.WANTED_HARNESS, tuple(outcomes), ground, seconds), as_json)
            else:
                plan = MutationPlan(path, folder, wish, settings, is_controlled=not no_control)
                _finish(_run(plan, cluster), as_json)
    except (MutantError, StalePatch, NothingToSabotage, BindingError) as error:
        echo(f"error: {error}", err=True)
        sys.exit(Exit.REJECTED)


def _bench(path: Path) -> Bench:
    cls = binding_in(load_module(path))
    spec = (path.parent / cls.spec).resolve()
    return Bench(path.parent, path.name, spec, check(str(spec)))


def _mutants(path: Path, folder: Path, wish: Wish) -> tuple[Mutant, ...]:
    """The mutants of a kind; `MutantError` or `StalePatch` where one does not fit."""
    if wish.kind == scores.GENERATED:
        every = [one for module in listed(folder, "TARGETS") for one in generated(module)]
        return chosen(argued(every, folder / "equivalent" / "generated.toml"), wish.only)
    load_module(path)  # so that its neighbours can be found
    found = chosen(load(folder / "harness" if wish.kind == scores.HARNESS else folder), wish.only)
    for one in found:
        # Each patch is tried on its source now: one that is stale stops here, and not hours into a campaign.
        diff(one)
    return found


def _sampled(mutants: Sequence[Mutant], wish: Wish) -> Sequence[Mutant]:
    return mutants if wish.sample is None else sampled(mutants, wish.sample, wish.seed)


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """A campaign of curated or generated mutants that is to be run."""

    path: Path
    folder: Path
    wish: Wish
    settings: Settings
    is_controlled: bool


def _run(plan: MutationPlan, cluster: ClusterChoice) -> Score:
    """Run a campaign, here or on a cluster."""
    begun = perf_counter()
    every = _mutants(plan.path, plan.folder, plan.wish)
    bench = _bench(plan.path)
    cls = bench.binding()
    kit = cache(lambda: kit_for(bench, plan.folder, cls))
    with crew_on(cluster, kit, cls) as crew:
        score = _score(plan, bench, every, None if crew is None else ByCrew(crew, kit()))
    return replace(score, seconds=perf_counter() - begun)


def _score(plan: MutationPlan, bench: Bench, every: Sequence[Mutant], by: ByCrew | None) -> Score:
    wish = plan.wish
    packages = {module.split(".")[0] for one in every for module in one.modules}
    campaign = MutationCampaign(bench, plan.folder, packages, plan.settings, by)
    ground = campaign.survey() if plan.is_controlled else None
    if ground is not None and wish.kind == scores.GENERATED:
        lines = list(ground.lines.values())
        every = tuple(one for one in every if any(reaches(those, touched(one.patches)) for those in lines))
    todo = _sampled(every, wish)
    is_sound = ground is None or ground.is_sound
    # Where the unchanged implementation fails, a mutant that fails shows nothing.
    outcomes = campaign.run(todo, _progress(len(todo))) if is_sound else []
    wanted = scores.WANTED_GENERATED if wish.kind == scores.GENERATED else scores.WANTED_CURATED
    return Score(wish.kind, wanted, tuple(outcomes), ground, 0.0)


def _finish(score: Score, as_json: bool) -> None:
    code = Exit.BUDGET if score.is_late else Exit.BELOW_LOCK if score.shortfall else Exit.OK
    if as_json:
        print_json(scores.as_json(score, code))
    else:
        echo(scores.render(score))
    sys.exit(code)


def _self_check(path: Path, folder: Path) -> list[Noticed]:
    """Run the self-check on the binding's smallest suite, and the checks of the mutants' folder."""
    bench = _bench(path)
    cls = bench.binding()
    at = cls.smoke[0]
    found = list(self_check(cls, bench.instance(at), bench.suite(at, SELF_CHECK_STATES)))
    return found + [Noticed(name, "", wrong(bench)) for name, wrong in listed(folder, "SELF_CHECKS")]


def _tell_self_check(found: Sequence[Noticed], *, as_json: bool) -> None:
    """One line for each sabotage; the first gives the verdict."""
    wrong = [one for one in found if not one.is_right]
    code = Exit.BELOW_LOCK if wrong else Exit.OK
    if as_json:
        rows = [
            {"lie": one.lie, "wanted": one.wanted, "found": one.found, "right": one.is_right} for one in found
        ]
        print_json({"schema": "specchk.selfcheck/1", "checks": rows, "exit_code": int(code)})
    else:
        sabotages = sum(bool(one.wanted) for one in found)
        passed = f"all {sabotages} sabotages detected, {len(found) - sabotages} other checks passed"
        first = f"self-check failed: {_told(wrong[0])}" if wrong else f"self-check: {passed}"
        echo("\n".join([first, *(f"  {_told(one)}" for one in found)]))
    sys.exit(code)


def _told(one: Noticed) -> str:
    if one.is_right:
        return f"{one.lie}: {one.found or 'no divergence'}"
    return f"{one.lie}: expected {one.wanted or 'no divergence'}, found {one.found or 'no divergence'}"


def _show(mutant: Mutant) -> None:
    """Print a mutant for a reader."""
    about = [f"{mutant.id} ({mutant.flaw})", f"  {mutant.story}"]
    about += [f"  seen in model {mutant.shown}"] if mutant.shown else []
    about += [f"  equivalent: {mutant.equivalent}"] if mutant.equivalent else []
    echo("\n".join([*about, "", diff(mutant)]))


def _progress(total: int) -> Callable[[MutantOutcome], None]:
    """Report the progress of a campaign on a terminal."""
    count = 0

    def done(outcome: MutantOutcome) -> None:
        nonlocal count
        count += 1
        if is_terminal(sys.stderr):
            text = f"\r\033[K{count} of {total}: {outcome.mutant.id} {outcome.verdict()}"
            echo(text, err=True, nl=count >= total)

    return done
