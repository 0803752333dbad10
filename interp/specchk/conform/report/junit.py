"""A run as JUnit XML, which build servers read: a suite for each part, a test for each case.

The failure of a case is its divergence as text.  A part ends at its first failure, so the cases that
were not reached are skipped, and say so.  Parts that are not made of cases are one test.  Controls and
the lock are tests of a suite of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from specchk.conform.gate.gate import Held
from specchk.conform.gate.tiers import MADE_OF_CASES, Part, SuiteBudget
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.report.suite import About, render

SKIPPED = "the suite ended at its first divergence"
_REPLACED = MappingProxyType({code: "?" for code in range(32) if code not in (9, 10, 13)})  # no XML has them


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
    names = [result.suite]
    if part.at.suite in MADE_OF_CASES:
        names = [case.id for case in part.suite(budget).cases]
    failed = _failures(part, result, names[0])
    for name in names:
        case = SubElement(
            suite, "testcase", name=name, classname=f"{part.instance.program.spec}.{part.label}"
        )
        if name in failed:
            failure = SubElement(case, "failure", message=failed[name].splitlines()[0])
            failure.text = failed[name].translate(_REPLACED)
        elif failed:
            SubElement(case, "skipped", message=SKIPPED)
    _count(suite)


def _properties(part: Part, result: SuiteResult) -> Iterator[tuple[str, object]]:
    yield "spec", part.instance.program.path
    yield "states", result.states
    yield "steps", result.steps
    yield "probes", result.probes
    if result.coverage is not None:
        yield "classes", f"{len(result.coverage.covered)} of {result.coverage.reachable}"
        yield "classes_never", len(result.coverage.never)
    for name, reason in part.binding.unobserved.items():
        yield "unobserved", f"{name}: {reason}"


def _failures(part: Part, result: SuiteResult, otherwise: str) -> dict[str, str]:
    """By case the report of its divergence."""
    if result.divergence is None and not result.vacuous:
        return {}
    name = result.failures[0][0] if result.failures else otherwise
    return {name: render(About(part.instance, part.binding), result)}


def _held(root: Element, held: Held) -> None:
    suite = SubElement(root, "testsuite", name="gate")
    for one in held.tried:
        case = SubElement(suite, "testcase", name=f"control: {one.name}", classname="gate.controls")
        if not one.told:
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
