"""Search: complete, shortest, deterministic, and explicit about its limits."""

from __future__ import annotations

from contextlib import suppress

import pytest
from grown import plain_state
from hypothesis import given, settings
from msgspec.structs import replace
from naive import Naive
from naive_values import Dict, Nothing
from spec_texts import bfs, first, inside, instance_of, outcome_of, small_specs, timeless

from specchk.compile.instantiate import Instance
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.search.engine import Options, Search, explore
from specchk.search.reference import ReferenceEngine, search
from specchk.search.symmetry import Symmetry
from specchk.search.verdict import Holds, HoldsWithin, Inconclusive, Outcome, Trace, Violated

PLAIN = Options(symmetry=False)
ALL = Options(symmetry=False, keep_going=True)
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


def instance_or_none(text: str) -> Instance | None:
    try:
        return instance_of(text)
    except SpecError:
        return None


def walks(naive: Naive, instance: Instance, trace: Trace) -> bool:
    """Whether a trace starts initially and takes steps of the naive reading, each by the named action."""
    plain = [plain_state(instance, state) for state in trace.states]
    steps = zip(trace.steps, plain, plain[1:], strict=False)
    return plain[0] in naive.initial() and all(
        (step.action, after) in naive.successors(before) for step, before, after in steps
    )


def violations(naive: Naive) -> dict[str, int]:
    """The length of the shortest path to each kind of violation, by breadth-first search; -1 without one."""
    found: dict[str, int] = {}
    deadlock_ok = bool(naive.spec.deadlock)
    seen = naive.spec.properties.get("seen")
    if seen is not None and not any(inside(naive, s) and naive.holds(seen, s) for _, s in bfs(naive)):
        found["unreachable"] = -1
    for steps, state in bfs(naive):
        if not naive.holds(naive.spec.properties["safe"], state):
            found.setdefault("invariant", steps)
        if not inside(naive, state):
            continue
        try:
            successors = naive.successors(state)
            if not successors and not deadlock_ok and not cuts(naive, state):
                found.setdefault("deadlock", steps)
            if "rises" in naive.spec.properties and any(after["x"] < state["x"] for _, after in successors):
                found.setdefault("step invariant", steps + 1)
        except Nothing:
            found.setdefault("undefined", steps)
    if "undefined" in found:  # states are missing, one of which may be the witness
        found.pop("unreachable", None)
    return found


def cuts(naive: Naive, state: Dict) -> bool:
    """Whether some step is only missing because it exceeds a horizon: with a far one it exists."""
    far = Naive(check("far.spec", naive.spec.source.text.replace("upto 2 = 0", "upto 99 = 0")), naive.model)
    try:
        return bool(far.successors(state))
    except Nothing:
        return True


@settings(max_examples=40)
@given(small_specs())
def test_a_search_finds_what_a_naive_one_finds_in_as_few_steps(text: str) -> None:
    """Verdict, shortest lengths and distinct states equal those of a naive breadth-first search."""
    instance = instance_or_none(text)
    if instance is None:
        return
    naive = Naive(check("test.spec", text), instance.model)
    outcome = search(instance.program, ALL)
    wanted = violations(naive)
    found: dict[str, int] = {}
    for violation in outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ():
        steps = -1
        if violation.trace is not None:
            assert walks(naive, instance, violation.trace)
            steps = len(violation.trace.steps)
        found[violation.kind] = min(found.get(violation.kind, steps), steps)
    assert found == wanted
    assert outcome.statistics.distinct == len({s for _, s in bfs(naive) if inside(naive, s)})
    first_only = search(instance.program, PLAIN)
    assert isinstance(first_only.verdict, Violated) == bool(wanted)
    lengths = [steps for steps in wanted.values() if steps >= 0]
    if lengths:
        trace = first(first_only).trace
        assert trace is not None
        assert len(trace.steps) == min(lengths)


