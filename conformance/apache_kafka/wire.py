"""A connection to a broker or controller, with any request of any version.

    with Connection(port, schemas) as broker:
        broker.call(Api.METADATA, 1, {"Topics": [{"Name": "orders"}]})

A request is a frame: length 4 | API key 2 | version 2 | correlation 4 | client id | fields.  A response has
the correlation alone before its fields.  One request is in flight at a time, but for `send` and `receive`.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Self

from conformance.apache_kafka.schemas import Fields, Schemas, decode

_LENGTH = struct.Struct(">i")
_HEADER = struct.Struct(">hhih")


class Api(IntEnum):
    """The API keys in use here."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    ALTER_PARTITION = 56
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63


def request_header(frame: bytes) -> tuple[int, int, int, str, int]:
    """API key, version, correlation and client id of a request, and where they end."""
    key, version, correlation, size = _HEADER.unpack_from(frame)
    end = _HEADER.size + max(size, 0)
    return key, version, correlation, frame[_HEADER.size : end].decode(), end


def decode_request(schemas: Schemas, frame: bytes) -> Fields:
    """The fields of a request from its frame (without its length)."""
    key, version, _, _, end = request_header(frame)
    layout = schemas.request(key, version)
    return decode(layout, frame, end + layout.is_flexible)


def decode_response(schemas: Schemas, key: int, version: int, frame: bytes) -> Fields:
    """The fields of the response to a request of this key and version, from its frame."""
    layout = schemas.response(key, version)
    # The answer to ApiVersions has the old header, so that clients of any age can read it.
    has_tags = layout.is_flexible and key != Api.API_VERSIONS
    return decode(layout, frame, 4 + has_tags)


class Connection:
    """A connection of a client; raises OSError (ConnectionError, TimeoutError) where the other side fails."""

    def __init__(
        self, port: int, schemas: Schemas, client_id: str = "specchk", timeout_s: float = 60
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self._schemas, self._client_id, self._correlation = schemas, client_id.encode(), 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def call(self, key: Api, version: int, fields: Mapping[str, Any]) -> Fields:
        """Send a request and wait for its response."""
        self.send(key, version, fields)
        return self.receive(key, version)

    def send(self, key: Api, version: int, fields: Mapping[str, Any]) -> None:
        """Send a request."""
        tags = bytes(self._schemas.request(key, version).is_flexible)
        self._correlation += 1
        head = _HEADER.pack(key, version, self._correlation, len(self._client_id)) + self._client_id
        frame = head + tags + self._schemas.encode_request(key, version, fields)
        self.socket.sendall(_LENGTH.pack(len(frame)) + frame)

    def receive(self, key: Api, version: int) -> Fields:
        """Wait for the response to a request that was sent."""
        (size,) = _LENGTH.unpack(self._exactly(4))
        return decode_response(self._schemas, key, version, self._exactly(size))

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the broker has closed the connection")
            data += part
        return bytes(data)
