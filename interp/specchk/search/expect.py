"""Comparison of an outcome with the expectations of its model."""

from __future__ import annotations

from types import MappingProxyType

from specchk.lang.syntax import decls
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.verdict import Holds, HoldsWithin, Inconclusive, Outcome, Violation, violations_of

_COUNTS = MappingProxyType({"states": "distinct", "transitions": "generated", "depth": "depth"})

_NAMED = MappingProxyType({  # the kinds of violations of the named properties that are expected
    "violates": ("invariant", "step invariant", "refinement", "liveness"), "unreachable": ("unreachable",),
})  # fmt: skip


def options_for(expects: tuple[decls.Expect, ...], budget: Budget, *, strict: bool = False) -> Options:
    """The options of a search whose outcome is compared with the expectations."""
    violations = [each for each in expects if each.kind not in ("holds", *_COUNTS)]
    # An expected count is one of states, so symmetry would miss it; and where several violations are expected
    # the search must not end with the first.
    return Options(budget, not wants_counts(expects), keep_going=len(violations) > 1, strict=strict)


def wants_counts(expects: tuple[decls.Expect, ...]) -> bool:
    """Whether the model expects counts; these are counts without symmetry."""
    return any(expect.kind in _COUNTS for expect in expects)


def unmet(outcome: Outcome, expects: tuple[decls.Expect, ...]) -> list[str]:
    """The unmet expectations, one line each; a result that the model does not expect must not occur."""
    verdict = outcome.verdict
    if isinstance(verdict, Inconclusive):
        return [f"inconclusive: {verdict.reason}"]
    problems = [problem for expect in expects if (problem := _check(outcome, expect))]
    unexpected = [v for v in violations_of(verdict) if not any(_answers(v, expect) for expect in expects)]
    return problems + [f"unexpected: {describe(violation)}" for violation in unexpected]


def _check(outcome: Outcome, expect: decls.Expect) -> str | None:
    if expect.kind in _COUNTS:
        count = getattr(outcome.statistics, _COUNTS[expect.kind])
        return None if count == expect.number else f"expected {expect.kind} {expect.number}, found {count}"
    if expect.kind == "holds":
        return None if isinstance(outcome.verdict, Holds | HoldsWithin) else "expected to hold"
    for violation in violations_of(outcome.verdict):
        if _answers(violation, expect):
            return _length(violation, expect)
    name = f" {expect.name.full}" if expect.name is not None else ""
    return f"expected: {expect.kind}{name}, which did not happen"


def _length(violation: Violation, expect: decls.Expect) -> str | None:
    steps = len(violation.trace.steps) if violation.trace is not None else None
    if expect.number is None or steps == expect.number:
        return None
    return f"expected {violation.name} to fail in {expect.number} steps, it fails in {steps}"


def _answers(violation: Violation, expect: decls.Expect) -> bool:
    """Whether a violation is one that an expectation refers to."""
    if expect.kind in ("deadlock", "undefined"):
        return violation.kind == expect.kind
    kinds = _NAMED.get(expect.kind, ())
    return violation.kind in kinds and expect.name is not None and violation.name == expect.name.full


def describe(violation: Violation) -> str:
    """A violation in a few words."""
    if violation.kind == "vacuous":  # a sentence
        return violation.name
    name = "" if violation.name == violation.kind else f" {violation.name}"
    steps = f" in {len(violation.trace.steps)} steps" if violation.trace is not None else ""
    return f"{violation.kind}{name}{steps}"
