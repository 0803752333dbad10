"""`specchk run`: check one model of a spec."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from shlex import quote

import click

from specchk.cli.common import (
    budget,
    budget_options,
    load_instance,
    model_options,
    one_output,
    print_json,
    width,
    write_json,
)  # fmt: skip
from specchk.cli.engines import ENGINES, explore
from specchk.cli.exits import of_verdict
from specchk.cli.output import echo
from specchk.core.search import Options
from specchk.core.verdict import Outcome, Violated
from specchk.report.itf import trace_itf
from specchk.report.json import run_json
from specchk.report.text import render


@click.command("run")
@model_options
@click.option("--engine", type=click.Choice(ENGINES), default=ENGINES[0], show_default=True)
@click.option("--no-symmetry", is_flag=True, help="Count states that differ by names apart.")
@click.option(
    "--keep-going", is_flag=True, help="Search on after a violation; report each property's shortest."
)
@click.option(
    "--strict", is_flag=True, help="Fail for actions never enabled and implications never triggered."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--itf", metavar="FILE", help="Write the counterexample as an ITF trace; - is standard output.")
@click.option("--seed", type=int, metavar="N", help="Recorded; an exhaustive search makes no random choice.")
@budget_options
def command(
    file: str, model: str | None, overrides: Sequence[str], properties: Sequence[str], engine: str,
    no_symmetry: bool, keep_going: bool, strict: bool, as_json: bool, itf: str | None, seed: int | None,
    max_states: int | None, max_seconds: float | None, max_memory: int | None,
) -> None:  # fmt: skip
    """Check one model of the spec FILE and say whether its properties hold.

    The whole state space is searched, breadth first: a counterexample is as short as any.  Exit
    codes: 0 holds, 10 violated, 11 deadlock, 20 a budget ended the search, 21 inconclusive
    otherwise, 30 the spec was rejected.
    """
    one_output(as_json=as_json, itf=itf)
    instance = load_instance(file, model, overrides, properties, as_json=as_json)
    options = Options(budget(max_states, max_seconds, max_memory), not no_symmetry, keep_going, strict)
    outcome = replace(explore(instance.program, options, engine=engine, quiet=as_json), seed=seed)
    finish(outcome, as_json=as_json, itf=itf, again=_next(file, model, overrides, properties, outcome))


def finish(outcome: Outcome, *, as_json: bool, itf: str | None, again: str) -> None:
    """Report an outcome in the forms asked for, and exit with its code."""
    code = of_verdict(outcome.verdict)
    if as_json:
        print_json(run_json(outcome, int(code)))
    elif itf != "-":
        echo(render(outcome, width(), again))
    if itf is not None:
        _write_itf(outcome, itf)
    sys.exit(code)


def _write_itf(outcome: Outcome, path: str) -> None:
    violations = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    for violation in violations:
        if violation.trace is not None:
            write_json(path, trace_itf(outcome.program, violation.trace, violation))
            return
    echo("no counterexample, so no ITF trace was written", err=True)


def _next(
    file: str, model: str | None, overrides: Sequence[str], properties: Sequence[str], outcome: Outcome
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
    return " ".join([*parts, "--itf", "trace.itf.json"])
