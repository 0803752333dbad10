"""The reasons why a search on Spark cannot begin, or ended without an answer, in words.

Before a session: settings that no session can have, one sentence for each.  Spark reports most of them as a
Java trace, some after minutes, and some never.  In the end: a task's exception reaches the driver as text
only, the traces of Java and Python, with the cause last.

Not here: libraries that workers lack (`probe`), directories that they cannot use (`reach`).
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import assert_never
from urllib.parse import urlsplit

from msgspec.structs import replace
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from specchk.export.storage import Unwritable
from specchk.ir.ignored import refuse_ignored
from specchk.ir.program import Program
from specchk.native.engine import NativeEngine
from specchk.native.machine.frames import MAX_SUCCESSORS, successor_bound
from specchk.native.machine.layout import layout_of
from specchk.search.engine import Unavailable, Unsupported, concluded
from specchk.search.verdict import Inconclusive, Outcome
from specchk.spark.states.loaded import Crowded
from specchk.spark.states.slices import SpoiledSlice

SPARK_FAILED = (Py4JError, PySparkException, ConnectionRefusedError)  # the last one: its process ended
NO_JAVA = (
    "Spark needs Java 17 or later: install it (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME"
)
LEAST_MEMORY = 450  # MiB; below that Spark refuses to start (its `UnifiedMemoryManager`)
# The same for a driver with the garbage collector of `session`, which does not count a survivor space.
LEAST_OF_LOCAL_DRIVER = 465
CONNECT_S = 5.0  # seconds in which a master must accept a connection
_SIZE = re.compile(r"(\d+)([bkmgtp]?)b?", re.IGNORECASE)
_UNITS = "bkmgtp"
_MASTERS = re.compile(r"local(\[.*\])?|local-cluster\[.*\]|yarn|(spark|k8s)://.+")
# What makes pyspark a client of Spark Connect: environment, and the settings of the same meaning.
_CONNECT = (
    ("SPARK_REMOTE", "spark.remote"),
    ("SPARK_API_MODE", "spark.api.mode"),
    ("SPARK_CONNECT_MODE_ENABLED", ""),
)
_OF_THE_LEDGER = tuple(f"{kind.__module__}.{kind.__qualname__}: " for kind in (SpoiledSlice, Unwritable))


def refuse(program: Program) -> None:
    """Raise `Unsupported` or `SpecError` if no search on Spark supports a program."""
    refuse_ignored(program, "the Spark engine keeps")
    layout_of(program)
    if (bound := successor_bound(program)) > MAX_SUCCESSORS:
        raise Unsupported(f"a state may have {bound} successors")


def has_java() -> bool:
    """Whether a Java runtime is installed."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") is not None or (home is not None and Path(home, "bin", "java").exists())


def require_java() -> None:
    """Raise `Unavailable` without Java, or if JAVA_HOME does not contain it."""
    home = os.environ.get("JAVA_HOME")
    # Spark prefers JAVA_HOME to the path.
    if home and shutil.which(str(Path(home, "bin", "java"))) is None:
        raise Unavailable(f"JAVA_HOME is {home}, without a program bin/java: correct it, or unset it")
    if not has_java():
        raise Unavailable(NO_JAVA)


def refuse_connect(master: str, settings: Mapping[str, str]) -> None:
    """Raise `Unavailable` for Spark Connect, whose clients support only DataFrames.

    The search needs barrier stages, and tasks that stay where their table is: those are of RDDs.
    """
    chosen = [f"--master {master}"] if master.startswith("sc://") else []
    for variable, setting in _CONNECT:
        chosen += [
            f"{name}={value}"
            for name, value in ((variable, os.environ.get(variable)), (setting, settings.get(setting)))
            if value and value.lower() != "classic"
        ]
    if chosen:
        raise Unavailable(
            f"{chosen[0]} is Spark Connect, which has no RDDs, and the search needs them: "
            "choose a master of the cluster itself, or use spark-submit"
        )


