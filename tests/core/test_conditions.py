"""Conditions that decide: written by hand, and compared with the values in single states."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from spec_texts import instance_of, small_spec

from seeded import few_of
from specchk.cli.commands.conditions import command
from specchk.compile.instantiate import instantiate
from specchk.explore.conditions import Condition, Decided, conditions, decided, with_conditions
from specchk.ir.nodes import And, Assign, Const, Expr, Guard
from specchk.ir.program import Action, Program
from specchk.ir.totality import is_total
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.values import universe
from specchk.native.engine import NativeOptions
from specchk.native.engine import search as native
from specchk.search.budget import Budget
from specchk.search.engine import Options, Search, explore
from specchk.search.reference import ReferenceEngine, search

SPEC = Path(__file__).parents[2] / "spec"
TANK = """\
spec tank
const limit : int = 3
type Level = 0..3
var level : Level = 0
var locked : bool = false
var alarm : Level? = none
action fill():
    require level < limit and not locked
    require level < 3
    level' = level + 1
action drain(n: Level):
    require n > 0 and n <= level
    require locked or level == 3
    level' = level - n
action toggle():
    when level >= 2 and not locked:
        locked' = true
    else:
        locked' = false
action sound():
    let over = alarm else skip
    require over < level
    alarm' = none
action watch():
    any n in { m for m in Level if m <= level }:
        require n >= 1 and alarm == none
        alarm' = some(n)
invariant dry_or_wet: level == 0 or level > 0 or locked
invariant locked_late: locked and level > 3 implies alarm != none
model m:
    expect holds
"""


def program_of(text: str, folder: Path) -> Program:
    file = folder / "of.spec"
    file.write_text(text, encoding="utf-8")
    return instantiate(check(str(file))).program


def decide(program: Program) -> Decided:
    found = conditions(program)
    outcome = search(with_conditions(program, found.values()), Options(keep_going=True))
    return decided(program, found, outcome)


def shown(found: tuple[Condition, ...]) -> set[tuple[str, str, str]]:
    return {(one.owner, one.effect, one.span.text) for one in found}


def test_what_never_decides_is_listed(tmp_path: Path) -> None:
    """Each with the effect that it never has alone; all others have it."""
    found = decide(program_of(TANK, tmp_path))
    assert shown(found.never) == {
        ("fill", "forbids", "level < limit"),  # the next guard says the same
        ("fill", "forbids", "level < 3"),
        ("dry_or_wet", "fulfils", "locked"),
        ("locked_late", "fulfils", "locked"),
        ("locked_late", "fulfils", "alarm != none"),
    }
    assert {
        ("fill", "forbids", "locked"),
        ("sound", "forbids", "alarm"),
        ("watch", "forbids", "n >= 1"),
    } <= shown(found.deciding)
    assert not found.unknown
    assert found.is_complete


def test_a_part_that_gives_another_a_meaning_decides(tmp_path: Path) -> None:
    """If it is false the other has no value, and is not evaluated."""
    text = """spec guarded
type Place = 0..2
var here : Place? = none
action come(): here' = some(1)
action go():
    require here != none and get(here) < 2
    here' = none
"""
    found = decide(program_of(text, tmp_path))
    assert shown(found.never) == {("go", "forbids", "get(here) < 2")}
    assert ("go", "forbids", "here != none") in shown(found.deciding)


def test_a_part_decides_only_where_the_others_were_found_true(tmp_path: Path) -> None:
    """Also if these may have no value: `on` is true in states in which the other forbids the step."""
    text = """spec partial
type Place = 0..2
var here : Place = 1
var on : bool = true
var go : bool = false
action both():
    require on and 2 // here > 2
    go' = true
action first():
    require on
    require 2 // here > 2
    go' = true
