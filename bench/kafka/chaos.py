"""Runs of a real cluster under faults.

    .venv/bin/python bench/kafka/chaos.py --seconds 20 --runs 5 [--seed N] [--release 4.4.0]

One producer writes numbered records with acks=all, one at a time, each repeated under its sequence number
until it is acknowledged.  Meanwhile a seeded hand kills (-9), pauses, cuts and slows links, elects, reassigns
and changes min.insync.replicas.  Then the cluster is healed and stopped.  Nothing may be named in its
folders, every acknowledged record must be there once, at the offset of its acknowledgement, and the logs of
all nodes must be a behaviour of kafka_recorded.spec.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[2])

from conformance.apache_kafka.batches import Producer, batch_of, parse_batches  # noqa: E402
from conformance.apache_kafka.cluster import BROKERS, Cluster, Plan  # noqa: E402
from conformance.apache_kafka.deciding import Deciding, Refusal, deciding  # noqa: E402
from conformance.apache_kafka.judging import judge  # noqa: E402
from conformance.apache_kafka.links import Pattern  # noqa: E402
from conformance.apache_kafka.nodes import wait_for  # noqa: E402
from conformance.apache_kafka.recordings import validate, write_recordings  # noqa: E402
from conformance.apache_kafka.releases import NEWEST, RELEASES, Release, jar  # noqa: E402
from conformance.apache_kafka.schemas import METADATA, Schemas  # noqa: E402
from conformance.apache_kafka.settings import RECORDED  # noqa: E402
from conformance.apache_kafka.wire import Api, Connection  # noqa: E402

TOPIC = "orders"
ACKNOWLEDGED, DUPLICATE, OUT_OF_ORDER = 0, 46, 45
MOST_REFUSED = 50  # a deposed leader refuses, too, until it knows
SETTINGS = {"replica.lag.time.max.ms": "3000", "log.segment.bytes": "1048576"}
CLOCK_ERROR_S = 0.02  # one clock; a line is written some milliseconds after its step
SESSION = {101: {"broker.session.timeout.ms": "6000"}}


class Writer(threading.Thread):
    """The producer: what has been acknowledged, by offset, and what it noticed."""

    def __init__(self, cluster: Cluster, pause_s: float) -> None:
        super().__init__(daemon=True)
        self._pause_s = pause_s
        self.acked: dict[int, bytes] = {}
        self.notes: list[str] = []
        self.ends = threading.Event()
        self._cluster, self._at = cluster, BROKERS[0]
        self._connection: Connection | None = None

    def run(self) -> None:
        """Write until the end is requested."""
        identity, sequence, number, refusals = 1000, 0, 0, 0
        while not self.ends.is_set():
            value = b"record %d" % number
            code, offset = self._attempt(value, Producer(identity, 0, sequence))
            refusals = refusals + 1 if code == OUT_OF_ORDER else refusals
            if refusals > MOST_REFUSED:
                # One batch is in flight at a time, so the broker lacks one that it has acknowledged.
                self.notes.append(f"record {number} is refused: the sequence before it is missing")
                identity, sequence, number, refusals = identity + 1, 0, number + 1, 0
            elif code in (ACKNOWLEDGED, DUPLICATE):
                if offset >= 0:
                    self.acked[offset] = value
                sequence, number, refusals = sequence + 1, number + 1, 0
                time.sleep(random.uniform(0, 2 * self._pause_s))

    def _attempt(self, value: bytes, producer: Producer) -> tuple[int, int]:
        data = batch_of([value], producer, int(time.time() * 1000))
        topics = [{"Name": TOPIC, "PartitionData": [{"Index": 0, "Records": data}]}]
        try:
            if self._connection is None:
                port = self._cluster.nodes[self._at].port
                self._connection = Connection(port, self._cluster.schemas, timeout_s=3)
            request = {"Acks": -1, "TimeoutMs": 2500, "TopicData": topics}
            answer = self._connection.call(Api.PRODUCE, 3, request)["Responses"][0]["PartitionResponses"][0]
        except OSError:
            code, offset = -1, -1
        else:
            code, offset = answer["ErrorCode"], answer["BaseOffset"]
        if code not in (ACKNOWLEDGED, DUPLICATE):
            if self._connection is not None:
                self._connection.close()
            self._connection, self._at = None, self._at % len(BROKERS) + 1
            time.sleep(0.02)
        return code, offset


class Hand:
    """Faults, each with its end; they follow each other, and links may be slow meanwhile."""

    def __init__(self, cluster: Cluster, controller: Deciding, seed: int) -> None:
        self.cluster, self.controller, self.random = cluster, controller, random.Random(seed)
        self.done: Counter[str] = Counter()

    def act(self) -> None:
        """One fault, by chance; what the controller refuses is done again by another one."""
        faults: list[Callable[[], None]] = [
            self.kill, self.pause, self.cut, self.slow, self.elect, self.elect, self.reassign,
            self.change_minimum,
        ]  # fmt: skip
        fault = self.random.choice(faults)
        try:
            fault()
        except (Refusal, OSError):
            self.done["refused"] += 1
        else:
            self.done[fault.__name__] += 1

    def kill(self) -> None:
        """Kill -9, and a restart."""
        node = self.cluster.nodes[self.random.choice(BROKERS)]
        node.kill()
        time.sleep(self.random.uniform(0, 2))
        node.start()
        node.wait_until_listening()

    def pause(self) -> None:
        """SIGSTOP, for less or for more than a session."""
        node = self.cluster.nodes[self.random.choice(BROKERS)]
        node.pause()
        time.sleep(self.random.choice([0.5, 2, 8]))
        node.resume()

    def cut(self) -> None:
        """Close the connections of a link, or hold all that it has for some seconds."""
        pattern = Pattern(self.random.choice(BROKERS), self.random.choice((*BROKERS, 101)))
        self.cluster.relay.cut(pattern)
        self.cluster.relay.hold(pattern)
        time.sleep(self.random.choice([0.2, 1, 5]))
        self.cluster.relay.release(pattern)

    def slow(self) -> None:
        """Delay each frame of a link until it is chosen again."""
        pattern = Pattern(self.random.choice(BROKERS), self.random.choice((*BROKERS, 101)))
        self.cluster.relay.delay(pattern, self.random.choice([0, 0.05, 0.3]))

    def elect(self) -> None:
        """A preferred election of any replica."""
        self.controller.reorder(self.random.sample(BROKERS, len(BROKERS)))
        self.controller.elect_preferred()

    def reassign(self) -> None:
        """Remove a replica, and add it again."""
        order = self.random.sample(BROKERS, len(BROKERS))
        self.controller.reorder(order[:2])
        time.sleep(self.random.uniform(0, 1))
        self.controller.reorder(order)

    def change_minimum(self) -> None:
        """Change min.insync.replicas."""
        change = {"Name": "min.insync.replicas", "ConfigOperation": 0, "Value": self.random.choice("122")}
        resource = {"ResourceType": 2, "ResourceName": TOPIC, "Configs": [change]}
        self.cluster.call(
            self.random.choice(BROKERS), Api.INCREMENTAL_ALTER_CONFIGS, 0, {"Resources": [resource]}
        )


def run(
    release: Release, seed: int, seconds: float, pause_s: float, keep: Path | None
) -> tuple[str, list[str]]:
    """One run: what was done, and all that is wrong."""
    with Cluster(Plan(release, settings=SETTINGS, settings_of=SESSION, levels=RECORDED)) as cluster:
        cluster.wait_until_ready()
        cluster.create_topic(TOPIC, [list(BROKERS)], {"min.insync.replicas": "2"})
        controller = deciding(cluster, TOPIC)
        wait_for(controller.latest, "the topic")
        writer, hand = Writer(cluster, pause_s), Hand(cluster, controller, seed)
        writer.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            hand.act()
            time.sleep(hand.random.uniform(0, 0.3))
        cluster.relay.release_all()
        wait_for(lambda: _is_healed(controller), "an ISR of all replicas", 120)
        writer.ends.set()
        writer.join()
        epochs = controller.latest().epoch
        cluster.stop()
        folders = [cluster.log_folder(broker) for broker in BROKERS]
        judged = time.monotonic()
        judgement = judge(folders, Schemas(jar(release, "kafka-metadata"), METADATA))
        wrong = [*writer.notes, *map(str, judgement.faults)]
        for broker in BROKERS:
            wrong += lost(cluster.log_folder(broker) / f"{TOPIC}-0", broker, writer.acked)
        judged = time.monotonic() - judged
        files = [cluster.folder / f"{node}.log" for node in cluster.nodes]
        if keep is not None:
            for path in (*files, *folders):
                (shutil.copy if path.is_file() else shutil.copytree)(path, keep / path.name)
        explained, unexplained = explain(files, cluster.folder / "recordings")
    wrong += unexplained
    done = ", ".join(f"{name} {count}" for name, count in sorted(hand.done.items()))
    parts = (
        f"{len(writer.acked)} acknowledged",
        f"{epochs + 1} epochs",
        f"judged in {judged:.1f} s",
        explained,
    )
    return f"{', '.join(parts)}; {done}", wrong


def explain(files: Sequence[Path], into: Path) -> tuple[str, list[str]]:
    """What the logs of all nodes are worth, and the report on them if the spec does not explain them."""
    begun = time.process_time() + _of_children()
    written = write_recordings(files, into, CLOCK_ERROR_S, [f"{TOPIC}-0"])
    code, report = validate(list(written))
    (reading,) = written.values()
    cost = time.process_time() + _of_children() - begun
    text = f"{len(reading.events)} events explained in {cost:.1f} s of CPU ({reading})"
    return text, report.splitlines()[:40] if code else []


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _is_healed(controller: Deciding) -> bool:
    """Whether all replicas are in the ISR; one that a run has left without them is assigned them again."""
    decision = controller.latest()
    if set(decision.replicas) != set(BROKERS):
        controller.reorder(BROKERS)
    return decision.isr == set(BROKERS)


def lost(folder: Path, broker: int, acked: dict[int, bytes]) -> list[str]:
    """What a replica lacks of what was acknowledged, or has twice."""
    batches = [batch for path in sorted(folder.glob("*.log")) for batch in parse_batches(path.read_bytes())]
    stored = {record.offset: record.value for batch in batches for record in batch.records()}
    wrong = [
        f"broker {broker} has {stored.get(offset)!r} at offset {offset}, where {value!r} was acknowledged"
        for offset, value in acked.items()
        if stored.get(offset) != value
    ]
    twice = [value for value, count in Counter(stored.values()).items() if count > 1]
    numbers = [int((value or b"").split()[1]) for _, value in sorted(stored.items())]
    wrong += [f"broker {broker} has {value!r} more than once" for value in twice]
    return wrong + ([f"broker {broker} has records out of order"] if numbers != sorted(numbers) else [])


def main() -> int:
    """Run a cluster under faults, several times; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--release", choices=list(RELEASES), default=NEWEST.version)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.02, help="mean time between two records, in seconds")
    parser.add_argument(
        "--keep", type=Path, help="copy the brokers' logs and folders to a new folder in this one"
    )
    options = parser.parse_args()
    total = 0
    for number in range(options.seed, options.seed + options.runs):
        keep = options.keep and options.keep / f"seed-{number}"
        if keep:
            keep.mkdir(parents=True)
        done, wrong = run(RELEASES[options.release], number, options.seconds, options.pause, keep)
        print(f"{options.release} seed {number}: {done}; wrong: {len(wrong) or 'nothing'}", flush=True)
        for line in wrong[:10]:
            print(f"  {line}", flush=True)
        total += len(wrong)
    return int(total > 0)


if __name__ == "__main__":
    raise SystemExit(main())
