"""Steps: successors are those of the naive interpretation of the actions, by kind of statement."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from grown import plain_state
from hypothesis import assume, given, settings
from naive import Naive
from naive_values import Nothing
from spec_texts import HEADER, MODEL, instance_of, small_specs

from specchk.compile.instantiate import Instance
from specchk.lang.frontend import CheckedSpec, check
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty

NESTED = """\
any n in 1..2:
    any k in 1..2:
        require n != k
        either:
            x' = n
        or:
            when k == 2:
                x' = 3"""
MOST = 60  # states looked at in one random spec


def after_one(action: str, **start: str) -> list[dict[str, Any]]:
    """The distinct successors, as plain states, of the initial state by an action's body."""
    instance = instance_with(action, **start)
    stepper = Stepper(instance.program)
    (state,) = initial_states(instance.program)
    found = dict.fromkeys(after for _, _, after in stepper.successors(state))
    return [plain_state(instance, after) for after in found]


def instance_with(action: str, **start: str) -> Instance:
    text = HEADER
    for name, value in start.items():
        head, _, _ = next(line for line in HEADER.splitlines() if line.startswith(f"var {name} ")).partition(
            " = "
        )
        text = text.replace(
            next(s for s in text.splitlines() if s.startswith(f"var {name} ")), f"{head} = {value}"
        )
    body = "\n".join(f"    {line}" for line in action.splitlines())
    return instance_of(f"{text}\naction act():\n{body}\n{MODEL}")


def fault(action: str, **start: str) -> tuple[str, str]:
    """The reason and place of an action's undefinedness in the initial state."""
    instance = instance_with(action, **start)
    (state,) = initial_states(instance.program)
    with pytest.raises(Faulty) as caught:
        Stepper(instance.program).successors(state)
    return caught.value.undefined.reason, caught.value.undefined.span.text


def checked_or_twice(text: str) -> CheckedSpec | None:
    """The checked spec; None if the checker finds a place assigned twice."""
    try:
        return check("test.spec", text)
    except SpecError as error:
        if {d.code for d in error.diagnostics} != {"S404"}:
            raise
    return None


@settings(max_examples=60)
@given(small_specs())
def test_successors_are_those_of_the_naive_reading(text: str) -> None:
    """In every state the stepper gives the naive successors, equally often, and is faulty where they are."""
    checked = checked_or_twice(text)
    assume(checked is not None)
    assert checked is not None
    instance = instance_of(text)
    stepper, naive = Stepper(instance.program), Naive(checked, instance.model)
    queue = initial_states(instance.program)
    assert [plain_state(instance, state) for state in queue] == naive.initial()
    for state in queue:
        before = plain_state(instance, state)
        try:
            wanted = Counter((name, after) for name, after in naive.successors(before))
        except Nothing:
            with pytest.raises(Faulty):
                stepper.successors(state)
            continue
        successors = stepper.successors(state)
        names = [action.name for action in instance.program.actions]
        assert Counter((names[i], plain_state(instance, after)) for i, _, after in successors) == wanted
        if len(queue) < MOST:
            queue += [after for after in dict.fromkeys(s[2] for s in successors) if after not in queue]


def test_what_is_not_assigned_stays() -> None:
    """An action that assigns x leaves every other variable unchanged."""
    (after,) = after_one("x' = 2", h="1", t="R")
    (before,) = [
        plain_state(i, s) for i in [instance_with("skip", h="1", t="R")] for s in initial_states(i.program)
    ]
    assert after == {**before, "x": 2}


def test_right_hand_sides_read_the_state_before() -> None:
    """X' = h and h' = x swap, in either order."""
    (after,) = after_one("x' = h\nh' = x", x="2", h="1")
    assert (after["x"], after["h"]) == (1, 2)


