"""The report of a run as one HTML file: no network, readable without JavaScript, printable.

With JavaScript the counterexample is stepped through with a slider, buttons or the arrow keys, and
`#step-7` links to a step; without it all steps are listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from specchk.core.verdict import Outcome, Trace, Violated, Violation, name_of
from specchk.ir.footprint import live_points, of_property
from specchk.ir.program import Program
from specchk.lang.source import Source
from specchk.report.diff import changes, parts
from specchk.report.text import checked, constants, headline, statistics, what

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(outcome: Outcome, drawing: str | None) -> str:
    """The whole report; `drawing` is the SVG of the first counterexample, if there is one."""
    program = outcome.program
    assets = files("specchk.report.page").joinpath("assets")
    style, script = (
        assets.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js")
    )
    body = [
        f"<h1>{escape(program.spec)}, model {escape(program.model)}</h1>",
        *_verdict(outcome),
        *_violations(outcome, drawing),
        *_warnings(outcome.warnings),
        *_coverage(outcome),
        f"<footer>specchk, {escape(program.path)}</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(headline(outcome))}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + f"\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _verdict(outcome: Outcome) -> Iterator[str]:
    lines = [*statistics(outcome), f"constants: {constants(outcome.program) or '(none)'}", *checked(outcome)]
    yield f'<div class="verdict {name_of(outcome.verdict)}"><strong>{escape(headline(outcome))}</strong>'
    yield "".join(f"<div>{escape(line)}</div>" for line in lines) + "</div>"


def _violations(outcome: Outcome, drawing: str | None) -> Iterator[str]:
    violations = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    traced = next((violation for violation in violations if violation.trace is not None), None)
    for violation in violations:
        yield f"<h2>{escape(what(violation))}</h2>"
        yield from _because(violation)
        if violation is traced and violation.trace is not None:
            folded = _irrelevant(outcome.program, violation.trace, violation.name)
            yield from _folded(outcome.program, violation.trace, folded)
            yield from _steps(outcome.program, violation.trace, folded)
            if drawing is not None:
                yield f'<h2>As a picture</h2><div class="lanes">{drawing}</div>'


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


def _irrelevant(program: Program, trace: Trace, name: str) -> frozenset[str]:
    """The variables that stay the same on the whole trace, and that the property does not read.

    None where no property fails: at a deadlock every variable may be the reason.
    """
    failing = [prop for prop in (*program.invariants, *program.step_invariants) if prop.name == name]
    if not failing:
        return frozenset()
    read = {slot for prop in failing for slot in of_property(prop).reads}
    return frozenset(
        variable.name
        for slot, variable in enumerate(program.variables)
        if slot not in read and all(state[slot] == trace.initial[slot] for state in trace.states)
    )


def _folded(program: Program, trace: Trace, names: frozenset[str]) -> Iterator[str]:
    if names:
        rows = "".join(_variable(n, v, None) for n, v in parts(program, trace.initial) if n in names)
        yield (
            f"<details><summary>{len(names)} variables never change here and are not what fails</summary>"
            f'<table class="state">{rows}</table></details>'
        )


def _steps(program: Program, trace: Trace, folded: frozenset[str]) -> Iterator[str]:
    last = len(trace.steps)
    yield (
        '<div class="controls"><button id="back" type="button" aria-label="step back">←</button>'
        f'<input id="slider" type="range" min="0" max="{last}" value="{last}" aria-label="step">'
        '<button id="forth" type="button" aria-label="step forward">→</button><span id="shown"></span></div>'
    )
    titles = ["initial state", *(str(step) for step in trace.steps)]
    states = trace.states
    for number, (title, state) in enumerate(zip(titles, states, strict=True)):
        changed: dict[str, list[str]] = {}
        for change in changes(program, states[number - 1], state) if number else ():
            changed.setdefault(change.variable, []).append(f"{change.path}: {change.before} → {change.after}")
        rows = "".join(
            _variable(name, value, changed.get(name))
            for name, value in parts(program, state)
            if name not in folded
        )
        yield (
            f'<section class="step" id="step-{number}"><h3>{number}: {escape(title)}</h3>'
            f'<table class="state"><tr><th>variable</th><th>value</th><th>changed</th></tr>{rows}</table>'
            "</section>"
        )


def _variable(name: str, value: str, changed: Sequence[str] | None) -> str:
    mark = ' class="changed"' if changed else ""
    diff = "".join(f"<div>{escape(line)}</div>" for line in changed or ())
    return f"<tr><td{mark}>{escape(name)}</td><td>{escape(value)}</td><td{mark}>{diff}</td></tr>"


def _warnings(warnings: Sequence[str]) -> Iterator[str]:
    if warnings:
        yield (
            "<h2>Warnings</h2><ul>" + "".join(f"<li>{escape(warning)}</li>" for warning in warnings) + "</ul>"
        )


def _coverage(outcome: Outcome) -> Iterator[str]:
    program = outcome.program
    by_source: dict[Source, dict[int, list[tuple[int, str]]]] = {}
    live = live_points(program)
    for index, (point, count) in enumerate(zip(program.points, outcome.coverage, strict=True)):
        if index in live:
            lines = by_source.setdefault(point.span.source, {})
            lines.setdefault(point.span.line, []).append((count, point.kind))
    if not by_source:
        return
    yield "<h2>Coverage</h2><p>How often each action, branch and antecedent of an implication was taken.</p>"
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
