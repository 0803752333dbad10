"""PySpark's daemon, whose forks are the Python workers of this machine, and end quietly.

    python -m specchk.spark.worker.daemon pyspark.worker

For sessions on this machine alone: elsewhere the package arrives with the first task, after the daemon
has started.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

# Of an installed PySpark not the archives that it has, too: modules would be compiled at each start.
_INSTALLED = frozenset(Path(site, "pyspark") for site in sys.path if Path(site, "py4j").is_dir())
sys.path[:] = [entry for entry in sys.path if not _INSTALLED & {*Path(entry).parents}]

from pyspark import daemon  # noqa: E402


def quiet(worker: Callable[..., int]) -> Callable[..., int]:
    """A worker that ends without a trace if Spark has closed its connection, as at the end of a session."""

    def until_closed(*given: object) -> int:
        try:
            return worker(*given)
        except BrokenPipeError:
            return 1  # the daemon waits until the socket is closed, and ends the worker

    return until_closed


if __name__ == "__main__":
    daemon.worker = quiet(daemon.worker)
    daemon.manager()
