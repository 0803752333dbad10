"""The limits of a search: budgets, unexercised parts, and symmetry where it must not be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from spec_texts import first, outcome_of

from specchk.ir.types import Bag, Int, Option, Seq, Type
from specchk.ir.walk import expressions
from specchk.meaning.values import universe
from specchk.search import budget
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.verdict import Holds, Inconclusive, Outcome, Violated

PLAIN = Options(symmetry=False)
COUNTER = """\
spec counter
var x : 0..9 = 0
var y : bool = false
action up():
    require x < 3
    x' = x + 1
action flip():
    y' = not y
"""


def run(properties: str, options: Options = PLAIN, base: str = COUNTER) -> Outcome:
    return outcome_of(f"{base}{properties}\nmodel only:\n    expect holds\n", options)


@pytest.mark.parametrize(
    ("budget", "option"),
    [(Budget(max_states=100), "--max-states"), (Budget(max_seconds=1e-9), "--max-seconds"),
     (Budget(max_memory_bytes=1), "--max-memory")],
)  # fmt: skip
def test_a_budget_that_ends_a_search_is_inconclusive(budget: Budget, option: str) -> None:
    """States, seconds, memory: the verdict names the option, and is never ok."""
    base = COUNTER.replace("0..9", "0..9999").replace("x < 3", "x < 9999")
    outcome = run("invariant safe: true", Options(budget, symmetry=False), base)
    assert isinstance(outcome.verdict, Inconclusive)
    assert outcome.verdict.budget
    assert option in outcome.verdict.reason
    assert outcome.statistics.distinct <= 102


def test_memory_is_counted_in_pages_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have 4 KiB on most machines, but not on all."""
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "9 5 1")
    monkeypatch.setattr(budget, "getpagesize", lambda: 1 << 16)
    assert budget.resident_bytes() == 5 << 16


def test_a_violation_found_before_the_budget_is_reported() -> None:
    """A budget ends a search, but keeps its findings."""
    outcome = run("invariant safe: x < 1", Options(Budget(max_states=3), symmetry=False))
    assert first(outcome).name == "safe"


def test_a_search_that_ends_after_a_violation_is_not_taken_for_a_whole_one() -> None:
    """With `keep_going` the verdict is "violated" either way: a warning states that more may fail."""
    properties = "invariant safe: x < 1\ninvariant far: x < 3"
    cut = run(properties, Options(Budget(max_states=3), symmetry=False, keep_going=True))
    whole = run(properties, replace(PLAIN, keep_going=True))
    assert [first(outcome).name for outcome in (cut, whole)] == ["safe", "safe"]
    assert [text for text in cut.warnings if "the search is incomplete" in text and "--max-states" in text]
    assert not [text for text in whole.warnings if "incomplete" in text]


COVERED = """\
spec covered
var x : 0..2 = 0
action up():
    require x < 2
    when x == 0:
        x' = 1
    else:
        x' = 2
action never():
    require x * 2 == 3
    x' = 0
action half():
    either:
        require x == 9
        x' = 0
    or:
        skip
invariant asked: x == 1 implies x < 2
invariant idle: x * 2 == 3 implies x < 2
"""


def test_coverage_counts_what_a_hand_counts() -> None:
    """Three states: up runs twice, once each way; half's second branch runs in each state."""
    outcome = run("", base=COVERED)
    counts = {(p.owner, p.label): n for p, n in zip(outcome.program.points, outcome.coverage, strict=True)}
    assert counts["up", "up"] == 2
    assert counts["up", "when"] == counts["up", "else"] == 1
    assert counts["never", "never"] == 0
    assert counts["half", "half"] == counts["half", "either 2"] == 3
    assert counts["half", "either 1"] == 0  # its guard holds nowhere, so no step takes it
    assert counts["asked", "x == 1"] == 1
    assert counts["idle", "x * 2 == 3"] == 0


