"""The requests about the cluster: Metadata, topics made and deleted, DescribeConfigs, -Cluster, ElectLeaders.

A topic is the partitions of its name; replog gives it no id.  One setting can be chosen for a topic,
`min.insync.replicas`; others are refused when a topic is created, and described as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from replog.core.controller.placement import assign
from replog.core.messages import ConfigureRequest, ElectRequest, Message
from replog.core.types import NO_LEADER, BrokerState, Error, MetadataImage, PartitionImage
from replog.run.partitions import key_of
from replog.run.serve.codec import Body
from replog.run.serve.controlling import CreatePartitions, DeletePartitions
from replog.run.serve.host import GROUPS, LARGEST_BATCH, Host, Wish
from replog.store.files.config import DEFAULT_CONFIG

TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
MOST_PARTITIONS = 1_000
"""Of one topic, and of all topics of one request."""
MOST_DESCRIBED = 2_000
"""Partitions in the answer to DescribeTopicPartitions."""
PREFERRED = 0
"""The type of election; the other is unclean."""
LEADER_NOT_AVAILABLE = 5
INVALID_TOPIC = 17
TOPIC_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40
INTERNAL_TOPIC = key_of(GROUPS)[0]
MIN_ISR = "min.insync.replicas"
TOPIC, BROKER = 2, 4
"""Types of resources with settings."""
DEFAULT_SOURCE = 5
UNAUTHORIZED = -(1 << 31)
"""Authorized operations, which nobody has asked for."""

T = TypeVar("T")
Address = tuple[str, int]
Partitions = dict[int, PartitionImage]


def topics_of(image: MetadataImage) -> dict[str, Partitions]:
    """Return the partitions of each topic by their numbers."""
    topics: dict[str, Partitions] = {}
    for name, partition in image.partitions.items():
        topic, number = key_of(name)
        topics.setdefault(topic, {})[number] = partition
    return topics


def brokers_of(host: Host, addresses: Mapping[int, Address]) -> tuple[tuple[int, Address], ...]:
    """Return the brokers that may be used, each with its address."""
    known = {b for b, each in host.image.brokers.items() if each.state is not BrokerState.FENCED}
    # This one answers, whatever the metadata has of it.
    known.add(host.settings.broker_id)
    return tuple((broker, addresses[broker]) for broker in sorted(known) if broker in addresses)


async def metadata(
    host: Host, addresses: Mapping[int, Address], request: Body, version: int, creates: bool
) -> Body:
    """Return brokers and topics; a topic that is missing is created if client and broker allow it."""
    topics = topics_of(host.image)
    wanted = request["topics"]
    # Version 0 has no null: an empty array means all topics.
    is_all = wanted is None or (version == 0 and not wanted)
    names = sorted(topics) if is_all else list(dict.fromkeys(each["name"] for each in wanted))
    if creates and request.get("allow_auto_topic_creation", True):
        absent = [n for n in names if n not in topics and TOPIC_NAME.fullmatch(n)]
        if absent and len(absent) <= MOST_PARTITIONS:
            replicas = min(len(host.settings.cluster), 3)
            await create(host, {name: assign(host.settings.cluster, 1, replicas) for name in absent})
            topics = topics_of(host.image)
    brokers = brokers_of(host, addresses)
    return {
        "brokers": tuple({"node_id": b, "host": h, "port": p, "rack": None} for b, (h, p) in brokers),
        "cluster_id": host.settings.cluster_id,
        "controller_id": host.settings.broker_id,
        "topics": tuple(_topic(host, name, topics.get(name)) for name in names),
        "cluster_authorized_operations": UNAUTHORIZED,
    }


def _topic(host: Host, name: str, partitions: Partitions | None) -> dict[str, Any]:
    error: int = Error.NONE
    if partitions is None:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION if TOPIC_NAME.fullmatch(name) else INVALID_TOPIC
    return {
        "error_code": error,
        "name": name,
        "is_internal": name == INTERNAL_TOPIC,
        "partitions": tuple(_partition(host, n, each) for n, each in sorted((partitions or {}).items())),
        "topic_authorized_operations": UNAUTHORIZED,
    }


def _partition(host: Host, number: int, image: PartitionImage) -> Body:
    def is_offline(broker: int) -> bool:
        known = host.image.brokers.get(broker)
        return known is None or known.state is BrokerState.FENCED

    return {
        "error_code": LEADER_NOT_AVAILABLE if image.leader == NO_LEADER else Error.NONE,
        "partition_index": number,
        "leader_id": image.leader,
        "leader_epoch": image.leader_epoch,
        "replica_nodes": image.replicas,
        "isr_nodes": image.isr,
        "eligible_leader_replicas": image.elr,
        "last_known_elr": () if image.last_known_leader == NO_LEADER else (image.last_known_leader,),
        "offline_replicas": tuple(filter(is_offline, image.replicas)),
    }


async def describe_partitions(host: Host, request: Body) -> Body:
    """Describe partitions from a cursor on, up to a limit (KIP-966)."""
    topics, cursor = topics_of(host.image), request["cursor"]
    first = ("", 0) if cursor is None else (cursor["topic_name"], cursor["partition_index"])
    room = min(max(request["response_partition_limit"], 1), MOST_DESCRIBED)
    described: list[Body] = []
    for name in sorted({each["name"] for each in request["topics"]} or topics):
        topic = _topic(host, name, topics.get(name))
        parts = [part for part in topic["partitions"] if (name, part["partition_index"]) >= first]
        if name < first[0]:
            continue
        if parts[:room] or not parts:
            described.append(topic | {"partitions": tuple(parts[:room])})
        if parts[room:]:
            following = {"topic_name": name, "partition_index": parts[room]["partition_index"]}
            return {"topics": tuple(described), "next_cursor": following}
        room -= len(parts)
    return {"topics": tuple(described), "next_cursor": None}


Assignments = Mapping[str, tuple[tuple[int, ...], ...]]


class RefusedTopicError(Exception):
    """A topic that is not created or deleted: Kafka's error code, and the reason in words."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


