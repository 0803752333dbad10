"""What a follower asks its leader, in Kafka's format: Fetch, OffsetForLeaderEpoch, ListOffsets.

    FetchRequest of the core -> Fetch v12 -> the leader's `records` -> batches, byte for byte -> FetchReply

Each partition has a connection of its own to its leader, since a fetch waits there and would hold up the
others.  A request replaces one that is still waiting for its turn; one whose connection fails is lost, and
the core repeats it.

A version with the follower's broker epoch (Fetch 15, KIP-903) needs topic ids, which replog has not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from replog.core.messages import (
    EpochEndReply,
    EpochEndRequest,
    FetchReply,
    FetchRequest,
    ForPartition,
    ListOffsetsReply,
    ListOffsetsRequest,
    Message,
)
from replog.core.types import EpochEnd, Error
from replog.run import opaque
from replog.run.partitions import key_of
from replog.run.serve.codec import Body, MalformedError
from replog.run.serve.frames import Api, Layouts, answered, asked
from replog.run.serve.host import Host
from replog.run.serve.links import ENDINGS, read_frame
from replog.run.serve.records import SHAPES, Place
from replog.run.serve.topics import Address
from replog.store.files.errors import CorruptBatchError

PAUSE_S = 0.1
ANSWER_S = 2.0
"""After which the core repeats a request (`fetch_timeout_ms`)."""
UNUSED_S = 10.0
"""After which a connection is closed: its partition was deleted, or has another leader."""
VERSIONS = MappingProxyType({Api.FETCH: 12, Api.OFFSET_FOR_LEADER_EPOCH: 4, Api.LIST_OFFSETS: 7})

Question = FetchRequest | EpochEndRequest | ListOffsetsRequest


class Peers:
    """The connections of a broker to the leaders that it follows."""

    def __init__(self, addresses: Mapping[int, Address], layouts: Layouts) -> None:
        self._addresses = addresses
        self._layouts = layouts
        self._links: dict[tuple[int, str], asyncio.Queue[Question]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.host: Host | None = None

    def send(self, broker_id: int, message: Message) -> None:
        """Ask a leader; the answer comes to the host."""
        assert self.host is not None, "a broker runs before it follows"
        name, question = self.host.named(message)
        assert isinstance(question, Question), "brokers exchange what followers ask"
        queue = self._links.get((broker_id, name))
        if queue is None:
            queue = self._links[broker_id, name] = asyncio.Queue(1)
            task = asyncio.ensure_future(self._run(self.host, broker_id, name, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            self.host.needs(task)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(question)

    def close(self) -> None:
        """End all connections."""
        for task in self._tasks:
            task.cancel()

    async def _run(self, host: Host, broker_id: int, name: str, queue: asyncio.Queue[Question]) -> None:
        while True:
            question = await queue.get()
            with suppress(*ENDINGS, TimeoutError, CorruptBatchError):
                reader, writer = await asyncio.open_connection(*self._addresses[broker_id])
                try:
                    while True:
                        async with asyncio.timeout(ANSWER_S):
                            answer = await self._ask(reader, writer, name, question, host)
                        host.receive(broker_id, ForPartition(name, answer))
                        async with asyncio.timeout(UNUSED_S):
                            question = await queue.get()
                finally:
                    writer.transport.abort()
            await asyncio.sleep(PAUSE_S)

    async def _ask(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        name: str,
        question: Question,
        host: Host,
    ) -> Message:
        api, body = request_of(name, question, host.settings.broker_id)
        # As the client's id the name of the question, by which recordings pair it with its answer.
        asker = f"{host.settings.broker_id}/{question.correlation}"
        writer.write(asked(self._layouts, api, VERSIONS[api], body, asker))
        return reply_of(question, answered(self._layouts, api, VERSIONS[api], await read_frame(reader)))


def request_of(name: str, question: Question, broker_id: int) -> tuple[Api, Body]:
    """Return a follower's question as a request of Kafka."""
    partition: dict[str, Any] = {"current_leader_epoch": question.leader_epoch}
    whole: dict[str, Any] = {"replica_id": broker_id}
    match question:
        case FetchRequest():
            api = Api.FETCH
            partition |= {
                "fetch_offset": question.fetch_offset,
                "last_fetched_epoch": question.last_fetched_epoch,
                "log_start_offset": question.log_start,
                "partition_max_bytes": question.max_bytes,
            }
            whole |= {"max_wait": question.max_wait_ms, "min_bytes": 1, "max_bytes": question.max_bytes}
        case EpochEndRequest():
            api = Api.OFFSET_FOR_LEADER_EPOCH
            partition |= {"leader_epoch": question.epoch}
        case ListOffsetsRequest():
            api = Api.LIST_OFFSETS
            partition |= {"timestamp": question.which}
    return api, {**whole, **SHAPES[api].request(Place(*key_of(name), partition))}


def reply_of(question: Question, response: Body) -> Message:
    """Return a response of Kafka as the answer to a follower; raises `MalformedError` for another one."""
    try:
        part = response["responses" if isinstance(question, FetchRequest) else "topics"][0]["partitions"][0]
        error = Error(part["error_code"])
    except (IndexError, KeyError, ValueError) as missing:
        raise MalformedError(f"not an answer to {question}: {missing}") from missing
    match question:
        case FetchRequest():
            end = part["diverging_epoch"]
            diverging = EpochEnd(end["epoch"], end["end_offset"]) if end["end_offset"] >= 0 else None
            batches = tuple(opaque.replicated(part["records"] or b""))
            high_watermark, log_start = part["high_watermark"], part["log_start_offset"]
            return FetchReply(question.correlation, error, high_watermark, log_start, batches, diverging)
        case EpochEndRequest():
            return EpochEndReply(
                question.correlation, error, EpochEnd(part["leader_epoch"], part["end_offset"])
            )
    return ListOffsetsReply(question.correlation, error, part["offset"])
