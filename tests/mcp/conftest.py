"""The server as clients see it: a process, driven by the client of the SDK, on folders of its own."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


class Server:
    """A server and the SDK's client, which lives in the event loop of another thread."""

    def __init__(self, folders: list[Path], *options: str, mode: str = "auto") -> None:
        self._mcp = pytest.importorskip("mcp")
        self.folder = folders[0]
        words = ["-P", "-m", "specchk", "mcp", *map(str, folders), *options]
        stdio = pytest.importorskip("mcp.client.stdio")
        self._about = stdio.StdioServerParameters(command=sys.executable, args=words)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._ready: asyncio.Event = asyncio.Event()
        self._end: asyncio.Event = asyncio.Event()
        self.client: Any = None
        self._life = asyncio.run_coroutine_threadsafe(self._live(mode), self._loop)
        self.await_(self._ready.wait())

    async def _live(self, mode: str) -> None:
        async with AsyncExitStack() as stack:  # entered and left by one task, as its cancel scopes require
            self.client = await stack.enter_async_context(self._mcp.Client(self._about, mode=mode))
            self._ready.set()
            await self._end.wait()

    def await_(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=120)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._life.result(timeout=60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=60)
        self._loop.close()

    def text(self, tool: str, **arguments: Any) -> str:
        """The text of an answer, which is no error."""
        result = self.await_(self.client.call_tool(tool, arguments))
        assert not result.is_error, result.content[0].text
        (content,) = result.content
        return str(content.text)

    def call(self, tool: str, **arguments: Any) -> Any:
        """The JSON of an answer."""
        return json.loads(self.text(tool, **arguments))

    def error(self, tool: str, **arguments: Any) -> str:
        """The sentence with which a request is refused."""
        result = self.await_(self.client.call_tool(tool, arguments))
        assert result.is_error, result.content[0].text
        return str(result.content[0].text)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*names: str, options: tuple[str, ...] = (), mode: str = "auto") -> Server:
        folder = tmp_path_factory.mktemp("served")
        for name in names:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / source.name)
            else:
                shutil.copy(source, folder / source.name)
        servers.append(Server([folder], *options, mode=mode))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
