"""The result of a suite, or of several, as text and as JSON: the verdict first, then its basis.

A divergence is shown as the spec's behaviour that leads to it, a lane for each element of the main
sort, then the implementation's state beside the spec's, and every place where the two differ.  Of several
suites the worst verdict comes first, then a line for each, then the first divergence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specchk.conform.covers.cases import EffectClass, Suite
from specchk.conform.gate.tiers import Part
from specchk.conform.replay.divergence import SCHEMA, WORDS, drawn
from specchk.conform.replay.divergence import as_json as divergence_json
from specchk.conform.replay.suites import Coverage, SuiteResult
from specchk.ir.footprint import switched_off
from specchk.report.draw.text import text
from specchk.report.json import model_json
from specchk.report.text import constants, wrapped

WIDTH = 80  # of any terminal: the report is the same in a log
# A divergence is worth more than a suite that proves nothing, and that more than one that was cut short.
_WORST_FIRST = ("diverges", "vacuous", "conforms so far", "conforms")


def verdict(result: SuiteResult) -> str:
    """`diverges`, `vacuous`, `conforms`, or `conforms so far` if a budget ended the suite."""
    if result.divergence is not None:
        return "diverges"
    if result.vacuous:
        return "vacuous"
    return "conforms" if result.complete else "conforms so far"


def within(part: Part, result: SuiteResult) -> str:
    """The verdict with its bounds: a suite covers no states outside a constraint."""
    constraints = ", ".join(prop.name for prop in part.instance.program.constraints)
    is_bounded = constraints and verdict(result).startswith("conforms")
    return f"{verdict(result)} within {constraints}" if is_bounded else verdict(result)


def headline(part: Part, result: SuiteResult) -> str:
    """The verdict in one line."""
    why = f": {WORDS[result.divergence.kind]}" if result.divergence is not None else ""
    why = f": {result.vacuous}" if result.vacuous else why
    program = part.instance.program
    name = f"{program.spec}, model {program.model}, on {type(part.binding).__name__}"
    return f"{within(part, result)}{why}: {name}"


def render(part: Part, result: SuiteResult) -> str:
    """The whole report."""
    lines = [headline(part, result)]
    for line in basis(part, result):
        lines += wrapped(line, WIDTH, 2)
    if result.divergence is not None:
        lines += ["", text(drawn(part.instance, result.divergence))]
    return "\n".join(lines)


def basis(part: Part, result: SuiteResult) -> Iterator[str]:
    """The figures, and the parts that were not checked."""
    program, tally = part.instance.program, result.tally
    nothing = sum(tally.impossible.values())
    yield f"{result.suite}: {result.states} states, {result.steps} steps taken, {result.seconds:.2f} s"
    divergence = result.divergence
    if divergence is not None and divergence.found_after is not None:
        yield f"found after {divergence.found_after} steps, shrunk to {len(divergence.trace.steps)}"
    if divergence is not None and result.failed is not None:
        yield f"to repeat it alone: --case {result.failed}"
    yield (f"negative probes: {result.probes} refused, {nothing} not applicable "
           "(no message, process or budget)")  # fmt: skip
    if result.coverage is not None:
        yield from _covered(result.coverage, is_green=result.divergence is None)
    if tally.reopened:
        yield f"reopened from disk: {tally.reopened} times"
    if tally.struck:
        yield f"faults that struck inside a step: {tally.struck}"
    yield f"constants: {constants(program)}"
    off = switched_off(program)
    # Actions that the constants switch off are listed apart: they are no gap of the implementation.
    never = [a.name for a in program.actions if a.name not in tally.taken and a.name not in off]
    left = [f"{name} ({count})" for name, count in tally.left.items() if count]
    for title, names in (
        ("never taken", never),
        ("never taken, disabled by these constants", list(off)),
        ("successors that the implementation never chose", left),
        ("unobserved", [f"{name} ({reason})" for name, reason in part.binding.unobserved.items()]),
    ):
        if names:
            yield f"{title}: {', '.join(names)}"


def _covered(coverage: Coverage, *, is_green: bool) -> Iterator[str]:
    refusals = len(coverage.probe_classes)
    cases = f"{coverage.cases} case{'s' * (coverage.cases != 1)}"
    yield (f"classes: {len(coverage.covered)} of {coverage.reachable} taken, by {cases}; "
           f"kinds of refusal: {len(coverage.refused)} of {refusals} by the implementation, "
           f"{len(coverage.impossible)} not applicable")  # fmt: skip
    if coverage.cover:
        yield f"cover: {coverage.cover}"
    if coverage.never:
        yield (f"never taken, though allowed by the spec: {len(coverage.never)} more classes, as the "
               "complete product of spec and implementation has shown")  # fmt: skip
    if coverage.avoided and is_green:
        yield f"not taken, since the implementation chose differently: {len(coverage.avoided)} classes"
    untried = len(coverage.missed) - len(coverage.avoided)
    if untried and is_green:
        yield f"not tried, since no case of this run takes them: {untried} classes"


def _coverage_json(result: SuiteResult) -> dict[str, object] | None:
    coverage = result.coverage
    if coverage is None:
        return None
    classes: dict[str, list[int]] = {}
    for number, one in enumerate(coverage.classes):
        row = classes.setdefault(one.action, [0, 0])
        row[0] += number in coverage.covered
        row[1] += 1
    return {
        "cases": coverage.cases,
        "cover": coverage.cover or None,
        "failed_cases": [] if result.failed is None else [result.failed],
        "classes": len(coverage.classes),
        "classes_taken": len(coverage.covered),
        "classes_missed": _classes_json(coverage.missed),
        "classes_never": _classes_json(coverage.never),
        "classes_by_action": {name: {"taken": row[0], "reachable": row[1]} for name, row in classes.items()},
        "refusals": len(coverage.probe_classes),
        "refusals_asked": len(coverage.refused),
        "refusals_impossible": len(coverage.impossible),
    }


def _classes_json(classes: Sequence[EffectClass]) -> list[dict[str, str]]:
    return [{"id": effect_class.id, "class": str(effect_class)} for effect_class in classes]


def as_json(part: Part, result: SuiteResult, exit_code: int) -> dict[str, object]:
    """The report as one JSON object."""
    program = part.instance.program
    return {
        "schema": SCHEMA,
        "verdict": verdict(result).replace(" ", "_"),
        "spec": program.path,
        **model_json(program),
        "bounds": [prop.name for prop in program.constraints],
        "binding": type(part.binding).__name__,
        "suite": result.suite,
        "states": result.states,
        "taken": result.tally.taken,
        "refused": result.tally.refused,
        "impossible": result.tally.impossible,
        "left": {name: count for name, count in result.tally.left.items() if count},
        "reopened": result.tally.reopened,
        "struck": result.tally.struck,
        "coverage": _coverage_json(result),
        "unobserved": dict(part.binding.unobserved),
        "vacuous": result.vacuous or None,
        "divergence": None if result.divergence is None else divergence_json(program, result.divergence),
        "seconds": round(result.seconds, 3),
        "exit_code": exit_code,
    }


def overall(results: Sequence[SuiteResult]) -> SuiteResult:
    """The result that decides the overall verdict: the first of the worst."""
    return min(results, key=lambda result: _WORST_FIRST.index(verdict(result)))


def render_tier(tier: str, parts: Sequence[Part], results: Sequence[SuiteResult]) -> str:
    """The whole report; a single failing suite is reported as if it had run alone."""
    if len(parts) == 1:
        return render(parts[0], results[0])
    worst = overall(results)
    part_of_worst = parts[list(results).index(worst)]
    program = parts[0].instance.program
    cases = sum(result.coverage.cases for result in results if result.coverage is not None)
    steps, probes = sum(each.steps for each in results), sum(each.probes for each in results)
    lines = [
        f"{within(part_of_worst, worst)}: {program.spec} on {type(parts[0].binding).__name__}, {tier}",
        f"  {len(parts)} suites, {cases} cases, {steps} steps taken, {probes} probes refused",
    ]
    lines += [f"  {_line(part, result)}" for part, result in zip(parts, results, strict=True)]
    if worst.divergence is not None or worst.vacuous:
        lines += ["", render(part_of_worst, worst)]
    return "\n".join(lines)


def _line(part: Part, result: SuiteResult) -> str:
    covered = "" if result.coverage is None else f", {result.coverage}"
    figures = f"{result.suite}, {result.states} states, {result.steps} steps{covered}"
    return f"{within(part, result)}: {part.label}, {figures}"


def tier_json(
    tier: str, parts: Sequence[Part], results: Sequence[SuiteResult], codes: Sequence[int]
) -> dict[str, object]:
    """The deciding suite as one JSON object, with the objects of all suites in `suites`."""
    reports = [
        {"label": part.label, **as_json(part, result, code)}
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
