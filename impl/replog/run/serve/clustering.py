"""A cluster of brokers on one machine: a controller and each broker in a process of its own, and one above.

    DIR/controller/replog-metadata.json    DIR/broker-0/orders-0/...    DIR/broker-1/...

The process above starts the others, starts again one that dies, and stops them: the brokers first, each with
a controlled shutdown, then the controller.  They end by themselves when it is gone.

There is one controller: while it is down, leaders lead on, and nobody is elected.  Not here: output.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from random import sample
from types import FrameType, MappingProxyType

from replog.core.types import CONTROLLER
from replog.run.partitions import PartitionFiles
from replog.run.serve.catalog import Catalog, load, new_catalog
from replog.run.serve.controlling import Controlling, started
from replog.run.serve.host import GROUPS, Host, Settings, Watch
from replog.run.serve.layout import KioLayouts
from replog.run.serve.links import Brokers, ToController
from replog.run.serve.peers import Peers
from replog.run.serve.running import BUFFER_BYTES, LOOPBACK
from replog.run.serve.server import Server
from replog.run.serve.service import Service
from replog.run.serve.topics import Address
from replog.store.directory import LogDirectory, lock_directory
from replog.store.files.errors import StoreError
from replog.store.files.fs import OsFs, make_directory

PARENT_S = 0.5
WATCH_S = 0.1
STOP_S = 10.0
PORTS = range(10_000, 32_000)
"""Below those that systems give to outgoing connections."""
PAUSE_S = 0.2
"""Before a process that has died is started again."""


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A cluster: its directory, its brokers, and where each of its processes listens."""

    path: str
    brokers: tuple[int, ...]
    min_isr: int
    addresses: MappingProxyType[int, Address]
    watch: Watch = lambda _: None

    @property
    def controller(self) -> str:
        """Return the directory of the controller."""
        return f"{self.path}/controller"


def planned(path: str, brokers: int, min_isr: int, port: int) -> ClusterPlan:
    """Return a plan with brokers at `port` and the ports after it, or at free ones; raises `OSError`."""
    ids = tuple(range(brokers))
    owners = (CONTROLLER, *ids)
    with_free = {owner: (LOOPBACK, n) for owner, n in zip(owners, free_ports(len(owners)), strict=True)}
    chosen = with_free | ({b: (LOOPBACK, port + b) for b in ids} if port else {})
    return ClusterPlan(path, ids, min_isr, MappingProxyType(chosen))


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback that are free now, and that no outgoing connection gets."""
    free: list[int] = []
    for port in sample(PORTS, len(PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            free.append(port)
        if len(free) == count:
            break
    return free


def _catalog(plan: ClusterPlan) -> Catalog:
    fs = OsFs()
    make_directory(fs, plan.controller)
    return load(fs, plan.controller) or new_catalog(fs, plan.controller)


async def _until_orphaned() -> None:
    """Return when the process above has ended."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(PARENT_S)


def on_sigterm(stop: Callable[[], None]) -> None:
    """Have a process of its own call `stop` when it is told to end."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)


async def run_controller(
    plan: ClusterPlan,
    ready: Callable[[], None],
    on_stop: Callable[[Callable[[], None]], None] = on_sigterm,
) -> None:
    """Run the controller until it is stopped; raises `StoreError`, `OSError`."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def fail(error: Exception) -> None:
        if not over.done():
            over.set_exception(error)

    def stop() -> None:
        if not over.done():
            over.set_result(None)

    on_stop(stop)
    brokers = Brokers()
    controlling = Controlling(started(_catalog(plan)), plan.min_isr, loop, brokers.deliver, fail)
    brokers.controlling = controlling
    plan.watch(controlling)
    controlling.begin({GROUPS: plan.brokers[:3]})
    sockets = await asyncio.start_server(brokers.connected, *plan.addresses[CONTROLLER], limit=BUFFER_BYTES)
    orphaned = asyncio.ensure_future(_until_orphaned())
    orphaned.add_done_callback(lambda _: stop())
    ready()
    try:
        await over
    finally:
        sockets.close()
        brokers.close()
        orphaned.cancel()


