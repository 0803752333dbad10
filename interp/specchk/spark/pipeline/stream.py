"""A growing folder as a Spark stream: new files reach the driver by name, in batches.

Spark lists the folder each second and keeps what it has seen in a checkpoint, so that a later run continues
with what is new, and with a batch that had not ended.  Only names are read here (`binaryFile` without its
content); tasks read the files, and report those that are lost or have no end.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import Any
from urllib.parse import quote, unquote

from pyspark import SparkContext
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from specchk.export.places import local_path
from specchk.search.engine import Unusable
from specchk.spark.jobs import Failed, reason_of
from specchk.spark.pipeline.files import SUFFIX, size_of
from specchk.spark.reasons import SPARK_FAILED

SCHEMA = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"
TICK_S = 1.0
PATTERN = frozenset("{}[]*?\\")  # what Spark reads as a pattern in the path of a source
Take = Callable[[int, list[str]], None]  # the number of a batch, and the places of its files


def follow(
    context: SparkContext, folder: str, checkpoint: str, take: Take, tick: Callable[[bool], bool],
    end: Callable[[], None],
) -> None:  # fmt: skip
    """Take the files of a folder, and new ones, until `tick` is false, or until SIGINT or SIGTERM.

    `tick` is called each second between batches, with whether Spark has listed the folder and found nothing
    new.  An exception of either ends the stream and is raised.  `end` makes a batch that is being done raise
    soon: Spark then does not commit it, and nothing is taken after this function.  Raises `Unusable` for a
    folder that does not exist.
    """
    lock, raised = Lock(), list[BaseException]()

    def batch(rows: Any, number: int) -> None:
        with lock:
            try:
                take(number, [place_of(row.path) for row in rows.select("path").collect()])
            except BaseException as error:
                # Spark would raise only its text.
                raised.append(error)
                raise

    asked = Event()

    def ask(*_: object) -> None:
        asked.set()
        end()

    query = _started(context, folder, checkpoint, batch)
    # No exception: Spark's handler calls Java while this thread may be in a call, and breaks the connection.
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not asked.wait(TICK_S) and query.isActive:
            with lock:
                if asked.is_set() or raised or not tick(_is_waiting(query)):
                    break
        errors = [] if asked.is_set() else list(raised)
        if not errors and not query.isActive:
            query.awaitTermination()
    except SPARK_FAILED as error:
        if not raised:
            raise Failed(reason_of(error)) from error
        errors = list(raised)
    finally:
        end()
        query.stop()
        with lock:
            pass  # the thread that takes a batch is not Spark's, and is not stopped with it
        for number, handler in before.items():
            signal.signal(number, handler)
    if errors:
        raise errors[0]


class Growth:
    """Decides when unfinished recordings are worth a job that reads them again."""

    def __init__(self, patience: float, clock: Callable[[], float] = monotonic) -> None:
        self.patience, self.clock = patience, clock
        self._known: dict[str, tuple[int | None, float]] = {}  # the size, and since when

    def is_due(self, places: Sequence[str]) -> bool:
        """Whether a file is new, has changed in size, or has kept its size for `patience` seconds.

        One that cannot be seen from the driver is always due: executors may see it.
        """
        now, before, self._known, is_due = self.clock(), self._known, {}, False
        for place in places:
            size, (last, since) = size_of(place), before.get(place, (None, now))
            has_grown = size is None or size != last
            self._known[place] = size, now if has_grown else since
            is_due = is_due or has_grown or now - since >= self.patience
        return is_due


def _started(context: SparkContext, folder: str, checkpoint: str, batch: Callable[[Any, int], None]) -> Any:
    place = name_of(folder)
    if PATTERN.intersection(place):
        raise Unusable(f"{folder} cannot be followed: Spark reads {' '.join(sorted(PATTERN))} as a pattern")
    # A file that is removed while Spark lists it is one that was never there.
    source = SparkSession(context).readStream.format("binaryFile").schema(SCHEMA)
    source = source.option("pathGlobFilter", f"*{SUFFIX}").option("ignoreMissingFiles", "true")
    # Spark would omit a file that is a week older than the newest, such as a copy that kept its time.
    source = source.option("maxFileAge", "36500d")
    try:
        names = source.load(place).select("path")
        stream = names.writeStream.foreachBatch(batch).trigger(processingTime=f"{TICK_S:g} seconds")
        return stream.option("checkpointLocation", name_of(checkpoint)).start()
    except AnalysisException as error:
        raise Unusable(f"{folder} cannot be followed: {reason_of(error)}") from error


def _is_waiting(query: Any) -> bool:
    """Whether all files found by Spark were taken, after at least one listing of the folder."""
    status = query.status
    return not status["isTriggerActive"] and str(status["message"]).startswith("Waiting for")


def name_of(place: str) -> str:
    """Spark's name for a place: as a URI, but without escapes, and with Hadoop's `s3a:` for `s3:`."""
    path = local_path(place)
    if path is not None:
        return f"file://{path.absolute()}"
    return unquote(f"s3a:{place.removeprefix('s3:')}" if place.startswith("s3:") else place)


def place_of(name: str) -> str:
    """The place of a file with Spark's name for it (`name_of`); local ones are written as `file:/a b`."""
    if name.startswith("file:/"):
        return str(Path(name.removeprefix("file:")))
    scheme, colon, rest = name.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{colon}{host}{slash}{quote(path)}"
