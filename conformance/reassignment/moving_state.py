"""The state of a cluster of replog as every variable of reassignment.spec, from the cores.

    now entry fenced                     the controller's decisions by partition epoch, its registrations
    applied                              the decision that a broker has applied last
    log hw remote alter                  the replica
    fetch                                one for each broker, with the log that it was sent for
    committed target spent               the history kept by the environment

Sharper than the spec where replog keeps more: an epoch cache that is not the log's, or the start of a
leader's epoch that is not where its records begin, has no state of the spec (`OutsideSpec`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from moving_cluster import Fetch, Moving

from replog.core.broker.follower import truncation_point
from replog.core.broker.state import ReplicaState
from replog.core.types import NO_LEADER, PartitionImage
from replog_controlled import ends_of, epochs_of
from specchk.conform.contract.binding import OutsideSpec


@dataclass(frozen=True, slots=True)
class SpecWords:
    """The spec's names for brokers, and the largest numbers of its types."""

    brokers: tuple[str, ...]
    last_epoch: int
    last_version: int

    def named(self, brokers: Iterable[int]) -> set[str]:
        """Return a set of brokers."""
        return {self.brokers[broker] for broker in brokers}

    def ends(self, written: Sequence[int]) -> dict[int, int]:
        """Return a log, given each record's epoch."""
        return ends_of(written, range(self.last_epoch + 1))


def abstract(cluster: Moving, names: SpecWords) -> dict[str, Any]:
    """Return the spec's state of a cluster."""
    spent = cluster.spent
    lanes = {name: _lane(cluster, broker, names) for broker, name in enumerate(names.brokers)}
    entries = ((v, cluster.metadata.get(v)) for v in range(names.last_version + 1))
    return {
        "now": cluster.image.partition_epoch,
        "entry": {version: image and _meta(image, names) for version, image in entries},
        "fenced": names.named(b for b in range(len(names.brokers)) if cluster.is_fenced(b)),
        **{variable: {name: lane[variable] for name, lane in lanes.items()} for variable in LANE},
        "committed": names.ends(cluster.committed),
        "target": names.named(cluster.target),
        "spent": {"reassignments": spent.reassignments, "fences": spent.fences, "shrinks": spent.shrinks,
                  "elections": spent.elections},
    }  # fmt: skip


LANE = ("applied", "log", "hw", "remote", "alter", "fetch")


def _meta(image: PartitionImage, names: SpecWords) -> dict[str, Any]:
    leads = None if image.leader == NO_LEADER else names.brokers[image.leader]
    return {"leader": leads, "epoch": image.leader_epoch, "isr": names.named(image.isr),
            "elr": names.named(image.elr), "replicas": names.named(image.replicas),
            "adding": names.named(image.adding), "removing": names.named(image.removing)}  # fmt: skip


def _lane(cluster: Moving, broker: int, names: SpecWords) -> dict[str, Any]:
    """Return the variables with a value for each broker."""
    state = cluster.state(broker)
    if state.partition_epoch != cluster.applied[broker]:
        raise OutsideSpec(f"broker {broker} is at partition epoch {state.partition_epoch}")
    slot = cluster.fetches.get(broker)
    return {"applied": cluster.applied[broker], "log": _log(state, names), "hw": state.log.hw,
            **_leading(state, names), "fetch": slot and _fetch(slot, names)}  # fmt: skip


def _log(state: ReplicaState, names: SpecWords) -> dict[int, int]:
    written, cached = epochs_of(state), state.log.epochs.entries
    starts = [(epoch, sum(other < epoch for other in written)) for epoch, _ in cached]
    if len(written) != state.log.leo or starts != cached or not {*written} <= {epoch for epoch, _ in cached}:
        raise OutsideSpec(f"broker {state.broker_id} has a log {written} with the epochs {cached}")
    return names.ends(written)


def _leading(state: ReplicaState, names: SpecWords) -> dict[str, Any]:
    leading = state.leading
    if leading is None:
        return {"remote": dict.fromkeys(names.brokers), "alter": None}
    begins = sum(epoch < state.leader_epoch for epoch in epochs_of(state))
    if leading.leso != begins:
        raise OutsideSpec(f"the epoch of leader {state.broker_id} begins at {begins}, not at {leading.leso}")
    known = {names.brokers[f]: remote.leo for f, remote in leading.remotes.items() if remote.leo >= 0}
    pending = leading.pending
    return {
        "remote": {name: known.get(name) for name in names.brokers},
        "alter": None if pending is None else names.named(pending.proposed),
    }


def _fetch(slot: Fetch, names: SpecWords) -> dict[str, Any]:
    written = epochs_of(slot.sender)
    return {
        "epoch": slot.request.leader_epoch,
        "log": names.ends(written),
        "body": _body(slot, written, names),
    }


def _body(slot: Fetch, written: Sequence[int], names: SpecWords) -> tuple[str, dict[str, Any]]:
    """Return a body; a diverging answer is the offset at which its receiver truncates."""
    if slot.reply is None:
        return "Asked", {}
    if slot.reply.diverging is not None:
        end, is_last_word = truncation_point(slot.sender, slot.reply.diverging)
        if not is_last_word:
            raise OutsideSpec("one answer does not find where the logs part")
        return "Diverging", {"end": end}
    sent = [batch.epoch for batch in slot.reply.batches for _ in range(batch.count)]
    return "Records", {"log": names.ends([*written, *sent]), "hw": slot.reply.high_watermark}
