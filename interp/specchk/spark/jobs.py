"""Jobs of many pieces on executors: files are sent along, and free executors take pieces.

    driver     a zip file of the files, a broadcast of `start`, one task for each piece
    executor   once in a process: start(where the files were unpacked) gives the function for pieces

`start` and the pieces are values of other rooms, which are opaque here.  Results come back
packed, in the order of the pieces.  A piece's exception is raised in the driver as it was, with the
executor's traceback as its cause; a piece that Spark gave up on, after its retries, is `Failed`.

Not here: what is done with a piece (`specchk.conform`); searching states (`search`, `tasks`).
"""

from __future__ import annotations

import pickle
import socket
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from pyspark import SparkContext, SparkFiles

from specchk.search.engine import Unavailable
from specchk.spark.reasons import SPARK_FAILED
from specchk.spark.session import lasting_folder, session
from specchk.spark.worker.probe import write_archive

Start = Callable[[Path], Callable[[Any], Any]]


class Failed(Exception):
    """Spark gave up on a piece; the text has its reason."""


class SparkEnded(Failed):
    """Spark itself ended, and can do no more pieces."""


class Remote(Exception):
    """An exception on an executor, as text: the cause of the exception raised here."""


class PieceResult(Struct, frozen=True):
    """The result of a piece: a value, an exception with its traceback, or the missing module."""

    number: int
    value: Any = None
    error: Exception | None = None
    traceback: str = ""
    missing: str = ""
    host: str = ""


class Team(Struct, frozen=True):
    """The executors of a session, with files; `archive` is the name of the files there."""

    context: SparkContext
    archive: str

    @property
    def hands(self) -> int:
        """The number of pieces done in parallel."""
        return max(1, self.context.defaultParallelism)

    def each(self, start: Start, pieces: Sequence[Any], about: str) -> list[Any]:
        """The result of each piece, in order."""
        if not pieces:
            return []
        # Sent once to each executor, not with each of its pieces.
        shipped = self.context.broadcast(pickle.dumps(start, protocol=5))
        self.context.setJobDescription(f"specchk {about}")
        # Packed here and opened in `do`: Spark would unpack before any code of ours runs, and a module that
        # is missing there would be an error without a name.
        packed = [(number, pickle.dumps(piece, protocol=5)) for number, piece in enumerate(pieces)]
        work = self.context.parallelize(packed, len(packed))
        try:
            results = work.mapPartitions(partial(do, shipped, self.archive)).collect()
        except SPARK_FAILED as error:
            if self.is_ended():
                raise SparkEnded("its process ended") from error
            raise Failed(reason_of(error)) from error
        finally:
            with suppress(*SPARK_FAILED):  # an error of its own would hide the one that is being raised
                shipped.unpersist()
        return values_of(map(pickle.loads, results))

    def is_ended(self) -> bool:
        """Whether Spark's process or its session has ended."""
        try:
            return bool(self.context._jsc.sc().isStopped())
        except (*SPARK_FAILED, AttributeError):  # the last one: a context that was stopped has no Java part
            return True


@contextmanager
def team(master: str | None, settings: dict[str, str], files: Sequence[tuple[str, bytes]]) -> Iterator[Team]:
    """The executors of a session, with some files; `Unavailable` without Spark."""
    with session(master, settings) as context:
        name = f"specchk-kit-{uuid.uuid4().hex}"
        # Kept: an executor that joins later, or had no piece of this team, fetches it before any other task.
        archive = Path(lasting_folder(), f"{name}.zip")
        write_archive(archive, files)
        # A name of its own: archives stay for the whole session, and a notebook may send several.
        context.addArchive(f"{archive}#{name}")
        yield Team(context, name)


def do(start: Any, archive: str, pieces: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    """The packed results of pieces; `start` is a broadcast of their packed function.

    A piece is opened here, so that missing modules are reported, too.
    """
    # On the executor, where the archive was unpacked; its path differs by machine.
    place = SparkFiles.get(archive)
    for number, piece in pieces:
        yield pickle.dumps(came(number, partial(done, start.value, place, piece)), protocol=5)


def done(start: bytes, place: str, piece: bytes) -> Any:
    """The result of a piece, packed."""
    return started(start, place)(pickle.loads(piece))  # noqa: S301 - the driver of this very application packed it


@lru_cache(maxsize=1)
def started(packed: bytes, place: str) -> Callable[[Any], Any]:
    """The function that processes pieces; loaded once per process."""
    start: Start = pickle.loads(packed)  # noqa: S301 - the driver of this very application packed it
    return start(Path(place))


def came(number: int, run: Callable[[], Any]) -> PieceResult:
    """The result of a call; exceptions are returned."""
    try:
        return PieceResult(number, run())
    except Exception as error:  # whatever it is, the driver raises it again
        # A loader wraps what a user's file raised (`NoBinding` does), and keeps it as the cause.
        lacking = error if isinstance(error, ModuleNotFoundError) else error.__cause__
        if isinstance(lacking, ModuleNotFoundError):
            return PieceResult(number, missing=lacking.name or str(lacking), host=socket.gethostname())
        return PieceResult(
            number, error=_sendable(error), traceback=traceback.format_exc(), host=socket.gethostname()
        )


def _sendable(error: Exception) -> Exception:
    """An exception that can be sent: itself, or one with its text."""
    try:
        # Packing is not enough: an exception whose `__init__` needs more arguments fails only when it is
        # opened.
        pickle.loads(pickle.dumps(error))  # noqa: S301 - packed in this line
    except Exception:  # a user's exception may refuse in any way
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def values_of(results: Iterable[PieceResult]) -> list[Any]:
    """The values in the order of the pieces; raises the exception of the first failed piece."""
    ordered = sorted(results, key=lambda result: result.number)
    for result in ordered:
        if result.missing:
            raise Unavailable(
                f"the Spark worker on {result.host} has no module `{result.missing}`: install it in the "
                "workers' Python (see PYSPARK_PYTHON), or keep it in a file of your own, which is shipped "
                "with the job"
            )
        if result.error is not None:
            raise result.error from Remote(f"on {result.host}:\n{result.traceback}")
    return [result.value for result in ordered]


def reason_of(error: Exception) -> str:
    """Spark's report of a failed job, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = next((line for line in lines if "Job aborted" in line or "SparkException" in line), lines[0])
    return told.removeprefix(": ").removeprefix("org.apache.spark.SparkException: ")
