"""The oracle for the controllers of a quorum: committed and applied metadata is never lost (P28).

`committed` is a ghost: the longest log that any controller ever had below its HW.  What the controllers of a
cluster with one decide is kept by definition; there is nothing to check.

Not here: the promises on partitions (`oracles`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from replog.core.quorum.node import ControllerNode
from replog.core.types import MetadataRecord
from replog.sim.cluster.quorum import Quorum
from replog.sim.oracles.promises import ViolationError

ORACLE = "metadata-kept"
Seen = tuple[int, int, int, int, bool]


@dataclass(slots=True)
class MetadataWatch:
    """The oracle of one quorum."""

    committed: list[MetadataRecord] = field(default_factory=list)
    terms: list[int] = field(default_factory=list)
    """Of each record the term of the first controller that knew it to be committed."""
    seen: dict[int, Seen] = field(default_factory=dict)

    def decided(self, quorum: Quorum, checks: Counter[str]) -> None:
        """Check the controllers whose state has changed."""
        nodes = [host.node for host in quorum.hosts.values() if host.node is not None]
        for node in nodes:
            last = node.log[-1]
            seen = node.term, len(node.log), last.term, node.hw, node.is_active
            if self.seen.get(node.address) != seen:
                self.seen[node.address] = seen
                checks[ORACLE] += 1
                self._check(node)

    def _check(self, node: ControllerNode) -> None:
        known = min(node.hw, len(self.committed))
        self._compare(node, known, "knows as committed")
        for record in node.log[known : node.hw]:
            self.committed.append(record)
            self.terms.append(node.term)
        if node.is_active:
            # What a later term has committed an older active controller need not have.
            due = sum(term <= node.term for term in self.terms)
            self._compare(node, due, "has in its log, as the active one,")

    def _compare(self, node: ControllerNode, end: int, how: str) -> None:
        for index in range(end):
            mine = node.log[index] if index < len(node.log) else None
            if mine is not self.committed[index] and mine != self.committed[index]:
                committed = _shown(self.committed[index])
                raise ViolationError(
                    ORACLE,
                    f"controller {node.address} of term {node.term} {how} {_shown(mine)}"
                    f" as record {index + 1}, committed is {committed}",
                )


def _shown(record: MetadataRecord | None) -> str:
    return "nothing" if record is None else f"version {record.image.version} of term {record.term}"
