"""LLVM in a process of its own, which compiles code while this process does other work.

A thread would not suffice: between its calls of LLVM it needs the interpreter, which this process keeps busy,
and it cannot be stopped.  For the same reason another process can make the IR, forked from this one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, Self, cast

from specchk.processes import can_fork, exit_code, forked

_FOLDER = Path(__file__).parents[3]  # the folder or archive from which specchk is imported
# The whole program of the process: IR on its standard input, object code on its standard output.  It ends at
# once: to free its objects, Python takes a third of the time of compiling.
_PROGRAM = (
    "import os, sys; sys.path.insert(0, sys.argv[1]); from specchk.codegen import objects; "
    "objects.initialize(); code = getattr(objects, sys.argv[2])(sys.stdin.buffer.read().decode()); "
    "sys.stdout.buffer.write(code); sys.stdout.flush(); os._exit(0)"
)


class CompilingProcess:
    """A process that compiles one module: `how` is the name of a function of `codegen.objects`.

    It loads LLVM at once, and waits for the text.  Raises `OSError` if no process can be started.
    """

    def __init__(self, how: str) -> None:
        # -P: without it, files of the current directory are imported in place of Python's own.
        command = [sys.executable, "-P", "-c", _PROGRAM, str(_FOLDER), how]
        self._process = Popen(  # noqa: S603 - ourselves
            command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
        )
        self._maker: int | None = None  # of the text, a process of its own

    def begin(self, text: str) -> None:
        """Send it LLVM IR to compile."""
        pipe = cast("IO[bytes]", self._process.stdin)
        try:
            with suppress(BrokenPipeError):  # the process has ended: `code` returns None
                pipe.write(text.encode())
        finally:
            _close(pipe)

    def begin_apart(self, text: Callable[[], str]) -> None:
        """Send it LLVM IR made by another process, forked from this one, or by this one if it has threads."""
        if not can_fork():
            self.begin(text())
            return
        self._maker = forked(lambda: self.begin(text()))
        _close(cast("IO[bytes]", self._process.stdin))

    def code(self) -> bytes | None:
        """The object code, once it is complete; None if a process failed."""
        code = cast("IO[bytes]", self._process.stdout).read()
        # Text that is cut short between two functions is valid, too.
        is_whole = self._end_of_maker() == 0
        return code if self._process.wait() == 0 and is_whole else None

    def _end_of_maker(self) -> int:
        """The exit code of the process that makes the text; 0 if there is none."""
        maker, self._maker = self._maker, None
        return 0 if maker is None else exit_code(maker)

    def stop(self) -> None:
        """End the process, and the one that makes its text."""
        if self._maker is not None:
            os.kill(self._maker, SIGKILL)
            self._end_of_maker()
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for pipe in (self._process.stdin, self._process.stdout):
            _close(cast("IO[bytes]", pipe))


def _close(pipe: IO[bytes]) -> None:
    """Close a pipe whose reader may have ended."""
    # An error here would replace the exception that ends a `with` block, such as `KeyboardInterrupt`.
    with suppress(BrokenPipeError):
        pipe.close()
