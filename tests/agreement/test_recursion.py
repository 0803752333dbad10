"""Recursive definitions: all engines, compared with Python, and measures that do not decrease."""

from __future__ import annotations

import sys
from math import gcd
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agreement.both import differences, program_of
from agreement.recursive_specs import random_recursive_spec
from specchk.compile import recursion
from specchk.compile.instantiate import instantiate
from specchk.ir.nodes import Apply
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.native import engine as native
from specchk.native.values import expressions
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Holds, Violated
from specchk.symbolic.induction.prove import ProofOptions, prove
from specchk.symbolic.joins.engine import JoinOptions
from specchk.symbolic.joins.engine import search as symbolic

VALUES = """\
spec values
sort Node
type Row = seq[int] upto 4
var n : 0..5 = 3
var line : seq[0..9] upto 4 = [5, 2, 9]
var nodes : set[Node] = Node
var next : 0..4 -> set[0..4] = { 0: {1}, 1: {2, 0}, 2: {}, 3: {0}, 4: {4} }
var up : 0..4 -> 0..4? = { 0: none, 1: some(0), 2: some(0), 3: some(1), 4: some(3) }
def factorial(k: int): int decreases k = if k == 0 then 1 else k * factorial(k - 1)
def divisor(a: int, b: int): int decreases b = if b == 0 then a else divisor(b, a % b)
def fib(k: int): int decreases k = if k < 2 then k else fib(k - 1) + fib(k - 2)
def total(s: Row): int decreases s = if s == [] then 0 else head(s) + total(tail(s))
def total_of(s: Row, acc: int): int decreases len(s) =
    if s == [] then acc
    else total_of(tail(s), acc + head(s))
def reversed(s: Row): Row decreases 2 * len(s) = if s == [] then [] else reversed(tail(s)) ++ [head(s)]
def sorted(s: Row): Row decreases s =
    let least = if s == [] then 0 else min(elements(s))
    if s == [] then [] else [least] ++ sorted(without(s, least))
def without(s: Row, x: int): Row decreases s =
    if head(s) == x then tail(s) else [head(s)] ++ without(tail(s), x)
def each(s: Row, f: (int) => int): Row decreases s = if s == [] then [] else [f(head(s))] ++ each(tail(s), f)
def is_even(k: int): bool decreases k = k == 0 or is_odd(k - 1)
def is_odd(k: int): bool = k != 0 and is_even(k - 1)
def male(k: int): int decreases k = if k == 0 then 0 else k - female(male(k - 1))
def female(k: int): int decreases k = if k == 0 then 1 else k - male(female(k - 1))
def ackermann(a: int, b: int): int decreases a = if a == 0 then b + 1 else level(a, b)
def level(a: int, b: int): int decreases b =
    if b == 0 then ackermann(a - 1, 1) else ackermann(a - 1, level(a, b - 1))
def reached(seen: set[0..4]): set[0..4] decreases 5 - card(seen) =
    let more = seen union { m for k in seen, m in 0..4 if m in next[k] }
    if more == seen then seen else reached(more)
def weight(k: 0..4, left: int): int decreases left =
    1 + sum(weight(m, left - 1) for m in 0..4 if up[m] == some(k))
def path(k: 0..4, left: int): seq[0..4] upto 5 decreases left =
    match up[k] { none: [k], some m: path(m, left - 1) ++ [k] }
def pick(s: set[Node]): Node? decreases s =
    if card(s) == 1 then some(choose x in s: true) else pick(s - {choose x in s: true})
def all_below(k: int): bool decreases k = forall i in 0..k - 1: i < k and all_below(i)
def countdown(k: int): set[seq[int] upto 6] decreases k =
    if k == 0 then {[]} else { [i] ++ s for i in 0..1, s in countdown(k - 1) }
model m:
    Node = 3
"""


def is_true(claim: str) -> bool:
    """Whether a predicate is true in the initial state, for both engines."""
    text = VALUES.replace("model m:", f"invariant claim: {claim}\ndeadlock ok\nmodel m:")
    program = instantiate(check("values.spec", text)).program
    assert differences(program) == {}
    return isinstance(search(program, Options()).verdict, Holds)


def male(k: int) -> int:
    return 0 if k == 0 else k - female(male(k - 1))


def female(k: int) -> int:
    return 1 if k == 0 else k - male(female(k - 1))


