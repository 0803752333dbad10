"""Something undefined is reported with its step and expression, and a partial map among the operands."""

from __future__ import annotations

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.meaning.explain import Blame
from specchk.report.diff import changes
from specchk.report.text import render
from specchk.search.reference import search
from specchk.search.verdict import violations_of

QUEUE = """spec jobs
sort Job
sort Worker
var waiting : set[Job] = Job
var claims : map[Job, Worker] = {{}}
action claim(j: Job, w: Worker):
    require j in waiting
    waiting' = waiting - {{j}}
    claims'[j] = w
action ack(j: Job):
    require j not in waiting
    {ack}
    claims' = {{}}
invariant kept: forall j in Job: {kept}
model m:
    Job = 2
    Worker = 1
"""


def report(ack: str, kept: str = "true") -> str:
    return render(search(instantiate(check("jobs.spec", QUEUE.format(ack=ack, kept=kept))).program))


def test_an_undefined_expression_has_its_step_and_its_text():
    text = report("require claims[j] in Worker or claims[j] not in Worker")
    step = "\n  3  ack(j1)\n       `claims[j]` is undefined\n  because, for j = j1:\n       the map has no"
    assert text.startswith("violated: undefined value in `ack` in 2 steps")
    assert step in text


def test_an_undefined_property_has_no_step():
    text = report("require j in claims", "claims[j] in Worker")
    assert "\n       `claims[j]` is undefined\n  because" in text
    assert "  1  " not in text


def test_a_partial_map_without_the_key_is_an_operand():
    text = QUEUE.format(ack="require j in claims", kept="j in waiting or j in claims")
    program = instantiate(check("jobs.spec", text)).program
    blame = violations_of(search(program).verdict)[0].blame
    assert isinstance(blame, Blame)
    assert ("claims", "{}") in blame.values
    assert ("waiting", "{j2}") in blame.values


def test_of_a_large_set_the_items_that_changed_are_shown():
    spec = """spec large
sort Job
var waiting : set[Job] = Job
var held : map[Job, Job] = { j: j for j in Job }
action step(j: Job, k: Job):
    waiting' = waiting - {j}
    held'[j] = k
model m:
    Job = 12
"""
    program = instantiate(check("large.spec", spec)).program
    before = (tuple(range(12)), tuple((n, n) for n in range(12)))
    after = (tuple(range(1, 12)), ((0, 5), *((n, n) for n in range(1, 12))))
    texts = [change.text() for change in changes(program, before, after)]
    assert texts == ["waiting: -{j1}", "held: +{ j1: j6 } -{ j1: j1 }"]
    few = [change.text() for change in changes(program, ((0, 1), ()), ((1,), ()))]
    assert few == ["waiting: {j1, j2} -> {j2}"]
