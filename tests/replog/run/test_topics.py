"""Topics: created, described and deleted, and what replog cannot do is refused in words."""

import asyncio
from dataclasses import replace

import pytest
from serving import Broker, batch, run, topic

from replog.core.types import Error, PartitionImage
from replog.run.serve import host, topics
from replog.run.serve.frames import Api


async def names(broker: Broker, *wanted: str, creates: bool = False) -> dict[str, dict]:
    asked = [{"name": name} for name in wanted] or None
    answer = await broker.ask(Api.METADATA, topics=asked, allow_auto_topic_creation=creates)
    return {each["name"]: each for each in answer["topics"]}


def test_metadata_names_brokers_and_leaders(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t", partitions=3)
        answer = await broker.ask(Api.METADATA, topics=None)
        assert [(b["node_id"], b["host"], b["port"]) for b in answer["brokers"]] == [(0, "localhost", 9092)]
        found = await names(broker)
        assert {name: each["is_internal"] for name, each in found.items()} == {
            "__consumer_offsets": True,
            "t": False,
        }
        assert [(p["partition_index"], p["leader_id"], p["isr_nodes"]) for p in found["t"]["partitions"]] == [
            (n, 0, (0,)) for n in range(3)
        ]
        # A topic that is named often is described once.
        assert len((await broker.ask(Api.METADATA, topics=[{"name": "t"}] * 1_000))["topics"]) == 1
        # Version 0 has no null: an empty array means all.
        assert (await broker.ask(Api.METADATA, 0, topics=()))["topics"] == answer["topics"]
        cluster = await broker.ask(Api.DESCRIBE_CLUSTER)
        assert cluster["cluster_id"] == answer["cluster_id"]

    run(scenario)


def test_a_topic_is_created_for_a_client_that_may(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        assert (await names(broker, "a"))["a"]["error_code"] == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert (await names(broker, "a", creates=True))["a"]["error_code"] == Error.NONE
        assert (await names(broker, "../a", creates=True))["../a"]["error_code"] == topics.INVALID_TOPIC
        assert set(await names(broker)) == {"__consumer_offsets", "a"}

    run(scenario)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (topic(".."), topics.INVALID_TOPIC),
        (topic("a/b"), topics.INVALID_TOPIC),
        (topic("known"), topics.TOPIC_EXISTS),
        (topic("a", 0), topics.INVALID_PARTITIONS),
        (topic("a", 1_001), topics.INVALID_PARTITIONS),
        (topic("a") | {"replication_factor": 2}, topics.INVALID_REPLICATION_FACTOR),
        (topic("a", cleanup_policy="compact"), topics.INVALID_CONFIG),
        (topic("a", min_insync_replicas="many"), topics.INVALID_CONFIG),
        (topic("a") | {"assignments": [{}]}, Error.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_topic_that_cannot_be_is_refused_with_a_reason(tmp_path, wanted, error):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("known")
        answer = await broker.ask(Api.CREATE_TOPICS, topics=[wanted], validate_only=False)
        assert answer["topics"][0]["error_code"] == error
        assert answer["topics"][0]["error_message"]
        assert set(await names(broker)) == {"__consumer_offsets", "known"}

    run(scenario)


def test_settings_are_those_of_the_topic(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        made = [topic("t", 2, min_insync_replicas="2", cleanup_policy="delete")]
        await broker.ask(Api.CREATE_TOPICS, topics=made, validate_only=True)
        assert "t" not in await names(broker)
        await broker.ask(Api.CREATE_TOPICS, topics=made, validate_only=False)
        resources = [
            {"resource_type": topics.TOPIC, "resource_name": name, "configuration_keys": keys}
            for name, keys in (("t", ["min.insync.replicas"]), ("no", None))
        ]
        resources.append({"resource_type": topics.BROKER, "resource_name": "0", "configuration_keys": None})
        found = (await broker.ask(Api.DESCRIBE_CONFIGS, resources=resources))["results"]
        assert [(c["name"], c["value"]) for c in found[0]["configs"]] == [("min.insync.replicas", "2")]
        assert found[1]["error_code"] == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert found[2]["configs"]

    run(scenario)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_deleted_topic_is_gone_and_a_new_one_of_its_name_is_empty(tmp_path, is_killed):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t", "u")
        await broker.produce(batch("a"))
        for name, error in (("t", None), ("t", 3), ("__consumer_offsets", topics.INVALID_TOPIC)):
            answer = await broker.ask(Api.DELETE_TOPICS, topic_names=[name])
            assert answer["responses"][0].get("error_code") == error
        assert (await broker.produce(batch("a")))["error_code"] == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert not (tmp_path / "t-0").exists()
        if is_killed:
            broker.die()
            # As if the process had ended before the folder was removed.
            (tmp_path / "t-0").mkdir()
            broker = Broker(tmp_path)
            assert not (tmp_path / "t-0").exists()
        await broker.create("t")
        assert (await broker.produce(batch("b")))["base_offset"] == 0

    run(scenario)


def test_producer_ids_are_never_given_twice(tmp_path):
    async def scenario():
        given = []
        for _ in range(2):
            broker = Broker(tmp_path)
            for _ in range(2):
                answer = await broker.ask(Api.INIT_PRODUCER_ID, transactional_id=None)
                given.append(answer["producer_id"])
            broker.die()
        assert len(set(given)) == 4
        assert min(given) > 0
        broker = Broker(tmp_path)
        refused = await broker.ask(Api.INIT_PRODUCER_ID, transactional_id="t")
        assert refused["error_code"] == 53

    run(scenario)


def test_many_topics_and_one_that_is_damaged(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t", "u")
        await broker.produce(batch("a"))
        await broker.stop()
        (tmp_path / "t-0" / "00000000000000000000.log").write_bytes(b"?")
        broker = Broker(tmp_path)
        assert any("t-0 stays closed" in note for note in broker.host.files.directory.notes)
        assert (await broker.produce(batch("b")))["error_code"] == Error.KAFKA_STORAGE_ERROR
        assert (await broker.produce(batch("b"), topic="u"))["error_code"] == Error.NONE
        assert host.GROUPS in broker.host.broker.replicas

    run(scenario)


def test_who_waits_at_a_topic_that_is_deleted_is_answered(tmp_path):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        waiting = asyncio.ensure_future(broker.fetch(0, wait_ms=10_000, client=broker.host.client()))
        await asyncio.sleep(0.01)
        await broker.ask(Api.DELETE_TOPICS, topic_names=["t"])
        assert (await asyncio.wait_for(waiting, 5))["error_code"] == Error.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario)


def test_topics_of_one_request_are_waited_for_together(tmp_path, monkeypatch):
    """And each that the request names twice is refused, as in Kafka."""
    monkeypatch.setattr(host, "DECISION_S", 0.2)

    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("a", "b", "c")

        async def asked(api, **body):
            (answers,) = (await broker.ask(api, **body)).values()
            return {each["name"]: each.get("error_code") or 0 for each in answers}

        made = [topic(name) for name in ("d", "d", "e", "d", "f", "a")]
        twice, ok = Error.INVALID_REQUEST, Error.NONE
        assert await asked(Api.CREATE_TOPICS, topics=made, validate_only=False) == {
            "d": twice,
            "a": topics.TOPIC_EXISTS,
            "e": ok,
            "f": ok,
        }
        assert await asked(Api.DELETE_TOPICS, topic_names=["e", "e", "e", "f"]) == {"e": twice, "f": ok}
        # The controller is away.
        monkeypatch.setattr(broker.host, "_control", lambda order: None)
        made = [topic(name, min_insync_replicas="1") for name in ("g", "h", "i")]
        for api, body in (
            (Api.CREATE_TOPICS, {"topics": made, "validate_only": False}),
            (Api.DELETE_TOPICS, {"topic_names": ["a", "b", "c"]}),
        ):
            began = broker.host.now_ms()
            assert set((await asked(api, **body)).values()) == {Error.REQUEST_TIMED_OUT}
            assert broker.host.now_ms() - began < 390

    run(scenario)


def test_requests_about_a_topic_that_is_being_deleted_are_answered(tmp_path):
    """The first of the two versions that announce a deletion has partitions without replicas."""

    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        partitions = {"t-0": PartitionImage((), -1, 9, 9, ())}
        broker.host.image = replace(broker.host.image, partitions=partitions)
        for kind in (0, 1):
            named = [{"topic": "t", "partitions": [0]}]
            answer = await broker.ask(Api.ELECT_LEADERS, 2, election_type=kind, topic_partitions=named)
            (result,) = answer["replica_election_results"][0]["partition_result"]
            assert result["error_code"] == Error.UNKNOWN_TOPIC_OR_PARTITION
        (described,) = (await names(broker)).values()
        assert described["partitions"][0]["leader_id"] == -1
        settings = [{"resource_type": 2, "resource_name": "t", "configuration_keys": None}]
        await broker.ask(Api.DESCRIBE_CONFIGS, 1, resources=settings)
        await broker.ask(Api.LIST_PARTITION_REASSIGNMENTS, 0, topics=None)

    run(scenario)
