"""The known facts about a partition before its files are read, and the findings of reading them.

finding                                           kind       a start
synced bytes that are missing or changed          DAMAGE     refuses; `replog repair` cuts, and keeps a copy
bytes after the synced part that are not batches  TAIL       cuts them off, and keeps a copy
an index or the epoch checkpoint differs          DERIVED    rebuilds it, and keeps the old one
a segment file that is neither listed nor a tail  STRANGER   moves it aside
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class OpenPoint:
    """The known facts about a partition before its files are read.

    `recovery_point` was synced when the log had been cut `cuts` times. `is_known`: there must be a manifest.
    `may_adopt`: files without one may be accepted unchanged, because nothing shows that there ever was one.
    `reads_all`: compare everything, also parts that could wait until used. `ignores_manifest`: as if there
    were none.
    """

    recovery_point: int = 0
    log_start: int = 0
    was_clean: bool = False
    cuts: int = 0
    is_known: bool = False
    may_adopt: bool = True
    reads_all: bool = False
    ignores_manifest: bool = False


NOTHING_KNOWN = OpenPoint()


class Kind(Enum):
    """The consequence of a finding for a start; see the module's docstring."""

    DAMAGE = "damage"
    TAIL = "tail"
    DERIVED = "derived"
    STRANGER = "stranger"


class Finding(NamedTuple):
    """One difference, in a file of the partition."""

    kind: Kind
    file: str
    text: str

    def __str__(self) -> str:
        """Return the file and its fault."""
        return f"{self.file}: {self.text}"
