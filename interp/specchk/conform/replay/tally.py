"""The counts of a replay."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class ReplayTally:
    """Counts by action: steps taken, probes refused, probes not applicable.

    `compared` and `reopened` count states that were looked at, and systems that were opened again.
    """

    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    impossible: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    """Successors that the spec allows and the implementation never chose."""
    compared: int = 0
    struck: int = 0
    """Faults that struck inside a step."""
    reopened: int = 0

    def add(self, other: ReplayTally) -> None:
        """Add the counts of another worker."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
