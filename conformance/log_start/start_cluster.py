"""A cluster of replog whose records are deleted: cores, files, a controller, messages in flight; its state.

    current meta spent                   the controller's decisions by leader epoch
    epoch log hw phase remote pending    the replica
    fetch                                one for each broker
    committed deleted                    the history kept by the environment

The binding's system, a `PartitionCluster`.  Metadata waits, by leader epoch, until a broker applies it;
the leader of the latest epoch applies changes within that epoch at once.

A choice left open by the spec has one value here: followers outside the ISR fetch seldom, so that HW does not
wait for them (I3).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from replog.core import messages
from replog.core.broker.state import FetchPhase
from replog.core.effects import Effect, Send
from replog.core.types import CONTROLLER, BrokerImage, BrokerState, Error, MetadataImage
from replog_controlled import NOW_MS, PARTITION, FetchInFlight, body_of, ends_of, log_of, sent
from replog_partition import PartitionCluster
from specchk.conform.contract.binding import OutsideSpec

PHASES = {
    FetchPhase.FETCHING: "fetching", FetchPhase.ASKING_END: "asking_end",
    FetchPhase.ASKING_START: "asking_start",
}  # fmt: skip
LANE = ("epoch", "log", "hw", "phase", "remote", "pending", "fetch")


@dataclass(slots=True)
class Trimming(PartitionCluster):
    """The whole cluster at one moment."""

    metadata: dict[int, MetadataImage] = field(default_factory=dict)
    """The controller's last word in each leader epoch."""
    requested: dict[int, int] = field(default_factory=dict)
    """What clients wait for that have requested a deletion, by leader."""
    deleted: int = 0
    fences: int = 0
    shrinks: int = 0

    def copy(self) -> Trimming:
        """Return a snapshot."""
        self.has_own_controller = False  # from now on neither cluster owns it
        return Trimming(
            self._controller, self.brokers.copy(), self.disks.copy(), {**self.metadata},
            {**self.requested}, self.deleted, self.fences, self.shrinks,
            fetches=self.fetches, committed=self.committed, has_own_controller=False,
        )  # fmt: skip

    def leads(self, broker: int) -> bool:
        """Return whether a broker leads in the latest epoch."""
        state = self.state(broker)
        return state.leading is not None and state.leader_epoch == self.image.leader_epoch

    def note_metadata(self) -> None:
        """Remember the metadata as the last ones of their leader epoch."""
        known = {b: BrokerImage(r.broker_epoch, r.state) for b, r in self.registry.brokers.items()}
        image = MetadataImage(self.registry.version, {PARTITION: self.image}, known)
        self.metadata[self.image.leader_epoch] = image

    def expire_session(self, broker: int) -> None:
        """Expire a broker's session now; the leader is notified."""
        PartitionCluster.expire_session(self, broker)
        self._update_leader()

    def heartbeat(self, broker: int) -> None:
        """Send a broker's heartbeat; the leader is notified of its effects."""
        PartitionCluster.heartbeat(self, broker)
        self._update_leader()

    def _update_leader(self) -> None:
        """Make the leader of the latest epoch apply the new metadata of that epoch."""
        if self.leads(self.image.leader):
            self.apply(self.image.leader, self.image.leader_epoch)

    def apply(self, broker: int, which: int) -> None:
        """Make a broker apply the metadata of one leader epoch."""
        self.date_fetches(broker)
        broker_epoch = self.registry.brokers[broker].broker_epoch
        self.perform(broker, self.brokers[broker].apply(self.metadata[which], broker_epoch, NOW_MS))

    def perform(self, broker: int, effects: list[Effect]) -> list[Effect]:
        """Perform effects, and have proposals answered at once."""
        PartitionCluster.perform(self, broker, effects)
        for proposal in sent(effects, messages.AlterPartitionRequest):
            reply = self.decide(broker, proposal)
            assert isinstance(reply, messages.AlterPartitionReply)
            self.perform(broker, self.brokers[broker].receive(CONTROLLER, reply, NOW_MS))
        return effects

    def put(self, broker: int, sent: Send) -> None:
        """Put a request in flight, or note the answer to a client."""
        match sent.message:
            case messages.FetchRequest() | messages.ListOffsetsRequest() as request:
                self.put_fetch(broker, FetchInFlight(sent.to, request))
            case messages.DeleteRecordsReply(error=error):
                offset = self.requested.pop(broker)
                self.deleted = max(self.deleted, offset if error is Error.NONE else 0)
            case _:
                pass


