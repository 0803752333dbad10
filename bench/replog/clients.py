"""Check that what `replog cluster` has acknowledged to real clients stays, once and in order.

    python bench/replog/clients.py [--client NAME ...] [--python PYTHON]    10 000 records, read by a group
    python bench/replog/clients.py --seconds 120 --every leader:5 [--every controller:10] [--every move:10]

PYTHON is an interpreter that has confluent-kafka, kafka-python and aiokafka; kcat is looked for in PATH,
Java's clients among Kafka's jars (`conformance/apache_kafka`).  Each client is a process of its own,
idempotent and with acks=all, and writes the numbers from 0 to one topic of one partition.

Without --every, a consumer of the same client reads them as a member of a group.  With it, each so many
seconds `kill -9` is sent to the leader or to the controller, or the three replicas move among four brokers,
until the time is over; what the client was told is then compared with the partition, read from its begin.
Prints a row of a table for each client, and ends with 1 if a record is missing, is there twice, is out of
order or has another offset than the client was told.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from chaos import Cluster

TOPIC = "orders"
JARS = Path.home() / ".cache/specchk/kafka"
COUNT = 10_000
BROKERS = 4
"""With moves; three without."""
SETTLE_S = 300
"""How long a client may try to deliver what it has."""

PACED = """
import asyncio, sys, time
servers, count, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
start = time.monotonic()
def early(n):
    return max(start + n / rate - time.monotonic(), 0) if rate else 0
def told(n, offset, error=None):
    print("failed" if error else "acked", n, repr(error) if error else offset, flush=True)
"""
CONFLUENT = """
from confluent_kafka import Producer
p = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5, "log_level": 0,
              "message.timeout.ms": 300000, "queue.buffering.max.messages": 1000000})
def done(error, message):
    told(message.value().decode(), message.offset(), error)
for n in range(count):
    p.poll(0)
    while early(n):
        p.poll(0.001)
    p.produce("orders", b"%d" % n, on_delivery=done)
p.flush(300)
"""
CONFLUENT_GROUP = """
from confluent_kafka import Consumer
c = Consumer({"bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest"})
c.subscribe(["orders"])
for _ in range(count):
    while (m := c.poll(1)) is None or m.error():
        pass
    print(m.value().decode())
c.close()
"""
KAFKA_PYTHON = """
from functools import partial
from kafka import KafkaProducer
p = KafkaProducer(bootstrap_servers=servers.split(","), enable_idempotence=True, acks="all", linger_ms=5,
                  request_timeout_ms=10000, delivery_timeout_ms=300000, max_block_ms=60000)
for n in range(count):
    if early(n):
        time.sleep(early(n))
    sent = p.send("orders", b"%d" % n)
    sent.add_callback(lambda m, n=n: told(n, m.offset)).add_errback(partial(told, n, -1))
p.flush(300)
"""
KAFKA_PYTHON_GROUP = """
from kafka import KafkaConsumer
c = KafkaConsumer("orders", bootstrap_servers=servers.split(","), group_id="readers",
                  auto_offset_reset="earliest")
for n, m in zip(range(count), c):
    print(m.value.decode())
c.close()
"""
AIOKAFKA = """
from aiokafka import AIOKafkaProducer
async def main():
    p = AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True, acks="all", linger_ms=5,
                         request_timeout_ms=60000)
    await p.start()
    def done(n, sent):
        told(n, -1, sent.exception()) if sent.exception() else told(n, sent.result().offset)
    for n in range(count):
        if early(n):
            await asyncio.sleep(early(n))
        sent = await p.send("orders", b"%d" % n)
        sent.add_done_callback(lambda f, n=n: done(n, f))
    await p.flush()
    await p.stop()
asyncio.run(main())
"""
AIOKAFKA_GROUP = """
from aiokafka import AIOKafkaConsumer
async def main():
    c = AIOKafkaConsumer("orders", bootstrap_servers=servers, group_id="readers",
                         auto_offset_reset="earliest")
    await c.start()
    for _ in range(count):
        print((await c.getone()).value.decode())
    await c.stop()
