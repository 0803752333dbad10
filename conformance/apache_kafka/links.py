"""A relay between nodes: each frame of each link passes a gate, and may be held, delayed, dropped or cut.

    relay = Relay()
    port = relay.listen(destination=1, target=19101)    # what broker 1 is to advertise to other nodes
    fetches = Pattern(source=2, destination=1, api=Api.FETCH)
    relay.hold(fetches)
    frame = relay.expect(fetches)                       # waits until one is at the gate
    relay.forward(frame)                                # this one alone

A link is known by its source and destination.  The destination is that of the port; the source is read from
the first request: `broker-2-fetcher-0`, `raft-client-2`, `2`, or the replica in a fetch of the oldest
releases, whose fetchers do not name themselves.  Frames of one connection keep their order, so a held frame
holds those behind it.

A request survives its sender, as it does on a network: it stays at the gate (`orphaned`) until it is
forwarded or dropped.  A response whose receiver has closed the connection is lost.
"""

from __future__ import annotations

import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Self

from conformance.apache_kafka.wire import Api, request_header
from msgspec import Struct

ZOOKEEPER = 0  # as the destination of a link: frames with contents of their own
_LENGTH = struct.Struct(">i")
_HUNG_UP = select.POLLRDHUP | select.POLLHUP | select.POLLERR
_LOOK_S = 0.05  # how often a held frame checks that both ends are still there
_ANSWER_S = 10
_REPLICA_LAST = 14  # the last version of Fetch that has the replica as its first field


class Direction(Enum):
    """Which way a frame goes."""

    REQUEST = "request"
    RESPONSE = "response"


class Frame(Struct, eq=False):
    """A request or response on a link, without its length.

    A request whose sender has gone is `orphaned`; its `answer` is the response's data, once there is one.
    """

    source: int | None
    destination: int
    api: int
    version: int
    direction: Direction
    data: bytes
    orphaned: bool = False
    answer: bytes | None = None
    verdict: Verdict | None = None


class Verdict(Enum):
    """What happens to a held frame."""

    FORWARD = "forward"
    DROP = "drop"


class Pattern(Struct, frozen=True):
    """Frames by link, API and direction; None is any."""

    source: int | None = None
    destination: int | None = None
    api: int | None = None
    direction: Direction | None = None

    def matches(self, frame: Frame) -> bool:
        """Whether the frame is one of these."""
        return (
            self.source in (None, frame.source)
            and self.destination in (None, frame.destination)
            and self.api in (None, frame.api)
            and self.direction in (None, frame.direction)
        )