TWICE = Error.INVALID_REQUEST, "the request names the topic twice"


def _refusal(name: str, error: RefusedTopicError) -> Body:
    refusal = {"name": name, "error_code": error.code, "error_message": error.reason}
    return refusal | {"num_partitions": -1, "replication_factor": -1}


async def create(host: Host, topics: Assignments) -> list[bool]:
    """Create topics with the replicas of each partition; return which are there in time, and led.

    A topic that another request has created meanwhile may have fewer partitions.
    """
    named = {name: held for topic, parts in topics.items() for name, held in _named(topic, parts)}
    wishes = [partial(_is_led, [name for name, _ in _named(*topic)]) for topic in topics.items()]
    return await host.decide([CreatePartitions(named)], wishes)


def _named(topic: str, parts: tuple[T, ...]) -> Iterator[tuple[str, T]]:
    return ((f"{topic}-{number}", part) for number, part in enumerate(parts))


def _is_led(names: list[str], image: MetadataImage) -> bool:
    made = [image.partitions[name] for name in names if name in image.partitions]
    return names[0] in image.partitions and all(each.leader != NO_LEADER for each in made)


async def create_topics(host: Host, request: Body) -> Body:
    """Create topics; each of them or, where it is refused, nothing of it."""
    results: dict[str, Body] = {}
    planned: dict[str, tuple[tuple[int, ...], ...]] = {}
    for topic in request["topics"]:
        name = topic["name"]
        try:
            if name in results or planned.pop(name, ()):
                raise RefusedTopicError(*TWICE)
            planned[name] = _plan(host, topic, MOST_PARTITIONS - sum(map(len, planned.values())))
        except RefusedTopicError as error:
            results[name] = _refusal(name, error)
    if not request["validate_only"] and planned:
        settings = {topic["name"]: topic["configs"] for topic in request["topics"]}
        refusals = await _make(host, planned, settings)
        results |= {name: _refusal(name, error) for name, error in refusals.items()}
    for name, parts in planned.items():
        made = {
            "name": name,
            "error_code": Error.NONE,
            "num_partitions": len(parts),
            "replication_factor": len(parts[0]),
        }
        results.setdefault(name, made)
    return {"topics": tuple(results.values())}


Refusals = dict[str, RefusedTopicError]


async def _make(host: Host, planned: Assignments, settings: Mapping[str, Any]) -> Refusals:
    """Create topics with their settings; return those that are not there in time, or are another's."""
    refusals: Refusals = {}
    for (name, parts), is_led in zip(planned.items(), await create(host, planned), strict=True):
        if not is_led:
            refusals[name] = RefusedTopicError(Error.REQUEST_TIMED_OUT, "the topic has no leader yet")
        elif len(topics_of(host.image).get(name, parts)) != len(parts):
            text = "another request has created the topic meanwhile"
            refusals[name] = RefusedTopicError(TOPIC_EXISTS, text)
    chosen = [
        (topic, place, int(setting["value"]))
        for topic, parts in planned.items()
        for setting in settings[topic]
        if setting["name"] == MIN_ISR and topic not in refusals
        for place, _ in _named(topic, parts)
    ]
    orders = [ConfigureRequest(host.number(), place, value) for _, place, value in chosen]
    done = await host.decide(orders, [partial(_has_min_isr, place, value) for _, place, value in chosen])
    for (topic, _, _), is_done in zip(chosen, done, strict=True):
        if not is_done:
            text = f"the topic does not have its {MIN_ISR} yet"
            refusals[topic] = RefusedTopicError(Error.REQUEST_TIMED_OUT, text)
    return refusals


