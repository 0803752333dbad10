"""A call of a helper action equals its statements in its place: the same program for all engines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from naive import Naive
from spec_texts import bfs, small_specs

from agreement.both import differences, program_of
from agreement.random_specs import random_spec
from specchk.compile.instantiate import instantiate
from specchk.explore.conditions import conditions
from specchk.ir.program import Program
from specchk.lang.frontend import check, choose_model
from specchk.lang.text.diagnostics import SpecError
from specchk.search.engine import Options
from specchk.search.reference import search

RANDOMS = st.randoms(use_true_random=False)
SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
ACTION = re.compile(r"^action (\w+)\((.*)\):\n((?:    .*\n)+)", re.MULTILINE)

BANK = """\
spec bank
sort Account
var held : Account -> 0..3 = {{ a: 1 for a in Account }}
var moved : 0..2 = 0
{helpers}
action give(a: Account, b: Account):
    require a != b
    {give}
action pay(a: Account):
    {pay}
action reset():
    require moved == 2
    moved' = 0
invariant never_three: forall a in Account: held[a] < 3
deadlock ok
model m:
    Account = 3
"""
HELPERS = """\
helper action take(a: Account, amount: int):
    let left = held[a] - amount
    require left >= 0
    held'[a] = left
    count(amount)
helper action count(amount: int):
    when amount > 1 and moved < 2:
        moved' = 2
    else:
        moved' = if moved < 2 then moved + 1 else moved
"""


GIVE, PAY = "take(a, 1)\n    held'[b] = held[b] + 1", "take(a, held[a] * 2 - 1)"


def with_helpers(text: str) -> str:
    """A spec in which the statements of each action are in a helper action with its parameters."""

    def split(found: re.Match[str]) -> str:
        name, params, body = found.groups()
        names = ", ".join(param.split(":")[0].strip() for param in params.split(",") if param)
        helper = f"helper action of_{name}({params}):\n{body}"
        return f"{helper}action {name}({params}):\n    of_{name}({names})\n"

    return ACTION.sub(split, text)


def both(text: str, folder: Path) -> tuple[Program | None, Program | None]:
    """The programs of a spec without and with helper actions."""
    return program_of(text, folder), program_of(with_helpers(text), folder)


@settings(max_examples=40, suppress_health_check=SHARED)
@given(random=RANDOMS)
def test_random_actions_are_what_their_helpers_are(random: Random, tmp_path: Path) -> None:
    """Statements of every kind, in a helper action, are the program that they are in the action."""
    text = random_spec(random)
    assert "helper action" in with_helpers(text)
    plain, shared = both(text, tmp_path)
    assert plain == shared


@settings(max_examples=15, suppress_health_check=SHARED)
@given(text=small_specs())
def test_actions_that_move_are_what_their_helpers_are(text: str, tmp_path: Path) -> None:
    """The same for specs with tens to hundreds of states."""
    plain, shared = both(text, tmp_path)
    assume(plain is not None)
    assert plain == shared


def bank(**parts: str) -> Program:
    return instantiate(check("bank.spec", BANK.format(**{"helpers": HELPERS, **parts}))).program


def called() -> Program:
    return bank(give=GIVE, pay=PAY)


def in_place() -> Program:
    """The same, written by hand."""
    count = """\
when {n} > 1 and moved < 2:
        moved' = 2
    else:
        moved' = if moved < 2 then moved + 1 else moved
"""
    take = "let left = held[a] - {n}\n    require left >= 0\n    held'[a] = left\n    " + count
    give = take.format(n="1") + "    held'[b] = held[b] + 1"
    return bank(helpers="", give=give, pay="let amount = held[a] * 2 - 1\n    " + take.format(n="amount"))


def test_arguments_are_values_for_the_parameters() -> None:
    """A constant is inserted, an expression is evaluated once, before the statements."""
    one, other = called(), in_place()
    assert one == replace(other, path=one.path)
    assert one.actions[1].body[0].local.name == "amount"


@pytest.mark.parametrize("symmetry", [False, True])
def test_engines_agree_on_helper_actions(symmetry: bool) -> None:
    """Native code and the reference interpreter, over a model with a violation and one without."""
    for program in (called(), replace(called(), invariants=())):
        assert not differences(program, symmetry=symmetry, keep_going=True)
    assert search(called()).verdict.violations[0].name == "never_three"


def test_the_naive_reading_takes_helper_actions() -> None:
    """It reaches the states that the reference engine reaches."""
    text = BANK.format(helpers=HELPERS, give=GIVE, pay=PAY)
    checked = check("bank.spec", text)
    naive = Naive(checked, choose_model(checked, "m", {}))
    outcome = search(called(), Options(symmetry=False, keep_going=True))
    assert len(list(bfs(naive))) == outcome.statistics.distinct > 20


def points(program: Program) -> Iterator[tuple[str, str, int]]:
    return ((point.owner, point.label, point.span.line) for point in program.points)


def test_coverage_belongs_to_the_action_that_calls() -> None:
    """Each caller has its own points, at the lines of the helper action."""
    found = set(points(called()))
    line = next(n for n, text in enumerate(BANK.format(helpers=HELPERS, give="", pay="").split("\n"), 1)
                if "moved' = 2" in text)  # fmt: skip
    assert {("give", "when", line), ("pay", "when", line)} <= found
    owners = [owner for owner, label, _ in points(called()) if label == "else"]
    assert owners == ["give", "give", "pay", "pay"]


def test_a_call_twice_in_an_action_is_one_point() -> None:
    """Its copies in one action are counted together."""
    program = bank(
        give="skip", pay="require moved == 0\n    either:\n        count(1)\n    or:\n        count(2)"
    )
    places = [(point.owner, point.label, point.span.start) for point in program.points]
    assert len(places) == len(set(places)) == 9


def test_conditions_name_the_caller_and_the_line() -> None:
    """`left >= 0` is a condition of both actions that take, at one place."""
    guards = [one for one in conditions(called()) if one.span.text == "left >= 0"]
    assert {one.owner for one in guards} == {"give", "pay"}
    assert len({one.span.where for one in guards}) == 1


def test_an_undefined_value_is_reported_of_the_caller_at_the_line_of_the_helper() -> None:
    """The fault is the caller's, its place in the helper action."""
    program = bank(helpers=HELPERS + "helper action over(a: Account):\n    held'[a] = held[a] + 9\n",
                   give="skip", pay="over(a)")  # fmt: skip
    (violation,) = search(program).verdict.violations
    assert violation.name == "pay"
    assert violation.blame.span.text == "held[a] + 9"


def test_helpers_that_double_are_refused_and_not_expanded() -> None:
    """Forty helper actions, each of which calls the previous one twice, give a diagnostic."""
    chain = "helper action h0():\n    skip\n"
    for n in range(40):
        chain += f"helper action h{n + 1}():\n    h{n}()\n    h{n}()\n"
    with pytest.raises(SpecError) as error:
        bank(helpers=HELPERS + chain, give="h40()", pay="skip")
    assert error.value.diagnostics[0].code == "S509"


def test_a_long_chain_of_helpers_is_an_answer() -> None:
    """Two thousand helper actions in a chain give a diagnostic, and no traceback."""
    chain = "".join(f"helper action h{n}():\n    h{n + 1}()\n" for n in range(2000))
    with pytest.raises(SpecError) as error:
        bank(helpers=HELPERS + chain + "helper action h2000():\n    skip\n", give="h0()", pay="skip")
    assert error.value.diagnostics[0].code == "S104"
