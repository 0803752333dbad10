"""`specchk recheck`: check the certificate of a verdict, without the search that wrote it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from specchk.cli.common import leave, load, rejections, replaced, width
from specchk.cli.engines import loaded, refuse_temporal
from specchk.cli.exits import Exit
from specchk.cli.groups import GroupedCommand, argument, option, takes
from specchk.cli.output import rewrite_line
from specchk.cli.written import folder_refused
from specchk.compile.instantiate import Instance, instantiate
from specchk.ir.program import Program, Property, without_ends
from specchk.ir.types import BOOL
from specchk.lang.text.given import opened
from specchk.report.json import model_json
from specchk.report.proof import goals, not_proved_by_induction
from specchk.report.text import constants, counted, wrapped


@dataclass(frozen=True, slots=True)
class RecheckChoice:
    """A certificate, and the options for checking it."""

    file: str = argument()
    as_json: bool = option("--json", help="Print one JSON object instead of text.")
    query_seconds: float = option(
        "--query-seconds", default=60.0, help="Time limit for each query to the solver."
    )
    only_z3: bool = option(
        "--only-z3", help="Decide every obligation with Z3, including those about differences of offsets."
    )
    smt_lib: str | None = option(
        "--smt-lib", metavar="DIR",
        help="Like --only-z3; also write each query to DIR as SMT-LIB (all must be unsat).",
    )  # fmt: skip


@click.command("recheck", cls=GroupedCommand)
@takes(choice=RecheckChoice)
def command(choice: RecheckChoice) -> None:
    """Check the certificate FILE of a verdict `holds`, written by `specchk run --certificate`.

    Every obligation is encoded from the spec again and decided by difference arithmetic or by Z3; no result
    of the search is used.
    Exit codes: 0 the certificate proves the properties, 21 it does not, 30 the spec was rejected.
    """
    form = loaded("specchk.symbolic.certificates.format")
    try:
        with _uncollected():
            certificate = form.read(opened(Path(choice.file)))
    except OSError as error:
        raise click.ClickException(f"{choice.file}: {error.strerror}") from None
    except form.MalformedCertificate as error:
        raise click.UsageError(f"{choice.file} is not a certificate: {error}") from None
    started = time.monotonic()
    with rejections(as_json=choice.as_json):
        instance = instantiate(
            load(certificate.spec), certificate.model, certificate.constants, certificate.properties
        )
    try:
        with _uncollected():
            result = _result(certificate, instance, choice)
    except form.MalformedCertificate as error:
        raise click.UsageError(f"{choice.file} is not a certificate of this model: {error}") from None
    except loaded("specchk.symbolic.induction.encode.scope").Unencodable as reason:
        raise click.ClickException(f"this model cannot be encoded: {reason}") from None
    code = Exit.INCONCLUSIVE if result.problems else Exit.OK
    report = {
        "schema": "specchk.recheck/1", "verdict": "refused" if result.problems else "proved",
        "bounds": [prop.name for prop in instance.program.constraints],
        "not_checked": _not_checked(certificate, instance.program),
        "left_out": list(instance.program.left_out), "properties": goals(instance.program),
        "certificate": choice.file, "spec": certificate.spec, **model_json(instance.program),
        "cases": result.cases, "queries": result.queries, "problems": result.problems,
        "seconds": time.monotonic() - started, "exit_code": int(code),
    }  # fmt: skip
    model = constants(instance.program)
    leave(code, as_json=choice.as_json, json=lambda: report, text=lambda: _text(report, model))


def _not_checked(certificate: Any, program: Program) -> list[str]:
    """The claims of the model that its certificate does not cover."""
    left_out = not_proved_by_induction(program)
    # That no part is stuck is an obligation; of all states that satisfy the invariants, some usually are.
    return left_out if certificate.invariants is not None else [one for one in left_out if one != "deadlock"]


@contextmanager
def _uncollected() -> Iterator[None]:
    """Suspend garbage collection, which would repeatedly visit all parts and terms; they have no cycles."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _result(certificate: Any, instance: Instance, choice: RecheckChoice) -> Any:
    checker = loaded("specchk.symbolic.certificates.checker")
    program = instance.program
    # The spec may have changed since: what neither engine proves, no certificate of it does.
    refuse_temporal(program, "a certificate", as_json=choice.as_json)
    if certificate.invariants is None:
        with rejections(as_json=choice.as_json):
            loaded("specchk.symbolic.legality").check(program)
    beginnings = loaded("specchk.symbolic.induction.beginnings")
    unmet = beginnings.unmet(program, choice.query_seconds)
    if unmet is not None:  # of no state a certificate proves nothing
        return checker.Recheck(problems=[unmet])
    on_query = None if choice.smt_lib is None else _writer(Path(choice.smt_lib))
    if certificate.invariants is not None:
        program = without_ends(_with_lemmas(instance, certificate.lemmas, as_json=choice.as_json))
        return checker.CertificateChecker(program, choice.query_seconds, on_query).invariants()
    states = loaded("specchk.symbolic.certificates.states").CertifiedStates(program, certificate.parts)
    progress = _progress(len(states.groups), quiet=choice.as_json)
    decider = None
    if not choice.only_z3 and on_query is None:
        decider = loaded("specchk.symbolic.differences.obligations").DifferenceDecider(states)
    return checker.CertificateChecker(program, choice.query_seconds, on_query, decider).parts(
        states, progress
    )


