"""Descriptions of brokers, the controller and replies in one line of plain words each, for scenarios."""

from __future__ import annotations

from collections.abc import Iterable

from replog.core import messages
from replog.core.broker.state import Leading, ReplicaState
from replog.core.log.logview import LogView
from replog.core.messages import Message
from replog.core.types import NO_LEADER, Batch, Error, PartitionImage, Role
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
    """Return the last batches."""
    shown = " ".join(map(describe_batch, log.batches[-MAX_BATCHES:]))
    hidden = "... " if len(log.batches) > MAX_BATCHES else ""
    return f"log [{hidden}{shown}]"


def describe_batch(batch: Batch) -> str:
    """Return a batch as `name/epoch`, or as `name*count/epoch`."""
    return f"{batch.content.decode()}{'' if batch.count == 1 else f'*{batch.count}'}/{batch.epoch}"


def describe_leading(leading: Leading) -> list[str]:
    """Return the state that only a leader has."""
    parts = ["ISR " + _listed(sorted(leading.isr))]
    if leading.pending is not None:
        parts.append("proposes " + _listed(sorted(leading.pending.proposed)))
    remotes = " ".join(f"{f}={'?' if r.leo < 0 else r.leo}" for f, r in sorted(leading.remotes.items()))
    parts.append(f"remote {remotes}" if remotes else "alone")
    if leading.produces:
        parts.append("waiting for HW " + _listed(w.required for w in leading.produces))
    return parts


def describe_isr(image: PartitionImage) -> str:
    """Return the leader, the in-sync replicas, and anything unusual."""
    leader = "no leader" if image.leader == NO_LEADER else f"leader {image.leader}"
    parts = [leader, f"epoch {image.leader_epoch}", "ISR " + (_listed(image.isr) or "none")]
    if image.elr:
        parts.append("ELR " + _listed(image.elr))
    if image.last_known_leader != NO_LEADER:
        parts.append(f"last known leader {image.last_known_leader}")
    if image.min_isr:
        parts.append(f"min ISR {image.min_isr}")
    if image.is_recovering:
        parts.append("recovering")
    if image.is_reassigning or image.replicas != tuple(range(len(image.replicas))):
        parts.append("replicas " + _listed(image.replicas))
    marked = (("adding", image.adding), ("removing", image.removing))
    parts.extend(f"{word} {_listed(members)}" for word, members in marked if members)
    return ", ".join(parts)


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def describe_reply(message: Message) -> str:
    """Return a reply as its client would read it; "" for a message not addressed to a client."""
    match message:
        case messages.ProduceReply(error=error) if error is not Error.NONE:
            return f"client: produce failed: {error.name}"
        case messages.ProduceReply(base_offset=offset):
            return f"client: acknowledged at offset {offset}"
        case messages.FetchReply(error=error) if error is not Error.NONE:
            return f"client: read failed: {error.name}"
        case messages.FetchReply(batches=batches):
            read = " ".join(f"{batch.base_offset}:{batch.content.decode()}" for batch in batches)
            return f"client: read {read or 'nothing'}"
        case messages.ListOffsetsReply(error=error) if error is not Error.NONE:
            return f"client: no offset: {error.name}"
        case messages.ListOffsetsReply(offset=offset):
            return f"client: the log ends at {offset}"
        case messages.ElectReply(error=error) | messages.ReassignReply(error=error):
            return f"operator: {error.name}"
        case _:
            return ""
