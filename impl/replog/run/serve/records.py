"""The requests about records: Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords.

Each partition of a request becomes one message of the core, and its answer one partition of the response;
nothing is decided here that the core decides.  Here are only what the core does not see: the bytes of a batch
(`opaque`), the size of a whole response, and the wait of a fetch for any of its partitions.

A fetch asks twice: to be woken by the first partition with something to read (`wait_for_records`), and then
for what there is (`fetch`).  In between the connection gets the memory for it.  A minimum of bytes above 1
counts as 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from replog.core.messages import (
    EARLIEST,
    LATEST,
    DeleteRecordsReply,
    DeleteRecordsRequest,
    EpochEndReply,
    EpochEndRequest,
    FetchReply,
    FetchRequest,
    ListOffsetsReply,
    ListOffsetsRequest,
    Message,
    ProduceReply,
    ProduceRequest,
)
from replog.core.types import CONSUMER, Error
from replog.run import opaque
from replog.run.partitions import MAX_TIMESTAMP
from replog.run.serve.codec import Body
from replog.run.serve.frames import UNSUPPORTED_VERSION, Api
from replog.run.serve.host import LARGEST_BATCH, Host
from replog.store.files.errors import CorruptBatchError, InvalidRecordError

LARGEST_RESPONSE = 4 << 20
"""The most bytes of records in the response to one fetch, whatever it requests."""
LONGEST_WAIT_MS = 60_000
NEVER = 1 << 15
DEBUGGING = -2
"""Who is told the end of its log by any replica, as in Kafka."""
OFFSET_KINDS = MappingProxyType({LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7})
"""What ListOffsets may ask in place of a time, and from which version on."""


@dataclass(frozen=True, slots=True)
class Place:
    """A partition in a request: its topic, its number, and what the request has for it."""

    topic: str
    number: int
    body: Body

    @property
    def partition(self) -> str:
        """Return the name of the partition."""
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True, slots=True)
class Shape:
    """The names of partitions in the requests of an API, and in the responses where they are others."""

    topics: str = "topics"
    topic: str = "name"
    partitions: str = "partitions"
    number: str = "partition_index"
    answered_topics: str = "topics"
    answered_partitions: str = "partitions"
    answered_number: str = "partition_index"

    def places(self, request: Body) -> Iterator[Place]:
        """Yield the partitions of a request."""
        for topic in request[self.topics] or ():
            for body in topic[self.partitions]:
                yield Place(topic[self.topic], body[self.number], body)

    def request(self, place: Place) -> Body:
        """Return the part of a request about one partition."""
        partition = {self.number: place.number, **place.body}
        return {self.topics: [{self.topic: place.topic, self.partitions: [partition]}]}

    def response(self, answers: Iterable[tuple[Place, Body]]) -> dict[str, Any]:
        """Return answers to partitions, grouped by topic in the order of the request."""
        topics: dict[str, list[Body]] = {}
        for place, body in answers:
            topics.setdefault(place.topic, []).append({self.answered_number: place.number, **body})
        grouped = tuple({self.topic: t, self.answered_partitions: tuple(b)} for t, b in topics.items())
        return {self.answered_topics: grouped}


PLAIN = Shape()
SHAPES = MappingProxyType(
    {
        Api.PRODUCE: Shape(
            "topic_data", "name", "partition_data", "index", "responses", "partition_responses", "index"
        ),
        Api.FETCH: Shape(topic="topic", number="partition", answered_topics="responses"),
        Api.OFFSET_FOR_LEADER_EPOCH: Shape(topic="topic", number="partition", answered_number="partition"),
        Api.LIST_OFFSETS: PLAIN,
        Api.OFFSET_COMMIT: PLAIN,
        Api.DELETE_RECORDS: PLAIN,
    }
)


def missing(host: Host, place: Place) -> Error:
    """Return the reason why this broker has no replica of a partition."""
    known = host.image.partitions.get(place.partition)
    if known is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    # It should have one, so its files are damaged.
    is_here = host.settings.broker_id in known.replicas
    return Error.KAFKA_STORAGE_ERROR if is_here else Error.NOT_LEADER_OR_FOLLOWER


async def produce(host: Host, client: int, request: Body) -> Body | None:
    """Append batches; no answer if the producer wants none."""
    # All partitions of a request wait together.
    shape = SHAPES[Api.PRODUCE]
    begun = [(place, _append(host, client, place, request)) for place in shape.places(request)]
    answers = [
        (place, _appended(host, place, await begin) if isinstance(begin, asyncio.Future) else begin)
        for place, begin in begun
    ]
    if request["acks"] == 0:
        return None
    return shape.response(answers)


def _append(host: Host, client: int, place: Place, request: Body) -> Body | asyncio.Future[Message]:
    """Hand a batch to the core; return what the core will answer, or why it was not asked."""
    if request["transactional_id"] is not None:
        return _refused(Error.INVALID_REQUEST, "transactions are not supported")
    if not host.has(place.partition):
        return _refused(missing(host, place))
    try:
        batch = opaque.produced(place.body["records"] or b"")
    except InvalidRecordError as error:
        return _refused(Error.INVALID_RECORD, str(error))
    except CorruptBatchError as error:
        return _refused(Error.CORRUPT_MESSAGE, str(error))
    message = ProduceRequest(host.number(), batch, request["acks"], max(request["timeout"], 0))
    if request["acks"] == 0:
        host.tell(client, place.partition, message)
        return _refused(Error.NONE)
    return host.ask(client, place.partition, message)


def _refused(error: Error, text: str | None = None) -> Body:
    return {"error_code": error, "base_offset": -1, "error_message": text}


def _appended(host: Host, place: Place, reply: Message) -> Body:
    assert isinstance(reply, ProduceReply)
    return {
        "error_code": reply.error,
        "base_offset": reply.base_offset,
        "log_append_time": -1,
        "log_start_offset": log_start(host, place.partition) if reply.error is Error.NONE else -1,
    }


def log_start(host: Host, partition: str) -> int:
    """Return where a log starts now; -1 without a replica."""
    replica = host.broker.replicas.get(partition)
    return -1 if replica is None else replica.state.log.log_start


async def wait_for_records(host: Host, client: int, request: Body) -> None:
    """Wait until a partition of a fetch has something to read, or an error, or for as long as it says."""
    wait_ms = min(request["max_wait"], LONGEST_WAIT_MS)
    if wait_ms <= 0 or request["min_bytes"] <= 0:
        return
    asked: list[asyncio.Future[Message]] = []
    try:
        for place in SHAPES[Api.FETCH].places(request):
            if not host.has(place.partition):
                return
            asked.append(
                host.ask(
                    client, place.partition, _fetch_of(host, place, replica_of(host, request), wait_ms, 1)
                )
            )
            if asked[-1].done():
                return
        # The core answers the last of them in time; not where a replica has gone.
        if asked:
            await asyncio.wait(asked, timeout=wait_ms / 1_000, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(wait_ms / 1_000)
    finally:
        for each in asked:
            each.cancel()


def most_bytes(request: Body) -> int:
    """Return how large the records of the answer to a fetch may be."""
    wanted: int = request.get("max_bytes", LARGEST_RESPONSE)
    return min(max(wanted, LARGEST_BATCH), LARGEST_RESPONSE)


def fetch(host: Host, client: int, request: Body) -> Body:
    """Return what there is to read now."""
    room = most_bytes(request)
    answers: list[tuple[Place, Body]] = []
    has_records = False
    shape = SHAPES[Api.FETCH]
    for place in shape.places(request):
        # The first batch is returned whatever its size, of the first partition that has one.
        limit = min(place.body["partition_max_bytes"], room)
        asked = _fetch_of(host, place, replica_of(host, request), 0, limit)
        answer = _read(host, client, place, asked, not has_records)
        has_records |= bool(answer["records"])
        room -= len(answer["records"])
        answers.append((place, answer))
    return shape.response(answers)


def _read(host: Host, client: int, place: Place, asked: FetchRequest, at_least_one: bool) -> dict[str, Any]:
    if not host.has(place.partition):
        reply = FetchReply(-1, missing(host, place))
    else:
        reply = host.now(client, place.partition, asked, FetchReply)
    batches = reply.batches
    if batches and batches[0].size_bytes > asked.max_bytes and not at_least_one:
        batches = ()
    answer: dict[str, Any] = {
        "error_code": reply.error,
        "high_watermark": reply.high_watermark,
        "last_stable_offset": reply.high_watermark,
        "log_start_offset": reply.log_start,
        "aborted_transactions": None,
        "records": host.files.read(place.partition, batches),
    }
    if reply.diverging is not None:
        answer["diverging_epoch"] = {"epoch": reply.diverging.epoch, "end_offset": reply.diverging.end_offset}
    return answer


def replica_of(host: Host, request: Body) -> int:
    """Return the other broker that asks as a follower; whoever else says to be a replica is a consumer."""
    replica: int = request.get("replica_id", CONSUMER)
    others = set(host.settings.cluster) - {host.settings.broker_id}
    return replica if replica in others else CONSUMER


def _fetch_of(host: Host, place: Place, replica: int, wait_ms: int, limit: int) -> FetchRequest:
    """Return what a request asks of a partition."""
    body = place.body
    return FetchRequest(
        host.number(),
        replica,
        body.get("current_leader_epoch", -1),
        body["fetch_offset"],
        body.get("last_fetched_epoch", -1),
        max_wait_ms=wait_ms,
        max_bytes=max(limit, 0),
        log_start=body.get("log_start_offset", -1),
    )


async def list_offsets(host: Host, client: int, request: Body, version: int) -> Body:
    """Return the ends of logs, and the offsets of times."""
    return PLAIN.response((p, _list_offset(host, client, p, request, version)) for p in PLAIN.places(request))


def _list_offset(host: Host, client: int, place: Place, request: Body, version: int) -> dict[str, Any]:
    which = place.body["timestamp"]
    refused = {"error_code": UNSUPPORTED_VERSION, "offset": -1, "timestamp": -1, "leader_epoch": -1}
    if which < 0 and version < OFFSET_KINDS.get(which, NEVER):
        return refused
    if not host.has(place.partition):
        return refused | {"error_code": missing(host, place)}
    epoch = place.body.get("current_leader_epoch", -1)
    if request.get("replica_id") == DEBUGGING and which == LATEST:
        log = host.broker.replicas[place.partition].state.log
        return refused | {"error_code": Error.NONE, "offset": log.leo}
    # A time is looked up below what LATEST shows, once the core has answered for it.
    end = EARLIEST if which == EARLIEST else LATEST
    message = ListOffsetsRequest(host.number(), replica_of(host, request), epoch, end)
    reply = host.now(client, place.partition, message, ListOffsetsReply)
    if reply.error is not Error.NONE:
        return refused | {"error_code": reply.error}
    offset, time = reply.offset, -1
    leader_epoch = host.broker.replicas[place.partition].state.leader_epoch
    if which != end:
        offset, time, leader_epoch = host.files.first_after(place.partition, which, reply.offset)
    return {"error_code": Error.NONE, "offset": offset, "timestamp": time, "leader_epoch": leader_epoch}


async def epoch_ends(host: Host, client: int, request: Body) -> Body:
    """Return where leader epochs end."""
    shape, replica = SHAPES[Api.OFFSET_FOR_LEADER_EPOCH], replica_of(host, request)
    return shape.response((p, _epoch_end(host, client, p, replica)) for p in shape.places(request))


def _epoch_end(host: Host, client: int, place: Place, replica: int) -> Body:
    if not host.has(place.partition):
        return {"error_code": missing(host, place), "leader_epoch": -1, "end_offset": -1}
    current, epoch = place.body["current_leader_epoch"], place.body["leader_epoch"]
    message = EpochEndRequest(host.number(), replica, current, epoch)
    reply = host.now(client, place.partition, message, EpochEndReply)
    end = reply.end
    return {"error_code": reply.error, "leader_epoch": end.epoch, "end_offset": end.end_offset}


async def delete_records(host: Host, client: int, request: Body) -> Body:
    """Delete the beginnings of logs."""
    wanted = list(PLAIN.places(request))
    timeout_ms = max(request["timeout"], 0)
    begun = [
        host.ask(
            client,
            place.partition,
            DeleteRecordsRequest(host.number(), place.body["offset"], timeout_ms),
        )
        if host.has(place.partition)
        else missing(host, place)
        for place in wanted
    ]
    answers: list[tuple[Place, Body]] = []
    for place, begin in zip(wanted, begun, strict=True):
        error, low = begin, -1
        if isinstance(begin, asyncio.Future):
            reply = await begin
            assert isinstance(reply, DeleteRecordsReply)
            error, low = reply.error, reply.low_watermark
        answers.append((place, {"error_code": error, "low_watermark": low}))
    return PLAIN.response(answers)
