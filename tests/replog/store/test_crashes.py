"""A log against a list: any sequence of operations, crashes and power losses, at any change of the disk."""

from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from replog.core.log.epochs import EpochCache
from replog.sim.disks.disk import CrashedError, SimFs
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.segments.records import Record, decode_batch, encode_batch

KEY = ("orders", 0)
CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=150)

OPERATIONS = ("append", "flush", "truncate", "checkpoint", "advance_start", "restart_cleanly")


@dataclass(slots=True)
class Model:
    """The required contents: batches of (base, epoch, values), the first `flushed` offsets for certain."""

    batches: list[tuple[int, int, tuple[bytes, ...]]] = field(default_factory=list)
    start: int = 0
    flushed: int = 0
    base: int = 0

    @property
    def end(self) -> int:
        return self.batches[-1][0] + len(self.batches[-1][2]) if self.batches else self.base

    def ends(self) -> list[int]:
        """List the offsets at which the log may end: batch boundaries."""
        return [self.base, *(base + len(values) for base, _, values in self.batches)]

    def cut(self, end: int) -> None:
        self.batches = [b for b in self.batches if b[0] + len(b[2]) <= end]
        self.flushed = min(self.flushed, self.end)
        self.start = min(self.start, self.end)

    def floor(self, offset: int) -> int:
        return max(end for end in self.ends() if end <= offset)


