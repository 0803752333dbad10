"""A picture of a cluster's logs, side by side, for the end of a story.

    offset        0      1
    broker 0      m0/0   m1/0 |  leader of epoch 2
    broker 1      m0/0 | m9/1    down
    not the same at offset 1

A record is its content and leader epoch, a batch of several has their number; `|` is the high watermark.
"""

from __future__ import annotations

from collections.abc import Collection

from replog.core.log.logview import LogView
from replog.core.types import Batch
from replog.sim.cluster.node import Node
from replog.sim.scenarios.describe import describe_batch, describe_role


def draw(nodes: Collection[Node]) -> list[str]:
    """Return the picture line by line, if any broker has a record; for one that is down, from its disk."""
    logs = {node.broker_id: _log(node) for node in nodes}
    batches = [batch for log in logs.values() for batch in log.batches]
    if not batches:
        return []
    ends = {offset for batch in batches for offset in (batch.base_offset, batch.next_offset)}
    starts = sorted(ends | {log.hw for log in logs.values()})[:-1]
    rows = {
        broker: [describe_batch(batch) if (batch := _batch_at(log, start)) else "" for start in starts]
        for broker, log in logs.items()
    }
    offsets = [str(start) for start in starts]
    widths = [max(map(len, column)) for column in zip(offsets, *rows.values(), strict=True)]
    lines = [f"offset      {_line(offsets, widths, starts, -1)}".rstrip()]
    for node in nodes:
        drawn = _line(rows[node.broker_id], widths, starts, logs[node.broker_id].hw)
        role = "down" if node.broker is None else describe_role(node.broker.state)
        lines.append(f"broker {node.broker_id:<5}{drawn}  {role}")
    found = {start: {_batch_at(log, start) for log in logs.values()} - {None} for start in starts}
    lines.extend(f"not the same at offset {start}" for start in starts if len(found[start]) > 1)
    return lines


def _log(node: Node) -> LogView:
    return node.storage.copy().recover().log if node.broker is None else node.broker.state.log


def _line(cells: list[str], widths: list[int], starts: list[int], hw: int) -> str:
    """Return one row; the mark is before the first record not below HW, or at the end."""
    marks = ["|" if start == hw else " " for start in starts]
    drawn = "".join(
        f"{mark} {cell:<{width}} " for mark, cell, width in zip(marks, cells, widths, strict=True)
    )
    return drawn + ("|" if hw > starts[-1] else " ")


def _batch_at(log: LogView, offset: int) -> Batch | None:
    return next((b for b in log.batches if b.base_offset <= offset < b.next_offset), None)
