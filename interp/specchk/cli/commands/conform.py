"""`specchk conform`: check an implementation against its spec."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import click
from msgspec.structs import replace

from specchk.cli.common import leave, print_json, refusals, rejections, write_json, write_text
from specchk.cli.conforming.gate import Gate, GateOptions, choices_beside
from specchk.cli.conforming.mistakes import reject_binding
from specchk.cli.conforming.several import run_each
from specchk.cli.crews import ended_processes
from specchk.cli.exits import Exit
from specchk.cli.groups import GroupedCommand, option, takes
from specchk.cli.options.given import PythonFile
from specchk.cli.options.suites import SuiteChoice
from specchk.cli.output import echo, echo_report
from specchk.cli.pictures import svg_of, write_picture
from specchk.cli.written import OutputFile
from specchk.conform.contract.binding import Binding, BindingError
from specchk.conform.contract.hangs import contained
from specchk.conform.contract.load import NoBinding
from specchk.conform.contract.load import load_binding as load
from specchk.conform.covers.cases import MADE_OF_CASES
from specchk.conform.frozen import CannotFreeze, frozen
from specchk.conform.gate.gate import BoundSpec
from specchk.conform.gate.tiers import Part, parts_of
from specchk.conform.replay.divergence import as_itf, drawn
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import run_suite
from specchk.conform.replay.shrink import shrunk_result
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.report.page import page
from specchk.conform.report.suite import as_json as as_json_of
from specchk.conform.report.suite import cases_json, overall, render, render_cases, render_tier, tier_json
from specchk.lang.frontend import check
from specchk.meaning.properties import NoAnswer
from specchk.meaning.undefined import Faulty, Undefined
from specchk.report.draw.picture import FORMATS


@dataclass(frozen=True, slots=True)
class Files:
    """The files to write about a divergence."""

    heading: ClassVar[str] = "Output"
    draw: str | None = option(
        "--draw",
        type=OutputFile(FORMATS),
        metavar="FILE",
        help="Draw the divergence (.svg, .png, .pdf or .dot).",
    )
    itf: str | None = option(
        "--itf", type=OutputFile(or_stdout=True), metavar="FILE", help="Write the divergence as an ITF trace."
    )
    freeze: str | None = option(
        "--freeze",
        type=OutputFile(),
        metavar="FILE",
        help="Write the divergence as a test for pytest.",
    )
    html: str | None = option(
        "--html", type=OutputFile(), metavar="FILE", help="Write the whole report as one HTML page."
    )
    as_json: bool = option("--json", help="Print one JSON object instead of text.")

    def write(self, binding: Path, part: Part, result: SuiteResult, sections: Sequence[str] = ()) -> None:
        """Write the files; without a divergence, report that on standard error."""
        divergence = result.divergence
        # With a divergence or without: a build server keeps the page of every run.
        if self.html is not None:
            svg = None if divergence is None else svg_of(drawn(part.instance, divergence))
            write_text(Path(self.html), page(part, result, svg, sections))
        if divergence is None:
            if {self.draw, self.itf, self.freeze} != {None}:
                echo("no divergence, so nothing was drawn or written", err=True)
            return
        if self.draw is not None:
            write_picture(drawn(part.instance, divergence), Path(self.draw))
        if self.itf is not None:
            write_json(self.itf, as_itf(part.instance.program, divergence))
        if self.freeze is not None:
            target = Path(self.freeze)
            try:
                text = frozen(part, binding, divergence, target)
            except CannotFreeze as error:
                echo(f"{target} was not written: {error}", err=True)
            else:
                write_text(target, text)


@click.command("conform", cls=GroupedCommand)
@click.argument("bindings", metavar="BINDING...", nargs=-1, required=True, type=PythonFile())
@takes(wanted=SuiteChoice, options=GateOptions, files=Files)
@contained(partial(echo, err=True))
def command(bindings: tuple[str, ...], wanted: SuiteChoice, options: GateOptions, files: Files) -> None:
    """Check an implementation against its spec; the Python file BINDING connects the two.

    The implementation takes the steps of the spec and must refuse those that the spec forbids; its
    whole state is compared after each.  By default, the suites of the binding's gate are run.  Several
    bindings run side by side, each in its own process.  Exit codes:
    0 conforms, 13 diverges, 14 the gate is below its lock, 20 a suite was stopped by a budget, 21 a suite
    or the gate was vacuous, 30 the spec or the binding was rejected.
    """
    if len(bindings) > 1:
        sys.exit(run_each(_alone(bindings, wanted, options, files), as_json=files.as_json))
    (binding,) = bindings
    cls = load_binding(Path(binding))
    gate = Gate(options)
    tier = None if wanted.case is not None else wanted.of_tier
    options.check(tier)
    options.try_outputs(Path(binding).parent)
    try:
        with rejections(as_json=files.as_json):
            checked = check(str(Path(binding).parent / cls.spec))
            parts = parts_of(cls, checked, wanted.suites(cls), choices_beside(Path(binding)))
        if wanted.list_cases:
            suites = [part.suite(wanted.budget) for part in parts if part.at.suite in MADE_OF_CASES]
            leave(
                Exit.OK, as_json=files.as_json, json=lambda: cases_json(suites),
                text=lambda: render_cases(suites),
            )  # fmt: skip
        if wanted.case is not None:
            parts, results = _one_case(parts, wanted)
        else:
            bound = BoundSpec(Path(binding), cls, checked)
            with ended_processes(as_json=files.as_json):
                gate, parts, results = options.run(bound, parts, wanted.budget, tier)
        results = _shrunk(parts, results)
    except BindingError as error:
        reject_binding(error, as_json=files.as_json)
    except Faulty as fault:
        raise _undefined(parts[0].instance.program.actions[fault.action].name, fault) from None
    except NoAnswer as fault:
        raise _undefined(fault.name, fault) from None
    except Undefined as fault:
        raise _undefined("init", fault) from None
    _finish(parts, results, tier, Path(binding), files, gate)


def _alone(
    bindings: Sequence[str], wanted: SuiteChoice, options: GateOptions, files: Files
) -> dict[str, Callable[[], object]]:
    """For each of several bindings, the command that checks it alone."""
    of_one_binding = {
        "--case": wanted.case, "--list": wanted.list_cases or None, "--draw": files.draw, "--itf": files.itf,
        "--freeze": files.freeze, "--html": files.html,
    }  # fmt: skip
    for name, given in of_one_binding.items():
        if given is not None:
            raise click.UsageError(f"{name} applies to one binding; run the others without it")
    context = click.get_current_context()
    run = context.command.callback
    assert run is not None
    if len(set(bindings)) < len(bindings):
        raise click.UsageError("a binding is named twice")
    return {
        one: partial(run, **{**context.params, "bindings": (one,), "junit": options.junit_of(one)})
        for one in bindings
    }


def _undefined(name: str, fault: Exception) -> click.ClickException:
    return click.ClickException(f"the spec is undefined in `{name}`: {fault}; see `specchk run`")


def _one_case(parts: Sequence[Part], wanted: SuiteChoice) -> tuple[list[Part], list[SuiteResult]]:
    """The result of the requested case, and the part that contains it."""
    assert wanted.case is not None
    for part in parts:
        if part.at.suite in MADE_OF_CASES:
            suite = part.suite(wanted.budget)
            case = suite.case(wanted.case)
            if case is not None:
                result = run_suite(Replayer(part.binding), suite, cases=[case])
                whole = result.divergence is None
                return [part], [replace(result, suite=f"case {case.id}", complete=whole)]
    raise click.UsageError(f"no case has the id {wanted.case}, or several begin with it; see --list")


def _shrunk(parts: Sequence[Part], results: Sequence[SuiteResult]) -> list[SuiteResult]:
    """The first divergence, on the shortest path that is found."""
    shrunk = list(results)
    first = shrunk.index(overall(shrunk))
    shrunk[first] = shrunk_result(Replayer(parts[first].binding), shrunk[first])
    return shrunk


def load_binding(path: Path) -> type[Binding[Any]]:
    """The binding class of a Python file, or an error of usage."""
    with refusals(NoBinding):
        return load(path)


def _finish(
    parts: Sequence[Part], results: Sequence[SuiteResult], tier: str | None, binding: Path, files: Files,
    gate: Gate,
) -> NoReturn:  # fmt: skip
    worst = overall(results)
    part = parts[list(results).index(worst)]
    code = gate.exit_of(exit_of(worst))
    if tier is None:
        if files.as_json:
            print_json(as_json_of(part, worst, code))
        else:
            echo_report(render(part, worst))
    elif files.as_json:
        print_json({**tier_json(tier, parts, results, [*map(exit_of, results)]), **gate.json(),
                    "exit_code": int(code)})  # fmt: skip
    else:
        echo_report("\n".join(filter(None, [gate.head(), render_tier(tier, parts, results), gate.text()])))
    # After the report: a file that cannot be written does not cost the verdict.
    gate.write_junit(parts, results)
    files.write(binding, part, worst, gate.sections(parts, results) if tier else ())
    sys.exit(code)


def exit_of(result: SuiteResult) -> Exit:
    """The exit code of a suite: a suite ended by its budget without a finding is not a success."""
    if result.divergence is not None:
        return Exit.DIVERGED
    if result.vacuous:
        return Exit.INCONCLUSIVE
    return Exit.OK if result.complete else Exit.BUDGET
