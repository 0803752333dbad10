"""Random histories of a broker's folder for `bench/replog/fuzz.py`: operations, and required contents.

A history is a function of its seed. It appends, flushes, rolls, truncates, moves log starts, changes epochs,
checkpoints and restarts three partitions, two of them alike but for their values, and ends with a clean stop,
a killed process or a power loss, also in the middle of an operation.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from replog.sim.disks.disk import CrashedError, SimFs
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.fs import make_directory, read_file
from replog.store.partition import PartitionLog
from replog.store.segments.records import Record, encode_batch

Files = dict[str, bytes]
Key = tuple[str, int]
Content = dict[int, tuple[int, bytes]]
"""The epoch and the value of the record at each offset."""

FOLDER = "data"
KEYS: tuple[Key, ...] = (("t", 0), ("t", 1), ("u", 0))
TWINS = KEYS[:2]


@dataclass(slots=True)
class Written:
    """The contents of one log, according to the requests to it."""

    content: Content = field(default_factory=dict)
    ever: dict[int, set[tuple[int, bytes]]] = field(default_factory=dict)
    bases: list[int] = field(default_factory=list)
    flushed: int = 0
    epoch: int = 0

    def note(self, offset: int, epoch: int, value: bytes) -> None:
        self.content[offset] = (epoch, value)
        self.ever.setdefault(offset, set()).add((epoch, value))

    def batch_start(self, offset: int) -> int:
        """Return the start of the batch that contains an offset."""
        return max((base for base in self.bases if base <= offset), default=0)

    def cut(self, end: int) -> None:
        self.content = {offset: entry for offset, entry in self.content.items() if offset < end}
        self.bases = [base for base in self.bases if base < end]
        self.flushed = min(self.flushed, end)


@dataclass(frozen=True, slots=True)
class History:
    """A folder as it was left, and the facts known about it; `copies` has its files at earlier times."""

    files: Files
    folders: frozenset[str]
    written: dict[Key, Written]
    config: LogConfig
    is_clean: bool
    copies: tuple[Files, ...]
    high_watermarks: dict[Key, set[int]]


def files_of(fs: SimFs, folder: str = FOLDER) -> tuple[Files, set[str]]:
    """Return the content of all files, and all folders."""
    files: Files = {}
    folders = {folder}
    for name in fs.listdir(folder):
        path = f"{folder}/{name}"
        if fs.is_dir(path):
            more, below = files_of(fs, path)
            files |= more
            folders |= below
        else:
            files[path] = read_file(fs, path)
    return files, folders


def disk_of(files: Files, folders: frozenset[str]) -> SimFs:
    """Make a disk with these files."""
    fs = SimFs()
    for folder in sorted(folders | {path.rpartition("/")[0] for path in files}):
        make_directory(fs, folder)
    for path, content in files.items():
        if content:
            fs.create(path).append(content)
        else:
            fs.create(path)
    return fs


class Writer:
    """One history in the making."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.config = LogConfig(
            segment_bytes=self.random.choice([500, 700, 2000, 20_000]),
            index_interval_bytes=self.random.choice([50, 200, 1000]),
            flush_messages=self.random.choice([None, None, None, 1, 5]),
            flush_on_roll=self.random.random() < 0.7,
        )
        self.fs = SimFs()
        self.directory = LogDirectory.open(self.fs, FOLDER, self.config)
        self.written = {key: Written() for key in KEYS[: self.random.choice([1, 2, 3, 3])]}
        for key in self.written:
            self.directory.log(*key)
        self.copies: list[Files] = []
        self.said: dict[Key, set[int]] = {key: {0} for key in self.written}
        self.counter = 0

    def run(self) -> History:
        """Perform some operations, and stop in some way."""
        operations = (
            [self.append] * 10
            + [self.flush] * 3
            + [self.truncate, self.advance_start, self.new_epoch, self.checkpoint] * 2
            + [self.copy, self.copy, self.reset, self.checkpoint, self.restart]
        )
        for _ in range(self.random.randint(5, 45)):
            self.random.choice(operations)()
        end = self.random.choice(["clean", "clean", "kill", "kill", "power", "kill inside", "power inside"])
        if end == "clean":
            self.stop_cleanly()
        elif end.endswith("inside"):
            self.die_inside(self.random.choice(operations))
        if end.startswith("power"):
            self.fs.power_loss(self.random.randrange)
        else:
            self.fs.process_crash()
        files, folders = files_of(self.fs)
        known = frozenset(folders), self.written, self.config, end == "clean"
        return History(files, *known, tuple(self.copies), self.said)

    def logs(self) -> list[tuple[Key, PartitionLog]]:
        """Choose a log, or the two that are alike."""
        key = self.random.choice(list(self.written))
        both = key in TWINS and TWINS[1] in self.written and self.random.random() < 0.8
        return [(key, self.directory.log(*key)) for key in (TWINS if both else (key,))]

    def settle(self) -> None:
        for key, written in self.written.items():
            written.flushed = self.directory.log(*key).flushed

    def append(self) -> None:
        logs = self.logs()
        sizes = [self.random.randint(1, 60) for _ in range(self.random.randint(1, 4))]
        self.counter += 1
        for key, log in logs:
            written = self.written[key]
            name = b"%s-%d/%06d/" % (key[0].encode(), key[1], self.counter)
            values = [name + b"%02d/" % n + b"v" * size for n, size in enumerate(sizes)]
            records = [Record(value, timestamp=self.counter) for value in values]
            base = log.log_end
            written.bases.append(base)
            for n, value in enumerate(values):
                written.note(base + n, written.epoch, value)
            if self.random.random() < 0.5:
                log.append_as_leader(encode_batch(records), written.epoch)
            else:
                log.append_as_follower(encode_batch(records, base_offset=base, leader_epoch=written.epoch))
        self.settle()

    def flush(self) -> None:
        for _, log in self.logs():
            log.flush()
        self.settle()

    def truncate(self) -> None:
        back = self.random.choice([1, 2, 5, 20])
        for key, log in self.logs():
            offset = max(log.log_end - back, 0)
            written = self.written[key]
            written.flushed = min(written.flushed, written.batch_start(offset))
            end = log.truncate_to(offset)
            written.cut(end)
        self.settle()

    def reset(self) -> None:
        forward = self.random.randint(0, 3)
        for key, log in self.logs():
            self.written[key].flushed = 0
            log.reset(log.log_end + forward)
            self.written[key].content.clear()
        self.settle()

    def advance_start(self) -> None:
        forward = self.random.choice([1, 3, 10])
        for _, log in self.logs():
            log.advance_log_start(min(log.log_start + forward, log.log_end))
        self.settle()

    def new_epoch(self) -> None:
        more = self.random.randint(1, 3)
        for key, log in self.logs():
            self.written[key].epoch += more
            if self.random.random() < 0.5:
                log.assign_epoch(self.written[key].epoch, log.log_end)

    def checkpoint(self) -> None:
        self.directory.checkpoint(self.some_high_watermarks())

    def some_high_watermarks(self) -> dict[Key, int]:
        logs = ((key, self.directory.log(*key)) for key in self.written)
        chosen = {key: self.random.randint(log.log_start, log.log_end) for key, log in logs}
        for key, high_watermark in chosen.items():
            self.said[key].add(high_watermark)
        return chosen

    def copy(self) -> None:
        self.copies.append(files_of(self.fs)[0])

    def stop_cleanly(self) -> None:
        self.directory.shut_down(self.some_high_watermarks(), self.random.randint(0, 9))
        for key, written in self.written.items():
            written.flushed = self.directory.logs[key].flushed

    def restart(self) -> None:
        if self.random.random() < 0.5:
            self.stop_cleanly()
        self.fs.process_crash()
        self.directory = LogDirectory.open(self.fs, FOLDER, self.config)
        self.settle()

    def die_inside(self, operation: Callable[[], None]) -> None:
        self.fs.faults.crash_in = self.random.randrange(12)
        with suppress(CrashedError):
            operation()
        self.fs.faults.crash_in = None
