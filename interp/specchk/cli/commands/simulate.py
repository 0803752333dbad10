"""`specchk simulate`: random walks from a seed."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass

import click

from specchk.cli.common import Limits, ModelChoice
from specchk.cli.engines import instead, loaded, shown_progress
from specchk.cli.exits import Exit
from specchk.cli.groups import option, takes
from specchk.cli.options.forms import Outputs, finish
from specchk.cli.options.spark import NO_PYSPARK
from specchk.cli.output import echo
from specchk.explore.simulate import Walks
from specchk.explore.walkers import simulate_on
from specchk.ir.program import Program
from specchk.processes import cores
from specchk.report.progress import TerminalProgress
from specchk.search.budget import Progress
from specchk.search.engine import Unavailable, Unsupported
from specchk.search.verdict import Outcome

ENGINES = ("native", "reference")


@dataclass(frozen=True, slots=True)
class Walkers:
    """The engine that takes the walks, and its options."""

    engine: str = option(
        "--engine", type=click.Choice(ENGINES), default=ENGINES[0],
        help="native: compiled code; reference: the interpreter (the same seed gives other walks).",
    )  # fmt: skip
    guided: bool = option(
        "--guided", help="Native: every second walk prefers actions that were taken less often."
    )
    workers: int | None = option(
        "--workers", type=click.IntRange(min=1), metavar="N",
        help="Threads (native) or processes (reference); by default one per core.",
    )  # fmt: skip
    master: str | None = option(
        "--master", metavar="M", help="Run the walks of the reference engine on a Spark cluster."
    )

    def check(self) -> None:
        """Reject incompatible options."""
        if self.master is not None and self.workers is not None:
            raise click.UsageError("--workers is for this machine, --master for a cluster: give only one")
        if self.guided and (self.master is not None or self.engine != ENGINES[0]):
            raise click.UsageError("--guided is for the native engine")

    def walk(self, program: Program, walks: Walks, *, quiet: bool) -> Outcome:
        """The outcome of the walks, with progress on a terminal unless `quiet`, for JSON output."""
        workers = self.workers or cores()
        with shown_progress(quiet=quiet) as progress:
            if self.master is not None:
                return simulate_on_spark(program, walks, self.master, progress)
            if self.engine == ENGINES[0]:
                return self._native(program, walks, workers, progress)
            return simulate_on(program, walks, workers, progress)

    def _native(
        self, program: Program, walks: Walks, workers: int, progress: TerminalProgress | None
    ) -> Outcome:
        native = loaded("specchk.native.walking.simulation")
        choice = native.StepChoice.GUIDED if self.guided else native.StepChoice.UNIFORM
        try:
            outcome: Outcome = native.simulate(program, walks, workers, progress, choice)
        except Unsupported as reason:
            if self.guided:
                raise click.UsageError(
                    f"--guided is for models that the native engine can run: {reason}"
                ) from None
            note = f"the native engine cannot run this model ({reason}); the reference engine walked instead"
            return instead(note, lambda: simulate_on(program, walks, workers, progress))
        return outcome


@click.command("simulate")
@takes(choice=ModelChoice)
@click.option(
    "--walks",
    type=click.IntRange(min=1),
    metavar="N",
    default=1000,
    show_default=True,
    help="Number of walks.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    metavar="N",
    default=100,
    show_default=True,
    help="Maximum number of steps of a walk.",
)
@click.option(
    "--seed", type=int, metavar="N", help="Seed of the walks; by default a random one, which is printed."
)
@takes(walkers=Walkers)
@takes(outputs=Outputs, limits=Limits)
def command(
    choice: ModelChoice, walks: int, steps: int, seed: int | None, walkers: Walkers, outputs: Outputs,
    limits: Limits,
) -> None:  # fmt: skip
    """Check every property along random walks through the states of the spec FILE.

    Walks without a violation prove nothing, so the exit code is then 20, not 0.
    """
    outputs.check()
    walkers.check()
    instance = choice.instance(as_json=outputs.as_json)
    shown = outputs.shown(instance)  # before the walks: a mistake in one is reported at once
    # Drawn here and not by the walks, so that the report has it and the run can be repeated.
    drawn = seed if seed is not None else secrets.randbelow(1 << 31)
    wanted = Walks(drawn, walks, steps, limits.budget)
    outcome = walkers.walk(instance.program, wanted, quiet=outputs.as_json)
    finish(instance, outcome, outputs, "", shown)


def simulate_on_spark(
    program: Program, walks: Walks, master: str, progress: Callable[[Progress], None] | None
) -> Outcome:
    """Random walks on the executors of a cluster: the same walks as on one machine."""
    engine = loaded("specchk.spark.walks", NO_PYSPARK)
    try:
        outcome: Outcome = engine.simulate(program, walks, master, progress)
    except Unavailable as reason:
        raise click.UsageError(str(reason)) from None
    except engine.Failed as reason:
        echo(f"Error: Spark failed: {reason}", err=True)
        sys.exit(Exit.INCONCLUSIVE)
    return outcome