def _has_min_isr(name: str, chosen: int, image: MetadataImage) -> bool:
    return name not in image.partitions or image.partitions[name].min_isr == chosen


def _plan(host: Host, topic: Body, room: int) -> tuple[tuple[int, ...], ...]:
    """Return the replicas of each partition of a new topic; raises `RefusedTopicError`."""
    name, count, replicas = topic["name"], topic["num_partitions"], topic["replication_factor"]
    cluster = host.settings.cluster
    if not TOPIC_NAME.fullmatch(name):
        raise RefusedTopicError(INVALID_TOPIC, "a topic's name has 1 to 249 letters, digits, '.', '_' or '-'")
    if name in topics_of(host.image):
        raise RefusedTopicError(TOPIC_EXISTS, f"the topic {name!r} exists already")
    if topic["assignments"]:
        raise RefusedTopicError(Error.INVALID_REPLICA_ASSIGNMENT, "the broker places the replicas itself")
    # -1 stands for the broker's default, which is 1 here, and all brokers up to 3.
    count = 1 if count == -1 else count
    replicas = min(len(cluster), 3) if replicas == -1 else replicas
    if not 1 <= count <= room:
        raise RefusedTopicError(INVALID_PARTITIONS, f"a request may create 1 to {MOST_PARTITIONS} partitions")
    if not 1 <= replicas <= len(cluster):
        text = f"{replicas} replicas cannot be placed on {len(cluster)} brokers"
        raise RefusedTopicError(INVALID_REPLICATION_FACTOR, text)
    for setting in topic["configs"]:
        _check_setting(host, setting["name"], setting["value"])
    return assign(cluster, count, replicas)


def _check_setting(host: Host, name: str, value: str | None) -> None:
    if name == MIN_ISR:
        if value is None or not value.isascii() or not value.isdecimal() or not 1 <= int(value) < 1 << 15:
            raise RefusedTopicError(INVALID_CONFIG, f"{MIN_ISR} is a number from 1 on, not {value!r}")
    elif value != _topic_settings(host, None).get(name):
        raise RefusedTopicError(INVALID_CONFIG, f"replog does not support {name}={value}")


async def delete_topics(host: Host, request: Body) -> Body:
    """Delete topics with all their records."""
    results: dict[str, Body] = {}
    known, gone = topics_of(host.image), dict[str, list[str]]()
    for name in request["topic_names"]:
        if name in results or gone.pop(name, []):
            results[name] = _refusal(name, RefusedTopicError(*TWICE))
        elif name == INTERNAL_TOPIC:
            refused = RefusedTopicError(INVALID_TOPIC, "the offsets of consumer groups cannot be deleted")
            results[name] = _refusal(name, refused)
        elif name not in known:
            refused = RefusedTopicError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
            results[name] = _refusal(name, refused)
        else:
            gone[name] = [f"{name}-{number}" for number in known[name]]
    order = DeletePartitions(tuple(each for names in gone.values() for each in names))
    done = await host.decide([order] if gone else [], [partial(_lacks, names[0]) for names in gone.values()])
    late = RefusedTopicError(Error.REQUEST_TIMED_OUT, "the controller has not decided yet")
    for name, is_done in zip(gone, done, strict=True):
        results[name] = {"name": name, "error_message": None} if is_done else _refusal(name, late)
    return {"responses": tuple(results.values())}


def _lacks(name: str, image: MetadataImage) -> bool:
    return name not in image.partitions


async def elect_leaders(host: Host, request: Body) -> Body:
    """Hold elections: preferred ones, or unclean ones of partitions without a leader."""
    unclean = request.get("election_type", PREFERRED) != PREFERRED
    wanted = request["topic_partitions"]
    if wanted is None:
        topics = {topic: sorted(parts) for topic, parts in topics_of(host.image).items()}
    else:
        topics = {each["topic"]: each["partitions"] for each in wanted}
    names = [(topic, number) for topic, numbers in topics.items() for number in numbers]
    begun = [_election(host, f"{topic}-{number}", unclean) for topic, number in names]
    results: dict[str, list[Body]] = {}
    for (topic, number), error in zip(names, await decided(host, begun), strict=True):
        # Who names no partition is not told of those that need nothing.
        if wanted is not None or error != Error.ELECTION_NOT_NEEDED:
            result = {"partition_id": number, "error_code": error, "error_message": None}
            results.setdefault(topic, []).append(result)
    return {
        "replica_election_results": tuple(
            {"topic": topic, "partition_result": tuple(parts)} for topic, parts in results.items()
        )
    }