@settings(max_examples=20)
@given(small_specs())
def test_symmetry_changes_counts_but_no_verdict(text: str) -> None:
    """With symmetry: the same violations in as few steps, one state per orbit, traces of real steps."""
    instance = instance_or_none(text)
    if instance is None:
        return
    for size in ("2", "3"):
        sized = instance_of(text, R=size)
        naive = Naive(check("test.spec", text), sized.model)
        plain, reduced = search(sized.program, ALL), search(sized.program, replace(ALL, symmetry=True))
        lengths = [
            {(v.kind, v.name): len(v.trace.steps) if v.trace else -1 for v in o.verdict.violations}
            if isinstance(o.verdict, Violated)
            else {}
            for o in (plain, reduced)
        ]
        assert lengths[0] == lengths[1]
        for violation in reduced.verdict.violations if isinstance(reduced.verdict, Violated) else ():
            if violation.trace is None:
                continue
            assert walks(naive, sized, violation.trace)
            if violation.kind == "step invariant":
                before, after = (plain_state(sized, state) for state in violation.trace.states[-2:])
                assert after["x"] < before["x"]
            if violation.kind == "invariant":
                assert not naive.holds(
                    naive.spec.properties["safe"], plain_state(sized, violation.trace.last)
                )
        assert plain.statistics.depth == reduced.statistics.depth
        assert [name for name, _ in plain.witnesses] == [name for name, _ in reduced.witnesses]
        for (_, trace), (_, other) in zip(plain.witnesses, reduced.witnesses, strict=True):
            assert walks(naive, sized, other)
            assert len(trace.steps) == len(other.steps)
        assert plain.statistics.distinct == orbits(sized, reduced.statistics.distinct)


@settings(max_examples=20)
@given(small_specs())
def test_images_after_a_step_are_made_of_those_before_it(text: str) -> None:
    """Whether all of a step's variables are renamed or only the changed ones: the images are the same."""
    if instance_or_none(text) is None:
        return
    sized = instance_of(text, R="3")
    symmetry, stepper = Symmetry(sized.program), Stepper(sized.program)
    for before in sorted(states_of(sized))[:40]:
        images = list(symmetry.images(before))
        with suppress(Faulty):
            for _, _, after in stepper.successors(before):
                found = list(symmetry.images_like(after, before, images))
                assert found == list(symmetry.images(after))


def orbits(instance: Instance, representatives: int) -> int:
    """The states in the orbits of all reachable representatives, and the number of these."""
    symmetry = Symmetry(instance.program)
    reached = states_of(instance)
    classes = {symmetry.canonical(state) for state in reached}
    assert len(classes) == representatives
    return len(reached)


def states_of(instance: Instance) -> set[tuple[object, ...]]:
    """The reachable states inside the constraints, by a plain search that stores them."""
    engine = ReferenceEngine(Search(instance.program, ALL))
    explore(engine)
    return set(engine.parents)


@settings(max_examples=20)
@given(small_specs())
def test_two_runs_are_the_same_but_for_the_seconds(text: str) -> None:
    """Verdict, counts, coverage, warnings and traces are equal in two runs."""
    instance, again = instance_or_none(text), instance_or_none(text)
    if instance is None or again is None:
        return
    for options in (PLAIN, ALL, Options()):
        assert timeless(search(instance.program, options))[0] == timeless(search(again.program, options))[0]
        assert (
            timeless(search(instance.program, options))[1:4] == timeless(search(again.program, options))[1:4]
        )


def test_a_spec_without_violations_holds_with_all_its_states() -> None:
    """4 values of x times 2 of y: 8 states, 14 transitions and the initial one, 5 levels."""
    outcome = run("invariant safe: x < 4")
    assert outcome.verdict == Holds()
    numbers = outcome.statistics
    assert (numbers.distinct, numbers.generated, numbers.depth) == (8, 15, 5)
    assert numbers.levels == (1, 2, 2, 2, 1)


