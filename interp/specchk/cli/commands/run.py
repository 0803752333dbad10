"""`specchk run`: check one model of a spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote

import click

from specchk.cli.clear import Clarity, clarity_options, clearer
from specchk.cli.common import budget, budget_options, load_instance, model_options
from specchk.cli.engines import (
    SPARK,
    chosen_engine,
    engine_options_with_spark,
    explore,
    keeping_options,
    kept,
)
from specchk.cli.forecast import Asking, forecast_options
from specchk.cli.forms import Outputs, finish, output_options
from specchk.cli.prove import Proving, proving_options, run_symbolic
from specchk.cli.spark import Cluster, spark_options
from specchk.search.engine import Options
from specchk.search.engines import NAMES
from specchk.search.verdict import Outcome, Violated


@click.command("run")
@model_options
@engine_options_with_spark
@keeping_options
@spark_options
@click.option("--no-symmetry", is_flag=True, help="Count states that differ only by renaming as distinct.")
@click.option(
    "--keep-going", is_flag=True, help="Continue after a violation; report a shortest one of each property."
)
@click.option(
    "--strict", is_flag=True, help="Fail if an action is never enabled or an implication never triggered."
)
@click.option(
    "--seed", type=int, metavar="N", help="Recorded only; an exhaustive search makes no random choice."
)
@clarity_options
@proving_options
@forecast_options
@output_options
@budget_options
def command(
    file: str, model: str | None, overrides: Sequence[str], properties: Sequence[str],
    engine: str, workers: int | None, compact: bool,
    checkpoint: str | None, every: float, resume: bool, spill: str | None,
    master: str | None, partitions: int | None, handover: int | None, ledger: str | None,
    scratch: str | None, settings: Sequence[str],
    no_symmetry: bool, keep_going: bool, strict: bool, seed: int | None, optimal: bool, several: int | None,
    prove: bool, k: int | None, depth: int | None, query_seconds: float,
    forecast: bool, forecast_first: bool, as_json: bool, itf: str | None, draw: str | None, html: str | None,
    max_states: int | None, max_seconds: float | None, max_memory: int | None,
) -> None:  # fmt: skip
    """Check the properties of one model of the spec FILE.

    The whole state space is searched breadth first, so counterexamples are as short as possible.
    Exit codes: 0 holds, 10 violated, 11 deadlock, 20 a budget ended the search, 21 inconclusive
    otherwise, 30 the spec was rejected.
    """
    outputs = Outputs(as_json, itf, draw, html)
    outputs.check()
    proving = Proving(prove, k, depth, query_seconds)
    proving.check(outputs)
    cluster = Cluster(master, partitions, handover, ledger, scratch, tuple(settings), resume)
    cluster.check(engine)
    asking = Asking(forecast, forecast_first, file, model, overrides, properties)
    asking.check(engine)
    chosen = kept(
        chosen_engine(engine, workers, compact=compact), checkpoint, every, spill,
        resume=resume and engine != SPARK,
    )  # fmt: skip
    instance = load_instance(file, model, overrides, properties, as_json=as_json)
    if proving.asked:
        run_symbolic(instance, proving, budget(max_states, max_seconds, max_memory), outputs, workers)
    options = Options(budget(max_states, max_seconds, max_memory), not no_symmetry, keep_going, strict)
    expected = asking.ahead(instance, options, as_json=as_json)
    outcome = explore(instance.program, options, engine=cluster.applied(chosen), quiet=as_json)
    outcome = replace(outcome, seed=seed, forecast=expected)
    if optimal or several is not None:
        outcome = clearer(instance, outcome, Clarity(several or 1))
    again = _next(file, model, overrides, properties, engine, outcome)
    finish(instance, outcome, outputs, again)


def _next(
    file: str, model: str | None, overrides: Sequence[str], properties: Sequence[str], engine: str,
    outcome: Outcome,
) -> str:  # fmt: skip
    """The command a reader wants next."""
    if not isinstance(outcome.verdict, Violated):
        return ""
    parts = ["specchk", "run", quote(file)]
    if model:
        parts += ["--model", quote(model)]
    for override in overrides:
        parts += ["--set", quote(override)]
    for name in properties:
        parts += ["--property", quote(name)]
    if engine != NAMES[0]:
        parts += ["--engine", engine]
    return " ".join([*parts, "--html", "report.html"])
