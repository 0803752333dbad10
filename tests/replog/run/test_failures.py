"""A bug of ours ends the broker: what follows it would be answered from a state that no disk has."""

import asyncio

import pytest
from serving import Broker, batch, run

from replog.core.broker.broker import Broker as Core


def test_an_exception_of_the_core_ends_the_broker(tmp_path, monkeypatch):
    async def scenario():
        broker = Broker(tmp_path)
        await broker.create("t")
        good = Core.handle

        def handle(self, event, now_ms):
            good(self, event, now_ms)
            raise KeyError("a bug")

        monkeypatch.setattr(Core, "handle", handle)
        with pytest.raises(KeyError, match="a bug"):
            await broker.produce(batch("a"))
        monkeypatch.setattr(Core, "handle", good)
        with pytest.raises(KeyError, match="a bug"):
            await broker.host.stopped
        broker.host.files.directory.abandon()

    run(scenario)


def test_a_task_that_a_bug_ends_ends_the_broker(tmp_path):
    async def wrong():
        raise KeyError("a bug")

    async def scenario():
        broker = Broker(tmp_path)
        cancelled, failed = (asyncio.ensure_future(wrong()) for _ in range(2))
        broker.host.needs(cancelled)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert not broker.host.stopped.done()
        broker.host.needs(failed)
        with pytest.raises(KeyError, match="a bug"):
            await broker.host.stopped
        broker.host.files.directory.abandon()

    run(scenario)
