"""Implementations that go beyond a horizon of their spec: no divergence, unless no number allows the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import Accepted, Answer, Binding, Refused, action, project
from specchk.conform.covers.cover import build_suite
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import run_suite
from specchk.conform.replay.suites import SuiteWalks, run_product, run_walks
from specchk.lang.frontend import check

SPEC = """spec counted
type Offset = nat upto 2
var n : Offset = 0
var stopped : bool = false
action stop():
    stopped' = true
action step():
    require not stopped
{step}
model m:
    expect holds
"""
PICK = """
    any k in Offset:
        require k > n and k <= n + 1
        n' = k
"""
MAYBE = """
    either:
        n' = n + 1
    or:
        skip
"""
SUITES = ("classes", "edges", "product", "walks")


class Counted:
    """The implementation."""

    def __init__(self) -> None:
        self.n = 0
        self.is_stopped = False


def diverges(step: str, suite: str, after: Callable[[Counted], int | None]) -> str:
    """The kind of the divergence of an implementation, "" if it conforms; `after` is n after a step."""
    program = instantiate(check("counted.spec", SPEC.format(step=step.strip("\n")))).program

    class Own(Binding[Counted]):
        spec: ClassVar[str] = "counted.spec"

        def start(self) -> Counted:
            return Counted()

        @action("stop")
        def stop(self, system: Counted) -> Answer:
            system.is_stopped = True
            return Accepted()

        @action("step")
        def step(self, system: Counted) -> Answer:
            n = after(system)
            if n is None:
                return Refused("no")
            system.n = n
            return Accepted()

        @project
        def state(self, system: Counted) -> dict[str, Any]:
            return {"n": system.n, "stopped": system.is_stopped}

    replayer = Replayer(Own(program))
    if suite == "product":
        result = run_product(replayer)
    elif suite == "walks":
        result = run_walks(replayer, SuiteWalks(1, 50, 10))
    else:
        result = run_suite(replayer, build_suite(program, suite))
    return "" if result.divergence is None else result.divergence.kind


def counting(system: Counted) -> int | None:
    return None if system.is_stopped else system.n + 1


def leaping(system: Counted) -> int | None:
    after = counting(system)
    return 9 if after == 3 else after


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("step", [PICK, MAYBE], ids=["pick", "maybe"])
def test_a_step_beyond_a_horizon_is_no_divergence(step: str, suite: str) -> None:
    """The spec has it, though no search takes it."""
    assert diverges(step, suite, counting) == ""


@pytest.mark.parametrize("suite", SUITES)
def test_a_step_that_no_number_enables_is_tried(suite: str) -> None:
    """Where another guard is false, the choice of a larger number does not matter."""
    assert diverges(PICK, suite, lambda system: system.n + 1) == "accepted"


@pytest.mark.parametrize("suite", ["classes", "product", "walks"])  # cases of edges end at other choices
def test_a_state_beyond_a_horizon_must_be_one_of_the_step(suite: str) -> None:
    """Numbers above a horizon are compared, too."""
    assert diverges(MAYBE, suite, leaping) == "outside"
