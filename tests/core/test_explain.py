"""Blame: the part that decided, the values of the names bound around it, the values in it."""

from __future__ import annotations

import pytest
from spec_texts import first, outcome_of

from specchk.meaning.explain import Blame

SPEC = """\
spec blamed
sort R
type Msg = Fetch(o: 0..3) | Ping
var x : 0..3 = 2
var m : R -> 0..3 = { z: 1 for z in R }
var o : Msg = Fetch(o: 3)
var p : R? = none
action stay():
    skip
def low(n: int): bool = n < 2
def all_low(): bool =
    let limit = 1
    forall a in R: m[a] < limit
"""


def blamed(invariant: str, kind: str = "invariant") -> Blame:
    blame = first(outcome_of(f"{SPEC}{kind} p1: {invariant}\nmodel two:\n    R = 2\n")).blame
    assert blame is not None
    return blame


@pytest.mark.parametrize(
    ("invariant", "truth"),
    [("x < 3 and x < 2", False), ("not (x == 2)", True), ("not (x == 1) implies x < 2", False),
     ("get(p) in R", None)],
)  # fmt: skip
def test_a_part_has_the_value_that_decided(invariant: str, truth: bool | None) -> None:
    """Below a `not` a true part makes the invariant false; an undefined one has no value."""
    assert blamed(invariant).truth is truth


@pytest.mark.parametrize(
    ("invariant", "text", "bindings"),
    [
        ("x < 3 and x < 2 and x < 1", "x < 2", {}),
        ("x < 2 or x < 1", "x < 2 or x < 1", {}),
        ("x == 2 implies x < 2", "x < 2", {}),
        ("forall a in R: m[a] == 0", "m[a] == 0", {"a": "r1"}),
        ("forall a, b in R: a != b implies m[a] != m[b]", "m[a] != m[b]", {"a": "r1", "b": "r2"}),
        ("exists a in R: m[a] == 0", "exists a in R: m[a] == 0", {}),
        ("not (x == 2)", "x == 2", {}),
        ("not (exists a in R: m[a] == 1)", "m[a] == 1", {"a": "r1"}),
        (
            "not (x == 2 and m[get(p, choose a in R: true)] == 1)",
            "x == 2 and m[get(p, choose a in R: true)] == 1",
            {},
        ),
        ("(let y = x + 1: y < 3)", "y < 3", {"y": "3"}),
        ("if x == 2 then x < 2 else true", "x < 2", {}),
        ("match o { Fetch f: f.o < 3, Ping: true }", "f.o < 3", {"f": "{ o: 3 }"}),
        ("match p { some a: true, none: x < 1 }", "x < 1", {}),
        ("low(x)", "x < 2", {}),
        ("all_low()", "m[a] < limit", {"a": "r1"}),
        ("x == 2 iff x == 3", "x == 2 iff x == 3", {}),
    ],
)
def test_blame_walks_into_the_part_that_decides(invariant: str, text: str, bindings: dict[str, str]) -> None:
    """Through and, or, implies, quantifiers, not, let, if, match and definitions, binding as it goes."""
    blame = blamed(invariant)
    assert blame.text == text
    assert dict(blame.bindings) == bindings


@pytest.mark.parametrize(
    ("invariant", "text", "values"),
    [
        ("apart(x, x + 1)", "x < 1 or (x + 1) < 1", {"x": "2", "x + 1": "3"}),
        ("forall r in R: apart(m[r], x)", "m[r] < 1 or x < 1", {"m[r]": "1", "x": "2"}),
        ("twice(x + 1)", "(x + 1) * 2 < n_is_kept()", {"(x + 1) * 2": "6"}),
        ("twice(twofold(x))", "(x * 2) * 2 < n_is_kept()", {"(x * 2) * 2": "8"}),
        (f"forall long in R: twice({' + '.join(['m[long]'] * 9)})", "n * 2 < n_is_kept()", {"n * 2": "18"}),
    ],
)
def test_blame_is_in_the_words_of_the_caller(invariant: str, text: str, values: dict[str, str]) -> None:
    """A parameter is shown as its argument, in parentheses where it needs them, unless that is too long."""
    helpers = (
        "def apart(a: int, b: int): bool = a < 1 or b < 1\ndef n_is_kept(): int = 0\n"
        "def twice(n: int): bool = n * 2 < n_is_kept()\ndef twofold(n: int): int = n * 2\n"
    )
    blame = first(outcome_of(f"{SPEC}{helpers}invariant p1: {invariant}\nmodel two:\n    R = 2\n")).blame
    assert blame is not None
    assert (blame.text, dict(blame.values)) == (text, values)