def test_several_violated_properties_are_all_reported_when_asked_for() -> None:
    """With keep_going each violated property has its own shortest trace, shortest first."""
    outcome = run("invariant a: x < 3\ninvariant b: x < 2\ninvariant c: true", ALL)
    assert isinstance(outcome.verdict, Violated)
    found = [(v.name, len(v.trace.steps)) for v in outcome.verdict.violations if v.trace is not None]
    assert found == [("b", 2), ("a", 3)]
    assert outcome.statistics.distinct == 8


def test_without_keep_going_the_level_of_the_first_violation_is_the_last() -> None:
    """The level is completed, so that the counts depend only on the program."""
    outcome = run("invariant b: x < 2")
    assert first(outcome).name == "b"
    assert outcome.statistics.levels == (1, 2, 2)
    assert outcome.statistics.distinct == 5


def test_a_violated_initial_state_is_a_trace_of_no_steps() -> None:
    """An invariant that is false at once."""
    violation = first(run("invariant safe: x > 0"))
    assert violation.trace is not None
    assert violation.trace.steps == ()


def test_a_step_invariant_fails_with_the_step_as_the_last_of_the_trace() -> None:
    """X' >= x with y' != y forbids flip; the trace ends with the failing step."""
    violation = first(run("step invariant still: x == 2 implies y' == y"))
    assert (violation.kind, violation.name) == ("step invariant", "still")
    assert violation.trace is not None
    assert [step.action for step in violation.trace.steps] == ["up", "up", "flip"]


def test_explaining_a_step_invariant_counts_no_coverage() -> None:
    """Coverage and horizon cuts are those of the search alone, not of rebuilding traces."""
    plain = run("step invariant fine: x >= 0", ALL)
    failing = run("step invariant fine: x == 2 implies y' == y", ALL)
    assert failing.coverage[-2:] == plain.coverage[-2:]  # the actions, after the implication


def test_witnesses_are_found_with_a_shortest_trace_or_missed() -> None:
    """A reachable witness is an outcome's evidence, an unreachable one a violation without a trace."""
    outcome = run("reachable seen: x == 2 and y\nreachable unseen: x > 3", ALL)
    assert [(name, len(trace.steps)) for name, trace in outcome.witnesses] == [("seen", 3)]
    assert (first(outcome).kind, first(outcome).name, first(outcome).trace) == ("unreachable", "unseen", None)


DEAD = COUNTER.replace("    y' = not y", "    require x == 0\n    y' = not y")


def test_a_state_without_successors_is_a_deadlock() -> None:
    """X = 3 has no step: found with its shortest trace."""
    violation = first(run("invariant safe: true", base=DEAD))
    assert (violation.kind, violation.name) == ("deadlock", "deadlock")
    assert violation.trace is not None
    assert len(violation.trace.steps) == 3


@pytest.mark.parametrize(
    "ok", ["deadlock ok", "deadlock ok when x == 3", "deadlock ok when y\ndeadlock ok when not y"]
)
def test_a_deadlock_that_is_ok_is_none(ok: str) -> None:
    """`deadlock ok` and a true condition, one of several, allow the end."""
    assert run(ok, base=DEAD).verdict == Holds()


def test_a_deadlock_outside_what_is_ok_is_found() -> None:
    """The condition concerns the state that ends."""
    violation = first(run("deadlock ok when y", base=DEAD))
    assert violation.trace is not None
    assert violation.trace.last == (3, False)


def test_a_state_whose_steps_pass_a_horizon_is_no_deadlock() -> None:
    """The verdict names the bound of the search, and the cut steps are counted."""
    outcome = run(
        "", base="spec h\nconst Max : int = 2\nvar x : nat upto Max = 0\naction up():\n    x' = x + 1\n"
    )
    assert outcome.verdict == HoldsWithin(("Max=2",))
    assert (outcome.statistics.distinct, outcome.statistics.horizon_cuts) == (3, 1)