@dataclass(frozen=True, slots=True)
class StartWords:
    """The state of a cluster in the spec's words: names of brokers, the leader of epoch 0, and the epochs.

    Sharper than the spec where replog keeps more: an epoch cache that is not the log's, or a log with a hole,
    has no state of the spec (`OutsideSpec`).
    """

    names: tuple[str, ...]
    first_leader: str
    epochs: range

    def abstract(self, cluster: Trimming) -> dict[str, Any]:
        """Return the spec's state of a cluster."""
        lanes = {name: self._lane(cluster, number) for number, name in enumerate(self.names)}
        return {
            "current": cluster.image.leader_epoch,
            "meta": {epoch: self._meta(cluster, epoch) for epoch in self.epochs},
            "spent": {"fences": cluster.fences, "shrinks": cluster.shrinks},
            **{variable: {name: lane[variable] for name, lane in lanes.items()} for variable in LANE},
            "blind": set(),
            "late": {name: set() for name in self.names},  # whatever its members: HW waits only for the ISR
            "committed": ends_of(cluster.committed, self.epochs),
            "deleted": cluster.deleted,
        }

    def _named(self, brokers: Iterable[int]) -> set[str]:
        return {self.names[broker] for broker in brokers}

    def _meta(self, cluster: Trimming, epoch: int) -> dict[str, Any]:
        known = cluster.metadata.get(epoch)
        if known is None:
            return {"leader": self.first_leader, "isr": set(self.names), "fenced": set()}
        image = known.partitions[PARTITION]
        fenced = (b for b, broker in known.brokers.items() if broker.state is BrokerState.FENCED)
        return {"leader": self.names[image.leader], "isr": self._named(image.isr),
                "fenced": self._named(fenced)}  # fmt: skip

    def _lane(self, cluster: Trimming, broker: int) -> dict[str, Any]:
        state = cluster.state(broker)
        leading, following = state.leading, state.following
        told: dict[str, Any] = dict.fromkeys(self.names)
        for other, remote in {} if leading is None else leading.remotes.items():
            if remote.leo >= 0:
                told[self.names[other]] = {"leo": remote.leo, "start": remote.log_start}
        waiting = [] if leading is None else [delete.offset for delete in leading.deletes]
        asked = [cluster.requested[broker]] if broker in cluster.requested else []
        # Whoever waits for no deletion any more has been told so.
        if waiting != asked:
            raise OutsideSpec(f"clients wait for {asked}, and broker {broker} has {waiting}")
        slot = cluster.fetches.get(broker)
        return {
            "epoch": state.leader_epoch,
            "log": {"start": state.log.log_start, **log_of(state.log, self.epochs)},
            "hw": state.log.hw,
            "phase": "fetching" if following is None else PHASES[following.phase],
            "remote": told,
            "pending": waiting[0] if waiting else None,
            "fetch": slot and {"epoch": slot.request.leader_epoch, "body": _body(slot)},
        }


def _body(slot: FetchInFlight) -> tuple[str, dict[str, Any]]:
    """Return a request or a response as a value of the spec."""
    request, reply = slot.request, slot.reply
    if isinstance(request, messages.ListOffsetsRequest):
        is_end = request.which == messages.LATEST
        if reply is None:
            return ("AskedEnd" if is_end else "AskedStart"), {}
        assert isinstance(reply, messages.ListOffsetsReply)
        return ("EndIs", {"end": reply.offset}) if is_end else ("StartIs", {"start": reply.offset})
    if reply is None:
        last = request.last_fetched_epoch
        return "Asked", {"offset": request.fetch_offset, "last": last if last >= 0 else None,
                         "start": request.log_start}  # fmt: skip
    assert isinstance(reply, messages.FetchReply)
    if reply.error is not Error.NONE:
        return "OutOfRange", {}
    kind, told = body_of(reply, request.fetch_offset)
    return kind, told if kind == "Diverging" else {**told, "start": reply.log_start}
