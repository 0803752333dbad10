"""The interface of crews, which do the pieces of a job outside the processes of this machine.

    conform                        a crew (`cli/crews.py` on `spark/jobs.py`)
    work and its pieces     ->     sends them, with the files of a `kit`
                                   where a piece is done: loads the user's class, do = work(...), do(piece)
    results, in order       <-     what each piece came to

Invariants: a work and its pieces are values that can be sent, independent of the workers; the
results are in the pieces' order, whichever finished first; an exception of a piece is raised here, that of
the first piece if there are several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

Piece = TypeVar("Piece")
Found = TypeVar("Found")
# Given the user's class, loaded from a folder where the job runs, the function that processes a piece there;
# called once in each process.
Job = Callable[[Any, Path], Callable[[Piece], Found]]


class LostWork(Exception):
    """A crew lost the processes that did some pieces, but can do others; the text gives the reason."""


class Crew(Protocol):
    """Processes pieces, `hands` of them in parallel."""

    @property
    def hands(self) -> int:
        """The number of pieces processed in parallel."""

    def each(self, work: Job[Piece, Found], pieces: Sequence[Piece], about: str) -> list[Found]:
        """The result of each piece, in order; `about` is for observers.  Raises `LostWork`."""
