"""The state that a recorder reads before an event is handled, and what a reply shows about it.

Not here: when it looks (`record`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from replog.core.effects import Effect, Of, Send
from replog.core.messages import AlterPartitionReply, FetchReply, FetchRequest, ForPartition
from replog.core.types import BrokerState, Error, PartitionImage, Role
from replog.sim.cluster.node import Alarm, Delivery, Item, Node


@dataclass(frozen=True, slots=True)
class Before:
    """The part of a broker's state before an event that recorded events need."""

    item: Delivery | Alarm
    applied: tuple[object, ...]
    leo: int
    in_flight: int
    pending: object
    isr: tuple[int, ...]
    hw_checkpoint: int
    brokers: object


@dataclass(frozen=True, slots=True)
class Decided:
    """The state of the controller before an event."""

    image: PartitionImage
    states: dict[int, BrokerState]
    epochs: dict[int, int]


def own_item(item: Item, partition: str) -> Delivery | Alarm | None:
    """Return a partition's own item, without its name; None if it is another's ("": the only partition)."""
    if isinstance(item, Delivery) and isinstance(item.message, ForPartition):
        name, message = item.message.partition, item.message.message
        return replace(item, message=message) if name == partition else None
    if isinstance(item, Alarm):
        return item if item.partition in ("", partition) else None
    return item if isinstance(item, Delivery) else None


def own_effects(effects: list[Effect], partition: str) -> list[Effect]:
    """Return the effects of a partition without its name, and those of the process; "": all of them."""
    return [effect for each in effects if (effect := _own_effect(each, partition)) is not None]


def _own_effect(effect: Effect, partition: str) -> Effect | None:
    if isinstance(effect, Of):
        return effect.effect if effect.partition == partition else None
    if isinstance(effect, Send) and isinstance(effect.message, ForPartition):
        named = effect.message
        return Send(effect.to, named.message) if named.partition == partition else None
    return effect


def look(node: Node, item: Delivery | Alarm) -> Before:
    """Return the state of a broker before it handles an item."""
    assert node.broker is not None
    state = node.broker.replica.state
    leading, following = state.leading, state.following
    return Before(
        item, applied(node), state.log.leo, -1 if following is None else following.in_flight,
        None if leading is None else leading.pending, () if leading is None else leading.isr,
        node.storage.hw_checkpoint, state.brokers,
    )  # fmt: skip


def applied(node: Node) -> tuple[object, ...]:
    """Return the effect of metadata on a broker: a newer ISR is news to a leader only."""
    assert node.broker is not None
    state = node.broker.replica.state
    return state.role, state.leader_epoch, state.role is Role.LEADER and state.partition_epoch


def was_taken(reply: FetchReply, before: Before, following: object) -> bool:
    """Return whether a follower was waiting for this reply, and no longer is."""
    now = getattr(following, "in_flight", -1)
    return reply.error is Error.NONE and before.in_flight == reply.correlation and now == -1


def is_answer(receiver: int, reply: FetchReply, asked: Delivery) -> bool:
    """Return whether a reply is the answer to the request that was delivered."""
    # By sender, too: another that has waited may have used the same correlation.
    request = asked.message
    correlation = request.correlation if isinstance(request, FetchRequest) else None
    return receiver == asked.source and correlation == reply.correlation


def was_settled(reply: AlterPartitionReply, before: Before, state: object) -> bool:
    """Return whether a leader's proposal was pending before this reply, and no longer is."""
    leading = getattr(state, "leading", None)
    expected = getattr(before.pending, "correlation", None)
    return expected == reply.correlation and leading is not None and leading.pending is None


def message_of(asker: int, correlation: int) -> dict[str, object]:
    """Return the name of a message: its sender and its number."""
    return {"message": f"{asker}/{correlation}"}
