"""Several brokers in one loop: the same hosts and messages as in processes of their own, without sockets."""

import asyncio
from unittest.mock import Mock

import pytest
from clusters import BROKERS, Cluster
from hypothesis import given
from hypothesis import strategies as st
from serving import batch, run, topic

from replog.core import messages
from replog.core.messages import FetchRequest, ForPartition
from replog.core.types import (
    UNDEFINED,
    BrokerImage,
    BrokerState,
    Error,
    MetadataImage,
    PartitionImage,
)
from replog.run.serve import clustering, peers
from replog.run.serve.catalog import load
from replog.run.serve.codec import INT32, MalformedError
from replog.run.serve.controlling import Controlling, CreatePartitions, DeletePartitions, started
from replog.run.serve.frames import Api
from replog.run.serve.host import GROUPS, Host
from replog.run.serve.links import decode, encode
from replog.run.serve.records import DEBUGGING
from replog.run.serve.topics import TOPIC_EXISTS
from replog.store.files.fs import OsFs


def test_a_record_is_acknowledged_when_followers_have_it_and_outlives_leaders(tmp_path):
    async def scenario():
        cluster = Cluster(tmp_path)
        await cluster.brokers[0].host.until(lambda image: GROUPS in image.partitions)
        await asyncio.sleep(0.05)
        await cluster.brokers[1].create("t")
        for n in range(4):
            leader = await cluster.leader()
            await cluster.in_sync()
            sent = await leader.produce(batch(str(n), producer=9, first=n))
            assert (sent["error_code"], sent["base_offset"]) == (Error.NONE, n)
            dead = leader.host.settings.broker_id
            cluster.kill(dead)
            cluster.start(dead)
        leader = await cluster.leader()
        await cluster.in_sync()
        assert (await leader.fetch(0))["high_watermark"] == 4
        logs = {(tmp_path / f"broker-{b}" / "t-0" / "00000000000000000000.log").read_bytes() for b in BROKERS}
        assert len(logs) == 1, "byte for byte"
        # Any replica says where its log ends to who debugs.
        wanted = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        for broker in cluster.brokers.values():
            answer = await broker.ask(Api.LIST_OFFSETS, 7, replica_id=DEBUGGING, topics=wanted)
            assert answer["topics"][0]["partitions"][0]["offset"] == 4
        # A retry that reaches the fifth leader is the record of the first.
        again = await leader.produce(batch("3", producer=9, first=3))
        assert (again["error_code"], again["base_offset"]) == (Error.NONE, 3)

    run(scenario)


