"""A client against the opponent: a cluster in one process, the verdict, and the fewest interventions.

    cluster in DIR -> topic `events` -> the client's lines -> `judging` -> findings
                                                                 -> without this intervention? without that?

All brokers and the controller run in one loop, with sockets between them as in processes of their own, so
that one hand sees all requests.  Every run has a directory of its own.

Not here: output.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from replog.core.types import NO_LEADER
from replog.run.serve.adversary import PROFILES, Act, Adversary, Intervention, Schedule, drawn, listed
from replog.run.serve.clustering import planned, run_broker, run_controller
from replog.run.serve.controlling import OPERATOR, CreatePartitions
from replog.run.serve.frames import Api
from replog.run.serve.host import Host
from replog.run.serve.judging import Finding, judge
from replog.store.files.fs import OsFs, make_directory
from replog.store.segments.batch import iterate_headers
from replog.store.segments.records import decode_batch

TOPIC, GROUP = "events", "readers"
PARTITION = f"{TOPIC}-0"
BROKERS = 3
READY_S = 10.0
CLIENT_S = 60.0
SETTLED_S = 3.0
CLOSED_S = 0.01
LONGEST_LINE = 16 << 20
"""Of a client, in bytes: it may name a record by all of its value."""
NOT_LOST = frozenset({"lost", "invented", "twice", "order", "position"})
"""Rules that hold only where acknowledged records are not lost."""

Say = Callable[[str], None]
Client = Callable[[str, Say], Awaitable[None]]
"""Is given the bootstrap servers; says what it does, as `judging` reads it."""


@dataclass(slots=True)
class Run:
    """What happened in one run: interventions, what the client said, and what was wrong."""

    done: list[Intervention] = field(default_factory=list)
    events: list[tuple[int, str]] = field(default_factory=list)
    """Broker and intervention, or -1 and a line of the client, in their order."""
    findings: list[Finding] = field(default_factory=list)

    def note(self, broker: int, intervention: Intervention) -> None:
        """Take down an intervention."""
        self.done.append(intervention)
        self.events.append((broker, str(intervention)))

    def say(self, line: str) -> None:
        """Take down a line of the client."""
        self.events.append((-1, line.strip()))


@asynccontextmanager
async def together(path: str, hand: Adversary, min_isr: int = 2, port: int = 0) -> AsyncIterator[str]:
    """Run a cluster under a hand in this loop, with the topic `events`; yields its bootstrap servers.

    Raises `StoreError` and `OSError` if a directory or a port cannot be used.
    """
    plan = replace(planned(path, BROKERS, min_isr, port), watch=hand.watch)
    make_directory(OsFs(), path)
    stops: list[Callable[[], None]] = []
    waiting = asyncio.Semaphore(0)
    runs = [run_controller(plan, waiting.release, stops.append)]
    runs += [run_broker(plan, b, waiting.release, stops.append, hand.service) for b in plan.brokers]
    tasks = [asyncio.ensure_future(each) for each in runs]
    try:
        all_ready = asyncio.ensure_future(_acquired(waiting, len(tasks)))
        done, _ = await asyncio.wait(
            (all_ready, *tasks), timeout=READY_S, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            task.result()
        if not all_ready.done():
            raise TimeoutError(f"the cluster in {path} was not ready in {READY_S:.0f} s")
        hand.controlling.receive(OPERATOR, CreatePartitions({PARTITION: plan.brokers[:3]}))
        for host in hand.hosts.values():
            await host.until(
                lambda i: PARTITION in i.partitions and i.partitions[PARTITION].leader != NO_LEADER
            )
        yield ",".join("{}:{}".format(*plan.addresses[broker]) for broker in plan.brokers)
        for task in tasks:
            # A broker that has failed is no finding about its client.
            if task.done():
                task.result()
    finally:
        for task in tasks[1:]:
            task.cancel()
        stops[0]()
        await asyncio.gather(*tasks, return_exceptions=True)
        # The ends of connections come in the loop's next turns.
        await asyncio.sleep(CLOSED_S)


async def _acquired(waiting: asyncio.Semaphore, count: int) -> None:
    for _ in range(count):
        await waiting.acquire()


async def rehearse(path: str, schedule: Schedule, client: Client, *, is_unclean: bool = False) -> Run:
    """Run a client once under a schedule in a new directory, and judge it."""
    run = Run()
    hand = Adversary(schedule, run.note)
    async with together(path, hand, min_isr=1 if is_unclean else 2) as servers:
        try:
            async with asyncio.timeout(CLIENT_S):
                await client(servers, run.say)
        except TimeoutError:
            run.findings.append(Finding("ended", f"the client did not end in {CLIENT_S:.0f} s"))
        except ChildProcessError as error:
            run.findings.append(Finding("ended", str(error)))
        log = await committed(hand.hosts)
    lines = [text for broker, text in run.events if broker < 0]
    run.findings += [f for f in judge(lines, {0: log}) if not (is_unclean and f.rule in NOT_LOST)]
    return run


async def committed(hosts: dict[int, Host]) -> list[str]:
    """Return the values of the committed records of `events`, once its replicas agree on them."""
    some = next(iter(hosts.values()))
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLED_S):
            while not _is_settled(hosts, some.image.partitions[PARTITION].leader):
                await asyncio.sleep(0.02)
    leader = hosts[some.image.partitions[PARTITION].leader]
    log = leader.broker.replicas[PARTITION].state.log
    data = leader.files.read(PARTITION, log.read(log.log_start, log.hw, sys.maxsize))
    batches = [data[at : at + header.size_bytes] for at, header in iterate_headers(data)]
    return [
        (record.value or b"").decode(errors="replace") for batch in batches for record in decode_batch(batch)
    ]


def _is_settled(hosts: dict[int, Host], leader: int) -> bool:
    if leader not in hosts:
        return False
    state = hosts[leader].broker.replicas[PARTITION].state
    return state.leading is not None and state.log.hw == state.log.leo


def program(command: Sequence[str]) -> Client:
    """Return the client that is a program: it finds servers, topic and group in its environment."""

    async def client(servers: str, say: Say) -> None:
        more = {"REPLOG_BOOTSTRAP": servers, "REPLOG_TOPIC": TOPIC, "REPLOG_GROUP": GROUP}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdout=pipe, limit=LONGEST_LINE, env={**os.environ, **more}
        )
        try:
            assert process.stdout is not None, "it is a pipe"
            async for line in process.stdout:
                say(line.decode(errors="replace"))
            if code := await process.wait():
                raise ChildProcessError(f"the client ended with exit code {code}")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    return client


async def shrunk(path: str, failed: Run, client: Client, *, is_unclean: bool = False) -> Run:
    """Return a run with the same finding and the fewest interventions: none of them can be left out."""
    rule, best, number, size = failed.findings[0].rule, failed, 0, max(len(failed.done) // 2, 1)
    while size and best.done:
        at, before = 0, len(best.done)
        while at < len(best.done):
            fewer = (*best.done[:at], *best.done[at + size :])
            number += 1
            run = await rehearse(f"{path}-{number}", listed(fewer), client, is_unclean=is_unclean)
            if any(finding.rule == rule for finding in run.findings):
                best = run
            else:
                at += size
        # What was needed beside another one, which is left out now, may not be needed any more.
        if size > 1 or len(best.done) == before:
            size //= 2
    return best


def lanes(run: Run, width: int = 30) -> str:
    """Return a run as text, time downwards, with a column for the client and each broker."""
    brokers = sorted({broker for broker, _ in run.events if broker >= 0})
    columns = {lane: n for n, lane in enumerate((-1, *brokers))}
    names = ["client", *(f"broker {broker}" for broker in brokers)]
    rows = ["".join(f"{name:{width}}" for name in names)]
    rows += [" " * width * columns[lane] + text for lane, text in run.events]
    return "\n".join(row.rstrip() for row in rows)


def written(run: Run) -> str:
    """Return the interventions of a run as lines of JSON, which `schedules` reads."""
    return "".join(json.dumps(each.fields()) + "\n" for each in run.done)


def schedules(text: str) -> tuple[dict[str, Schedule], bool]:
    """Return the schedules that a text names, and whether they may lose acknowledged records.

    `7`, `0..99`, `unclean:7`, or a file that `written` wrote; raises `ValueError`.
    """
    if Path(text).is_file():
        acts = _read(Path(text))
        return {Path(text).stem: listed(acts)}, any(each.act is Act.UNCLEAN for each in acts)
    profile, _, seeds = text.rpartition(":")
    first, _, last = seeds.partition("..")
    if not re.fullmatch(r"\d+(\.\.\d+)?", seeds) or (profile or "all") not in PROFILES:
        raise ValueError(f"neither a file nor [PROFILE:]SEED, with a profile of {', '.join(PROFILES)}")
    acts_of = PROFILES[profile or "all"]
    numbers = range(int(first), int(last or first) + 1)
    if not numbers:
        raise ValueError(f"no seed is from {first} to {last}")
    return {f"seed-{n}": drawn(n, acts_of) for n in numbers}, Act.UNCLEAN in acts_of


def _read(path: Path) -> tuple[Intervention, ...]:
    try:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return tuple(Intervention(Api[x["api"]], int(x["n"]), Act(x["act"]), int(x["ms"])) for x in lines)
    except (KeyError, TypeError) as error:
        raise ValueError(f"a line that is no intervention: {error}") from error


async def serve(path: str, schedule: Schedule, port: int, is_unclean: bool, say: Say) -> None:
    """Run a cluster with an opponent until SIGTERM or Ctrl-C, and say what it does.

    Raises `StoreError` and `OSError` if a directory or a port cannot be used, or a broker's disk fails.
    """
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    hand = Adversary(schedule, lambda broker, each: say(f"broker {broker}  {each}"))
    async with together(path, hand, min_isr=1 if is_unclean else 2, port=port) as servers:
        say(f"serving {path} at {servers}, topic {TOPIC}")
        ends: set[asyncio.Future[Any]] = {asyncio.ensure_future(over.wait())}
        ends |= {host.stopped for host in hand.hosts.values()}
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in done:
            end.result()
    say("stopped")