@pytest.mark.parametrize(
    "claim",
    [
        "factorial(6) == 720 and factorial(n) == 6",
        f"divisor(84, 36) == {gcd(84, 36)} and divisor(n, 9) == 3",
        "{ fib(k) for k in 0..n + 2 } == {0, 1, 2, 3, 5}",
        "total(line) == 16 and total([]) == 0 and total_of(line, n) == 19",
        "reversed(line) == [9, 2, 5]",
        "sorted([3, 1, 2]) == [1, 2, 3] and sorted([2, 2]) == [2, 2]",
        "each(line, (x) => x * n) == [15, 6, 27] and each(each([1], factorial), (x) => x + 1) == [2]",
        "forall k in 0..n: is_even(k) == (k % 2 == 0) and is_odd(k) == (k % 2 == 1)",
        f"[male(0), male(1), male(2), male(3)] == {[male(k) for k in range(4)]}",
        f"[female(0), female(1), female(2), female(3)] == {[female(k) for k in range(4)]}",
        "ackermann(2, 1) == 5 and ackermann(1, 3) == 5",
        "reached({0}) == {0, 1, 2} and reached({3}) == 0..3 and reached({4}) == {4}",
        "weight(0, 5) == 5 and weight(1, 5) == 3 and weight(4, 1) == 1",
        "path(4, 5) == [0, 1, 3, 4]",
        "pick(nodes) != none and get(pick(nodes)) in Node",
        "all_below(n)",
        "card(countdown(n)) == 8 and [0, 1, 1] in countdown(3)",
        "fold(line, 0, (acc, x) => acc + factorial(x % 4)) == 1 + 2 + 1",
    ],
)  # fmt: skip
def test_a_recursive_definition_has_the_value_of_its_equation(claim: str) -> None:
    """Over numbers, sequences, sets, graphs and trees, in pairs, and with operators as arguments."""
    assert is_true(claim)


FAULTS = """\
spec faults
var n : 0..3 = 0
var s : seq[0..1] upto 2 = [1]
var t : set[0..2] = {1}
def stays(k: int): int decreases k = if k == 3 then 0 else stays(k)
def grows(k: int): int decreases k = if k == 3 then 0 else grows(k + 1)
def passes_zero(k: int): int decreases k = 1 + passes_zero(k - 2)
def same_length(r: seq[0..1] upto 2): int decreases r = if r == [] then 0 else same_length([0] ++ tail(r))
def same_size(r: set[0..2]): int decreases r = if r == {} then 0 else same_size({0})
def there(k: int): int decreases k = if k == 3 then 0 else back(k)
def back(k: int): int = there(k)
def by_operator(k: int): int decreases k = if k == 3 then 0 else applied((x) => by_operator(x), k)
def applied(f: (int) => int, x: int): int = f(x)
def by_fold(k: int): int decreases k = if k == 3 then 0 else fold([k], 0, (acc, x) => by_fold(x))
"""

FAULTY = {
    "stays(n)": ("does not decrease: 0, then 0", "stays(k)"),
    "grows(n)": ("does not decrease: 0, then 1", "grows(k + 1)"),
    "grows(n + 2)": ("does not decrease: 2, then 3", "grows(k + 1)"),  # where it would have a value
    "passes_zero(n + 3)": ("is below 0: -1", "passes_zero(k - 2)"),
    "same_length(s)": ("does not decrease: 1, then 1", "same_length([0] ++ tail(r))"),
    "same_size(t)": ("does not decrease: 1, then 1", "same_size({0})"),
    "there(n)": ("does not decrease: 0, then 0", "there(k)"),
    "by_operator(n)": ("does not decrease: 0, then 0", "by_operator(x)"),
    "by_fold(n)": ("does not decrease: 0, then 0", "by_fold(x)"),
    "stays(3)": ("", ""),
    "passes_zero(n - 1)": ("is below 0: -3", "passes_zero(k - 2)"),
}


def faulty(call: str) -> Program:
    text = f"{FAULTS}action go():\n    require n == 0 and {call} == 0\n    n' = 1\ndeadlock ok\n"
    return instantiate(check("faults.spec", f"{text}model m:\n    expect holds\n")).program


@pytest.mark.parametrize("call", FAULTY)
def test_a_measure_that_does_not_decrease_is_undefined(call: str) -> None:
    """At the call whose measure is not below that of the enclosing one, on every engine."""
    reason, place = FAULTY[call]
    program = faulty(call)
    outcomes = [search(program, Options()), symbolic(program, JoinOptions(workers=1))]
    outcomes.append(native.search(program, native.NativeOptions(workers=1)))
    for outcome in outcomes:
        if not reason:
            assert isinstance(outcome.verdict, Holds)
            continue
        assert isinstance(outcome.verdict, Violated)
        (violation,) = outcome.verdict.violations
        assert violation.kind == "undefined"
        assert violation.blame is not None
        assert reason in violation.blame.text
        assert violation.blame.span.text == place


def unchecked(e: Any, expr: Apply) -> Any:
    e.value(expr.args[1])
    return e.value(expr.args[0])


def is_noticed(call: str) -> bool:
    """Whether the engines differ, or the native one rejects its own answer: it confirms a sample of it."""
    try:
        return bool(differences(faulty(call)))
    except ReplayFailed:
        return True


def test_a_measure_that_is_not_checked_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Native code without the check continues at a level below, where it may find a value."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # what is kept has the name of code without the flaw
    monkeypatch.setattr(expressions, "RULES", {**expressions.RULES, Op.DECREASED: unchecked})
    assert any(is_noticed(call) for call in FAULTY)


@pytest.mark.parametrize("seed", range(4))
def test_engines_agree_on_random_recursion(seed: int, tmp_path: Path) -> None:
    """Native code and the reference interpreter: verdicts, counts, coverage and the lengths of traces."""
    check_agreement(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 104))
