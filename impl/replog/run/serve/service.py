"""What a broker answers to each request: the table from APIs to their functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from replog.run.serve import reassigning, records, topics
from replog.run.serve.codec import Body
from replog.run.serve.frames import SUPPORTED, Api, Request
from replog.run.serve.groups import TRANSACTIONS_REFUSED, Coordination
from replog.run.serve.host import Host
from replog.run.serve.topics import Address
from replog.store.files.errors import StoreError

IDS_PER_EPOCH = 1 << 24
ADMINISTRATION: Mapping[Api, Callable[[Host, Body], Awaitable[Body]]] = MappingProxyType(
    {
        Api.CREATE_TOPICS: topics.create_topics,
        Api.DELETE_TOPICS: topics.delete_topics,
        Api.DESCRIBE_CONFIGS: topics.describe_configs,
        Api.ELECT_LEADERS: topics.elect_leaders,
        Api.ALTER_PARTITION_REASSIGNMENTS: reassigning.alter,
        Api.LIST_PARTITION_REASSIGNMENTS: reassigning.listed,
        Api.DESCRIBE_TOPIC_PARTITIONS: topics.describe_partitions,
    }
)


class Service:
    """The answers of one broker; `addresses` are those of all brokers of the cluster."""

    def __init__(self, host: Host, addresses: Mapping[int, Address], creates_topics: bool = True) -> None:
        self.host = host
        self.addresses = addresses
        self._creates_topics = creates_topics
        self._groups = Coordination(host)
        self._producers = 0

    async def ready(self, client: int, request: Request) -> int:
        """Wait until a fetch has records; return the most bytes of records that its answer may have."""
        if request.api is not Api.FETCH:
            return 0
        self._name(request)
        await records.wait_for_records(self.host, client, request.body)
        return records.most_bytes(request.body)

    async def answer(self, client: int, request: Request) -> Body | None:
        """Return the response to a request, None if it has none.

        Raises `ConnectionError` if the disk fails, with which the broker stops.
        """
        try:
            return await self._answer(client, request)
        except StoreError as error:
            self.host.fail(error)
            raise ConnectionError("the broker stops") from error

    async def _answer(self, client: int, request: Request) -> Body | None:
        host, body = self.host, request.body
        match request.api:
            case Api.API_VERSIONS:
                return {"api_keys": SUPPORTED}
            case Api.METADATA:
                return await topics.metadata(
                    host, self.addresses, body, request.version, self._creates_topics
                )
            case Api.PRODUCE:
                return await records.produce(host, client, body)
            case Api.FETCH:
                self._name(request)
                return records.fetch(host, client, body)
            case Api.LIST_OFFSETS:
                return await records.list_offsets(host, client, body, request.version)
            case Api.OFFSET_FOR_LEADER_EPOCH:
                return await records.epoch_ends(host, client, body)
            case Api.DELETE_RECORDS:
                return await records.delete_records(host, client, body)
            case Api.INIT_PRODUCER_ID:
                return self._producer_id(body)
            case api if api in ADMINISTRATION:
                return await ADMINISTRATION[api](host, body)
            case Api.DESCRIBE_CLUSTER:
                return await topics.describe_cluster(host, self.addresses)
            case _:
                return await self._groups.answer(client, request, self.addresses)

    def _name(self, request: Request) -> None:
        """Say by what name the follower knows the fetch that the core is handed now."""
        if self.host.watcher is not None:
            self.host.watcher.message = request.client_id

    def _producer_id(self, body: Body) -> Body:
        """Return a new producer id: no other broker, and no earlier process, gives the same."""
        epoch = self.host.broker.membership.broker_epoch
        if body["transactional_id"] is not None:
            return {"error_code": TRANSACTIONS_REFUSED, "producer_id": -1, "producer_epoch": -1}
        self._producers += 1
        assert self._producers < IDS_PER_EPOCH, "the producer ids of this start are used up"
        return {"producer_id": max(epoch, 0) * IDS_PER_EPOCH + self._producers, "producer_epoch": 0}
