"""The pytest fixture `replog_cluster`: a cluster with an opponent, for tests of clients and applications.

    pytest_plugins = ["replog.run.serve.fixture"]     # in conftest.py

    def test_my_producer(replog_cluster):
        with replog_cluster("7") as cluster:          # or "unclean:7", or a file: as with --adversary
            ...                                       # cluster.servers, cluster.say("acked r1")

At the end of the block, what was said is judged; a finding fails the test, with the lanes of the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from replog.run.serve.rehearsal import GROUP, TOPIC, Say, lanes, rehearse, schedules


@dataclass(frozen=True, slots=True)
class Opposed:
    """A running cluster: its bootstrap servers, and `say`, which takes the lines that `judging` reads."""

    servers: str
    say: Say
    topic: str = TOPIC
    group: str = GROUP


@contextmanager
def opposed(path: str, adversary: str) -> Iterator[Opposed]:
    """Run a cluster in a thread while a client is tested, and fail if it did something wrong."""
    named, is_unclean = schedules(adversary)
    if len(named) > 1:
        raise ValueError(f"{adversary}: several seeds are several runs; parametrize the test")
    (schedule,) = named.values()
    started: Future[tuple[Opposed, Callable[[], object]]] = Future()

    async def client(servers: str, say: Say) -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        started.set_result((Opposed(servers, say), lambda: loop.call_soon_threadsafe(over.set)))
        await over.wait()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: asyncio.run(rehearse(path, schedule, client, is_unclean=is_unclean)))
        # A cluster that cannot be started fails the test, instead of being waited for.
        either: tuple[Future[Any], ...] = (started, running)
        wait(either, return_when=FIRST_COMPLETED)
        if running.done():
            running.result()
        cluster, stop = started.result()
        try:
            yield cluster
        finally:
            stop()
        run = running.result()
    if run.findings:
        pytest.fail("\n".join([lanes(run), *map(str, run.findings)]), pytrace=False)


@pytest.fixture
def replog_cluster(tmp_path: Path) -> Callable[[str], AbstractContextManager[Opposed]]:
    """Return a function that runs a cluster under a seed, a profile with a seed, or a file's schedule."""
    numbers = count()
    return lambda adversary: opposed(str(tmp_path / f"cluster-{next(numbers)}"), adversary)
