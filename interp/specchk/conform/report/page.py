"""A suite's result as one HTML page: the verdict, its basis, and a divergence to step through.

The last step of a divergence is the implementation's state beside the spec's, the cells marked
that differ.  The sections of a gate are the covered classes of each action, and the figures: a cell of the
map is a class, a way in which the action can be taken or refused, with its description as its title.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType

from specchk.conform.covers.cases import EffectClass
from specchk.conform.gate.gate import Held
from specchk.conform.gate.tiers import Part
from specchk.conform.mutation.scores_file import ScoreRow
from specchk.conform.replay.divergence import WORDS, differences, instead, spec_trace, step_text, wanted
from specchk.conform.replay.place import Divergence, ReplayTally
from specchk.conform.replay.suites import Coverage, SuiteResult
from specchk.conform.report.suite import basis, headline, verdict
from specchk.conform.work.lock_file import Kills
from specchk.ir.program import Program
from specchk.meaning.values import State
from specchk.report.diff import VariableChange, parts, unchanging
from specchk.report.page import frame

COLORS = MappingProxyType({
    "conforms": "holds", "conforms so far": "inconclusive", "diverges": "violated", "vacuous": "inconclusive",
})  # fmt: skip
# The meaning of a cell's letter and its colour.
CELLS = MappingProxyType({
    "covered": ("#", "#2e7d32"), "missed": ("!", "#c62828"),
    "never taken": ("-", "#607d8b"), "refused": ("x", "#1565c0"),
    "not applicable": ("o", "#9e9e9e"), "not tried": (".", "#e0a800"),
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
    changes = differences(program, divergence, beside)
    yield f'<div class="because">{"".join(_because(divergence, changes))}</div>'
    different = {change.variable for change in changes}
    left_out = unchanging(program, trace, different)
    yield from frame.folded(program, trace, left_out, "do not differ")
    last = _instead(program, divergence, beside, len(trace.steps) + 1)
    yield frame.controls(len(trace.steps) + (1 if last else 0))
    yield from frame.steps(program, trace, left_out)
    yield last
    yield from frame.picture(drawing)


def _because(divergence: Divergence, changes: Sequence[VariableChange]) -> Iterator[str]:
    for line in (step_text(divergence), divergence.reason):
        if line:
            yield f"<div>{escape(line)}</div>"
    for change in changes:
        yield (
            f"<div><code>{escape(change.path)}</code>: the spec has <code>{escape(change.before)}</code>, "
            f'the implementation <code class="differs">{escape(change.after)}</code></div>'
        )


def _instead(program: Program, divergence: Divergence, beside: State | None, number: int) -> str:
    """The two states side by side; empty if the implementation's state is unknown."""
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


def sections(
    parts: Sequence[Part], results: Sequence[SuiteResult], held: Held | None, mutants: Sequence[ScoreRow] = ()
) -> list[str]:
    """All sections, each as HTML."""
    parts_of_page = [_map(part, result.coverage) for part, result in zip(parts, results, strict=True)
             if result.coverage is not None]  # fmt: skip
    if parts_of_page:
        parts_of_page.insert(0, _legend())
    parts_of_page.append(_unobserved(parts[0].binding.unobserved))
    if held is not None:
        parts_of_page += [*_controls(held), *_lock(held), *_scores(held.found.mutants)]
    parts_of_page += _mutants(mutants)
    return parts_of_page


def listed(title: str, lines: Iterable[str], *, is_wrong: bool = False) -> str:
    """A section with the lines of the text report."""
    mark = ' class="violated"' if is_wrong else ""
    return f"<h2>{title}</h2><ul{mark}>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _legend() -> str:
    words = " &nbsp; ".join(f"{_cell(state, state)} {state}" for state in CELLS)
    return (
        f"<h2>Classes</h2><p>Each cell is a class of steps or of refusals of an action. {words}</p>"
        "<p>Classes that are never taken are allowed by the spec but not chosen by the implementation, which "
        "exploring their whole product has shown. Refusals are not applicable where the binding has no such "
        "message, process or budget.</p>"
    )


