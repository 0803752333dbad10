"""`replog repair DIR`: the damage, the records that would be lost, and, with `--apply`, the cut.

    orders-0                         damaged
    ! 00000000000000000000.log: damaged at byte 4096: CRC 0x9ae0daaf stored, 0x77073096 computed
      kept: offsets 0..119; cut: 120..4999

    1 of 2 partitions to repair; nothing was changed

Exit code 0 if there is nothing to do, or all was done; 1 if something is left to do. The cut part is kept
beside the log. Not here: which part is good (`survey.py`), and the repair itself (`repair.py`, both in
`replog.store.recovery`).
"""

import os
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import click

from replog.store.checkpoints.root import LOCK_FILE, Root
from replog.store.directory import lock_directory
from replog.store.files.fs import NO_FILE, OsFs
from replog.store.recovery.repair import Plan, Repairer, set_strangers_aside, strangers

NAME_WIDTH = 32


def plan_text(plan: Plan, is_done: bool) -> Iterator[str]:
    """Yield the lines of a plan, or of its result."""
    yield from (f"  ! {problem}" for problem in plan.problems)
    start, end = plan.kept
    kept = f"offsets {start}..{end - 1}" if end > start else "nothing"
    cut = f"{end}..{plan.promised - 1}" if plan.promised > end else "nothing"
    yield f"    kept: {kept}; cut: {cut}"
    if plan.adoptable is not None and not is_done:
        first, last = plan.adoptable
        yield "    nothing vouches for these records: their CRCs do not show to which log they belong"
        if plan.kept != plan.adoptable and last > first:
            span = f"{first}..{last - 1}"
            yield f"    --adopt would keep {span}; prefer the copies of a leader, if there is one"


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--apply", "applies", is_flag=True, help="Carry out the repair; without it, nothing is changed."
)
@click.option("--adopt", "adopts", is_flag=True, help="Also keep records with only a CRC as evidence.")
@click.pass_context
def command(context: click.Context, directory: Path, applies: bool, adopts: bool) -> None:
    """Show the damage in the log directory of a stopped broker, and the data that a repair keeps and removes.

    A repair keeps each log up to its first damage. The rest is cut off and kept in files beside the log;
    the broker fetches those records from the leader again.
    """
    path = str(directory.resolve())
    # Without --apply nothing is written, not even a lock file into a directory that never had one.
    if applies or os.path.lexists(directory / LOCK_FILE):
        lock, is_bare = lock_directory(OsFs(), path)
    else:
        lock, is_bare = None, Root(OsFs(), path).is_bare()
    with nullcontext() if lock is None else closing(lock):
        left, is_refused = _set_aside(path, applies), False
        if not left:
            left, is_refused = _repair(Repairer(OsFs(), path, adopts, is_bare), applies)
    if left:
        adopted = " --adopt" if adopts else ""
        click.echo(f"next: replog repair {directory} --apply{adopted}")
    context.exit(int(left or is_refused))


def _set_aside(path: str, applies: bool) -> bool:
    """Print, and set aside, what is in the place of files; return whether it is there still."""
    names = strangers(OsFs(), path)
    for name in names:
        click.echo(f"  ! {name}: {NO_FILE}")
    if applies:
        for note in set_strangers_aside(OsFs(), path, names):
            click.echo(f"  {note}")
    elif names:
        click.echo("\nto set aside first; nothing was changed, and nothing else looked at")
    return bool(names) and not applies


def _repair(repairer: Repairer, applies: bool) -> tuple[bool, bool]:
    """Print, and perform, the repairs; return whether something is left to do, and to refuse."""
    keys = repairer.partitions()
    plans = [repairer.plan(key) for key in keys]
    for key, plan in zip(keys, plans, strict=True):
        click.echo(f"{f'{key[0]}-{key[1]}':{NAME_WIDTH}} {'whole' if plan is None else 'damaged'}")
        if plan is None:
            continue
        for line in plan_text(plan, applies):
            click.echo(line)
        if applies:
            repairer.apply(key)
    foreign = repairer.foreign()
    for reason in foreign:
        click.echo(f"  ! {reason}: a start refuses this, and only newer software or a person can decide")
    damaged = sum(plan is not None for plan in plans)
    of_all = f"{damaged} of {len(plans)} partition{'s' * (len(plans) != 1)}"
    if applies:
        for note in repairer.notes:
            click.echo(f"  {note}")
        click.echo(f"\n{of_all} repaired")
    else:
        click.echo(f"\n{of_all} to repair; nothing was changed")
    return damaged > 0 and not applies, bool(foreign)