class Relay:
    """Listens for nodes, and connects each connection to the node that it is meant for."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.waiting: list[Frame] = []
        self._held: set[Pattern] = set()
        self._delays: dict[Pattern, float] = {}
        self._listeners: list[socket.socket] = []
        self._connections: set[_Connection] = set()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def listen(self, destination: int, target: int, source: int | None = None) -> int:
        """A port whose connections go to the port `target` of a node.

        The source is read from them if not given.
        """
        listener = socket.create_server(("127.0.0.1", 0))
        self._listeners.append(listener)
        arguments = (listener, destination, target, source)
        threading.Thread(target=self._accept, args=arguments, daemon=True).start()
        return int(listener.getsockname()[1])

    def close(self) -> None:
        """Close all connections and ports."""
        with self.changed:
            self._closed = True
            self.changed.notify_all()
        for listener in self._listeners:
            _shut(listener)
        self.cut(Pattern())

    def hold(self, *patterns: Pattern) -> None:
        """Hold what matches from now on."""
        with self.changed:
            self._held.update(patterns)

    def release(self, *patterns: Pattern) -> None:
        """Hold no longer by these patterns; frames that no other pattern holds go on."""
        with self.changed:
            self._held.difference_update(patterns)
            self.changed.notify_all()

    def release_all(self) -> None:
        """Hold and delay nothing."""
        with self.changed:
            self._held.clear()
            self._delays.clear()
            self.changed.notify_all()

    def delay(self, pattern: Pattern, seconds: float) -> None:
        """Delay each frame that matches from now on; zero ends it."""
        with self.changed:
            self._delays[pattern] = seconds

    def at_gate(self, pattern: Pattern) -> list[Frame]:
        """The frames that are held, in the order of their arrival."""
        with self.changed:
            return [frame for frame in self.waiting if frame.verdict is None and pattern.matches(frame)]

    def expect(
        self, pattern: Pattern, satisfies: Callable[[Frame], bool] = lambda frame: True, limit_s: float = 60
    ) -> Frame:
        """The first held frame that matches, as soon as there is one.  Raises TimeoutError."""
        end = time.monotonic() + limit_s
        with self.changed:
            while True:
                frames = [frame for frame in self.at_gate(pattern) if not frame.orphaned]
                frame = next((frame for frame in frames if satisfies(frame)), None)
                if frame is not None:
                    return frame
                if not self.changed.wait(max(0, end - time.monotonic())) and time.monotonic() >= end:
                    raise TimeoutError(f"no frame of {pattern} within {limit_s:.0f} s")

    def forward(self, frame: Frame) -> None:
        """Let a held frame go on; what follows it is held as before."""
        self._decide(frame, Verdict.FORWARD)

    def drop(self, frame: Frame) -> None:
        """Discard a held frame: its sender waits for nothing, until it gives up."""
        self._decide(frame, Verdict.DROP)

    def cut(self, pattern: Pattern) -> None:
        """Close the connections of the links that match, with all that they hold."""
        link = Pattern(pattern.source, pattern.destination)
        with self.changed:
            chosen = [each for each in self._connections if link.matches(each.probe())]
        for connection in chosen:
            connection.close()

    def await_answer(self, request: Frame, limit_s: float) -> bytes | None:
        """The response to a forwarded request, even if its sender has gone; None if it is late."""
        with self.changed:
            self.changed.wait_for(lambda: request.answer is not None, limit_s)
            return request.answer

    def _decide(self, frame: Frame, verdict: Verdict) -> None:
        with self.changed:
            frame.verdict = verdict
            self.changed.notify_all()

    def _accept(self, listener: socket.socket, destination: int, target: int, source: int | None) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", target), 10)
            except OSError:
                _shut(near)
                continue
            near.settimeout(None)
            far.settimeout(None)
            connection = _Connection(self, near, far, destination, source)
            with self.changed:
                self._connections.add(connection)
            for pump in (connection.requests, connection.responses):
                threading.Thread(target=self._pump, args=(connection, pump), daemon=True).start()

    def _pump(self, connection: _Connection, pump: Callable[[], None]) -> None:
        try:
            pump()
        except (OSError, EOFError, struct.error):
            pass
        finally:
            connection.close()
            with self.changed:
                self._connections.discard(connection)

    def admit(self, frame: Frame, connection: _Connection) -> bool:
        """Wait at the gate; whether the frame is to go on."""
        with self.changed:
            self.waiting.append(frame)
            self.changed.notify_all()
            try:
                while frame.verdict is None and self._holds(frame):
                    self.changed.wait(_LOOK_S)
                    connection.look(frame)
                passes = frame.verdict is not Verdict.DROP
                waits = (s for pattern, s in self._delays.items() if pattern.matches(frame))
                wait_s = max(waits, default=0.0)
            finally:
                self.waiting.remove(frame)
                self.changed.notify_all()
        if wait_s:
            time.sleep(wait_s)
        return passes

    def _holds(self, frame: Frame) -> bool:
        return not self._closed and any(pattern.matches(frame) for pattern in self._held)


class _Connection:
    """Two sockets, and what was requested on them."""

    def __init__(
        self, relay: Relay, near: socket.socket, far: socket.socket, destination: int, source: int | None
    ) -> None:
        self._relay, self._near, self._far = relay, near, far
        self._destination, self._source = destination, source
        self._requested: list[Frame] = []  # without a response so far
        self._closed = False

    def probe(self) -> Frame:
        """A frame of this link, to be matched."""
        return Frame(self._source, self._destination, -1, 0, Direction.REQUEST, b"")

    def close(self) -> None:
        self._closed = True
        for each in (self._near, self._far):
            _shut(each)

    def requests(self) -> None:
        while True:
            data = _read_frame(self._near)
            frame = self._frame(data)
            self._requested.append(frame)
            if self._relay.admit(frame, self):
                self._far.sendall(_LENGTH.pack(len(data)) + data)
            else:
                self._requested.pop()
            if frame.orphaned:
                # A node may not act upon a request whose connection ends at once.
                self._relay.await_answer(frame, _ANSWER_S)

    def responses(self) -> None:
        while True:
            data = _read_frame(self._far)
            frame = Frame(self._source, self._destination, -1, 0, Direction.RESPONSE, data)
            # ZooKeeper sends more than was requested.
            if self._destination != ZOOKEEPER:
                request = self._requested.pop(0)
                frame.api, frame.version = request.api, request.version
                with self._relay.changed:
                    request.answer = data
                    self._relay.changed.notify_all()
            if self._relay.admit(frame, self):
                self._near.sendall(_LENGTH.pack(len(data)) + data)

    def look(self, frame: Frame) -> None:
        """Mark a held request whose sender has gone; raise where a frame can no longer arrive."""
        if self._closed:
            raise EOFError
        if frame.direction is Direction.REQUEST and _hung_up(self._far):
            raise EOFError
        if _hung_up(self._near):
            if frame.direction is Direction.RESPONSE:
                raise EOFError
            frame.orphaned = True
            self._relay.changed.notify_all()

    def _frame(self, data: bytes) -> Frame:
        if self._destination == ZOOKEEPER:
            return Frame(self._source, ZOOKEEPER, -1, 0, Direction.REQUEST, data)
        key, version, _, client_id, end = request_header(data)
        if self._source is None:
            self._source = _named_source(key, version, client_id, data, end)
        return Frame(self._source, self._destination, key, version, Direction.REQUEST, data)


def _named_source(key: int, version: int, client_id: str, data: bytes, end: int) -> int | None:
    if key == Api.FETCH and version <= _REPLICA_LAST:
        (replica,) = _LENGTH.unpack_from(data, end + (version >= 12))
        if replica >= 0:
            return int(replica)
    number = re.search(r"\d+", client_id)
    return int(number.group()) if number else None


def _read_frame(source: socket.socket) -> bytes:
    (size,) = _LENGTH.unpack(_exactly(source, 4))
    return _exactly(source, size)


def _exactly(source: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = source.recv(min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def _hung_up(end: socket.socket) -> bool:
    if end.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(end, _HUNG_UP)
    return any(event & _HUNG_UP for _, event in poll.poll(0))


def _shut(*sockets: socket.socket) -> None:
    for each in sockets:
        for action in (lambda each=each: each.shutdown(socket.SHUT_RDWR), each.close):
            try:
                action()
            except OSError:
                continue
