"""Connections: frames in, answers out, and every limit that keeps a client from harming the others.

    size i32 | request  -->  budget  -->  `frames.parse`  -->  `Service.answer`  -->  size i32 | response

A connection has one request at a time, as in Kafka, so answers are in the order of requests.  Bytes that are
no request, or more of them than allowed, end their connection and nothing else.  `Limits.memory` is shared by
the large requests in hand and the answers to fetches under way: who exceeds it waits.  The size of another
answer is known when it is there: where clients leave too much of them unread, one more ends its connection.

Not here: what a request means (`service`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from replog.run.serve.codec import INT32, MalformedError
from replog.run.serve.frames import Layouts, RefusedError, limit_of, parse, respond
from replog.run.serve.service import Service

LEAST_FRAME = 8
"""Key, version and correlation."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients may use: connections, bytes of one request, bytes of all, and seconds.

    `stall_s` is how long the rest of a frame, or the reading of an answer, may take; `idle_s` how long a
    connection may be without a request.
    """

    connections: int = 1_000
    request: int = 16 << 20
    memory: int = 128 << 20
    stall_s: float = 30.0
    idle_s: float = 600.0


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def _is_deserted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Return whether the client of a connection has closed its side, and all that it sent has been read."""
    return reader.at_eof() or writer.is_closing()


class Budget:
    """An amount of bytes that is shared in order of arrival; a size up to `least` takes nothing of it."""

    def __init__(self, limit: int, least: int = 0) -> None:
        self._free = limit
        self._limit = limit
        self._least = least
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def of(self, size: int) -> AsyncIterator[None]:
        """Hold `size` bytes, as soon as they are free; a size above the limit counts as all of it."""
        if size <= self._least:
            yield
            return
        size = min(size, self._limit)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((size, turn))
        self._serve()
        try:
            await turn
            yield
        finally:
            # Who gave up before its turn has nothing to give back.
            if turn.done() and not turn.cancelled():
                self._free += size
            self._serve()

    def _serve(self) -> None:
        while self._queue and (self._queue[0][1].cancelled() or self._queue[0][0] <= self._free):
            size, turn = self._queue.popleft()
            if not turn.cancelled():
                self._free -= size
                turn.set_result(None)


class Server:
    """The connections of one broker; `connected` is the callback of `asyncio.start_server`."""

    def __init__(self, service: Service, layouts: Layouts, limits: Limits | None = None) -> None:
        self._service = service
        self._layouts = layouts
        self._limits = limits or Limits()
        half = self._limits.memory // 2
        # Small requests of all connections together have as much again.  In the queue, a fetch of a follower
        # would wait for the produces that wait for it.
        self._requests = Budget(half, half // self._limits.connections)
        self._answers = Budget(half)
        self._open: dict[asyncio.Task[None], Streams] = {}
        self._most_unread = half
        self._unread = 0
        """The bytes of answers under way that had no room in the budget."""
        self._is_closed = False

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until it ends."""
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None, "a server calls this in a task"
        try:
            if len(self._open) == self._limits.connections:
                self._end_deserted()
            # One may be accepted while the others end.
            if not self._is_closed and len(self._open) < self._limits.connections:
                self._open[task] = (reader, writer)
                client = self._service.host.client()
                while await self._serve_one(client, reader, writer):
                    pass
        except asyncio.IncompleteReadError:
            # The client has sent its last request, and may still be reading the answer.
            with suppress(ConnectionError, TimeoutError, asyncio.CancelledError):
                writer.close()
                async with asyncio.timeout(self._limits.stall_s):
                    await writer.wait_closed()
        except (MalformedError, ConnectionError, TimeoutError, asyncio.CancelledError):
            # Its own fault, which concerns no other connection, or the end of all (`close`).
            pass
        finally:
            self._open.pop(task, None)
            # A close would wait for a client that does not read.
            writer.transport.abort()

    async def close(self) -> None:
        """End all connections, whatever they wait for."""
        self._is_closed = True
        tasks = tuple(self._open)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _end_deserted(self) -> None:
        """End the connections whose client has closed its side while its request waits.

        Only where their places are needed: it may have sent its last request, and still read the answer.
        """
        for task in [task for task, streams in self._open.items() if _is_deserted(*streams)]:
            del self._open[task]
            task.cancel()

    async def _serve_one(
        self, client: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; return whether the connection continues."""
        limits = self._limits
        async with asyncio.timeout(limits.idle_s):
            size = INT32.unpack(await reader.readexactly(INT32.size))[0]
        # Before the size is believed: only few requests may be large.
        async with asyncio.timeout(limits.stall_s):
            key = await reader.readexactly(2) if size >= LEAST_FRAME else b""
        if not LEAST_FRAME <= size <= limit_of(int.from_bytes(key, "big", signed=True), limits.request):
            raise MalformedError(f"a frame of {size} bytes")
        async with self._requests.of(size):
            async with asyncio.timeout(limits.stall_s):
                frame = key + await reader.readexactly(size - len(key))
            try:
                request = parse(self._layouts, frame)
            except RefusedError as error:
                await self._write(writer, error.response, 0)
                return error.response is not None
            room = await self._service.ready(client, request)
            async with self._answers.of(room):
                if room and _is_deserted(reader, writer):
                    # A fetch counts when it is answered. Its follower may be back, with another log.
                    raise ConnectionError("the sender of a fetch has gone")
                body = await self._service.answer(client, request)
                response = None if body is None else respond(self._layouts, request, body)
                await self._write(writer, response, room)
        return True

    async def _write(self, writer: asyncio.StreamWriter, response: bytes | None, room: int) -> None:
        """Send an answer, and wait until the client has taken most of it; it has `room` in the budget."""
        if response is None:
            return
        size = max(len(response) - room, 0)
        if self._unread + size > self._most_unread:
            raise ConnectionError("clients do not read their answers")
        self._unread += size
        try:
            writer.writelines((INT32.pack(len(response)), response))
            async with asyncio.timeout(self._limits.stall_s):
                await writer.drain()
        finally:
            self._unread -= size
