"""Consumer groups through the core: offsets are those of a generation, and survive what members do not."""

import asyncio

import pytest
from serving import Broker, run

from replog.core.types import Error
from replog.run.serve import groups, host, rebalance
from replog.run.serve.frames import Api

LOADED = {"session_timeout": 10_000, "rebalance_timeout": 10_000, "protocol_type": "consumer"}
PROTOCOLS = {"protocols": [{"name": "range", "metadata": b"m"}]}


async def join(broker: Broker, member: str = "", group: str = "g", version: int = 3) -> dict:
    return await broker.ask(Api.JOIN_GROUP, version, group_id=group, member_id=member, **LOADED, **PROTOCOLS)


async def sync(broker: Broker, joined: dict, **assignments: bytes) -> dict:
    given = [{"member_id": joined["member_id"], "assignment": data} for data in assignments.values()]
    return await broker.ask(
        Api.SYNC_GROUP,
        group_id="g",
        member_id=joined["member_id"],
        generation_id=joined["generation_id"],
        assignments=given,
    )


async def commit(broker: Broker, offset: int, joined: dict | None = None, topic: str = "t", **other) -> int:
    wanted = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": offset}]}]
    owner = {"member_id": "", "generation_id_or_member_epoch": -1}
    if joined is not None:
        owner = {
            "member_id": joined["member_id"],
            "generation_id_or_member_epoch": joined["generation_id"],
        }
    answer = await broker.ask(Api.OFFSET_COMMIT, group_id="g", topics=wanted, **(owner | other))
    return answer["topics"][0]["partitions"][0]["error_code"]


async def committed(broker: Broker, group: str = "g") -> dict[str, int]:
    answer = await broker.ask(Api.OFFSET_FETCH, group_id=group, topics=None)
    assert not answer["error_code"]
    return {
        f"{each['name']}-{place['partition_index']}": place["committed_offset"]
        for each in answer["topics"]
        for place in each["partitions"]
    }


async def member(broker: Broker) -> dict:
    joined = await join(broker)
    assert (await sync(broker, joined, a=b"plan"))["assignment"] == b"plan"
    return joined


def test_a_member_commits_in_its_generation_and_no_other(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        joined = await member(broker)
        assert await commit(broker, 5, joined) == Error.NONE
        assert await committed(broker) == {"t-0": 5}
        assert await commit(broker, 6, joined, generation_id_or_member_epoch=0) == Error.ILLEGAL_GENERATION
        assert await commit(broker, 6, joined, member_id="other") == Error.UNKNOWN_MEMBER_ID
        assert await commit(broker, 6) == Error.UNKNOWN_MEMBER_ID, "a group with members has no guests"
        assert await commit(broker, 6, joined, topic="no") == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert await commit(broker, -6, joined) == Error.INVALID_REQUEST
        assert await committed(broker) == {"t-0": 5}

    run(scenario)


def test_a_commit_does_not_wait_forever_for_replicas(tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "COMMIT_S", 0.05)

    async def scenario():
        broker = Broker(tmp_path, host.Settings(cluster=(0, 1), min_isr=2))
        await broker.create("t")
        assert await commit(broker, 5) == Error.COORDINATOR_NOT_AVAILABLE, "of a new generation"
        broker.service._groups._group("g").generation = 1
        assert await commit(broker, 5) == Error.COORDINATOR_NOT_AVAILABLE
        # Nobody waits any more.
        await asyncio.sleep(0)
        assert not broker.host._waiting

    run(scenario)


@pytest.mark.parametrize("is_killed", [False, True])
def test_offsets_survive_a_restart_and_members_do_not(tmp_path, is_killed):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        joined = await member(broker)
        assert await commit(broker, 5, joined) == Error.NONE
        if is_killed:
            broker.die()
        else:
            await broker.stop()
        broker = Broker(tmp_path)
        assert await committed(broker) == {"t-0": 5}
        assert await commit(broker, 6, joined) == Error.UNKNOWN_MEMBER_ID
        again = await member(broker)
        assert again["generation_id"] > joined["generation_id"], "an old generation never comes back"
        assert await commit(broker, 7, again) == Error.NONE
        assert await committed(broker) == {"t-0": 7}

    run(scenario)


def test_committed_offsets_end_with_their_topic(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t", "u")
        for topic in ("t", "u"):
            assert await commit(broker, 5, topic=topic) == Error.NONE
        await broker.ask(Api.DELETE_TOPICS, topic_names=["t"])
        assert await committed(broker) == {"u-0": 5}
        await broker.create("t")
        for _ in range(2):
            assert await committed(broker) == {"u-0": 5}
            named = [{"name": "t", "partition_indexes": [0]}]
            answer = await broker.ask(Api.OFFSET_FETCH, group_id="g", topics=named)
            assert answer["topics"][0]["partitions"][0]["committed_offset"] == -1
            broker.die()
            broker = Broker(tmp_path)
        assert await commit(broker, 1) == Error.NONE
        assert await committed(broker) == {"t-0": 1, "u-0": 5}
        broker.die()

    run(scenario)


def test_a_client_without_a_group_protocol_commits_alone(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        assert await committed(broker) == {}
        assert await commit(broker, 5) == Error.NONE
        assert await committed(broker) == {"t-0": 5}
        named = [{"name": "t", "partition_indexes": [0, 1]}]
        answer = await broker.ask(Api.OFFSET_FETCH, group_id="g", topics=named)
        assert [p["committed_offset"] for p in answer["topics"][0]["partitions"]] == [5, -1]
        unknown = await broker.ask(Api.OFFSET_FETCH, group_id="other", topics=named)
        assert {p["committed_offset"] for p in unknown["topics"][0]["partitions"]} == {-1}
        # To ask is not to create.
        assert set(broker.service._groups._groups) == {"g"}

    run(scenario)


def test_a_member_of_the_new_kind_joins_in_two_steps_and_leaves(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        asked = await join(broker, version=5)
        assert asked["error_code"] == rebalance.MEMBER_ID_REQUIRED
        joined = await join(broker, asked["member_id"], version=5)
        beat = {
            "group_id": "g",
            "member_id": joined["member_id"],
            "generation_id": joined["generation_id"],
        }
        assert (await broker.ask(Api.HEARTBEAT, **beat))["error_code"] == Error.NONE
        leaving = [{"member_id": joined["member_id"], "group_instance_id": None}]
        left = await broker.ask(Api.LEAVE_GROUP, group_id="g", members=leaving)
        assert left["members"][0]["error_code"] == Error.NONE
        assert (await broker.ask(Api.HEARTBEAT, **beat))["error_code"] == Error.UNKNOWN_MEMBER_ID
        await asyncio.sleep(2 * groups.EXPIRY_S)
        assert not broker.service._groups._groups, "a group without members is forgotten"

    run(scenario)


def test_requests_that_no_group_can_serve(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        assert (await join(broker, group=""))["error_code"] == groups.INVALID_GROUP_ID
        long = LOADED | {"session_timeout": 1 << 30}
        answer = await broker.ask(Api.JOIN_GROUP, group_id="g", member_id="", **long, **PROTOCOLS)
        assert answer["error_code"] == groups.INVALID_SESSION_TIMEOUT
        found = await broker.ask(Api.FIND_COORDINATOR, key="g", key_type=0)
        assert (found["node_id"], found["host"], found["port"]) == (0, "localhost", 9092)
        refused = await broker.ask(Api.FIND_COORDINATOR, key="x", key_type=1)
        assert refused["error_code"] == groups.TRANSACTIONS_REFUSED

    run(scenario)
