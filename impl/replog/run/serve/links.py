"""The link between a broker and the controller of its cluster, in two processes of one machine.

    size i32 | {"kind": "HeartbeatRequest", "broker_id": 1, ...}      a message of the core, as JSON

The first message of a broker is its id.  A message that finds no connection is lost, as the core expects:
registrations, heartbeats and proposals are repeated.  When a connection ends, the session of its broker does.

This is not Kafka's protocol: there, metadata are records of a log that brokers fetch from a quorum.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from replog.core import messages
from replog.core.messages import ForPartition, Message, MetadataUpdate
from replog.core.types import CONTROLLER, Error
from replog.run.serve.catalog import image_fields, image_of
from replog.run.serve.codec import INT32, MalformedError
from replog.run.serve.controlling import Controlling, CreatePartitions, DeletePartitions, Order
from replog.run.serve.host import Host
from replog.run.serve.topics import Address

MOST_BYTES = 64 << 20
"""Of a message, and of all that a broker has not read yet."""
RETRY_S = 0.1
KINDS = MappingProxyType(
    {
        kind.__name__: kind
        for kind in (
            messages.RegisterRequest, messages.RegisterReply, messages.HeartbeatRequest,
            messages.HeartbeatReply, messages.MetadataRequest, messages.MetadataUpdate,
            messages.AlterPartitionRequest, messages.AlterPartitionReply, messages.ConfigureRequest,
            messages.ConfigureReply, messages.ElectRequest, messages.ElectReply, messages.ReassignRequest,
            messages.ReassignReply, CreatePartitions, DeletePartitions,
        )
    }
)  # fmt: skip


def encode(message: Order) -> bytes:
    """Return a message as a frame."""
    place = {"for": message.partition} if isinstance(message, ForPartition) else {}
    inner = message.message if isinstance(message, ForPartition) else message
    kind = type(inner).__name__
    assert kind in KINDS, f"{kind} is not a message between brokers and controller"
    values = {field.name: getattr(inner, field.name) for field in fields(inner)}
    if isinstance(inner, MetadataUpdate):
        values = {"images": [image_fields(image) for image in inner.images]}
    data = json.dumps({"kind": kind, **place, **values}).encode()
    return INT32.pack(len(data)) + data


def decode(data: bytes) -> Order:
    """Return the message of a frame, without its size; raises `MalformedError`."""
    try:
        values: dict[str, Any] = json.loads(data)
        kind, place = KINDS[values.pop("kind")], values.pop("for", None)
        if kind is MetadataUpdate:
            return MetadataUpdate(tuple(map(image_of, values["images"])))
        if "error" in values:
            values["error"] = Error(values["error"])
        order: Order = kind(**{name: _as_tuples(value) for name, value in values.items()})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MalformedError(f"no message of a broker or a controller: {error}") from error
    if place is None or isinstance(order, CreatePartitions | DeletePartitions):
        return order
    return ForPartition(str(place), order)


def _as_tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_as_tuples, value))
    return {name: _as_tuples(item) for name, item in value.items()} if isinstance(value, dict) else value


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Read a frame; raises `MalformedError`, `IncompleteReadError`."""
    size = INT32.unpack(await reader.readexactly(INT32.size))[0]
    if not 0 < size <= MOST_BYTES:
        raise MalformedError(f"a frame of {size} bytes")
    return await reader.readexactly(size)


ENDINGS = (MalformedError, OSError, asyncio.IncompleteReadError)
"""The ways in which a link ends."""


class Brokers:
    """The controller's side: a link to each broker that has connected."""

    def __init__(self) -> None:
        self.controlling: Controlling | None = None
        self._links: dict[int, asyncio.StreamWriter] = {}

    def deliver(self, broker_id: int, message: Message) -> None:
        """Send a message to a broker, if it is connected."""
        link = self._links.get(broker_id)
        if link is None:
            return
        if link.transport.get_write_buffer_size() > MOST_BYTES:
            link.transport.abort()
            return
        link.write(encode(message))

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a broker until its connection ends, and its session with it."""
        controlling = self.controlling
        assert controlling is not None, "a controller runs before it is reached"
        broker_id = -1
        try:
            broker_id = int(await read_frame(reader))
            self._links[broker_id] = writer
            while True:
                controlling.receive(broker_id, decode(await read_frame(reader)))
        except (*ENDINGS, ValueError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            if self._links.get(broker_id) is writer:
                del self._links[broker_id]
                controlling.expire(broker_id)

    def close(self) -> None:
        """End all links."""
        for link in self._links.values():
            link.transport.abort()


class ToController:
    """A broker's side: `run` keeps the link to the controller."""

    def __init__(self, address: Address, broker_id: int) -> None:
        self._address = address
        self._broker_id = broker_id
        self._writer: asyncio.StreamWriter | None = None

    def send(self, order: Order) -> None:
        """Send a message, if there is a connection."""
        if self._writer is not None:
            self._writer.write(encode(order))

    async def run(self, host: Host) -> None:
        """Connect, again and again; the broker begins with the first connection."""
        has_begun = False
        while True:
            try:
                reader, self._writer = await asyncio.open_connection(*self._address)
                name = str(self._broker_id).encode()
                self._writer.write(INT32.pack(len(name)) + name)
                if has_begun:
                    host.beat()
                else:
                    has_begun = True
                    host.begin()
                await self._listen(host, reader)
            except ENDINGS:
                # It is opened again.
                pass
            finally:
                if self._writer is not None:
                    self._writer.transport.abort()
                    self._writer = None
            await asyncio.sleep(RETRY_S)

    async def _listen(self, host: Host, reader: asyncio.StreamReader) -> None:
        while True:
            message = decode(await read_frame(reader))
            if not isinstance(message, CreatePartitions | DeletePartitions):
                host.receive(CONTROLLER, message)
