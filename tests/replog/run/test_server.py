"""Connections and their limits: what one client does wrong, or too much of, concerns no other."""

import asyncio
import socket
import struct

import pytest
from serving import run

from replog.run.serve.codec import INT16, INT32, Field, Struct
from replog.run.serve.frames import Api
from replog.run.serve.server import Budget, Limits, Server

QUICK = Limits(connections=2, request=1_000, memory=4_000, stall_s=2, idle_s=2)


class Echo:
    """A service that answers with what it was sent; layouts of one number; and its own host."""

    def __init__(self):
        self.layout = Struct("Echo", False, (Field("n", "int32"), Field("data", "bytes", default=b"")))
        self.host = self
        self.release = asyncio.Event()
        self.release.set()
        self.room = 0
        self.answered = []

    def request(self, _key, _version):
        return self.layout, False

    response = request

    def client(self):
        return -1

    async def ready(self, _client, _request):
        await self.release.wait()
        return self.room

    async def answer(self, _client, request):
        self.answered.append(request.body["n"])
        return None if request.body["n"] == 0 else request.body


def frame(n, key=Api.PRODUCE, version=3, data=b"", cut=0):
    body = INT32.pack(n) + INT32.pack(len(data)) + data
    whole = INT16.pack(key) + INT16.pack(version) + INT32.pack(7) + INT16.pack(-1) + body
    return INT32.pack(len(whole)) + whole[: len(whole) - cut]


async def answer(reader):
    size = INT32.unpack(await reader.readexactly(4))[0]
    data = await reader.readexactly(size)
    assert data[:4] == INT32.pack(7)
    return INT32.unpack_from(data, 4)[0]


def serving(scenario, limits=QUICK):
    """Run a test with a server and a way to connect to it."""

    async def whole():
        echo, opened = Echo(), []
        server = echo.server = Server(echo, echo, limits)
        sockets = await asyncio.start_server(server.connected, "127.0.0.1", 0)

        async def connect():
            opened.append(await asyncio.open_connection(*sockets.sockets[0].getsockname()))
            return opened[-1]

        try:
            await scenario(echo, connect)
        finally:
            sockets.close()
            await server.close()
            for _, writer in opened:
                writer.transport.abort()
            await asyncio.sleep(0.02)

    run(whole)


def test_requests_of_a_connection_are_answered_in_order():
    async def scenario(_echo, connect):
        reader, writer = await connect()
        writer.write(frame(1) + frame(0) + frame(2) + frame(3))
        assert [await answer(reader) for _ in range(3)] == [1, 2, 3]

    serving(scenario)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        INT32.pack(-1) + bytes(10),
        INT32.pack(7) + bytes(7),
        INT32.pack(1_001) + bytes(1_001),
        frame(1, data=b"x" * 100)[:-1],
        frame(1, version=99),
        frame(1)[:10],
        frame(1, data=b"xx").replace(INT32.pack(2), INT32.pack(-1)),
        b"",
    ],
    ids=["http", "negative", "tiny", "huge", "stalled", "version", "cut", "size", "idle"],
)
def test_what_is_no_request_ends_its_connection_only(sent):
    async def scenario(_echo, connect):
        good, good_writer = await connect()
        bad, bad_writer = await connect()
        bad_writer.write(sent)
        for n in range(1, 5):
            good_writer.write(frame(n))
            assert await answer(good) == n
        assert await bad.read() == b"", "the connection has ended without an answer"

    serving(scenario)


def test_one_connection_too_many_is_closed_at_once():
    async def scenario(_echo, connect):
        kept = [await connect() for _ in range(2)]
        for reader, writer in kept:
            writer.write(frame(1))
            assert await answer(reader) == 1
        reader, writer = await connect()
        assert await reader.read() == b""
        kept[0][1].close()
        await asyncio.sleep(0.02)
        reader, again = await connect()
        again.write(frame(2))
        assert await answer(reader) == 2

    serving(scenario)


def test_a_client_that_has_gone_while_its_request_waits_gives_up_its_place():
    async def scenario(echo, connect):
        echo.release.clear()
        waiting = [await connect() for _ in range(2)]
        for _, writer in waiting:
            writer.write(frame(1))
        await asyncio.sleep(0.02)
        waiting[0][1].close()
        await asyncio.sleep(0.02)
        reader, writer = await connect()
        writer.write(frame(2))
        await asyncio.sleep(0.02)
        other, _ = await connect()
        assert await other.read() == b"", "of the others, nobody has"
        echo.release.set()
        assert [await answer(reader), await answer(waiting[1][0])] == [2, 1]

    serving(scenario)


