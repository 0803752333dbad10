"""Descriptions of brokers, the controller and replies in one line of plain words each, for scenarios."""

from __future__ import annotations

from replog.core.broker.state import Leading, ReplicaState
from replog.core.log.logview import LogView
from replog.core.messages import (
    ElectReply,
    FetchReply,
    ListOffsetsReply,
    Message,
    ProduceReply,
    ReassignReply,
)
from replog.core.types import NO_LEADER, Error, PartitionImage, Role
from replog.sim.cluster.node import Node

MAX_BATCHES = 8


def describe_broker(node: Node) -> str:
    """Return a node's role, its log, and its view of the others."""
    who = f"broker {node.broker_id}:"
    if node.broker is None:
        return f"{who} down, LEO {node.storage.end()} on disk"
    state = node.broker.state
    parts = [describe_role(state), f"LEO {state.log.leo}", f"HW {state.log.hw}", describe_log(state.log)]
    if state.log.epochs.entries:
        parts.append("epochs " + " ".join(f"({epoch},{start})" for epoch, start in state.log.epochs.entries))
    if state.leading is not None:
        parts.extend(describe_leading(state.leading))
    if node.broker.membership.broker_epoch < 0:
        parts.append("not registered")
    return f"{who} " + ", ".join(parts)


def describe_role(state: ReplicaState) -> str:
    """Return the role with its epoch."""
    if state.role is Role.LEADER:
        return f"leader of epoch {state.leader_epoch}"
    if state.role is Role.FOLLOWER:
        of = "nobody" if state.leader_id == NO_LEADER else str(state.leader_id)
        return f"follower of {of} in epoch {state.leader_epoch}"
    return "no replica" if state.partition_epoch >= 0 else "no role"


def describe_log(log: LogView) -> str:
    """Return the batches as `name/epoch`; a batch of several records as `name*count/epoch`."""
    shown = [
        f"{batch.content.decode()}{'' if batch.count == 1 else f'*{batch.count}'}/{batch.epoch}"
        for batch in log.batches[-MAX_BATCHES:]
    ]
    hidden = "... " if len(log.batches) > MAX_BATCHES else ""
    return f"log [{hidden}{' '.join(shown)}]"


def describe_leading(leading: Leading) -> list[str]:
    """Return the state that only a leader has."""
    isr = ",".join(map(str, sorted(leading.isr)))
    parts = [f"ISR {isr}"]
    if leading.pending is not None:
        parts.append("proposes " + ",".join(map(str, sorted(leading.pending.proposed))))
    remotes = " ".join(f"{f}={'?' if r.leo < 0 else r.leo}" for f, r in sorted(leading.remotes.items()))
    parts.append(f"remote {remotes}" if remotes else "alone")
    if leading.produces:
        parts.append("waiting for HW " + ",".join(str(w.required) for w in leading.produces))
    return parts


def describe_controller(image: PartitionImage) -> str:
    """Return the controller's record of the partition."""
    return f"controller: {describe_isr(image)}"


def describe_isr(image: PartitionImage) -> str:
    """Return the leader, the in-sync replicas, and anything unusual."""
    leader = "no leader" if image.leader == NO_LEADER else f"leader {image.leader}"
    parts = [leader, f"epoch {image.leader_epoch}", "ISR " + (",".join(map(str, image.isr)) or "none")]
    if image.elr:
        parts.append("ELR " + ",".join(map(str, image.elr)))
    if image.last_known_leader != NO_LEADER:
        parts.append(f"last known leader {image.last_known_leader}")
    if image.min_isr:
        parts.append(f"min ISR {image.min_isr}")
    if image.is_recovering:
        parts.append("recovering")
    if image.is_reassigning or image.replicas != tuple(range(len(image.replicas))):
        parts.append("replicas " + ",".join(map(str, image.replicas)))
    marked = (("adding", image.adding), ("removing", image.removing))
    parts.extend(f"{word} " + ",".join(map(str, members)) for word, members in marked if members)
    return ", ".join(parts)


def describe_reply(message: Message) -> str:
    """Return a reply as its client would read it; "" for a message not addressed to a client."""
    match message:
        case ProduceReply(error=error) if error is not Error.NONE:
            return f"client: produce failed: {error.name}"
        case ProduceReply(base_offset=offset):
            return f"client: acknowledged at offset {offset}"
        case FetchReply(error=error) if error is not Error.NONE:
            return f"client: read failed: {error.name}"
        case FetchReply(batches=batches):
            read = " ".join(f"{batch.base_offset}:{batch.content.decode()}" for batch in batches)
            return f"client: read {read or 'nothing'}"
        case ListOffsetsReply(error=error) if error is not Error.NONE:
            return f"client: no offset: {error.name}"
        case ListOffsetsReply(offset=offset):
            return f"client: the log ends at {offset}"
        case ElectReply(error=error) | ReassignReply(error=error):
            return f"operator: {error.name}"
        case _:
            return ""
