"""The demo's table: the replicas of the partition, one line each.

Every line fits 79 columns.
"""

from __future__ import annotations

from replog.core.types import Role
from replog.demo.part import StagedPartition, set_of

BAR_WIDTH = 26


def table_of(part: StagedPartition) -> list[str]:
    """Return the state of the cluster."""
    image = part.world.image
    longest = max(part.look(broker).end for broker in part.world.nodes)
    leader = str(image.leader) if image.leader >= 0 else "none"
    epochs = f"leader epoch {image.leader_epoch}, partition epoch {image.partition_epoch}"
    return [
        f"  leader {leader}, {epochs}, ISR {set_of(image.isr)}",
        f"  acknowledged {len(part.producer.promised)}, consumed {len(part.consumer.read)}",
        "  broker role      LEO   HW  = below HW, - not, . down   epochs as epoch@start",
        *(_row(part, broker, longest) for broker in part.world.nodes),
    ]


def _row(part: StagedPartition, broker: int, longest: int) -> str:
    seen, process = part.look(broker), part.world.nodes[broker].broker
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
