"""Folders to damage: a stopped broker's, and ways to change its files."""

from collections.abc import Callable
from dataclasses import replace

from replog.sim.disks.disk import SimFs
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.fs import read_file, replace_file
from replog.store.segments.records import Record, encode_batch

KEY = ("t", 0)
FOLDER = "data/t-0"
CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=200)
LAZY = replace(CONFIG, flush_on_roll=False)
LARGE = replace(CONFIG, segment_bytes=100_000)
EPOCHS = ((0, 0), (1, 20), (2, 40))


def stopped(
    clean: bool = False, saved: bool = True, config: LogConfig = CONFIG, synced: bool = False
) -> SimFs:
    """Make a directory with 30 batches of two records, epoch i // 10, stopped cleanly or not.

    With `LAZY` nothing is synced, with `LARGE` all is in one segment.
    """
    fs = SimFs()
    directory = LogDirectory.open(fs, "data", config)
    log = directory.log(*KEY)
    for i in range(30):
        log.append_as_leader(encode_batch([Record(b"%d" % i), Record(b"x" * 20)]), i // 10)
    if synced:
        log.flush()
    if saved:
        directory.checkpoint({KEY: 50})
    if clean:
        directory.shut_down({KEY: 50}, 4)
    else:
        directory.abandon()
        fs.process_crash()
    return fs


def reopened(fs: SimFs, config: LogConfig = CONFIG) -> LogDirectory:
    return LogDirectory.open(fs, "data", config)


def names(fs: SimFs, suffix: str) -> list[str]:
    return [f"{FOLDER}/{name}" for name in fs.listdir(FOLDER) if name.endswith(suffix)]


def contents(fs: SimFs) -> dict[str, bytes]:
    """Return the partition's files."""
    return {path: read_file(fs, path) for path in names(fs, "")}


def edit(fs: SimFs, path: str, change: Callable[[bytearray], object]) -> None:
    content = bytearray(read_file(fs, path))
    change(content)
    directory, _, name = path.rpartition("/")
    replace_file(fs, directory, name, bytes(content))


def flip(fs: SimFs, path: str, at: int, bit: int = 0) -> None:
    """Flip one bit."""
    edit(fs, path, lambda content: content.__setitem__(at, content[at] ^ 1 << bit))
