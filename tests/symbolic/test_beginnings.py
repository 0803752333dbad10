"""Initial states that are undefined, missing or outside constraints: proofs report them, too."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from zoned import program_of

from specchk.ir.program import Program
from specchk.lang.text.diagnostics import SpecError
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Inconclusive, Verdict, Violated
from specchk.symbolic.induction import beginnings
from specchk.symbolic.induction.bmc import bounded
from specchk.symbolic.induction.encode.program import System
from specchk.symbolic.induction.prove import ProofOptions, prove

SPEC = """\
spec begins
type Offset = nat upto 3
var a : Offset = 0
{lines}
action go():
    a' = a + 1
invariant safe: a >= 0
deadlock ok
model one:
    expect holds
"""
UNDEFINED = [("undefined", "init")]


def answer(verdict: Verdict) -> object:
    """The names of the violations, or the reason why there is no verdict, or its kind."""
    match verdict:
        case Violated():
            return [(one.kind, one.name) for one in verdict.violations]
        case Inconclusive():
            return verdict.reason
    return type(verdict).__name__


def is_about_beginnings(given: object) -> bool:
    """Whether an answer concerns the initial states themselves."""
    return given == UNDEFINED or str(given).endswith(
        ("so there is nothing to check", "so no step was searched")
    )


def answers(program: Program) -> list[object]:
    """The answers of a proof by induction and of bounded model checking."""
    proof = prove(program, ProofOptions(workers=1)).verdict
    return [answer(proof), answer(bounded(program, 1, Budget()).verdict)]


def of_reference(program: Program) -> object:
    return answer(reference.search(program, Options(Budget(max_states=300), symmetry=False)).verdict)


@pytest.mark.parametrize("lines", [
    "var x : 0..3\ninit: 6 // x > 2", "var x : 0..3 = 7", "var x : 0..3\ninit: x > 9",
    "var x : 0..9000\ninit: 9000 // (x - 8000) > -9000", "var x : 0..9000\ninit: x > 5 and 8 // x > 9",
    "var x : 0..3 in 2..1\ninit: 1 // 0 == x", "constraint con: a > 1",
    "var x : 0..9000\ninit: x > 5\nconstraint con: x < 4",
])  # fmt: skip
def test_a_proof_reports_initial_states_as_the_reference_does(lines, tmp_path):
    """Whether their values are enumerated or left to the solver."""
    program = program_of(SPEC.format(lines=lines), tmp_path)
    expected = of_reference(program)
    assert is_about_beginnings(expected)
    assert answers(program) == [expected, expected]


def test_an_init_that_is_undefined_beyond_the_horizon_is_a_violation(tmp_path):
    """The horizon of a search hides it, and a proof is for all offsets."""
    program = program_of(SPEC.format(lines="var x : Offset\ninit: 90 // (x - 9) < 91"), tmp_path)
    assert of_reference(program) == "HoldsWithin"
    assert answers(program) == [UNDEFINED, UNDEFINED]


VALUES = (
    "x",
    "y",
    "x + y",
    "6 // x",
    "y - x",
    "get(o)",
    "get(o, 1)",
    "2",
    "6 // (y - 2)",
    "min(s)",
    "card(s)",
)
VARIABLES = (
    ("var x : 0..3", " = 1"), ("var y : 0..3", " in {1, 3}"), ("var f : bool", " = true"),
    ("var o : (0..2)?", " = none"), ("var s : set[0..2]", " = {}"),
)  # fmt: skip


def drawn(random: Random) -> str:
    """A spec with a few conditions on its initial states, any of which may be undefined."""

    def value() -> str:
        return random.choice(VALUES)

    def test() -> str:
        order = random.choice(("<", "<=", "==", "!=", ">"))
        return random.choice((f"{value()} {order} {value()}", "f", "o == none", "s == {}", "x in s"))

    def condition() -> str:
        return random.choice((
            test(), f"{test()} and {test()}", f"{test()} or {test()}", f"({test()} implies {test()})",
            f"x == {value()}", f"y in {{{value()}, {value()}}}", f"let z = {value()}: z > x",
        ))  # fmt: skip

    lines = [name + random.choice(("", start)) for name, start in VARIABLES]
    lines += [f"init: {condition()}" for _ in range(random.randint(0, 3))]
    lines += [f"constraint con: {test()}"] * (random.random() < 0.4)
    return SPEC.format(lines="\n".join(lines))


def different(seeds: range, folder: Path) -> list[int]:
    """The seeds for which a proof and the reference report initial states differently."""
    found = []
    for seed in seeds:
        try:
            program = program_of(drawn(Random(seed)), folder)
        except SpecError:
            continue
        expected, own = of_reference(program), list[object]()
        with suppress(ReplayFailed):  # a claim that the reference confutes
            own = answers(program)
        if not own or any(
            given != expected for given in own if any(map(is_about_beginnings, (given, expected)))
        ):
            found.append(seed)
    return found


def test_drawn_initial_states_are_reported_alike(tmp_path, monkeypatch):
    """Also where no value is enumerated."""
    assert different(range(40), tmp_path) == []
    monkeypatch.setattr(beginnings, "has_first_states", lambda _: False)
    assert different(range(40, 120), tmp_path) == []


@pytest.mark.parametrize(("module", "name"), [(System, "unclear_initial"), (beginnings, "_is_impossible")])
def test_a_planted_omission_is_detected(module, name, tmp_path, monkeypatch):
    """An undefined `init` that is not searched for, and initial states that are assumed to exist."""
    monkeypatch.setattr(beginnings, "has_first_states", lambda _: False)
    monkeypatch.setattr(module, name, lambda *_: False)
    assert different(range(40, 120), tmp_path)
