"""The state of a cluster of replog as every variable of replication.spec, from the cores and disks.

    current, meta, fenced, incarnation   the controller's image, its last of each epoch, its registrations
    registered                           these registrations, in the metadata of each epoch
    eligible_leaders last_leader         the controller's image: the ELR, the last leader,
    min_changed                          and since which epoch min.insync.replicas has changed
    status epoch log hw isr version remote truncating      the replica, or what recovery makes of its disk
    heard knows late has_new_min         of a leader: whose fetches, by which metadata, the lagging followers
    checkpoint flushed clean             the disk
    alter fetch                          the messages in flight
    waiting                              the producers that a leader has yet to answer
    committed acked spent                the history kept by the environment: leaders, replies, its own faults

Stricter than the spec where replog keeps more: an epoch cache whose start offsets are not those of the
log's epochs, or a log with a hole, has no state of the spec (`OutsideSpec`).

Not observed, because the spec cannot express it: log start, producer ids, timers, correlation
numbers; and a diverging answer's HW, which is not read under today's rules.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence

from replog.core.broker.state import FetchPhase, Leading, ReplicaState
from replog.core.controller.state import ControllerState
from replog.core.log.logview import LogView
from replog.core.types import NO_LEADER, BrokerImage, BrokerState, Error, Role
from replog.sim.recording.record_state import late_followers
from replog_cluster import AlterInFlight, Cluster, Node
from replog_controlled import NOW_MS, PARTITION, FetchInFlight, body_of, ends_of, log_of
from specchk.conform.contract.binding import OutsideSpec

Plain = dict[str, object]
SETS = ("clean", "has_new_min")
"""Sets of brokers: whose disk has the mark of a clean stop, and who leads by another min.insync.replicas."""


def abstract(cluster: Cluster, names: Sequence[str], epochs: range) -> Plain:
    """Return the spec's state of a cluster; `names` are the brokers'."""
    return {**_controller(cluster, names, epochs), **_brokers(cluster, names, epochs),
            **_in_flight(cluster, names), **_ghosts(cluster, epochs)}  # fmt: skip


class Kept:
    """A kept cluster, to compare it with clusters that were restored from it and refused a step.

    The shared parts have not changed: a machine or a controller that handles an event is copied first.
    Among the other parts, equal values have equal words; most refusals change none.
    """

    __slots__ = ("_lanes", "_names_and_epochs", "_partitions", "_states", "cluster")

    def __init__(self, cluster: Cluster, names: Sequence[str], epochs: range) -> None:
        self.cluster = cluster
        self._names_and_epochs = names, epochs
        self._lanes: dict[int, bytes] = {}
        # Copied now: a controller that shares them with its copies would change these as well.
        self._partitions = dict(cluster.registry.partitions)
        self._states = _states(cluster.registry)

    def is_as(self, cluster: Cluster) -> bool:
        """Return whether all unshared parts have the same values in the spec; False if messages differ."""
        kept = self.cluster
        return (
            cluster.spent is kept.spent
            and cluster.committed is kept.committed
            and cluster.acked is kept.acked
            and has_same(cluster.fetches, kept.fetches)
            and has_same(cluster.alters, kept.alters)
            and has_same(cluster.metadata, kept.metadata)
            and all(self._is_same_node(cluster, number) for number in cluster.nodes.own)
            and (not cluster.has_own_controller or self._is_same_controller(cluster))
        )

    def _is_same_node(self, cluster: Cluster, number: int) -> bool:
        node, kept = cluster.nodes.seen[number], self.cluster.nodes.seen[number]
        if node.broker_epochs != kept.broker_epochs:
            return False
        return node.is_as(kept) or self._lane(cluster, number) == self._kept_lane(number)

    def _kept_lane(self, number: int) -> bytes:
        if number not in self._lanes:
            self._lanes[number] = self._lane(self.cluster, number)
        return self._lanes[number]

    def _lane(self, cluster: Cluster, number: int) -> bytes:
        # As bytes, which differ for 1 and for True.
        return marshal.dumps(_broker(cluster, cluster.nodes.seen[number], *self._names_and_epochs), 2)

    def _is_same_controller(self, cluster: Cluster) -> bool:
        found = cluster.registry
        # Of registrations, which every heartbeat renews, the words have the states; metadata was compared.
        return found.partitions == self._partitions and _states(found) == self._states


def _states(controller: ControllerState) -> dict[int, BrokerState]:
    return {broker: registration.state for broker, registration in controller.brokers.items()}


def has_same(found: Mapping[int, object], kept: Mapping[int, object]) -> bool:
    """Return whether two mappings have the same objects for the same keys."""
    return found is kept or (
        found.keys() == kept.keys() and all(found[key] is one for key, one in kept.items())
    )


def _controller(cluster: Cluster, names: Sequence[str], epochs: range) -> Plain:
    image, brokers = cluster.image, cluster.registry.brokers
    changed = [epoch for epoch, known in cluster.metadata.items() if known.partitions[PARTITION].min_isr]
    return {
        "current": image.leader_epoch,
        "meta": {epoch: _meta(cluster, names, epoch) for epoch in epochs},
        "registered": {epoch: _registered(cluster, names, epoch) for epoch in epochs},
        "fenced": {name for broker, name in enumerate(names) if brokers[broker].state is BrokerState.FENCED},
        "incarnation": {
            name: len(node.broker_epochs) - 1 for name, node in zip(names, cluster.nodes.seen, strict=True)
        },
        "eligible_leaders": {names[broker] for broker in image.elr},
        "last_leader": None if image.last_known_leader == NO_LEADER else names[image.last_known_leader],
        "min_changed": min(changed, default=None),
    }


def _meta(cluster: Cluster, names: Sequence[str], epoch: int) -> Plain:
    known = cluster.metadata.get(epoch)
    if known is None:
        return {"leader": None, "isr": set(), "version": 0}
    image = known.partitions[PARTITION]
    leader = None if image.leader == NO_LEADER else names[image.leader]
    return {"leader": leader, "isr": {names[b] for b in image.isr}, "version": image.partition_epoch - 1}


def _registered(cluster: Cluster, names: Sequence[str], epoch: int) -> Plain:
    known = cluster.metadata.get(epoch)
    return _nobody_fenced(names) if known is None else _registry(cluster, names, known.brokers)


def _nobody_fenced(names: Sequence[str]) -> Plain:
    return {"fenced": set(), "lives": dict.fromkeys(names, 0)}


def _registry(cluster: Cluster, names: Sequence[str], brokers: Mapping[int, BrokerImage]) -> Plain:
    """Return the metadata's state of brokers; a broker that it does not name has no state in the spec."""
    lives, fenced = {}, set()
    for broker, name in enumerate(names):
        known = brokers.get(broker)
        if known is None:
            raise OutsideSpec(f"the metadata does not name {name}")
        lives[name] = _incarnation(cluster, broker, known.broker_epoch)
        if known.state is not BrokerState.ACTIVE:
            fenced.add(name)
    return {"fenced": fenced, "lives": lives}


