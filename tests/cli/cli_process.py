"""A command line in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def process(*args: str, **options: object) -> subprocess.Popen[bytes]:
    """A command line in a process of its own, with pipes."""
    pipes: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    program = "from specchk.cli.main import main; main()"
    return subprocess.Popen([sys.executable, "-c", program, *args], **pipes)  # type: ignore[call-overload,no-any-return]
