"""Banks with one error each: with the kind of divergence and the length of a shortest path."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from bank import Bank, BankBinding

from specchk.conform.contract.binding import (
    Accepted,
    Answer,
    Impossible,
    OutsideSpec,
    Refused,
    action,
    project,
    reopen,
    restore,
    snapshot,
)


class StartsPoor(BankBinding):
    def start(self) -> Bank:
        return Bank({"a1": 1, "a2": 3})


class RefusesTheLastCoin(BankBinding):
    @action("transfer")
    def transfer(self, bank: Bank, source: str, target: str) -> Answer:
        if bank.balance[source] == 1:
            return Refused("keep one")
        return super().transfer(bank, source, target)


class LendsMoney(BankBinding):
    @action("transfer")
    def transfer(self, bank: Bank, source: str, target: str) -> Answer:
        if source == target:
            return Impossible("there is no such form")
        bank.balance[target] += 1
        bank.balance[source] = max(bank.balance[source] - 1, 0)
        return Accepted()


class LosesMoney(BankBinding):
    @action("transfer")
    def transfer(self, bank: Bank, source: str, target: str) -> Answer:
        answer = super().transfer(bank, source, target)
        bank.balance["a2"] = min(bank.balance["a2"], 3)
        return answer


class DoesNothing(BankBinding):
    @action("sleep")
    def sleep(self, bank: Bank) -> Answer:
        return Accepted()


class ChangesWhenRefusing(BankBinding):
    @action("toss", ways=("heads", "tails"))
    def toss(self, bank: Bank, way: str) -> Answer:
        answer = super().toss(bank, way)
        bank.coin = way
        return answer


class HasNoWords(BankBinding):
    @project
    def state(self, bank: Bank) -> dict[str, Any]:
        if bank.coin == "tails":
            raise OutsideSpec("the coin stands on its edge")
        return super().state(bank)


class CountsBelowZero(BankBinding):
    @action("transfer")
    def transfer(self, bank: Bank, source: str, target: str) -> Answer:
        answer = super().transfer(bank, source, target)
        if bank.balance["a1"] == 0:
            bank.balance["a1"] = -1
        return answer


class Fails(BankBinding):
    @action("toss", ways=("heads", "tails"))
    def toss(self, bank: Bank, way: str) -> Answer:
        raise ZeroDivisionError("no coin")


class TossesOntoItsEdge(BankBinding):
    @action("toss", ways=("heads", "tails"))
    def toss(self, bank: Bank, way: str) -> Answer:
        raise OutsideSpec("the coin stands on its edge")


class StartsOutside(BankBinding):
    def start(self) -> Bank:
        raise OutsideSpec("there is no money")


class RestoresOutside(BankBinding):
    @restore
    def back(self, kept: Any) -> Bank:
        raise OutsideSpec("what was kept is not money")


class CannotTellTosses(BankBinding):
    unobserved = MappingProxyType({"coin": "it is in a pocket"})

    @project
    def state(self, bank: Bank) -> dict[str, Any]:
        return {"balance": dict(bank.balance), "days": bank.days}


class ForgetsOnRestore(BankBinding):
    @snapshot
    def keep(self, bank: Bank) -> Any:
        return dict(bank.balance), bank.days

    @restore
    def back(self, kept: Any) -> Bank:
        return Bank(dict(kept[0]), "unseen", kept[1])


class SharesOnRestore(BankBinding):
    @snapshot
    def keep(self, bank: Bank) -> Any:
        return bank

    @restore
    def back(self, kept: Any) -> Bank:
        return kept


class ForgetsOnDisk(BankBinding):
    @reopen
    def again(self, bank: Bank) -> Bank:
        return Bank(dict(bank.balance), "unseen", bank.days)


BROKEN = [
    (StartsPoor, "initial", 0), (RefusesTheLastCoin, "refused", 1), (LendsMoney, "accepted", 2),
    (LosesMoney, "state", 1), (DoesNothing, "state", 0), (ChangesWhenRefusing, "changed", 1),
    (HasNoWords, "outside", 0), (CountsBelowZero, "outside", 1), (Fails, "raised", 0),
    (TossesOntoItsEdge, "outside", 0), (StartsOutside, "outside", 0), (RestoresOutside, "restored", 0),
    (CannotTellTosses, "ambiguous", 0), (ForgetsOnRestore, "restored", 1),
]  # fmt: skip