def _brokers(cluster: Cluster, names: Sequence[str], epochs: range) -> Plain:
    lanes = {
        name: _broker(cluster, node, names, epochs)
        for name, node in zip(names, cluster.nodes.seen, strict=True)
    }
    # A loop, which is much faster here than a comprehension for each variable.
    maps: dict[str, dict[str, object]] = {variable: {} for variable in lanes[names[0]]}
    for name, lane in lanes.items():
        for variable, value in lane.items():
            maps[variable][name] = value
    return maps | {variable: {name for name in names if maps[variable][name]} for variable in SETS}


def _broker(cluster: Cluster, node: Node, names: Sequence[str], epochs: range) -> Plain:
    if node.process is None:
        return _down(node, names, epochs)
    state = node.process.state
    starts = state.role is Role.NONE
    following = state.following
    return {
        "status": "starting" if starts else "running",
        "epoch": node.registered_at if starts else state.leader_epoch,
        "log": _log(state.log, epochs),
        "hw": state.log.hw,
        "checkpoint": node.storage.hw_checkpoint,
        "flushed": node.storage.flushed(),
        "truncating": following is not None and following.phase is FetchPhase.TRUNCATING,
        "clean": False,
        **_leading(cluster, state, names),
    }


def _down(node: Node, names: Sequence[str], epochs: range) -> Plain:
    """Return the state that recovery would make of the disk: nothing else can happen to it in between."""
    disk = node.storage.copy()
    recovered = disk.recover()
    return {"status": "down", "epoch": 0, "log": _log(recovered.log, epochs), "hw": recovered.log.hw,
            "checkpoint": disk.hw_checkpoint, "flushed": node.storage.flushed(), "truncating": False,
            "clean": recovered.previous_broker_epoch >= 0, **_no_leader(names)}  # fmt: skip


