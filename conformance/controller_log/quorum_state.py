"""The state of replog's controllers and brokers as every variable of controller_log.spec.

    term active log hw        the controllers; their files equal their memory
    known proposal newest     the brokers
    has                       the brokers with a record in their logs
    acked first               the history kept by the environment

Leader epochs and partition epochs begin at 0 in replog, and at 1 in the spec.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quorum_cluster import Controllers

from replog.core.types import MetadataRecord, PartitionImage, Role
from replog_controlled import PARTITION
from specchk.conform.contract.binding import OutsideSpec


class SpecWords:
    """The spec's names for controllers and brokers, and for records that were seen before."""

    __slots__ = ("_records", "brokers", "controllers")

    def __init__(self, controllers: tuple[str, ...], brokers: tuple[str, ...]) -> None:
        self.controllers = controllers
        self.brokers = brokers
        # By identity: a record is never changed, most are in several logs, and all are in many states.
        self._records: dict[int, tuple[MetadataRecord, dict[str, Any]]] = {}

    def record(self, record: MetadataRecord) -> dict[str, Any]:
        """Return a record of the controllers' log."""
        known = self._records.get(id(record))
        if known is None:
            known = self._records[id(record)] = record, _record(record, self.brokers)
        return known[1]


def abstract(cluster: Controllers, words: SpecWords) -> dict[str, Any]:
    """Return the spec's state of the cluster."""
    brokers = words.brokers
    nodes = dict(zip(words.controllers, cluster.nodes.seen, strict=True))
    for number, node in enumerate(cluster.nodes.seen):
        written, held = cluster.disks[number], (node.term, node.vote, tuple(node.log))
        if written != held:
            raise OutsideSpec(f"controller {number} has {held}, and has written {written}")
    numbers = range(len(brokers))
    return {
        "term": {name: node.term for name, node in nodes.items()},
        "active": {name: node.is_active for name, node in nodes.items()},
        "log": {name: [words.record(record) for record in node.log] for name, node in nodes.items()},
        "hw": {name: node.hw for name, node in nodes.items()},
        "known": {brokers[b]: _known(cluster, b, brokers) for b in numbers},
        "proposal": {brokers[b]: _proposal(cluster, b, brokers) for b in numbers},
        "newest": {brokers[b]: cluster.brokers.seen[b].contact.newest for b in numbers},
        "first": brokers[cluster.first],
        "has": {brokers[b] for b in numbers if cluster.has(b)},
        "acked": cluster.acked,
    }


def _named(members: Iterable[int], brokers: tuple[str, ...]) -> set[str]:
    return {brokers[member] for member in members}


def _image(leader: int, epoch: int, isr: Iterable[int], version: int, brokers: tuple[str, ...]) -> Any:
    if leader < 0:
        raise OutsideSpec("nobody leads")
    return {"leader": brokers[leader], "leader_epoch": epoch + 1, "isr": _named(isr, brokers),
            "version": version + 1}  # fmt: skip


def _record(record: MetadataRecord, brokers: tuple[str, ...]) -> dict[str, Any]:
    image: PartitionImage = record.image.partitions[PARTITION]
    if image.elr or image.is_recovering or record.image.version != image.partition_epoch:
        raise OutsideSpec(f"version {record.image.version} of the metadata has {image}")
    shown = _image(image.leader, image.leader_epoch, image.isr, image.partition_epoch, brokers)
    return {"term": record.term, "image": shown}


def _known(cluster: Controllers, broker: int, brokers: tuple[str, ...]) -> dict[str, Any]:
    state = cluster.state(broker)
    isr = cluster.isr[broker]
    if (state.leader_id == broker) != (state.role is Role.LEADER):
        raise OutsideSpec(f"broker {broker} is {state.role}, and knows {state.leader_id} as leader")
    if state.leading is not None and set(state.leading.isr) != set(isr):
        raise OutsideSpec(f"leader {broker} has the ISR {state.leading.isr}, and was sent {isr}")
    return _image(state.leader_id, state.leader_epoch, isr, state.partition_epoch, brokers)


def _proposal(cluster: Controllers, broker: int, brokers: tuple[str, ...]) -> set[str] | None:
    leading = cluster.state(broker).leading
    pending = None if leading is None else leading.pending
    return None if pending is None else _named(pending.proposed, brokers)
