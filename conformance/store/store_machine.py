"""One machine with a log directory of replog on it: a process or none, its disk, and what was written to it.

The binding's system.  All bytes that are read back must be those written last at their offset; what cannot be
said in the spec's variables is `OutsideSpec`.

While no process runs, a start on a copy of the disk shows what there is: it must find nothing to refuse, and
after a clean stop nothing to do.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from replog.dump import Dump
from replog.sim.disks.disk import CrashedError, Faults, SimFs
from replog.store.checkpoints.checkpoint import (
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    read_epochs,
    read_offsets,
)
from replog.store.checkpoints.registry import NOTHING, read_registry
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import StorageOfflineError, StoreError
from replog.store.files.fs import read_file
from replog.store.partition import PartitionLog
from replog.store.segments.batch import iterate_headers
from replog.store.segments.records import Record, encode_batch
from replog.store.segments.segment import segment_name
from specchk.conform.contract.binding import OutsideSpec

Chooser = Callable[[int], int]

FOLDER, LOG, BROKER_EPOCH = "data", ("t", 0), 7
CHECKPOINTS = {
    "saved_point": RECOVERY_POINT_FILE, "saved_start": LOG_START_FILE, "saved_hw": HIGH_WATERMARK_FILE,
}  # fmt: skip
RECORDS = 2


def batch_of(number: int, base_offset: int = 0, epoch: int = -1) -> bytes:
    """Return two records that no other batch has; all batches have the same size."""
    records = [Record(b"%06d-%d" % (number, place), timestamp=number + place) for place in range(RECORDS)]
    return encode_batch(records, base_offset=base_offset, leader_epoch=epoch)


BATCH_BYTES = len(batch_of(0))


@dataclass(slots=True)
class Machine:
    """`flushed` is what the last process promised; `written` has the batches by their offsets."""

    fs: SimFs
    config: LogConfig
    directory: LogDirectory | None = None
    flushed: int = 0
    written: dict[int, bytes] = field(default_factory=dict)
    batches: int = 0
    cutting: tuple[int, bytes] | None = None
    """Where a truncation cuts that may not return, and the machine as it began."""
    wrong: str = ""
    """What was found to be wrong, and no state of the machine shows."""

    @property
    def log(self) -> PartitionLog:
        """The open log of a process that runs."""
        assert self.directory is not None
        return self.directory.log(*LOG)

    def packed(self) -> bytes:
        """Return what `unpacked` makes a copy of: the disk, and the process with what it has open."""
        return pickle.dumps(self)

    def begin(self) -> None:
        """Let a process open the directory, and create the log if there is none."""
        directory = LogDirectory.open(self.fs, FOLDER, self.config)
        directory.log(*LOG)
        self.directory = directory

    def checkpoint(self) -> None:
        """Write the checkpoints; the high watermark is the log's end."""
        assert self.directory is not None
        self.directory.checkpoint({LOG: self.log.log_end})

    def stop(self) -> None:
        """Stop cleanly."""
        assert self.directory is not None
        self.directory.shut_down({LOG: self.log.log_end}, BROKER_EPOCH)
        self.end()

    def end(self) -> None:
        """Let the process go, with all that only it knew."""
        if self.directory is not None and LOG in self.directory.logs:
            self.flushed = self.directory.logs[LOG].flushed
            with suppress(CrashedError, OSError):
                self.directory.abandon()
        self.directory = None
        self.fs.faults = Faults()
        self.fs.process_crash()

    def next_batch(self, epoch: int) -> bytes:
        """Make the batch that follows, and remember it."""
        self.batches += 1
        end = self.log.log_end
        batch = batch_of(self.batches, end, epoch)
        # What a truncation cut off is no longer owed, and its offsets are written anew.
        self.written = {base: known for base, known in self.written.items() if base + RECORDS <= end}
        self.written[end] = batch
        return batch

    def produced(self, epoch: int) -> bytes:
        """Make the batch that follows, as a producer sends it: at offset 0, in no epoch."""
        self.next_batch(epoch)
        return batch_of(self.batches)

    def fails_to_flush(self) -> bool:
        """Return whether a flush fails with the disk, and the store then stays off, though the disk is sound.

        Where there is nothing to sync, no sync fails.
        """
        # The first flush meets the fault that was planted; the second finds a sound disk. A store that goes
        # on would call records flushed that the failed sync may have dropped (fsync reports an error once).
        with suppress(StorageOfflineError):
            self.log.flush()
            return not self.fs.faults.fired
        try:
            self.log.flush()
        except StorageOfflineError:
            return True
        return False

    def lose_power(self, files: Chooser, names: Chooser) -> None:
        """Let the machine lose what is not on its disk, except for what these leave."""
        self.end()
        self.fs.power_loss(files, names)

    def settle_cut(self) -> None:
        """Judge what a power failure inside of a truncation left, if it left a part of what was to be cut.

        A truncation goes segment by segment, and it lowers the log start first.  A follower that returns
        truncates again, which must lead to where the first one would have led.  If so, the machine is put
        back, and loses its power before the truncation.
        """
        if self.cutting is None:
            return
        offset, kept = self.cutting
        self.cutting = None
        # Two copies of the machine as the truncation began: one to return to, one in which it runs to its
        # end.
        before, whole = unpacked(kept), unpacked(kept)
        whole.fs.faults = Faults()
        end = whole.log.truncate_to(offset)
        try:
            left = self.state()
        except (OutsideSpec, StoreError):
            # What is left is compared next, and there this is a finding.
            return
        # A part: more is left than in the end, yet flushed records are gone or the log start is lower. Only
        # for this has the spec no state.
        left_end = left["bases"][0] + RECORDS * len(left["log"])
        is_part = left_end < before.log.flushed or left["start"] < before.log.log_start
        if left_end <= end or not is_part:
            return
        self.begin()
        self.log.truncate_to(offset)
        self.end()
        whole.end()
        again, target = self.state(), whole.state()
        if any(again[name] != target[name] for name in ("start", "log", "epochs")):
            self.wrong = f"a truncation to {offset} that is repeated leads to {again}, not {target}"
        before.end()
        self.fs = before.fs

    def state(self) -> dict[str, Any]:
        """Return the spec's variables, but for `disk`."""
        if self.wrong:
            raise OutsideSpec(self.wrong)
        checkpoints = self._checkpoints()
        if self.directory is not None:
            return {"up": True, "marker": False, **self._seen(self.fs, self.directory), **checkpoints}
        # On a copy: a start changes the disk, and looking must not.
        twin = SimFs()
        twin.restore(self.fs.snapshot())
        directory = LogDirectory.open(twin, FOLDER, self.config)
        if directory.damaged:
            raise OutsideSpec(f"a start refuses the log: {directory.damaged}")
        if directory.high_watermarks.get(LOG, 0) != checkpoints["saved_hw"]:
            raise OutsideSpec("a start does not accept the high watermarks that were written")
        if directory.was_clean:
            self._check_clean(directory)
        seen = self._seen(twin, directory)
        # What the last process promised, or less where it is not there: recovery itself may flush more,
        # which nobody was promised.
        flushed = min(self.flushed, seen["flushed"])
        return {"up": False, "marker": directory.was_clean, **seen, **checkpoints, "flushed": flushed}

    def _checkpoints(self) -> dict[str, int]:
        registry = read_registry(self.fs, FOLDER)
        known = NOTHING if registry is None else registry.partitions.get(LOG, NOTHING)
        saved = {name: read_offsets(self.fs, FOLDER, file).get(LOG, 0) for name, file in CHECKPOINTS.items()}
        return {"known_point": known.recovery_point, **saved}

    def _seen(self, fs: SimFs, directory: LogDirectory) -> dict[str, Any]:
        """Return what an open log is, by its files and by what it answers."""
        log = directory.log(*LOG)
        path = directory.partition_path(LOG)
        if (read_epochs(fs, path) or ()) != log.epochs:
            raise OutsideSpec(f"the epoch file has {read_epochs(fs, path)}, the process {log.epochs}")
        epochs = self._epochs_of_batches(fs, path, log)
        self._check_reads(log)
        entries = [{"epoch": entry.epoch, "from": entry.start_offset} for entry in log.epochs]
        return {
            "bases": list(log.segment_bases), "log": epochs, "start": log.log_start,
            "flushed": log.flushed, "epochs": entries,
        }  # fmt: skip

    def _epochs_of_batches(self, fs: SimFs, path: str, log: PartitionLog) -> list[int]:
        """Read the segment files, without the store: all must be as written."""
        epochs: list[int] = []
        end = log.segment_bases[0]
        for base in log.segment_bases:
            data = read_file(fs, f"{path}/{segment_name(base)}")
            if base != end:
                raise OutsideSpec(f"a segment begins at {base}, where {end} follows")
            for position, header in iterate_headers(data):
                batch = data[position : position + header.size_bytes]
                if batch != self.written.get(end):
                    raise OutsideSpec(f"the batch at {end} is not the one that was written there")
                epochs.append(header.leader_epoch)
                end = header.next_offset
        if end != log.log_end:
            raise OutsideSpec(f"the files end at {end}, the log at {log.log_end}")
        return epochs

    def _check_reads(self, log: PartitionLog) -> None:
        """Read every offset, of all there is and of what is flushed."""
        for base, batch in self.written.items():
            for offset in range(max(base, log.log_start), min(base + RECORDS, log.log_end)):
                if log.read(offset, 1) != batch:
                    raise OutsideSpec(f"a read at {offset} does not return the batch there")
                # Followers read up to the end, consumers up to a limit inside the log: both ways must stop
                # at a batch.
                limited = log.read(offset, 1, log.flushed)
                if limited != (batch if base + RECORDS <= log.flushed else b""):
                    raise OutsideSpec(f"a read at {offset} of what is flushed returns {len(limited)} bytes")

    def _check_clean(self, directory: LogDirectory) -> None:
        """After a clean stop a start has nothing to do, and a dump no complaint."""
        recovery = directory.log(*LOG).recovery
        if directory.broker_epoch != BROKER_EPOCH:
            raise OutsideSpec(f"the marker has broker epoch {directory.broker_epoch}")
        if directory.notes or recovery.scanned_bytes or recovery.cut_bytes:
            raise OutsideSpec(f"a start after a clean stop has something to recover: {directory.notes}")
        twin = SimFs()
        twin.restore(self.fs.snapshot())
        problems = [line for line in Dump(False, False, twin).lines(FOLDER) if line.startswith("!")]
        # A high watermark beyond the log's end is for its reader to clamp.
        problems = [line for line in problems if "high watermark" not in line]
        if problems:
            raise OutsideSpec(f"after a clean stop a dump reports {problems[0]}")


