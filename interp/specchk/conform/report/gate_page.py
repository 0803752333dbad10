"""The sections that a gate adds to a page: the covered classes of each action, and the figures.

A cell of the map is a class: a way in which the action can go, or be refused.  What it is stands in
its title.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType

from specchk.conform.gate.gate import Held
from specchk.conform.gate.lock import Kills
from specchk.conform.gate.tiers import Part
from specchk.conform.mutation.scores_file import ScoreRow
from specchk.conform.replay.cases import EffectClass
from specchk.conform.replay.suites import Coverage, SuiteResult

# What a cell says by its letter and its colour.
CELLS = MappingProxyType({
    "covered": ("#", "#2e7d32"), "missed": ("!", "#c62828"),
    "never taken": ("-", "#607d8b"), "refused": ("x", "#1565c0"),
    "not applicable": ("o", "#9e9e9e"), "not tried": (".", "#e0a800"),
})  # fmt: skip


def sections(
    parts: Sequence[Part], results: Sequence[SuiteResult], held: Held | None, mutants: Sequence[ScoreRow] = ()
) -> list[str]:
    """All of them, each as HTML."""
    found = [_map(part, result.coverage) for part, result in zip(parts, results, strict=True)
             if result.coverage is not None]  # fmt: skip
    if found:
        found.insert(0, _legend())
    found.append(_unobserved(parts[0].binding.unobserved))
    if held is not None:
        found += [*_controls(held), *_lock(held), *_scores(held.found.mutants)]
    found += _mutants(mutants)
    return found


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
        _row(f"<code>{escape(action.name)}</code>", _cells(taken, steps.get(action.name, ())),
             _cells(refused, refusals.get(action.name, ())))
        for action in part.instance.program.actions
    ]  # fmt: skip
    head = f"<h3>{escape(part.label)}: {coverage}, {coverage.cases} cases</h3>"
    return head + _table(("action", "steps", "refusals"), rows)


def _row(*cells: str, mark: str = "") -> str:
    return f"<tr{mark}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _table(titles: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{title}</th>" for title in titles)
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _by_action(classes: Sequence[EffectClass]) -> dict[str, list[tuple[int, EffectClass]]]:
    found: dict[str, list[tuple[int, EffectClass]]] = {}
    for number, one in enumerate(classes):
        found.setdefault(one.action, []).append((number, one))
    return found


def _cells(states: Mapping[str, frozenset[int]], classes: Sequence[tuple[int, EffectClass]]) -> str:
    """The cells of some classes, each in the first of the states that has it."""
    found = ""
    for number, one in classes:
        state = next((name for name, numbers in states.items() if number in numbers), "not tried")
        found += _cell(state, "; ".join((str(one), *one.signs)))
    return found


def _unobserved(names: Mapping[str, str]) -> str:
    rows = "".join(
        f"<li><code>{escape(name)}</code>: {escape(reason)}</li>" for name, reason in names.items()
    )
    return "<h2>Unobserved variables</h2>" + (f"<ul>{rows}</ul>" if rows else "<p>None.</p>")


def _controls(held: Held) -> Iterator[str]:
    rows = [_row(*map(escape, (one.kind, one.name, one.told or "not detected"))) for one in held.tried]
    table = _table(("error in", "control", "found"), rows) if rows else "<p>None.</p>"
    yield f"<h2>Controls</h2>{table}"


def _lock(held: Held) -> Iterator[str]:
    if held.lock is not None:
        rows = "".join(f"<li>{escape(str(one))}</li>" for one in held.below)
        yield "<h2>Lock</h2>" + (f'<ul class="violated">{rows}</ul>' if rows else "<p>It holds.</p>")


def _scores(mutants: Mapping[str, Kills]) -> Iterator[str]:
    if mutants:
        rows = [_row(escape(name), f"{one.killed}", f"{one.all}") for name, one in sorted(mutants.items())]
        yield "<h2>Mutants</h2>" + _table(("kind", "killed", "all"), rows)


def _mutants(mutants: Sequence[ScoreRow]) -> Iterator[str]:
    """A line for each mutant; one that no test killed is marked, unless that is argued."""
    if mutants:
        missed = ("survived", "weak", "wrongly")
        rows = [
            _row(*map(escape, (one.kind, one.name, one.flaw, one.verdict, str(one.kills))),
                 mark=' class="never"' if one.verdict in missed else "")
            for one in mutants
        ]  # fmt: skip
        table = _table(("kind", "mutant", "flaw", "verdict", "tests that killed it"), rows)
        yield f"<details><summary>{len(mutants)} mutants</summary>{table}</details>"
