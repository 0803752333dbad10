"""How long a cluster takes to be ready, and a broker to serve again after a clean stop.

    python bench/replog/start.py [--runs 5]                                   a new cluster of three brokers
    python bench/replog/start.py --gigabytes 10 [--batch-bytes 65536] [--directory DIR]

A cluster is ready when a record has been acknowledged with acks=all, to a topic that its client has had
created.  A broker serves again when it answers a fetch of the last record; its log is one partition,
written through the protocol.  Both times are by the clock, from the start of the process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from chaos import BIN, Cluster

from replog.run.serve.codec import INT32, Body
from replog.run.serve.frames import Api, answered, asked
from replog.run.serve.layout import KioLayouts
from replog.store.segments.records import Record, encode_batch

LAYOUTS = KioLayouts()
TOPIC = "orders"
VERSIONS = {Api.PRODUCE: 9, Api.FETCH: 12, Api.METADATA: 9}
UNDER_WAY = 8
PATIENCE_S = 120


class Client:
    """A connection to a broker."""

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)

    def ask(self, api: Api, body: dict[str, Any]) -> Body:
        """Send a request and return the response."""
        self.socket.sendall(request(api, body))
        return self.answer(api)

    def answer(self, api: Api) -> Body:
        """Return the next response."""
        (size,) = INT32.unpack(self._take(4))
        return answered(LAYOUTS, api, VERSIONS[api], self._take(size))

    def _take(self, size: int) -> bytes:
        data = self.socket.recv(size, socket.MSG_WAITALL)
        if len(data) < size:
            raise ConnectionError("the broker has closed the connection")
        return data


def request(api: Api, body: dict[str, Any]) -> bytes:
    """Return a request with its size before it."""
    return asked(LAYOUTS, api, VERSIONS[api], body, "start")


def produce(batch: bytes) -> bytes:
    """Return a request to write a batch."""
    data = ({"name": TOPIC, "partition_data": ({"index": 0, "records": batch},)},)
    return request(Api.PRODUCE, {"transactional_id": None, "acks": -1, "timeout": 30_000, "topic_data": data})


def written(client: Client) -> int:
    """Return the offset of a batch that was sent; raises `ValueError` if it was refused."""
    (topic,) = client.answer(Api.PRODUCE)["responses"]
    (answer,) = topic["partition_responses"]
    if answer["error_code"]:
        raise ValueError(f"error {answer['error_code']}")
    return int(answer["base_offset"])


def leader(client: Client) -> int:
    """Have the topic created, and return who leads it."""
    body = {"topics": ({"name": TOPIC},), "allow_auto_topic_creation": True}
    (topic,) = client.ask(Api.METADATA, body)["topics"]
    return int(topic["partitions"][0]["leader_id"]) if topic["partitions"] else -1


def seconds_until_ready(folder: Path) -> tuple[float, float]:
    """Return when a new cluster said that it serves, and when it had written a record."""
    began = time.monotonic()
    cluster = Cluster(folder, 0, is_recorded=False)
    said = time.monotonic() - began
    try:
        while True:
            try:
                first = leader(Client(cluster.servers[0]))
                if first >= 0:
                    client = Client(cluster.servers[first])
                    client.socket.sendall(produce(encode_batch([Record(b"first", timestamp=1)])))
                    written(client)
                    return said, time.monotonic() - began
            except (OSError, ValueError):
                pass
            time.sleep(0.02)
    finally:
        cluster.stop()


def serve(folder: Path) -> tuple[subprocess.Popen[str], Client, float]:
    """Start a broker; return it, a client, and when it said that it serves."""
    command = [str(BIN / "replog"), "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    server = process.stdout.readline().split(" at ")[-1].strip()
    return process, Client(server), time.monotonic()


def fill(client: Client, size: int, batch_bytes: int) -> int:
    """Write `size` bytes in batches; return the last offset."""
    sent = produce(encode_batch([Record(os.urandom(batch_bytes), timestamp=1)]))
    while leader(client) < 0:
        time.sleep(0.02)
    last = -1
    for number in range(size // batch_bytes + UNDER_WAY):
        if number < size // batch_bytes:
            client.socket.sendall(sent)
        if number >= UNDER_WAY:
            last = written(client)
    return last


def is_read(client: Client, offset: int) -> bool:
    """Return whether the broker returns the record of an offset."""
    place = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1}
    wanted = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1}
    topics = client.ask(Api.FETCH, wanted | {"topics": ({"topic": TOPIC, "partitions": (place,)},)})
    return bool(topics["responses"] and topics["responses"][0]["partitions"][0]["records"])


def seconds_to_restart(folder: Path, size: int, batch_bytes: int, runs: int) -> None:
    """Fill a log, and print how long stops and starts take."""
    began = time.monotonic()
    process, client, _ = serve(folder)
    last = fill(client, size, batch_bytes)
    print(
        f"{size / 1e9:.1f} GB in {last + 1} batches, written in {time.monotonic() - began:.0f} s", flush=True
    )
    for number in (signal.SIGTERM,) * runs + (signal.SIGKILL,):
        began = time.monotonic()
        process.send_signal(number)
        process.wait()
        stopped = time.monotonic()
        process, client, said = serve(folder)
        while not is_read(client, last):
            time.sleep(0.01)
        print(
            f"{number.name}: stopped in {stopped - began:.2f} s, serving after {said - stopped:.2f} s,"
            f" the last record read after {time.monotonic() - stopped:.2f} s",
            flush=True,
        )
    process.terminate()
    process.wait()


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=0)
    parser.add_argument("--batch-bytes", type=int, default=1 << 16)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="start-", dir=options.directory))
    try:
        if options.gigabytes:
            size = int(options.gigabytes * 1e9)
            seconds_to_restart(folder / "data", size, options.batch_bytes, options.runs)
            return
        times = [seconds_until_ready(folder / str(run)) for run in range(options.runs)]
        for said, ready in times:
            print(f"serving after {said:.2f} s, a record written after {ready:.2f} s")
        print(f"median {statistics.median(ready for _, ready in times):.2f} s")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
