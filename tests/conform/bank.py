"""A toy spec and an implementation that can be broken in every nameable way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from specchk.compile.instantiate import Instance, instantiate
from specchk.conform.contract.binding import Accepted, Answer, Binding, Impossible, Refused, action, project
from specchk.lang.frontend import check

SPEC = """spec bank
sort Account
const Most : int = 2
type Side = enum { unseen, heads, tails }
var balance : Account -> 0..4 = { a: 2 for a in Account }
var coin : Side = unseen
var days : nat upto Most = 0

action transfer(a: Account, b: Account):
    require a != b and balance[a] > 0
    balance'[a] = balance[a] - 1
    balance'[b] = balance[b] + 1
action toss():
    require coin == unseen
    either:
        coin' = heads
    or:
        coin' = tails
action sleep():
    days' = days + 1
invariant rich: forall a in Account: balance[a] >= 0
model small:
    Account = 2
    expect holds
"""


def bank() -> Instance:
    return instantiate(check("bank.spec", SPEC))


@dataclass
class Bank:
    """The implementation."""

    balance: dict[str, int] = field(default_factory=lambda: {"a1": 2, "a2": 2})
    coin: str = "unseen"
    days: int = 0


class BankBinding(Binding[Bank]):
    """A correct binding; a test overrides the parts that it breaks."""

    spec: ClassVar[str] = "bank.spec"
    unobserved: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def start(self) -> Bank:
        return Bank()

    @action("transfer")
    def transfer(self, bank: Bank, source: str, target: str) -> Answer:
        if source == target:
            return Impossible("there is no such form")
        if bank.balance[source] == 0:
            return Refused("too poor")
        bank.balance[source] -= 1
        bank.balance[target] += 1
        return Accepted()

    @action("toss", ways=("heads", "tails"))
    def toss(self, bank: Bank, way: str) -> Answer:
        if bank.coin != "unseen":
            return Refused("tossed already")
        bank.coin = way
        return Accepted()

    @action("sleep")
    def sleep(self, bank: Bank) -> Answer:
        bank.days += 1
        return Accepted()

    @project
    def state(self, bank: Bank) -> dict[str, Any]:
        return {"balance": dict(bank.balance), "coin": bank.coin, "days": bank.days}
