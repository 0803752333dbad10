"""The oracle for a consumer group: no owner restarts before or after the offsets acknowledged to members.

    commits-kept    an owner continues at, or after, every offset whose commit was answered before it
                    requested its position (A31), and no record before it was left out (S62)

Not here: what a member does (`cluster.members`), and the log that the commits are in (`oracles`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from replog.sim.cluster.members import GroupObserver
from replog.sim.oracles.promises import ViolationError


@dataclass(slots=True)
class CommitWatch(GroupObserver):
    """The records processed and committed by members of one group; `checks` as in the other oracles."""

    checks: Counter[str]
    answered: int = 0
    """The highest offset whose commit was answered."""
    without_gap: int = 0
    """All records before this one were processed."""
    beyond: set[int] = field(default_factory=set)
    """Those processed after a gap."""

    def kept(self) -> int:
        """Return the highest acknowledged committed offset."""
        return self.answered

    def processed(self, offset: int) -> None:
        """Note a record processed by a member."""
        self.beyond.add(offset)
        while self.without_gap in self.beyond:
            self.beyond.discard(self.without_gap)
            self.without_gap += 1

    def committed_to(self, offset: int) -> None:
        """Note the answer that an offset was committed."""
        self.answered = max(self.answered, offset)

    def resumed(self, offset: int, kept: int) -> None:
        """Check the offset at which an owner continues."""
        self.checks["commits-kept"] += 1
        if offset < kept:
            raise ViolationError("commits-kept", f"the group continues at {offset}, committed was {kept}")
        if offset > self.without_gap:
            wrong = f"the group continues at {offset}, record {self.without_gap} was not processed"
            raise ViolationError("commits-kept", wrong)