def test_states_outside_a_constraint_are_checked_but_not_counted_or_expanded() -> None:
    """TLC's convention: x = 2 is checked, and nothing after it."""
    outcome = run("constraint small: x < 2\ninvariant safe: x < 3")
    assert outcome.verdict == HoldsWithin(("small",))
    assert outcome.statistics.distinct == 4
    assert outcome.statistics.generated == 9
    violation = first(run("constraint small: x < 2\ninvariant safe: x < 2"))
    assert violation.trace is not None
    assert len(violation.trace.steps) == 2


@pytest.mark.parametrize(
    ("properties", "name", "steps"),
    [
        ("invariant safe: 6 // (2 - x) > 0", "safe", 2),
        ("step invariant safe: 6 // (2 - x') > 0", "safe", 2),
        ("reachable safe: 6 // (2 - x) > 99", "safe", 2),
        ("reachable safe: x == 0 or 6 // (2 - x) > 99", "safe", 2),  # reached long before
        ("reachable safe: y or 6 // (1 - x) > 99", "safe", 1),  # reached in a state of the same level
        ("constraint safe: 6 // (2 - x) > -9", "safe", 2),
        ("deadlock ok when 6 // (3 - x) > 0", "deadlock", 3),
        ("action bad():\n    let n = 6 // (2 - x)\n    require n > 99", "bad", 2),
        ("action bad():\n    require 6 // (2 - x) > 99", "bad", 2),
    ],
)
def test_what_is_undefined_is_a_violation_wherever_it_stands(properties: str, name: str, steps: int) -> None:
    """In properties, constraints, deadlock conditions, values and guards: with its trace and reason."""
    violation = first(run(properties, base=DEAD if "deadlock" in properties else COUNTER))
    assert (violation.kind, violation.name) == ("undefined", name)
    assert violation.trace is not None
    assert len(violation.trace.steps) == steps
    assert violation.blame is not None
    assert violation.blame.text == "division by zero"


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        ("var z : 0..3 = 4", "4 is outside 0..3"),
        ("var z : 0..3 = 1 // 0", "division by zero"),
        ("var z : nat upto 3 = 4", "an initial value is above its horizon"),
        ("var z : 0..3 in 2..5", "4 is outside 0..3"),
        ("var z : 0..3\ninit: 1 // z > 0", "division by zero"),
    ],
)
def test_an_initial_value_without_meaning_is_a_violation(start: str, reason: str) -> None:
    """Initial values, choices and `init` predicates are checked like steps; there is no trace."""
    violation = first(run(start))
    assert (violation.kind, violation.name, violation.trace) == ("undefined", "init", None)
    assert violation.blame is not None
    assert violation.blame.text == reason


def test_initial_choices_and_predicates_give_all_initial_states() -> None:
    """`in` gives each element, `init` keeps those that satisfy it, and both combine."""
    text = "var a : 0..3 in {1, 3}\nvar b : 0..3\ninit: a + b == 4\n"
    outcome = run(text, base="spec i\n" + text.replace(text, "") + "deadlock ok\naction stay():\n    skip\n")
    assert outcome.statistics.levels == (2,)


def test_an_unsatisfiable_init_is_inconclusive() -> None:
    """No initial state means that nothing was checked, which is not ok."""
    verdict = run("init: x == 1").verdict
    assert isinstance(verdict, Inconclusive)
    assert "no state satisfies `init`" in verdict.reason


def test_too_many_candidates_for_init_are_refused() -> None:
    """A variable left open with too many values is a diagnostic, not a full memory."""
    with pytest.raises(SpecError, match="too many to enumerate"):
        run("var z : 0..99 -> bool\ninit: z[3]")
    with pytest.raises(SpecError, match="1000000000 initial states"):
        run("".join(f"var {name} : 0..999 in 0..999\n" for name in ("aa", "bb", "cc")))
