"""A divergence found on a long path is reported on a short one, which the implementation has taken."""

from __future__ import annotations

from typing import Any

import pytest
from bank import Bank, BankBinding, bank
from hypothesis import given
from hypothesis import strategies as st

from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import Accepted, Answer, Binding, Refused, action, project, restore
from specchk.conform.replay.place import Diverged, Divergence
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.shrink import shrunk
from specchk.conform.replay.suites import SuiteWalks, run_product, run_walks
from specchk.lang.frontend import check
from specchk.meaning.step import Stepper

PROGRAM = bank().program
LIFT = """spec lift
var floor : 0..4 = 0
action up():
    require floor < 4
    floor' = floor + 1
action express():
    require floor == 0
    floor' = 4
action down():
    require floor > 0
    floor' = floor - 1
model small:
    expect holds
"""


class Lift(Binding[list[int]]):
    """Gets stuck on the third floor."""

    def start(self) -> list[int]:
        return [0]

    @action("up")
    def up(self, lift: list[int]) -> Answer:
        if lift[0] >= 3:
            return Refused("stuck" if lift[0] == 3 else "at the top")
        lift[0] += 1
        return Accepted()

    @action("express")
    def express(self, lift: list[int]) -> Answer:
        if lift[0]:
            return Refused("not at the bottom")
        lift[0] = 4
        return Accepted()

    @action("down")
    def down(self, lift: list[int]) -> Answer:
        if not lift[0]:
            return Refused("at the bottom")
        lift[0] -= 1
        return Accepted()

    @project
    def state(self, lift: list[int]) -> dict[str, int]:
        return {"floor": lift[0]}


class HoldsThree(BankBinding):
    """Its second account has at most three coins."""

    @action("transfer")
    def transfer(self, bank: Bank, source: str, target: str) -> Answer:
        answer = super().transfer(bank, source, target)
        bank.balance["a2"] = min(bank.balance["a2"], 3)
        return answer


class TossesWhenPoor(BankBinding):
    """Takes a second toss once an account is empty."""

    @action("toss", ways=("heads", "tails"))
    def toss(self, bank: Bank, way: str) -> Answer:
        if bank.balance["a1"] == 0 and bank.coin != "unseen":
            return Accepted()
        return super().toss(bank, way)


class Fails(BankBinding):
    """Fails on a sleep after a toss of tails."""

    @action("sleep")
    def sleep(self, bank: Bank) -> Answer:
        if bank.coin == "tails":
            raise OSError("bad dream")
        return super().sleep(bank)


class ForgetsOnRestore(BankBinding):
    """Its snapshots lose the coin."""

    @restore
    def back(self, kept: Bank) -> Bank:
        return Bank(dict(kept.balance), "unseen", kept.days)


def walked(cls: type[Binding[Any]], seed: int) -> Divergence | None:
    return run_walks(Replayer(cls(PROGRAM)), SuiteWalks(seed, 30, 30)).divergence


@pytest.mark.parametrize(("cls", "steps"), [(HoldsThree, 1), (TossesWhenPoor, 3), (Fails, 1)])
@given(seed=st.integers(0, 1000))
def test_a_walk_is_shrunk_to_the_length_that_the_product_finds(cls, steps, seed):
    """Whatever the walk, the path is then as short as any; kind and action are those of the walk."""
    found = walked(cls, seed)
    assert found is not None
    short = shrunk(Replayer(cls(PROGRAM)), found)
    assert len(short.trace.steps) == steps
    assert (short.kind, short.step and short.step.action) == (found.kind, found.step and found.step.action)
    exhaustive = run_product(Replayer(cls(PROGRAM))).divergence
    assert exhaustive is not None
    assert len(exhaustive.trace.steps) == steps
    assert short.found_after == (len(found.trace.steps) or None)


@given(seed=st.integers(0, 1000))
def test_the_short_path_is_a_behaviour_in_ways_that_lead_along_it(seed):
    """Each step of it is the spec's, and there is a way for each."""
    found = walked(TossesWhenPoor, seed)
    assert found is not None
    short = shrunk(Replayer(TossesWhenPoor(PROGRAM)), found)
    stepper = Stepper(PROGRAM)
    for before, after in zip(short.trace.states, short.trace.states[1:], strict=False):
        assert after in [state for _, _, state in stepper.successors(before)]
    assert len(short.ways) == len(short.trace.steps)
    tossed = [way for step, way in zip(short.trace.steps, short.ways, strict=True) if step.action == "toss"]
    assert tossed in (["heads"], ["tails"])


def test_a_detour_is_cut_off():
    """If no step can be omitted, the spec's shortest path to the state is tried."""
    program = instantiate(check("lift.spec", LIFT)).program
    replayer = Replayer(Lift(program))
    place = replayer.begin()
    by_name = {one.label.action: one for one in replayer.spec.instances}
    for name in ("up", "up", "up"):
        (place,) = replayer.take(place, by_name[name], replayer.spec.allowed(place.state, by_name[name]))
    with pytest.raises(Diverged) as caught:
        replayer.take(place, by_name["up"], replayer.spec.allowed(place.state, by_name["up"]))
    short = shrunk(Replayer(Lift(program)), caught.value.divergence)
    assert [str(step) for step in short.trace.steps] == ["express()", "down()"]
    assert (short.found_after, short.ways) == (3, ("", ""))


def test_what_does_not_happen_again_is_told_as_it_was_found():
    """An implementation that is not a function of its steps: the path is kept, and the report states this."""

    class Moody(BankBinding):
        calls = 0

        @action("transfer")
        def transfer(self, bank: Bank, source: str, target: str) -> Answer:
            Moody.calls += 1
            return Refused("not today") if Moody.calls == 40 else super().transfer(bank, source, target)

    found = run_walks(Replayer(Moody(PROGRAM)), SuiteWalks(4, 30, 30)).divergence
    assert found is not None
    told = shrunk(Replayer(Moody(PROGRAM)), found)
    assert told.trace == found.trace
    assert told.reason == "not today; repeating the path did not reproduce it"
    assert told.found_after is None


def test_a_snapshot_that_forgets_is_shrunk_too():
    """A divergence without a step is checked again without one."""
    found = walked(ForgetsOnRestore, 1)
    assert found is not None
    assert found.kind == "restored"
    short = shrunk(Replayer(ForgetsOnRestore(PROGRAM)), found)
    assert (short.kind, [step.action for step in short.trace.steps]) == ("restored", ["toss"])
