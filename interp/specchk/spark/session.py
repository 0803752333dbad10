"""A Spark session for a search: existing or new, with workers that have this version of the package.

An existing session (a notebook's, `spark-submit`'s) is used and left running.  Otherwise one is made for
`master`.  Workers on other machines get the package as a zip file; its libraries must be installed there.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Event, Timer, current_thread, main_thread
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException

from specchk.guardian import temporary_folder
from specchk.search.engine import Unavailable, Unusable
from specchk.spark import reasons
from specchk.spark.worker import probe

LOCAL = "local[2]"
EXECUTORS_S = 90.0  # seconds that a standalone master has to give the first task an executor
_SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # cores are for the search; Spark only moves bytes
_SETTINGS = (
    ("spark.app.name", "specchk"),
    ("spark.ui.showConsoleProgress", "false"),
    # Workers keep their loaded kernel from task to task.
    ("spark.python.worker.reuse", "true"),
    ("spark.python.unix.domain.socket.enabled", "true"),
    ("spark.shuffle.compress", "false"),  # packed states hardly shrink, and the network is not the limit
    ("spark.shuffle.spill.compress", "false"),
    # Otherwise a task makes a file for each partition, and Java took 40 of 70 ms for those of 16.
    ("spark.shuffle.sort.bypassMergeThreshold", "1"),
    ("spark.rdd.compress", "false"),
    ("spark.broadcast.compress", "false"),
    # Tasks wait for the executor that has their tables, since another one would have to rebuild them; a lost
    # one is not waited for (`stages.Watch`).
    ("spark.locality.wait", "60s"),
    # An executor that lost a task is as good as any other: retries find what the ledger has.
    ("spark.excludeOnFailure.enabled", "false"),
)


@contextmanager
def session(master: str | None, settings: dict[str, str]) -> Iterator[SparkContext]:
    """A context whose workers have this package; `Unavailable` if there is none."""
    reasons.require_java()
    # A user's own session (a notebook's) must remain after the search.
    existing = SparkContext._active_spark_context is not None
    with _interrupt_later() as interrupted:
        context = _made(master, settings)
    try:
        if interrupted.is_set():
            raise KeyboardInterrupt
        # Executors that join later fetch the package, too, in a user's session even after the search.
        _prepare(context, Path(lasting_folder()))
        yield context
    finally:
        if not existing:
            with suppress(ConnectionError):  # Spark's process ended before
                context.stop()


@contextmanager
def _interrupt_later() -> Iterator[Event]:
    """Note a first Ctrl-C instead of raising it; a second one is raised.  Limits come afterwards.

    PySpark that is interrupted while it starts Java prints traces and leaves a process that never ends: it
    removes the directory in which Java is about to write its port.
    """
    interrupted = Event()

    def note(*_: object) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    if current_thread() is not main_thread():  # the only one that has signals
        yield interrupted
        return
    before = signal.signal(signal.SIGINT, note)
    # A watch ticks again, and ends the process if Java takes longer: Java finds its directory, and ends.
    ticks = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGALRM, ticks)
        # A context that was made has a handler of its own, which ends its jobs.
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, before)


@cache
def lasting_folder() -> str:
    """A folder that exists until this process ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(temporary_folder())


def is_submitted() -> bool:
    """Whether `spark-submit` or an existing session determines master and settings."""
    return SparkContext._active_spark_context is not None or "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def local_session(master: str | None, settings: dict[str, str]) -> Iterator[SparkContext]:
    """A session on this machine; `Unusable` if its executors are elsewhere, at once if that is known."""
    needed = Unusable("on a cluster the search needs a ledger (--ledger) that all machines reach")
    if master and not _is_local(master) and not is_submitted():
        # Before a session, which takes seconds; a master that does not answer has a message of its own.
        reasons.refuse_connect(master, settings)
        reasons.check_settings(master, settings)
        raise needed
    with session(master, settings) as context:
        if not is_local(context):
            raise needed
        yield context


