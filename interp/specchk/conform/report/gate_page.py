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
    rows = "".join(
        f"<tr><td><code>{escape(action.name)}</code></td>"
        f"<td>{''.join(_steps(coverage, steps.get(action.name, ())))}</td>"
        f"<td>{''.join(_refusals(coverage, refusals.get(action.name, ())))}</td></tr>"
        for action in part.instance.program.actions
    )
    return (
        f"<h3>{escape(part.label)}: {coverage}, {coverage.cases} cases</h3>"
        f"<table><tr><th>action</th><th>steps</th><th>refusals</th></tr>{rows}</table>"
    )


def _by_action(classes: Sequence[EffectClass]) -> dict[str, list[tuple[int, EffectClass]]]:
    found: dict[str, list[tuple[int, EffectClass]]] = {}
    for number, one in enumerate(classes):
        found.setdefault(one.action, []).append((number, one))
    return found


def _steps(coverage: Coverage, classes: Sequence[tuple[int, EffectClass]]) -> Iterator[str]:
    for number, one in classes:
        states = {
            "covered": coverage.covered, "never taken": coverage.listed, "missed": coverage.tried,
        }  # fmt: skip
        yield _cell(_state(states, number), _said(one))


def _refusals(coverage: Coverage, classes: Sequence[tuple[int, EffectClass]]) -> Iterator[str]:
    for number, one in classes:
        states = {"refused": coverage.refused, "not applicable": coverage.impossible}
        yield _cell(_state(states, number), _said(one))


def _state(states: Mapping[str, frozenset[int]], number: int) -> str:
    """The first state that has a class."""
    return next((name for name, numbers in states.items() if number in numbers), "not tried")


def _said(one: EffectClass) -> str:
    return "; ".join((str(one), *one.signs))


def _unobserved(names: Mapping[str, str]) -> str:
    rows = "".join(
        f"<li><code>{escape(name)}</code>: {escape(reason)}</li>" for name, reason in names.items()
    )
    return "<h2>Unobserved variables</h2>" + (f"<ul>{rows}</ul>" if rows else "<p>None.</p>")


def _controls(held: Held) -> Iterator[str]:
    rows = "".join(
        f"<tr><td>{escape(one.kind)}</td><td>{escape(one.name)}</td>"
        f"<td>{escape(one.told or 'not detected')}</td></tr>"
        for one in held.tried
    )
    head = "<tr><th>error in</th><th>control</th><th>found</th></tr>"
    yield f"<h2>Controls</h2><table>{head}{rows}</table>" if rows else "<h2>Controls</h2><p>None.</p>"


def _lock(held: Held) -> Iterator[str]:
    if held.lock is not None:
        rows = "".join(f"<li>{escape(str(one))}</li>" for one in held.below)
        yield "<h2>Lock</h2>" + (f'<ul class="violated">{rows}</ul>' if rows else "<p>It holds.</p>")


def _scores(mutants: Mapping[str, Kills]) -> Iterator[str]:
    if mutants:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{kills.killed}</td><td>{kills.all}</td></tr>"
            for name, kills in sorted(mutants.items())
        )
        yield f"<h2>Mutants</h2><table><tr><th>kind</th><th>killed</th><th>all</th></tr>{rows}</table>"


def _mutants(mutants: Sequence[ScoreRow]) -> Iterator[str]:
    """A line for each mutant; one that no test killed is marked, unless that is argued."""
    if mutants:
        rows = "".join(
            f"<tr{_marked(one)}>"
            f"<td>{escape(one.kind)}</td><td>{escape(one.name)}</td><td>{escape(one.flaw)}</td>"
            f"<td>{escape(one.verdict)}</td><td>{one.kills}</td></tr>"
            for one in mutants
        )
        head = (
            "<tr><th>kind</th><th>mutant</th><th>flaw</th><th>verdict</th><th>tests that killed it</th></tr>"
        )
        yield f"<details><summary>{len(mutants)} mutants</summary><table>{head}{rows}</table></details>"


def _marked(mutant: ScoreRow) -> str:
    return ' class="never"' if mutant.verdict in ("survived", "weak", "wrongly") else ""
