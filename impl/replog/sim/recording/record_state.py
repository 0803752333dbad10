"""The part of a broker's and of the controller's state that a recording shows after an event."""

from __future__ import annotations

from zlib import crc32

from replog.core.broker.state import ReplicaState
from replog.core.controller.state import ControllerState
from replog.core.types import NO_LEADER, Batch, BrokerState, PartitionImage
from replog.sim.cluster.storage import Storage


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
