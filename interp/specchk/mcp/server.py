"""The server of `specchk mcp`, on the SDK of the Model Context Protocol, over standard input and output.

The SDK serves the revision 2026-07-28, which has no sessions, and the earlier ones with their handshake.
Nothing here depends on which: a tool gets all that it needs as arguments, and gives handles of reports.

    folders   which files may be used            jobs    commands in processes of their own
    tools     what a client can request          views   what is shown of a report
    pages     answers of a bounded size          reference   documents

Not here: reports, which are those of the commands with `--json`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.resources import FunctionResource
from mcp.types import ToolAnnotations

from specchk.guardian import temporary_folder
from specchk.mcp.folders import Folders
from specchk.mcp.jobs import Jobs
from specchk.mcp.reference import DOCUMENTS, document
from specchk.mcp.tools import Permissions, Tools

WRITING = ("write", "bind")
EXECUTING = ("conform", "validate")
READING = (
    "check", "run", "simulate", "test", "scenario", "review", "poll", "cancel", "read", "trace", "step",
    "evaluate", "coverage", "explain", "reference",
)  # fmt: skip
# (what it may do beyond reading, as hints for clients)
HINTS = MappingProxyType({
    **dict.fromkeys(READING, ToolAnnotations(read_only_hint=True, open_world_hint=False)),
    **dict.fromkeys(WRITING, ToolAnnotations(read_only_hint=False, open_world_hint=False)),
    **dict.fromkeys(EXECUTING, ToolAnnotations(read_only_hint=False, open_world_hint=True)),
})  # fmt: skip


def serve(folders: Sequence[Path], *, write: bool, execute: bool) -> None:
    """Answer requests until standard input ends; the processes that are running end with it."""
    with temporary_folder() as temporary:
        jobs = Jobs(Path(temporary))
        asyncio.run(server(Folders(tuple(folders)), Permissions(write, execute), jobs).run_stdio_async())


def server(folders: Folders, permissions: Permissions, jobs: Jobs) -> MCPServer[None]:
    """The server, with its tools and resources."""

    @asynccontextmanager
    async def ended(_: MCPServer[None]) -> AsyncIterator[None]:
        try:
            yield None
        finally:
            await jobs.end()

    instructions = files("specchk.mcp").joinpath("instructions.md").read_text(encoding="utf-8")
    made = MCPServer[None](
        "specchk", instructions=instructions, version=version("specchk"), log_level="ERROR", lifespan=ended,
        subscriptions=False,
    )  # fmt: skip
    tools = Tools(folders, permissions, jobs)
    for name, hints in HINTS.items():
        tool: Callable[..., Any] = getattr(tools, name)
        made.add_tool(tool, name=name, annotations=hints, structured_output=False)
    for name in DOCUMENTS:
        made.add_resource(_resource(name))
    return made


def _resource(name: str) -> FunctionResource:
    return FunctionResource.from_function(
        lambda: document(name), f"specchk://documents/{name}", name=name, mime_type="text/markdown"
    )