asyncio.run(main())
"""
PYTHONS = {
    "confluent-kafka": (CONFLUENT, CONFLUENT_GROUP),
    "kafka-python": (KAFKA_PYTHON, KAFKA_PYTHON_GROUP),
    "aiokafka": (AIOKAFKA, AIOKAFKA_GROUP),
}
WORDS = {"leader": "kills of the leader", "controller": "kills of the controller", "move": "moves"}
JAVA = ("java-4.4.0", "java-4.1.1")


@dataclass
class Told:
    """What a producer has said: offsets by number, and numbers that it gave up."""

    acked: dict[int, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def line(self, line: str) -> None:
        """Take a line of a program of ours, or of Java's VerifiableProducer."""
        if line.startswith("{"):
            said = json.loads(line)
            if said["name"] == "producer_send_success":
                self.acked[int(said["value"])] = said["offset"]
            elif said["name"] == "producer_send_error":
                self.failed.append(line)
        elif line.startswith("acked "):
            _, number, offset = line.split()
            self.acked[int(number)] = int(offset)
        elif line.startswith("failed "):
            self.failed.append(line)


def java(name: str, program: str, *arguments: str) -> list[str]:
    """Return the command of a program of Kafka's tools."""
    jars = JARS / name.removeprefix("java-")
    return ["java", "-Xmx256m", "-cp", f"{jars}/*", program, *arguments]


def producer(name: str, python: str, servers: str, count: int, rate: float, folder: Path) -> list[str]:
    """Return the command of an idempotent producer that tells what was acknowledged."""
    settings = folder / "java.properties"
    # VerifiableProducer alone would not try again.
    settings.write_text("enable.idempotence=true\nretries=2147483647\ndelivery.timeout.ms=300000\n")
    if name in PYTHONS:
        return [python, "-c", PACED + PYTHONS[name][0], servers, str(count), str(rate)]
    most = ["--max-messages", str(count), "--throughput", str(int(rate) or -1)]
    place = ["--bootstrap-server", servers, "--topic", TOPIC, "--producer.config", str(settings)]
    return java(name, "org.apache.kafka.tools.VerifiableProducer", *place, *most)


def group(name: str, python: str, servers: str, count: int) -> list[str]:
    """Return the command of a consumer in a group that prints `count` values."""
    if name in PYTHONS:
        return [python, "-c", PACED + PYTHONS[name][1], servers, str(count), "0"]
    if name == "kcat":
        most = ["-c", str(count), "-X", "auto.offset.reset=earliest"]
        return ["kcat", "-b", servers, "-q", "-u", *most, "-G", "readers", TOPIC]
    place = ["--bootstrap-server", servers, "--topic", TOPIC, "--group", "readers", "--from-beginning"]
    tool = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    return java(name, tool, *place, "--max-messages", str(count))


def written_and_read(name: str, python: str, servers: str, folder: Path) -> str | None:
    """Write `COUNT` records and read them by a group; return what was wrong."""
    numbers = list(range(COUNT))
    text = "".join(f"{n}\n" for n in numbers)
    if name in PYTHONS:
        command, text = producer(name, python, servers, COUNT, 0, folder), ""
    elif name == "kcat":
        command = ["kcat", "-P", "-b", servers, "-t", TOPIC, "-X", "enable.idempotence=true"]
    else:
        place = ["--bootstrap-server", servers, "--topic", TOPIC]
        command = java(name, "org.apache.kafka.tools.ConsoleProducer", *place)
    told = Told()
    sent = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SETTLE_S, check=False)
    for line in sent.stdout.splitlines():
        told.line(line)
    if sent.returncode or told.failed or (name in PYTHONS and len(told.acked) != COUNT):
        return f"produce ended with {sent.returncode}: {(sent.stderr or str(told.failed))[-300:]}"
    command = group(name, python, servers, COUNT)
    got = subprocess.run(command, capture_output=True, text=True, timeout=SETTLE_S, check=False)
    values = [int(line) for line in got.stdout.split()]
    if values == numbers:
        return None
    return f"{len(values)} read, {len(set(numbers) - set(values))} missing: {got.stderr[-300:]}"


def strike(cluster: Cluster, part: str, done: Counter[str]) -> None:
    """Kill the leader of the partition or the controller, or replace a replica."""
    if part == "move":
        done[part] += move(cluster.servers, done[part])
        return
    pid = cluster.controller() if part == "controller" else cluster.broker(leader(cluster.servers))
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        done[part] += 1


def move(servers: list[str], number: int) -> bool:
    """Have the partition moved to the next three brokers; return whether that was accepted."""
    kafka = importlib.import_module("kafka")
    place = kafka.TopicPartition(TOPIC, 0)
    target = [(number + 1 + step) % BROKERS for step in range(3)]
    with suppress(importlib.import_module("kafka.errors").KafkaError, OSError):
        admin = kafka.KafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=2_000)
        try:
            return admin.alter_partition_reassignments({place: target}).get(place, False) is None
        finally:
            admin.close()
    return False


