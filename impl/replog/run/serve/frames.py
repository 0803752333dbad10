"""Requests and responses as frames: headers, the supported versions, and the answer to one that is not.

    request   key i16, version i16, correlation i32, client id, [tagged fields,] body
    response  correlation i32, [tagged fields,] body

Theory: Kafka's protocol guide, KIP-482, KIP-511.  Each frame has its size before it, which is the
connection's business (`server`).

A request in a version that is not served is answered with UNSUPPORTED_VERSION, where the response to it has a
place for one error; where it has none, the connection ends, as with Kafka.  ApiVersions is always answered,
in version 0 if need be.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Protocol

from replog.run.serve.codec import INT16, INT32, Body, Reader, Struct, decode_text, read, write

UNSUPPORTED_VERSION = 35
SMALL_REQUEST_BYTES = 1 << 20
"""The largest request of any API but Produce."""


class Api(IntEnum):
    """The keys of the APIs that are served."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    DESCRIBE_CONFIGS = 32
    ELECT_LEADERS = 43
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    DESCRIBE_CLUSTER = 60
    DESCRIBE_TOPIC_PARTITIONS = 75


VERSIONS = MappingProxyType(
    {
        Api.PRODUCE: (3, 9),
        Api.FETCH: (4, 12),
        Api.LIST_OFFSETS: (1, 7),
        Api.METADATA: (0, 9),
        Api.OFFSET_COMMIT: (2, 8),
        Api.OFFSET_FETCH: (1, 7),
        Api.FIND_COORDINATOR: (0, 3),
        Api.JOIN_GROUP: (0, 7),
        Api.HEARTBEAT: (0, 4),
        Api.LEAVE_GROUP: (0, 4),
        Api.SYNC_GROUP: (0, 5),
        Api.LIST_GROUPS: (0, 4),
        Api.API_VERSIONS: (0, 4),
        Api.CREATE_TOPICS: (2, 6),
        Api.DELETE_TOPICS: (1, 5),
        Api.DELETE_RECORDS: (0, 2),
        Api.INIT_PRODUCER_ID: (0, 4),
        Api.OFFSET_FOR_LEADER_EPOCH: (2, 4),
        Api.DESCRIBE_CONFIGS: (1, 4),
        Api.ELECT_LEADERS: (0, 2),
        Api.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
        Api.LIST_PARTITION_REASSIGNMENTS: (0, 0),
        Api.DESCRIBE_CLUSTER: (0, 1),
        Api.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
    }
)
"""The first and the last version of each: none that names a topic by its id, which replog has not."""

SUPPORTED = tuple(
    {"api_key": int(key), "min_version": first, "max_version": last}
    for key, (first, last) in VERSIONS.items()
)
"""The list in an ApiVersions response."""


class Layouts(Protocol):
    """Where the structs of messages come from; `LookupError` for a version that is not known."""

    def request(self, key: int, version: int) -> tuple[Struct, bool]:
        """Return the struct of a request, and whether its header has tagged fields."""

    def response(self, key: int, version: int) -> tuple[Struct, bool]:
        """Return the struct of a response, and whether its header has tagged fields."""


class RefusedError(Exception):
    """A request that is answered without being read: `response` is the frame, None to end the connection."""

    def __init__(self, reason: str, response: bytes | None = None) -> None:
        super().__init__(reason, response)
        self.response = response


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `client_id` is as the client wrote it."""

    api: Api
    version: int
    correlation: int
    client_id: str
    body: Body


def limit_of(key: int, largest: int) -> int:
    """Return how many bytes a request may have: only a produce request has reason to be large."""
    return largest if key == Api.PRODUCE else min(largest, SMALL_REQUEST_BYTES)


def parse(layouts: Layouts, frame: bytes) -> Request:
    """Read a request.

    Raises `MalformedError`, and `RefusedError` for an API or a version that is not served.
    """
    reader = Reader(frame)
    key, version, correlation = reader.number(INT16), reader.number(INT16), reader.number(INT32)
    first, last = VERSIONS.get(key, (0, -1))
    if not first <= version <= last:
        raise RefusedError(
            f"API {key} in version {version}", _unsupported(layouts, key, version, correlation)
        )
    layout, is_flexible = layouts.request(key, version)
    size = reader.number(INT16)
    client_id = decode_text(reader.take(size)) if size >= 0 else ""
    if is_flexible:
        reader.struct(Struct("RequestHeader", True, ()))
    return Request(Api(key), version, correlation, client_id, read(layout, frame, reader.position))


def asked(layouts: Layouts, api: Api, version: int, body: Body, asker: str) -> bytes:
    """Return the frame of a request of ours, with its size; `asker` is its client id."""
    layout, is_flexible = layouts.request(api, version)
    name = asker.encode()
    header = INT16.pack(api) + INT16.pack(version) + INT32.pack(0) + INT16.pack(len(name)) + name
    frame = header + (b"\0" if is_flexible else b"") + write(layout, body)
    return INT32.pack(len(frame)) + frame


def answered(layouts: Layouts, api: Api, version: int, frame: bytes) -> Body:
    """Read the response to a request of ours; raises `MalformedError`."""
    layout, is_flexible = layouts.response(api, version)
    return read(layout, frame, INT32.size + is_flexible)


def respond(layouts: Layouts, request: Request, body: Body) -> bytes:
    """Return the frame of a response, without its size."""
    return _frame(layouts, request.api, request.version, request.correlation, body)


def _frame(layouts: Layouts, key: int, version: int, correlation: int, body: Body) -> bytes:
    layout, is_flexible = layouts.response(key, version)
    header = INT32.pack(correlation) + (b"\0" if is_flexible else b"")
    return header + write(layout, body)


def _unsupported(layouts: Layouts, key: int, version: int, correlation: int) -> bytes | None:
    refusal = {"error_code": UNSUPPORTED_VERSION, "api_keys": SUPPORTED}
    if key == Api.API_VERSIONS:
        return _frame(layouts, key, 0, correlation, refusal)
    try:
        layout, _ = layouts.response(key, version)
    except LookupError:
        return None
    has_error = any(field.name == "error_code" for field in layout.fields)
    return _frame(layouts, key, version, correlation, refusal) if has_error else None