@pytest.mark.parametrize(
    ("invariant", "text", "values"),
    [
        (
            "forall a in R: deep(a, 2)",
            "exists c in R: some(c) == p and m[a] > 0 and deep(c, depth - 1)",
            {},
        ),
        (
            "size(x, 2) < 2",
            "size(x, 2) < 2",
            {
                "x + sum(size(i, k - 1) for i in 0..1 if i < x and k > 0)": "3",
                "sum(size(i, k - 1) for i in 0..1 if i < x and k > 0)": "1",
                "x": "2",
            },
        ),
        ("total([x, 0]) < 2", "total([x, 0]) < 2", {"total([x, 0])": "2"}),
    ],
)
def test_blame_is_in_the_words_of_the_outermost_call(
    invariant: str, text: str, values: dict[str, str]
) -> None:
    """The calls inside a recursive definition have its text, and other arguments."""
    definitions = (
        "def deep(b: R, depth: 0..2): bool decreases depth =\n"
        "    exists c in R: some(c) == p and m[b] > 0 and deep(c, depth - 1)\n"
        "def size(n: int, k: int): int decreases k =\n"
        "    n + sum(size(i, k - 1) for i in 0..1 if i < n and k > 0)\n"
        "def total(s: seq[0..3] upto 2): int decreases s = if s == [] then 0 else head(s) + total(tail(s))\n"
    )
    text_of = f"{SPEC}{definitions}invariant p1: {invariant}\nmodel two:\n    R = 2\n"
    blame = first(outcome_of(text_of)).blame
    assert blame is not None
    assert blame.text == text
    assert dict(blame.values) == values


def test_a_definition_of_the_state_after_the_step_is_not_reworded() -> None:
    """`low(x)'` is the definition after the step; only a name is replaced by another."""
    grow = "action up():\n    x' = 3\n"
    blame = first(outcome_of(f"{SPEC}{grow}step invariant s: low(x)'\nmodel two:\n    R = 2\n")).blame
    assert blame is not None
    assert (blame.text, dict(blame.values)) == ("low(x)'", {"x'": "2"})


def test_blame_shows_the_operands_that_are_not_plain() -> None:
    """A comparison shows the values of its sides, except for constants."""
    assert dict(blamed("m[get({r: some(r) for r in R}[choose a in R: true])] + x < 3").values)["x"] == "2"
    assert dict(blamed("x < 2").values) == {"x": "2"}
    assert dict(blamed("x + 1 < 2 or m[get(p, choose a in R: true)] > 1").values)["x + 1"] == "3"


def test_blame_of_a_step_invariant_shows_both_states() -> None:
    """Primed operands have the value after the step."""
    grow = "action up():\n    x' = 3\n"
    blame = first(outcome_of(f"{SPEC}{grow}step invariant s: x' <= x\nmodel two:\n    R = 2\n")).blame
    assert blame is not None
    assert dict(blame.values) == {"x'": "3", "x": "2"}


def test_blame_of_an_undefined_property_is_its_reason() -> None:
    """The innermost part without a value, and the reason."""
    blame = blamed("forall a in R: m[a] // (x - 2) < 3")
    assert blame.text == "division by zero"
    assert blame.span.text == "m[a] // (x - 2)"
