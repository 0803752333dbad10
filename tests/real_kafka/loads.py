"""What clusters are given to write, and the folders that they leave behind."""

from __future__ import annotations

import random
import shutil
import time

import pytest
from conformance.apache_kafka.batches import Producer, batch_of, old_message_of
from conformance.apache_kafka.cluster import Cluster, Plan
from conformance.apache_kafka.deciding import deciding
from conformance.apache_kafka.drive import TOPIC
from conformance.apache_kafka.nodes import wait_for
from conformance.apache_kafka.probe import replica_state

BROKERS = ("1", "2", "3")
LEADERS = (1, 3, 2)
RUNNING, STOPPED = "running", "stopped"
CLEANING = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "20000000",
    "log.cleaner.io.buffer.size": "524288",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "2000",
}


def elect(controller, broker, others):
    """Have a broker of the ISR elected; the decision."""
    controller.reorder([broker, *others])
    controller.elect_preferred()
    wait_for(lambda: controller.latest().leader == broker, f"broker {broker} is elected")
    return controller.latest()


def write_history(release, folder):
    """Write three epochs of a producer on all replicas; keep folders as a kill leaves them, and of a stop."""
    with Cluster(Plan(release)) as cluster:
        cluster.wait_until_ready()
        cluster.create_topic("orders", [[1, 2, 3]], {"min.insync.replicas": "2"})
        controller, sequence = deciding(cluster, "orders"), 0
        wait_for(controller.latest, "the topic")
        for leader in LEADERS:
            if leader != LEADERS[0]:
                elect(controller, leader, {1, 2, 3} - {leader})
            for _ in range(3):
                wait_for(
                    lambda at=leader, n=sequence: produced(cluster, at, n), "two records are acknowledged"
                )
                sequence += 2
        end = replica_state(cluster, LEADERS[-1], "orders").leo
        for broker in cluster.brokers:
            await_checkpoint(cluster, broker, end)
        copy(cluster, folder / RUNNING)
        cluster.stop()
        copy(cluster, folder / STOPPED)


def copy(cluster, folder):
    for broker in cluster.brokers:
        shutil.copytree(cluster.log_folder(broker), folder / str(broker))


def await_checkpoint(cluster, broker, offset):
    path, line = cluster.log_folder(broker) / "replication-offset-checkpoint", f"{TOPIC} 0 {offset}"
    wait_for(lambda: path.exists() and line in path.read_text().splitlines(), f"{line} in {path}")


def produced(cluster, broker, sequence):
    values = [f"record {sequence + n}".encode() for n in range(2)]
    is_old = cluster.plan.release.numbers < (0, 11)
    now_ms = int(time.time() * 1000)
    data = b"".join(old_message_of(value, now_ms) for value in values) if is_old else None
    data = data or batch_of(values, Producer(1000, 0, sequence), now_ms)
    topics = [{"Name": "orders", "PartitionData": [{"Index": 0, "Records": data}]}]
    request = {"Acks": -1, "TimeoutMs": 60000, "TopicData": topics}
    answer = cluster.call(broker, 0, 2 if is_old else 3, request)
    return answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 0


def write_for_cleaning(cluster):
    """An idempotent producer, transactions that commit or abort, and a group; most records are not kept."""
    kafka = pytest.importorskip("kafka")
    ports = [f"127.0.0.1:{cluster.nodes[broker].port}" for broker in cluster.brokers]
    common = {"segment.bytes": str(1 << 20), "min.insync.replicas": "2"}
    compact = {**common, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    cluster.create_topic("compacted", [[1, 2, 3]], compact)
    cluster.create_topic("kept", [[1, 2, 3], [2, 3, 1]], {**common, "retention.bytes": "1100000"})
    producer = kafka.KafkaProducer(bootstrap_servers=ports, acks="all", compression_type="gzip")
    for number in range(2500):
        value = random.Random(number).randbytes(2000)
        producer.send("compacted", key=b"%d" % (number % 50), value=value)
        producer.send("kept", key=b"%d" % number, value=value)
    producer.close()
    writer = kafka.KafkaProducer(bootstrap_servers=ports, acks="all", transactional_id="writer")
    writer.init_transactions()
    for number in range(4):
        writer.begin_transaction()
        writer.send("kept", value=b"in a transaction")
        writer.flush()
        (writer.abort_transaction if number % 2 else writer.commit_transaction)()
    writer.close()
    options = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 8000}
    consumer = kafka.KafkaConsumer("kept", bootstrap_servers=ports, group_id="readers", **options)
    next(consumer)
    consumer.commit()
    consumer.close()
