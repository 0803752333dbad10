"""What the playground's worker calls: commands of specchk, as a terminal has them.

Specs and results are files of the memory that the browser gives to Python.  What a command says and does is
specchk's own; only the engine is chosen here, since no other has its libraries in a browser.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from typing import Any

from specchk.cli.ends import exit_code
from specchk.cli.main import cli
from specchk.cli.output import survived
from specchk.lang import frontend
from specchk.lang.check.model_rules import claims
from specchk.lang.text.diagnostics import SpecError

Tell = Callable[[str], object]


class Screen(StringIO):
    """A terminal: lines that replace the one before are progress, which `tell` gets; the others are kept."""

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self._tell = tell

    def isatty(self) -> bool:
        """Yes: only terminals are shown progress."""
        return True

    def write(self, text: str) -> int:
        """Write a text."""
        if "\r" not in text:
            return super().write(text)
        self._tell(text.strip())
        return len(text)


def command(words: Sequence[str], tell: Tell = str) -> dict[str, Any]:
    """A command's exit code, and what it has written to standard output and standard error."""
    out, errors = StringIO(), Screen(tell)
    sys.argv = ["specchk", *words]
    # Not by `main`, which lets Python recurse deeper than the stack of a browser: Python would end there.
    with redirect_stdout(out), redirect_stderr(errors), survived():
        try:
            code = exit_code(partial(cli, standalone_mode=False))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return {"code": code, "out": out.getvalue(), "errors": errors.getvalue()}


def check(path: str) -> dict[str, Any]:
    """The report of `specchk check --json`, and the names of what can be run, unless it is rejected."""
    report = json.loads(command(["check", path, "--json"])["out"])
    try:
        spec = frontend.check(path).spec
    except SpecError:
        return {"report": report, "names": None}
    return {"report": report, "names": {
        "models": list(spec.models),
        "scenarios": list(spec.scenarios),
        "properties": list(claims(spec)),
        "witnesses": [prop.name for prop in spec.properties.values() if prop.kind == "reachable"],
    }}  # fmt: skip
