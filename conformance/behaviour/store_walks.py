"""Random walks of replog's store alone: all calls of a log directory and its logs, crashes, damage, repairs.

A cluster uses the store as a follower does.  Here it also appends as a leader, serves reads with any
limits, has two partitions, and is reopened after a clean stop, the death of the process, a power
loss, and after files were damaged, removed or exchanged for older copies.  A start's report, a
dump's output and a repair's plan are recorded like answers.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any
from zlib import crc32

from file_damage import damage, files_of, huge
from observed_files import ObservedFs, note_files

from replog.dump import Dump
from replog.sim.disks.disk import CrashedError, Faults, SimFs
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import StoreError
from replog.store.files.fs import read_file
from replog.store.partition import PartitionLog
from replog.store.recovery.repair import Repairer
from replog.store.segments.batch import iterate_headers
from replog.store.segments.records import ProducerFields, Record, encode_batch
from specchk.conform.contract.behaviours import RunWatch

FOLDER = "data"
KEYS = (("t", 0), ("t", 0), ("u-1", 3))
DISK = "store"


class StoreWalk:
    """One walk; `is_damaging`: files are damaged between two incarnations of the process."""

    def __init__(self, watch: RunWatch, seed: int, is_damaging: bool) -> None:
        self.watch, self.is_damaging = watch, is_damaging
        self.random = Random(seed)  # noqa: S311  # chance that must be repeatable
        self.disk = SimFs()
        self.fs = ObservedFs(self.disk, watch, DISK)
        choice = self.random.choice
        self.config = LogConfig(
            segment_bytes=choice((250, 400, 900)),
            index_interval_bytes=choice((70, 100, 300)),
            max_batch_bytes=choice((220, 4_000)),
            flush_messages=choice((None, None, 1, 4)),
            flush_on_roll=choice((True, True, False)),
        )
        self.epoch = 0
        self.time_ms = 1_000
        self.older: dict[str, bytes] = {}
        self.directory: LogDirectory | None = None

    def run(self, actions: int) -> None:
        """Take `actions` actions on the store, between starts and ends of its process."""
        kinds, weights = zip(*ACTIONS.items(), strict=True)
        self._open()
        for kind in self.random.choices(kinds, weights, k=actions):
            self.watch.step(kind.__name__.strip("_").replace("_", " "))
            if self.directory is None:
                self._open()
            else:
                kind(self)
        self.watch.step("the end")
        self._leave()
        note_files(self.watch, DISK, self.disk, FOLDER)

    def _answer(self, kind: str, call: Callable[[], Any]) -> Any:
        """Note the result or exception of a call; None after an exception."""
        try:
            answer = call()
        except CrashedError:
            self.watch.note(DISK, kind, error="the machine died")
            self._leave()
            if self.is_damaging and self.random.random() < 0.5:
                damage(self.disk, self.random, self.older)
        except (StoreError, OSError, ValueError) as error:
            self.watch.note(DISK, kind, error=type(error).__name__, text=str(error))
        else:
            shown = f"{len(answer)} bytes, {crc32(answer):08x}" if isinstance(answer, bytes) else answer
            self.watch.note(DISK, kind, answer=shown if type(shown) in (int, str, tuple, dict) else None)
            return answer
        return None

    def _open(self) -> None:
        """Start the process, and note the recovered state."""
        self.directory = self._answer("open", lambda: LogDirectory.open(self.fs, FOLDER, self.config))
        directory = self.directory
        if directory is None:
            self.disk.process_crash()
            return
        self.watch.note(
            DISK,
            "opened",
            broker_epoch=directory.broker_epoch,
            was_clean=directory.was_clean,
            high_watermarks=directory.high_watermarks,
            notes=tuple(directory.notes),
            damaged=directory.damaged,
        )
        for key, log in sorted(directory.logs.items()):
            self._show(key, log)

    def _show(self, key: tuple[str, int], log: PartitionLog) -> None:
        self.watch.note(
            DISK,
            "log",
            path=self._opened().partition_path(key),
            start=log.log_start,
            end=log.log_end,
            flushed=log.flushed,
            epochs=tuple(map(tuple, log.epochs)),
            segments=log.segment_bases,
            cuts=log.cuts,
        )

    def _leave(self) -> None:
        """End the process, if it runs, and lose everything that it has open."""
        if self.directory is not None:
            try:
                self.directory.abandon()
            except (StoreError, CrashedError, OSError) as error:
                self.watch.note(DISK, "abandon", error=type(error).__name__)
            self.directory = None
        self.disk.process_crash()
        self.disk.faults = Faults()

    def _opened(self) -> LogDirectory:
        assert self.directory is not None
        return self.directory

    def _log(self) -> tuple[tuple[str, int], PartitionLog] | None:
        directory, key = self._opened(), self.random.choice(KEYS)
        log = self._answer("log", lambda: directory.log(*key))
        return None if log is None else (key, log)

    def _with_log(self, kind: str, call: Callable[[PartitionLog], Any]) -> None:
        """Call a function of a log, and note the log after it."""
        chosen = self._log()
        if chosen is None:
            return
        key, log = chosen
        self._answer(kind, lambda: call(log))
        if self.directory is not None:
            self._show(key, log)

    def _near(self, log: PartitionLog) -> int:
        """Return an offset at or near a boundary of the log, or anywhere in it."""
        random = self.random
        edges = (log.log_start, log.log_end, log.flushed, *log.segment_bases)
        inside = (
            random.randrange(log.log_start, log.log_end + 1) if log.log_end > log.log_start else log.log_end
        )
        return (random.choice(edges) if random.random() < 0.5 else inside) + random.choice(
            (0, 0, 0, 0, 1, -1, 2)
        )

    def _batch(self, base: int = 0, epoch: int = -1) -> bytes:
        random = self.random
        self.time_ms += random.choice((0, 1, 50, -30, 1_000))
        records = [
            Record(
                random.choice((b"v", b"value" * 3, None, b"w" * 60)),
                random.choice((None, b"k")),
                self.time_ms + random.choice((0, 0, 5, -5)),
                headers=random.choice(((), (), (("h", b"1"), ("n", None)))),
            )
            for _ in range(random.choice((1, 1, 2, 3)))
        ]
        producer = random.choice((ProducerFields(), ProducerFields(7, 0, random.randrange(9))))
        batch = encode_batch(records, producer, base, epoch)
        return batch if random.random() < 0.98 else huge(batch)

    def _append(self) -> None:
        epoch = self.epoch + (self.random.random() < 0.15)
        if self.random.random() < 0.06:
            epoch -= self.random.choice((1, 2))
        self.epoch = max(self.epoch, epoch)
        batch = self._batch()
        if self.random.random() < 0.05:
            batch = self._spoiled(batch)
        self._with_log("append as leader", lambda log: tuple(log.append_as_leader(batch, epoch)))

    def _spoiled(self, batch: bytes) -> bytes:
        """Return a batch with a changed byte, or one that is cut off."""
        at = self.random.randrange(len(batch))
        if self.random.random() < 0.3:
            return batch[:at]
        return batch[:at] + bytes([batch[at] ^ self.random.choice((1, 2, 255))]) + batch[at + 1 :]

    def _follow(self) -> None:
        """Append as a follower: several batches, of one or more epochs, sometimes with a gap."""
        random = self.random

        def append(log: PartitionLog) -> int:
            base, data = log.log_end + random.choice((0, 0, 0, 0, 0, 0, 1, -1)), b""
            # The log may have a later epoch without a record yet.
            older = random.choice((0, 0, 0, 1, 2))
            for _ in range(random.choice((1, 2, 3, 5))):
                self.epoch += random.random() < 0.2
                batch = self._batch(max(base, 0), max(self.epoch - older, 0))
                base = next(iterate_headers(batch))[1].next_offset
                data += self._spoiled(batch) if random.random() < 0.02 else batch
            return log.append_as_follower(data)

        self._with_log("append as follower", append)

    def _read(self) -> None:
        random = self.random

        def read(log: PartitionLog) -> bytes:
            end = random.choice((None, None, self._near(log)))
            return log.read(self._near(log), random.choice((1, 100, 250, 1_000)), end)

        self._with_log("read", read)

    def _walk_headers(self) -> None:
        def headers(log: PartitionLog) -> tuple[object, ...]:
            late = log.headers_since(max(log.max_timestamp - 50, 0))
            return *map(tuple, log.headers(self._near(log))), *(header.base_offset for header in late)

        self._with_log("headers", headers)

    def _truncate(self) -> None:
        self._with_log("truncate", lambda log: log.truncate_to(self._near(log)))

    def _advance(self) -> None:
        self._with_log("advance log start", lambda log: log.advance_log_start(self._near(log)))

    def _reset(self) -> None:
        self._with_log("reset", lambda log: log.reset(log.log_end + self.random.choice((0, 5))))

    def _flush(self) -> None:
        self._with_log("flush", lambda log: log.flush())

    def _store_epochs(self) -> None:
        def store(log: PartitionLog) -> None:
            entries = [tuple(entry) for entry in log.epochs]
            if self.random.random() < 0.5:
                self.epoch += 1
                log.assign_epoch(self.epoch, log.log_end)
            else:
                log.store_epochs(entries[self.random.randrange(2) :])

        self._with_log("store epochs", store)

    def _checkpoint(self) -> None:
        directory = self._opened()
        keys = list(directory.logs)[: self.random.randrange(3)]
        marks = {key: max(self._near(directory.logs[key]), 0) for key in keys}
        self._answer("checkpoint", lambda: directory.checkpoint(marks))

    def _delete(self) -> None:
        directory, key = self._opened(), self.random.choice(KEYS)
        self._answer("delete", lambda: directory.delete(*key))

    def _misname(self) -> None:
        directory, name = self._opened(), self.random.choice(("a/b", "", ".", "x" * 260, "ok.2"))
        self._answer("log of a strange name", lambda: directory.log(name, self.random.choice((0, -1))))

    def _fail(self) -> None:
        """Make one of the next changes fail, or the machine die in it."""
        occasion = self.random.randrange(12)
        kind = self.random.randrange(5)
        faults = self.disk.faults = Faults()
        if kind == 0:
            faults.fail_fsync_in = occasion
        elif kind == 1:
            faults.fail_write_in = occasion
        elif kind == 2:
            faults.capacity_bytes = self.disk.used_bytes + self.random.randrange(200)
        else:
            faults.crash_in = occasion

    def _die_inside(self) -> None:
        """Let the machine die inside a call that changes several files."""
        self.disk.faults = Faults(crash_in=self.random.randrange(9))
        self.random.choice(
            (self._truncate, self._advance, self._reset, self._delete, self._flush, self._stop)
        )()

    def _stop(self) -> None:
        """Stop cleanly, with the log ends as high watermarks."""
        directory, epoch = self._opened(), self.random.choice((-1, 3, 9))
        marks = {key: log.log_end for key, log in directory.logs.items()}
        self._answer("shut down", lambda: directory.shut_down(marks, epoch))
        self.directory = None
        self.disk.process_crash()
        self.disk.faults = Faults()

    def _end(self) -> None:
        """End the process in one of many ways; then perhaps damage files, inspect them, repair them."""
        random = self.random
        draw = random.random()
        if draw < 0.4:
            self._stop()
        else:
            self._leave()
        if 0.4 <= draw < 0.8:
            self.disk.power_loss(random.randrange)
        for _ in range(random.choice((0, 1, 1, 2)) if self.is_damaging else 0):
            damage(self.disk, random, self.older)
        if random.random() < (0.7 if self.is_damaging else 0.3):
            self._dump()
        if self.is_damaging and random.random() < 0.5:
            self._repair()
        self._keep_older()
        self._open()

    def _keep_older(self) -> None:
        if self.random.random() < 0.5:
            self.older = {path: read_file(self.disk, path) for path in files_of(self.disk)}

    def _dump(self) -> None:
        before = self.disk.snapshot()
        dump = Dump(self.random.random() < 0.5, self.random.random() < 0.5, self.disk)
        self._answer("dump", lambda: tuple(dump.lines(FOLDER)))
        self.disk.restore(before)

    def _repair(self) -> None:
        repairer = Repairer(self.fs, FOLDER, self.random.random() < 0.4, self.random.random() < 0.2)
        for key in self._answer("partitions", lambda: tuple(repairer.partitions())) or ():
            plan = self._answer("plan", lambda key=key: _plan_text(repairer, key))
            if plan and self.random.random() < 0.8:
                self._answer("repair", lambda key=key: repairer.apply(key))
        self.watch.note(DISK, "repaired", notes=tuple(repairer.notes))
        self.disk.process_crash()


def _plan_text(repairer: Repairer, key: tuple[str, int]) -> tuple[object, ...]:
    plan = repairer.plan(key)
    return () if plan is None else (plan.problems, plan.kept, plan.promised, plan.adoptable)


ACTIONS: dict[Callable[[StoreWalk], None], int] = {
    StoreWalk._append: 22,
    StoreWalk._follow: 16,
    StoreWalk._read: 14,
    StoreWalk._walk_headers: 2,
    StoreWalk._truncate: 6,
    StoreWalk._advance: 5,
    StoreWalk._reset: 3,
    StoreWalk._flush: 7,
    StoreWalk._store_epochs: 3,
    StoreWalk._checkpoint: 5,
    StoreWalk._delete: 1,
    StoreWalk._misname: 1,
    StoreWalk._fail: 5,
    StoreWalk._end: 12,
    StoreWalk._die_inside: 5,
}
