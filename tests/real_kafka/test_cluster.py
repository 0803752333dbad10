"""A cluster of each release: it starts, replicates and elects, is read exactly, and leaves nothing behind."""

from __future__ import annotations

import socket

import pytest
from conformance.apache_kafka.batches import Producer, batch_of, old_message_of
from conformance.apache_kafka.cluster import Cluster, Plan
from conformance.apache_kafka.deciding import deciding
from conformance.apache_kafka.links import Direction, Pattern
from conformance.apache_kafka.nodes import wait_for
from conformance.apache_kafka.probe import consumed, replica_state
from conformance.apache_kafka.releases import NEWEST, RELEASES
from conformance.apache_kafka.wire import Api

from real_kafka.loads import elect

OLDER = [version for version in RELEASES if version != NEWEST.version]


def produce(cluster, broker, value):
    is_old = cluster.plan.release.numbers < (0, 11)
    data = old_message_of(value, 1000) if is_old else batch_of([value], Producer(), 1000)
    topics = [{"Name": "orders", "PartitionData": [{"Index": 0, "Records": data}]}]
    request = {"Acks": -1, "TimeoutMs": 60000, "TopicData": topics}
    answer = cluster.call(broker, Api.PRODUCE, 2 if is_old else 3, request)
    return answer["Responses"][0]["PartitionResponses"][0]


def check(plan):
    with Cluster(plan) as cluster:
        cluster.wait_until_ready()
        cluster.create_topic("orders", [[1, 2, 3]], {"min.insync.replicas": "2"})
        controller = deciding(cluster, "orders")
        first = wait_for(controller.latest, "the topic")
        assert (first.leader, first.epoch, first.isr) == (1, 0, {1, 2, 3})
        answer = wait_for(lambda: produced(cluster, b"m0"), "a record is acknowledged")
        assert answer["BaseOffset"] == 0
        for broker in cluster.brokers:
            wait_for(lambda broker=broker: replica_state(cluster, broker, "orders").leo == 1, "it is copied")
        held_back(cluster)
        second = elect(controller, 3, [1, 2])
        assert second.epoch > first.epoch
        wait_for(lambda: produced(cluster, b"m2", 3), "the new leader writes")
        assert consumed(cluster, 3, "orders") == [b"m0", b"m1", b"m2"]
        folder, nodes = cluster.folder, list(cluster.nodes.values())
    assert not folder.exists()
    assert not any(node.is_running for node in nodes)
    for node in nodes:
        with socket.socket() as connection:
            assert connection.connect_ex(("127.0.0.1", node.port)) != 0


def produced(cluster, value, broker=1):
    answer = produce(cluster, broker, value)
    return answer if answer["ErrorCode"] == 0 else None


def held_back(cluster):
    """A response that is held keeps a follower where it is, while the other one goes on."""
    responses = Pattern(3, 1, Api.FETCH, Direction.RESPONSE)
    cluster.relay.hold(responses)
    cluster.relay.expect(responses)  # it has no record: the next one will have it
    with cluster.connect(1) as client:
        data = old_message_of(b"m1", 1000)
        if cluster.plan.release.numbers >= (0, 11):
            data = batch_of([b"m1"], Producer(), 1000)
        topics = [{"Name": "orders", "PartitionData": [{"Index": 0, "Records": data}]}]
        version = 2 if cluster.plan.release.numbers < (0, 11) else 3
        client.send(Api.PRODUCE, version, {"Acks": -1, "TimeoutMs": 60000, "TopicData": topics})
        wait_for(lambda: replica_state(cluster, 2, "orders").leo == 2, "b2 has copied it")
        assert replica_state(cluster, 3, "orders").leo == 1
        assert replica_state(cluster, 1, "orders").hw == 1
        cluster.relay.release(responses)
        assert client.receive(Api.PRODUCE, version)["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 0
        wait_for(lambda: replica_state(cluster, 3, "orders").leo == 2, "b3 has copied it")


@pytest.mark.parametrize("release", [NEWEST.version], indirect=True)
def test_the_newest_release_replicates_and_elects(release):
    check(Plan(release))


@pytest.mark.slow
@pytest.mark.parametrize("release", OLDER, indirect=True)
def test_every_older_release_replicates_and_elects(release):
    check(Plan(release))


@pytest.mark.slow
@pytest.mark.parametrize("release", [NEWEST.version], indirect=True)
def test_three_controllers_decide(release):
    check(Plan(release, controllers=3))
