"""Whether a binding notices the flaws that are planted beside it, in the folder `mutants`.

A binding that has changed may see less than before, and its suites are as green as before.  So it must
notice the curated mutants of the implementation again: with its own suites and tracings, not with tests,
simulations or accepted behaviour, which do not use it.  Flaws of its own checks (`mutants/harness`) must be
noticed by the self-check.

Not here: the controls, which every gate runs (`gate.controls`), and what is done with the result.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specchk.conform.gate.gate import Noticed
from specchk.conform.mutation.harness import run_harness
from specchk.conform.mutation.members import bench_of
from specchk.conform.mutation.mutants import MutantError, diff, load
from specchk.conform.mutation.mutate import MutationCampaign, Settings
from specchk.conform.mutation.outcomes import MutantOutcome


def prove(binding: Path, done: Callable[[MutantOutcome], None]) -> Noticed:
    """Try all flaws planted beside a binding; raises `MutantError` and `StalePatch`.

    `done` receives each outcome as soon as it is known.
    """
    path, folder = binding.resolve(), binding.resolve().parent / "mutants"
    if not folder.is_dir():
        return Noticed()
    bench, mutants = bench_of(path), [mutant for mutant in load(folder) if not mutant.equivalent]
    for mutant in mutants:
        diff(mutant)  # a patch that does not fit ends this now, and not after minutes
    packages = {module.split(".")[0] for mutant in mutants for module in mutant.modules}
    campaign = MutationCampaign(bench, folder, tuple(packages), Settings(enough=1, only_judges=True))
    ground = campaign.survey()
    if not ground.is_sound:
        wrong = [*(f"{kill.member}, {kill.test}: {kill.reason}" for kill in ground.kills), *ground.unfinished]
        more = f", and {len(wrong) - 1} more" if wrong[1:] else ""
        raise MutantError(f"without any planted flaw the checks fail already: {wrong[0]}{more}")
    outcomes = campaign.run(mutants, done)
    if (folder / "harness").is_dir():
        _, own = run_harness(load(folder / "harness"), path, ["--mutants", str(folder)], done)
        outcomes += own
    return Noticed(len(outcomes), tuple(sorted(each.mutant.id for each in outcomes if not each.kills)))
