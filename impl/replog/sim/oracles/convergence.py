"""Convergence: every replica is in the ISR, with the same committed log.

Not here: promises that hold all the time (`oracles`).
"""

from __future__ import annotations

from replog.core.broker.state import FetchPhase
from replog.core.log.logview import LogView
from replog.core.types import Batch, Role
from replog.sim.cluster.views import AnyWorld


def converged(world: AnyWorld) -> str:
    """Return the reason why the cluster has not converged, i.e. all replicas in the ISR with the same log.

    "" if nothing.
    """
    image = world.image
    if image.is_reassigning:
        return f"replicas {image.replicas}, of which {image.adding} are added and {image.removing} removed"
    if sorted(image.isr) != sorted(image.replicas):
        return f"ISR {image.isr}"
    leader = world.nodes[image.leader].broker
    if leader is None or leader.replica.state.role is not Role.LEADER:
        return f"{image.leader} does not lead yet"
    log = leader.replica.state.log
    for node in world.running():
        assert node.broker is not None
        state = node.broker.replica.state
        if node.broker_id not in image.replicas:
            if state.role is not Role.NONE or state.log.leo:
                return f"broker {node.broker_id} still has a log, and is no replica"
            continue
        if state.leader_epoch != image.leader_epoch or state.log.hw != log.leo:
            return f"broker {node.broker_id}: epoch {state.leader_epoch}, HW {state.log.hw} of {log.leo}"
        start = max(state.log.log_start, log.log_start)
        if _kept(state.log, start) != _kept(log, start):
            return f"the logs of {node.broker_id} and {image.leader} differ"
        if state.following is not None and state.following.phase is not FetchPhase.FETCHING:
            return f"broker {node.broker_id} is {state.following.phase.value}"
    return ""


def _kept(log: LogView, start: int) -> list[Batch]:
    """Return the batches of a log that end after an offset."""
    return [batch for batch in log.batches if batch.next_offset > start]