@pytest.mark.parametrize("end", ["closed", "reset"])
def test_a_fetch_whose_sender_has_gone_while_it_waited_does_not_count(end):
    """A follower that was killed and is back has another log, perhaps, than its last fetch says."""

    async def scenario(echo, connect):
        echo.room = 1
        echo.release.clear()
        _, writer = await connect()
        writer.write(frame(1))
        await asyncio.sleep(0.02)
        if end == "reset":
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        writer.transport.abort()
        await asyncio.sleep(0.02)
        echo.release.set()
        reader, writer = await connect()
        writer.write(frame(2))
        assert await answer(reader) == 2
        assert echo.answered == [2]

    serving(scenario)


def test_a_client_that_has_sent_its_last_request_is_answered():
    async def scenario(echo, connect):
        echo.release.clear()
        reader, writer = await connect()
        writer.write(frame(1))
        writer.write_eof()
        await connect()
        await asyncio.sleep(0.02)
        echo.release.set()
        assert await answer(reader) == 1
        assert await reader.read() == b""

    serving(scenario)


def test_a_client_that_does_not_read_is_given_up():
    async def scenario(_echo, connect):
        _reader, writer = await connect()
        large = frame(1, data=b"x" * 150_000)

        async def flood():
            while True:
                writer.write(large * 8)
                await writer.drain()

        with pytest.raises(ConnectionError):
            await flood()

    serving(scenario, Limits(request=200_000, memory=1 << 20, stall_s=0.2, idle_s=2))


def test_answers_that_nobody_reads_have_a_limit_together():
    """It is met before any of them is given up."""

    async def scenario(echo, connect):
        async def answer(_client, _request):
            return {"n": 1, "data": bytes(6 << 20)}

        echo.answer = answer
        slow, slow_writer = await connect()
        slow_writer.write(frame(1))
        assert await slow.readexactly(1)
        late, late_writer = await connect()
        late_writer.write(frame(1))
        assert await late.read() == b"", "the connection has ended without an answer"
        assert len(await slow.readexactly(6 << 20)) == 6 << 20
        again, again_writer = await connect()
        again_writer.write(frame(1))
        assert len(await again.readexactly(6 << 20)) == 6 << 20

    serving(scenario, Limits(memory=16 << 20, stall_s=15, idle_s=15))


def test_memory_is_shared_in_order_of_arrival():
    async def scenario():
        budget, order, release = Budget(10), [], asyncio.Event()

        async def use(name, size):
            async with budget.of(size):
                order.append(name)
                await release.wait()

        tasks = [
            asyncio.create_task(use(name, size))
            for name, size in (("a", 6), ("b", 6), ("c", 3), ("d", 99), ("e", 1))
        ]
        for _ in range(5):
            await asyncio.sleep(0)
        # The third would fit, and does not overtake the second.
        assert order == ["a"]
        tasks[1].cancel()
        await asyncio.gather(tasks[1], return_exceptions=True)
        release.set()
        await asyncio.gather(*tasks[2:])
        assert order == ["a", "c", "d", "e"]
        async with budget.of(10):
            order.append("all is free again")

    run(scenario)


def test_requests_wait_for_memory():
    async def scenario(echo, connect):
        echo.release.clear()
        one, other = await connect(), await connect()
        # Half of the memory is for requests: two do not fit together.
        for _, writer in (one, other):
            writer.write(frame(1, data=b"x" * 800))
        await asyncio.sleep(0.05)
        echo.release.set()
        for reader, _ in (one, other):
            assert await answer(reader) == 1

    serving(scenario, Limits(connections=5, request=1_000, memory=2_000, stall_s=2, idle_s=2))


def test_a_small_request_waits_for_no_large_ones():
    """A follower's fetch is what the produces of a full memory wait for."""

    async def scenario(echo, connect):
        async def ready(_client, request):
            if request.body["data"]:
                await echo.release.wait()
            return 0

        echo.release.clear()
        echo.ready = ready
        large = [await connect() for _ in range(2)]
        for _, writer in large:
            writer.write(frame(1, data=b"x" * 800))
        reader, writer = await connect()
        writer.write(frame(2))
        assert await asyncio.wait_for(answer(reader), 2) == 2
        echo.release.set()
        for reader, _ in large:
            assert await answer(reader) == 1

    serving(scenario, Limits(connections=5, request=1_000, memory=2_000, stall_s=5, idle_s=5))


def test_the_end_of_the_server_ends_connections_that_wait(caplog):
    async def scenario(echo, connect):
        echo.release.clear()
        reader, writer = await connect()
        writer.write(frame(1))
        await asyncio.sleep(0.02)
        await echo.server.close()
        assert await reader.read() == b""

    serving(scenario)
    assert not caplog.records, "asyncio has nothing to say about it"
