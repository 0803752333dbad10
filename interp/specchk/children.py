"""`specchk` commands that a server starts beside itself, in processes that end with it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

Stream = IO[bytes] | int  # a file, or its number
GRACE_SECONDS = 3.0  # between an interrupt and the end of a process, for its report
_PROGRAM = (
    "import os, sys\n"
    "from specchk.processes import end_with\n"
    "end_with(int(sys.argv.pop(1)))\n"
    "from specchk.__main__ import main\n"
    "main()\n"
)


async def started(
    words: Sequence[str], folder: Path, stdin: Stream, stdout: Stream, stderr: Stream
) -> asyncio.subprocess.Process:  # fmt: skip
    """A command line of `specchk` in a process group of its own; raises `OSError` if none can be had."""
    # -P: without it, files of the current directory are imported in place of Python's own.
    python = (sys.executable, "-P", "-c", _PROGRAM, str(os.getpid()))
    return await asyncio.create_subprocess_exec(
        *python, *words, cwd=folder, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
    )


async def ended(process: asyncio.subprocess.Process) -> None:
    """End a command: it may write its report, and nothing of its group is left."""
    with suppress(ProcessLookupError, TimeoutError):
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
