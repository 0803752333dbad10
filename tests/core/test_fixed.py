"""Variables with one value in every state, and conditions impossible because of it, against the search."""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement.both import of_seed
from laws.sources import ROOT
from seeded import few_of
from specchk.cli.deciding import decided_conditions
from specchk.compile.instantiate import instantiate
from specchk.explore import fixed as variables
from specchk.explore.conditions import conditions
from specchk.explore.fixed import fixed, is_never_true
from specchk.ir.program import Program
from specchk.ir.types import Map
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty, Undefined
from specchk.search.budget import Budget

# The marks are for the old rule: with today's, they are read and never set, but by who has one.
SPEC = """spec marks
sort Node
const old : bool = false
var marked : Node -> bool = { n: false for n in Node }
var last : 0..3 = 0
var turns : nat upto 3 = 0

action mark(n: Node):
    require turns > 0
    marked'[n] = old and turns == 2
action pass_on(n: Node, m: Node):
    require marked[n] and not marked[m]
    marked'[m] = true
    last' = 1
action turn():
    require not (exists n in Node: marked[n])
    turns' = turns + 1
    last' = last
model today:
    Node = 2
    expect holds
model earlier extends today:
    old = true
    expect holds
"""
MOST = 3000  # states of a random spec or an example that are compared


def fixed_names(program: Program) -> dict[str, object]:
    return {program.variables[slot].name: value for slot, value in fixed(program).items()}


def differences(program: Program) -> list[str]:
    """The variables that have another value than the assumed one, in one of the first states."""
    supposed, stepper = fixed(program), Stepper(program)
    seen = set(initial_states(program))
    left = list(seen)
    wrong = set()
    while left and len(seen) < MOST:
        state = left.pop(0)
        for slot, value in supposed.items():
            is_map = isinstance(program.variables[slot].type, Map)
            if any(one != value for one in (state[slot] if is_map else [state[slot]])):
                wrong.add(program.variables[slot].name)
        new = {after for _, _, after in stepper.successors(state)} - seen
        seen |= new
        left += new
    return sorted(wrong)


def impossible(program: Program) -> set[tuple[str, str, str]]:
    """The conditions that are proved impossible."""
    supposed = fixed(program)
    return {c.key for c, witness in conditions(program).items() if is_never_true(witness.body, supposed)}


def test_what_a_rule_of_the_past_sets_is_fixed_today() -> None:
    """Two assumptions that depend on each other, and on a constant."""
    checked = check("marks.spec", SPEC)
    today, earlier = (instantiate(checked, model).program for model in ("today", "earlier"))
    assert fixed_names(today) == {"marked": False, "last": 0}
    assert fixed_names(earlier) == {}
    shown = {(owner, effect) for owner, effect, _ in impossible(today)}
    assert shown == {("pass_on", "allows"), ("pass_on", "forbids"), ("turn", "forbids")}
    assert impossible(earlier) == set()


def test_what_is_impossible_decides_in_no_search() -> None:
    """The search finds no state for the impossible ones, and some for the rest."""
    program = instantiate(check("marks.spec", SPEC), "today").program
    found = decided_conditions(program, quiet=True)
    assert {c.key for c in found.never} >= impossible(program)
    assert found.deciding


@pytest.mark.parametrize("seed", few_of(range(16), 8))
def test_fixed_variables_of_random_specs_are_fixed(seed: int, tmp_path: Path) -> None:
    """In all states of the search; and no condition that decides in one was proved impossible."""
    program = of_seed(seed, tmp_path)
    if program is None:
        return
    try:
        assert differences(program) == []
    except (Faulty, Undefined):
        return
    decided = decided_conditions(program, Budget(max_states=MOST), quiet=True)
    assert not {c.key for c in decided.deciding} & impossible(program)


@pytest.mark.system
def test_fixed_variables_of_the_examples_are_fixed() -> None:
    """For every model of every example, in its first states."""
    compared = 0
    for path in sorted((ROOT / "spec" / "examples").glob("*.spec")):
        checked = check(str(path))
        for model in [*checked.spec.models][:2]:
            program = instantiate(checked, model).program
            supposed = fixed(program)
            assert not supposed or differences(program) == [], (path.name, model)
            compared += len(supposed)
    assert compared > 0


def test_a_wrong_supposition_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: if no assumption is dropped, three variables have other values."""
    monkeypatch.setattr(variables, "_keeps", lambda *_: True)
    program = instantiate(check("marks.spec", SPEC), "earlier").program
    assert differences(program) == ["last", "marked", "turns"]