class LogAgainstList(RuleBasedStateMachine):
    """Every rule changes log and list alike; a crash during a rule leaves the list a choice."""

    @initialize(syncs_on_roll=st.booleans())
    def start(self, syncs_on_roll: bool) -> None:
        self.config = replace(CONFIG, flush_on_roll=syncs_on_roll)
        self.fs = SimFs()
        self.model = Model()
        self.epoch = 0
        self.counter = 0
        self.expected_clean = False
        self.directory = LogDirectory.open(self.fs, "data", self.config)
        self.log = self.directory.log(*KEY)

    @rule(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3), fat=st.booleans())
    def append(self, sizes: list[int], fat: bool) -> None:
        for size in sizes:
            values = tuple(b"%d" % self.counter + b"." * 40 * fat for _ in range(size))
            self.counter += 1
            self.model.batches.append((self.model.end, self.epoch, values))
            self.log.append_as_leader(encode_batch([Record(v) for v in values]), self.epoch)

    @rule()
    def bump_epoch(self) -> None:
        self.epoch += 1
        self.log.assign_epoch(self.epoch, self.log.log_end)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.model.flushed = self.model.end

    @rule()
    def checkpoint(self) -> None:
        self.directory.checkpoint({KEY: self.log.log_start})

    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        offset = max(self.log.segment_bases[0], self.model.end - back)
        self.model.cut(offset)
        assert self.log.truncate_to(offset) == self.model.end

    @rule(forward=st.integers(0, 9))
    def advance_start(self, forward: int) -> None:
        offset = min(self.model.start + forward, self.model.end)
        self.log.advance_log_start(offset)
        self.model.start = max(self.model.start, offset)

    @rule(beyond=st.integers(0, 3))
    def reset(self, beyond: int) -> None:
        offset = self.model.end + beyond
        self.log.reset(offset)
        self.model = Model([], offset, offset, offset)

    @rule()
    def restart_cleanly(self) -> None:
        self.directory.shut_down({KEY: self.log.log_start}, 7)
        self.model.flushed = self.model.end
        self.reopen()
        assert self.directory.was_clean
        assert self.log.log_end == self.model.end

    @rule()
    def kill_process(self) -> None:
        self.fs.process_crash()
        self.reopen()
        assert self.log.log_end == self.model.end, "the page cache survives the process"

    @rule(seed=st.integers(0, 2**32))
    def cut_power(self, seed: int) -> None:
        self.fs.power_loss(Random(seed).randrange)
        self.reopen()
        assert self.model.flushed <= self.log.log_end <= self.model.end
        self.settle()

    @rule(
        what=st.sampled_from(
            ["append", "flush", "truncate", "checkpoint", "advance_start", "restart_cleanly"]
        ),
        after=st.integers(0, 25),
        seed=st.integers(0, 2**32),
        by_power=st.booleans(),
    )
    def die_inside(self, what: str, after: int, seed: int, by_power: bool) -> None:
        """Start an operation, die at its n-th change of the disk, and accept the possible results."""
        flushed, end = self.model.flushed, self.model.end
        self.fs.faults.crash_in = after
        arguments = {"append": ([2, 1, 3], True), "truncate": (7,), "advance_start": (5,)}.get(what, ())
        lowest = self.model.floor(max(end - 7, self.log.segment_bases[0])) if what == "truncate" else end
        batches, start = list(self.model.batches), self.model.start
        try:
            getattr(self, what)(*arguments)
            self.fs.faults.crash_in = None
        except CrashedError:
            if by_power:
                self.fs.power_loss(Random(seed).randrange)
            else:
                self.fs.process_crash()
            if what == "truncate":
                self.model.batches, self.model.start = batches, start
            least = min(flushed, lowest) if by_power else lowest
            self.reopen()
            assert least <= self.log.log_end <= self.model.end
            self.settle(loosely=what == "advance_start")

    def reopen(self) -> None:
        self.directory = LogDirectory.open(self.fs, "data", self.config)
        self.log = self.directory.logs[KEY] if KEY in self.directory.logs else self.directory.log(*KEY)

    def settle(self, loosely: bool = False) -> None:
        """Adopt the result of a crash: the log must be a prefix of the list, and is durable from then on."""
        assert self.log.log_end in self.model.ends(), "batches are whole"
        self.model.cut(self.log.log_end)
        self.model.flushed = self.model.end
        if loosely:
            self.model.start = self.log.log_start

    @invariant()
    def holds_the_list(self) -> None:
        self.model.flushed = max(self.model.flushed, min(self.log.flushed, self.model.end))
        self.model.start = self.start_after_restart()
        assert self.log.log_end == self.model.end
        kept = [b for b in self.model.batches if b[0] + len(b[2]) > self.log.log_start]
        assert self.contents() == kept
        for base, _, values in reversed(kept):
            last = base + len(values) - 1
            assert self.log.read(last, 1)[:8] == base.to_bytes(8, "big"), "the index leads to every batch"

    def start_after_restart(self) -> int:
        """Accept that a crash undoes an unsaved log start, not that it raises one."""
        assert self.log.log_start <= self.model.start
        return self.log.log_start

    def contents(self) -> list[tuple[int, int, tuple[bytes, ...]]]:
        found = []
        offset = self.log.log_start
        while offset < self.log.log_end:
            data = self.log.read(offset, 300)
            assert data, "what is below the log end can be read"
            for batch in split(data):
                records = decode_batch(batch)
                epoch = int.from_bytes(batch[12:16], "big")
                found.append((records[0].offset, epoch, tuple(r.value or b"" for r in records)))
                offset = records[-1].offset + 1
        return found

    @invariant()
    def epochs_fit_the_records(self) -> None:
        expected = EpochCache()
        for base, epoch, _ in self.model.batches:
            if epoch > expected.latest:
                expected.assign(epoch, base)
        expected.truncate_from_start(self.log.log_start)
        known = [e for e in self.log.epochs if e.start_offset < self.log.log_end]
        assert known == [e for e in expected.entries if e[1] < self.log.log_end]

    @precondition(lambda self: self.counter % 5 == 0)
    @invariant()
    def reopening_changes_nothing(self) -> None:
        before = self.fs.snapshot()
        self.fs.process_crash()
        first = LogDirectory.open(self.fs, "data", self.config)
        state = {k: (log.log_start, log.log_end, log.epochs) for k, log in first.logs.items()}
        first.abandon()
        second = LogDirectory.open(self.fs, "data", self.config)
        assert {k: (log.log_start, log.log_end, log.epochs) for k, log in second.logs.items()} == state
        assert [log.recovery.cut_bytes for log in second.logs.values()] == [0] * len(state)
        self.fs.restore(before)


def split(data: bytes) -> list[bytes]:
    """Split the result of a read into batches."""
    batches = []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        batches.append(data[:size])
        data = data[size:]
    return batches


TestLogAgainstList = LogAgainstList.TestCase
TestLogAgainstList.settings = settings(max_examples=50, stateful_step_count=25, deadline=None)
