"""What the log costs beside a plain file: append, recovery, read; all figures of a run side by side.

    python bench/replog/store.py [--megabytes 256] [--rounds 5] [--directory DIR]

Records of 1 KB in batches of 100, encoded beforehand (a broker stores what producers encode). Each round
writes the same bytes to a plain file and to a log without syncing, alternating which goes first; the ratio
is taken within a round, and the median of the rounds is reported.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from replog.store.files.config import LogConfig
from replog.store.files.findings import OpenPoint
from replog.store.files.fs import OsFs
from replog.store.partition import PartitionLog
from replog.store.segments.records import Record, encode_batch

RECORD_BYTES = 1024
BATCH_RECORDS = 100
CONFIG = LogConfig(flush_on_roll=False)
MEGA = 1e6


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def write_plain(path: Path, batch: bytes, count: int) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    for _ in range(count):
        os.write(descriptor, batch)
    os.close(descriptor)


def append_all(log: PartitionLog, batch: bytes, count: int) -> None:
    for _ in range(count):
        log.append_as_leader(batch, 0)


def copy_all(source: PartitionLog, target: PartitionLog) -> None:
    while target.log_end < source.log_end:
        target.append_as_follower(source.read(target.log_end, 1 << 20))


def read_all(log: PartitionLog) -> None:
    offset = 0
    while data := log.read(offset, 1 << 20):
        size = len(data)
        offset += BATCH_RECORDS * (size // BATCH_BYTES)


def measure(directory: Path, count: int, round_number: int) -> dict[str, float]:
    """Return seconds by what was done, in one round."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    fs = OsFs()
    log = PartitionLog.open(fs, str(directory / "t-0"), CONFIG)
    plain, appended = (
        lambda: write_plain(directory / "plain", BATCH, count),
        lambda: append_all(log, BATCH, count),
    )
    times: dict[str, float] = {}
    pair = [("plain file write", plain), ("append as leader", appended)]
    for name, work in pair if round_number % 2 else reversed(pair):
        times[name] = seconds(work)
    (directory / "plain").unlink()
    times["read, 1 MB a fetch"] = seconds(lambda: read_all(log))
    follower = PartitionLog.open(fs, str(directory / "t-1"), CONFIG)
    times["fetch and append as follower"] = seconds(lambda: copy_all(log, follower))
    follower.close()
    shutil.rmtree(directory / "t-1")
    log.flush()
    log.close()
    times["recovery, every CRC"] = seconds(
        lambda: PartitionLog.open(fs, str(directory / "t-0"), CONFIG).close()
    )
    closing = PartitionLog.open(fs, str(directory / "t-0"), CONFIG)
    closing.seal()
    closing.close()
    clean = OpenPoint(was_clean=True)
    times["open after a clean stop"] = seconds(
        lambda: PartitionLog.open(fs, str(directory / "t-0"), CONFIG, clean).close()
    )
    times["recovery, one record a batch"] = seconds_to_recover_single(directory, count)
    return times


def seconds_to_recover_single(directory: Path, count: int) -> float:
    """Recover a log of one-record batches, scaled to the bytes of the others."""
    log = PartitionLog.open(OsFs(), str(directory / "t-2"), CONFIG)
    batches = count * BATCH_RECORDS // 10
    for _ in range(batches):
        log.append_as_leader(SINGLE, 0)
    log.flush()
    log.close()
    taken = seconds(lambda: PartitionLog.open(OsFs(), str(directory / "t-2"), CONFIG).close())
    return taken * count * BATCH_BYTES / (batches * len(SINGLE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    count = max(int(options.megabytes * MEGA) // BATCH_BYTES, 1)
    written = count * BATCH_BYTES / MEGA
    base = options.directory / f"replog-bench-{os.getpid()}"
    try:
        rounds = [measure(base, count, number) for number in range(options.rounds)]
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(
        f"{written:.0f} MB in batches of {BATCH_RECORDS} x {RECORD_BYTES} B, median of {len(rounds)} rounds\n"
    )
    print(f"{'':32}{'MB/s':>10}{'of plain write':>16}")
    for name in rounds[0]:
        rate = statistics.median(written / times[name] for times in rounds)
        ratio = statistics.median(times["plain file write"] / times[name] for times in rounds)
        print(f"{name:32}{rate:10.0f}{ratio:15.0%}")


BATCH = encode_batch([Record(os.urandom(RECORD_BYTES), timestamp=n) for n in range(BATCH_RECORDS)])
BATCH_BYTES = len(BATCH)
SINGLE = encode_batch([Record(os.urandom(RECORD_BYTES))])

if __name__ == "__main__":
    main()
