"""The effects of importing a binding, measured in a process that has not imported any of it before.

Objects created by the import exist in every case, and no call of a case shows it: a table, a registry.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from specchk.conform.contract.load import load_binding
from specchk.conform.gate.calls import ELSEWHERE, CallTracer, Function
from specchk.conform.gate.lasting import Values, lasting_values
from specchk.kept import replace

_PROGRAM = "from specchk.conform.gate.imported import note_import; note_import()"


class Imported(Struct, frozen=True):
    """The functions run by an import, and the values that exist after it."""

    calls: frozenset[Function]
    values: Values


def imported(binding: Path, names: Mapping[str, str]) -> Imported:
    """The calls and values from importing a binding; `names` as of `CallTracer.functions`.

    `ELSEWHERE` is among the calls where the import fails there, though it did not here.
    """
    with TemporaryDirectory(prefix="specchk-") as folder:
        calls = Path(folder) / "calls.json"
        command = [sys.executable, "-P", "-c", _PROGRAM, str(binding), json.dumps(dict(names)), str(calls)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
        # Its output has been printed here, by the first import.
        done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603
        if done.returncode != 0 or not calls.exists():
            return Imported(frozenset({ELSEWHERE}), {})
        ran, values = json.loads(calls.read_text(encoding="utf-8"))
        return Imported(frozenset((file, name) for file, name in ran), values)


def note_import() -> None:
    """Import the binding given on the command line, and write what was run."""
    binding, names, calls = Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3])
    tracer = CallTracer()
    with tracer.running():
        cls = load_binding(binding)
    ran = sorted(set().union(*tracer.functions(names).values()))
    replace(calls, json.dumps([ran, lasting_values(cls, names)]).encode())
