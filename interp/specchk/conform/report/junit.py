"""A run as JUnit XML, for build servers: a suite for each part, a test for each case.

The failure of a case is its divergence as text.  A case that was not run is skipped with the reason: a part
ends at its first failure, and a sample, a change or a single case leaves others out.  Parts that are not
made of cases are one test, skipped if a budget ended it; a vacuous suite is one that fails, and
its cases prove nothing.  Controls and the lock are tests of a separate suite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from specchk.conform.covers.cases import MADE_OF_CASES
from specchk.conform.gate.gate import Held
from specchk.conform.gate.tiers import Part, SuiteBudget
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.report.suite import render, verdict

ENDED = "the suite ended at its first divergence"
LEFT_OUT = "this run leaves the case out"
VACUOUS = "the suite is vacuous"
CUT = "a budget ended the suite"


def junit(
    parts: Sequence[Part], results: Sequence[SuiteResult], budget: SuiteBudget, held: Held | None
) -> str:
    """The whole document."""
    root = Element("testsuites", name="specchk conform")
    for part, result in zip(parts, results, strict=True):
        _suite(root, part, result, budget)
    if held is not None:
        _held(root, held)
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Element, part: Part, result: SuiteResult, budget: SuiteBudget) -> None:
    suite = SubElement(root, "testsuite", name=f"{part.label} ({result.suite})", time=f"{result.seconds:.3f}")
    properties = SubElement(suite, "properties")
    for name, value in _properties(part, result):
        SubElement(properties, "property", name=name, value=str(value))
    failed = _failures(part, result, budget)
    for name, skipped in _tests(part, result, budget):
        case = SubElement(
            suite, "testcase", name=name, classname=f"{part.instance.program.spec}.{part.label}"
        )
        if name in failed:
            failure = SubElement(case, "failure", message=failed[name].split("\n")[0])
            failure.text = failed[name]
        elif skipped:
            SubElement(case, "skipped", message=skipped)
    _count(suite)


def _tests(part: Part, result: SuiteResult, budget: SuiteBudget) -> Iterator[tuple[str, str]]:
    """The tests of a part by name; the reason for one that neither passed nor failed."""
    cases = part.suite(budget).cases if part.at.suite in MADE_OF_CASES else ()
    if not cases or result.vacuous:
        yield result.suite, "" if result.complete else CUT
    passed = frozenset(() if result.vacuous else result.passed)
    otherwise = VACUOUS if result.vacuous else ENDED if result.divergence is not None else LEFT_OUT
    for case in cases:
        yield case.name, "" if case.id in passed else otherwise


def _properties(part: Part, result: SuiteResult) -> Iterator[tuple[str, object]]:
    yield "spec", part.instance.program.path
    yield "verdict", verdict(result)
    yield "states", result.states
    yield "steps", result.steps
    yield "probes", result.probes
    if result.coverage is not None:
        yield "classes", f"{len(result.coverage.covered)} of {result.coverage.reachable}"
        yield "classes_never", len(result.coverage.never)
    for name, reason in part.binding.unobserved.items():
        yield "unobserved", f"{name}: {reason}"


def _failures(part: Part, result: SuiteResult, budget: SuiteBudget) -> dict[str, str]:
    """The report of each divergence by the name of its case, or by the suite's name without one."""
    if result.divergence is None and not result.vacuous:
        return {}
    case = None if result.failed is None else part.suite(budget).case(result.failed)
    name = result.suite if case is None else case.name
    return {name: render(part, result)}


def _held(root: Element, held: Held) -> None:
    suite = SubElement(root, "testsuite", name="gate")
    for trial in held.tried:
        case = SubElement(suite, "testcase", name=f"control: {trial.name}", classname="gate.controls")
        if trial.outdated:
            SubElement(case, "skipped", message=f"outdated: {trial.outdated}")
        elif not trial.divergence:
            SubElement(case, "failure", message="no divergence was found with it")
    if held.vacuous and not held.tried:
        case = SubElement(suite, "testcase", name="controls", classname="gate.controls")
        SubElement(case, "failure", message=held.vacuous)
    if held.lock is not None:
        case = SubElement(suite, "testcase", name="lock", classname="gate.lock")
        if held.below:
            failure = SubElement(case, "failure", message="below the lock")
            failure.text = "\n".join(map(str, held.below))
    _count(suite)


def _count(suite: Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