def test_nothing_is_acknowledged_without_a_second_copy(tmp_path):
    async def scenario():
        cluster = Cluster(tmp_path)
        await asyncio.sleep(0.05)
        await cluster.brokers[0].create("t")
        leader = await cluster.leader()
        for broker in BROKERS:
            if cluster.brokers[broker] is not leader:
                cluster.kill(broker)
        await leader.host.until(lambda image: len(image.partitions["t-0"].isr) == 1)
        refused = await leader.produce(batch("a"))
        assert refused["error_code"] == Error.NOT_ENOUGH_REPLICAS
        # Only a broker of the cluster is counted as a follower.
        for replica in (0, 1, 2, 7):
            topics = [
                {"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 9}]}
            ]
            answer = await leader.ask(
                Api.FETCH, replica_id=replica, max_wait=0, min_bytes=1, max_bytes=9, topics=topics
            )
            assert answer["responses"][0]["partitions"][0]["error_code"] == Error.NONE

    run(scenario)


def test_a_replica_of_a_deleted_topic_keeps_none_of_its_records(tmp_path):
    """The topic was deleted and created again while a broker was dead, and its session was not over yet."""

    async def scenario():
        cluster = Cluster(tmp_path)
        await asyncio.sleep(0.05)
        await cluster.brokers[0].create("t")
        await cluster.in_sync()
        leader = await cluster.leader()
        await leader.produce(batch("old"))
        dead = max(set(BROKERS) - {leader.host.settings.broker_id})
        cluster.brokers.pop(dead).die()
        assert not (await leader.ask(Api.DELETE_TOPICS, topic_names=["t"]))["responses"][0].get("error_code")
        await leader.create("t")
        leader = await cluster.leader()
        await leader.produce(batch("new"), acks=1)
        cluster.controlling.expire(dead)
        cluster.start(dead)
        await cluster.in_sync()
        logs = {(tmp_path / f"broker-{b}" / "t-0" / "00000000000000000000.log").read_bytes() for b in BROKERS}
        assert len(logs) == 1, "byte for byte"

    run(scenario)


def test_of_two_requests_for_a_topic_one_creates_it(tmp_path):
    async def scenario():
        cluster = Cluster(tmp_path)
        await asyncio.sleep(0.05)
        requests = [
            cluster.brokers[n].ask(Api.CREATE_TOPICS, topics=[topic("t", n + 1)], validate_only=False)
            for n in range(2)
        ]
        first, second = [each["topics"][0] for each in await asyncio.gather(*requests)]
        assert (first["error_code"], first["num_partitions"]) == (Error.NONE, 1)
        assert (second["error_code"], second["num_partitions"]) == (TOPIC_EXISTS, -1)
        assert set(cluster.brokers[0].host.image.partitions) == {GROUPS, "t-0"}

    run(scenario)


def test_a_broker_that_missed_versions_follows_a_controller_that_has_forgotten_them(tmp_path):
    async def scenario():
        cluster = Cluster(tmp_path)
        await asyncio.sleep(0.05)
        late = cluster.brokers.pop(2)
        for name in ("t", "u"):
            await cluster.brokers[0].create(name)
        cluster.brokers[2] = late
        catalog = load(OsFs(), str(tmp_path / "controller"))
        cluster.controlling = Controlling(started(catalog), 2, late.host._loop, cluster._deliver, pytest.fail)
        for broker in cluster.brokers.values():
            broker.host.beat()
        await late.host.until(lambda image: {"t-0", "u-0"} <= set(image.partitions))
        await cluster.brokers[0].create("v")
        await late.host.until(lambda image: "v-0" in image.partitions)

    run(scenario)


def test_a_broker_that_receives_several_versions_at_once_follows_each(tmp_path):
    """A partition that was deleted and created again between them is a new one."""

    async def scenario():
        cluster = Cluster(tmp_path)
        await asyncio.sleep(0.05)
        await cluster.brokers[0].create("t")
        await cluster.in_sync()
        late = cluster.brokers.pop(2)
        await cluster.brokers[0].ask(Api.DELETE_TOPICS, topic_names=["t"])
        await cluster.brokers[0].create("t")
        cluster.brokers[2] = late
        late.host.beat()
        await late.host.until(lambda image: image == cluster.brokers[0].host.image)
        image, state = late.host.image.partitions["t-0"], late.host.broker.replicas["t-0"].state
        assert (state.leader_epoch, state.replicas) == (image.leader_epoch, image.replicas)

    run(scenario)


def test_a_follower_closes_a_connection_that_it_does_not_need(monkeypatch):
    """The partition was deleted, or has another leader: its leader may serve somebody else."""
    question, reply = messages.EpochEndRequest(1, 1, 0, 0), messages.EpochEndReply(1, Error.NONE, UNDEFINED)

    async def ask(*_):
        return reply

    monkeypatch.setattr(peers, "UNUSED_S", 0.02)
    monkeypatch.setattr(peers.Peers, "_ask", ask)

    async def scenario():
        closed: asyncio.Queue = asyncio.Queue()

        async def connected(reader, writer):
            await closed.put(await reader.read())
            writer.close()

        async with await asyncio.start_server(connected, "127.0.0.1", 0) as leader:
            links = peers.Peers({0: leader.sockets[0].getsockname()}, None)
            host = links.host = Mock(named=Host.named)
            for n in range(1, 3):
                links.send(0, ForPartition("t-0", question))
                assert await closed.get() == b""
                assert host.receive.call_count == n, "and opens it again"
            links.close()

    run(scenario)


def test_elections_are_held_on_request(tmp_path):
    async def scenario():
        cluster = Cluster(tmp_path)
        await asyncio.sleep(0.05)
        await cluster.brokers[0].create("t")
        await cluster.in_sync()
        wanted = [{"topic": "t", "partitions": (0, 1)}]

        async def elected(kind, topics=wanted):
            asked = {"election_type": kind, "topic_partitions": topics}
            answer = await cluster.brokers[2].ask(Api.ELECT_LEADERS, version=2, **asked)
            results = answer["replica_election_results"]
            return [each["error_code"] for topic in results for each in topic["partition_result"]]

        first = (await cluster.leader()).host.image.partitions["t-0"].replicas[0]
        assert await elected(0) == [Error.ELECTION_NOT_NEEDED, Error.UNKNOWN_TOPIC_OR_PARTITION]
        cluster.controlling.expire(first)
        await cluster.brokers[2].host.until(lambda image: image.partitions["t-0"].leader != first)
        assert (await elected(0))[0] == Error.PREFERRED_LEADER_NOT_AVAILABLE
        assert (await elected(1))[0] == Error.ELECTION_NOT_NEEDED
        cluster.brokers[first].host.beat()
        await cluster.in_sync()
        assert set(await elected(0, None)) == {Error.NONE}
        assert (await cluster.leader()).host.settings.broker_id == first
        assert await elected(0, None) == []

    run(scenario)


def test_the_end_of_a_session_prolongs_no_other(tmp_path):
    async def scenario():
        cluster = Cluster(tmp_path)
        await asyncio.sleep(0.05)
        brokers = cluster.controlling._controller.state.brokers
        seen_ms = brokers[1].last_seen_ms
        cluster.kill(2)
        assert (brokers[1].last_seen_ms, brokers[2].state) == (seen_ms, BrokerState.FENCED)

    run(scenario)


def test_a_broker_ends_with_its_cluster_before_it_has_met_its_controller(tmp_path, monkeypatch):
    async def at_once():
        pass

    monkeypatch.setattr(clustering, "_until_orphaned", at_once)

    async def scenario():
        with pytest.raises(ConnectionError, match="the cluster's process has ended"):
            await clustering.run_broker(clustering.planned(str(tmp_path), 1, 1, 0), 0, pytest.fail)

    run(scenario)


def test_each_waiting_produce_is_timed_out_in_its_time(tmp_path):
    """One timer serves them all: it is armed for the first deadline, and then for the next."""

    async def scenario():
        cluster = Cluster(tmp_path)
        await asyncio.sleep(0.05)
        await cluster.brokers[0].create("t")
        await cluster.in_sync()
        leader = await cluster.leader()
        for broker in BROKERS:
            if cluster.brokers[broker] is not leader:
                # Without a word to the controller: its session goes on, and the ISR stays.
                cluster.brokers.pop(broker).die()
        began = leader.host.now_ms()
        waiting = []
        for n in range(3):
            waiting.append(asyncio.ensure_future(leader.produce(batch(str(n)), wait_ms=1_000)))
            await asyncio.sleep(0.1)
        assert len(leader.host._due) == 1
        for n, each in enumerate(waiting):
            assert (await each)["error_code"] == Error.REQUEST_TIMED_OUT
            assert 990 + 100 * n <= leader.host.now_ms() - began

    run(scenario)


NAMES = st.sampled_from(["t-0", "a.b-12"])
NUMBERS = st.integers(-1, 1 << 40)
MEMBERS = st.lists(st.integers(0, 5), max_size=3).map(tuple)
PARTITIONS = st.builds(
    PartitionImage,
    MEMBERS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    MEMBERS,
    MEMBERS,
    st.booleans(),
    NUMBERS,
    NUMBERS,
    MEMBERS,
    MEMBERS,
    NUMBERS,
)
IMAGES = st.builds(
    MetadataImage,
    NUMBERS,
    st.dictionaries(NAMES, PARTITIONS, max_size=2),
    st.dictionaries(
        st.integers(0, 5), st.builds(BrokerImage, NUMBERS, st.sampled_from(BrokerState)), max_size=2
    ),
)
CONTENTS = st.one_of(
    st.builds(messages.RegisterRequest, NUMBERS, NUMBERS, NUMBERS),
    st.builds(messages.RegisterReply, NUMBERS, st.sampled_from(Error), NUMBERS),
    st.builds(messages.HeartbeatRequest, NUMBERS, NUMBERS, NUMBERS, st.booleans()),
    st.builds(messages.HeartbeatReply, NUMBERS, st.sampled_from(Error), st.booleans(), st.booleans()),
    st.builds(messages.MetadataUpdate, st.lists(IMAGES, max_size=2).map(tuple)),
    st.builds(messages.AlterPartitionReply, NUMBERS, st.sampled_from(Error), NUMBERS, NUMBERS, MEMBERS),
    st.builds(messages.ConfigureRequest, NUMBERS, NAMES, NUMBERS),
    st.builds(messages.ElectRequest, NUMBERS, NAMES, st.booleans()),
    st.builds(messages.ReassignRequest, NUMBERS, NAMES, st.none() | MEMBERS),
)
ORDERS = st.one_of(
    CONTENTS,
    st.builds(
        ForPartition, NAMES, CONTENTS.filter(lambda each: not isinstance(each, messages.MetadataUpdate))
    ),
    st.builds(CreatePartitions, st.dictionaries(NAMES, MEMBERS, max_size=2)),
    st.builds(DeletePartitions, st.lists(NAMES, max_size=2).map(tuple)),
)


@given(ORDERS)
def test_a_message_arrives_as_it_was_sent(order):
    frame = encode(order)
    assert INT32.unpack(frame[:4])[0] == len(frame) - 4
    assert decode(frame[4:]) == order


def test_a_proposal_arrives_with_its_members():
    proposal = messages.AlterPartitionRequest(3, "t-0", 1, 5, 2, 9, ((0, 4), (1, -1)))
    assert decode(encode(ForPartition("t-0", proposal))[4:]) == ForPartition("t-0", proposal)


@given(
    st.binary(max_size=40) | st.sampled_from([b"[]", b"{}", b'{"kind": "RegisterRequest"}', b'{"kind": []}'])
)
def test_anything_else_ends_the_link(data):
    with pytest.raises(MalformedError):
        decode(data)


@pytest.mark.parametrize(
    "response", [{}, {"responses": []}, {"responses": [{"partitions": [{"error_code": 999}]}]}]
)
def test_an_answer_that_is_none_ends_the_connection(response):
    with pytest.raises(MalformedError):
        peers.reply_of(FetchRequest(1, 1, 0, 0), response)
