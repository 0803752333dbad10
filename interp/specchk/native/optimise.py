"""LLVM IR to optimised object code in another process, during a search.

A kernel without optimisation takes a fifteenth of the time to compile and up to twice the time to run, and
gives the same results.  So a search begins with it, and a long one continues with the optimised one when that
is there (Kohn, Leis, Neumann, Adaptive Execution of Compiled Queries, 2018).  Another process makes it, which
can be stopped when the search ends before.

Not here: how LLVM is called (`codegen.objects`), names of object code (`compiler`), and when it is worth
while (`engine`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock, Thread

from specchk.kept import SPECCHK

# The whole program of the other process: IR on its standard input, object code on its standard output.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from specchk.codegen.objects import initialize, optimised; "
    "initialize(); sys.stdout.buffer.write(optimised(sys.stdin.buffer.read().decode()))"
)


class Optimiser:
    """Optimises the IR that `text` builds, beside the search; `code` is the object code once it is there."""

    def __init__(self, text: Callable[[], str]) -> None:
        self.code: bytes | None = None
        self._text = text
        self._process: Popen[bytes] | None = None
        self._lock = Lock()
        self._is_stopped = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # The search keeps its kernel where there is no memory for a better one.
        with suppress(MemoryError):
            text = self._text()
            process = self._begun()
            if process is None:
                return
            code, _ = process.communicate(text.encode())
            if process.returncode == 0:
                self.code = code

    def _begun(self) -> Popen[bytes] | None:
        """The process, None after `stop` or where the system has none for us: the search keeps its kernel."""
        command = [sys.executable, "-c", _PROGRAM, str(SPECCHK.parent)]
        with self._lock:
            if self._is_stopped:
                return None
            try:
                self._process = Popen(  # noqa: S603 - ourselves
                    command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
                )
            except OSError:
                return None
            return self._process

    def stop(self) -> None:
        """End the process, and wait for the thread."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()
        self._thread.join()
