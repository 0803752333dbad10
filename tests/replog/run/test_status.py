"""`replog status`, `topics` and `groups`: what a running cluster says of itself, as tables and as JSON."""

import asyncio
import json

import pytest
from serving import Broker, batch
from serving import run as run_scenario
from test_groups import commit, member

from replog import status
from replog.cli import run
from replog.core.types import Error
from replog.run.serve import topics
from replog.run.serve.frames import Api
from replog.run.serve.server import Server


def row(name: str, leader: int = 0, isr: tuple[int, ...] = (0, 1, 2), **other: object) -> status.Row:
    """Return a partition as a cluster describes it."""
    ends = {"hw": 9, "leo": {0: 10, 1: 10, 2: 9}}
    named = {"partition": f"{name}-0", "topic": name, "number": 0, "leader": leader, "epoch": 4}
    return named | {"replicas": (0, 1, 2), "isr": isr, "elr": ()} | ends | other


class Described:
    """A cluster with three brokers, of which one is away."""

    def __init__(self, _command: str, _bootstrap: str) -> None:
        self.id = "x" * 22
        self.brokers = {0: ("127.0.0.1", 9_092), 1: ("127.0.0.1", 9_093)}
        self.partitions = [
            row("orders"),
            row("short", isr=(0, 1), elr=(2,), leo={0: 10, 1: 10}),
            row("n" * 249, leader=-1, isr=(), elr=(1, 2), hw=None, leo={0: 123_456_789}),
        ]


def test_tables_fit_a_terminal_and_show_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(status, "Cluster", Described)
    assert run(["topics"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "PARTITION                        LEADER  EPOCH  HW  LEO    ISR  ELR       BEHIND",
        "orders-0                              0      4   9   10  0,1,2    -          2:1",
        "short-0                               0      4   9   10    0,1    2          2:?",
        f"{'n' * 30}…       -      4   -    -      -  1,2  0:? 1:? 2:?",
    ]
    assert run(["status"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert max(map(len, out)) <= status.WIDTH
    assert out[:6] == [
        f"cluster {'x' * 22}: 2 brokers, 3 partitions",
        "ADDRESS         BROKER  LEADS  IN-ISR  REPLICAS",
        "127.0.0.1:9092       0      2       2         3",
        "127.0.0.1:9093       1      0       2         3",
        "(away)               2      0       1         3",
        "2 partitions have no leader, or fewer replicas in sync than there are",
    ]


def test_a_running_broker_is_asked_as_clients_ask(tmp_path, capsys, monkeypatch):
    """For all pages of partitions, and by one who does not lead."""
    layout = pytest.importorskip("replog.run.serve.layout", reason="kio is not installed: the extra `serve`")

    async def scenario():
        broker = Broker(tmp_path)
        sockets = await asyncio.start_server(
            Server(broker.service, layout.KioLayouts()).connected, "127.0.0.1", 0
        )
        broker.service.addresses[0] = sockets.sockets[0].getsockname()
        where = "--bootstrap", "{}:{}".format(*broker.service.addresses[0])
        await broker.create("t", "u")
        await broker.produce(batch("a", "b", "c"))
        assert await commit(broker, 1) == Error.NONE

        async def shown(command: str) -> dict:
            assert await asyncio.to_thread(run, [command, *where, "--json"]) == 0
            return json.loads(capsys.readouterr().out)

        rows = (await shown("topics"))["partitions"]
        assert [(each["partition"], each["hw"], each["leo"]["0"]) for each in rows[1:]] == [
            ("t-0", 3, 3),
            ("u-0", 0, 0),
        ]
        told = await shown("status")
        assert [(b["leads"], b["in_isr"], b["replicas"]) for b in told["brokers"]] == [(3, 3, 3)]
        assert told["partitions"] == rows
        known = {"partition": "t-0", "group": "g", "committed": 1, "hw": 3, "lag": 2}
        assert (await shown("groups"))["groups"] == [known | {"state": "Empty"}]
        joined = await member(broker)
        assert await commit(broker, 3, joined) == Error.NONE
        assert await asyncio.to_thread(run, ["groups", *where]) == 0
        assert capsys.readouterr().out.split()[6:] == ["t-0", "g", "Stable", "3", "3", "0"]
        for states, names in ((("Stable",), ["g"]), (("Empty",), []), ((), ["g"])):
            listed = await broker.ask(Api.LIST_GROUPS, states_filter=states)
            assert [each["group_id"] for each in listed["groups"]] == names
        await broker.ask(Api.DELETE_TOPICS, topic_names=["t"])
        sockets.close()
        broker.die()

    monkeypatch.setattr(topics, "MOST_DESCRIBED", 1)
    run_scenario(scenario)


def test_what_does_not_answer_is_named(capsys):
    pytest.importorskip("kio")
    assert run(["topics", "--bootstrap", "127.0.0.1:1"]) == 1
    assert "no broker answers METADATA at 127.0.0.1:1: " in capsys.readouterr().err
    for wrong in ("localhost", ":9092", "a:b", "a:70000"):
        assert run(["status", "--bootstrap", wrong]) == 2
        assert "--bootstrap is HOST:PORT" in capsys.readouterr().err
