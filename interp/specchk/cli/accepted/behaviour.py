"""`specchk behaviour`: compare an implementation with its accepted behaviour."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import replace

from specchk.cli.common import leave, refusals, write_text
from specchk.cli.crews import ended_processes
from specchk.cli.exits import Exit
from specchk.cli.options.given import PythonFile
from specchk.cli.written import OutputFile, try_file
from specchk.conform.behaviour.running import behave
from specchk.conform.contract.load import NoBinding, load_behaviours
from specchk.conform.report import behaviour_report
from specchk.conform.work import lock_file
from specchk.conform.work.lock_file import NAME, BadLock
from specchk.lang.text.diagnostics import nearest
from specchk.processes import cores


@click.command("behaviour")
@click.argument("file", type=PythonFile(Path))
@click.option("--lock", is_flag=True, help=f"Compare the runs with {NAME} beside the file.")
@click.option("--update-lock", is_flag=True, help=f"Accept the behaviour: write {NAME}, for review.")
@click.option("--run", "only", multiple=True, metavar="NAME", help="Take only this run; repeatable.")
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Number of processes; by default one per core."
)
@click.option("--junit", type=OutputFile(), metavar="FILE", help="Write the runs as JUnit XML.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(
    file: Path,
    lock: bool,
    update_lock: bool,
    only: tuple[str, ...],
    workers: int | None,
    junit: str | None,
    as_json: bool,
) -> None:
    """Compare the outputs of an implementation in the runs of FILE with the accepted ones.

    A difference shows that the behaviour changed, not that it violates a spec.  Exit codes: 0 no difference,
    14 a difference, or no lock to compare with, 13 the implementation ended the process that ran it, 21 the
    process was killed.
    """
    if lock and update_lock:
        raise click.UsageError("--lock compares with the lock, --update-lock writes it: choose one")
    if update_lock and only:
        raise click.UsageError("a lock has all runs; omit --run")
    path = file.parent / NAME
    if update_lock:
        try_file(path, "--update-lock")
    with refusals(NoBinding):
        behaviours = load_behaviours(file)()
    unknown = sorted({*only} - behaviours.runs().keys())
    if unknown:
        hint = nearest(unknown[0], behaviours.runs()) or "without --run all are taken"
        raise click.UsageError(f"there is no run `{unknown[0]}`; {hint}")
    with refusals(BadLock):
        contents = lock_file.read(path)
    known = contents.behaviour if lock else None
    with ended_processes(as_json=as_json):
        behaved = behave(behaviours, known, workers or cores(), only)
    if update_lock:
        with refusals(OSError):
            lock_file.write(path, replace(contents, behaviour=behaved.accepted))
        behaved = replace(behaved, is_compared=True)
    renew = f"specchk behaviour {file} --update-lock"
    about = behaviours.name, behaved, str(path), renew
    if junit is not None:
        write_text(Path(junit), behaviour_report.junit(*about))
    is_red = lock and not (behaved.is_compared and behaved.is_accepted)
    code = Exit.BELOW_LOCK if is_red else Exit.OK
    leave(
        code,
        as_json=as_json,
        json=lambda: behaviour_report.json(*about, int(code)),
        text=lambda: behaviour_report.text(*about),
    )
