"""Commands that an editor starts beside the server: runs with progress, pictures, the explorer.

A run is `specchk run --json` in a process of its own (`children`), so the server answers meanwhile.  Its
progress is the line that a terminal would show: its standard error is one.  Cancelling interrupts it, as
Ctrl-C would.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from lsprotocol import types as lsp
from msgspec import Struct
from pygls.lsp.server import LanguageServer

from specchk.children import ended, started

_ADDRESS = re.compile(rb"https?://\S+")


class LastRun(Struct, frozen=True):
    """What a run has reported of a model: its JSON, the page with all of it, and the text that was run."""

    report: dict[str, Any]
    page: Path
    text: str


class NoReport(Exception):
    """A command gave no report; the text is its reason."""


class Runs:
    """The commands of one server."""

    def __init__(self, server: LanguageServer, folder: Path) -> None:
        self._server = server
        self.folder = folder  # for reports and pictures
        self._count = 0
        self._processes: dict[str | int, asyncio.subprocess.Process] = {}  # by the numbers of commands
        self._pages: set[asyncio.Task[None]] = set()

    async def report(self, title: str, words: Sequence[str], folder: Path) -> Any:
        """The JSON that a command prints; raises `NoReport`.  Without a title there is no progress bar."""
        with TemporaryFile() as out:
            errors = await self._run(title, words, folder, out)
            out.seek(0)
            try:
                return json.loads(out.read())
            except ValueError:
                raise NoReport(errors or "it was ended before it had a report") from None

    async def address(self, words: Sequence[str], folder: Path) -> str:
        """The address at which a command serves a page, as long as the server runs; raises `NoReport`."""
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def serve() -> None:
            process = await started(words, folder, asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE,
                                    asyncio.subprocess.STDOUT)  # fmt: skip
            try:
                assert process.stdout is not None
                lines = b""
                async for line in process.stdout:
                    lines += line
                    if (match := _ADDRESS.search(line)) and not address.done():
                        address.set_result(match[0].decode())
                if not address.done():
                    address.set_exception(NoReport(lines.decode(errors="replace").strip()))
            finally:
                await ended(process)

        task = asyncio.create_task(serve())
        self._pages.add(task)
        task.add_done_callback(self._pages.discard)
        return await address

    async def done(self, title: str, words: Sequence[str], folder: Path) -> str:
        """Run a command whose result is a file; what it wrote."""
        return await self._run(title, words, folder, asyncio.subprocess.DEVNULL)

    async def cancel(self, token: str | int) -> None:
        """Interrupt the command with a progress bar."""
        if token in self._processes:
            await ended(self._processes[token])

    async def _run(self, title: str, words: Sequence[str], folder: Path, out: Any) -> str:
        """Run a command to its end; the last line on its terminal."""
        token, has_bar = await self._begin(title)
        screen, theirs = os.openpty()
        process = self._processes[token] = await started(
            words, folder, asyncio.subprocess.DEVNULL, out, theirs
        )
        os.close(theirs)
        written = bytearray()
        loop = asyncio.get_running_loop()
        loop.add_reader(screen, self._read, screen, written, token if has_bar else None)
        try:
            await process.wait()
        finally:
            await ended(process)
            self._read(screen, written, None)
            loop.remove_reader(screen)
            os.close(screen)
            del self._processes[token]
            if has_bar:
                self._server.work_done_progress.end(token, lsp.WorkDoneProgressEnd())
        return re.split(r"[\r\n]", written.decode(errors="replace").strip())[-1].strip()

    async def _begin(self, title: str) -> tuple[str, bool]:
        """The number of a command, and whether it has a progress bar, with a button that cancels it."""
        self._count += 1
        token = f"specchk-{self._count}"
        window = self._server.client_capabilities.window
        if window is None or not window.work_done_progress or not title:
            return token, False
        await self._server.work_done_progress.create_async(token)
        self._server.work_done_progress.begin(token, lsp.WorkDoneProgressBegin(title, cancellable=True))
        return token, True

    def _read(self, screen: int, written: bytearray, token: str | None) -> None:
        try:
            written += os.read(screen, 4096)
        except OSError:  # the last process that had it open has ended
            asyncio.get_running_loop().remove_reader(screen)
            return
        line = bytes(written).rsplit(b"\r", 1)[-1].decode(errors="replace").strip()
        if token is not None and line:
            self._server.work_done_progress.report(token, lsp.WorkDoneProgressReport(message=line))


def summary(report: dict[str, Any]) -> str:
    """The verdict of a run in a line."""
    verdict, name = report.get("verdict", "ended"), report.get("property")
    if verdict == "rejected":
        return f"rejected: {report['diagnostics'][0]['message']}"
    states = report.get("states_distinct")
    steps = f" in {report['steps']} steps" if report.get("steps") is not None else ""
    counts = f", {states:,} states" if states is not None else ""
    reason = f" ({report['reason']})" if report.get("reason") else ""
    return f"{verdict.replace('_', ' ')}{f': {name}' if name else ''}{steps}{reason}{counts}"
