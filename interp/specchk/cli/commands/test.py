"""`specchk test`: check every model and scenario against its expectation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import click
from msgspec import Struct

from specchk.cli.common import Limits, load, parse_overrides, print_json, rejections, spec_files, width
from specchk.cli.engines import EngineChoice, EngineSettings, explore
from specchk.cli.exits import Exit
from specchk.cli.groups import takes
from specchk.cli.options.repeating import watched
from specchk.cli.output import echo, echo_report
from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import run_scenario
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax import decls
from specchk.report.json import run_json, scenario_json
from specchk.report.text import counted, judgement, paragraphs, scenario_lines, violation_lines
from specchk.report.uncovered import Uncovered, never_taken, never_true
from specchk.search.budget import Budget
from specchk.search.coverage import of_one_model
from specchk.search.expect import options_for, unmet
from specchk.search.verdict import INTERRUPTED, Inconclusive, Outcome, violations_of
from specchk.search.watch import LimitReached


class TestedModel(Struct, frozen=True):
    """One tested model or scenario."""

    file: str
    name: str
    problems: tuple[str, ...]
    summary: str
    details: tuple[str, ...]
    json: dict[str, Any]


class TestChoice(Struct, frozen=True):
    """The models to test, the constants to override, and the options of the tests."""

    models: tuple[str, ...]
    overrides: dict[str, str]
    engine: EngineSettings
    limits: Limits
    as_json: bool
    strict: bool


@click.command("test")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="M",
    help="Check only this model and its scenarios; repeatable.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="C=V",
    help="Override a constant or the size of a sort in each model; repeatable.",
)
@takes(engine=EngineChoice)
@click.option("--strict", is_flag=True, help="Fail on warnings, as `run --strict` does.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@takes(limits=Limits)
@watched
def command(
    files: Sequence[str], models: Sequence[str], overrides: Sequence[str], engine: EngineChoice,
    as_json: bool, limits: Limits, strict: bool,
) -> None:  # fmt: skip
    """Check all models and scenarios of spec FILES (or folders) against their expectations.

    Exit codes: 0 all are as expected, 10 at least one is not, such as a model stopped by a budget.
    """
    way = TestChoice(tuple(models), parse_overrides(overrides), engine.chosen(), limits, as_json, strict)
    done: list[TestedModel] = []
    notes: list[str] = []
    for file in spec_files(files):
        for line in _file(file, way):
            done.append(line)
            if not as_json:
                _print(line)
            # A search that is interrupted ends with an outcome; the models that are left must not begin.
            if line.json.get("reason") == INTERRUPTED:
                raise KeyboardInterrupt
        results = [line.json for line in done if line.file == file]
        idle = [] if models else [_idle(point) for point in never_taken(file, results)]
        vacuous = never_true(file, results)
        notes += idle + vacuous
        if not as_json:
            for text in (
                *(f"note   {file} {text}" for text in idle),
                *(f"warning: {text}" for text in vacuous),
            ):
                echo_report(text)
    bad = [line for line in done if line.problems]
    code = Exit.VIOLATED if bad else Exit.OK if done else Exit.USAGE
    if as_json:
        print_json(
            {
                "schema": "specchk.test/1",
                "results": [line.json for line in done],
                "notes": notes,
                "exit_code": int(code),
            }
        )
    else:
        echo(f"{len(done) - len(bad)} as expected, {len(bad)} not")
    if not done:
        reason = "no model has that name" if models else "no file has a model"
        echo(f"nothing was tested: {reason}", err=True)
    sys.exit(code)


def _idle(point: Uncovered) -> str:
    """The line about an action or branch that runs in no model."""
    owner = f" of `{point.owner}`" if point.kind == "branch" else ""
    return f"in no model: {point.kind} `{point.label}`{owner} ({point.at})"


def _print(line: TestedModel) -> None:
    mark = "FAILED" if line.problems else "ok"
    lines = [f"       {text}" for text in (*line.problems, *line.details)]
    echo_report("\n".join([f"{mark:6} {line.file} {line.name}: {line.summary}", *lines]))


def _file(file: str, way: TestChoice) -> Iterator[TestedModel]:
    with rejections(as_json=way.as_json):
        with way.limits.watched(is_command=False):
            checked = load(file)
        for name, model in checked.spec.models.items():
            if not way.models or name in way.models:
                yield _in_time(file, name, way, partial(_model, file, checked, model, way))
        for scenario in checked.spec.scenarios.values():
            if not way.models or scenario.model.text in way.models:
                name = f"scenario {scenario.name}"
                yield _in_time(file, name, way, partial(_scenario, file, checked, scenario, way))


def _in_time(file: str, name: str, way: TestChoice, tested: Callable[[Budget], TestedModel]) -> TestedModel:
    """The result for one model, within limits of its own."""
    with way.limits.watched(is_command=False) as budget:
        try:
            return tested(budget)
        except LimitReached as limit:  # where there was no search, which has a report
            reason = str(limit)
        report = {
            "file": file, "passed": False, "problems": [reason], "model": name, "verdict": "inconclusive",
            "reason": reason,
        }  # fmt: skip
        return TestedModel(file, f"{name}{_set(way)}", (reason,), "inconclusive", (), report)


def _model(
    file: str, checked: CheckedSpec, model: decls.Model, way: TestChoice, budget: Budget
) -> TestedModel:
    instance = instantiate(checked, model.name, way.overrides)
    expects = instance.model.expects
    options = options_for(expects, budget, strict=way.strict)
    outcome = explore(instance.program, options, engine=way.engine, quiet=way.as_json)
    problems = tuple(unmet(outcome, expects))
    violated = violations_of(outcome.verdict)
    shown = [each for each in violated if problems and each.kind != "vacuous"]  # which the problem states
    details = [line for each in shown for line in violation_lines(outcome.program, each, width())]
    if not violated:  # the search for them ended early, and many warnings would only repeat that
        texts = [f"warning: {text}" for text in of_one_model(outcome.program, outcome.warnings)]
        details += paragraphs(texts, width() - 7, 0)
    report = {"file": file, "passed": not problems, "problems": list(problems), **run_json(outcome, 0)}
    return TestedModel(file, f"{model.name}{_set(way)}", problems, _summary(outcome), tuple(details), report)


def _set(way: TestChoice) -> str:
    """The overrides as shown after the name of a model."""
    given = ", ".join(f"{name} = {value}" for name, value in way.overrides.items())
    return f" ({given})" if given else ""


def _summary(outcome: Outcome) -> str:
    numbers = outcome.statistics
    # The reason why it is inconclusive is the problem, on a separate line.
    verdict = "inconclusive" if isinstance(outcome.verdict, Inconclusive) else judgement(outcome)
    return f"{verdict}, {counted(numbers.distinct, 'state')}, depth {numbers.depth}, {numbers.seconds:.2f} s"


def _scenario(
    file: str, checked: CheckedSpec, scenario: decls.Scenario, way: TestChoice, _budget: Budget
) -> TestedModel:
    names = [prop.name for prop in checked.spec.properties.values() if prop.kind != "liveness"]
    instance = instantiate(checked, scenario.model.text, way.overrides, names)
    result = run_scenario(instance, scenario)
    problems = (result.failure.message,) if result.failure else ()
    details = tuple(scenario_lines(instance.program, result, width()))
    name = f"scenario {scenario.name}{_set(way)}"
    report = {"file": file, **scenario_json(instance.program, result)}
    return TestedModel(file, name, problems, counted(result.lines, "line"), details, report)