def _no_leader(names: Sequence[str]) -> Plain:
    return {"isr": set(), "version": 0, "remote": dict.fromkeys(names), "waiting": 0, "late": set(),
            "heard": dict.fromkeys(names, 0), "knows": _nobody_fenced(names),
            "has_new_min": False}  # fmt: skip


def _leading(cluster: Cluster, state: ReplicaState, names: Sequence[str]) -> Plain:
    leading = state.leading
    if leading is None:
        return _no_leader(names)
    told: dict[str, int | None] = dict.fromkeys(names)
    heard = dict.fromkeys(names, 0)
    for follower, remote in leading.remotes.items():
        if remote.leo >= 0:
            told[names[follower]] = remote.leo
            heard[names[follower]] = _incarnation(cluster, follower, remote.broker_epoch)
    return {
        "heard": heard,
        "knows": _registry(cluster, names, state.brokers),
        "late": {names[follower] for follower in late_followers(state, NOW_MS)},
        "isr": {names[member] for member in leading.isr},
        "version": state.partition_epoch - 1,
        "remote": told,
        "waiting": _first_waiting(state, leading),
        "has_new_min": bool(state.min_isr),
    }


def _first_waiting(state: ReplicaState, leading: Leading) -> int:
    """Return the epoch of the first record that a producer waits for; the leader's own if there is none.

    The spec has more: the waiting producers are those of all records after HW, from that epoch on.
    """
    waited = [one.base_offset for one in leading.produces]
    if not waited:
        return state.leader_epoch
    epochs = [epoch for epoch, _ in state.log.cells()]
    first = epochs[waited[0]]
    behind = max(state.log.hw, sum(epoch < first for epoch in epochs))
    if waited != list(range(behind, state.log.leo)):
        raise OutsideSpec(f"producers wait for the offsets {waited} of {behind}..{state.log.leo - 1}")
    return first


def _log(log: LogView, epochs: range) -> Plain:
    if log.log_start != 0:
        raise OutsideSpec(f"the log begins at {log.log_start}")
    return log_of(log, epochs)


def _in_flight(cluster: Cluster, names: Sequence[str]) -> Plain:
    fetches = {name: cluster.fetches.get(broker) for broker, name in enumerate(names)}
    alters = {name: cluster.alters.get(broker) for broker, name in enumerate(names)}
    return {
        "fetch": {name: slot and _fetch(cluster, slot) for name, slot in fetches.items()},
        "alter": {name: slot and _proposal(cluster, names, slot) for name, slot in alters.items()},
    }


def _fetch(cluster: Cluster, slot: FetchInFlight) -> Plain:
    request, reply = slot.request, slot.reply
    last = request.last_fetched_epoch
    kind, told = ("Asked", {}) if reply is None else body_of(reply, request.fetch_offset)
    return {
        "epoch": request.leader_epoch,
        "offset": request.fetch_offset,
        "last": last if reply is None and last >= 0 else None,
        "incarnation": _incarnation(cluster, request.replica_id, request.broker_epoch),
        "body": (kind, {"hw": 0, **told} if kind == "Diverging" else told),
    }


def _incarnation(cluster: Cluster, broker: int, broker_epoch: int) -> int:
    try:
        return cluster.nodes.seen[broker].broker_epochs.index(broker_epoch)
    except ValueError:
        raise OutsideSpec(f"broker {broker} never had the broker epoch {broker_epoch}") from None


def _proposal(cluster: Cluster, names: Sequence[str], slot: AlterInFlight) -> Plain:
    request = slot.request
    incarnations = {
        _incarnation(cluster, member, epoch) for member, epoch in request.new_isr if member in slot.newcomers
    }
    if len(incarnations) > 1:
        raise OutsideSpec("a proposal adds more than one broker")
    answers = {None: "asked", Error.NONE: "granted"}
    return {
        "epoch": request.leader_epoch,
        "version": request.partition_epoch - 1,
        "isr": {names[member] for member, _ in request.new_isr},
        "incarnation": min(incarnations, default=0),
        "state": answers.get(None if slot.reply is None else slot.reply.error, "refused"),
    }


def _ghosts(cluster: Cluster, epochs: range) -> Plain:
    spent = cluster.spent
    return {
        "committed": ends_of(cluster.committed, epochs),
        "acked": ends_of(cluster.acked, epochs),
        "spent": {"crashes": spent.crashes, "losses": spent.losses, "fences": spent.fences,
                  "shrinks": spent.shrinks},
    }  # fmt: skip
