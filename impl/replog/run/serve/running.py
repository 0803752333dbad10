"""A broker from its start to its stop: its files, its sockets, and the signals that end it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from replog.run.serve import host
from replog.run.serve.host import Watch
from replog.run.serve.layout import KioLayouts
from replog.run.serve.server import Limits, Server
from replog.run.serve.service import Service
from replog.store.files.fs import OsFs

BUFFER_BYTES = 1 << 20
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a broker listens, and the address that it tells to clients: host, or that of `advertised`."""

    host: str = LOOPBACK
    port: int = 0
    advertised: str = ""
    creates_topics: bool = True
    limits: Limits = field(default_factory=Limits)
    watch: Watch = lambda _: None


def run(
    path: str, settings: host.Settings, listening: Listening, ready: Callable[[host.Host, int], None]
) -> None:
    """Serve a directory until SIGTERM or Ctrl-C; `ready` is called with the port once clients are served.

    Raises `StoreError` and `OSError`: the directory or the port cannot be used, or the disk has failed.
    """
    asyncio.run(_run(path, settings, listening, ready))


async def _run(
    path: str, settings: host.Settings, listening: Listening, ready: Callable[[host.Host, int], None]
) -> None:
    loop = asyncio.get_running_loop()
    broker = host.start(OsFs(), path, settings, listening.watch)
    addresses: dict[int, tuple[str, int]] = {}
    try:
        serving = Server(Service(broker, addresses, listening.creates_topics), KioLayouts(), listening.limits)
        sockets = await asyncio.start_server(
            serving.connected, listening.host, listening.port, limit=BUFFER_BYTES
        )
        port = sockets.sockets[0].getsockname()[1]
        addresses[settings.broker_id] = (listening.advertised or listening.host, port)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, broker.shut_down)
        ready(broker, port)
        await broker.stopped
        sockets.close()
        await serving.close()
    finally:
        # Without effect after a clean stop.
        broker.files.directory.abandon()
