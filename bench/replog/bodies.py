"""What a broker's memory and processor time depend on: batches, or their bytes too.

    python bench/replog/bodies.py [--megabytes 200] [--body-bytes 10000] [--rounds 3] [--directory DIR]

Brokers are those of the demo, on real files without syncing, in one process on simulated time.  Memory: one
broker takes the batches of a producer (acks=1); its growth by `tracemalloc` and of the process's resident
pages, and then that of a start on the same files.  Time: three brokers, a producer with acks=all, and a
consumer that reads along; seconds of processor time for all of them.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import shutil
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from replog.core.broker.state import Config
from replog.core.effects import Effect, Send, SetTimer, Timer
from replog.core.messages import FetchReply, FetchRequest, Message, ProduceReply, ProduceRequest
from replog.core.types import CONSUMER, Batch, Error
from replog.demo.files import BrokerFiles
from replog.run.files import FileStorage
from replog.sim.cluster.node import Network
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.world import World
from replog.store.files.config import LogConfig
from replog.store.files.fs import OsFs

LIMIT_MS = 3_600_000


class Files(BrokerFiles):
    """A broker's files with segments of Kafka's size."""

    def __init__(self, path: Path) -> None:
        FileStorage.__init__(self, OsFs(), str(path), LogConfig(flush_on_roll=False))


class Wire(Network):
    """A network that takes 1 ms."""

    def delays(self, source: int, to: int, message: Message) -> Iterable[int]:
        del source, to, message
        return (1,)


@dataclass
class Writer:
    """Sends fresh bodies, the next when the last was answered."""

    batches: int
    body_bytes: int
    acks: int
    sent: int = 0
    answered: int = 0

    def receive(self, message: Message, now_ms: int) -> list[Effect]:
        assert isinstance(message, ProduceReply), message
        assert message.error is Error.NONE, message
        self.answered += 1
        return self._next()

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        return self._next()

    def _next(self) -> list[Effect]:
        if self.sent == self.batches:
            return []
        self.sent += 1
        batch = Batch(0, -1, 1, body=os.urandom(self.body_bytes))
        return [Send(0, ProduceRequest(self.sent, batch, self.acks, 30_000))]


@dataclass
class Reader:
    """Reads along, and counts bytes."""

    position: int = 0
    read_bytes: int = 0
    correlation: int = 0

    def receive(self, message: Message, now_ms: int) -> list[Effect]:
        if isinstance(message, FetchReply) and message.correlation == self.correlation:
            for batch in message.batches:
                self.read_bytes += len(batch.body)
                self.position = batch.next_offset
        return []

    def fire(self, timer: Timer, token: int, now_ms: int) -> list[Effect]:
        self.correlation += 1
        fetch = FetchRequest(self.correlation, CONSUMER, -1, self.position)
        return [SetTimer(timer, 20, token), Send(0, fetch)]


def cluster(directory: Path, brokers: int) -> World:
    """Start a cluster, of which broker 0 leads."""
    folders = (Files(directory / f"broker-{number}") for number in count())
    options = WorldOptions(brokers, min(brokers, 2), config=Config(), make_storage=lambda: next(folders))
    world = World(options, Wire())
    for broker in range(brokers):
        world.restart(broker)
    until = world.now_ms + 10_000
    while world.now_ms < until and world.step():
        pass
    assert (world.image.leader, len(world.image.isr)) == (0, brokers), world.image
    return world


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def memory(directory: Path, batches: int, body_bytes: int, *, traced: bool) -> tuple[float, float]:
    """Return bytes a batch that a broker has grown by, and those of a start on its files."""
    world = cluster(directory, 1)
    measure = (lambda: tracemalloc.get_traced_memory()[0]) if traced else resident_bytes
    if traced:
        tracemalloc.start()
    before = measure()
    writer = Writer(batches, body_bytes, 1)
    world.start_client(-10, writer)
    while writer.answered < batches and world.step():
        pass
    gc.collect()
    grown = (measure() - before) / batches
    world.stop(0)
    del world
    gc.collect()
    before = measure()
    again = Files(directory / "broker-0")
    recovered = again.recover()
    gc.collect()
    started = (measure() - before) / batches
    assert recovered.log.leo == batches
    again.abandon()
    tracemalloc.stop()
    return grown, started


def processor_seconds(directory: Path, batches: int, body_bytes: int) -> float:
    """Return the time for writing, replicating and reading."""
    world = cluster(directory, 3)
    writer, reader = Writer(batches, body_bytes, -1), Reader()
    world.start_client(-10, writer)
    world.start_client(-20, reader)
    began = time.process_time()
    while (writer.answered < batches or reader.position < batches) and world.step():
        pass
    taken = time.process_time() - began
    assert reader.read_bytes == batches * body_bytes
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--body-bytes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    batches = options.megabytes * 1_000_000 // options.body_bytes
    base = options.directory / f"replog-bodies-{os.getpid()}"

    def folder() -> Path:
        shutil.rmtree(base, ignore_errors=True)
        return base

    try:
        # Resident pages first: a tracer leaves pages of its own.
        for traced in (False, True):
            grown, started = memory(folder(), batches, options.body_bytes, traced=traced)
            kind = "by tracemalloc" if traced else "resident"
            print(f"{kind:16}{grown:10.0f} B a batch{started:10.0f} B a batch after a start")
        times = [processor_seconds(folder(), batches, options.body_bytes) for _ in range(options.rounds)]
    finally:
        shutil.rmtree(base, ignore_errors=True)
    median = statistics.median(times)
    rate = options.megabytes / median
    print(
        f"{'three brokers':16}{min(times):10.2f} s, median {statistics.median(times):.2f} s, {rate:.0f} MB/s"
    )


if __name__ == "__main__":
    main()
