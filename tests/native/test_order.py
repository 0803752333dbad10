"""The order in which kernels enumerate the parameters of an action."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest
from msgspec.structs import replace

from specchk.codegen.objects import initialize, joins_conditions, machine
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native.engine import NativeOptions, search
from specchk.native.kernel.edge_kernel import RankedSteps
from specchk.native.kernel.labels import LabelledSteps
from specchk.native.kernel.steps import Steps
from specchk.native.values.order import best_order, head_of
from specchk.native.values.totality import ExpressionFacts
from specchk.native.walking.kernel import SharedOutSteps
from specchk.search.engine import Options
from specchk.search.reference import search as reference

SPEC = """\
spec order
sort Node
const Last : int
type Turn = 0..Last
type Request = { to: Node }

var asked : Turn -> Request? = { t: none for t in Turn }
var seen : Node -> Turn = { n: 0 for n in Node }
var turn : 0..Last + 1 = 0

action ask(to: Node):
    require turn <= Last
    asked'[turn] = some({ to: to })
    turn' = turn + 1
action answer(node: Node, t: Turn):
    let request = asked[t] else skip
    require request.to != node and t > seen[node]
    seen'[node] = t
action follow(node: Node, other: Node):
    require seen[node] < seen[other]
    seen'[node] = seen[other]
action reach(node: Node, other: Node):
    require seen[other] == Last and seen[node] < seen[other]
    seen'[node] = Last

deadlock ok
model all:
    Node = 3, Last = 2
    expect holds
"""


@pytest.fixture(scope="module")
def program() -> Program:
    return instantiate(check("order.spec", SPEC)).program


def names(program: Program, action: str) -> list[str]:
    """The parameters of an action in the order in which they are enumerated."""
    facts = ExpressionFacts()
    found = next(a for a in program.actions if a.name == action)
    head, _ = head_of(found, facts)
    return [param.name for param in best_order(found.params, head, facts)]


def test_the_parameter_that_guards_mention_alone_is_first(program: Program) -> None:
    """Excluding choices is decided before the rest is multiplied; otherwise the order is the declared one."""
    assert names(program, "answer") == ["t", "node"]
    assert names(program, "reach") == ["other", "node"]
    assert names(program, "follow") == ["node", "other"]


def test_only_searches_choose_an_order() -> None:
    """Steps that are numbered or drawn keep the order of the reference stepper."""
    assert [kind.is_ordered for kind in (Steps, SharedOutSteps, RankedSteps, LabelledSteps)] == [
        False, True, True, True,
    ]  # fmt: skip


def test_any_order_finds_the_same(program: Program) -> None:
    """Verdict, counts and coverage are those of the reference engine, which keeps the order."""
    native, expected = search(program, NativeOptions(workers=1)), reference(program)
    assert native.verdict == expected.verdict
    assert native.coverage == expected.coverage
    assert replace(native.statistics, seconds=0.0) == replace(expected.statistics, seconds=0.0)


PARTLY_UNDEFINED = """\
spec partly
var turn : 0..2 = 0
var far : nat upto 1 = 0
var log : seq[0..1] upto 3 = []
action next():
    require turn < 1
    turn' = turn + 1
action beyond():
    far' = far + 1
action write(twice: bool, n: 0..2):
    require n > 0 and turn == 1
    log' = append(if twice then append(log, n - 1) else log, n)  # undefined where n is 2
deadlock ok
"""


def test_a_state_without_steps_counts_none() -> None:
    """If a step is undefined, those tried before it are not counted: they depend on the order."""
    partly = instantiate(check("partly.spec", PARTLY_UNDEFINED)).program
    assert names(partly, "write") == ["n", "twice"]
    expected = reference(partly, Options(keep_going=True))
    points = {
        p.owner: count
        for p, count in zip(partly.points, expected.coverage, strict=True)
        if p.kind == "action"
    }
    # Of four states two have `turn == 1`, and in one other `far` is at its horizon.
    assert (points["next"], points["beyond"], points["write"]) == (2, 2, 0)
    assert expected.statistics.horizon_cuts == 1
    for workers in (1, 2):
        native = search(partly, NativeOptions(keep_going=True, workers=workers))
        assert native.verdict == expected.verdict
        assert native.coverage == expected.coverage
        assert replace(native.statistics, seconds=0.0) == replace(expected.statistics, seconds=0.0)


@pytest.mark.skipif(not joins_conditions(), reason="an option of LLVM for one kind of processors")
def test_a_condition_of_two_parts_is_one_branch() -> None:
    """LLVM would jump after each part of an `and`; preparing it again is not an error."""
    initialize()
    initialize()
    text = """
        define i64 @f(i64 %a, i64 %b) {
          %s = lshr i64 %a, 3
          %t = and i64 %s, 7
          %u = icmp ne i64 %t, %b
          %v = lshr i64 %a, 9
          %w = and i64 %v, 7
          %x = icmp ne i64 %w, %b
          %y = and i1 %u, %x
          br i1 %y, label %yes, label %no
        yes:
          %z = call i64 @g(i64 %a)
          ret i64 %z
        no:
          ret i64 3
        }
        declare i64 @g(i64)
    """
    code = machine().emit_assembly(llvm.parse_assembly(text))
    assert len(re.findall(r"^\s+j(?!mp)\w+\s", code, re.MULTILINE)) == 1
