"""Fairness of a refined spec on random pairs of graphs, against fair cycles of the listed graph."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Refining
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.liveness.graph import StepGraph
from specchk.search.liveness.pulled import PulledFairness
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Outcome, Violated
from temporal.fair_cycles import FairCycles, States
from temporal.naive_time import Condition, NaiveChecker
from temporal.random_temporal import _edge, _kept


def graph(random: Random, name: str, head: str, last: int) -> list[str]:
    """A spec of a graph over `s`, with fairness."""
    lines = [f"spec {name}", head]
    for action in "abc"[: random.randint(1, 3)]:
        params = random.choice(("", "", "p: 0..1", "p: 0..1, q: 0..1"))
        lines += [f"action {action}({params}):", "    either:", "        require false", "        skip"]
        for _ in range(random.randint(1, 8)):
            lines += ["    or:", *_edge(random, last, params, beyond=False)]
        for strong in ("", "strong "):
            if random.random() < 0.5:
                lines.append(f"{strong}fair {action}{_kept(random, params)}")
    return [*lines, "deadlock ok"]


def pair(random: Random) -> tuple[str, str]:
    """A spec whose steps are all changes of its number, and one that refines it, perhaps without fairness."""
    last, most = random.randint(1, 6), random.randint(1, 3)
    image = random.choice((f"s % {most + 1}", f"min(s, {most})", f"(s // 2) % {most + 1}"))
    whole = [*graph(random, "whole", f"var s : 0..{most}\ninit: true", most),
             f"action jump(v: 0..{most}):\n    s' = v", "liveness zero: eventually s == 0"]  # fmt: skip
    if random.random() < 0.3:
        whole.append(random.choice(("fair jump", "fair jump(v)")))
    part = graph(random, "part", f"var s : 0..{last} = 0", last)
    part.append(f"refines whole as w with {{ t = {image} }}")
    renamed = [re.sub(r"\bs\b", "t", line) for line in whole]
    return "\n".join([*renamed, ""]), "\n".join([*part, "model m:", "    expect holds", ""])


class PulledCycles(FairCycles):
    """Fair behaviours of ours that owe a condition of the other spec, and never take a step that meets it."""

    def __init__(self, part: Program, whole: Program) -> None:
        super().__init__(part)
        self.other = NaiveChecker(whole)
        self.refining = Refining(part.refinements[0], len(part.variables))
        self.condition: Condition | None = None

    def enables(self, state: Any) -> bool:
        return self.condition in self.other.out(self.refining.image(state))[1]

    def _after(self, state: Any, within: States) -> list[tuple[Any, frozenset[Condition]]]:
        before, steps = self.refining.image(state), super()._after(state, within)
        known = [(after, taken) for after, taken in self.other.out(before)[0] if self.condition in taken]
        met = {after for after, _ in known}
        return [step for step in steps if self.refining.image(step[0]) not in met]

    def fails(self, condition: Condition) -> bool:
        self.condition = condition
        reached = list(dict.fromkeys(initial_states(self.program)))
        for state in reached:
            reached += [after for after, _ in self.out(state)[0] if after not in reached]
        return self._has_fair({one for one in reached if condition[2] or self.enables(one)}, self.enables)


def agree(seeds: range, folder: Path) -> Counter[str]:
    """Check that the engines report violated fairness exactly if it is violated."""
    kinds = Counter[str]()
    for seed in seeds:
        texts = pair(Random(seed))
        for name, text in zip(("whole", "part"), texts, strict=True):
            (folder / f"{name}.spec").write_text(text, encoding="utf-8")
        whole, part = (instantiate(check(str(folder / f"{name}.spec"))).program for name in ("whole", "part"))
        expected, found = reference.search(part), native.search(part, native.NativeOptions(workers=2))
        cycles = PulledCycles(part, whole)
        fails = any(map(cycles.fails, cycles.other.conditions))
        assert [is_violated(one) for one in (expected, found)] == [fails, fails], (seed, texts)
        kinds["violated" if fails else "holds" if cycles.other.conditions else "no fairness"] += 1
    return kinds


def is_violated(outcome: Outcome) -> bool:
    return isinstance(outcome.verdict, Violated)


def test_fairness_of_random_refinements_has_the_verdict_of_fair_cycles(tmp_path: Path) -> None:
    """Weak and strong, of actions and of instances; both kinds of answers are among them."""
    kinds = agree(range(20), tmp_path)
    assert min(kinds["violated"], kinds["holds"]) > 0


@pytest.mark.slow
def test_fairness_of_many_random_refinements_has_the_verdict_of_fair_cycles(tmp_path: Path) -> None:
    """The same for more."""
    agree(range(1000, 1400), tmp_path)


def with_all_steps(pulled: PulledFairness, _: int) -> StepGraph:
    """Planted: also the steps that meet a condition: a loop of them violates nothing."""
    return pulled.graph


def without_steps(pulled: PulledFairness, _: int) -> StepGraph:
    """Planted: a graph of rests alone."""
    starts = array("Q", [0] * (pulled.graph.count + 1))
    return replace(pulled.graph, start=starts, target=array("I"), label=array("I"))


@pytest.mark.parametrize(("flaw", "error"), [(with_all_steps, ReplayFailed), (without_steps, AssertionError)])
def test_wrong_steps_of_a_condition_are_noticed(
    flaw: object, error: type[Exception], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Too many if a loop is taken again, too few by the verdict."""
    monkeypatch.setattr(PulledFairness, "_without", flaw)
    with pytest.raises(error):
        agree(range(20, 40), tmp_path)