action flip(): on' = not on
invariant calm: on implies (not go or not (on and 2 // here > 2))
"""
    found = decide(program_of(text, tmp_path))
    assert {("both", "allows", "on"), ("first", "allows", "on")} <= shown(found.never)
    assert {("both", "forbids", "on"), ("first", "forbids", "on")} <= shown(found.deciding)


def test_a_condition_without_a_value_hides_no_budget(tmp_path: Path) -> None:
    """The verdict is a violation, and conditions may decide in the unsearched part."""
    text = """spec cut
var n : 0..9 = 0
action up():
    require n < 9
    n' = n + 1
invariant low: 1 // n > 0 or n < 5
deadlock ok
"""
    program = program_of(text, tmp_path)
    found = conditions(program)
    ended = search(with_conditions(program, found.values()), Options(Budget(max_states=3), keep_going=True))
    assert not decided(program, found, ended).is_complete


def test_a_budget_that_ran_out_is_no_verdict(tmp_path: Path) -> None:
    program = program_of(TANK, tmp_path)
    found = conditions(program)
    ended = search(with_conditions(program, found.values()), Options(Budget(max_states=3), keep_going=True))
    assert not decided(program, found, ended).is_complete


FAULTY = """spec faulty
var n : 0..4 = {start}
action up():
    require n < 4
    n' = n + 1
action odd():
    require 6 // (n - 1) > 9
{constraint}
"""


@pytest.mark.parametrize(
    ("start", "constraint", "ended"),
    [
        ("0", "", "nothing was searched where `odd` is undefined"),
        ("3 // 0", "", "nothing was searched where `init` is undefined"),
        ("2", "constraint near: 1 // (3 - n) > 0", "nothing was searched where `near` is undefined"),
        ("0\ninit: n == 1", "", "no state satisfies `init`, so there is nothing to check"),
    ],
)
def test_behind_what_is_undefined_nothing_was_searched(
    start: str, constraint: str, ended: str, tmp_path: Path
) -> None:
    """Such a state has no successors, so a condition that does not decide here may decide in them."""
    found = decide(program_of(FAULTY.format(start=start, constraint=constraint), tmp_path))
    assert (found.ended, found.is_complete, found.is_budget) == (ended, False, False)


def parts(action: Action) -> list[Expr] | None:
    """The parts of an action's guards; None unless it is guards, then assignments, all with values."""
    conditions = [stmt.condition for stmt in action.body if isinstance(stmt, Guard)]
    if not conditions or not all(isinstance(stmt, Guard | Assign) for stmt in action.body):
        return None
    found = [part for one in conditions for part in (one.parts if isinstance(one, And) else (one,))]
    return found if all(is_total(part) for part in found) else None


def alone(program: Program, action: Action, wanted: list[Expr]) -> set[str]:
    """The places of the parts that are false in some state, for some arguments, while all others are true."""
    engine = ReferenceEngine(Search(with_conditions(program, ()), Options(symmetry=False)))
    explore(engine)
    tests = [Evaluator(len(program.variables)).compile(part) for part in wanted]
    found = set()
    rows: list[list[object]] = [[]]
    for param in action.params:
        rows = [[*row, value] for row in rows for value in universe(param.type)]
    for state in engine.parents:
        for row in rows:
            env = [*state, *state, *row, *([0] * (action.locals + 8))]
            said = [bool(test(env)) for test in tests]
            if said.count(False) == 1:
                found.add(wanted[said.index(False)].span.where)
    return found


def forbidding(found: tuple[Condition, ...], action: Action) -> set[str]:
    return {one.span.where for one in found if (one.owner, one.effect) == (action.name, "forbids")}


@pytest.mark.parametrize("block", few_of(range(4)))
def test_guards_decide_as_in_single_states(block: int, tmp_path: Path) -> None:
    """In random specs: exactly the parts that some state and some arguments show."""
    compared = 0
    for seed in range(block * 40, block * 40 + 40):
        try:
            program = instance_of(small_spec(Random(seed))).program
        except SpecError:  # a place assigned twice on one path
            continue
        found = decide(program)
        for action in program.actions:
            wanted = parts(action)
            leaves = {part.span.where for part in wanted or () if not isinstance(part, Const)}
            said = forbidding(found.deciding, action)
            listed = said | forbidding(found.never, action)
            # Where a part is made of parts, or two are the same text, single states say something else.
            if wanted is None or not found.is_complete or listed != leaves or len(leaves) < len(wanted):
                continue
            compared += 1
            assert said == alone(program, action, wanted), (seed, action.name)
    assert compared > 3


@pytest.mark.parametrize(
    ("file", "model"),
    [
        ("two_round_fetch", "small"),
        ("examples/peterson", "right"),
        ("examples/two_phase_commit", "three"),
        ("examples/lossy_channel", "numbered"),
    ],
)
def test_the_engines_agree_on_what_decides(file: str, model: str) -> None:
    program = instantiate(check(str(SPEC / f"{file}.spec")), model).program
    found = conditions(program)
    asked = with_conditions(program, found.values())
    compiled = decided(program, found, native(asked, NativeOptions(keep_going=True)))
    assert compiled.deciding
    assert compiled == decided(program, found, search(asked, Options(keep_going=True)))


def test_of_several_models_any_may_have_it_decide(tmp_path: Path) -> None:
    """The report lists what decides in none of them; JSON has each model's."""
    file = tmp_path / "tank.spec"
    file.write_text(f"{TANK}model low:\n    limit = 2\n    expect holds\n", encoding="utf-8")
    run = CliRunner().invoke(command, [str(file), "--model", "m", "--model", "low", "--json"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.output)
    assert [model["model"] for model in found["models"]] == ["m", "low"]
    never = {(one["owner"], one["text"]) for one in found["undecided"]}
    assert ("fill", "level < limit") not in never  # in `low` it does
    assert ("fill", "level < 3") in never
    text = CliRunner().invoke(command, [str(file)]).output
    assert "never alone forbids the step: `level < limit` at" in text
    assert text.splitlines()[0].endswith("tank, model m")


@pytest.mark.parametrize("domain", ["Node", "sent"])
def test_the_parts_below_a_forall_are_listed_over_any_set(domain: str, tmp_path: Path) -> None:
    """Also over one that may be empty, whose items are counted."""
    file = tmp_path / "sending.spec"
    file.write_text(
        "spec sending\nsort Node\nvar sent : set[Node] = {}\n"
        "action send(n: Node):\n    sent' = sent union {n}\n"
        f"invariant parts: forall n in {domain}, m in {domain}: n == m or 4 // card(sent union {{n}}) > 0\n"
        "model m:\n    Node = 2\n",
        encoding="utf-8",
    )
    found = json.loads(CliRunner().invoke(command, [str(file), "--json"]).output)["models"][0]
    texts = [one["text"] for kind in ("deciding", "never") for one in found[kind] if one["owner"] == "parts"]
    assert sorted(texts) == ["4 // card(sent union {n}) > 0", "n == m"]
