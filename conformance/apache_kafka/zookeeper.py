"""A client of ZooKeeper with the four requests that an operator of an old Kafka needs.

Operators of releases before 2.4 started elections and reassignments by creating a node of ZooKeeper, and
brokers
keep there what a controller decides.  A frame is length 4 | xid 4 | operation 4 | fields, in Jute's encoding:
strings and buffers have their length before them.
"""

from __future__ import annotations

import socket
import struct
from typing import Self

from msgspec import Struct

_CREATE, _DELETE, _GET, _SET, _CLOSE = 1, 2, 4, 5, -11
_NO_NODE, _NODE_EXISTS = -101, -110
_OPEN_ACL = struct.pack(">ii", 1, 31)  # one entry, all permissions: for
_ANY_VERSION = -1
# czxid, mzxid, ctime, mtime, version, cversion, aversion, owner, data length, children, pzxid
_STAT = struct.Struct(">qqqqiiiqiiq")


class NoNode(Exception):
    """The path has no node."""


class Refused(Exception):
    """ZooKeeper refused a request."""


class Entry(Struct, frozen=True):
    """A node's data and its version, which Kafka uses as the partition epoch."""

    data: bytes
    version: int


class ZooKeeper:
    """A session of a few requests.  Raises OSError where the server fails."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 60)
        self._xid = 0
        self._send(struct.pack(">iqiq", 0, 0, 60000, 0) + _buffer(bytes(16)))
        self._receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._request(_CLOSE, b"")
        self._socket.close()

    def get(self, path: str) -> Entry:
        """A node.  Raises NoNode."""
        reply = self._request(_GET, _text(path) + b"\x00")
        (size,) = struct.unpack_from(">i", reply)
        stat = _STAT.unpack_from(reply, 4 + max(size, 0))
        return Entry(reply[4 : 4 + max(size, 0)], stat[4])

    def exists(self, path: str) -> bool:
        """Whether there is a node."""
        try:
            self.get(path)
        except NoNode:
            return False
        return True

    def create(self, path: str, data: bytes) -> None:
        """Create a node that stays."""
        acl = _OPEN_ACL + _text("world") + _text("anyone")
        self._request(_CREATE, _text(path) + _buffer(data) + acl + struct.pack(">i", 0))

    def set(self, path: str, data: bytes) -> None:
        """Replace the data of a node."""
        self._request(_SET, _text(path) + _buffer(data) + struct.pack(">i", _ANY_VERSION))

    def _request(self, operation: int, fields: bytes) -> bytes:
        self._xid += 1
        self._send(struct.pack(">ii", self._xid, operation) + fields)
        reply = self._receive()
        _, _, error = struct.unpack_from(">iqi", reply)
        if error == _NO_NODE:
            raise NoNode(fields)
        if error:
            reason = "the node exists" if error == _NODE_EXISTS else f"error {error}"
            raise Refused(f"operation {operation}: {reason}")
        return reply[16:]

    def _send(self, frame: bytes) -> None:
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def _receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("ZooKeeper has closed the session")
            data += part
        return bytes(data)


def _buffer(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _text(text: str) -> bytes:
    return _buffer(text.encode())
