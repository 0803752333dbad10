"""Who does the pieces of a job, where that is not processes of this machine (`forks`): an interface.

    conform                        a crew (`cli/crews.py` on `spark/jobs.py`)
    work and its pieces     ->     sends them, with the files of a `kit`
                                   where a piece is done: loads the user's class, work.begin(...), do(piece)
    results, in order       <-     what each piece came to

Invariants: a work and its pieces are values that can be sent, and know nothing of who does them; the
results are in the pieces' order, whoever was first; an exception of a piece is raised here, that of
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


class Work(Protocol[P, T]):
    """What is done with pieces; `cls` is the user's class, loaded where it is done, from `folder`."""

    def begin(self, cls: Any, folder: Path) -> Callable[[P], T]:
        """What does a piece; asked for once in each process."""


class Crew(Protocol):
    """Does pieces; `hands` of them at once."""

    @property
    def hands(self) -> int:
        """How many pieces are done at once."""

    def each(self, work: Work[Piece, Found], pieces: Sequence[Piece], about: str) -> list[Found]:
        """What each piece came to, in order; `about` is for who watches."""
