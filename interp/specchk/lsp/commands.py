"""The commands that an editor's user starts at a declaration, and what was found by them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from specchk.lsp.runs import LastRun, NoReport, Runs, summary
from specchk.lsp.workspace import Workspace, path_of

Shown = dict[str, str]  # `show`: the address of a page, if there is one


class EditorCommands:
    """The commands of one client; each has the address of a text, and names of declarations, as arguments.

    Reports and pictures are written to `folder`.
    """

    def __init__(self, server: LanguageServer, workspace: Workspace, folder: Path) -> None:
        self.findings: dict[str, dict[str, LastRun]] = {}  # by path and model, the last one last
        self.errors: dict[str, tuple[str, list[dict[str, Any]]]] = {}  # of a saved text, by path
        self.has_panel = False  # whether the client shows pages itself
        self.on_change: Callable[[], None] = lambda: None
        self._server, self._workspace, self._runs = server, workspace, Runs(server, folder)
        self._files = 0

    async def check(self, path: str) -> None:
        """Check a saved text as `specchk check` does: for errors that only the constants of models decide."""
        text = self._workspace.read(path).source.text
        try:
            report = await self._runs.report("", ["check", path, "--json"], Path(path).parent)
        except NoReport:
            return
        own = [item for item in report.get("diagnostics", ()) if item["path"] == path and item["line"]]
        self.errors[path] = text, own
        self.on_change()

    def latest(self, path: str) -> LastRun | None:
        """The last run of a spec's models."""
        return next(reversed(self.findings.get(path, {}).values()), None)

    async def run(self, arguments: dict[str, str]) -> Shown:
        """Check a model, one of its properties, or a scenario."""
        path = self._saved(arguments)
        if path is None:
            return {}
        page = self._file(path, "html")
        if "scenario" in arguments:
            words = ["repl", path, f"--scenario={arguments['scenario']}", "--json"]
        else:
            words = ["run", path, *_options(arguments), "--json", f"--html={page}"]
        text = self._workspace.read(path).source.text
        try:
            report = await self._runs.report(_title(arguments), words, Path(path).parent)
        except NoReport as reason:
            return self._say(str(reason), lsp.MessageType.Warning)
        if "scenario" in arguments:
            return self._say(f"scenario {arguments['scenario']} holds")
        if arguments.keys() == {"uri", "model"} and report.get("verdict") != "rejected":
            self.findings.setdefault(path, {}).pop(arguments["model"], None)
            self.findings[path][arguments["model"]] = LastRun(report, page, text)
            self.on_change()
        is_bad = report.get("verdict") in ("violated", "rejected")
        self._say(summary(report), lsp.MessageType.Warning if is_bad else lsp.MessageType.Info)
        return self._show(page) if is_bad and page.exists() else {}

    async def draw(self, arguments: dict[str, str]) -> Shown:
        """Draw a counterexample, a witness or a scenario."""
        path = self._saved(arguments)
        if path is None:
            return {}
        picture = self._file(path, "svg")
        words = ["draw", path, *_options(arguments), f"--output={picture}"]
        line = await self._runs.done(_title(arguments), words, Path(path).parent)
        return self._show(picture) if picture.exists() else self._say(line, lsp.MessageType.Warning)

    async def explore(self, arguments: dict[str, str]) -> Shown:
        """Step through the states of a model in a browser."""
        path = self._saved(arguments)
        if path is None:
            return {}
        try:
            address = await self._runs.address(["explore", path, *_options(arguments)], Path(path).parent)
        except NoReport as reason:
            return self._say(str(reason), lsp.MessageType.Warning)
        return self._show(address)

    def report(self, arguments: dict[str, str]) -> Shown:
        """Show the page of a model's last run."""
        finding = self.findings.get(path_of(arguments["uri"]), {}).get(arguments["model"])
        return self._show(finding.page) if finding is not None and finding.page.exists() else {}

    def choose(self, arguments: dict[str, str]) -> None:
        """Have values shown as they are in a model."""
        self._workspace.models[path_of(arguments["uri"])] = arguments["model"]
        self.on_change()

    async def cancel(self, params: lsp.WorkDoneProgressCancelParams) -> None:
        """Interrupt what a progress bar shows."""
        await self._runs.cancel(params.token)

    def _saved(self, arguments: dict[str, str]) -> str | None:
        """The path of a file that is on the disk as in the editor; otherwise a message."""
        path = path_of(arguments["uri"])
        draft, file = self._workspace.drafts.get(path), Path(path)
        on_disk = file.read_text("utf-8", errors="replace") if file.is_file() else None
        if on_disk is None or (draft is not None and draft != on_disk):
            self._say(f"save {file.name} first: what is on the disk is run", lsp.MessageType.Warning)
            return None
        return path

    def _say(self, text: str, kind: lsp.MessageType = lsp.MessageType.Info) -> Shown:
        self._server.window_show_message(lsp.ShowMessageParams(kind, text))
        return {}

    def _show(self, place: Path | str) -> Shown:
        """Have the client show a page: the one that asked for it itself shows what it gets as the answer."""
        address = place.as_uri() if isinstance(place, Path) else place
        window = self._server.client_capabilities.window
        if not self.has_panel and window is not None and window.show_document is not None:
            self._server.window_show_document(lsp.ShowDocumentParams(address, external=True))
        return {"show": address}

    def _file(self, path: str, kind: str) -> Path:
        """A new file for a result."""
        self._files += 1
        return self._runs.folder / f"{Path(path).stem}-{self._files}.{kind}"


def _options(arguments: dict[str, str]) -> list[str]:
    names = ("model", "property", "witness", "scenario")
    return [f"--{name}={arguments[name]}" for name in names if name in arguments]


def _title(arguments: dict[str, str]) -> str:
    names = ("scenario", "witness", "property", "model")
    return "specchk: " + ", ".join(f"{name} {arguments[name]}" for name in names if name in arguments)
