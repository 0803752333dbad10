"""`specchk conform`: hold an implementation to its spec."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click

from specchk.cli.common import parse_overrides, print_json, rejections
from specchk.cli.divergences import Files, divergence_options
from specchk.cli.exits import Exit
from specchk.cli.output import echo
from specchk.conform.binding import Binding, BindingError
from specchk.conform.replay import Replayer
from specchk.conform.report import About, render
from specchk.conform.report import as_json as as_json_of
from specchk.conform.shrink import shrunk
from specchk.conform.suites import Result, Walks, run_product, run_walks
from specchk.core.instantiate import instantiate
from specchk.core.step import Faulty
from specchk.lang.frontend import check

SMOKE = Walks(0, 20, 30)


@click.command("conform")
@click.argument("binding", type=click.Path(exists=True, dir_okay=False))
@click.option("--model", metavar="M", help="The model to use instead of the binding's.")
@click.option("--set", "overrides", multiple=True, metavar="C=V",
              help="Give a constant (or a sort's size) another value; repeatable.")  # fmt: skip
@click.option("--suite", type=click.Choice(["product", "walks"]), default="product", show_default=True,
              help="Every edge of the state graph, or random walks.")  # fmt: skip
@click.option("--max-states", type=click.IntRange(min=1), metavar="N",
              help="Product: go on from at most N states.")  # fmt: skip
@click.option("--walks", type=click.IntRange(min=1), default=100, show_default=True, help="How many walks.")
@click.option(
    "--steps", type=click.IntRange(min=1), default=50, show_default=True, help="Most steps of a walk."
)
@click.option(
    "--seed", type=int, metavar="N", default=0, show_default=True, help="The same seed walks the same."
)
@click.option("--smoke", is_flag=True, help="A few short walks, in seconds.")
@click.option("--json", "as_json_", is_flag=True, help="Print one JSON object instead of text.")
@divergence_options
def command(
    binding: str, model: str | None, overrides: Sequence[str], suite: str, max_states: int | None,
    walks: int, steps: int, seed: int, smoke: bool, as_json_: bool,
    draw: str | None, itf: str | None, freeze: str | None,
) -> None:  # fmt: skip
    """Hold an implementation to its spec, by the binding in the file BINDING.

    The spec's steps are taken by the implementation, what the spec forbids is tried, and states are
    compared whole after each.  Exit codes: 0 conforms, 13 diverges, 20 a budget ended the suite, 21
    the suite was vacuous, 30 the spec or the binding was rejected.
    """
    cls = load_binding(Path(binding))
    table = parse_overrides(overrides)
    with rejections(as_json=as_json_):
        path = Path(binding).parent / cls.spec
        instance = instantiate(check(str(path)), model or cls.model, table)
    try:
        bound = cls(instance.program)
        replayer = Replayer(bound)
        chosen = SMOKE if smoke else Walks(seed, walks, steps)
        uses_walks = smoke or suite == "walks"
        result = run_walks(replayer, chosen) if uses_walks else run_product(replayer, max_states)
        if uses_walks and result.divergence is not None:
            result = replace(result, divergence=shrunk(Replayer(bound), result.divergence))
    except BindingError as error:
        _reject(error, as_json=as_json_)
    except Faulty as fault:
        name = instance.program.actions[fault.action].name
        raise click.ClickException(f"the spec is undefined in `{name}`: {fault}; see `specchk run`") from None
    _finish(About(instance, bound), result, Files(binding, draw, itf, freeze), as_json=as_json_)


def load_binding(path: Path) -> type[Binding[Any]]:
    """The binding class of a Python file, which may import its neighbours, as a program may."""
    sys.path.insert(0, str(path.resolve().parent))
    found = [one for one in runpy.run_path(str(path)).values() if _is_binding(one)]
    if len(found) != 1:
        raise click.ClickException(f"{path} has {len(found)} classes derived from Binding; it takes one")
    chosen: type[Binding[Any]] = found[0]
    return chosen


def _is_binding(one: object) -> bool:
    """Whether something is a binding of the file itself: what it imports and derives from does not count."""
    return isinstance(one, type) and issubclass(one, Binding) and one.__module__ == "<run_path>"


def _reject(error: BindingError, *, as_json: bool) -> NoReturn:
    """Print what is wrong with the binding and leave."""
    if as_json:
        found = [{"message": one.message, "hint": one.hint} for one in error.mistakes]
        print_json({"schema": "specchk.rejected/1", "verdict": "rejected", "mistakes": found,
                    "exit_code": int(Exit.REJECTED)})  # fmt: skip
    else:
        echo("\n".join(f"error: {one}" for one in error.mistakes), err=True)
    sys.exit(Exit.REJECTED)


def _finish(about: About, result: Result, files: Files, *, as_json: bool) -> None:
    code = exit_of(result)
    if as_json:
        print_json(as_json_of(about, result, code))
    else:
        echo(render(about, result))
    files.write(about, result)
    sys.exit(code)


def exit_of(result: Result) -> Exit:
    """A suite's exit code: nothing found before a budget ended it is no success."""
    if result.divergence is not None:
        return Exit.DIVERGED
    if result.vacuous:
        return Exit.INCONCLUSIVE
    return Exit.OK if result.complete else Exit.BUDGET
