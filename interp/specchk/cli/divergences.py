"""How the command line shows a divergence: files (a picture, an ITF trace, a page), or the end of a process.

`sys.exit` and `os._exit` raise and are divergences at their step (`contract.failures`).  An end from C, or
by a signal, is noticed by its exit code: that specchk runs an implementation in several processes makes
it no internal error.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from specchk.cli.common import leave, write_json, write_text
from specchk.cli.exits import Exit
from specchk.cli.groups import option
from specchk.cli.output import echo
from specchk.cli.pictures import svg_of, write_picture
from specchk.conform.gate.tiers import Part
from specchk.conform.replay.divergence import as_itf, drawn
from specchk.conform.replay.frozen import CannotFreeze, frozen
from specchk.conform.replay.place import Divergence
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.report.page import page
from specchk.conform.work.forks import Lost


@dataclass(frozen=True, slots=True)
class Files:
    """Files about a divergence."""

    heading: ClassVar[str] = "Output"
    draw: str | None = option(
        "--draw", metavar="FILE", help="Draw the divergence (.svg, .png, .pdf or .dot)."
    )
    itf: str | None = option("--itf", metavar="FILE", help="Write the divergence as an ITF trace.")
    freeze: str | None = option(
        "--freeze", metavar="FILE", help="Write the divergence as a test without specchk."
    )
    html: str | None = option("--html", metavar="FILE", help="Write the whole report as one HTML page.")
    as_json: bool = option("--json", is_flag=True, help="Print one JSON object instead of text.")

    def write(self, binding: Path, part: Part, result: SuiteResult, sections: Sequence[str] = ()) -> None:
        """Write them; a word on standard error where there is no divergence to write of."""
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
            _freeze(binding, part, divergence, Path(self.freeze))


def _freeze(binding: Path, part: Part, divergence: Divergence, target: Path) -> None:
    try:
        text = frozen(part.instance, part.binding, binding, divergence, target)
    except CannotFreeze as error:
        echo(f"{target} was not written: {error}", err=True)
        return
    write_text(target, text)


@contextmanager
def ended_processes(*, as_json: bool) -> Iterator[None]:
    """Report a process that an implementation ended, and exit: 13, or 21 where it was killed.

    SIGKILL says nothing about the implementation: the system sends it for want of memory, too.
    """
    try:
        yield
    except Lost as lost:
        if lost.code is None:
            raise
        is_killed = lost.code == -signal.SIGKILL
        code = Exit.INCONCLUSIVE if is_killed else Exit.DIVERGED
        reason = f"the implementation ended the process that ran it: {_described(lost.code)}"
        if is_killed:
            reason = "a process that ran the implementation was killed, by somebody or for want of memory"
        verdict = "inconclusive" if is_killed else "diverges"
        result = {"schema": "specchk.ended/1", "verdict": verdict, "reason": reason, "exit_code": int(code)}
        leave(code, as_json=as_json, json=lambda: result, text=lambda: f"{verdict}: {reason}")


def _described(code: int) -> str:
    """`-11` to `SIGSEGV`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:  # a real-time signal
        return f"signal {-code}"
