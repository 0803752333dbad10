"""Small random specs, and helpers shared by the tests of search and steps."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace
from naive import Naive
from naive_values import Cut, Dict, Nothing

from specchk.compile.instantiate import Instance, instantiate
from specchk.lang.frontend import check
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.search.verdict import Outcome, Statistics, Violated, Violation

HEADER = """\
spec small
sort R
var x : 0..3 = 0
var h : nat upto 2 = 0
var m : R -> 0..2 = { z: 0 for z in R }
var t : set[R] = {}
var p : R? = none
var q : seq[R] upto 2 = []
"""
MODEL = """
model two:
    R = 2
"""
NUMBERS = [
    "x",
    "h",
    "m[a]",
    "card(t)",
    "0",
    "1",
    "2",
    "min(x + 1, 3)",
    "max(x - 1, 0)",
    "(m[a] + 1) % 3",
    "len(q)",
]
RISKY = [
    "x + 1",
    "len(tail(q))",
    "x - 1",
    "m[a] + 1",
    "h + 1",
    "2 // m[a]",
]  # outside a range, or undefined, now and then
GUARDS = ["x < 2", "h == 1", "a in t", "p == none", "p == some(a)", "m[a] > 0", "len(q) < 2", "x == m[a]",
          "not a in t", "exists b in R: m[b] == 1 and b != a", "forall b in R: b in t implies m[b] > 0",
          "a in q"]  # fmt: skip
EFFECTS = [
    "x' = {n}", "m'[a] = {n}", "h' = min(h + 1, 2)", "t' = t union {{a}}", "t' = t - {{a}}", "p' = some(a)",
    "p' = none", "q' = if len(q) < 2 then append(q, a) else []", "q' = suffix(q, min(1, len(q)))",
    "p' in {{ some(b) for b in t }}", "x' in 0 .. m[a]", "h' = h + 1",
]  # fmt: skip
COMPOUND = [
    "let c = p else skip\n    {e}", "any b in R:\n        require b != a\n        m'[b] = {n}",
    "either:\n        {e}\n    or:\n        require {g}\n        {f}",
    "when {g}:\n        {e}\n    else:\n        {f}", "when {g}:\n        {e}",
]  # fmt: skip
INVARIANTS = ["x < 3", "card(t) < 2", "forall a in R: m[a] < 2", "len(q) < 2", "x + h < 5", "h < 2",
              "forall a in R: a in t implies p != some(a)", "x <= 3"]  # fmt: skip


@st.composite
def small_specs(draw: st.DrawFn) -> str:
    """A spec over one sort whose actions guard, branch, choose and assign at random.

    The choices are one generator's: uniform, which Hypothesis's own are not, so that most specs have
    tens to hundreds of states and every kind of end.
    """
    return small_spec(Random(draw(st.integers(0, 2**32), label="seed of the spec")))


def small_spec(random: Random) -> str:
    """A spec of three to six actions with its model `two`."""
    text = HEADER
    for number in range(random.randint(3, 6)):
        lines = [f"require {random.choice(GUARDS)}"] if random.random() < 0.3 else []
        forms = [EFFECTS, EFFECTS, EFFECTS, COMPOUND]
        lines += [_piece(random, random.choice(random.choice(forms))) for _ in range(random.randint(1, 2))]
        text += f"\naction act{number}(a: R):\n" + "".join(f"    {line}\n" for line in lines)
    text += f"\ninvariant safe: {random.choice(INVARIANTS)}\n"
    for line, chance in (
        ("deadlock ok", 0.4), ("constraint small: x < 3", 0.2), ("step invariant rises: x' >= x", 0.4),
        ("reachable seen: x == 3 and (exists a in R: a in t)", 0.5),
    ):  # fmt: skip
        text += f"{line}\n" if random.random() < chance else ""
    return text + MODEL


def _piece(random: Random, piece: str) -> str:
    def number() -> str:
        return random.choice(NUMBERS if random.random() < 0.97 else RISKY)

    effects = [random.choice(EFFECTS).format(n=number()) for _ in range(2)]
    piece = piece.replace("let c", f"let c{random.randrange(1000)}")  # no name twice in one action
    return piece.format(n=number(), g=random.choice(GUARDS), e=effects[0], f=effects[1])


def instance_of(text: str, **overrides: str) -> Instance:
    """The program of a spec's first model."""
    return instantiate(check("test.spec", text), None, overrides)


def outcome_of(text: str, options: Options = Options(symmetry=False), **overrides: str) -> Outcome:
    """The reference engine's result for a spec's first model."""
    return search(instance_of(text, **overrides).program, options)


def first(outcome: Outcome) -> Violation:
    """The violation that is reported first."""
    assert isinstance(outcome.verdict, Violated), outcome.verdict
    return outcome.verdict.violations[0]


def timeless(outcome: Outcome) -> tuple[Any, ...]:
    """Everything in an outcome except its seconds."""
    statistics: Statistics = replace(outcome.statistics, seconds=0.0)
    return outcome.verdict, statistics, outcome.coverage, outcome.warnings, outcome.witnesses


def bfs(naive: Naive, levels: int = 30) -> Iterator[tuple[int, Dict]]:
    """(steps, state) of every reached state, breadth first; a faulty state has no successors."""
    frontier = naive.initial()
    seen = set(frontier)
    for steps in range(levels):
        for state in frontier:
            yield steps, state
        following = []
        for state in frontier:
            if not inside(naive, state):
                continue
            try:
                successors = naive.successors(state)
            except Nothing:
                continue
            for _, after in successors:
                if after not in seen:
                    seen.add(after)
                    following.append(after)
        frontier = following


def inside(naive: Naive, state: Dict) -> bool:
    return all(naive.holds(p, state) for p in naive.spec.properties.values() if p.kind == "constraint")


__all__ = ["Cut", "Nothing"]
