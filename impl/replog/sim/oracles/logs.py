"""Logs as compared by the oracles: record by record, from the current start of each.

Not here: which promise a comparison is of (`oracles`).
"""

from __future__ import annotations

from replog.core.log.logview import LogView
from replog.sim.oracles.promises import ViolationError

Cell = tuple[int, bytes]
"""One record as oracles see it: the epoch it was written in, and its content."""


def cells(log: LogView, start: int, end: int) -> list[Cell]:
    """Return the records in [start, end) of a log that has them, searching from the end of the log."""
    groups: list[list[Cell]] = []
    for batch in reversed(log.batches):
        if batch.next_offset <= start:
            break
        low, high = max(start, batch.base_offset), min(end, batch.next_offset)
        if low < high:
            groups.append([(batch.epoch, batch.content)] * (high - low))
    return [cell for group in reversed(groups) for cell in group]


def compare(left: tuple[int, LogView], right: tuple[int, LogView]) -> bool:
    """Compare two brokers' logs up to their last common epoch; return whether there is one."""
    (one, ours), (other, theirs) = left, right
    # What one of them has deleted cannot be compared.
    start, end = max(ours.log_start, theirs.log_start), min(ours.leo, theirs.leo)
    mine, others = cells(ours, start, end), cells(theirs, start, end)
    for at in range(end - start - 1, -1, -1):
        # From the end: one comparison at the last common epoch covers all offsets before it.
        if mine[at][0] == others[at][0]:
            if mine[: at + 1] != others[: at + 1]:
                raise ViolationError(
                    "log-matching", f"brokers {one} and {other} differ at or before offset {start + at}"
                )
            return True
    return False
