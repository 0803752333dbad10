"""Mutants of the harness itself: whether a gate with a planted defect detects that defect.

Each is a patch of `specchk.conform`, or of the binding, in a new interpreter that then runs the
self-check (`selfcheck`, and the checks that a folder of mutants adds).  It is detected if the self-check
reports any failure: a vacuity, a lie that was not detected or has the wrong name, a rejected
binding.

A patch is installed before specchk is imported, so no module here can be in the way.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import json

from specchk.conform.mutation.members import Kill
from specchk.conform.mutation.mutants import Mutant
from specchk.conform.mutation.mutate import UNCHANGED
from specchk.conform.mutation.outcomes import Baseline, MutantOutcome, words_of
from specchk.conform.work.forks import DONE, LATE, Ended, Say, run_all
from specchk.processes import cores

LIMIT_SECONDS = 1800.0  # for a self-check that hangs; it decides nothing
# The codes with which specchk reports a result. Any other (2, 70, a signal) is a crash of the patched
# harness, which shows nothing about what it would overlook.
PASSED, CAUGHT = 0, frozenset({13, 14, 20, 21, 30})
_START = (
    "import sys\n"
    "from msgspec import json\n"
    "from specchk.conform.mutation.patches import Patch, install\n"
    "install(json.decode(sys.argv.pop(1), type=tuple[Patch, ...]))\n"
    "from specchk.cli.main import main\n"
    "main()\n"
)


def run_harness(
    mutants: Sequence[Mutant], binding: Path, options: Sequence[str], done: Callable[[MutantOutcome], None]
) -> tuple[Baseline, list[MutantOutcome]]:
    """Run the self-check unchanged, which must pass, and under each mutant; `done` receives each result."""

    def ended(number: int, result: Ended) -> None:
        if number:
            done(_outcome(mutants[number - 1], result))

    # The self-check without a mutant must pass, or its failures with one would show nothing.
    tasks = [partial(_run, mutant, binding, options) for mutant in (UNCHANGED, *mutants)]
    unchanged, *every = run_all(tasks, cores(), LIMIT_SECONDS, ended)
    control = _outcome(UNCHANGED, unchanged)
    unfinished = () if control.how == DONE else (f"self-check ({control.how})",)
    ground = Baseline(control.kills, unfinished, control.tests, {}, is_late=control.is_late)
    return ground, [_outcome(mutant, result) for mutant, result in zip(mutants, every, strict=True)]


def _run(mutant: Mutant, binding: Path, options: Sequence[str], say: Say) -> None:
    """Report the exit code of a self-check, and its first line."""
    patches = json.encode(mutant.patches).decode()
    # Without warnings: one would be the first line of the errors, and be shown as the reason.
    python = [sys.executable, "-P", "-W", "ignore", "-c", _START, patches]
    command = [*python, "mutate", str(binding), "--self-check", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    say((done.returncode, lines[0] if lines else ""))


def _outcome(mutant: Mutant, ended: Ended) -> MutantOutcome:
    """The outcome of a self-check: any normal failure has caught its mutant, but a crash has not."""
    code, line = ended.said[0] if ended.said else (PASSED, "")
    kills = (Kill("self-check", f"exit {code}", line, ended.seconds),) if code in CAUGHT else ()
    how = ended.why or words_of(ended)
    if code not in (PASSED, *CAUGHT):
        how = f"the self-check ended with {code}: {line}"
    return MutantOutcome(mutant, kills, ("self-check",), 1, how, ended.seconds, is_late=ended.how == LATE)
