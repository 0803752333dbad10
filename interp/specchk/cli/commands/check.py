"""`specchk check`: every error that can be detected without exploring states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version

import click

from specchk.cli.common import leave, load, reject, spec_files, write_json
from specchk.cli.exits import Exit
from specchk.cli.options.repeating import watched
from specchk.cli.written import OutputFile
from specchk.compile.instantiate import Instance, instantiate, survey
from specchk.lang.codes.catalogue import CODES
from specchk.lang.text.diagnostics import Diagnostic, SpecError
from specchk.native.machine.prospects import prospects
from specchk.report.sarif import finding, sarif
from specchk.report.text import counted
from specchk.search.coverage import NO_VARIABLES
from specchk.search.symmetry import asymmetry


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--sarif", "sarif_file", type=OutputFile(), metavar="FILE",
    help="Write the errors as SARIF, for code hosts.",
)  # fmt: skip
@watched
def command(files: Sequence[str], as_json: bool, sarif_file: str | None) -> None:
    """Check spec FILES (or folders of them): syntax, names, types, levels, and every model's constants.

    FILES may be -, for standard input.
    """
    diagnostics: list[Diagnostic] = []
    lines: list[str] = []
    notes: list[str] = []
    names = spec_files(files)
    for file in names:
        errors, line, special = _check(file)
        diagnostics += errors
        lines += [line, *(f"note: {note}" for note in special)]
        notes += special
    if sarif_file is not None:
        rules = {code: CODES[code].title for code in sorted({item.code for item in diagnostics})}
        log = sarif("specchk check", version("specchk"), rules, [finding(item) for item in diagnostics])
        write_json(sarif_file, log)
    if diagnostics:
        reject(diagnostics, as_json=as_json)
    report = {"schema": "specchk.check/1", "verdict": "ok", "files": names, "notes": notes, "exit_code": 0}
    leave(Exit.OK, as_json=as_json, json=lambda: report, text=lambda: "\n".join(lines))


@contextmanager
def _collected(diagnostics: list[Diagnostic]) -> Iterator[None]:
    """A context whose rejection adds to the diagnostics, each once."""
    try:
        yield
    except SpecError as error:
        diagnostics += [found for found in error.diagnostics if found not in diagnostics]


def _check(file: str) -> tuple[list[Diagnostic], str, list[str]]:
    """The errors of a file, its line in the report, and its notes."""
    try:
        checked = load(file)
    except SpecError as error:
        return list(error.diagnostics), "", []
    diagnostics: list[Diagnostic] = []
    notes: list[str] = []
    for number, model in enumerate(checked.spec.models):
        # One model is lowered whole, for errors in bodies; of the others only what their constants decide is
        # new, and their scenarios.
        whole: Instance | None = None
        if number == 0:
            with _collected(diagnostics):
                whole = instantiate(checked, model)
                notes = [prospect.line for prospect in prospects(whole.program)]
                reason = asymmetry(whole.program)
                notes += [f"{file}: symmetry is restricted: {reason}"] if reason else []
        with _collected(diagnostics):
            if whole is None:
                survey(checked, model)
            else:
                whole.lowering.scenarios()
    spec = checked.spec
    if not spec.models:
        notes.append(f"{file}: no model; what only its constants decide was not checked")
    if not spec.variables:
        notes.append(f"{file}: {NO_VARIABLES}")
    declared = (
        (spec.variables, "variable"), (spec.actions, "action"), (spec.properties, "property"),
        (spec.models, "model"), (spec.scenarios, "scenario"),
    )  # fmt: skip
    counts = ", ".join(counted(len(each), noun) for each, noun in declared)
    return diagnostics, f"ok: {file}: {counts}", notes