def check_settings(master: str, settings: Mapping[str, str]) -> None:
    """Raise `Unavailable` for an unreachable master, and for settings with which Spark cannot start."""
    for name in ("spark.driver.memory", "spark.executor.memory"):
        if name in settings:
            is_small = name == "spark.driver.memory" and master.startswith("local")
            _check_memory(name, settings[name], LEAST_OF_LOCAL_DRIVER if is_small else LEAST_MEMORY)
    if not _MASTERS.fullmatch(master):
        raise Unavailable(
            f"--master {master} is not a master URL of Spark: local[N], spark://HOST:PORT, yarn or k8s://HOST:PORT"
        )
    if master == "yarn" and not any(os.environ.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")):
        raise Unavailable(
            "--master yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR, where the cluster's configuration is"
        )
    if master.startswith("local"):
        _check_python()
    else:
        _require_master(master)


def _check_memory(name: str, text: str, least: int) -> None:
    size = _SIZE.fullmatch(text.strip())
    if size is None:
        raise Unavailable(f"--conf {name}={text} is not a size; write e.g. 512m or 4g")
    # Without a unit Spark means MiB here.
    power = _UNITS.index(size[2].lower() or "m")
    if int(size[1]) << 10 * power < least << 20:
        raise Unavailable(f"--conf {name}={text} is too small: Spark needs {least}m at least")


def _check_python() -> None:
    python = os.environ.get("PYSPARK_PYTHON")
    if python and shutil.which(python) is None:
        raise Unavailable(f"PYSPARK_PYTHON is {python}, which is not a program here: correct it, or unset it")


def _require_master(master: str) -> None:
    """Raise `Unavailable` if no address of a master accepts a connection."""
    kind, _, places = master.partition("://")
    refused = []
    for place in places.split(",") if kind == "spark" else (places if "://" in places else f"//{places}",):
        try:
            address = urlsplit(f"//{place}" if kind == "spark" else place)
            host, port = address.hostname, address.port or (443 if kind == "k8s" else 7077)
        except ValueError:
            raise Unavailable(f"--master {master}: {place} is not HOST:PORT") from None
        try:
            with socket.create_connection((host or "", port), CONNECT_S):
                return
        except OSError as error:
            refused.append(f"{host}:{port}: {error.strerror or error}")
    raise Unavailable(
        f"--master {master} cannot be reached from {socket.gethostname()} ({'; '.join(refused)})"
    )


def given_up(error: Exception, level: int) -> Inconclusive:
    """The reason why Spark computed no more levels: `level` is the one not computed."""
    cause = _cause(error)
    if cause.startswith(_OF_THE_LEDGER):
        kind, _, told = cause.partition(": ")
        return ended_by((Unwritable if kind.endswith(Unwritable.__qualname__) else SpoiledSlice)(told))
    return Inconclusive(f"Spark failed at level {level} ({cause})", budget=False)


def _cause(error: Exception) -> str:
    with suppress(*SPARK_FAILED):  # the text of a Java error comes from Java, which may have ended
        if not isinstance(error, ConnectionError):
            return root_cause(str(error))
    return "its process ended"


def ended_by(error: SpoiledSlice | Unwritable | Crowded) -> Inconclusive:
    """The end of a search whose ledger is damaged or full, or whose driver has no room for it."""
    match error:
        case SpoiledSlice():
            return Inconclusive(f"the ledger is damaged: {error}", budget=False)
        case Unwritable():
            return Inconclusive(f"the ledger cannot be written ({error})", budget=True)
        case Crowded():
            return Inconclusive(str(error), budget=True)
        case _:
            assert_never(error)


def root_cause(text: str) -> str:
    """The line that gives the cause of an error with Java and Python traces: the last one.

    Errors of the ledger's own files take precedence: tasks that wait for others fail after these.
    """
    lines = [line.strip() for line in text.splitlines()]
    ledger = [line for line in lines if line.startswith(_OF_THE_LEDGER)]
    told = [line for line in lines if re.search("Error|Exception", line) and not line.startswith("at ")]
    # If a program does not start, the innermost cause is an error number, without the program's name.
    program = [line for line in told if "Cannot run program" in line]
    # The last line of a trace is the innermost cause, in Python as in Java's "Caused by".
    return (ledger or program or told or [text])[-1]


def native_alone(engine: NativeEngine, handover: int) -> Outcome:
    """The native engine's answer to a search that never became large."""
    note = f"the native engine did the whole search: it expanded no level of {handover} states (--handover)"
    outcome = concluded(engine)
    return replace(outcome, warnings=(note, *outcome.warnings))