def _cell(state: str, title: str) -> str:
    letter, color = CELLS[state]
    style = f"background:{color};color:white;font-family:monospace;padding:0 .3em;margin:1px"
    return f'<span class="{state.replace(" ", "-")}" style="{style}" title="{escape(title)}">{letter}</span>'


def _map(part: Part, coverage: Coverage) -> str:
    steps, refusals = _by_action(coverage.classes), _by_action(coverage.probe_classes)
    taken = {"covered": coverage.covered, "never taken": coverage.listed, "missed": coverage.tried}
    refused = {"refused": coverage.refused, "not applicable": coverage.impossible}
    rows = [
        frame.row(f"<code>{escape(action.name)}</code>", _cells(taken, steps.get(action.name, ())),
             _cells(refused, refusals.get(action.name, ())))
        for action in part.instance.program.actions
    ]  # fmt: skip
    head = f"<h3>{escape(part.label)}: {coverage}, {coverage.cases} cases</h3>"
    return head + frame.table(("action", "steps", "refusals"), rows)


def _by_action(classes: Sequence[EffectClass]) -> dict[str, list[tuple[int, EffectClass]]]:
    by_action: dict[str, list[tuple[int, EffectClass]]] = {}
    for number, one in enumerate(classes):
        by_action.setdefault(one.action, []).append((number, one))
    return by_action


def _cells(states: Mapping[str, frozenset[int]], classes: Sequence[tuple[int, EffectClass]]) -> str:
    """The cells of some classes, each class in the first of the states that applies to it."""
    cells = ""
    for number, one in classes:
        state = next((name for name, numbers in states.items() if number in numbers), "not tried")
        cells += _cell(state, "; ".join((str(one), *one.signs)))
    return cells


def _unobserved(names: Mapping[str, str]) -> str:
    rows = "".join(
        f"<li><code>{escape(name)}</code>: {escape(reason)}</li>" for name, reason in names.items()
    )
    return "<h2>Unobserved variables</h2>" + (f"<ul>{rows}</ul>" if rows else "<p>None.</p>")


def _controls(held: Held) -> Iterator[str]:
    rows = [
        frame.row(
            *map(escape, (trial.kind, trial.name, trial.divergence or trial.outdated or "not detected"))
        )
        for trial in held.tried
    ]
    yield "<h2>Controls</h2>" + (
        frame.table(("error in", "control", "found"), rows) if rows else "<p>None.</p>"
    )


def _lock(held: Held) -> Iterator[str]:
    if held.below:
        yield listed("Lock", map(str, held.below), is_wrong=True)
    elif held.lock is not None:
        yield "<h2>Lock</h2><p>It holds.</p>"


def _scores(mutants: Mapping[str, Kills]) -> Iterator[str]:
    rows = [
        frame.row(escape(name), f"{score.killed}", f"{score.all}", "")
        for name, score in sorted(mutants.items())
    ]
    if rows:
        yield "<h2>Mutants</h2>" + frame.table(("kind", "killed", "run", "of"), rows)


def _mutants(mutants: Sequence[ScoreRow]) -> Iterator[str]:
    """A line for each mutant; a surviving mutant is marked, unless it is argued to be equivalent."""
    if mutants:
        missed = ("survived", "weak", "wrongly")
        rows = [
            frame.row(
                *map(escape, (mutant.kind, mutant.name, mutant.flaw, mutant.verdict, str(mutant.kills))),
                mark=' class="never"' if mutant.verdict in missed else "",
            )
            for mutant in mutants
        ]
        every = frame.table(("kind", "mutant", "flaw", "verdict", "tests that killed it"), rows)
        yield f"<details><summary>{len(mutants)} mutants</summary>{every}</details>"
