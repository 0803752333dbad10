"""`specchk check`: every error that is detectable without exploring states."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from specchk.cli.common import load, print_json, reject
from specchk.cli.exits import Exit
from specchk.cli.files import spec_files
from specchk.cli.output import echo
from specchk.compile.instantiate import instantiate, survey
from specchk.lang.text.diagnostics import Diagnostic, SpecError
from specchk.native.machine.prospects import prospects
from specchk.search.coverage import NO_VARIABLES


@click.command("check")
@click.argument("files", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(files: Sequence[str], as_json: bool) -> None:
    """Check spec FILES (or folders of them): syntax, names, types, levels, and every model's constants.

    FILES may be -, for standard input.
    """
    found: list[Diagnostic] = []
    lines: list[str] = []
    notes: list[str] = []
    for file in spec_files(files):
        findings, line, special = _check(file)
        found += findings
        lines += [line, *(f"note: {note}" for note in special)]
        notes += special
    if found:
        reject(found, as_json=as_json)
    if as_json:
        print_json(
            {
                "schema": "specchk.check/1",
                "verdict": "ok",
                "files": list(spec_files(files)),
                "notes": notes,
                "exit_code": 0,
            }
        )
    else:
        echo("\n".join(lines))
    sys.exit(Exit.OK)


def _check(file: str) -> tuple[list[Diagnostic], str, list[str]]:
    try:
        checked = load(file)
    except SpecError as error:
        return list(error.diagnostics), "", []
    found: list[Diagnostic] = []
    notes: list[str] = []
    for number, model in enumerate(checked.spec.models):
        try:
            # One model is lowered whole, for errors in bodies; of the others only what their constants decide
            # is new.
            if number:
                survey(checked, model)
            else:
                notes = [one.line for one in prospects(instantiate(checked, model).program)]
        except SpecError as error:  # what no engine checks yet is for `run` to refuse
            found += [d for d in error.diagnostics if not d.code.startswith("S6") and d not in found]
    spec = checked.spec
    if not spec.models:
        notes.append(f"{file}: no model; what only its constants decide was not checked")
    if not spec.variables:
        notes.append(f"{file}: {NO_VARIABLES}")
    counts = (
        f"{len(spec.variables)} variables, {len(spec.actions)} actions, {len(spec.properties)} properties"
    )
    line = f"ok: {file}: {counts}, {len(spec.models)} models, {len(spec.scenarios)} scenarios"
    return found, line, notes
