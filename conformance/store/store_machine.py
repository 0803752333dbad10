"""One machine with a log directory of replog: a process or none, its disk, and the data written to it.

The binding's system under test.  All bytes read back must be those last written at their offset; states
that the spec's variables cannot express are `OutsideSpec`.

While no process runs, a start on a copy of the disk shows what there is: it must find nothing to refuse, and
after a clean stop nothing to do.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from store_disk import LOSSES, Disk
from store_looks import (
    BATCH_BYTES,
    RECORDS,
    batch_of,
    check_folder,
    check_indexes,
    check_kept,
    check_reads,
    check_refusals,
    check_refused,
)

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
from replog.store.files.errors import DirectoryInUseError, StorageOfflineError, StoreError
from replog.store.files.fs import read_file
from replog.store.files.quarantine import is_quarantined
from replog.store.partition import PartitionLog
from replog.store.segments.batch import iterate_headers
from replog.store.segments.segment import segment_name
from specchk.conform.contract.binding import OutsideSpec

FOLDER, LOG, PATH, BROKER_EPOCH = "data", ("t", 0), "data/t-0", 7
OTHER, OTHER_PATH, OTHER_START = ("t", 1), "data/t-1", 1
"""Another partition, of one batch, and its log start; its high watermark is its end."""
CHECKPOINTS = {
    "saved_point": RECOVERY_POINT_FILE, "saved_start": LOG_START_FILE, "saved_hw": HIGH_WATERMARK_FILE,
}  # fmt: skip


class Cut(NamedTuple):
    """A truncation that may not return: its offset, and the machine before it."""

    offset: int
    before: bytes
    flushed: int
    log_start: int


@dataclass(slots=True)
class Known:
    """Finished comparisons: states of machines without a process, by their disks; repeated truncations."""

    states: dict[Any, dict[str, Any]] = field(default_factory=dict)
    cuts: set[Any] = field(default_factory=set)


@dataclass(slots=True)
class Machine:
    """`flushed` is the end promised by the last process; `written` has the batches by their offsets."""

    fs: Disk
    config: LogConfig
    directory: LogDirectory | None = None
    flushed: int = 0
    written: dict[int, bytes] = field(default_factory=dict)
    batches: int = 0
    cutting: Cut | None = None
    foreign: bool = False
    """Whether somebody has added bytes since the last stop."""
    lost: bool = False
    """Whether the power has failed since the last start, and may have taken something."""
    beside: bool = False
    """Whether there is another partition."""
    closed: bool = False
    wrong: str = ""
    """What was found to be wrong, and no state of the machine shows."""

    @property
    def log(self) -> PartitionLog:
        """The open log of the running process."""
        assert self.directory is not None
        return self.directory.log(*LOG)

    def packed(self) -> bytes:
        """Return the packed form for `unpacked`: the disk, and the process with its open objects."""
        return pickle.dumps(self)

    def begin(self) -> None:
        """Make a process open the directory, and create the log if there is none."""
        directory = LogDirectory.open(self.fs, FOLDER, self.config)
        directory.log(*LOG)
        self.directory = directory
        self.lost = self.foreign = False

    def add_partition(self) -> None:
        """Create the other partition, and save its log start and its high watermark."""
        assert self.directory is not None
        other = self.directory.log(*OTHER)
        other.append_as_follower(batch_of(0, 0, 0))
        other.advance_log_start(OTHER_START)
        other.flush()
        self.beside = True
        self.directory.checkpoint({OTHER: other.log_end})

    def damage(self) -> None:
        """Cut synced bytes of the other partition off."""
        with closing(self.fs.open(f"{OTHER_PATH}/{segment_name(0)}")) as file:
            file.truncate(file.size() - 1)
            file.fsync()
        self.closed = True

    def checkpoint(self) -> None:
        """Write the checkpoints; the high watermark is the log end."""
        assert self.directory is not None
        self.directory.checkpoint({LOG: self.log.log_end})

    def stop(self) -> None:
        """Stop cleanly."""
        assert self.directory is not None
        self.directory.shut_down({LOG: self.log.log_end}, BROKER_EPOCH)
        self.end()

    def end(self) -> None:
        """End the process, with all of its unwritten state."""
        if self.directory is not None and LOG in self.directory.logs:
            self.flushed = self.directory.logs[LOG].flushed
            with suppress(CrashedError, OSError):
                self.directory.abandon()
        self.directory = None
        self.fs.faults = Faults()
        self.fs.process_crash()

    def dead_twin(self) -> Machine:
        """Return a copy of a machine without a process."""
        assert self.directory is None
        return replace(self, fs=self.fs.twin())

    def next_batch(self, epoch: int) -> bytes:
        """Create the batch that follows, and remember it."""
        self.batches += 1
        end = self.log.log_end
        batch = batch_of(self.batches, end, epoch)
        # Records cut off by a truncation are no longer promised, and their offsets are written again.
        self.written = {base: known for base, known in self.written.items() if base + RECORDS <= end}
        self.written[end] = batch
        return batch

    def next_two(self, first: int, second: int) -> bytes:
        """Create the two batches that follow, like `next_batch`."""
        self.batches += 1
        begin, end = self.next_batch(first), self.log.log_end + RECORDS
        self.written[end] = batch_of(self.batches, end, second)
        return begin + self.written[end]

    def produced(self, epoch: int) -> bytes:
        """Create the batch that follows, as a producer sends it: at offset 0, without an epoch."""
        self.next_batch(epoch)
        return batch_of(self.batches)

    def add_bytes(self, is_last: bool, data: bytes) -> None:
        """Add bytes behind those of the last segment, or of the first."""
        # First, since a power failure may leave a part of the bytes.
        self.foreign = True
        names = [name for name in self.fs.listdir(PATH) if name.endswith(".log")]
        with closing(self.fs.open(f"{PATH}/{names[-1 if is_last else 0]}")) as file:
            file.append(data)
            file.fsync()

    def fails_to_append(self, faults: Faults) -> bool:
        """Return whether an append fails with the disk, and the store then stays offline."""
        # The epoch file may no longer have an epoch for a record below the log start.
        epochs = [*self._epochs_of_batches(self.fs, PATH, self.log), *(one.epoch for one in self.log.epochs)]
        batch = batch_of(0, self.log.log_end, max(epochs, default=0))
        self.fs.faults = faults
        if not _is_offline(partial(self.log.append_as_follower, batch)):
            return False
        self.fs.faults = Faults()
        calls = self.log.flush, partial(self.log.read, self.log.log_start, 1), self.checkpoint
        return all(map(_is_offline, calls))

    def fails_to_flush(self) -> bool:
        """Return whether a flush fails with the disk, and the store stays offline, though the disk is intact.

        Where there is nothing to sync, no sync fails.
        """
        # The first flush meets the fault that was planted; the second finds a sound disk. A store that goes
        # on would call records flushed that the failed sync may have dropped (fsync reports an error once).
        if not _is_offline(self.log.flush):
            return not self.fs.faults.fired
        return _is_offline(self.log.flush)

    def lose_power(self, loss: str) -> None:
        """Make the machine lose data that are not on its disk, or parts of them."""
        self.end()
        self.lost = self.lost or loss != "all"
        self.fs.lose(LOSSES[loss])

    def begin_cut(self, offset: int) -> None:
        """Remember the start of a truncation that may not return."""
        self.cutting = Cut(offset, self.packed(), self.log.flushed, self.log.log_start)

    def settle_cut(self, known: Known) -> None:
        """Check the remains of a power failure in a truncation, if a part of the records to cut is left.

        A truncation goes segment by segment, and it lowers the log start first.  A follower that returns
        truncates again, which must lead to where the first one would have led.  If so, the machine is put
        back, and loses its power before the truncation.
        """
        cut, self.cutting = self.cutting, None
        if cut is None:
            return
        try:
            left = self.state(known)
        except (OutsideSpec, StoreError):
            # The remains are compared next, and there this is a finding.
            return
        # A part: more is left than at the end, yet flushed records are lost or the log start is lower. Only
        # for this the spec has no state.
        begin, end = left["bases"][0], left["bases"][0] + RECORDS * len(left["log"])
        target = cut.offset - (cut.offset - begin) % RECORDS if cut.offset >= begin else cut.offset
        if end <= target or (end >= cut.flushed and left["start"] >= cut.log_start):
            return
        key = cut, self.fs.image()
        if key not in known.cuts:
            self._cut_again(cut, known)
            known.cuts.add(key)
        before = unpacked(cut.before)
        before.end()
        self.fs = before.fs

    def _cut_again(self, cut: Cut, known: Known) -> None:
        whole = unpacked(cut.before)
        whole.fs.faults = Faults()
        whole.log.truncate_to(cut.offset)
        whole.end()
        self.begin()
        self.log.truncate_to(cut.offset)
        self.end()
        again, target = self.state(known), whole.state(known)
        if any(again[name] != target[name] for name in ("start", "log", "epochs")):
            self.wrong = f"a truncation to {cut.offset} that is repeated leads to {again}, not {target}"

    def state(self, known: Known) -> dict[str, Any]:
        """Return the spec's variables except `disk`; `known` are machines that were compared before."""
        if self.wrong:
            raise OutsideSpec(self.wrong)
        if self.beside:
            self._check_other()
        if self.directory is not None:
            self._check_running(self.directory)
            seen = self._seen(self.fs, self.directory)
            here = {"up": True, "marker": False, "foreign": False, "closed": self.closed}
            return {**here, **seen, **self._checkpoints()}
        key = (
            self.fs.image(),
            self.flushed,
            self.foreign,
            self.closed,
            self.lost,
            tuple(sorted(self.written.items())),
        )
        if key not in known.states:
            known.states[key] = self._state_by_start()
        return known.states[key]

    def _check_running(self, directory: LogDirectory) -> None:
        """Check that an open directory cannot be opened again, and refuses what no log may accept."""
        check_refused("a second process", DirectoryInUseError, partial(LogDirectory.open, self.fs, FOLDER))
        check_refusals(directory.log(*LOG))

    def _state_by_start(self) -> dict[str, Any]:
        """Return the state that a start finds, on a copy: a start changes the disk, and reading must not."""
        checkpoints = self._checkpoints()
        twin = self.fs.twin()
        kept = self._kept(twin)
        directory = LogDirectory.open(twin, FOLDER, self.config)
        if directory.damaged.keys() != ({OTHER} if self.closed else set()):
            raise OutsideSpec(f"a start refuses the log: {directory.damaged}")
        if directory.high_watermarks.get(LOG, 0) != checkpoints["saved_hw"]:
            raise OutsideSpec("a start does not accept the high watermarks that were written")
        seen = self._seen(twin, directory)
        # If a segment was synced in part, the base may lie below the flushed offset.
        size = RECORDS * self.config.segment_bytes // BATCH_BYTES
        lost_from = self.flushed - size + 1 if self.lost or self.foreign else None
        check_kept(twin, PATH, self._kept(twin) - kept, directory.log(*LOG).log_end, lost_from)
        if directory.was_clean and not self.foreign and not self.closed:
            self._check_clean(directory)
        self._check_durable(twin, directory, seen)
        # The last process's promise, or less if those records are missing: recovery itself may flush more,
        # which was promised to no client.
        flushed = min(self.flushed, seen["flushed"])
        return {
            "up": False, "marker": directory.was_clean, "foreign": self.foreign, "closed": self.closed,
            **seen, **checkpoints, "flushed": flushed,
        }  # fmt: skip

    def _kept(self, fs: Disk) -> set[str]:
        names = fs.listdir(PATH) if fs.exists(PATH) else ()
        return {name for name in names if is_quarantined(name)}

    def _check_durable(self, twin: Disk, directory: LogDirectory, seen: dict[str, Any]) -> None:
        """After a start, even if the power fails at once, another one finds the same and has no work."""
        directory.abandon()
        twin.lose(LOSSES["nothing"])
        again = LogDirectory.open(twin, FOLDER, self.config)
        if [note for note in again.notes if not (self.closed and note.startswith("t-1"))]:
            raise OutsideSpec(f"a second start has something to mend: {again.notes[0]}")
        if self._seen(twin, again) != seen:
            raise OutsideSpec("a second start finds another log than the first one")

    def _check_other(self) -> None:
        """Check that the checkpoints still have the other partition's log start and high watermark."""
        for file, offset in ((LOG_START_FILE, OTHER_START), (HIGH_WATERMARK_FILE, RECORDS)):
            saved = read_offsets(self.fs, FOLDER, file).get(OTHER)
            if saved != offset:
                raise OutsideSpec(
                    f"{file} has {saved} for a partition that nothing was done to, not {offset}"
                )

    def _checkpoints(self) -> dict[str, int]:
        registry = read_registry(self.fs, FOLDER)
        known = NOTHING if registry is None else registry.partitions.get(LOG, NOTHING)
        saved = {name: read_offsets(self.fs, FOLDER, file).get(LOG, 0) for name, file in CHECKPOINTS.items()}
        return {"known_point": known.recovery_point, **saved}

    def _seen(self, fs: Disk, directory: LogDirectory) -> dict[str, Any]:
        """Return the state of an open log, by its files and by its answers."""
        log = directory.log(*LOG)
        path = directory.partition_path(LOG)
        if (read_epochs(fs, path) or ()) != log.epochs:
            raise OutsideSpec(f"the epoch file has {read_epochs(fs, path)}, the process {log.epochs}")
        epochs = self._epochs_of_batches(fs, path, log)
        check_folder(fs, path, log.segment_bases)
        check_indexes(fs, path, log.segment_bases)
        check_reads(log, {base: batch for base, batch in self.written.items() if base < log.log_end})
        entries = [{"epoch": entry.epoch, "from": entry.start_offset} for entry in log.epochs]
        return {
            "bases": list(log.segment_bases), "log": epochs, "start": log.log_start,
            "flushed": log.flushed, "epochs": entries,
        }  # fmt: skip

    def _epochs_of_batches(self, fs: SimFs, path: str, log: PartitionLog) -> list[int]:
        """Read the segment files, without the store, and check that all are as written."""
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

    def _check_clean(self, directory: LogDirectory) -> None:
        """Check that after a clean stop a start has nothing to do, and a dump no complaint."""
        recovery = directory.log(*LOG).recovery
        if directory.broker_epoch != BROKER_EPOCH:
            raise OutsideSpec(f"the marker has broker epoch {directory.broker_epoch}")
        if directory.notes or recovery.scanned_bytes or recovery.cut_bytes:
            raise OutsideSpec(f"a start after a clean stop has something to recover: {directory.notes}")
        twin = self.fs.twin()
        problems = [line for line in Dump(False, False, twin).lines(FOLDER) if line.startswith("!")]
        # A high watermark beyond the log's end is for its reader to clamp.
        problems = [line for line in problems if "high watermark" not in line]
        if problems:
            raise OutsideSpec(f"after a clean stop a dump reports {problems[0]}")


def _is_offline(call: Callable[[], object]) -> bool:
    with suppress(StorageOfflineError):
        call()
        return False
    return True


def unpacked(kept: bytes) -> Machine:
    """Return the machine from its packed form."""
    machine: Machine = pickle.loads(kept)  # noqa: S301 - by `packed`
    return machine
