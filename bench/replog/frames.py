"""Send damaged and senseless requests to a broker, and look what it costs the others.

    python bench/replog/frames.py --frames 1000000 [--seed 0] [--connections 16] [--brokers 1]

A frame is a request of some API and version with chosen values, then perhaps changed: bytes, length, the size
before it, or all of it.  Each connection sends a frame, waits for the answer, the end of the connection or
50 ms, and sends the next.  Meanwhile a bystander opens a connection ten times a second, writes a record with
acks=all and reads it back.

Prints resident pages and file descriptors of the broker (with `--brokers 3`: of broker 0, of a cluster) every
tenth of the way, and in the end how the bystander fared and what the broker wrote to stderr.  Ends with 1 if
the broker has ended, the bystander was not served within 10 s, or something was on stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos import BIN

from replog.run.serve.codec import INT16, INT32, MalformedError, Struct, write
from replog.run.serve.frames import VERSIONS, Api, RefusedError, parse
from replog.run.serve.layout import KioLayouts
from replog.store.segments.records import Record, encode_batch, encode_unsigned

LAYOUTS = KioLayouts()
BASES = 4_000
PATIENCE_S = 0.05
SERVED_S = 10.0
OWN = ("fuzz-a", "fuzz-b")
"""The topics and groups that frames are about; only few frames may create others."""
NAMES = (*OWN, *OWN, "", "fuzz-c", "__consumer_offsets", "..", "a/b", "\0", "x" * 300, "\u00e4")
OTHER_NAMES = 0.001
BATCH = encode_batch([Record(b"fuzz", timestamp=1)] * 3)
NUMBERS = (0, 0, 0, 1, 2, 3, -1, -2, 127, 300, 1 << 15, 1 << 31, 1 << 63, -(1 << 31), -(1 << 63))


def some(chance: random.Random, layout: Struct) -> dict[str, Any]:
    """Return a body with values of the right types."""
    return {each.name: value(chance, each) for each in layout.fields if each.tag < 0 or chance.random() < 0.3}


def value(chance: random.Random, place: Any) -> Any:
    """Return a value of a field."""
    if place.is_nullable and chance.random() < 0.1:
        return None
    if place.is_array:
        return tuple(single(chance, place.kind) for _ in range(chance.choice((0, 1, 1, 1, 2, 5))))
    return single(chance, place.kind)


def single(chance: random.Random, kind: Any) -> Any:
    """Return a value of a type."""
    if isinstance(kind, Struct):
        return some(chance, kind)
    if kind == "string":
        return chance.choice(NAMES)
    if kind == "uuid":
        return chance.randbytes(16)
    if kind in ("bytes", "records"):
        return chance.choice((b"", BATCH, BATCH, BATCH + BATCH, changed(chance, BATCH), chance.randbytes(80)))
    if kind == "bool":
        return chance.random() < 0.5
    if kind == "float64":
        return chance.choice((0.0, -1.0, float("nan"), float("inf")))
    bits = {"int8": 8, "int16": 16, "uint16": 16, "error_code": 16, "int32": 32, "timedelta_i32": 32}.get(
        kind, 64
    )
    number = chance.choice(NUMBERS) if chance.random() < 0.8 else chance.getrandbits(64)
    least = 0 if kind == "uint16" else -(1 << bits - 1)
    return (number - least) % (1 << bits) + least


def base(chance: random.Random) -> bytes:
    """Return a request with its header."""
    api = chance.choice(list(Api))
    version = chance.randint(*VERSIONS[api])
    layout, is_flexible = LAYOUTS.request(api, version)
    head = (
        INT16.pack(api) + INT16.pack(version) + INT32.pack(chance.getrandbits(31)) + INT16.pack(4) + b"fuzz"
    )
    return head + (encode_unsigned(0) if is_flexible else b"") + write(layout, some(chance, layout))


def changed(chance: random.Random, data: bytes) -> bytes:
    """Return `data` with one to four other bytes."""
    parts = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        parts[chance.randrange(len(parts))] = chance.choice((0, 1, 127, 128, 255, chance.getrandbits(8)))
    return bytes(parts)


def frame(chance: random.Random, bases: list[bytes]) -> tuple[str, bytes]:
    """Return what was done to a request, and its bytes with the size before it."""
    data = chance.choice(bases)
    kind = chance.choices(
        ("as it is", "bytes", "cut", "joined", "size", "noise"), weights=(30, 40, 10, 10, 5, 5)
    )[0]
    size = None
    if kind == "bytes":
        data = changed(chance, data)
    elif kind == "cut":
        data = data[: chance.randrange(len(data))]
    elif kind == "joined":
        other = chance.choice(bases)
        data = data[: chance.randrange(len(data))] + other[chance.randrange(len(other)) :]
    elif kind == "size":
        size = chance.choice((-1, 0, 7, len(data) + 1, len(data) + 10, 1 << 20, (1 << 31) - 1, -(1 << 31)))
    elif kind == "noise":
        data = chance.randbytes(chance.randint(0, 60))
    if kind != "as it is" and chance.random() > OTHER_NAMES and creates_other(data):
        return frame(chance, bases)
    return kind, INT32.pack(len(data) if size is None else size) + data


def creates_other(data: bytes) -> bool:
    """Return whether a frame would create a topic with a new name, or many partitions."""
    if data[:2] not in (INT16.pack(Api.CREATE_TOPICS), INT16.pack(Api.METADATA)):
        return False
    try:
        topics = parse(LAYOUTS, data).body["topics"] or ()
    except (MalformedError, RefusedError):
        return False
    return any(each["name"] not in NAMES or each.get("num_partitions", 1) > 3 for each in topics)


@dataclass
class Fuzzing:
    """Connections that send frames until all are sent."""

    port: int
    seed: int
    left: int
    ends: Counter[str] = field(default_factory=Counter)

    async def connection(self, number: int, bases: list[bytes]) -> None:
        """Send frames, and connect again where the broker has ended the connection."""
        chance = random.Random(f"{self.seed}/{number}")
        streams = None
        while self.left > 0:
            self.left -= 1
            kind, data = frame(chance, bases)
            try:
                if streams is None:
                    streams = await asyncio.open_connection("127.0.0.1", self.port)
                streams[1].write(data)
                async with asyncio.timeout(PATIENCE_S):
                    size = INT32.unpack(await streams[0].readexactly(4))[0]
                    await streams[0].readexactly(size)
                self.ends[f"{kind}: answered"] += 1
            except (OSError, EOFError, TimeoutError) as error:
                self.ends[f"{kind}: {'no answer' if isinstance(error, TimeoutError) else 'ended'}"] += 1
                if streams is not None:
                    streams[1].transport.abort()
                streams = None
        if streams is not None:
            streams[1].transport.abort()


BYSTANDER = """
import sys, time
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
place, number = TopicPartition("bystander", 0), 0
while True:
    began = time.monotonic()
    producer = KafkaProducer(bootstrap_servers=sys.argv[1], acks="all", request_timeout_ms=60000)
    offset = producer.send("bystander", b"%d" % number).get(60).offset
    producer.close()
    reader = KafkaConsumer(bootstrap_servers=sys.argv[1], consumer_timeout_ms=60000)
    reader.assign([place])
    reader.seek(place, offset)
    assert next(reader).value == b"%d" % number
    reader.close()
    print(time.monotonic() - began, flush=True)
    number += 1
    time.sleep(0.1)
