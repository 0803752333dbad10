"""`specchk simulate`: random walks from a seed."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import click

from specchk.cli.common import Limits, ModelChoice
from specchk.cli.engines import instead, loaded, shown_progress
from specchk.cli.groups import option, takes
from specchk.cli.options.forms import Outputs, finish, presented
from specchk.explore.simulate import Walks, simulate
from specchk.ir.program import Program
from specchk.processes import cores
from specchk.search.engine import OnProgress, Unsupported
from specchk.search.verdict import Outcome

ENGINES = ("native", "reference")


@dataclass(frozen=True, slots=True)
class Walkers:
    """The number of walks, the engine that takes them, and its options."""

    walks: int = option("--walks", default=1000, help="Number of walks.")
    steps: int = option("--steps", default=100, help="Maximum number of steps of a walk.")
    seed: int | None = option(
        "--seed", type=int, help="Seed of the walks; by default a random one, which is printed."
    )
    engine: str = option(
        "--engine", type=click.Choice(ENGINES), default=ENGINES[0],
        help="native: compiled code; reference: the interpreter (the same seed gives other walks).",
    )  # fmt: skip
    guided: bool = option(
        "--guided", help="Native: every second walk prefers actions that were taken less often."
    )
    workers: int | None = option("--workers", help="Native: number of threads; by default one per core.")

    def check(self) -> None:
        """Reject incompatible options."""
        if self.guided and self.engine != ENGINES[0]:
            raise click.UsageError("--guided is for the native engine")
        if self.workers is not None and self.engine != ENGINES[0]:
            raise click.UsageError("--workers is for the native engine")

    def walk(self, program: Program, walks: Walks) -> Outcome:
        """The outcome of the walks, with progress on a terminal."""
        with shown_progress() as progress:
            if self.engine == ENGINES[0]:
                return self._native(program, walks, progress)
            return simulate(program, walks, progress)

    def _native(self, program: Program, walks: Walks, progress: OnProgress | None) -> Outcome:
        native = loaded("specchk.native.walking.simulation")
        choice = native.StepChoice.GUIDED if self.guided else native.StepChoice.UNIFORM
        try:
            outcome: Outcome = native.simulate(program, walks, self.workers or cores(), progress, choice)
        except Unsupported as reason:
            if self.guided:
                raise click.UsageError(
                    f"--guided is for models that the native engine can run: {reason}"
                ) from None
            note = f"the native engine cannot run this model ({reason}); the reference engine walked instead"
            return instead(note, lambda: simulate(program, walks, progress))
        return outcome


@click.command("simulate")
@takes(choice=ModelChoice, walkers=Walkers, outputs=Outputs, limits=Limits)
def command(choice: ModelChoice, walkers: Walkers, outputs: Outputs, limits: Limits) -> None:
    """Check every property along random walks through the states of the spec FILE.

    Walks without a violation prove nothing, so the exit code is then 20, not 0.
    """
    outputs.check()
    walkers.check()
    # Drawn here and not by the walks, so that the report has it and the run can be repeated.
    seed = walkers.seed if walkers.seed is not None else secrets.randbelow(1 << 31)
    with limits.watched() as budget:
        instance = choice.instance(as_json=outputs.as_json)
        shown = outputs.shown(instance)  # before the walks: a mistake in one is reported at once
        wanted = Walks(seed, walkers.walks, walkers.steps, budget)
        outcome = walkers.walk(instance.program, wanted)
    instance, outcome = presented(instance, outcome, limits, budget, shown)
    finish(instance, outcome, outputs, "")
