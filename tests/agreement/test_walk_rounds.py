"""Rounds of random walks by compiled code: the reasons for an early end, and the remaining results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from spec_texts import first, instance_of

from agreement.walked import CALM, GROW, RARE, WALK, walking
from specchk.explore.simulate import Followed, Walks, follow
from specchk.ir.program import Program
from specchk.meaning.values import State
from specchk.native.machine.memory import Region
from specchk.native.walking import memory, simulation
from specchk.native.walking.frames import WalkControl
from specchk.native.walking.simulation import simulate
from specchk.search.findings import NO_MEMORY
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Inconclusive


def test_a_witness_that_is_not_confirmed_hides_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The violation is reported, and a warning names the witness."""

    def only_beyond(
        program: Program, path: Sequence[State], steps: int, on_step: Callable[[int], object]
    ) -> Followed:
        if steps < len(path):
            raise ReplayFailed("`given` is not true")
        return follow(program, path, steps, on_step)

    monkeypatch.setattr(simulation, "follow", only_beyond)
    outcome = simulate(instance_of(WALK).program, Walks(4, 300, 20), 2)
    assert first(outcome).kind != "undefined"
    assert any("`given` is not true" in warning for warning in outcome.warnings)
    assert not outcome.witnesses


@pytest.mark.parametrize("steps", [2**64, 2**64 + 1, 2**200])
def test_a_walk_may_have_any_number_of_steps(steps: int) -> None:
    """A number that exceeds a word is equivalent to no limit."""
    program = instance_of(WALK).program
    assert simulate(program, Walks(4, 64, steps)).verdict == simulate(program, Walks(4, 64, 10**6)).verdict


def test_a_round_of_short_walks_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of each walk of a round is kept until the round is over."""
    sizes: list[int] = []

    def set_round(self: memory.WalkMemory, first: int, count: int) -> None:
        sizes.append(count)
        real(self, first, count)

    real = memory.WalkMemory.set_round
    monkeypatch.setattr(memory.WalkMemory, "set_round", set_round)
    outcome = simulate(instance_of(CALM).program, Walks(1, 300_000, 1), 2)
    assert max(sizes) == 1 << 16
    assert outcome.statistics.walks is not None
    assert outcome.statistics.walks.ended == sum(sizes) == 300_000


@pytest.fixture(params=[KeyboardInterrupt, MemoryError])
def ended_early(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[BaseException]:
    """The reason why the first round ends when its workers have stopped."""

    def work(self: memory.WalkMemory, looking: Callable[[], bool]) -> None:
        real(self, looking)
        raise request.param

    real = memory.WalkMemory.work
    monkeypatch.setattr(memory.WalkMemory, "work", work)
    return request.param  # type: ignore[no-any-return]


def test_a_round_that_ends_early_reports_its_violation(ended_early: type[BaseException]) -> None:
    """A walk that failed before the interrupt, or before memory for a larger table was missing, counts."""
    outcome = simulate(instance_of(WALK).program, Walks(4, 300, 20), 2)
    assert first(outcome).trace is not None
    assert outcome.stopped is not None
    assert (outcome.stopped == NO_MEMORY) == (ended_early is MemoryError)


@pytest.mark.usefixtures("ended_early")
def test_a_round_that_ends_early_while_a_set_has_no_room_reports_no_walks() -> None:
    """A state that lost an item is not a state of the spec: findings with it are not reported."""
    text = GROW.replace("few: card(s) < 60", "few: card(s) < 5")
    outcome = simulate(instance_of(text).program, Walks(1, 70, 150), 2)
    assert isinstance(outcome.verdict, Inconclusive)
    assert outcome.statistics.generated == 0


def test_a_restart_with_more_room_releases_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many regions are mapped after a simulation as before it."""
    held: list[Region] = []

    class Counted(Region):
        def __init__(self, size: int) -> None:
            super().__init__(size)
            held.append(self)

    monkeypatch.setattr(memory, "Region", Counted)
    simulate(instance_of(GROW).program, Walks(1, 70, 150), 2)
    assert held
    assert not any(region.address for region in held)


@pytest.mark.parametrize(("counted", "slots"), [(127, 256), (128, 256), (129, 1024)])
def test_the_table_is_no_larger_than_its_limit_needs(
    counted: int, slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the limit half of the slots are used, and the table does not grow further."""
    monkeypatch.setattr(memory, "FIRST_SLOTS", 4)
    monkeypatch.setattr(memory, "COUNTED", counted)
    with walking(instance_of(RARE.format(limit=41)).program, 2) as walked:
        assert walked is not None
        walked.set_walks(1, 100)
        walked.set_round(0, 300)
        while not walked.is_round_done:
            walked.work(lambda: False)
        assert walked.seen == counted
        assert walked.control[WalkControl.MASK] + 1 == slots