"""


def state(pid: int) -> str:
    """Return resident pages and descriptors of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    pages = next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS"))
    return f"{int(pages) / 1024:.0f} MB, {len(list(Path(f'/proc/{pid}/fd').iterdir()))} descriptors"


async def fuzz(fuzzing: Fuzzing, connections: int, report: Callable[[int], None]) -> None:
    """Run all connections, and report every tenth of the way."""
    chance = random.Random(fuzzing.seed)
    bases = [base(chance) for _ in range(BASES)]
    whole = fuzzing.left
    tasks = [asyncio.ensure_future(fuzzing.connection(number, bases)) for number in range(connections)]
    done = 0
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0.2)
        if whole - fuzzing.left >= (done + 1) * whole // 10:
            done += 1
            report(whole - max(fuzzing.left, 0))
    await asyncio.gather(*tasks)


def main() -> int:
    """Run the broker, the frames and the bystander."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--brokers", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="frames-") as folder:
        several = ["cluster", "--brokers", str(options.brokers)] if options.brokers > 1 else ["serve"]
        errors = Path(folder) / "stderr"
        command = [str(BIN / "replog"), *several, f"{folder}/data", "--port", "0"]
        with errors.open("w") as to:
            broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=to, text=True)
        assert broker.stdout is not None
        servers = broker.stdout.readline().split(" at ")[-1].strip().split(",")
        pid = broker.pid
        if options.brokers > 1:
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[1])
        times = (Path(folder) / "times").open("w+")
        bystander = subprocess.Popen([sys.executable, "-c", BYSTANDER, servers[0]], stdout=times)
        began = time.monotonic()
        try:
            time.sleep(3)
            print(f"before: {state(pid)}", flush=True)
            fuzzing = Fuzzing(int(servers[0].rpartition(":")[2]), options.seed, options.frames)
            asyncio.run(
                fuzz(
                    fuzzing,
                    options.connections,
                    lambda n: print(
                        f"{n} frames: {state(pid)}, {time.monotonic() - began:.0f} s", flush=True
                    ),
                )
            )
            time.sleep(3)
            is_served = bystander.poll() is None
            print(f"after: {state(pid)}")
        finally:
            bystander.kill()
            bystander.wait()
            broker.terminate()
            broker.wait(60)
        times.seek(0)
        waits = sorted(map(float, times))
        for end, count in sorted(fuzzing.ends.items()):
            print(f"{count:8} {end}")
        middle, worst = waits[len(waits) // 2], waits[-1]
        print(f"bystander: {len(waits)} times served, median {middle:.2f} s, worst {worst:.2f} s")
        said = errors.read_text()
        print(said[-4_000:])
        return int(not is_served or worst > SERVED_S or bool(said) or broker.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