Begun = int | tuple[Message, Wish]
"""Why nothing is done for a partition; or what the controller is asked, and how to see that it is done."""


async def decided(host: Host, begun: list[Begun]) -> list[int]:
    """Ask the controller, and wait for all; return the error code for each partition, 0 if it is done."""
    asked = [each for each in begun if not isinstance(each, int)]
    done = iter(await host.decide([order for order, _ in asked], [wish for _, wish in asked]))
    return [
        each if isinstance(each, int) else Error.NONE if next(done) else Error.REQUEST_TIMED_OUT
        for each in begun
    ]


def _election(host: Host, name: str, unclean: bool) -> Begun:
    """Return what the controller is asked in order to hold an election, or why it needs none."""
    image = host.image.partitions.get(name)
    # One that is being deleted has no replicas.
    if image is None or not image.replicas:
        return Error.UNKNOWN_TOPIC_OR_PARTITION

    def is_held(new: MetadataImage) -> bool:
        now = new.partitions.get(name)
        if now is None or not now.replicas:
            return True
        return now.leader != NO_LEADER if unclean else now.leader == now.replicas[0]

    if is_held(host.image):
        return Error.ELECTION_NOT_NEEDED
    if unclean:
        candidates, refusal = set(image.replicas), Error.ELIGIBLE_LEADERS_NOT_AVAILABLE
    else:
        candidates, refusal = {image.replicas[0]} & set(image.isr), Error.PREFERRED_LEADER_NOT_AVAILABLE
    brokers = host.image.brokers
    if not any(b in brokers and brokers[b].state is BrokerState.ACTIVE for b in candidates):
        return refusal
    return ElectRequest(host.number(), name, unclean), is_held


def _topic_settings(host: Host, partitions: Partitions | None) -> dict[str, str]:
    """Return the settings of a topic, those that cannot be changed among them."""
    chosen = next(iter(partitions.values())).min_isr if partitions else 0
    return {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "max.message.bytes": str(LARGEST_BATCH),
        "message.timestamp.type": "CreateTime",
        MIN_ISR: str(chosen or host.settings.min_isr),
        "retention.bytes": "-1",
        "retention.ms": "-1",
        "segment.bytes": str(DEFAULT_CONFIG.segment_bytes),
    }


async def describe_configs(host: Host, request: Body) -> Body:
    """Describe the settings of topics and of this broker."""
    # Each once, since an answer may be far larger than what asks for it.
    resources = {(each["resource_type"], each["resource_name"]): each for each in request["resources"]}
    return {"results": tuple(_described(host, each) for each in resources.values())}


def _described(host: Host, resource: Body) -> Body:
    kind, name, keys = resource["resource_type"], resource["resource_name"], resource["configuration_keys"]
    result = {"resource_type": kind, "resource_name": name, "error_message": None}
    settings: dict[str, str] = {}
    if kind == TOPIC:
        partitions = topics_of(host.image).get(name)
        if partitions is None:
            return result | {"error_code": Error.UNKNOWN_TOPIC_OR_PARTITION}
        settings = _topic_settings(host, partitions)
    elif kind == BROKER and name in ("", str(host.settings.broker_id)):
        settings = {MIN_ISR: str(host.settings.min_isr), "message.max.bytes": str(LARGEST_BATCH)}
    else:
        return result | {"error_code": Error.INVALID_REQUEST, "error_message": "no such topic or broker"}
    configs = tuple(
        {"name": key, "value": value, "read_only": True, "config_source": DEFAULT_SOURCE}
        for key, value in settings.items()
        if keys is None or key in keys
    )
    return result | {"configs": configs}


async def describe_cluster(host: Host, addresses: Mapping[int, Address]) -> Body:
    """Describe the brokers."""
    brokers = brokers_of(host, addresses)
    return {
        "cluster_id": host.settings.cluster_id,
        "controller_id": host.settings.broker_id,
        "brokers": tuple({"broker_id": b, "host": h, "port": p} for b, (h, p) in brokers),
        "cluster_authorized_operations": UNAUTHORIZED,
    }
