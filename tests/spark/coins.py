"""A bank, recordings of its coins, and queries of the tables that a validation wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from specchk.cli import sql

BANK = """spec bank
sort Account
var balance : Account -> 0..4 = { a: 2 for a in Account }

action transfer(a: Account, b: Account):
    require a != b and balance[a] > 0
    balance'[a] = balance[a] - 1
    balance'[b] = balance[b] + 1
model small:
    Account = 2
    expect holds
"""
TRACING = """
import os
from specchk.conform.contract.tracing import Call, Seen, Tracing, event


class BankTracing(Tracing):
    spec, model, reads = "bank.spec", "small", "bank/1"

    @event("moved")
    def moved(self, found):
        if "kill" in found:
            os.kill(os.getpid(), 9)
        return Call("transfer", (found["from"], found["to"]))

    def after(self, found):
        return [Seen("balance", f"balance[{found['from']}]", found["left"])]
"""


def lines(left: int, **more: Any) -> str:
    """A recording of a coin that moves there and back; `left` is what is shown at last."""
    moved = {"at": "bank", "event": "moved"}
    events = [{**moved, "seq": 1, "from": "a1", "to": "a2", "left": 1, **more},
              {**moved, "seq": 2, "from": "a2", "to": "a1", "left": left}]  # fmt: skip
    every = [{"format": "bank/1"}, *events, {"end": True, "events": 2}]
    return "\n".join(map(json.dumps, every)) + "\n"


RIGHT, WRONG = lines(2), lines(3)


def rows(tables: Path, query: str) -> list[Any]:
    found = CliRunner().invoke(sql.command, [str(tables), query, "--json"])
    assert found.exit_code == 0, found.output
    answer: list[Any] = json.loads(found.stdout)["rows"]
    return answer
