"""The functions that run when a binding is imported, in a process that has imported nothing of it before.

Whatever they made is there in every case, and no call of a case shows it: a table, a registry, a class.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from specchk.conform.contract.load import load_binding
from specchk.conform.gate.calls import ELSEWHERE, CallTracer, Function

_PROGRAM = "from specchk.conform.gate.imported import note_import; note_import()"


def import_calls(binding: Path, names: Mapping[str, str]) -> frozenset[Function]:
    """The functions that the import of a binding runs; `names` as of `CallTracer.functions`.

    `ELSEWHERE` is among them where the import fails there, though it did not here.
    """
    with TemporaryDirectory(prefix="specchk-") as folder:
        calls = Path(folder) / "calls.json"
        command = [sys.executable, "-c", _PROGRAM, str(binding), json.dumps(dict(names)), str(calls)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
        # What it prints has been printed here, by the first import.
        done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603
        if done.returncode != 0 or not calls.exists():
            return frozenset({ELSEWHERE})
        return frozenset((file, name) for file, name in json.loads(calls.read_text(encoding="utf-8")))


def note_import() -> None:
    """Import the binding of the command line, and write what ran."""
    binding, names, calls = sys.argv[1:]
    tracer = CallTracer()
    with tracer.running():
        load_binding(Path(binding))
    ran = sorted(set().union(*tracer.functions(json.loads(names)).values()))
    Path(calls).write_text(json.dumps(ran), encoding="utf-8")
