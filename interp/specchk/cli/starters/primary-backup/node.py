"""A node with a log of writes, the primary or a backup: the implementation of primary_backup.spec.

Nodes know of each other by messages alone, which the caller delivers: the length of a log, or a write and its
position. A method returns whether it was done; where it returns False, nothing has changed.
"""

from collections.abc import Collection


class Node:
    """The process of a node; `log` is its disk, which outlives it."""

    def __init__(self, log: list[int]) -> None:
        self.log = log
        self.leads = False

    def take_over(self, lengths: Collection[int]) -> bool:
        """Become the primary; not if one of the other logs, whose lengths these are, is longer."""
        if self.leads or len(self.log) < max(lengths, default=0):
            return False
        self.leads = True
        return True

    def write(self, value: int) -> bool:
        """Append a client's write."""
        if self.leads:
            self.log.append(value)
        return self.leads

    def following(self, length: int) -> int | None:
        """The write for a backup whose log has this length, if there is another one."""
        return self.log[length] if self.leads and length < len(self.log) else None

    def store(self, position: int, value: int) -> bool:
        """Append a write of the primary, if it is the next one."""
        if position != len(self.log):
            return False
        self.log.append(value)
        return True

    def acknowledged(self, lengths: Collection[int]) -> list[int]:
        """The writes that all nodes have; `lengths` are those of the backups' logs."""
        return self.log[: min(lengths, default=len(self.log))] if self.leads else []