@dataclass(frozen=True, slots=True)
class Outline:
    """What decides whether a call is possible; of a process that runs, its log's end and last epoch."""

    is_up: bool
    log_end: int = 0
    last_epoch: int = -1

    @classmethod
    def of(cls, machine: Machine) -> Outline:
        """Look at a machine."""
        if machine.directory is None:
            return cls(False)
        epochs = machine.log.epochs
        return cls(True, machine.log.log_end, epochs[-1].epoch if epochs else -1)


class PackedMachine:
    """A machine, unpacked when something is done with it: most of what is tried is not possible."""

    __slots__ = ("_machine", "_outline", "_packed")

    def __init__(self, machine: Machine | None, packed: bytes = b"", outline: Outline | None = None) -> None:
        self._machine = machine
        self._packed = packed
        self._outline = outline

    @property
    def machine(self) -> Machine:
        """The machine, to run on."""
        if self._machine is None:
            self._machine = unpacked(self._packed)
        return self._machine

    @property
    def outline(self) -> Outline:
        """What is known without unpacking it."""
        return (
            Outline.of(self.machine) if self._machine is not None or self._outline is None else self._outline
        )

    def copy(self) -> PackedMachine:
        """Return an independent copy, packed."""
        packed = self._packed if self._machine is None else self._machine.packed()
        return PackedMachine(None, packed, self.outline)


def unpacked(kept: bytes) -> Machine:
    """Return the machine that was packed."""
    machine: Machine = pickle.loads(kept)  # noqa: S301 - by `packed`
    return machine