def _made(master: str | None, settings: dict[str, str]) -> SparkContext:
    chosen = master or LOCAL
    reasons.refuse_connect(chosen, settings)
    conf = SparkConf()
    if not is_submitted():
        reasons.check_settings(chosen, settings)
        log = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
        conf.setMaster(chosen)
        if chosen.startswith("local"):
            # Without it workers would be the first `python3` of the path, not the one of this environment.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            # Otherwise Spark resolves the machine's name, which may be slow, or wrong behind a VPN.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            conf.set("spark.driver.host", "127.0.0.1")
            if _is_same_python():
                conf.set("spark.python.daemon.module", "specchk.spark.worker.daemon")
            log = f"{log} {_SMALL_JVM}"
        conf.set("spark.driver.extraJavaOptions", log)
        conf.setAll([*_SETTINGS, *settings.items()])
    try:
        return SparkContext.getOrCreate(conf)
    except (Py4JError, PySparkException, OSError, RuntimeError) as error:
        raise Unavailable(f"no Spark session: {_first_line(error)}") from error


def is_local(context: SparkContext) -> bool:
    """Whether the executors are part of this process."""
    return _is_local(context.master or "")


def _is_local(master: str) -> bool:
    return master.partition("[")[0] == "local"


def _is_same_python() -> bool:
    """Whether workers on this machine are forks of this Python, with the same path."""
    return os.environ.get("PYSPARK_PYTHON") in (None, sys.executable)


def slots(context: SparkContext) -> int:
    """The number of tasks that run in parallel, as counted by Spark before a barrier stage."""
    scheduler: Any = context._jsc.sc()
    return int(scheduler.maxNumConcurrentTasks(scheduler.resourceProfileManager().defaultResourceProfile()))


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    lines = [line for line in text.splitlines() if line.strip()]
    return next((line.strip() for line in lines if "Exception" in line or "Error" in line), lines[0])


def _prepare(context: SparkContext, folder: Path) -> None:
    """Ship the package if necessary, and check that all workers have it; `Unavailable` if they lack it.

    It is in `folder`, from which executors fetch it when they join.
    """
    if is_local(context) and _is_same_python():
        return
    files = probe.package_files()
    if not is_local(context):
        _ship(context, folder / f"specchk-{probe.digest_of(files)}.zip", files)
    # As many as there are cores, so that every worker is likely to be among those that answer.
    many = max(2, context.defaultParallelism)
    context.setJobDescription("specchk: request the version of the workers")
    answers = _answered(context, many)
    wrong = probe.complaint([probe.WorkerReport(*answer) for answer in answers], probe.digest_of(files))
    if wrong is not None:
        raise Unavailable(wrong)


def _ship(context: SparkContext, archive: Path, files: list[tuple[str, bytes]]) -> None:
    """Add the package to a session, once: Spark rejects a second file with the same name."""
    if any(path.endswith(f"/{archive.name}") for path in context.listFiles):
        return
    probe.write_archive(archive, files)
    context.addPyFile(str(archive))


def _answered(context: SparkContext, many: int) -> list[tuple[str, str, tuple[str, ...], str]]:
    """The workers' answers to the probe; `Unavailable` if no worker can answer."""
    # Only a standalone master: others queue an application, or fetch its image, for as long as that takes.
    waits = (context.master or "").startswith("spark://")
    over = Event()

    def end() -> None:
        over.set()
        context.cancelAllJobs()

    timer = Timer(EXECUTORS_S, end)
    if waits:
        timer.start()
    try:
        return context.parallelize(range(many), many).mapPartitions(probe.question()).collect()
    except reasons.SPARK_FAILED as error:
        if over.is_set():
            raise Unavailable(
                f"no executor of {context.master} began a task in {EXECUTORS_S:g} s: workers are busy, or "
                "have less memory or fewer cores than spark.executor.memory and spark.executor.cores request"
            ) from error
        raise Unavailable(f"Spark's workers cannot run a task: {reasons.root_cause(str(error))}") from error
    finally:
        timer.cancel()