def test_what_never_happens_is_warned_of_and_fails_when_strict() -> None:
    """An action never enabled and an implication never triggered: a warning, under strict a violation."""
    relaxed = run("", base=COVERED)
    assert relaxed.verdict == Holds()
    assert any("action `never` is never enabled" in warning for warning in relaxed.warnings)
    assert any("the antecedent `x * 2 == 3` is never true" in warning for warning in relaxed.warnings)
    strict = run("", replace(PLAIN, strict=True), COVERED)
    assert isinstance(strict.verdict, Violated)
    assert [v.kind for v in strict.verdict.violations] == ["vacuous", "vacuous"]


def test_a_branch_that_constants_take_is_counted() -> None:
    """Its condition is decided beforehand, but its value is not: the guard stays, for the point inside."""
    base = """spec s
const On : bool = true
var x : 0..1 = 0
action go():
    require x == 0
    require if On then true else false
    x' = 1
"""
    outcome = run("", base=base)
    counts = {p.label: n for p, n in zip(outcome.program.points, outcome.coverage, strict=True)}
    assert counts["then"] == 1


@pytest.mark.parametrize("on", [False, True])
def test_a_branch_that_a_live_action_shares_is_warned_of(on: bool) -> None:
    """The constants disable one action that uses the definition, but not the other."""
    base = f"""spec s
const On : bool = {str(on).lower()}
var x : 0..3 = 0
def next(y: int): int = if y > 2 then 0 else y + 1
action off():
    require On and x < 1
    x' = next(x)
action go():
    require x < 1
    x' = next(x)
deadlock ok
"""
    assert any("the branch `then` is never taken" in warning for warning in run("", base=base).warnings)


@pytest.mark.parametrize(
    ("asked", "nothing"),
    [
        ("deadlock ok", True),
        ("deadlock ok\ndeadlock ok when x == 2", True),
        ("deadlock ok when x == 2", False),
        ("", False),
        ("deadlock ok\ninvariant low: x < 3", False),
        ("deadlock ok\nstep invariant grows: x' >= x", False),
        ("deadlock ok\nreachable top: x == 2", False),
    ],
)
def test_a_model_that_asks_for_nothing_is_warned_of(asked: str, nothing: bool) -> None:
    """It holds, but could not have failed; under strict that is a violation."""
    base = f"spec s\nvar x : 0..2 = 0\naction up():\n    require x < 2\n    x' = x + 1\n{asked}\n"
    told = any("no property is checked" in warning for warning in run("", base=base).warnings)
    assert told is nothing
    strict = run("", replace(PLAIN, strict=True), base).verdict
    assert (isinstance(strict, Violated) and strict.violations[0].kind == "vacuous") is nothing


@pytest.mark.parametrize("listed", ["card(0..n) >= 0 or true", "5 in 0..n", "card(subsets(0..n)) > 0"])
def test_a_set_too_large_to_list_is_a_finding_wherever_it_stands(listed: str) -> None:
    """Also if a later part would decide: the first part is evaluated, so it must have a value."""
    base = (
        f"spec s\nvar n : 0..2000000 = 0\naction up():\n    n' = 2000000\ninvariant p: n == 0 or {listed}\n"
    )
    verdict = run("", base=base).verdict
    assert isinstance(verdict, Violated)
    assert [(one.kind, one.name) for one in verdict.violations] == [("undefined", "p")]


def test_more_items_than_a_variable_holds_are_counted_all() -> None:
    """Twice 64 items exceed any variable, but are a value nevertheless: there are 129 such, and 65 fit."""
    base = f"""spec s
var s : seq[0..0] upto 64 = [{", ".join(["0"] * 64)}]
var c : 0..65 = 0
action count():
    c' = card({{ s ++ prefix(s, k) for k in 0..64 }} union {{ prefix(s, k) for k in 0..64 }})
"""
    verdict = run("", base=base).verdict
    assert isinstance(verdict, Violated)
    assert [(one.kind, one.name) for one in verdict.violations] == [("undefined", "count")]


