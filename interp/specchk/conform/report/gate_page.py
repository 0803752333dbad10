"""The sections of a gate in a page: the covered classes of each action, and the figures.

A cell of the map is a class: a way in which the action can be taken, or refused.  Its description is
in its title.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType

from specchk.conform.covers.cases import EffectClass
from specchk.conform.gate.gate import Held
from specchk.conform.gate.lock import Kills, LayerKills
from specchk.conform.gate.tiers import Part
from specchk.conform.mutation.scores_file import ScoreRow
from specchk.conform.replay.suites import Coverage, SuiteResult
from specchk.report.page.frame import row, table

# The meaning of a cell's letter and its colour.
CELLS = MappingProxyType({
    "covered": ("#", "#2e7d32"), "missed": ("!", "#c62828"),
    "never taken": ("-", "#607d8b"), "refused": ("x", "#1565c0"),
    "not applicable": ("o", "#9e9e9e"), "not tried": (".", "#e0a800"),
})  # fmt: skip


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
        parts_of_page += [*_controls(held), *_lock(held), *_scores(held.found.mutants, held.found.layers)]
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
        row(f"<code>{escape(action.name)}</code>", _cells(taken, steps.get(action.name, ())),
             _cells(refused, refusals.get(action.name, ())))
        for action in part.instance.program.actions
    ]  # fmt: skip
    head = f"<h3>{escape(part.label)}: {coverage}, {coverage.cases} cases</h3>"
    return head + table(("action", "steps", "refusals"), rows)


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
        row(*map(escape, (trial.kind, trial.name, trial.divergence or "not detected")))
        for trial in held.tried
    ]
    yield "<h2>Controls</h2>" + (table(("error in", "control", "found"), rows) if rows else "<p>None.</p>")


def _lock(held: Held) -> Iterator[str]:
    if held.below:
        yield listed("Lock", map(str, held.below), is_wrong=True)
    elif held.lock is not None:
        yield "<h2>Lock</h2><p>It holds.</p>"


def _scores(mutants: Mapping[str, Kills], layers: Mapping[str, LayerKills]) -> Iterator[str]:
    rows = [
        row(escape(name), f"{score.killed}", f"{score.all}", "") for name, score in sorted(mutants.items())
    ]
    for name, own in sorted(layers.items()):
        rows += [
            row(escape(f"{name}, by {layer} alone"), f"{count}", f"{own.sampled}", escape(str(own)))
            for layer, count in own.killed.items()
        ]
    if rows:
        yield "<h2>Mutants</h2>" + table(("kind", "killed", "run", "of"), rows)


def _mutants(mutants: Sequence[ScoreRow]) -> Iterator[str]:
    """A line for each mutant; a surviving mutant is marked, unless it is argued to be equivalent."""
    if mutants:
        missed = ("survived", "weak", "wrongly")
        rows = [
            row(*map(escape, (mutant.kind, mutant.name, mutant.flaw, mutant.verdict, str(mutant.kills))),
                 mark=' class="never"' if mutant.verdict in missed else "")
            for mutant in mutants
        ]  # fmt: skip
        every = table(("kind", "mutant", "flaw", "verdict", "tests that killed it"), rows)
        yield f"<details><summary>{len(mutants)} mutants</summary>{every}</details>"
