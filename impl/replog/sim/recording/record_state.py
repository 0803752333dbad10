"""The state that a recorder reads: of a broker before an event, and what it shows after one.

Not here: when it looks (`record`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from zlib import crc32

from replog.core.broker.state import ReplicaState
from replog.core.controller.state import ControllerState
from replog.core.effects import Effect, Of, Send
from replog.core.messages import AlterPartitionReply, FetchReply, FetchRequest, ForPartition
from replog.core.types import NO_LEADER, Batch, BrokerState, Error, PartitionImage, Role
from replog.sim.cluster.node import Alarm, Delivery, Item, Node
from replog.sim.cluster.storage import Storage


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


def served_as(request: FetchRequest, effects: list[Effect]) -> str:
    """Return how a leader has served a fetch: with records or a divergence, with an error, or not yet."""
    sent = [e.message for e in effects if isinstance(e, Send) and e.to == request.replica_id]
    replies = (m for m in sent if isinstance(m, FetchReply) and m.correlation == request.correlation)
    reply = next(replies, None)
    if reply is None:
        return "waits"
    if reply.error is not Error.NONE:
        return "out-of-range" if reply.error is Error.OFFSET_OUT_OF_RANGE else "refused"
    return "diverges" if reply.diverging else "records"


def message_of(asker: int, correlation: int) -> dict[str, object]:
    """Return the name of a message: its sender and its number."""
    return {"message": f"{asker}/{correlation}"}


class Checksums:
    """A CRC over each broker's log, from its first record on; only changed parts are recomputed."""

    def __init__(self) -> None:
        self._known: dict[int, list[tuple[Batch, int]]] = {}

    def of(self, broker: int, batches: list[Batch]) -> int:
        """Return the CRC over the epochs and bodies of all records."""
        known = self._known.setdefault(broker, [])
        # A log may shrink and grow again between two events, so the length alone proves nothing; the batches
        # are compared from the end.
        del known[len(batches) :]
        while known and known[-1][0] != batches[len(known) - 1]:
            known.pop()
        crc = known[-1][1] if known else 0
        for batch in batches[len(known) :]:
            crc = crc32(b"%d:%d:%b;" % (batch.epoch, batch.count, batch.content), crc)
            known.append((batch, crc))
        return crc


def broker_state(state: ReplicaState, storage: Storage, checksums: Checksums) -> dict[str, object]:
    """Return the recorded view of a broker."""
    log = state.log
    shown: dict[str, object] = {
        "role": state.role.value,
        "epoch": state.leader_epoch,
        "leo": log.leo,
        "hw": log.hw,
        "epochs": [list(entry) for entry in log.epochs.entries],
        "flushed": storage.flushed(),
        "checkpoint": storage.hw_checkpoint,
        "crc": checksums.of(state.broker_id, log.batches),
    }
    if state.leading is not None:
        pending = state.leading.pending
        shown["isr"] = sorted(state.leading.isr)
        shown["remote"] = {str(f): remote.leo for f, remote in sorted(state.leading.remotes.items())}
        shown["version"] = state.partition_epoch
        shown["proposed"] = None if pending is None else sorted(pending.proposed)
        shown["fenced"] = sorted(b for b, known in state.brokers.items() if known.state is BrokerState.FENCED)
    return shown


def late_followers(state: ReplicaState, now_ms: int) -> list[int]:
    """Return the followers of a leader that have not been caught up for longer than the lag limit."""
    remotes = {} if state.leading is None else state.leading.remotes
    oldest_ms = now_ms - state.config.lag_ms
    return sorted(follower for follower, remote in remotes.items() if remote.last_caught_up_ms < oldest_ms)


def controller_state(image: PartitionImage, state: ControllerState) -> dict[str, object]:
    """Return the controller's state of the partition, and the brokers that it has fenced."""
    return {
        "epoch": image.leader_epoch,
        "leader": None if image.leader == NO_LEADER else image.leader,
        "isr": sorted(image.isr),
        "version": image.partition_epoch,
        "fenced": sorted(b for b, known in state.brokers.items() if known.state is BrokerState.FENCED),
    }
