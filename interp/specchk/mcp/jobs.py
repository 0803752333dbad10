"""Jobs: `specchk` commands in processes of their own, each with a limit of time.

A job prints its JSON report to a file, so a client that waits for none, or comes back later, misses nothing.
At its limit it is interrupted, as by Ctrl-C, which gives a report if there is one; soon after, its process
group is killed.  The processes end with the server, however that ends.

    start -> running -> report           `handle` is all that a client needs: there are no sessions
                 `cancel`, limit -> report, or a sentence in its place
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from specchk.children import GRACE_SECONDS, ended, started
from specchk.mcp.folders import Permitted

MOST_RUNNING = 4
MOST_KEPT = 200  # reports; of older ones the handles are no longer known


class BadRequest(Exception):
    """A request that cannot be met; the text is for the client."""


class Job:
    """A command that runs or has run: its handle, words, report and end."""

    def __init__(
        self, handle: str, tool: str, words: Sequence[str], place: Permitted, seconds: float
    ) -> None:
        self.handle, self.tool, self.words, self.place = handle, tool, tuple(words), place
        self.seconds = seconds
        self.began = monotonic()
        self.reason = ""  # why the server ended it
        self.report: Any = None
        self.work: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is no report yet."""
        return self.report is None


class Jobs:
    """The jobs of a server, below one temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._era = secrets.token_hex(2)  # a handle of an earlier server is not taken for one of this
        self._jobs: dict[str, Job] = {}
        self._count = 0

    def start(
        self, tool: str, words: Sequence[str], place: Permitted, seconds: float, given: str = ""
    ) -> Job:
        """Begin a command, with a text on its standard input; raises `BadRequest` if too many are running."""
        running = [job.handle for job in self._jobs.values() if job.is_running]
        if len(running) >= MOST_RUNNING:
            raise BadRequest(
                f"{len(running)} requests are running ({', '.join(running)}); poll or cancel one"
            )
        job = self._add(tool, words, place, seconds)
        job.work = asyncio.create_task(self._run(job, given))
        return job

    def keep(self, tool: str, report: Any, place: Permitted) -> Job:
        """A finished job for a report that no command made."""
        job = self._add(tool, (), place, 0)
        job.report = report
        return job

    def job(self, handle: str) -> Job:
        """The job with a handle; raises `BadRequest`."""
        if handle not in self._jobs:
            raise BadRequest(
                f"there is no report {handle}: run the request again, which gives another handle"
            )
        return self._jobs[handle]

    @contextmanager
    def file(self, text: str) -> Iterator[Path]:
        """A JSON file with this text, for the processes that begin in the context."""
        path = self.folder / f"{secrets.token_hex(8)}.json"
        path.write_text(text, encoding="utf-8")
        try:
            yield path
        finally:
            path.unlink()

    async def wait(self, job: Job, seconds: float) -> None:
        """Return when the job has ended, at the latest after that many seconds."""
        if job.work is not None:
            await asyncio.wait([job.work], timeout=seconds)

    async def cancel(self, job: Job) -> None:
        """Interrupt the job and wait for its end."""
        if job.is_running and job.work is not None:
            job.reason = "it was cancelled"
            job.work.cancel()
            await asyncio.wait([job.work])

    async def end(self) -> None:
        """Cancel all jobs."""
        for job in self._jobs.values():
            await self.cancel(job)

    def _add(self, tool: str, words: Sequence[str], place: Permitted, seconds: float) -> Job:
        self._count += 1
        job = Job(f"{tool}-{self._count}.{self._era}", tool, words, place, seconds)
        self._jobs[job.handle] = job
        done = [handle for handle, job in self._jobs.items() if not job.is_running]
        for handle in done[: max(0, len(self._jobs) - MOST_KEPT)]:
            del self._jobs[handle]
        return job

    async def _run(self, job: Job, given: str) -> None:
        outputs = [self.folder / f"{job.handle}.{kind}" for kind in ("in", "out", "err")]
        outputs[0].write_text(given, encoding="utf-8")
        try:
            with outputs[0].open("rb") as stdin, outputs[1].open("wb") as out, outputs[2].open("wb") as err:
                process = await started(job.words, job.place.folder, stdin, out, err)
        except OSError as error:
            job.report = _instead("inconclusive", f"no process could be started: {error.strerror}", None)
            return
        try:
            await asyncio.wait_for(process.wait(), job.seconds + GRACE_SECONDS)
        except TimeoutError:
            job.reason = f"it was ended at its limit of {job.seconds:g} seconds"
        except asyncio.CancelledError:
            job.reason = job.reason or "the server ended"
        finally:
            await ended(process)
            job.report = _report(job, process.returncode, outputs[1], outputs[2])
            for path in outputs:
                path.unlink()


def _report(job: Job, code: int | None, out: Path, err: Path) -> Any:
    """The JSON that a command printed, or an object in its place."""
    errors = err.read_text(encoding="utf-8", errors="replace").strip()
    try:
        report = json.loads(out.read_text(encoding="utf-8"))
    except ValueError:
        report = _instead("inconclusive" if job.reason else "refused", job.reason or errors, code)
    if isinstance(report, dict) and job.reason:
        report["ended_by_server"] = job.reason
    return report


def _instead(verdict: str, reason: str, code: int | None) -> dict[str, Any]:
    return {"schema": "specchk.ended/1", "verdict": verdict, "reason": reason, "exit_code": code}