def test_engines_agree_on_much_random_recursion(seed: int, tmp_path: Path) -> None:
    """The same for more specs."""
    check_agreement(seed, tmp_path)


def check_agreement(seed: int, folder: Path) -> None:
    program = program_of(random_recursive_spec(Random(seed)), folder)
    if program is not None:
        assert not differences(program, symmetry=seed % 2 == 0, keep_going=seed % 3 == 0)


def test_most_random_specs_have_recursion_that_is_compiled(tmp_path: Path) -> None:
    """Otherwise the agreement of the engines on them would show nothing."""
    texts = [random_recursive_spec(Random(seed)) for seed in range(40)]
    recursive = [text for text in texts if " decreases " in text]
    assert len(recursive) > 25
    assert sum(program_of(text, tmp_path) is not None for text in recursive) > 0.8 * len(recursive)


OFFSETS = """\
spec offsets
type Offset = nat upto 2
var log : seq[Offset] upto 2 = []
var top : Offset = 0
def highest(s: seq[Offset] upto 3): int decreases s =
    if s == [] then 0
    else let rest = highest(tail(s)): if head(s) > rest then head(s) else rest
action push(x: Offset):
    require len(log) < 2
    log' = append(log, x)
    top' = max(top, highest(append(log, x)))
action pop():
    require len(log) > 0
    log' = tail(log)
invariant bound: highest(log) <= top
deadlock ok
model m:
    expect holds
"""


def test_recursion_over_open_offsets_is_exact() -> None:
    """The symbolic engine and proofs read the inserted body; its offsets have no bound."""
    program = instantiate(check("offsets.spec", OFFSETS)).program
    assert isinstance(symbolic(program, JoinOptions(workers=1)).verdict, Holds)
    assert not differences(program)
    assert isinstance(prove(program, ProofOptions()).verdict, Holds)
    wrong = instantiate(check("offsets.spec", OFFSETS.replace("highest(append(log, x))", "highest(log)")))
    assert isinstance(symbolic(wrong.program, JoinOptions(workers=1)).verdict, Violated)


CLAIMED = """\
spec claimed
{types}
{definition}
invariant p: {claim}
deadlock ok
model m:
    expect holds
"""


def refusal_of(definition: str, call: str, types: str = "var x : 0..9 = 0") -> tuple[str, str]:
    """The code of the only error in a spec, and the text at its place."""
    with pytest.raises(SpecError) as refused:
        instantiate(check("claimed.spec", CLAIMED.format(types=types, definition=definition, claim=call)))
    (found,) = refused.value.diagnostics
    assert found.span is not None
    return found.code, found.span.text


def test_too_many_calls_are_refused_at_their_place() -> None:
    """Writing a call twice doubles the calls; the hint is to write it once."""
    twice = "def f(k: int): int decreases k = if k == 0 then 0 else if x > k then f(k - 1) else 1 + f(k - 1)"
    assert refusal_of(twice, "f(x) >= 0") == ("S510", "f(k - 1)")
    once = "def f(k: int): int decreases k = if k == 0 then 0 else let r = f(k - 1): r + x % 2"
    text = CLAIMED.format(types="var x : 0..9 = 0", definition=once, claim="f(x) >= 0")
    assert isinstance(search(instantiate(check("once.spec", text)).program, Options()).verdict, Holds)


TYPES = "type Offset = nat upto 3\nvar x : 0..30 = 2\nvar o : Offset = 1"


@pytest.mark.parametrize(
    ("body", "call", "place"),
    [
        ("if k == 0 then 0 else f(k - 1)", "f(o) == 0", "k"),
        ("if k == 0 then 2 else f(k - 1) * f(k - 1)", "f(x) > 0", "f(k - 1)"),
        ("if k == 0 then x else (let r = f(k - 1): r * r)", "f(30) > 0", "f(k - 1)"),
    ],
)
def test_a_recursion_without_a_bound_is_refused(body: str, call: str, place: str) -> None:
    """By a horizon, by the number of copies, by the length of numbers."""
    definition = f"def f(k: int): int decreases k = {body}"
    assert refusal_of(definition, call, TYPES) == ("S510", place)


def test_a_recursion_is_as_deep_as_its_limit() -> None:
    """And no deeper: one more is a diagnostic, not an internal error."""
    definition = "def f(k: int): int decreases k = if k == 0 then 0 else 1 + f(k - 1)"

    def made(most: int) -> Program:
        text = CLAIMED.format(types=f"var x : 0..{most} = 0", definition=definition, claim="f(x) == x")
        return instantiate(check("deep.spec", text)).program

    assert made(20)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20 * limit)
    try:
        assert isinstance(search(made(recursion.MAX_CALLS), Options()).verdict, Holds)
        with pytest.raises(SpecError) as refused:
            made(recursion.MAX_CALLS + 1)
    finally:
        sys.setrecursionlimit(limit)
    assert refused.value.diagnostics[0].code == "S510"
