"""Several brokers and their controller in one loop, without sockets."""

import asyncio

import pytest
from serving import Broker

from replog.core.messages import ForPartition
from replog.core.types import CONTROLLER
from replog.run.partitions import PartitionFiles
from replog.run.serve import peers
from replog.run.serve.catalog import new_catalog
from replog.run.serve.controlling import Controlling, started
from replog.run.serve.host import GROUPS, Host, Settings
from replog.run.serve.links import decode, encode
from replog.run.serve.service import Service
from replog.store.directory import LogDirectory
from replog.store.files.fs import OsFs

BROKERS = (0, 1, 2)


class Cluster:
    """Brokers that send each other what goes over the wire, as mappings; a killed one answers nobody."""

    def __init__(self, path, ids=BROKERS):
        self.path, self.ids, self.brokers, self.starts = path, ids, {}, 0
        (path / "controller").mkdir()
        catalog = started(new_catalog(OsFs(), str(path / "controller")))
        loop = asyncio.get_running_loop()
        self.controlling = Controlling(catalog, 2, loop, self._deliver, pytest.fail)
        self.watch(self.controlling)
        self.controlling.begin({GROUPS: ids[:3]})
        for broker in ids:
            self.start(broker)

    def watch(self, running):
        """Look at what runs, before it begins."""

    def _deliver(self, to, message):
        if to in self.brokers:
            self.brokers[to].host.receive(CONTROLLER, decode(encode(message)[4:]))

    def start(self, broker):
        self.starts += 1
        directory = LogDirectory.open(OsFs(), str(self.path / f"broker-{broker}"))
        made = Broker.__new__(Broker)
        made.host = Host(
            Settings(broker, self.ids, 2),
            PartitionFiles(directory),
            self.starts,
            lambda order: self._order(made, broker, order),
            lambda to, message: asyncio.ensure_future(self._ask(made, broker, to, message)),
        )
        self.watch(made.host)
        made.service = Service(made.host, {b: ("localhost", b) for b in self.ids})
        made.client = made.host.client()
        self.brokers[broker] = made
        made.host.begin()

    def _order(self, made, broker, order):
        if self.brokers.get(broker) is made:
            # Not in the same step, as over a connection.
            frame = encode(order)[4:]
            asyncio.get_running_loop().call_soon(lambda: self.controlling.receive(broker, decode(frame)))

    async def _ask(self, made, broker, to, message):
        name, question = made.host.named(message)
        leader = self.brokers.get(to)
        if leader is None:
            return
        api, body = peers.request_of(name, question, broker)
        answer = await leader.ask(
            api, client=leader.host.client(), name=f"{broker}/{question.correlation}", **body
        )
        part = next(iter(answer.values()))[0]["partitions"][0]
        part.setdefault("diverging_epoch", {"epoch": -1, "end_offset": -1})
        if self.brokers.get(broker) is made and self.brokers.get(to) is leader:
            made.host.receive(to, ForPartition(name, peers.reply_of(question, answer)))

    def kill(self, broker):
        self.brokers.pop(broker).die()
        self.controlling.expire(broker)

    async def leader(self, name="t-0"):
        some = next(iter(self.brokers.values())).host
        await some.until(lambda image: image.partitions[name].leader in self.brokers)
        return self.brokers[some.image.partitions[name].leader]

    async def in_sync(self, name="t-0"):
        leader = await self.leader(name)
        wanted = set(leader.host.image.partitions[name].replicas)
        await leader.host.until(lambda image: set(image.partitions[name].isr) == wanted)
