"""`specchk draw`: pictures of counterexamples, witnesses, states and actions."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import click

from specchk.cli.clarity import clearer, clearest
from specchk.cli.common import Limits, ModelChoice, width
from specchk.cli.engines import EngineChoice, explore
from specchk.cli.exits import of_verdict
from specchk.cli.groups import takes
from specchk.cli.options.forms import counterexample, expressions
from specchk.cli.output import echo
from specchk.cli.pictures import drawing, write_dot, write_picture
from specchk.cli.traces import from_file, from_scenario
from specchk.cli.written import OutputFile
from specchk.compile.instantiate import Instance
from specchk.conform.replay.divergence import drawn
from specchk.conform.replay.place import Divergence
from specchk.explore.shown import extend
from specchk.lang.text.source import Span
from specchk.meaning.properties import NoAnswer
from specchk.meaning.undefined import Faulty, Undefined
from specchk.report.draw.graphs import actions_dot, states_dot, trace_dot
from specchk.report.draw.picture import FORMATS, Picture
from specchk.report.draw.text import text
from specchk.report.text import headline, render
from specchk.search.budget import Budget, Meter
from specchk.search.engine import Options
from specchk.search.graph import StateGraph, TooManyStates, enabling, state_graph
from specchk.search.verdict import Holds, HoldsWithin, Outcome, Trace, Violation
from specchk.search.watch import LimitReached

TRACES, GRAPHS = ("lanes", "trace"), ("states", "actions")
_HOLDS = (Holds, HoldsWithin)
_OF_TRACES = "--show, --witness or --scenario"
MAX_DRAWN = 300  # states: beyond this, Graphviz takes minutes, for an unreadable picture
MAX_EXPLORED = 200_000  # states, of which only the actions are drawn
MAX_COMPARED = 20_000  # states compared for a clearer counterexample, in about two seconds


@click.command("draw")
@takes(choice=ModelChoice)
@click.option(
    "-o",
    "--output",
    type=OutputFile(FORMATS),
    metavar="FILE",
    help="Write a .svg, .png, .pdf or .dot file; by default, print text.",
)
@click.option(
    "--kind",
    type=click.Choice((*TRACES, *GRAPHS)),
    default=TRACES[0],
    show_default=True,
    help="lanes, trace: the steps in lanes or as a chain; states: the graph of all states; actions: which "
    "action enables which.",
)
@click.option(
    "--spec", metavar="SPEC", help="With a trace as FILE: its spec, instead of the one that it names."
)
@click.option("--witness", metavar="W", help="Draw a path to this witness instead of a counterexample.")
@click.option("--scenario", metavar="S", help="Draw this scenario instead of a counterexample.")
@click.option(
    "--show", multiple=True, metavar="EXPR", help="Show the value of EXPR, or of NAME = EXPR, in each state."
)
@takes(engine=EngineChoice, limits=Limits)
def command(
    choice: ModelChoice, output: str | None, kind: str, spec: str | None, witness: str | None,
    scenario: str | None, show: tuple[str, ...], engine: EngineChoice, limits: Limits,
) -> None:  # fmt: skip
    """Draw the counterexample of the spec FILE, with a lane for each replica and time running downwards.

    FILE may also be a trace: the output of `run --json` or `conform --json`, or an ITF file.  Its steps
    are checked first.  Exit codes: 0 it was drawn, 2 the properties hold, so there is none; those of
    `specchk run` where a violation has no trace, or there is no verdict.
    """
    with limits.watched() as budget:
        _draw(choice, output, kind, spec, witness, scenario, show, engine, budget)


def _draw(
    choice: ModelChoice, output: str | None, kind: str, spec: str | None, witness: str | None,
    scenario: str | None, show: tuple[str, ...], engine: EngineChoice, budget: Budget,
) -> None:  # fmt: skip
    title = ""
    file = choice.file
    is_trace = file.endswith(".json")  # `.itf.json`, too; else it is a spec
    if kind in GRAPHS and (show or witness or scenario or is_trace):
        raise click.UsageError(f"--kind {kind} draws a model and not a trace, without {_OF_TRACES}")
    if spec is not None and not is_trace:
        raise click.UsageError("--spec names the spec of a trace; this FILE is a spec itself")
    trace: Trace | None = None
    violation: Violation | Divergence | None = None
    if is_trace:
        instance, trace, violation = from_file(file, spec, choice.model, choice.table)
    elif scenario is not None:
        instance, trace, violation = from_scenario(file, scenario)
        title = f"scenario {scenario}"
    else:
        instance = choice.instance(as_json=False)
    if isinstance(violation, Divergence):
        if show:
            raise click.UsageError("--show is for traces of a spec: this one is of an implementation, too")
        _draw_lanes(drawn(instance, violation), output)
        return
    if kind in GRAPHS:
        graph = _graph(instance, kind)
        if kind == "actions":
            write_dot(actions_dot(instance.program, enabling(graph)), output)
            return
        # Of so few states the search takes no time.
        found = counterexample(explore(instance.program, Options(budget), engine=engine.chosen(), quiet=True))
        write_dot(states_dot(graph, found[0] if found else None), output)
        return
    shown = expressions(instance, show, as_json=False)  # before the search: a mistake is reported at once
    if trace is None:
        outcome = explore(instance.program, Options(budget), engine=engine.chosen(), quiet=False)
        with suppress(LimitReached):  # then the first one is drawn
            Meter(budget).raise_exceeded()
            if witness is None:
                outcome = clearer(instance, outcome, max_states=MAX_COMPARED)
        trace, violation = _chosen(instance, outcome, witness)
        title = f"witness {witness}" if witness is not None else ""
    if shown:
        instance, (trace,) = extend(instance, [trace], shown)
    if kind == "trace":
        write_dot(trace_dot(instance.program, trace), output)
    else:
        _draw_lanes(drawing(instance, trace, violation, title), output)


def _graph(instance: Instance, kind: str) -> StateGraph:
    limit = MAX_DRAWN if kind == "states" else MAX_EXPLORED
    try:
        return state_graph(instance.program, limit)
    except TooManyStates:
        raise click.ClickException(
            f"this picture is limited to {limit} states; choose a smaller model, or use --set"
        ) from None
    except Undefined as undefined:
        raise _no_picture("the initial state", undefined.span, undefined.reason) from None
    except Faulty as fault:
        action = f"a step of `{instance.program.actions[fault.action].name}`"
        raise _no_picture(action, fault.undefined.span, fault.undefined.reason) from None
    except NoAnswer as unclear:
        raise _no_picture(f"`{unclear.name}`", unclear.blame.span, unclear.blame.text) from None


def _no_picture(what: str, span: Span, reason: str) -> click.ClickException:
    return click.ClickException(f"{span.where}: {what} is undefined: {reason}; see `specchk run`")


def _chosen(
    instance: Instance, outcome: Outcome, witness: str | None
) -> tuple[Trace, Violation | None]:  # fmt: skip
    if witness is not None:
        reached = dict(outcome.witnesses)
        if witness not in reached:
            known = ", ".join(reached) or "none"
            verdict = "" if isinstance(outcome.verdict, _HOLDS) else f"; {headline(outcome)}"
            raise click.ClickException(f"witness {witness!r} was not reached; reached: {known}{verdict}")
        return clearest(instance, witness, reached[witness], MAX_COMPARED), None
    shown = counterexample(outcome)
    if shown is not None:
        return shown
    if isinstance(outcome.verdict, _HOLDS):
        raise click.ClickException("there is no counterexample to draw; --witness draws a path to a witness")
    echo(f"there is no counterexample to draw:\n\n{render(outcome, width())}", err=True)
    sys.exit(of_verdict(outcome.verdict))


def _draw_lanes(lanes: Picture, output: str | None) -> None:
    if output is None:
        echo(text(lanes))
        return
    write_picture(lanes, Path(output))
