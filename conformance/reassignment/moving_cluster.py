"""A cluster of replog whose partition moves: cores, disks, a controller, messages in flight; its state.

    now entry fenced                     the controller's decisions by partition epoch, its registrations
    applied                              the decision that a broker has applied last
    log hw remote alter                  the replica
    fetch                                one for each broker, with the log that it was sent for
    committed target spent               the history kept by the environment

The binding's system, a `PartitionCluster`.  Metadata waits, by partition epoch, until a broker is to apply
it, and may be skipped.

Two choices left open by the spec have one value here.  Metadata marks no broker as fenced, so
that a leader proposes any follower that fetches, and the controller refuses (replication.spec has the
leader's own check).  And followers outside the ISR fetch seldom, so that HW does not wait for them (I3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from replog.core.broker.follower import truncation_point
from replog.core.broker.state import ReplicaState
from replog.core.effects import Send
from replog.core.messages import AlterPartitionReply, AlterPartitionRequest, FetchReply, FetchRequest
from replog.core.types import NO_LEADER, BrokerImage, BrokerState, MetadataImage, PartitionImage
from replog_controlled import NOW_MS, PARTITION, ends_of, epochs_of
from replog_partition import PartitionCluster
from specchk.conform.contract.binding import OutsideSpec

LANE = ("applied", "log", "hw", "remote", "alter", "fetch")


@dataclass(frozen=True, slots=True)
class Fetch:
    """A fetch in flight: its sender at the time, and its receiver; once it is served, the reply."""

    sender: ReplicaState
    to: int
    request: FetchRequest
    reply: FetchReply | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The events of the environment so far, for which the models have budgets."""

    reassignments: int = 0
    fences: int = 0
    shrinks: int = 0
    elections: int = 0


@dataclass(slots=True)
class Moving(PartitionCluster):
    """The whole cluster at one moment."""

    target: frozenset[int] = frozenset()
    metadata: dict[int, PartitionImage] = field(default_factory=dict)
    """What the controller has decided, by partition epoch."""
    applied: dict[int, int] = field(default_factory=dict)
    proposals: dict[int, AlterPartitionRequest] = field(default_factory=dict)
    answers: dict[int, AlterPartitionReply] = field(default_factory=dict)
    """To proposals that were granted, until the metadata of the change, which has the same, is applied."""
    spent: Done = Done()

    def copy(self) -> Moving:
        """Return a snapshot."""
        self.has_own_controller = False  # from now on neither cluster owns it
        return Moving(
            self._controller, self.brokers.copy(), self.disks.copy(), self.target, {**self.metadata},
            {**self.applied}, {**self.proposals}, {**self.answers}, self.spent,
            fetches=self.fetches, committed=self.committed, has_own_controller=False,
        )  # fmt: skip

    def note_metadata(self) -> None:
        """Remember a decision by its partition epoch."""
        self.metadata.setdefault(self.image.partition_epoch, self.image)

    def apply(self, broker: int, which: int) -> None:
        """Make a broker apply the partition's metadata of one version."""
        registered = self.registry.brokers
        known = {b: BrokerImage(r.broker_epoch, BrokerState.ACTIVE) for b, r in registered.items()}
        update = MetadataImage(which, {PARTITION: self.metadata[which]}, known)
        self.perform(broker, self.brokers[broker].apply(update, known[broker].broker_epoch, NOW_MS))
        self.applied[broker] = which
        self.proposals.pop(broker, None)
        self.answers.pop(broker, None)

    def put(self, broker: int, sent: Send) -> None:
        """Put a request or a proposal in flight."""
        match sent.message:
            case FetchRequest() as request:
                self.put_fetch(broker, Fetch(self.state(broker).copy(), sent.to, request))
            case AlterPartitionRequest() as request:
                self.proposals[broker] = request
            case _:
                pass


@dataclass(frozen=True, slots=True)
class SpecWords:
    """The spec's names for brokers, and the numbers of its types."""

    brokers: tuple[str, ...]
    epochs: range
    versions: range

    def named(self, brokers: Iterable[int]) -> set[str]:
        """Return a set of brokers."""
        return {self.brokers[broker] for broker in brokers}

    def ends(self, written: Sequence[int]) -> dict[int, int]:
        """Return a log, given each record's epoch."""
        return ends_of(written, self.epochs)


def abstract(cluster: Moving, names: SpecWords) -> dict[str, Any]:
    """Return the spec's state of a cluster.

    Sharper than the spec where replog keeps more: an epoch cache that is not the log's, or the start of a
    leader's epoch that is not where its records begin, has no state of the spec (`OutsideSpec`).
    """
    spent = cluster.spent
    lanes = {name: _lane(cluster, broker, names) for broker, name in enumerate(names.brokers)}
    entries = ((v, cluster.metadata.get(v)) for v in names.versions)
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
