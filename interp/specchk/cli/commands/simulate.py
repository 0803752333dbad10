"""`specchk simulate`: random walks with a seed."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence

import click

from specchk.cli.common import budget, budget_options, load_instance, model_options
from specchk.cli.forms import Outputs, finish, output_options
from specchk.cli.output import is_terminal
from specchk.cli.spark import simulate_on_spark
from specchk.explore.simulate import Walks
from specchk.explore.walkers import simulate_on
from specchk.report.progress import TerminalProgress


@click.command("simulate")
@model_options
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
@output_options
@budget_options
def command(
    file: str, model: str | None, overrides: Sequence[str], properties: Sequence[str], walks: int, steps: int,
    seed: int | None, workers: int | None, master: str | None,
    as_json: bool, itf: str | None, draw: str | None, html: str | None,
    max_states: int | None, max_seconds: float | None, max_memory: int | None,
) -> None:  # fmt: skip
    """Check every property along random walks through the states of the spec FILE.

    Walks without a violation are not a proof: the exit code is then 20, not 0.
    """
    outputs = Outputs(as_json, itf, draw, html)
    outputs.check()
    instance = load_instance(file, model, overrides, properties, as_json=as_json)
    if master is not None and workers is not None:
        raise click.UsageError("--workers is for this machine, --master for a cluster: give only one")
    chosen = seed if seed is not None else secrets.randbelow(1 << 31)
    progress = TerminalProgress(sys.stderr) if is_terminal(sys.stderr) and not as_json else None
    limits = budget(max_states, max_seconds, max_memory)
    wanted = Walks(chosen, walks, steps, limits)
    if master is not None:
        outcome = simulate_on_spark(instance.program, wanted, master, progress)
    else:
        outcome = simulate_on(instance.program, wanted, workers or os.cpu_count() or 1, progress)
    if progress is not None:
        progress.clear()
    finish(instance, outcome, outputs, again="")