@pytest.mark.parametrize("changes", [2, 3, 12, 40])
def test_what_is_changed_at_many_places_is_computed_once(changes: int) -> None:
    """However many nested parts a `with` changes: each branch is counted once, each part is copied once."""
    fields = [f"f{n}" for n in range(changes)]
    parts = [", ".join(f"{field}: {part}" for field in fields) for part in ("Pair", "zero()")]
    changed = ", ".join(f"{field}.a: if r.{field}.b == 0 then 1 else 0" for field in fields)
    base = f"""spec s
type Pair = {{ a: 0..1, b: 0..1 }}
def zero(): Pair = {{ a: 0, b: 0 }}
var r : {{ {parts[0]} }} = {{ {parts[1]} }}
action go():
    require r.f0.a == 0
    r' = {{ r with {changed} }}
"""
    outcome = run("", base=base)
    counts = [n for p, n in zip(outcome.program.points, outcome.coverage, strict=True) if p.label == "then"]
    assert counts == [1] * changes
    assert outcome.statistics.levels == (1, 1)
    assert sum(1 for _ in expressions(outcome.program)) < 40 * changes


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("const boss : R", "the constant `boss` at test.spec:6:1 names an element"),
        ("action pick():\n    p' = some(choose a in R: true)", "`choose` at test.spec:7:15 distinguishes"),
    ],
)
def test_symmetry_is_off_where_the_spec_tells_elements_apart(more: str, reason: str) -> None:
    """A constant that names an element, and `choose` over a sort, leave nothing to rename."""
    base = "spec s\nsort R\nvar p : R? = none\naction give(a: R):\n    p' = some(a)\n"
    boss = ", boss = first" if "boss" in more else ""
    text = f"{base}{more}\nmodel only:\n    R = 2{boss}\n"
    outcome = outcome_of(text, Options())
    assert outcome.statistics.symmetry.startswith("off (")
    assert reason in outcome.statistics.symmetry
    assert outcome.statistics.distinct == 3


@pytest.mark.parametrize(
    "body", ["choose a in R: true", "get(fold(R, none, (acc, a) => some(a)))"], ids=["choose", "fold"]
)
@pytest.mark.parametrize("guard", ["require on", "let x = option else skip", "when on:"])
def test_what_the_constants_disable_distinguishes_no_element(guard: str, body: str) -> None:
    """A `choose` or a fold that no step reaches costs no symmetry."""
    pick = f"{guard}\n        p' = some({body})" if guard == "when on:" else f"{guard}\n    p' = some({body})"
    text = f"""spec s
sort R
const on : bool = false
const option : bool? = none
var p : R? = none
action give(a: R):
    p' = some(a)
action pick():
    {pick}
model only:
    R = 2
"""
    outcome = outcome_of(text, Options())
    if guard == "when on:" and "fold" in body:  # unrolled by then: only whole actions are left out
        assert outcome.statistics.symmetry.startswith("off (`fold` at ")
        return
    assert outcome.statistics.symmetry == "on (2 renamings)"
    assert outcome.statistics.distinct == 2


def test_a_constant_that_names_one_of_three_leaves_the_others_interchangeable() -> None:
    """Renamings that keep the constants are used: 2 of 6."""
    text = "spec s\nsort R\nconst boss : R\nvar p : R? = none\naction give(a: R):\n    p' = some(a)\n"
    outcome = outcome_of(f"{text}model only:\n    R = 3, boss = first\n", Options())
    assert outcome.statistics.symmetry == "on (2 renamings)"
    assert outcome.statistics.distinct == 3


@pytest.mark.parametrize("kind", [Seq(Int(0, 1 << 50), 0), Bag(Int(0, 1 << 50), 0)])
def test_a_collection_of_nothing_has_one_value_whatever_its_items(kind: Type) -> None:
    """They are not listed: there may be too many for memory."""
    assert universe(Option(kind)) == [(), ((),)]
