"""A toy spec with a choice, and implementations that always make one choice, or either."""

from __future__ import annotations

from specchk.conform.contract.binding import Accepted, Answer, At, Binding, Refused, action, project

# From 0 one may jump to 1 or to 2; the nearest way to the end is by 2, and the implementation goes by 1.
SPEC = """spec stairs
const Top : int = 4
var n : 0..9 = 0
var done : bool = false

action jump():
    require n == 0
    either:
        n' = 1
    or:
        n' = 2
action climb():
    require n > 0 and n < Top
    n' = n + 1
action rest():
    require n == 3 and not done
    done' = true
invariant low: n <= 9
model small:
    expect holds
model high:
    Top = 5
    expect holds
"""


class StairsBinding(Binding[dict[str, int]]):
    """Always jumps to `to`."""

    spec, model, to = "stairs.spec", "small", 1
    gate = (At("small"), At("high"))

    def start(self) -> dict[str, int]:
        return {"n": 0, "done": 0}

    @action("jump")
    def jump(self, stairs: dict[str, int]) -> Answer:
        return self._go(stairs, stairs["n"] == 0, self.to)

    @action("climb")
    def climb(self, stairs: dict[str, int]) -> Answer:
        return self._go(stairs, 0 < stairs["n"] < self.constants["Top"], stairs["n"] + 1)

    @action("rest")
    def rest(self, stairs: dict[str, int]) -> Answer:
        may = stairs["n"] == 3 and not stairs["done"]
        stairs["done"] |= may
        return self._go(stairs, may, stairs["n"])

    def _go(self, stairs: dict[str, int], may: bool, n: int) -> Answer:
        stairs["n"] = n if may else stairs["n"]
        return Accepted() if may else Refused("no")

    @project
    def state(self, stairs: dict[str, int]) -> dict[str, object]:
        return {"n": stairs["n"], "done": bool(stairs["done"])}


class EitherWay(StairsBinding):
    """Jumps to the requested place."""

    @action("jump", ways=("1", "2"))
    def jump(self, stairs: dict[str, int], way: str) -> Answer:
        return self._go(stairs, stairs["n"] == 0, int(way))