@pytest.mark.parametrize(
    ("action", "xs"),
    [
        ("any n in 1..2:\n    x' = n", {1, 2}),
        ("any n in {}:\n    x' = n", set()),
        ("x' in 1..3", {1, 2, 3}),
        ("either:\n    x' = 1\nor:\n    require false\n    x' = 2\nor:\n    skip", {0, 1}),
        ("when x == 0:\n    x' = 1\nelse:\n    x' = 2", {1}),
        ("when x == 1:\n    x' = 1", {0}),
        ("when x == 0:\n    require false\nx' = 1", set()),
        (NESTED, {0, 1, 2, 3}),
        ("let c = p else skip\nx' = 1", set()),
        ("let n = x + 2\nx' = n", {2}),
        ("any n in [2, 2, 1]:\n    x' = n", {1, 2}),
    ],
)  # fmt: skip
def test_each_kind_of_statement_takes_its_ways(action: str, xs: set[int]) -> None:
    """any, in, either, when, let and their nestings give these values of x after the step."""
    assert {after["x"] for after in after_one(action)} == xs


def test_what_follows_a_choice_follows_each_of_its_ways() -> None:
    """Statements after any/either/when run once for every way through them."""
    found = after_one("any n in 1..2:\n    x' = n\neither:\n    h' = 1\nor:\n    h' = 2")
    assert {(s["x"], s["h"]) for s in found} == {(1, 1), (1, 2), (2, 1), (2, 2)}


@pytest.mark.parametrize(
    ("action", "reason", "blamed"),
    [
        ("x' = 4", "4 is outside 0..3", "4"),
        ("x' = x - 1", "-1 is outside 0..3", "x - 1"),
        ("h' = h - 1", "-1 is outside nat upto 2", "h - 1"),
        ("x' = if h == 0 then 7 else 1", "7 is outside 0..3", "7"),
        ("m' = { z: (if z == z then 5 else 0) for z in R }", "5 is outside 0..2", "5"),
        ("q' = q ++ [get(p)]", "`get` of none", "get(p)"),
        ("require head(q) != head(q)", "`head` of an empty collection", "head(q)"),
        ("any r in R:\n    any s in R:\n        m'[r] = 1\n        m'[s] = 2",
         "this place is assigned twice in one step", "m'[s] = 2"),
    ],
)  # fmt: skip
def test_a_step_without_meaning_says_where_and_why(action: str, reason: str, blamed: str) -> None:
    """A range, an index, a guard or a place assigned twice: the reason and the innermost span."""
    assert fault(action) == (reason, blamed)


def test_a_full_sequence_is_undefined_and_not_cut() -> None:
    """Appending beyond `upto` has no value: it is no horizon."""
    reason, blamed = fault("any r in R:\n    q' = append(append(append(q, r), r), r)")
    assert reason == "3 items do not fit a limit of 2"
    assert blamed == "append(append(append(q, r), r), r)"


def test_a_step_past_a_horizon_is_not_taken_but_counted() -> None:
    """H' = h + 1 at the horizon has no successor, and nothing is truncated; other paths continue."""
    instance = instance_with("either:\n    h' = h + 1\nor:\n    x' = 1", h="2")
    stepper = Stepper(instance.program)
    (state,) = initial_states(instance.program)
    (found,) = stepper.successors(state)
    assert plain_state(instance, found[2])["h"] == 2
    assert stepper.horizon_cuts == 1


def test_different_places_of_one_variable_may_be_assigned() -> None:
    """m'[r] and m'[s] in one step are fine where r and s differ."""
    body = "any r in R:\n    any s in R:\n        require r != s\n        m'[r] = 1\n        m'[s] = 2"
    assert {tuple(after["m"].values()) for after in after_one(body)} == {(1, 2), (2, 1)}


def test_one_action_can_be_asked_alone() -> None:
    """of_action gives that instance's successors, even if another action is undefined."""
    text = f"{HEADER}\naction bad():\n    x' = 9\naction good(n: 1..2):\n    x' = n\n{MODEL}"
    instance = instance_of(text)
    stepper = Stepper(instance.program)
    (state,) = initial_states(instance.program)
    ((index, args, after),) = stepper.of_action(state, 1, (2,))
    assert (index, args, plain_state(instance, after)["x"]) == (1, (2,), 2)
    assert stepper.of_action(state, 1, (3,)) == []
    with pytest.raises(Faulty):
        stepper.of_action(state, 0, ())


def test_successors_of_two_states_may_be_held_at_once() -> None:
    """Requesting another state's successors leaves the first list unchanged."""
    instance = instance_with("any n in 1..3:\n    x' = n")
    stepper = Stepper(instance.program)
    (state,) = initial_states(instance.program)
    held = stepper.successors(state)
    before = list(held)
    stepper.successors(held[0][2])
    assert held == before
