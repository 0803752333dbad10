"""Deadlocks and open choices: a state is a deadlock if every choice is refused, listed or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from zoned import search_zones as search

from agreement.both import program_of
from specchk.ir.program import Program
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.engine import Options
from specchk.search.verdict import Holds, HoldsWithin, Outcome, Violated
from specchk.symbolic.induction.bmc import bounded
from specchk.symbolic.zones.engine import ZoneOptions

HEAD = """spec open_choices
const MaxOffset : int
type Offset = nat upto MaxOffset
type Reply = {{ end: Offset, done: bool }}
var a : Offset = 0
var b : Offset = 2
var x : 0..3 = 0
{actions}{ends}
model m:
    MaxOffset = 3
"""
BETWEEN = """action go():
    any p in a..b:
        a' = p
"""
ABOVE = """action go():
    any p in Offset:
        require p > a
        a' = p
"""
ABOVE_AS_ARGUMENT = """action go(p: Offset):
    require p > a
    a' = p
"""
ABOVE_IN_A_RECORD = """action go():
    any r in Reply:
        require r.end > a and r.done
        a' = r.end
"""
RECORD_AS_ARGUMENT = """action go(r: Reply):
    require r.end > a and not r.done
    a' = r.end
"""
BRANCHES = """action go():
    a' = a + 1
action swap():
    either:
        require a >= 1
        x' = 1
    or:
        require a < 1
        x' = 2
"""
ENABLED = {
    "a range": BETWEEN,
    "all offsets": ABOVE,
    "an argument": ABOVE_AS_ARGUMENT,
    "a record": ABOVE_IN_A_RECORD,
    "a record as argument": RECORD_AS_ARGUMENT,
    "branches that share all states": BRANCHES,
}
STUCK = {
    "nothing above and below": """action go():
    any p in Offset:
        require p > a and p < a
        a' = p
""",
    "two choices that exclude each other": """action go(p: Offset):
    any q in Offset:
        require p < q and q < p
        a' = p
""",
    "an empty range": """action go():
    any p in b..a:
        a' = p
""",
    "a guard of the state alone": """action go(p: Offset):
    require a > b
    a' = p
""",
}
LATER = """action go():
    any p in Offset:
        require p > a and x == 0
        a' = p
action up():
    require a > 1 and x < 3
    x' = x + 1
"""


def spec(actions: str, folder: Path, ends: str = "") -> Program:
    program = program_of(HEAD.format(actions=actions, ends=ends), folder)
    assert program is not None
    return program


def all_engines(program: Program, depth: int = 6) -> dict[str, Outcome]:
    return {
        "reference": reference.search(program),
        "native": native.search(program),
        "symbolic": search(program, ZoneOptions(workers=1)),
        "bounded": bounded(program, depth, Options().budget),
    }


def deadlock(outcome: Outcome) -> int | None:
    """The length of the trace to the deadlock, if one was found."""
    if not isinstance(outcome.verdict, Violated):
        return None
    (violation,) = outcome.verdict.violations
    assert violation.kind == "deadlock"
    assert violation.trace is not None
    return len(violation.trace.steps)


@pytest.mark.parametrize("choice", sorted(ENABLED))
def test_a_state_with_one_good_choice_is_no_deadlock(choice, tmp_path):
    """Other choices do not matter, also if the only permitted one is beyond a listed horizon."""
    program = spec(ENABLED[choice], tmp_path)
    found = {
        "reference": reference.search(program), "native": native.search(program),
        "symbolic": search(program, ZoneOptions(workers=1)),
    }  # fmt: skip
    assert {name: deadlock(outcome) for name, outcome in found.items()} == dict.fromkeys(found)
    assert isinstance(found["symbolic"].verdict, Holds)
    assert type(found["reference"].verdict) is type(found["native"].verdict)
    if "record" not in choice:  # the encoding has no records with open parts
        assert deadlock(bounded(program, 4, Options().budget)) is None


@pytest.mark.parametrize("choice", sorted(STUCK))
def test_a_state_in_which_no_choice_is_good_is_a_deadlock(choice, tmp_path):
    """In every engine, at once, and whether or not offsets are listed."""
    found = all_engines(spec(STUCK[choice], tmp_path, ""))
    length = 0
    assert {name: deadlock(outcome) for name, outcome in found.items()} == dict.fromkeys(found, length)


def test_a_deadlock_behind_ends_of_a_horizon_is_found(tmp_path):
    """The smallest state of its level without steps is the horizon's end; another one is a deadlock."""
    found = all_engines(spec(LATER, tmp_path))
    assert {name: deadlock(outcome) for name, outcome in found.items()} == dict.fromkeys(found, 4)


def test_an_end_that_is_allowed_for_some_states_is_none_there(tmp_path):
    """`deadlock ok when` is evaluated only in states without steps."""
    found = all_engines(spec(LATER, tmp_path, "deadlock ok when x == 3"))
    assert {name: deadlock(outcome) for name, outcome in found.items()} == dict.fromkeys(found)


def test_an_end_that_nobody_can_decide_is_told(tmp_path):
    """An even number beyond the horizon may be chosen or not: no deadlock is reported, but a warning is."""
    program = spec(ABOVE.replace("p > a", "p > a and p % 2 == 0"), tmp_path)
    for outcome in (reference.search(program), native.search(program)):
        assert isinstance(outcome.verdict, HoldsWithin)
        assert any("a larger number may enable one" in warning for warning in outcome.warnings)
