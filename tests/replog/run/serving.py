"""A broker without sockets: requests as mappings in, responses as mappings out."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from replog.core.types import Batch
from replog.run import opaque
from replog.run.serve import host
from replog.run.serve.frames import Api, Request
from replog.run.serve.service import Service
from replog.store.files.fs import OsFs
from replog.store.segments.records import ProducerFields, Record, encode_batch

NEWEST = 12


class Broker:
    """A running broker, and one client of it."""

    def __init__(self, path: Path, settings: host.Settings | None = None) -> None:
        self.host = host.start(OsFs(), str(path), settings or host.Settings())
        self.service = Service(self.host, {0: ("localhost", 9092)})
        self.client = self.host.client()

    async def ask(
        self, api: Api, version: int = NEWEST, client: int = 0, name: str = "tester", **body: object
    ) -> dict:
        request = Request(api, version, 1, name, body)
        await self.service.ready(client or self.client, request)
        return await self.service.answer(client or self.client, request)

    async def create(self, *topics: str, partitions: int = 1) -> None:
        made = [topic(name, partitions) for name in topics]
        answer = await self.ask(Api.CREATE_TOPICS, topics=made, validate_only=False)
        assert not any(each.get("error_code") for each in answer["topics"]), answer

    async def produce(
        self, records: bytes, acks: int = -1, topic: str = "t", partition: int = 0, wait_ms: int = 60_000
    ) -> dict:
        data = [{"name": topic, "partition_data": [{"index": partition, "records": records}]}]
        answer = await self.ask(
            Api.PRODUCE, transactional_id=None, acks=acks, timeout=wait_ms, topic_data=data
        )
        return answer and answer["responses"][0]["partition_responses"][0]

    async def fetch(self, offset: int, wait_ms: int = 0, client: int = 0, **partition: int) -> dict:
        wanted = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20} | partition
        topics = [{"topic": "t", "partitions": [wanted]}]
        answer = await self.ask(
            Api.FETCH, client=client, max_wait=wait_ms, min_bytes=1, max_bytes=1 << 20, topics=topics
        )
        return answer["responses"][0]["partitions"][0]

    async def stop(self) -> None:
        self.host.shut_down()
        await asyncio.wait_for(self.host.stopped, 1)

    def die(self) -> None:
        self.host.files.directory.abandon()
        if self.host.stopped.done():
            self.host.stopped.result()  # raises the error that has ended it
        else:
            self.host.stopped.set_result(None)


def topic(name: str, partitions: int = 1, **settings: str) -> dict:
    configs = [{"name": key.replace("_", "."), "value": value} for key, value in settings.items()]
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": -1,
        "assignments": (),
        "configs": configs,
    }


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a test that waits."""
    asyncio.run(asyncio.wait_for(scenario(), 20))


def batch(*values: str, producer: int = -1, first: int = -1, epoch: int = -1) -> bytes:
    """Return a batch as a producer sends it."""
    records = [Record(value.encode(), timestamp=1_000 + n) for n, value in enumerate(values)]
    return encode_batch(records, ProducerFields(producer, 0 if producer >= 0 else -1, first), 0, epoch)


def batches(data: bytes) -> list[Batch]:
    """Return the batches of a fetch's answer."""
    return list(opaque.replicated(data))
