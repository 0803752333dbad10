"""A command line in its own process."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = "from specchk.__main__ import main; main()"
# The same, with a byte on a pipe when a search first asks its meter, which is when it has begun.
TELLING = """
import os
from specchk.search.budget import Meter
ask = Meter.exceeded
def first(self, states):
    Meter.exceeded = ask
    os.write({pipe}, b".")
    return ask(self, states)
Meter.exceeded = first
"""


def process(*args: str, program: str = PROGRAM, **options: object) -> subprocess.Popen[bytes]:
    """A command line in its own process, with pipes."""
    pipes: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([sys.executable, "-c", program, *args], **pipes)  # type: ignore[call-overload,no-any-return]


def searching(*args: str) -> subprocess.Popen[bytes]:
    """The same, once its search has begun, however long that takes."""
    ours, theirs = os.pipe()
    running = process(*args, program=TELLING.format(pipe=theirs) + PROGRAM, pass_fds=(theirs,))
    os.close(theirs)
    begun = os.read(ours, 1)
    os.close(ours)
    assert begun == b".", running.communicate()
    return running