async def run_broker(
    plan: ClusterPlan,
    broker_id: int,
    ready: Callable[[], None],
    on_stop: Callable[[Callable[[], None]], None] = on_sigterm,
    service: Callable[[Host, Mapping[int, Address]], Service] = Service,
) -> None:
    """Run a broker until it is stopped; raises `StoreError`, `OSError`."""
    addresses = {owner: address for owner, address in plan.addresses.items() if owner != CONTROLLER}
    layouts = KioLayouts()
    directory = LogDirectory.open(OsFs(), f"{plan.path}/broker-{broker_id}")
    try:
        settings = Settings(broker_id, plan.brokers, plan.min_isr, cluster_id=_catalog(plan).cluster_id)
        link, peers = ToController(plan.addresses[CONTROLLER], broker_id), Peers(addresses, layouts)
        # Of no other start of this broker.
        start = time.time_ns()
        host = peers.host = Host(settings, PartitionFiles(directory), start, link.send, peers.send)
        plan.watch(host)
        server = Server(service(host, addresses), layouts)
        sockets = await asyncio.start_server(server.connected, *addresses[broker_id], limit=BUFFER_BYTES)
        on_stop(host.shut_down)
        served = host.until(lambda image: GROUPS in image.partitions)
        tasks = [asyncio.ensure_future(each) for each in (link.run(host), _until_orphaned(), served)]
        host.needs(tasks[0])
        tasks[1].add_done_callback(lambda _: host.fail(ConnectionError("the cluster's process has ended")))
        try:
            # A broker may stop before it has met its controller.
            await asyncio.wait((tasks[2], host.stopped), return_when=asyncio.FIRST_COMPLETED)
            if not host.stopped.done():
                ready()
            await host.stopped
        finally:
            sockets.close()
            await server.close()
            peers.close()
            for task in tasks:
                task.cancel()
    finally:
        directory.abandon()


Main = Callable[[Callable[[], None]], Coroutine[None, None, None]]


@dataclass(slots=True)
class Child:
    """A process of the cluster: how it is run, and what is known of it."""

    name: str
    main: Main
    process: ForkProcess | None = None
    pipe: Connection | None = None
    is_ready: bool = False

    def start(self) -> None:
        """Start the process."""
        context = get_context("fork")
        self.is_ready = False
        self.pipe, other = context.Pipe(duplex=False)
        self.process = context.Process(target=_child, args=(self.main, other), daemon=False)
        self.process.start()
        other.close()

    def news(self) -> str | None:
        """Return what the process says of itself: nothing if it is ready, else why it cannot be."""
        assert self.pipe is not None, "it was started"
        with suppress(EOFError, OSError):
            while self.pipe.poll():
                text = str(self.pipe.recv())
                if text:
                    return text
                self.is_ready = True
        return None


def _child(main: Main, pipe: Connection) -> None:
    """Run one process of a cluster; Ctrl-C is for the process above."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        asyncio.run(main(lambda: pipe.send("")))
    except (StoreError, OSError) as error:
        with suppress(OSError):
            pipe.send(str(error) or type(error).__name__)


class Processes:
    """The processes of a cluster, seen from the process above; `note` is told what happens to them."""

    def __init__(self, plan: ClusterPlan, note: Callable[[str], None]) -> None:
        self._plan = plan
        self._note = note
        self._is_stopping = False
        self._children = [Child("the controller", partial(run_controller, plan))]
        self._children += [Child(f"broker {b}", partial(run_broker, plan, b)) for b in plan.brokers]

    def run(self, ready: Callable[[], None]) -> None:
        """Run the cluster until SIGTERM or Ctrl-C; `ready` is called when all brokers serve.

        Raises `StoreError` and `OSError` if a directory or a port cannot be used.
        """
        lock, _ = lock_directory(OsFs(), self._plan.path)
        try:
            # With its id, before the processes look for it.
            _catalog(self._plan).save()
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._stop)
            for child in self._children:
                child.start()
            is_up = False
            while not self._is_stopping:
                self._watch(is_up)
                if not is_up and all(child.is_ready for child in self._children):
                    is_up = True
                    ready()
        finally:
            self._end()
            lock.close()

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        self._is_stopping = True

    def _watch(self, is_up: bool) -> None:
        """Wait for news, and start again what has died."""
        wait([child.process.sentinel for child in self._children if child.process], WATCH_S)
        for child in self._children:
            text, process = child.news(), child.process
            assert process is not None, "it was started"
            if text is not None and not is_up:
                raise OSError(f"{child.name}: {text}")
            if text is not None:
                self._note(f"{child.name}: {text}")
            if not process.is_alive() and not self._is_stopping:
                self._note(f"{child.name} (process {process.pid}) has ended: it is started again")
                time.sleep(PAUSE_S)
                child.start()

    def _end(self) -> None:
        """Stop the brokers, then the controller, which they need for an orderly stop."""
        for group in (self._children[1:], self._children[:1]):
            running = [c.process for c in group if c.process is not None and c.process.is_alive()]
            for process in running:
                process.terminate()
            deadline = time.monotonic() + STOP_S
            for process in running:
                process.join(max(deadline - time.monotonic(), 0))
                if process.is_alive():
                    self._note(f"process {process.pid} did not stop in {STOP_S:.0f} s: it is killed")
                    process.kill()
                    process.join()
