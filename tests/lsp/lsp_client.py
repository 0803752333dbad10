"""A client of the language server that shares no code with it: JSON-RPC over the pipes of its process."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0  # for hangs only


class Client:
    """One server process; `request` waits for its answer, and what else comes is in `notes`."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "specchk", "lsp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._incoming: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._number = 0
        self._versions: dict[str, int] = {}
        self.notes: list[dict[str, Any]] = []
        hints = {"codeLens": {"refreshSupport": True}, "inlayHint": {"refreshSupport": True}}
        window = {"workDoneProgress": True, "showDocument": {"support": True}}
        self.capabilities = self.request(
            "initialize",
            processId=None, rootUri=folder.as_uri(),
            capabilities={"window": window, "workspace": {"applyEdit": True, **hints}},
            workspaceFolders=[{"uri": folder.as_uri(), "name": "specs"}],
        )["capabilities"]  # fmt: skip
        self.notify("initialized")

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while line := stream.readline():
            length = int(line.split(b":")[1])
            while stream.readline().strip():
                pass
            self._incoming.put(json.loads(stream.read(length)))
        stream.close()
        self._incoming.put({"ended": True})

    def _send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self.process.stdin.flush()

    def notify(self, method: str, **params: Any) -> None:
        self._send(method=method, params=params)

    def begin(self, method: str, **params: Any) -> int:
        """Send a request, and return its number without waiting."""
        self._number += 1
        self._send(id=self._number, method=method, params=params)
        return self._number

    def request(self, method: str, **params: Any) -> Any:
        return self.answer(self.begin(method, **params))

    def answer(self, number: int) -> Any:
        message = self.wait(lambda message: message.get("id") == number and "method" not in message)
        assert "error" not in message, message["error"]
        return message["result"]

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that is wanted, of those not yet read; the others are kept in `notes`."""
        while True:
            message = self._incoming.get(timeout=PATIENCE_S)
            assert "ended" not in message, f"the server ended with {self.process.wait()}"
            if "method" in message and "id" in message:  # of the server: progress, edits, documents to show
                self._send(id=message["id"], result={"applied": True, "success": True})
            self.notes.append(message)
            if wanted(message):
                return message

    def stop(self) -> int:
        self.request("shutdown")
        self.notify("exit")
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=PATIENCE_S)
        self._reader.join()
        return code

    # Texts.

    def open(self, path: Path, text: str | None = None) -> list[dict[str, Any]]:
        """Open a file, or a text in its place, and return its diagnostics."""
        self._versions[path.as_uri()] = 1
        self.notify("textDocument/didOpen", textDocument={
            "uri": path.as_uri(), "languageId": "specchk", "version": 1,
            "text": path.read_text("utf-8") if text is None else text,
        })  # fmt: skip
        return self.diagnostics(path)

    def change(self, path: Path, *changes: dict[str, Any]) -> None:
        version = self._versions[path.as_uri()] = self._versions[path.as_uri()] + 1
        document = {"uri": path.as_uri(), "version": version}
        self.notify("textDocument/didChange", textDocument=document, contentChanges=list(changes))

    def replace(self, path: Path, text: str) -> list[dict[str, Any]]:
        self.change(path, {"text": text})
        return self.diagnostics(path)

    def close(self, path: Path) -> None:
        self.notify("textDocument/didClose", textDocument={"uri": path.as_uri()})

    def diagnostics(self, path: Path) -> list[dict[str, Any]]:
        """The diagnostics of the newest version of a text, once they come."""

        def newest(message: dict[str, Any]) -> bool:
            params = message.get("params", {})
            return (
                message.get("method") == "textDocument/publishDiagnostics" and params["uri"] == path.as_uri()
                and params.get("version") == self._versions[path.as_uri()]
            )  # fmt: skip

        diagnostics: list[dict[str, Any]] = self.wait(newest)["params"]["diagnostics"]
        return diagnostics

    def at(self, method: str, path: Path, text: str, marked: str, **params: Any) -> Any:
        """A request at the place of `|` in `marked`, a part of the text without it."""
        return self.request(
            method, textDocument={"uri": path.as_uri()}, position=place(text, marked), **params
        )


def place(text: str, marked: str) -> dict[str, int]:
    """The position of `|` in `marked`, where the text has `marked` without it."""
    before, after = marked.split("|")
    assert text.count(before + after) == 1, f"{text.count(before + after)} times: {before + after!r}"
    start = text[: text.index(before + after) + len(before)]
    line = start.rpartition("\n")[2]
    return {"line": start.count("\n"), "character": len(line.encode("utf-16-le")) // 2}
