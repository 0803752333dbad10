"""Lassos are the shortest ones: no shorter walk is a counterexample, with up to 12 fair conditions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from specchk.ir.program import Program
from specchk.search.verdict import Outcome, Violated
from temporal.checked import ENGINES, Runs, on_reference, program_of, together
from temporal.naive_time import NaiveChecker

MOST = 8  # steps of the walks that are enumerated


def ring(random: Random, *, full: bool = False) -> str:
    """A spec of five states, where most steps stay among four, and 4 to 12 conditions; if `full`, 12."""
    lines = ["spec ring", "var s : 0..4 = 0"]
    count = 6 if full else random.randint(4, 6)
    for number in range(count):
        lines += [f"action a{number}():", "    either:", "        require false", "        skip"]
        for _ in range(random.randint(1, 2)):
            start = random.randint(0, 3)
            end = (start + random.choice([1, 1, 1, 2, 3])) % 4 if random.random() < 0.9 else 4
            lines += ["    or:", f"        require s == {start}", f"        s' = {end}"]
    fair = [f"{strong}fair a{number}" for number in range(count) for strong in ("", "strong ")]
    lines += fair if full else random.sample(fair, random.randint(count, 2 * count))
    lines += [f"liveness l: s == {random.randint(0, 3)} leadsto s == 4", "deadlock ok"]
    return "\n".join([*lines, "model m:", "    expect holds", ""])


class Walks:
    """All walks of a program, and which of them are counterexamples; nothing is cached between walks."""

    def __init__(self, program: Program) -> None:
        self.checker = NaiveChecker(program)
        (self.clause,) = program.liveness[0].clauses

    def of_length(self, length: int) -> Iterator[tuple[list[Any], list[frozenset[Any]]]]:
        """The walks of this many steps: states, and the conditions met by each step."""

        def longer(states: list[Any], taken: list[frozenset[Any]]) -> Iterator[tuple[list[Any], list[Any]]]:
            if len(taken) == length:
                yield states, taken
                return
            for after, mask in self.checker.out(states[-1])[0]:
                yield from longer([*states, after], [*taken, mask])

        yield from longer([(0,)], [])

    def has_lasso(self, length: int) -> bool:
        """Whether some walk of this many steps is a path to a fair loop and once around it."""
        return any(
            self.is_owed(states, at) and self.is_fair(states[at:], taken[at:])
            for states, taken in self.of_length(length)
            for at in range(length) if states[at] == states[-1]
        )  # fmt: skip

    def has_rest(self, length: int) -> bool:
        """Whether some walk of this many steps ends in a rest."""
        walks = self.of_length(length)
        return any(self.is_owed(states, length) and self.is_fair(states[-1:], []) for states, _ in walks)

    def is_owed(self, states: list[Any], loop: int) -> bool:
        """Whether the goal is owed somewhere, and reached neither after it nor in the loop."""
        assert self.clause.trigger is not None
        reached = [self.checker.truth(self.clause.goal, state) for state in states]
        begins = [at for at, state in enumerate(states) if self.checker.truth(self.clause.trigger, state)]
        return any(not any(reached[min(at, loop) :]) for at in begins)

    def is_fair(self, states: list[Any], taken: list[frozenset[Any]]) -> bool:
        """Each condition is taken, or is not enabled: weak ones somewhere, strong ones everywhere."""
        enabled = [self.checker.out(state)[1] for state in states]
        return all(
            any(condition in step for step in taken)
            or not (any if condition[2] else all)(condition in here for here in enabled)
            for condition in self.checker.conditions
        )


def compare(outcome: Outcome, program: Program) -> tuple[str, int]:
    """Whether a rest, a loop or nothing is a counterexample, and the number of conditions."""
    walks = Walks(program)
    conditions = len(walks.checker.conditions)
    if not isinstance(outcome.verdict, Violated):
        assert not any(walks.has_lasso(n) or walks.has_rest(n) for n in range(MOST))
        return "holds", conditions
    trace = outcome.verdict.violations[0].trace
    assert trace is not None
    length = len(trace.steps)
    if trace.loop == length:
        assert not any(walks.has_rest(shorter) for shorter in range(min(length, MOST)))
        return "rest", conditions
    assert not any(walks.has_lasso(shorter) for shorter in range(min(length, MOST + 1)))
    return "loop", conditions


def check_rings(seeds: range, run: Runs, folder: Path) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for seed in seeds:
        program = program_of(ring(Random(seed)), folder)
        kind, conditions = compare(run(program), program)
        many = f"{kind}, {'more' if conditions > 8 else 'few'}"
        kinds[many] = kinds.get(many, 0) + 1
    return kinds


def test_no_shorter_walk_is_a_counterexample(tmp_path: Path) -> None:
    """By the reference engine, whose search for loops is the native one's."""
    kinds = check_rings(range(30), on_reference, tmp_path)
    assert kinds["loop, few"] >= 3
    assert kinds["loop, more"] >= 1


@pytest.mark.parametrize("run", ENGINES)
def test_with_twelve_conditions_no_shorter_walk_is_a_counterexample(run: Runs, tmp_path: Path) -> None:
    """Seeds with loops of 6 to 8 steps, so that all shorter walks are enumerated, and with rests."""
    expected = {3: "loop", 6: "loop", 13: "loop", 40: "loop", 53: "loop", 7: "rest", 19: "rest"}
    for seed in expected:
        program = program_of(ring(Random(seed), full=True), tmp_path)
        assert compare(run(program), program) == (expected[seed], 12)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_no_shorter_walk_is_a_counterexample_on_two_workers(part: int, tmp_path: Path) -> None:
    """By the native engine."""
    check_rings(range(100 * part, 100 * (part + 1)), together, tmp_path)
