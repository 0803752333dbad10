"""The state of a cluster of replog as every variable of log_start.spec, from the cores.

    current meta spent                   the controller's decisions by leader epoch
    epoch log hw phase remote pending    the replica
    fetch                                one for each broker
    committed deleted                    the history kept by the environment

Sharper than the spec where replog keeps more: an epoch cache that is not the log's, or a log with a hole, has
no state of the spec (`OutsideSpec`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from start_cluster import StartFetch, Trimming

from replog.core.broker.state import FetchPhase
from replog.core.messages import LATEST, FetchReply, ListOffsetsReply, ListOffsetsRequest
from replog.core.types import BrokerState, Error
from replog_controlled import PARTITION, body_of, ends_of, log_of
from specchk.conform.contract.binding import OutsideSpec

PHASES = {
    FetchPhase.FETCHING: "fetching", FetchPhase.ASKING_END: "asking_end",
    FetchPhase.ASKING_START: "asking_start",
}  # fmt: skip
LANE = ("epoch", "log", "hw", "phase", "remote", "pending", "fetch")


@dataclass(frozen=True, slots=True)
class StartWords:
    """The spec's names for brokers, for the leader of epoch 0, and for the last epoch."""

    names: tuple[str, ...]
    first_leader: str
    last_epoch: int

    def abstract(self, cluster: Trimming) -> dict[str, Any]:
        """Return the spec's state of a cluster."""
        lanes = {name: self._lane(cluster, number) for number, name in enumerate(self.names)}
        return {
            "current": cluster.image.leader_epoch,
            "meta": {epoch: self._meta(cluster, epoch) for epoch in self._epochs()},
            "spent": {"fences": cluster.fences, "shrinks": cluster.shrinks},
            **{variable: {name: lane[variable] for name, lane in lanes.items()} for variable in LANE},
            "blind": set(),
            "late": {name: set() for name in self.names},  # whatever its members: HW waits only for the ISR
            "committed": ends_of(cluster.committed, self._epochs()),
            "deleted": cluster.deleted,
        }

    def _epochs(self) -> range:
        return range(self.last_epoch + 1)

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
        if waiting != [cluster.requested[broker] for _ in waiting] or len(waiting) > 1:
            raise OutsideSpec(f"clients wait for {waiting}")
        slot = cluster.fetches.get(broker)
        return {
            "epoch": state.leader_epoch,
            "log": {"start": state.log.log_start, **log_of(state.log, self._epochs())},
            "hw": state.log.hw,
            "phase": "fetching" if following is None else PHASES[following.phase],
            "remote": told,
            "pending": waiting[0] if waiting else None,
            "fetch": slot and {"epoch": slot.epoch, "body": _body(slot)},
        }


def _body(slot: StartFetch) -> tuple[str, dict[str, Any]]:
    """Return a request or a response as a value of the spec."""
    request, reply = slot.request, slot.reply
    if isinstance(request, ListOffsetsRequest):
        is_end = request.which == LATEST
        if reply is None:
            return ("AskedEnd" if is_end else "AskedStart"), {}
        assert isinstance(reply, ListOffsetsReply)
        return ("EndIs", {"end": reply.offset}) if is_end else ("StartIs", {"start": reply.offset})
    if reply is None:
        last = request.last_fetched_epoch
        return "Asked", {"offset": request.fetch_offset, "last": last if last >= 0 else None,
                         "start": request.log_start}  # fmt: skip
    assert isinstance(reply, FetchReply)
    if reply.error is not Error.NONE:
        return "OutOfRange", {}
    kind, told = body_of(reply, request.fetch_offset)
    return kind, told if kind == "Diverging" else {**told, "start": reply.log_start}
