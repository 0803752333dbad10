"""The demo's tables: the replicas of one partition, or several partitions, one line each.

Every line fits 79 columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from replog.core.types import Role
from replog.demo.part import StagedPartition, set_of

BAR_WIDTH = 26


def table_of(parts: Sequence[StagedPartition]) -> list[str]:
    """Return the state of the cluster."""
    return _of_one(parts[0]) if len(parts) == 1 else _of_several(parts)


def _counts(parts: Sequence[StagedPartition]) -> str:
    promised = sum(len(part.producer.promised) for part in parts)
    return f"  acknowledged {promised}, consumed {sum(len(part.consumer.read) for part in parts)}"


def _of_one(part: StagedPartition) -> list[str]:
    image = part.view.image
    longest = max(part.look(broker).end for broker in part.view.nodes)
    leader = str(image.leader) if image.leader >= 0 else "none"
    epochs = f"leader epoch {image.leader_epoch}, partition epoch {image.partition_epoch}"
    return [
        f"  leader {leader}, {epochs}, ISR {set_of(image.isr)}",
        _counts([part]),
        "  broker role      LEO   HW  = below HW, - not, . down   epochs as epoch@start",
        *(_row(part, broker, longest) for broker in part.view.nodes),
    ]


def _row(part: StagedPartition, broker: int, longest: int) -> str:
    seen, process = part.look(broker), part.view.nodes[broker].broker
    if process is None:
        bar = _bar(0, seen.end, longest).replace("-", ".")
        return f"  {broker:>6} {'down':8}{seen.end:>5}    -  {bar}"
    log = process.replica.state.log
    epochs = " ".join(f"{epoch}@{start}" for epoch, start in log.epochs.entries)
    role = seen.role.value if seen.role is not Role.NONE else "starting"
    bar = _bar(log.hw, log.leo, longest)
    return f"  {broker:>6} {role:8}{log.leo:>5}{log.hw:>5}  {bar} {epochs}"


def _bar(hw: int, end: int, longest: int) -> str:
    """Draw a log to the scale of the longest one: the part below HW, the part above, the missing part."""
    scale = BAR_WIDTH / max(longest, BAR_WIDTH)
    low, high = int(hw * scale), int(end * scale)
    # At least one mark for uncommitted records, however long the log is.
    if end > hw and high == low:
        high = low + 1
    return ("=" * low + "-" * (high - low))[:BAR_WIDTH].ljust(BAR_WIDTH)


def _of_several(parts: Sequence[StagedPartition]) -> list[str]:
    brokers = "".join(f"{f'broker {broker}':>12} " for broker in parts[0].view.nodes)
    return [
        f"{_counts(parts)}; LEO/HW of each replica, * leads",
        f"  partition leader epoch ISR      {brokers}",
        *(_line(part) for part in parts),
    ]


def _line(part: StagedPartition) -> str:
    image = part.view.image
    leader = str(image.leader) if image.leader >= 0 else "none"
    cells = "".join(f"{_cell(part, broker):>13}" for broker in part.view.nodes)
    return f"  {part.name:9} {leader:>6} {image.leader_epoch:>5} {set_of(image.isr):9}{cells}"


def _cell(part: StagedPartition, broker: int) -> str:
    """Return LEO and HW of a replica, with `down` for HW if its broker is down, and a mark for the leader."""
    process = part.view.nodes[broker].broker
    if process is None:
        return f"{part.look(broker).end}/down "
    log = process.replica.state.log
    # By its own word: of two that lead one has not learned better yet.
    return f"{log.leo}/{log.hw}{'*' if process.replica.state.role is Role.LEADER else ' '}"
