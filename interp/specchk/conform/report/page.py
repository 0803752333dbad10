"""A suite's result as one HTML page: the verdict, its basis, and a divergence to step through.

The last step of a divergence is the implementation's state beside the spec's, the cells marked
that differ.  What else is worth a section (a map of classes, a table of mutants) is given in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from types import MappingProxyType

from specchk.conform.gate.tiers import Part
from specchk.conform.replay.divergence import WORDS, differences, instead, spec_trace, step_text, wanted
from specchk.conform.replay.place import Divergence, ReplayTally
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.report.suite import basis, headline, verdict
from specchk.ir.program import Program
from specchk.report.diff import parts, unchanging
from specchk.report.page import frame

COLORS = MappingProxyType({
    "conforms": "holds", "conforms so far": "inconclusive", "diverges": "violated", "vacuous": "inconclusive",
})  # fmt: skip


def page(part: Part, result: SuiteResult, drawing: str | None, sections: Sequence[str] = ()) -> str:
    """The whole page; `drawing` is the SVG of the divergence, `sections` are further ones, in HTML."""
    program, title = part.instance.program, headline(part, result)
    body = [
        f"<h1>{escape(program.spec)}, model {escape(program.model)}</h1>",
        frame.verdict(COLORS[verdict(result)], title, basis(part, result)),
        *_diverged(program, result.divergence, drawing),
        *_actions(program, result.tally),
        *sections,
        f"<footer>specchk conform, {escape(program.path)}</footer>",
    ]
    return frame.document(title, body)


def _diverged(program: Program, divergence: Divergence | None, drawing: str | None) -> Iterator[str]:
    if divergence is None:
        return
    trace, beside = spec_trace(program, divergence), wanted(program, divergence)
    yield f"<h2>{escape(WORDS[divergence.kind])}</h2>"
    yield f'<div class="because">{"".join(_because(program, divergence))}</div>'
    different = {change.variable for change in differences(program, divergence, beside)}
    left_out = unchanging(program, trace, different)
    yield from frame.folded(program, trace, left_out, "do not differ")
    last = _instead(program, divergence, len(trace.steps) + 1)
    yield frame.controls(len(trace.steps) + (1 if last else 0))
    yield from frame.steps(program, trace, left_out)
    yield last
    yield from frame.picture(drawing)


def _because(program: Program, divergence: Divergence) -> Iterator[str]:
    for line in (step_text(divergence), divergence.reason):
        if line:
            yield f"<div>{escape(line)}</div>"
    for change in differences(program, divergence, wanted(program, divergence)):
        yield (
            f"<div><code>{escape(change.path)}</code>: the spec has <code>{escape(change.before)}</code>, "
            f'the implementation <code class="differs">{escape(change.after)}</code></div>'
        )


def _instead(program: Program, divergence: Divergence, number: int) -> str:
    """The two states side by side; empty if the implementation's state is unknown."""
    beside = wanted(program, divergence)
    other = instead(divergence, beside)
    if beside is None or other is None:
        return ""
    rows = "<tr><th>variable</th><th>the spec</th><th>the implementation</th></tr>"
    for (name, right), (_, seen) in zip(parts(program, beside), parts(program, other), strict=True):
        mark = ' class="differs"' if right != seen else ""
        rows += f"<tr><td>{escape(name)}</td><td{mark}>{escape(right)}</td><td{mark}>{escape(seen)}</td></tr>"
    by = f", after {divergence.step}" if divergence.step is not None else ""
    return frame.step(number, f"the implementation instead{by}", rows)


def _actions(program: Program, tally: ReplayTally) -> Iterator[str]:
    """The counts by action; an action that was never taken is marked."""
    titles = ("action", "steps taken", "probes refused", "not applicable", "successors never chosen")
    rows = []
    for name in [action.name for action in program.actions]:
        counts = (tally.taken[name], tally.refused[name], tally.impossible[name], tally.left[name])
        mark = "" if tally.taken[name] else ' class="never"'
        rows.append(frame.row(f"<code>{escape(name)}</code>", *map(str, counts), mark=mark))
    yield "<h2>Actions</h2>" + frame.table(titles, rows)
