"""`specchk simulate`: random walks with a seed."""

from __future__ import annotations

import os
import secrets
import sys

import click

from specchk.cli.common import Limits, ModelChoice
from specchk.cli.groups import takes
from specchk.cli.options.forms import Outputs, finish
from specchk.cli.options.spark import simulate_on_spark
from specchk.cli.output import is_terminal
from specchk.explore.simulate import Walks
from specchk.explore.walkers import simulate_on
from specchk.report.progress import TerminalProgress


@click.command("simulate")
@takes(choice=ModelChoice)
@click.option("--walks", type=click.IntRange(min=1), default=1000, show_default=True, help="Number of walks.")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Maximum number of steps of a walk.",
)
@click.option(
    "--seed", type=int, metavar="N", help="Seed of the walks; by default a random one, which is printed."
)
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Number of processes; by default one per core."
)
@click.option("--master", metavar="M", help="Walk on the executors of a Spark cluster.")
@takes(outputs=Outputs, limits=Limits)
def command(
    choice: ModelChoice, walks: int, steps: int, seed: int | None, workers: int | None, master: str | None,
    outputs: Outputs, limits: Limits,
) -> None:  # fmt: skip
    """Check every property along random walks through the states of the spec FILE.

    Walks without a violation are not a proof: the exit code is then 20, not 0.
    """
    outputs.check()
    instance = choice.instance(as_json=outputs.as_json)
    if master is not None and workers is not None:
        raise click.UsageError("--workers is for this machine, --master for a cluster: give only one")
    # Drawn here and not by the walks, so that the report has it and the run can be repeated.
    drawn = seed if seed is not None else secrets.randbelow(1 << 31)
    progress = TerminalProgress(sys.stderr) if is_terminal(sys.stderr) and not outputs.as_json else None
    wanted = Walks(drawn, walks, steps, limits.budget)
    if master is not None:
        outcome = simulate_on_spark(instance.program, wanted, master, progress)
    else:
        outcome = simulate_on(instance.program, wanted, workers or os.cpu_count() or 1, progress)
    if progress is not None:
        progress.clear()
    finish(instance, outcome, outputs, again="")
