"""`specchk lsp`: the language server, on pygls; which request is answered by what.

One thread: an analysis takes less than the pause between two keystrokes.  Diagnostics are published a moment
after an edit, so that those that come together are checked once.

Not here: whatever knows specs (the other modules of this room).
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from importlib.metadata import version

from lsprotocol import types as lsp
from msgspec import Struct, field
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from specchk.lsp.hover import hover
from specchk.lsp.workspace import Workspace, reported

PAUSE_S = 0.01  # after an edit, before its diagnostics


class Service(Struct):
    """A workspace with its client."""

    server: LanguageServer
    workspace: Workspace = field(default_factory=Workspace)
    uris: dict[str, str] = field(default_factory=dict)  # of open texts, as the client writes them
    _due: asyncio.TimerHandle | None = None

    # Texts.

    def opened(self, params: lsp.DidOpenTextDocumentParams) -> None:
        """A text is open, and its file is no longer what counts."""
        path = path_of(params.text_document.uri)
        self.uris[path] = params.text_document.uri
        self.workspace.open(path, params.text_document.text)
        self._publish_soon()

    def changed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        """A text has been edited."""
        uri = params.text_document.uri
        self.workspace.open(path_of(uri), self.server.workspace.get_text_document(uri).source)
        self._publish_soon()

    def closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        """A text has been closed: its file counts again."""
        path = path_of(params.text_document.uri)
        self.workspace.close(path)
        uri = self.uris.pop(path, params.text_document.uri)
        self.server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))
        self._publish_soon()

    def files_changed(self, params: lsp.DidChangeWatchedFilesParams) -> None:
        """SpecFiles were changed by other programs."""
        for change in params.changes:
            self.workspace.forget(path_of(change.uri))
        self._publish_soon()

    def _publish_soon(self) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due = asyncio.get_running_loop().call_later(PAUSE_S, self._publish)

    def _publish(self) -> None:
        for path, uri in list(self.uris.items()):
            if not self.workspace.is_fresh(path):
                document = self.server.workspace.get_text_document(uri)
                diagnostics = reported(self.workspace.analysis(path))
                self.server.text_document_publish_diagnostics(
                    lsp.PublishDiagnosticsParams(uri, diagnostics, document.version)
                )

    # Names.

    def hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        """The declaration, type, comment and value of a name."""
        path = path_of(params.text_document.uri)
        met = self.workspace.at(path, params.position)
        if met is None:
            return None
        analysis, text, occurrence = met
        shown = hover(analysis, self.workspace.index(path), occurrence, self.workspace.models.get(path))
        return lsp.Hover(
            lsp.MarkupContent(lsp.MarkupKind.Markdown, shown), text.range(occurrence.start, occurrence.end)
        )

    def definition(self, params: lsp.DefinitionParams) -> lsp.Location | None:
        """The place where a name is declared."""
        path = path_of(params.text_document.uri)
        met = self.workspace.at(path, params.position)
        place = self.workspace.index(path).declared.get(met[2].symbol) if met is not None else None
        return self.workspace.location(place, met[0]) if met is not None and place is not None else None


def path_of(uri: str) -> str:
    """The path of a file that a client names; of what is no file, as an unsaved text, the address."""
    return to_fs_path(uri) or uri if uri.startswith("file:") else uri


def service() -> Service:
    """A server that answers requests, not yet started."""
    server = LanguageServer("specchk", version("specchk"))
    made = Service(server)
    for feature, handler in (
        (lsp.TEXT_DOCUMENT_DID_OPEN, made.opened),
        (lsp.TEXT_DOCUMENT_DID_CHANGE, made.changed),
        (lsp.TEXT_DOCUMENT_DID_CLOSE, made.closed),
        (lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, made.files_changed),
        (lsp.TEXT_DOCUMENT_HOVER, made.hover),
        (lsp.TEXT_DOCUMENT_DEFINITION, made.definition),
    ):
        server.feature(feature)(partial(handler))  # a method takes no attributes, which pygls sets
    return made


def serve() -> None:
    """Serve a client on standard input and output until it ends."""
    with os.fdopen(os.dup(0), "rb") as incoming, os.fdopen(os.dup(1), "wb") as outgoing:
        os.dup2(2, 1)  # what is printed by mistake is no message
        service().server.start_io(incoming, outgoing)
