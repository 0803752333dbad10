"""From LLVM IR to optimised object code, in another process during a search.

A kernel without optimisation takes a fifteenth of the time to compile and up to twice the time to run, and
gives the same results.  So a search begins with it, and a long one changes to optimised code once that is
available (Kohn, Leis, Neumann, Adaptive Execution of Compiled Queries, 2018).  Another process compiles it,
which can be stopped if the search ends first.

When: optimising takes as long as it saves in some millions of successors, so it should begin early in a long
search, and not at all in a short one (`Tiers`).  The levels show how long a search will be: breadth first
they grow and shrink again, and the share of the last one in all states shows how far the search is.

Not here: how LLVM is called (`codegen.objects`), and names of object code (`compiler`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, Thread

from specchk.native.compiler import KernelSource
from specchk.native.machine.apart import CompilingProcess
from specchk.native.machine.loaded import Loaded
from specchk.processes import cores

LONG = 1 << 20  # successors of a search whose next one begins with optimised code
# Optimising pays from this many times `optimise_after` successors on: for elr 4.3 million; large specs have
# slow successors, but also more to optimise.
WORTH = 4
# If the last level has the share s of all states, a search has GROWTH * s ** 3 times as many successors at
# the end: with a third, elr, kraft and replication_large had 16 to 50 times as many, with a quarter 6 to 14,
# with a sixth 2.5 to 3.  In the first levels, where shares are large, no more than MOST_GROWTH counts.
GROWTH, MOST_GROWTH = 500, 20


class Optimiser:
    """Optimises the IR from `text` during the search; `code` is the object code once it is available."""

    def __init__(self, text: Callable[[], str]) -> None:
        self.code: bytes | None = None
        self._text = text
        self._process: CompilingProcess | None = None
        self._lock = Lock()
        self._is_stopped = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_working(self) -> bool:
        """Whether the code may still become available."""
        return self._thread.is_alive()

    def _run(self) -> None:
        # The search keeps its kernel if there is no memory for a better one.
        with suppress(MemoryError):
            text = self._text()
            process = self._begun()
            if process is not None:
                with process:
                    process.begin(text)
                    self.code = process.code()

    def _begun(self) -> CompilingProcess | None:
        """The process; None after `stop` or if the system refuses one: the search then keeps its kernel."""
        with self._lock:
            if not self._is_stopped:
                with suppress(OSError):
                    self._process = CompilingProcess("optimised")
            return self._process

    def stop(self) -> None:
        """End the process, and wait for the thread."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.stop()
        self._thread.join()


class Tiers:
    """The quick code of a search or walk, until it is optimised.

    After `after` successors the next search of the same program begins with optimised code; optimising begins
    when it is likely that there will be `worth` times as many.
    """

    def __init__(self, source: KernelSource, after: int, worth: int = WORTH) -> None:
        self._source = source
        self._after = after
        self._worth = worth
        self._optimiser: Optimiser | None = None
        self._is_marked = False
        self._has_begun = False  # since the workers ran

    def consider(self, levels: Sequence[int], generated: int) -> None:
        """Start optimising if that is worthwhile, and mark a long search for the next run.

        Not to be called once the code is optimised, which the caller knows.
        """
        if generated >= self._after and not self._is_marked:
            self._source.mark_long()
            self._is_marked = True
        states = sum(levels)
        growth = GROWTH * (levels[-1] / states) ** 3 if states else 0
        likely = max(1, min(growth, MOST_GROWTH)) * generated
        if self._optimiser is None and likely >= self._worth * self._after:
            self._optimiser = Optimiser(self._source.text)
            self._has_begun = True

    @property
    def changes(self) -> bool:
        """Whether workers should pause: to run fewer of them, or to switch to optimised code."""
        return self._has_begun or self.is_done

    @property
    def is_done(self) -> bool:
        """Whether the optimised code is available."""
        return self._optimiser is not None and self._optimiser.code is not None

    def optimised(self) -> Loaded:
        """The optimised kernel, once available; optimisation is then finished."""
        assert self._optimiser is not None
        assert self._optimiser.code is not None
        kernel = self._source.linked(self._optimiser.code)
        self.stop()
        return kernel

    def threads(self, workers: int) -> int:
        """The number of worker threads: one core is left to the optimising process.

        A search on all cores would delay that process, and would use slow code meanwhile.
        """
        self._has_begun = False
        is_needed = self._optimiser is not None and self._optimiser.is_working
        return workers - 1 if is_needed and workers > 1 and workers >= cores() else workers

    def stop(self) -> None:
        """Stop requesting optimised code."""
        if self._optimiser is not None:
            self._optimiser.stop()
            self._optimiser = None
