"""The results of several suites: the worst verdict first, a line for each, then the first divergence."""

from __future__ import annotations

from collections.abc import Sequence

from specchk.conform.covers.cases import Suite
from specchk.conform.gate.tiers import Part
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.report.suite import as_json as as_json_of
from specchk.conform.report.suite import render, verdict, within

# A divergence is worth more than a suite that proves nothing, and that more than one that was cut short.
_WORST_FIRST = ("diverges", "vacuous", "conforms so far", "conforms")


def overall(results: Sequence[SuiteResult]) -> SuiteResult:
    """The result that decides the overall verdict: the first of the worst."""
    return min(results, key=lambda result: _WORST_FIRST.index(verdict(result)))


def render_tier(tier: str, parts: Sequence[Part], results: Sequence[SuiteResult]) -> str:
    """The whole report; a single failing suite is reported as if it had run alone."""
    if len(parts) == 1:
        return render(parts[0], results[0])
    worst = overall(results)
    words = within(parts[list(results).index(worst)], worst)
    program = parts[0].instance.program
    cases = sum(result.coverage.cases for result in results if result.coverage is not None)
    steps, probes = sum(each.steps for each in results), sum(each.probes for each in results)
    lines = [
        f"{words}: {program.spec} on {type(parts[0].binding).__name__}, {tier}",
        f"  {len(parts)} suites, {cases} cases, {steps} steps taken, {probes} probes refused",
    ]
    lines += [f"  {_line(part, result)}" for part, result in zip(parts, results, strict=True)]
    if worst.divergence is not None or worst.vacuous:
        part = parts[list(results).index(worst)]
        lines += ["", render(part, worst)]
    return "\n".join(lines)


def _line(part: Part, result: SuiteResult) -> str:
    line = (
        f"{within(part, result)}: {part.label}, {result.suite}, {result.states} states, {result.steps} steps"
    )
    if result.coverage is not None:
        line += f", {result.coverage}"
    return line


def tier_json(
    tier: str, parts: Sequence[Part], results: Sequence[SuiteResult], codes: Sequence[int]
) -> dict[str, object]:
    """The deciding suite as one JSON object, with the objects of all suites in `suites`."""
    reports = [
        {"label": part.label, **as_json_of(part, result, code)}
        for part, result, code in zip(parts, results, codes, strict=True)
    ]
    return {**reports[list(results).index(overall(results))], "tier": tier, "suites": reports}


def render_cases(suites: Sequence[Suite]) -> str:
    """All cases: id, number of steps, the last step."""
    lines = []
    for suite in suites:
        cases = "1 case" if len(suite.cases) == 1 else f"{len(suite.cases)} cases"
        lines.append(f"{suite.label}, {suite.kind}: {cases}, {suite.cover}")
        lines += [f"  {case.id}  {len(case.steps):3} steps to {case.steps[-1]}" for case in suite.cases]
    return "\n".join(lines)


def cases_json(suites: Sequence[Suite]) -> dict[str, object]:
    """All cases with their steps and the ids of their classes."""
    return {
        "schema": "specchk.conform-cases/1",
        "suites": [
            {
                "label": suite.label,
                "suite": suite.kind,
                "states": suite.states,
                "edges": suite.edges,
                "complete": suite.complete,
                "classes": len(suite.classes),
                "probe_classes": len(suite.probe_classes),
                "cases": [
                    {
                        "id": case.id,
                        "steps": [str(step) for step in case.steps],
                        "classes": sorted({suite.classes[n].id for classes in case.classes for n in classes}),
                    }
                    for case in suite.cases
                ],
            }
            for suite in suites
        ],
    }
