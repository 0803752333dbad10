"""The interface of crews, which do the pieces of a job outside the processes of this machine.

    conform                        a crew (`cli/crews.py` on `spark/jobs.py`)
    work and its pieces     ->     sends them, with the files of a `kit`
                                   where a piece is done: loads the user's class, work.begin(...), do(piece)
    results, in order       <-     what each piece came to

Invariants: a work and its pieces are values that can be sent, independent of the workers; the
results are in the pieces' order, whichever finished first; an exception of a piece is raised here, that of
the first piece if there are several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

P = TypeVar("P", contravariant=True)
T = TypeVar("T", covariant=True)
Piece = TypeVar("Piece")
Found = TypeVar("Found")


class LostWork(Exception):
    """A crew lost the processes that did some pieces, but can do others; the text gives the reason."""


class Job(Protocol[P, T]):
    """A job that processes pieces; `cls` is the user's class, loaded from `folder` where the job runs."""

    def begin(self, cls: Any, folder: Path) -> Callable[[P], T]:
        """The function that processes a piece; called once in each process."""


class Crew(Protocol):
    """Processes pieces, `hands` of them in parallel."""

    @property
    def hands(self) -> int:
        """The number of pieces processed in parallel."""

    def each(self, work: Job[Piece, Found], pieces: Sequence[Piece], about: str) -> list[Found]:
        """The result of each piece, in order; `about` is for observers.  Raises `LostWork`."""
