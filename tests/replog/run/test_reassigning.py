"""Replicas replaced on request: while records are produced, cancelled, listed, and refused in words."""

import asyncio

from clusters import BROKERS, Cluster
from serving import batch, run

from replog.core.types import Error
from replog.run.serve.frames import Api
from replog.run.serve.host import GROUPS
from replog.run.serve.topics import INVALID_REPLICATION_FACTOR

FOUR = (0, 1, 2, 3)


async def with_topic(path, ids=FOUR) -> Cluster:
    """Return a cluster with a topic `t` on brokers 0, 1 and 2, all in sync."""
    cluster = Cluster(path, ids)
    await asyncio.sleep(0.05)
    await cluster.brokers[0].create("t")
    await cluster.in_sync()
    return cluster


async def alter(broker, *replicas, partition=0, topic="t", cancels=False, **body) -> int:
    """Request a reassignment; return the error code."""
    wanted = [{"partition_index": partition, "replicas": None if cancels else replicas}]
    answer = await broker.ask(
        Api.ALTER_PARTITION_REASSIGNMENTS, topics=[{"name": topic, "partitions": wanted}], **body
    )
    (part,) = answer["responses"][0]["partitions"]
    assert bool(part["error_message"]) == bool(part["error_code"])
    return part["error_code"]


async def listed(broker, *numbers) -> dict:
    """Return what is listed of the topic, or of all partitions where no number is given."""
    topics = [{"name": "t", "partition_indexes": numbers}] if numbers else None
    answer = await broker.ask(Api.LIST_PARTITION_REASSIGNMENTS, topics=topics)
    return {
        (each["name"], part["partition_index"]): (
            part["replicas"],
            part["adding_replicas"],
            part["removing_replicas"],
        )
        for each in answer["topics"]
        for part in each["partitions"]
    }


def test_all_replicas_are_replaced_there_and_back_and_every_record_goes_with_them(tmp_path):
    async def scenario():
        cluster = await with_topic(tmp_path)
        for n, target in enumerate([(3, 1), (2, 0)]):
            leader = await cluster.leader()
            assert (await leader.produce(batch(str(n), producer=9, first=n)))["base_offset"] == n
            assert await alter(cluster.brokers[1], *target) == Error.NONE
            host = cluster.brokers[target[0]].host
            await host.until(lambda image, to=target: image.partitions["t-0"].replicas == to)
            await cluster.in_sync()
            assert (await cluster.leader()).host.settings.broker_id in target
            await asyncio.sleep(0.02)
            assert {b for b in cluster.ids if (tmp_path / f"broker-{b}" / "t-0").exists()} == set(target)
        leader = await cluster.leader()
        again = await leader.produce(batch("0", producer=9, first=0))
        assert (again["error_code"], again["base_offset"]) == (Error.NONE, 0)
        assert (await leader.fetch(0))["high_watermark"] == 2
        # Who has no replica any more is asked in vain, and answers.
        assert (await cluster.brokers[1].fetch(0, wait_ms=5_000))[
            "error_code"
        ] == Error.NOT_LEADER_OR_FOLLOWER

    run(scenario)


def test_one_in_progress_is_listed_replaced_and_cancelled(tmp_path):
    async def scenario():
        cluster = await with_topic(tmp_path, (*FOUR, 4))
        cluster.kill(3)
        cluster.kill(4)
        some = cluster.brokers[2]
        assert await alter(some, 3, 1) == Error.NONE
        assert await listed(some) == await listed(some, 0) == {("t", 0): ((3, 1, 0, 2), (3,), (0, 2))}
        assert await listed(some, 1) == {}
        assert await alter(some, cancels=True) == Error.NONE
        assert await listed(some) == {}
        assert set(some.host.image.partitions["t-0"].replicas) == set(BROKERS)
        assert await alter(some, cancels=True) == Error.NO_REASSIGNMENT_IN_PROGRESS
        assert await alter(some, 3, 1) == await alter(some, 4, 2, 1) == Error.NONE
        assert await listed(some) == {("t", 0): ((4, 2, 1, 3, 0), (4,), (3, 0))}

    run(scenario)


def test_the_same_replicas_in_another_order_have_another_preferred_leader(tmp_path):
    async def scenario():
        cluster = await with_topic(tmp_path, BROKERS)
        assert await alter(cluster.brokers[0], 2, 1, 0) == Error.NONE
        assert cluster.brokers[0].host.image.partitions["t-0"].replicas == (2, 1, 0)
        assert await listed(cluster.brokers[0]) == {}

    run(scenario)


REFUSED = (
    ({"replicas": ()}, Error.INVALID_REPLICA_ASSIGNMENT),
    ({"replicas": (1, 1)}, Error.INVALID_REPLICA_ASSIGNMENT),
    ({"replicas": (0, 7)}, Error.INVALID_REPLICA_ASSIGNMENT),
    ({"replicas": (0, 1), "allow_replication_factor_change": False}, INVALID_REPLICATION_FACTOR),
    ({"replicas": (0, 1, 2), "partition": 1}, Error.UNKNOWN_TOPIC_OR_PARTITION),
    ({"replicas": (0, 1, 2), "topic": "u"}, Error.UNKNOWN_TOPIC_OR_PARTITION),
)


def test_what_cannot_be_is_refused_with_a_reason(tmp_path):
    async def scenario():
        cluster = await with_topic(tmp_path, BROKERS)
        before = cluster.brokers[0].host.image
        for wanted, error in REFUSED:
            rest = {name: value for name, value in wanted.items() if name != "replicas"}
            assert await alter(cluster.brokers[0], *wanted["replicas"], **rest) == error, wanted
        assert cluster.brokers[0].host.image.partitions == before.partitions

    run(scenario)


def test_a_group_continues_where_it_was_when_its_coordinator_is_replaced(tmp_path):
    async def scenario():
        cluster = await with_topic(tmp_path)
        commit = {
            "group_id": "g",
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 7}]}],
        }
        groups = await cluster.leader(GROUPS)
        answer = await groups.ask(Api.OFFSET_COMMIT, **commit)
        assert answer["topics"][0]["partitions"][0]["error_code"] == Error.NONE
        topic, number = GROUPS.rsplit("-", 1)
        old = groups.host.settings.broker_id
        others = [b for b in FOUR if b != old]
        assert await alter(groups, *others, topic=topic, partition=int(number)) == Error.NONE
        await cluster.brokers[3].host.until(lambda image: set(image.partitions[GROUPS].isr) == set(others))
        groups = await cluster.leader(GROUPS)
        assert groups.host.settings.broker_id != old
        await asyncio.sleep(0.05)
        wanted = [{"name": "t", "partition_indexes": (0,)}]
        fetched = await groups.ask(Api.OFFSET_FETCH, group_id="g", topics=wanted)
        assert fetched["topics"][0]["partitions"][0]["committed_offset"] == 7

    run(scenario)
