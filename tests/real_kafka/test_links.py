"""The relay, between a server that answers each request with its bytes, and clients."""

from __future__ import annotations

import socket
import struct
import threading

import pytest
from conformance.apache_kafka.links import Direction, Pattern, Relay

FETCH, PRODUCE = 1, 0
LIMIT_S = 20


def frame(key, client_id="broker-2-fetcher-0", body=b"", version=15):
    data = struct.pack(">hhih", key, version, 7, len(client_id)) + client_id.encode() + body
    return struct.pack(">i", len(data)) + data


class Echo:
    """A server that answers each frame with correlation and contents, and remembers what it was sent."""

    def __init__(self):
        self.received = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            while head := connection.recv(4, socket.MSG_WAITALL):
                data = connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
                self.received.append(data)
                connection.sendall(struct.pack(">i", len(data)) + data)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), LIMIT_S)

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        head = self.socket.recv(4, socket.MSG_WAITALL)
        return self.socket.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL) if head else None


@pytest.fixture
def server():
    echo = Echo()
    yield echo
    echo.listener.close()


@pytest.fixture
def relay():
    with Relay() as relay:
        yield relay


@pytest.fixture
def client(relay, server):
    client = Client(relay.listen(1, server.port))
    yield client
    client.socket.close()


FETCHES = Pattern(2, 1, FETCH)


def test_what_nobody_holds_passes(client, relay):
    client.send(frame(FETCH))
    assert client.receive() == frame(FETCH)[4:]


def test_a_held_request_waits_until_it_is_released(client, relay, server):
    relay.hold(FETCHES)
    client.send(frame(FETCH))
    held = relay.expect(FETCHES, limit_s=LIMIT_S)
    assert (held.source, held.destination, held.api, held.direction) == (2, 1, FETCH, Direction.REQUEST)
    assert not server.received
    relay.release(FETCHES)
    assert client.receive() == frame(FETCH)[4:]


def test_one_frame_is_forwarded_and_the_next_is_held(client, relay, server):
    """Step by step: the request alone, then the response alone."""
    relay.hold(FETCHES)
    client.send(frame(FETCH))
    relay.forward(relay.expect(FETCHES, limit_s=LIMIT_S))
    response = relay.expect(FETCHES, lambda held: held.direction is Direction.RESPONSE, LIMIT_S)
    assert server.received == [frame(FETCH)[4:]]
    relay.forward(response)
    assert client.receive() == frame(FETCH)[4:]
    client.send(frame(FETCH, body=b"again"))
    assert relay.expect(FETCHES, limit_s=LIMIT_S).direction is Direction.REQUEST


@pytest.mark.parametrize(
    "pattern",
    [Pattern(3, 1, FETCH), Pattern(2, 9, FETCH), Pattern(2, 1, PRODUCE)],
    ids=["source", "destination", "api"],
)
def test_other_links_and_apis_are_not_held(client, relay, pattern):
    relay.hold(pattern)
    client.send(frame(FETCH))
    assert client.receive() == frame(FETCH)[4:]


def test_responses_alone_are_held(client, relay, server):
    responses = Pattern(2, 1, FETCH, Direction.RESPONSE)
    relay.hold(responses)
    client.send(frame(FETCH))
    relay.expect(responses, limit_s=LIMIT_S)
    assert server.received == [frame(FETCH)[4:]]
    relay.release(responses)
    assert client.receive() == frame(FETCH)[4:]


def test_a_dropped_request_is_never_answered(client, relay, server):
    relay.hold(FETCHES)
    client.send(frame(FETCH, body=b"first"))
    relay.drop(relay.expect(FETCHES, limit_s=LIMIT_S))
    client.send(frame(FETCH, body=b"second"))
    relay.forward(relay.expect(FETCHES, lambda held: held.data.endswith(b"second"), LIMIT_S))
    relay.release(FETCHES)
    assert client.receive() == frame(FETCH, body=b"second")[4:]
    assert server.received == [frame(FETCH, body=b"second")[4:]]


def test_a_request_outlives_its_sender(client, relay, server):
    """As on a network: the node that it was sent to still acts upon it."""
    relay.hold(FETCHES)
    client.send(frame(FETCH))
    held = relay.expect(FETCHES, limit_s=LIMIT_S)
    client.socket.close()
    with relay.changed:
        assert relay.changed.wait_for(lambda: held.orphaned, LIMIT_S)
    with pytest.raises(TimeoutError):
        relay.expect(FETCHES, limit_s=0.1)
    assert relay.at_gate(FETCHES) == [held]
    relay.forward(held)
    with relay.changed:
        assert relay.changed.wait_for(lambda: held.answer is not None, LIMIT_S)
    assert held.answer == frame(FETCH)[4:] == server.received[0]


def test_a_cut_link_is_closed_with_what_it_holds(client, relay, server):
    relay.hold(FETCHES)
    client.send(frame(FETCH))
    relay.expect(FETCHES, limit_s=LIMIT_S)
    relay.cut(FETCHES)
    assert client.receive() is None
    assert not server.received


def test_an_old_fetcher_is_known_by_its_replica(relay, server):
    """0.10.2 gives its fetchers no client id with the number of their broker first."""
    relay.hold(Pattern(3, 1, FETCH))
    client = Client(relay.listen(1, server.port))
    client.send(frame(FETCH, client_id="1-fetcher", body=struct.pack(">i", 3), version=3))
    assert relay.expect(Pattern(3, 1), limit_s=LIMIT_S).version == 3
    client.socket.close()
