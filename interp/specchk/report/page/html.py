"""The report of a run as one HTML file: no network access, readable without JavaScript, printable.

With JavaScript the counterexample is stepped through with a slider, buttons or the arrow keys, and
`#step-7` links to a step; without it all steps are listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from specchk.ir.footprint import live_points
from specchk.lang.text.source import Source
from specchk.report.behaviour import ending, fair_line
from specchk.report.diff import irrelevant
from specchk.report.page.frame import coded, controls, document, folded, picture, steps, verdict
from specchk.report.text import checked, headline, statistics, what
from specchk.search.verdict import Outcome, Violation, name_of, violations_of


def page(outcome: Outcome, drawing: str | None) -> str:
    """The whole report; `drawing` is the SVG of the first counterexample, if there is one."""
    program = outcome.program
    body = [
        f"<h1>{escape(program.spec)}, model {escape(program.model)}</h1>",
        verdict(name_of(outcome.verdict), headline(outcome), [*statistics(outcome), *checked(outcome)]),
        *_violations(outcome, drawing),
        *_warnings(outcome.warnings),
        *_coverage(outcome),
        f"<footer>specchk, {escape(program.path)}</footer>",
    ]
    return document(headline(outcome), body)


def _violations(outcome: Outcome, drawing: str | None) -> Iterator[str]:
    violations = violations_of(outcome.verdict)
    # The page has one slider, so only one trace can be stepped through.
    traced = next((violation for violation in violations if violation.trace is not None), None)
    for violation in violations:
        yield f"<h2>{coded(what(violation))}</h2>"
        yield from _because(violation)
        if violation is traced and violation.trace is not None:
            left_out = irrelevant(outcome.program, violation.trace, violation.name)
            yield from folded(outcome.program, violation.trace, left_out, "are irrelevant to the failure")
            yield controls(len(violation.trace.steps))
            yield from steps(outcome.program, violation.trace, left_out)
            yield from _forever(violation)
            yield from picture(drawing)


def _forever(violation: Violation) -> Iterator[str]:
    """The loop or rest at the end of a behaviour, with links to its states, and why it is fair."""
    trace = violation.trace
    if trace is None or trace.loop is None:
        return
    lines = [*violation.notes, *(fair_line(point) for point in violation.fairness)]
    yield (
        f'<div class="because"><a href="#step-{trace.loop}">{escape(ending(trace))}</a>'
        f"{''.join(f'<div>{escape(line)}</div>' for line in lines)}</div>"
    )


def _because(violation: Violation) -> Iterator[str]:
    blame = violation.blame
    if blame is None:
        return
    bound = ", ".join(f"{name} = {value}" for name, value in blame.bindings)
    values = "".join(
        f"<div>where <code>{escape(n)}</code> = <code>{escape(v)}</code></div>" for n, v in blame.values
    )
    yield (
        f'<div class="because">because{escape(f", for {bound}" if bound else "")}: '
        f"<code>{escape(blame.text)}</code>"
        f"{values}<div>at {escape(blame.span.where)}</div></div>"
    )


def _warnings(warnings: Sequence[str]) -> Iterator[str]:
    if warnings:
        yield (
            "<h2>Warnings</h2><ul>" + "".join(f"<li>{coded(warning)}</li>" for warning in warnings) + "</ul>"
        )


def _coverage(outcome: Outcome) -> Iterator[str]:
    program = outcome.program
    by_source: dict[Source, dict[int, list[tuple[int, str]]]] = {}
    live = live_points(program)
    for index, (point, count) in enumerate(zip(program.points, outcome.coverage, strict=True)):
        # What the constants decide is not counted: its 0 would call a branch that is taken never taken.
        # Nor is a 0 shown that another order of elements may change.
        if index in live and (count or index not in outcome.by_order):
            lines = by_source.setdefault(point.span.source, {})
            lines.setdefault(point.span.line, []).append((count, point.kind))
    if not by_source:
        return
    yield "<h2>Coverage</h2><p>How often each action, branch and part of a property was taken.</p>"
    for source, counted in by_source.items():
        yield f"<details open><summary>{escape(source.path)}</summary><table class='source'>"
        for number in range(1, len(source.line_starts) + 1):
            yield _source_line(number, source.line(number), counted.get(number, []))
        yield "</table></details>"


def _source_line(number: int, text: str, counts: list[tuple[int, str]]) -> str:
    never = any(count == 0 for count, _ in counts)
    shown = " ".join(str(count) for count, _ in counts)
    mark = ' class="never"' if never else ""
    return (
        f'<tr{mark}><td class="count">{shown}</td><td class="count">{number}</td><td>{escape(text)}</td></tr>'
    )
