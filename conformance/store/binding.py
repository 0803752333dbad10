"""store.spec and replog: what a log directory keeps through crashes, on replog's store and a failing disk.

The system is a machine (`store_machine.py`): replog's own store, on the simulator's disk, which knows what
was synced and loses any part of the rest.  A power failure strikes between the calls of the store, and with
`--suite faults` in every single change of the disk inside of each: half-written ones, and names that
are durable before what they name, included.

Not observed: `disk`.  A store may sync more than it promises.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from store_machine import BATCH_BYTES, RECORDS, Machine, PackedMachine

from replog.sim.disks.disk import CrashedError, SimFs
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import InvalidRecordError, OffsetOutOfRangeError
from replog.store.files.health import Health
from replog.store.partition import PartitionLog
from replog.store.recovery.recovery import save_survey
from replog.store.segments.epochs import EpochFile
from replog.store.segments.segment import Segment
from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    At,
    Impossible,
    Refused,
    action,
    interruption,
    project,
    restore,
    snapshot,
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import RuledBinding

DOWN, RUNNING = Impossible("no process runs"), Impossible("a process runs")


def _least(_: int) -> int:
    """Nothing of what was not synced, except for the length of a file, which then has zeros."""
    return 0


def _most(choices: int) -> int:
    """All that was written."""
    return choices - 1


def _half(choices: int) -> int:
    """Half of the changes, and half of the bytes of the next one."""
    return (choices - 1) // 2


NOTHING, NAMES, CONTENTS, TORN = "nothing", "names", "contents", "torn"
LEFT = MappingProxyType({
    NOTHING: (_least, _least), NAMES: (_least, _most), CONTENTS: (_most, _least), TORN: (_half, _half),
})  # fmt: skip
"""What a power failure leaves of what was not synced: of files, and of the names in directories."""
INSIDE = (CONTENTS, NAMES, TORN)
"""What it leaves where it strikes inside of a call."""

KILLED, SYNC_FAILED, LATER_SYNC_FAILED = "killed", "after a sync that failed", "after a later one that failed"
FAILING = MappingProxyType({SYNC_FAILED: 0, LATER_SYNC_FAILED: 1})


SMALL = MappingProxyType({"MaxOffset": "2", "MaxEpoch": "0"})


class StoreBinding(RuledBinding[PackedMachine]):
    """Each action of the spec is a call of the store, or what befalls its machine."""

    spec, model = "../../spec/store.spec", "all_calls"
    unobserved = MappingProxyType({"disk": "a store may sync more than it promises"})
    smoke = (At("power_in_stops"), At("power_in_writes", {"MaxEpoch": "0"}))
    gate = (
        At("all_calls", SMALL, "product"),
        At("older_epoch_follows", suite="product"),
        At("epoch_before_flush", suite="product"),
        At("power_in_writes", suite="faults"),
        At("power_in_writes", {"MaxEpoch": "0", "BatchesInSegment": "2", "flush_messages": "4"}, "faults"),
        At("power_in_cuts", suite="faults"),
        At("power_in_retention", suite="faults"),
        At("power_in_stops", suite="faults"),
    )
    exhaustive = (
        At("all_calls"),
        At("flushed_at_once", SMALL),
        At("flushed_later", {"MaxEpoch": "0"}),
        At("larger_segments", {"MaxEpoch": "0"}),
        At("all_calls", SMALL, "faults"),
    )
    controls = (
        BadSpec("epochs stay after a truncation", "all_calls", {"flaw": "kept_entries", **SMALL}),
        BadCode("a flush returns before its sync", PartitionLog.flush, "segment.flush()", "pass",
                "power_in_writes", {"MaxEpoch": "0"}),
        BadCode("a clean stop does not sync", LogDirectory.shut_down, "log.seal()", "pass",
                "power_in_stops"),
        BadCode("the marker stays", LogDirectory._load, "self._root.forget(CLEAN_SHUTDOWN_FILE)", "return",
                "power_in_stops"),
        BadCode("a start does not sync what it takes over", save_survey, "segment.flush()", "pass",
                "all_calls", SMALL),
        BadCode("a truncation leaves its epochs", PartitionLog.truncate_to,
                "self._epochs.truncate_from_end(offset)", "pass", "all_calls", SMALL),
        BadCode("a truncation is not synced", Segment.truncate, "self._file.fsync()", "pass",
                "all_calls", SMALL),
        BadCode("a truncation leaves the recovery point", LogDirectory._lower_checkpoints,
                "min(known.get(key, NOTHING).recovery_point, offset)",
                "known.get(key, NOTHING).recovery_point", "all_calls", SMALL),
        BadCode("the log start passes what is flushed", PartitionLog.advance_log_start,
                "if offset > self.flushed:", "if False:", "power_in_retention"),
        BadCode("the epoch of earlier records begins later", EpochFile.assign,
                "cache.truncate_from_end(start_offset)", "pass", "older_epoch_follows"),
        BadCode("a process goes on after a sync that failed", Health.fail, "self.reason is None", "False",
                "all_calls", SMALL),
    )  # fmt: skip
    rules = MappingProxyType({"flaw": "none_of_these"})
    hint = "replog's store has no such flaw; choose a model without one"

    def start(self) -> PackedMachine:
        """A new directory, with one log."""
        constants = self.constants
        config = LogConfig(
            segment_bytes=constants["BatchesInSegment"] * BATCH_BYTES,
            index_interval_bytes=0,
            flush_messages=constants["flush_messages"] or None,
            flush_on_roll=constants["flush_on_roll"],
        )
        machine = Machine(SimFs(), config)
        machine.begin()
        return PackedMachine(machine)

    @snapshot
    def keep(self, kept: PackedMachine) -> PackedMachine:
        """The machine, packed: its disk, and the process with what it has open."""
        return kept.copy()

    @restore
    def back(self, kept: PackedMachine) -> PackedMachine:
        """Another copy, to run on."""
        return kept.copy()

    @project
    def state(self, kept: PackedMachine) -> dict[str, Any]:
        """Every variable but `disk`."""
        return kept.machine.state()

    @action("append_batch")
    def append_batch(self, kept: PackedMachine, epoch: int) -> Answer:
        """A producer's batch, which the store stamps."""
        return self._write(
            kept, lambda: kept.machine.log.append_as_leader(kept.machine.produced(epoch), epoch)
        )

    @action("replicate")
    def replicate(self, kept: PackedMachine, epoch: int) -> Answer:
        """The leader's batch, byte for byte."""
        return self._write(kept, lambda: kept.machine.log.append_as_follower(kept.machine.next_batch(epoch)))

    def _write(self, kept: PackedMachine, append: Callable[[], object]) -> Answer:
        if not kept.outline.is_up:
            return DOWN
        if kept.outline.log_end + RECORDS > self.constants["MaxOffset"]:
            return Impossible("no more records in this model")
        before = kept.machine.written
        try:
            append()
        except InvalidRecordError as error:
            kept.machine.written = before
            return Refused(str(error))
        return Accepted()

    @action("begin_epoch")
    def begin_epoch(self, kept: PackedMachine, epoch: int) -> Answer:
        """A broker becomes leader; which epochs it does so in is its own business."""
        if not kept.outline.is_up:
            return DOWN
        if epoch <= kept.outline.last_epoch:
            return Impossible("leader epochs rise")
        kept.machine.log.assign_epoch(epoch, kept.machine.log.log_end)
        return Accepted()

    @action("flush")
    def flush(self, kept: PackedMachine) -> Answer:
        """Sync all there is."""
        if not kept.outline.is_up:
            return DOWN
        kept.machine.log.flush()
        return Accepted()

    @action("truncate")
    def truncate(self, kept: PackedMachine, offset: int) -> Answer:
        """A follower cuts what its leader does not have."""
        if not kept.outline.is_up:
            return DOWN
        if offset > kept.outline.log_end:
            return Impossible("nobody cuts beyond the end")
        if kept.machine.fs.faults.crash_in is not None:
            kept.machine.cutting = offset, kept.machine.packed()
        kept.machine.log.truncate_to(offset)
        kept.machine.cutting = None
        return Accepted()

    @action("begin_anew")
    def begin_anew(self, kept: PackedMachine, offset: int) -> Answer:
        """A follower's log ends before its leader's begins."""
        if not kept.outline.is_up:
            return DOWN
        if offset <= kept.outline.log_end:
            return Impossible("the leader has what follows")
        kept.machine.log.reset(offset)
        return Accepted()

    @action("raise_start")
    def raise_start(self, kept: PackedMachine, offset: int) -> Answer:
        """Retention, or a client, lets records go."""
        if not kept.outline.is_up:
            return DOWN
        before = kept.machine.log.log_start
        try:
            kept.machine.log.advance_log_start(offset)
        except OffsetOutOfRangeError as error:
            return Refused(str(error))
        return Accepted() if kept.machine.log.log_start > before else Refused("the log begins there or later")

    @action("checkpoint")
    def checkpoint(self, kept: PackedMachine) -> Answer:
        """The three checkpoints of the directory."""
        if not kept.outline.is_up:
            return DOWN
        kept.machine.checkpoint()
        return Accepted()

    @action("stop")
    def stop(self, kept: PackedMachine) -> Answer:
        """A clean stop."""
        if not kept.outline.is_up:
            return DOWN
        kept.machine.stop()
        return Accepted()

    @action("recover")
    def recover(self, kept: PackedMachine) -> Answer:
        """Another process opens the directory."""
        if kept.outline.is_up:
            return RUNNING
        kept.machine.begin()
        return Accepted()

    @action("die_alone", ways=(KILLED, SYNC_FAILED, LATER_SYNC_FAILED))
    def die_alone(self, kept: PackedMachine, way: str) -> Answer:
        """The process is killed, or it ends because a sync failed: then no call succeeds any more."""
        if not kept.outline.is_up:
            return DOWN
        if way in FAILING:
            kept.machine.fs.faults.fail_fsync_in = FAILING[way]
            has_failed = kept.machine.fails_to_flush()
            kept.machine.fs.faults.fail_fsync_in = None
            if not has_failed:
                return Refused("the store goes on after a sync that failed")
        kept.machine.end()
        return Accepted()

    @action("lose_power", ways=tuple(LEFT))
    def lose_power(self, kept: PackedMachine, way: str) -> Answer:
        """The machine loses its page cache, or parts of it."""
        kept.machine.lose_power(*LEFT[way])
        return Accepted()

    @interruption("lose_power", aside=("flushed", "known_point", "saved_point", "saved_start", "saved_hw"))
    def fails_inside(self, kept: PackedMachine, moment: int, step: Callable[[], Answer]) -> bool:
        """Let the power fail in a change of the disk; what a checkpoint has is written file by file."""
        kept.machine.fs.faults.crash_in = moment
        with suppress(CrashedError):
            step()
        if not kept.machine.fs.is_dead:
            return False
        kept.machine.lose_power(*LEFT[INSIDE[(moment + kept.machine.batches) % len(INSIDE)]])
        kept.machine.settle_cut()
        return True