def leader(servers: list[str]) -> int:
    """Return who leads the partition, as some broker says; -1 if none says it."""
    kafka = importlib.import_module("kafka.admin")
    with suppress(importlib.import_module("kafka.errors").KafkaError, OSError, LookupError):
        admin = kafka.KafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=2_000)
        try:
            (topic,) = admin.describe_topics([TOPIC])
            return int(topic["partitions"][0]["leader_id"])
        finally:
            admin.close()
    return -1


def partition(servers: list[str]) -> list[int]:
    """Return all numbers in the partition, as a consumer reads them; their index is their offset."""
    kafka = importlib.import_module("kafka")
    place = kafka.TopicPartition(TOPIC, 0)
    reader = kafka.KafkaConsumer(bootstrap_servers=servers, max_poll_records=10_000, check_crcs=True)
    reader.assign([place])
    reader.seek_to_beginning(place)
    end = reader.end_offsets([place])[place]
    numbers: list[int] = []
    while reader.position(place) < end:
        for record in reader.poll(1_000).get(place, []):
            assert record.offset == len(numbers), f"offset {record.offset} after {len(numbers) - 1}"
            numbers.append(int(record.value))
    reader.close()
    return numbers


def judged(told: Told, numbers: list[int]) -> dict[str, int]:
    """Compare what was acknowledged with the log."""
    places = {number: offset for offset, number in enumerate(numbers)}
    return {
        "acknowledged": len(told.acked),
        "missing": len(told.acked.keys() - places.keys()),
        "twice": len(numbers) - len(places),
        "out of order": sum(a > b for a, b in pairwise(numbers)),
        "other offset": sum(offset != places.get(number, offset) for number, offset in told.acked.items()),
        "given up": len(told.failed),
        "in the log": len(numbers),
    }


@contextmanager
def cluster_with_topic(folder: Path, brokers: int = 3) -> Any:
    """Run a cluster with the topic."""
    cluster = Cluster(folder, 3.0, brokers, is_recorded=False)
    try:
        kafka = importlib.import_module("kafka.admin")
        admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.servers)
        admin.create_topics([kafka.NewTopic(TOPIC, 1, 3)])
        admin.close()
        yield cluster
    finally:
        cluster.stop()


def under_kills(name: str, options: argparse.Namespace, folder: Path) -> dict[str, int]:
    """Run one producer while processes are killed; return what was done and what was wrong."""
    every = {part: float(s) for part, _, s in (each.partition(":") for each in options.every)}
    done: Counter[str] = Counter()
    told = Told()
    with cluster_with_topic(folder, BROKERS if "move" in every else 3) as cluster:
        servers = ",".join(cluster.servers)
        count = int(options.seconds * options.rate)
        command = producer(name, options.python, servers, count, options.rate, folder)
        with (folder / "told").open("w+") as file, (folder / "errors").open("w") as errors:
            client = subprocess.Popen(command, stdout=file, stderr=errors)
            began = time.monotonic()
            # Not together: a controller that is down accepts no move.
            due = {part: began + s * n / len(every) for n, (part, s) in enumerate(every.items(), 1)}
            while time.monotonic() < began + options.seconds and client.poll() is None:
                for part, moment in due.items():
                    if time.monotonic() >= moment:
                        due[part] += every[part]
                        strike(cluster, part, done)
                time.sleep(0.02)
            try:
                client.wait(SETTLE_S)
            finally:
                client.kill()
            file.seek(0)
            for line in file:
                told.line(line)
        return {WORDS[part]: done[part] for part in every} | judged(told, partition(cluster.servers))


def main() -> int:
    """Print a row for each client."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--client", action="append", choices=[*PYTHONS, "kcat", *JAVA])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--every", action="append", default=[], metavar="PART:SECONDS")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--rate", type=float, default=2_000, help="records offered a second, with --every")
    options = parser.parse_args()
    wrong = False
    for name in options.client or [*PYTHONS, "kcat", *JAVA]:
        folder = Path(tempfile.mkdtemp(prefix="clients-"))
        began = time.monotonic()
        if options.every:
            row = under_kills(name, options, folder)
            bad = any(row[each] for each in ("missing", "twice", "out of order", "other offset"))
            text = " | ".join(f"{value} {what}" for what, value in row.items())
        else:
            with cluster_with_topic(folder) as cluster:
                said = written_and_read(name, options.python, ",".join(cluster.servers), folder)
            bad, text = said is not None, said or f"{COUNT} acknowledged and read in order"
        print(f"| {name} | {text} | {time.monotonic() - began:.0f} s |", flush=True)
        wrong |= bad
        if not bad:
            shutil.rmtree(folder)
        else:
            print(folder)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
