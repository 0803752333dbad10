"""store.spec and replog: what a log directory keeps through crashes, with replog's store on a failing disk.

The system is a machine (`store_machine.py`): replog's own store, on the simulator's disk, which distinguishes
synced data and loses any part of the rest.  A power failure strikes between the calls of the store, and with
`--suite faults` in every single change of the disk inside of each: half-written ones, and names that
are durable before the files they name, included.

Not observed: `disk`.  A store may sync more than it promises.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from packed_machine import PackedMachine
from store_disk import Disk
from store_looks import BATCH_BYTES, RECORDS, batch_of
from store_machine import Known, Machine

from replog.sim.disks.disk import CrashedError, Faults, SimFs
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import InvalidRecordError, OffsetOutOfRangeError
from replog.store.files.health import Health
from replog.store.partition import PartitionLog
from replog.store.recovery.recovery import save_survey
from replog.store.recovery.survey import Survey
from replog.store.segments import batch, segment
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
)
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.conform.contract.ruled import CopyingBinding
from specchk.ir.program import Program

DOWN, RUNNING = Impossible("no process runs"), Impossible("a process runs")


POWER = ("nothing", "names", "contents", "torn", "late names")
"""What a power failure leaves of what was not synced (`store_disk`)."""
INSIDE = ("all", *POWER)
"""What is left where it strikes inside of a call, or where the process dies there."""

KILLED, SYNC_FAILED, LATER_SYNC_FAILED = "killed", "after a sync that failed", "after a later one that failed"
FAILING = MappingProxyType({SYNC_FAILED: 0, LATER_SYNC_FAILED: 1})


FAULTY = MappingProxyType({
    "after a write that failed": Faults(fail_write_in=0), "on a full disk": Faults(capacity_bytes=0),
})  # fmt: skip
FOREIGN = MappingProxyType({
    "zeros behind the last segment": (True, bytes(40)),
    "half a batch behind the first": (False, batch_of(0)[:50]),
})  # fmt: skip
"""Bytes that are added, and whether to the last segment."""
SMALL = MappingProxyType({"MaxOffset": "2", "MaxEpoch": "0"})


class StoreBinding(CopyingBinding[PackedMachine]):
    """Each action of the spec as a call of the store, or an event of its machine."""

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
        At("power_in_resets", suite="faults"),
        At("replies", suite="faults"),
        At("replies_after_cuts"),
        At("two_partitions", suite="product"),
        At("restarts", suite="product"),
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
        BadCode("a read reaches its limit", segment._whole_batches, "base + delta >= end_offset",
                "base + delta > end_offset", "all_calls", SMALL),
        BadCode("a batch is accepted behind a hole", batch.check_replicated,
                "header.base_offset != expected", "False", "all_calls", SMALL),
        BadCode("two processes have the directory", SimFs.lock, "if path in self._locks:", "if False:",
                "all_calls", SMALL),
        BadCode("the time index lacks the largest timestamp", Segment.seal,
                "contents.time_index.add(contents.max_timestamp, contents.max_at)", "pass",
                "all_calls", SMALL),
        BadCode("a segment that grows keeps its indexes", Segment.append, "self._sums = None", "pass",
                "restarts"),
        BadCode("an index is replaced that the manifest vouches for", PartitionLog._withdraw_indexes,
                "segment.mark.sums is not None", "False", "restarts"),
        BadCode("bytes behind a segment are taken over", Survey._is_whole, "may_wait and size == mark.size",
                "may_wait and size >= mark.size", "restarts"),
        BadCode("an epoch inside of a reply is not noted", PartitionLog._write,
                "if header.leader_epoch != self._epochs.latest:", "if not self._epochs.entries:", "replies"),
        BadCode("a process goes on after a sync that failed", Health.fail, "self.reason is None", "False",
                "all_calls", SMALL),
    )  # fmt: skip
    rules = MappingProxyType({"flaw": "none_of_these"})
    hint = "replog's store has no such flaw; choose a model without one"

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._known = Known()
        self._struck = Machine(Disk(), LogConfig())

    def start(self) -> PackedMachine:
        """A new directory, with one log."""
        constants = self.constants
        config = LogConfig(
            segment_bytes=constants["BatchesInSegment"] * BATCH_BYTES,
            index_interval_bytes=0,
            flush_messages=constants["flush_messages"] or None,
            flush_on_roll=constants["flush_on_roll"],
        )
        machine = Machine(Disk(), config)
        machine.begin()
        if constants["beside"]:
            machine.add_partition()
        return PackedMachine(machine)

    @project
    def state(self, kept: PackedMachine) -> dict[str, Any]:
        """Every variable except `disk`."""
        return kept.machine.state(self._known)

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

    @action("replicate_two")
    def replicate_two(self, kept: PackedMachine, first: int, second: int) -> Answer:
        """Two batches of the leader in one reply."""
        return self._write(
            kept, lambda: kept.machine.log.append_as_follower(kept.machine.next_two(first, second)), 2
        )

    def _write(self, kept: PackedMachine, append: Callable[[], object], batches: int = 1) -> Answer:
        if not kept.outline.is_up:
            return DOWN
        if kept.outline.log_end + batches * RECORDS > self.constants["MaxOffset"]:
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
        """A broker becomes leader, in any later epoch."""
        if not kept.outline.is_up:
            return DOWN
        if epoch <= kept.outline.last_epoch:
            return Impossible("leader epochs rise")
        kept.machine.log.assign_epoch(epoch, kept.machine.log.log_end)
        return Accepted()

    @action("flush")
    def flush(self, kept: PackedMachine) -> Answer:
        """Sync everything."""
        if not kept.outline.is_up:
            return DOWN
        kept.machine.log.flush()
        return Accepted()

    @action("truncate")
    def truncate(self, kept: PackedMachine, offset: int) -> Answer:
        """A follower cuts the records that its leader does not have."""
        if not kept.outline.is_up:
            return DOWN
        if offset > kept.outline.log_end:
            return Impossible("nobody cuts beyond the end")
        if kept.machine.fs.faults.crash_in is not None:
            kept.machine.begin_cut(offset)
        kept.machine.log.truncate_to(offset)
        kept.machine.cutting = None
        return Accepted()

    @action("begin_anew")
    def begin_anew(self, kept: PackedMachine, offset: int) -> Answer:
        """A follower's log ends before the start of its leader's log."""
        if not kept.outline.is_up:
            return DOWN
        if offset <= kept.outline.log_end:
            return Impossible("the leader has what follows")
        kept.machine.log.reset(offset)
        return Accepted()

    @action("raise_start")
    def raise_start(self, kept: PackedMachine, offset: int) -> Answer:
        """Retention, or a client, deletes records."""
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

    @action("add_bytes", ways=tuple(FOREIGN))
    def add_bytes(self, kept: PackedMachine, way: str) -> Answer:
        """Not possible while a process has the directory open."""
        if kept.outline.is_up:
            return RUNNING
        if kept.machine.foreign:
            return Impossible("it was done")
        kept.machine.add_bytes(*FOREIGN[way])
        return Accepted()

    @action("damage_other")
    def damage_other(self, kept: PackedMachine) -> Answer:
        """Bytes of the other partition are lost."""
        if not self.constants["beside"] or kept.outline.is_up or kept.machine.closed:
            return Impossible("there is no other partition, or it is in use, or damaged")
        kept.machine.damage()
        return Accepted()

    @action("recover")
    def recover(self, kept: PackedMachine) -> Answer:
        """Another process opens the directory."""
        if kept.outline.is_up:
            return RUNNING
        kept.machine.begin()
        return Accepted()

    @action("die_alone", ways=(KILLED, *FAILING, *FAULTY))
    def die_alone(self, kept: PackedMachine, way: str) -> Answer:
        """The process is killed, or it ends because its disk failed, after which every call fails."""
        if not kept.outline.is_up:
            return DOWN
        if way in FAILING:
            kept.machine.fs.faults.fail_fsync_in = FAILING[way]
            has_failed = kept.machine.fails_to_flush()
            kept.machine.fs.faults.fail_fsync_in = None
            if not has_failed:
                return Refused("the store goes on after a sync that failed")
        if way in FAULTY and not kept.machine.fails_to_append(replace(FAULTY[way])):
            return Refused("the store goes on after a write that failed")
        kept.machine.end()
        return Accepted()

    @action("lose_power", ways=POWER)
    def lose_power(self, kept: PackedMachine, way: str) -> Answer:
        """The machine loses its page cache, or parts of it."""
        kept.machine.lose_power(way)
        return Accepted()

    @interruption(
        "lose_power", aside=("flushed", "known_point", "saved_point", "saved_start", "saved_hw", "foreign")
    )
    def fails_inside(self, kept: PackedMachine, moment: int, step: Callable[[], Answer]) -> str:
        """Make the power fail in a change of the disk.

        A checkpoint's contents are written file by file; a start removes the marker before foreign bytes.
        In each change as often as there are kinds of remains.
        """
        change, way = divmod(moment, len(INSIDE))
        # The moments of a step are tried in order, so the step is taken once for each change.
        if way == 0:
            kept.machine.fs.faults.crash_in = change
            with suppress(CrashedError):
                step()
            if not kept.machine.fs.is_dead:
                return ""
            kept.machine.end()
            self._struck = kept.machine
        kept.become(self._struck.dead_twin())
        kept.machine.lose_power(INSIDE[way])
        kept.machine.settle_cut(self._known)
        left = f"what was left of unsynced changes: {INSIDE[way]}"
        return f"in `{self._struck.fs.died_in}`; {left}"
