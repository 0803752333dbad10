"""`specchk lsp`: the language server, on pygls; which request is answered by what.

One thread: an analysis takes less than the pause between two keystrokes.  Diagnostics are published a moment
after an edit, so that those that come together are checked once.

Not here: whatever knows specs (the other modules of this room).
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from msgspec import Struct, field
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from specchk.guardian import temporary_folder
from specchk.lang.format.formatter import format_source
from specchk.lang.text.diagnostics import SpecError
from specchk.lang.text.source import Source
from specchk.lsp.commands import EditorCommands
from specchk.lsp.completion import completions, signature
from specchk.lsp.fixes import fixes
from specchk.lsp.hover import hover
from specchk.lsp.lenses import hints, lenses, marks
from specchk.lsp.outline import folds, outline
from specchk.lsp.renaming import NoRename, check_renamable, renamed
from specchk.lsp.texts import SpecText
from specchk.lsp.tokens import legend, semantic_tokens
from specchk.lsp.workspace import Workspace, deeper, path_of, reported, uri_of

MOST_SYMBOLS = 500  # of all files
IDLE_S = 2.0  # after an edit, before cycles of objects are searched, which takes longer than a keystroke
PAUSE_S = 0.01  # after an edit, before its diagnostics


class Service(Struct):
    """A workspace with its client."""

    server: LanguageServer
    workspace: Workspace
    commands: EditorCommands
    uris: dict[str, str] = field(default_factory=dict)  # of open texts, as the client writes them
    _due: tuple[asyncio.TimerHandle, ...] = ()

    # Texts.

    def initialize(self, params: lsp.InitializeParams) -> None:
        """A client comes: `panel` among its options is whether it shows pages itself."""
        options = params.initialization_options
        self.commands.has_panel = isinstance(options, dict) and bool(options.get("panel"))

    def initialized(self, _: lsp.InitializedParams) -> None:
        """The client is there, with its folders."""
        self.workspace.folders = [Path(path_of(uri)) for uri in self.server.workspace.folders]

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

    async def saved(self, params: lsp.DidSaveTextDocumentParams) -> None:
        """A text has been saved: what takes longer is checked beside the server."""
        path = path_of(params.text_document.uri)
        if not self.workspace.analysis(path).diagnostics:
            await self.commands.check(path)

    def files_changed(self, params: lsp.DidChangeWatchedFilesParams) -> None:
        """Files were changed by other programs."""
        for change in params.changes:
            self.workspace.forget(path_of(change.uri))
        self._publish_soon()

    def _publish_soon(self) -> None:
        for timer in self._due:
            timer.cancel()
        later = asyncio.get_running_loop().call_later
        self._due = (later(PAUSE_S, self._publish), later(IDLE_S, gc.collect))

    def _publish(self) -> None:
        for path, uri in list(self.uris.items()):
            if not self.workspace.is_fresh(path):
                self._publish_text(path, uri)

    def _publish_text(self, path: str, uri: str) -> None:
        version = self.server.workspace.get_text_document(uri).version
        analysis = self.workspace.analysis(path)
        diagnostics = reported(analysis)
        if analysis.text is not None:
            text, errors = self.commands.errors.get(path, ("", []))
            if not diagnostics and text == analysis.text.source.text:
                diagnostics += [deeper(analysis.text, error) for error in errors]
            diagnostics += marks(analysis.text, self.commands.latest(path), path)
        self.server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics, version))

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

    def references(self, params: lsp.ReferenceParams) -> list[lsp.Location]:
        """The places that have a name."""
        path = path_of(params.text_document.uri)
        met = self.workspace.at(path, params.position)
        if met is None:
            return []
        declared = self.workspace.index(path).declared.get(met[2].symbol)
        uses = self.workspace.uses(path, met[2].symbol)
        return [
            location for analysis, place in uses
            if (params.context.include_declaration or place != declared)
            and (location := self.workspace.location(place, analysis)) is not None
        ]  # fmt: skip

    def highlight(self, params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        """The places in this text that have a name."""
        path = path_of(params.text_document.uri)
        met = self.workspace.at(path, params.position)
        places = self.workspace.index(path).of(met[2].symbol) if met is not None else []
        return [
            lsp.DocumentHighlight(met[1].range(start, end))
            for file, start, end in places
            if met and file == path
        ]

    def can_rename(self, params: lsp.PrepareRenameParams) -> lsp.Range | None:
        """The name that would be changed."""
        path = path_of(params.text_document.uri)
        met = self.workspace.at(path, params.position)
        if met is None:
            return None
        with _refused():
            check_renamable(self.workspace, path, met[2].symbol)
        return met[1].range(met[2].start, met[2].end)

    def rename(self, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        """A name changed wherever it is."""
        path = path_of(params.text_document.uri)
        met = self.workspace.at(path, params.position)
        if met is None:
            return None
        with _refused():
            places = renamed(self.workspace, path, met[2], params.new_name)
        changes: dict[str, list[lsp.TextEdit]] = {}
        for file, of_file in places.items():
            text = self.workspace.read(file)
            changes[self.uri(file)] = [
                lsp.TextEdit(text.range(start, end), params.new_name) for _, start, end in sorted(of_file)
            ]
        return lsp.WorkspaceEdit(changes)

    def uri(self, path: str) -> str:
        """The address of a file, as the client writes it if it has it open."""
        return self.uris.get(path) or uri_of(path)

    # What can be written.

    def completion(self, params: lsp.CompletionParams) -> lsp.CompletionList:
        """The words and names that fit a place."""
        path = path_of(params.text_document.uri)
        return lsp.CompletionList(False, completions(self.workspace, path, params.position))

    def signature(self, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        """The parameters of the call around a place."""
        return signature(self.workspace, path_of(params.text_document.uri), params.position)

    def fixes(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        """The changes that remove errors."""
        uri = params.text_document.uri
        return fixes(self.workspace, path_of(uri), uri, params.range)

    # Runs.

    def lenses(self, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        """The commands of a text, each beside its declaration."""
        uri = params.text_document.uri
        path = path_of(uri)
        findings = self.commands.findings.get(path, {})
        return list(lenses(self.workspace.read(path), uri, findings, self.workspace.models.get(path)))

    def inlays(self, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        """What the last run counted."""
        path = path_of(params.text_document.uri)
        return list(hints(self.workspace.read(path), self.commands.latest(path), path))

    def refresh(self) -> None:
        """Have the client request what a run has changed."""
        workspace = self.server.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None:
            self.server.workspace_code_lens_refresh(None)
        if workspace is not None and workspace.inlay_hint is not None:
            self.server.workspace_inlay_hint_refresh(None)
        for path, uri in self.uris.items():
            self._publish_text(path, uri)

    # Whole texts.

    def symbols(self, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        """The declarations of a text."""
        text = self.workspace.read(path_of(params.text_document.uri))
        return [
            lsp.DocumentSymbol(
                entry.name, entry.kind, text.range(entry.start, entry.end),
                text.range(entry.named, entry.named + len(entry.name)), entry.word,
            ) for entry in outline(text.source.text)
        ]  # fmt: skip

    def workspace_symbols(self, params: lsp.WorkspaceSymbolParams) -> list[lsp.WorkspaceSymbol]:
        """The declarations of all files whose names have the letters of a query in their order."""
        wanted = re.compile(".*".join(map(re.escape, params.query)), re.IGNORECASE)
        symbols = []
        for path, content in self.workspace.files():
            text = SpecText(Source(path, content), ())
            symbols += [
                lsp.WorkspaceSymbol(
                    lsp.Location(self.uri(path), text.range(entry.named, entry.named + len(entry.name))),
                    entry.name, entry.kind, container_name=Path(path).stem,
                ) for entry in outline(content) if wanted.search(entry.name)
            ]  # fmt: skip
        return symbols[:MOST_SYMBOLS]

    def folds(self, params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        """What can be folded."""
        return list(folds(self.workspace.read(path_of(params.text_document.uri)).source))

    def formatted(self, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        """The changes of `specchk fmt`; none of a text with syntax errors."""
        text = self.workspace.read(path_of(params.text_document.uri))
        try:
            new = format_source(text.source.text)
        except SpecError:
            return []
        # Only the lines that differ: an editor keeps its place in the others.
        lines = (text.source.text.splitlines(keepends=True), new.splitlines(keepends=True))
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*lines, strict=False)))
        old, own = lines[0][same:], lines[1][same:]
        while old and own and old[-1] == own[-1]:
            old.pop()
            own.pop()
        if old == own:
            return []
        start = len("".join(lines[0][:same]))
        return [lsp.TextEdit(text.range(start, start + len("".join(old))), "".join(own))]

    def tokens(self, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        """What each word of a text is."""
        path = path_of(params.text_document.uri)
        text = self.workspace.analysis(path).text
        return lsp.SemanticTokens(
            semantic_tokens(text, self.workspace.index(path)) if text is not None else []
        )


@contextmanager
def _refused() -> Iterator[None]:
    """A context in which a name that cannot be changed is an error of the request."""
    try:
        yield
    except NoRename as reason:
        raise JsonRpcInvalidParams(str(reason)) from None


def service(folder: Path) -> Service:
    """A server that answers requests, not yet started; `folder` is for reports and pictures."""
    server = LanguageServer("specchk", version("specchk"))
    workspace = Workspace()
    made = Service(server, workspace, EditorCommands(server, workspace, folder))
    made.commands.on_change = made.refresh
    features: list[tuple[str, object, Callable[..., Any]]] = [
        (lsp.INITIALIZE, None, made.initialize),
        (lsp.INITIALIZED, None, made.initialized),
        (lsp.TEXT_DOCUMENT_DID_OPEN, None, made.opened),
        (lsp.TEXT_DOCUMENT_DID_CHANGE, None, made.changed),
        (lsp.TEXT_DOCUMENT_DID_CLOSE, None, made.closed),
        (lsp.TEXT_DOCUMENT_DID_SAVE, None, made.saved),
        (lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, None, made.files_changed),
        (lsp.TEXT_DOCUMENT_HOVER, None, made.hover),
        (lsp.TEXT_DOCUMENT_DEFINITION, None, made.definition),
        (lsp.TEXT_DOCUMENT_REFERENCES, None, made.references),
        (lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, None, made.highlight),
        (lsp.TEXT_DOCUMENT_PREPARE_RENAME, None, made.can_rename),
        (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, None, made.symbols),
        (lsp.WORKSPACE_SYMBOL, None, made.workspace_symbols),
        (lsp.TEXT_DOCUMENT_FOLDING_RANGE, None, made.folds),
        (lsp.TEXT_DOCUMENT_FORMATTING, None, made.formatted),
        (lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["."]), made.completion),
        (lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(["(", ","]), made.signature),
        (lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]), made.fixes),
        (lsp.TEXT_DOCUMENT_CODE_LENS, None, made.lenses),
        (lsp.TEXT_DOCUMENT_INLAY_HINT, None, made.inlays),
        (lsp.WINDOW_WORK_DONE_PROGRESS_CANCEL, None, made.commands.cancel),
        (lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True), made.rename),
        (lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend(), made.tokens),
    ]
    for feature, options, handler in features:
        server.feature(feature, options)(partial(handler))  # a method takes no attributes, which pygls sets
    commands = made.commands
    for command in (commands.run, commands.draw, commands.explore, commands.report, commands.choose):
        server.command(f"specchk.{command.__name__}")(partial(command))
    return made


def serve() -> None:
    """Serve a client on standard input and output until it ends."""
    with (
        os.fdopen(os.dup(0), "rb") as incoming, os.fdopen(os.dup(1), "wb") as outgoing,
        temporary_folder() as folder,
    ):  # fmt: skip
        os.dup2(2, 1)  # what is printed by mistake is no message
        gc.disable()
        service(Path(folder)).server.start_io(incoming, outgoing)