def _writer(folder: Path) -> Callable[[int, str, str], None]:
    """A function that writes queries to files in a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"{folder}: {error.strerror}") from None
    refusal = folder_refused(folder)
    if refusal is not None:
        raise click.BadParameter(refusal, param_hint="--smt-lib")

    def write(number: int, problem: str, query: str) -> None:
        replaced(folder / f"{number:06}.smt2", f"; {problem}: must be unsat\n{query}")

    return write


def _with_lemmas(instance: Instance, lemmas: dict[str, str], *, as_json: bool) -> Program:
    properties = []
    for name, text in lemmas.items():
        with rejections(as_json=as_json):  # a lemma may name parts of the original spec
            body, locals_ = instance.expression(text)
        if body.type != BOOL:
            malformed = loaded("specchk.symbolic.certificates.format").MalformedCertificate
            raise malformed(f"the lemma `{name}` is not a truth value")
        properties.append(Property("invariant", name, body, locals_, body.span))
    program = instance.program
    return replace(program, invariants=(*program.invariants, *properties))


def _progress(groups: int, *, quiet: bool) -> Callable[[Any], None]:
    def shown(result: Any) -> None:
        if not quiet:
            text = f"{result.cases} of {groups} control parts, {counted(result.queries, 'query')}"
            rewrite_line(text, is_last=result.cases == groups)

    return shown


def _text(report: dict[str, Any], model: str) -> str:
    parts = counted(report["cases"], "control part")
    effort = f"{parts}, {counted(report['queries'], 'query')}, {report['seconds']:.2f} s"
    where = f"{report['spec']}, model {report['model']}"
    if not report["problems"]:
        within = f" within {', '.join(report['bounds'])}" if report["bounds"] else ""
        lines = [f"proved{within}: {where}", f"  {report['certificate']}: {effort}"]
        # Of which constants and properties is in the certificate's hands, so a reader has to see it.
        listed = {
            "constants": [model], "properties": report["properties"],
            "not checked": report["not_checked"], "omitted by the model": report["left_out"],
        }  # fmt: skip
        for kind, names in listed.items():
            lines += wrapped(f"{kind}: {', '.join(names)}", width(), 2) if names else []
        return "\n".join(lines)
    lines = [f"refused: {report['certificate']} does not prove {where}", f"  {effort}"]
    return "\n".join([*lines, *[f"  {problem}" for problem in report["problems"]]])
