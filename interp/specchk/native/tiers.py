"""Two tiers of a kernel's code: quick code is there soon, optimised code runs up to twice as fast.

Quick code takes a fifth of the time to emit and compile, and gives the same results.  So a search begins with
it; another process optimises meanwhile, and a search that is still running then changes to optimised code
(Kohn, Leis, Neumann, Adaptive Execution of Compiled Queries, 2018), with which the next one begins.

Only the process that optimises takes many seconds, and it can be ended at any time: a limit or an
interruption of the search never waits for it.

Not here: how LLVM is called (`codegen.objects`), and names of object code (`compiler`).
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryFile
from typing import IO

from specchk.codegen.objects import optimised
from specchk.ir.program import Program
from specchk.native.compiler import EdgeSource, KernelSource
from specchk.native.machine.layout import StateLayout
from specchk.native.machine.loaded import Loaded
from specchk.processes import end_with
from specchk.search.symmetry import Renaming

LONG = 1 << 18  # successors of a search for which code is optimised: some tenths of a second of quick code
_FOLDER = Path(__file__).parents[2]  # the folder or archive from which specchk is imported
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from specchk.native.tiers import optimise; optimise(int(sys.argv[2]), int(sys.argv[3]))"
)


def optimise(parent: int, recursion_limit: int) -> None:
    """Write optimised object code of the source on standard input: the whole work of the process."""
    end_with(parent)
    sys.setrecursionlimit(recursion_limit)
    with open(0, "rb") as given, open(1, "wb") as code:
        source: KernelSource = pickle.load(given)  # noqa: S301 - this process's parent wrote it
        code.write(optimised(source.text()))


class Optimiser:
    """The optimised code of a kernel, made by another process once a search has taken `after` steps."""

    def __init__(self, source: KernelSource, after: int = LONG) -> None:
        self._source = source
        self._after = after
        self._has_begun = False
        self._process: Popen[bytes] | None = None
        self._code: IO[bytes] | None = None

    def consider(self, steps: int) -> None:
        """Begin once the search has taken enough steps; to be called until the code is there."""
        if steps < self._after or self._has_begun:
            return
        self._has_begun = True
        # Where memory, a file or a process is refused, the search keeps its kernel.
        with suppress(MemoryError, OSError):
            self._code = TemporaryFile()  # noqa: SIM115 - closed by `stop`
            with TemporaryFile() as given:
                pickle.dump(self._source, given)
                given.seek(0)
                # -P: without it, files of the current directory are imported in place of Python's own.
                command = [sys.executable, "-P", "-c", _PROGRAM]
                command += [str(_FOLDER), str(os.getpid()), str(sys.getrecursionlimit())]
                self._process = Popen(  # noqa: S603 - ourselves
                    command, stdin=given, stdout=self._code, stderr=DEVNULL
                )

    @property
    def is_done(self) -> bool:
        """Whether the code is there."""
        return self._process is not None and self._process.poll() == 0

    def kernel(self) -> Loaded | None:
        """The optimised kernel, once the process has ended; None if it failed, or there is none."""
        if self._process is None or self._code is None or self._process.wait() != 0:
            return None
        self._code.seek(0)
        return self._source.keep(self._code.read())

    def stop(self) -> None:
        """End the process, if there is one; there will be no code."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._code is not None:
            self._code.close()


def load_kernel(source: KernelSource, *, is_long: bool) -> Loaded:
    """The kernel, cached or newly compiled; optimised if such code is cached, or if its use `is_long`."""
    # Optimised code that exists costs no more than quick code, however short its use will be.
    return source.linked(source.code()) if is_long else source.cached() or source.quick()


def load_edges(program: Program, layout: StateLayout, renamings: list[Renaming], *, is_long: bool) -> Loaded:
    """The kernel that lists steps and names states."""
    return load_kernel(EdgeSource(program, layout, renamings), is_long=is_long)
