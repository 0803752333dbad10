"""The file for a build server: a case passes if it ran and passed, and only then."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from stairs import SPEC, EitherWay, StairsBinding

from specchk.conform.contract.binding import Answer, At, action
from specchk.conform.gate.tiers import SMOKE_WALKS, Part, SuiteBudget, parts_of, run_part
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import run_suite
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.report.junit import CUT, ENDED, LEFT_OUT, VACUOUS, junit
from specchk.conform.report.page import sections
from specchk.conform.report.suite import render
from specchk.lang.frontend import check

CHECKED = check("stairs.spec", SPEC)
WHOLE = SuiteBudget()
NOTHING_TO_DO = SPEC.replace("n > 0 and", "n > 9 and").replace("n == 0", "n == 8").replace("n == 3", "n == 8")


class NeverRests(EitherWay):
    """Refuses the last step."""

    @action("rest")
    def rest(self, stairs: dict[str, int]) -> Answer:
        return self._go(stairs, False, stairs["n"])


def part(cls: type[StairsBinding] = EitherWay, suite: str = "classes", spec: str = SPEC) -> Part:
    return parts_of(cls, check("stairs.spec", spec), [At("small", suite=suite)])[0]


def told(part: Part, result: SuiteResult, budget: SuiteBudget = WHOLE) -> dict[str, str]:
    """By test `passed`, `failed`, or the reason why it was skipped."""
    found = {}
    for case in ElementTree.fromstring(junit([part], [result], budget, None)).iter("testcase"):
        skipped = case.find("skipped")
        passed = "passed" if case.find("failure") is None else "failed"
        found[case.attrib["name"]] = passed if skipped is None else skipped.attrib["message"]
    return found


def ids(part: Part) -> Sequence[str]:
    return [case.name for case in part.suite(WHOLE).cases]


def test_every_case_of_a_whole_suite_passed():
    """Nothing else is in the file."""
    assert told(part(), run_part(part(), WHOLE)) == dict.fromkeys(ids(part()), "passed")


@pytest.mark.parametrize("number", [0, 1])
def test_a_case_that_did_not_run_is_skipped(number: int):
    """As with `--case`: one of several cases is run."""
    suite = part().suite(WHOLE)
    case = suite.cases[number]
    one = run_suite(Replayer(part().binding), suite, cases=[case])
    for result in (one, replace(one, coverage=None)):
        assert told(part(), result) == {**dict.fromkeys(ids(part()), LEFT_OUT), case.name: "passed"}


def test_a_sample_names_what_it_left_out():
    """The text, the page and the file: a class that no case tried was not refused."""
    budget = SuiteBudget(sample_steps=1)
    result = run_part(part(), budget)
    assert result.coverage is not None
    left_out = len(ids(part())) - result.coverage.cases
    assert left_out > 0
    assert list(told(part(), result, budget).values()).count(LEFT_OUT) == left_out
    text = " ".join(render(part(), result).split())
    assert "chose differently" not in text
    assert f"no case of this run takes them: {len(result.coverage.missed)} classes" in text
    page = "".join(sections([part()], [result], None))
    assert page.count('<span class="missed"') == 1  # the legend's


def test_a_class_that_was_tried_in_vain_is_said_to_be_avoided():
    """StairsBinding always jumps to 1."""
    result = run_part(part(StairsBinding), WHOLE)
    assert result.coverage is not None
    assert result.coverage.avoided == result.coverage.missed != ()


def test_after_a_divergence_the_rest_is_skipped():
    """Those before it passed."""
    found = told(part(NeverRests), run_part(part(NeverRests), WHOLE))
    assert list(found.values()) == sorted(found.values(), key=["passed", "failed", ENDED].index)
    assert list(found.values()).count("failed") == 1


def test_a_vacuous_suite_fails_as_a_whole():
    """Its cases prove nothing, and none of them is at fault."""
    result = replace(run_part(part(), WHOLE), vacuous="no forbidden step was tried")
    assert told(part(), result) == {"classes": "failed", **dict.fromkeys(ids(part()), VACUOUS)}


def test_a_suite_without_cases_is_vacuous():
    """No step is enabled, so there is no case to name."""
    empty = part(spec=NOTHING_TO_DO)
    result = run_part(empty, WHOLE)
    assert result.vacuous
    assert told(empty, result) == {"classes": "failed"}


def test_a_suite_that_a_budget_ended_is_not_green():
    """It conforms so far, which is not a verdict."""
    budget = SuiteBudget(2, None, SMOKE_WALKS)
    product = part(suite="product")
    assert told(product, run_part(product, budget), budget) == {"product": CUT}
    assert told(product, run_part(product, WHOLE)) == {"product": "passed"}
