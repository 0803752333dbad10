"""LLVM in a process of its own, for code that is compiled while this process does something else.

A thread would not do: between its calls of LLVM it needs Python, with which this process is busy, and it
cannot be stopped.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, Self, cast

_FOLDER = Path(__file__).parents[2]  # from which specchk is imported, or its archive
# The whole program of the process: IR on its standard input, object code on its standard output.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from specchk.codegen import objects; objects.initialize(); "
    "code = getattr(objects, sys.argv[2])(sys.stdin.buffer.read().decode()); sys.stdout.buffer.write(code)"
)


class CompilingProcess:
    """A process that compiles one module: `how` is the name of a function of `codegen.objects`.

    It loads LLVM at once, and waits for the text.  Raises `OSError` if the system refuses a process.
    """

    def __init__(self, how: str) -> None:
        command = [sys.executable, "-c", _PROGRAM, str(_FOLDER), how]
        self._process = Popen(  # noqa: S603 - ourselves
            command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
        )

    def begin(self, text: str) -> None:
        """Give it LLVM IR to compile."""
        pipe = cast("IO[bytes]", self._process.stdin)
        try:
            with suppress(BrokenPipeError):  # of a process that has ended, `code` is None
                pipe.write(text.encode())
        finally:
            _close(pipe)

    def code(self) -> bytes | None:
        """The object code, once it is complete; None if the process ended without."""
        code = cast("IO[bytes]", self._process.stdout).read()
        return code if self._process.wait() == 0 else None

    def stop(self) -> None:
        """End the process."""
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
    # An error here would replace the exception with which a block ends, such as `KeyboardInterrupt`.
    with suppress(BrokenPipeError):
        pipe.close()
