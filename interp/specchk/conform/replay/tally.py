"""The counts of a replay."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class ReplayTally:
    """Counts by action: steps taken, probes refused, probes not applicable.

    `compared` and `reopened` count states that were looked at, and systems that were opened again.
    """

    taken: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    impossible: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    """Successors that the spec allows and the implementation never chose."""
    compared: int = 0
    struck: int = 0
    """Faults that struck inside a step."""
    reopened: int = 0

    def add(self, other: ReplayTally) -> None:
        """Add the counts of another worker."""
        for mine, more in ((self.taken, other.taken), (self.refused, other.refused),
                           (self.impossible, other.impossible), (self.left, other.left)):  # fmt: skip
            for name, count in more.items():
                self.count(mine, name, count)
        self.compared += other.compared
        self.reopened += other.reopened
        self.struck += other.struck

    @staticmethod
    def count(table: dict[str, int], name: str, more: int = 1) -> None:
        """Add to one number of a table."""
        table[name] = table.get(name, 0) + more
