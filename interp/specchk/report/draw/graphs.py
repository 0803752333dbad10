"""Graphs in DOT: the states of a small model, actions that enable others, and a trace as a chain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise

from specchk.ir.program import Program
from specchk.meaning.values import State
from specchk.report.diff import changes, equations
from specchk.search.graph import StateGraph
from specchk.search.verdict import Trace

_HEAD = (
    '  graph [bgcolor="white", rankdir=TB, fontname="Helvetica"];\n'
    '  node [shape=box, style="rounded,filled", fillcolor="#f4f6fa", color="#888888", '
    'fontname="Helvetica", fontsize=10];\n'
    '  edge [fontname="Helvetica", fontsize=9, color="#555555", arrowsize=0.7];'
)

_FOREVER = "#a02020"
_ON_PATH = ', color="#0b4f8a", fontcolor="#0b4f8a", penwidth=2'
_VIOLATING = ', color="#a02020", fillcolor="#fff4f2", penwidth=2'


def states_dot(graph: StateGraph, trace: Trace | None = None) -> str:
    """Every state with its whole value, one cluster for each level, edges labelled by actions.

    Levels go down; edges that do not are grey.  Steps that change nothing stand in their state.  Of a
    counterexample the path is blue, and its last state red.
    """
    path = [] if trace is None else [trace.initial, *(step.state for step in trace.steps)]
    index_of = {state: index for index, state in enumerate(graph.states)}
    on_path = [index_of[state] for state in path if state in index_of]
    taken = set(pairwise(on_path))
    looks = {**dict.fromkeys(on_path, _ON_PATH), **dict.fromkeys(on_path[-1:], _VIOLATING)}
    lines = ["digraph states {", _HEAD]
    labels: dict[tuple[int, int], list[str]] = {}
    for edge in graph.edges:
        labels.setdefault((edge.source, edge.target), []).append(edge.label)
    for level in range(max(graph.levels, default=-1) + 1):
        members = [index for index, texts in enumerate(graph.levels) if texts == level]
        lines.append(f'  subgraph cluster_{level} {{ label="level {level + 1}"; color="#dddddd"; fontsize=9;')
        for index in members:
            text = _state(graph.program, graph.states[index]) + _staying(labels.get((index, index), ()))
            lines.append(f"    s{index} [label=<{text}>{looks.get(index, '')}];")
        lines.append("  }")
    for (source, target), texts in labels.items():
        text = "<BR/>".join(escape(label) for label in texts)
        down = graph.levels[target] > graph.levels[source]
        # Without `constraint=false` an edge back up would push levels apart that are one.
        look = "" if down else ', constraint=false, color="#bbbbbb", fontcolor="#888888"'
        look += _ON_PATH if (source, target) in taken else ""
        if source != target:
            lines.append(f"  s{source} -> s{target} [label=<{text}>{look}];")
    return "\n".join([*lines, "}"]) + "\n"


def _staying(labels: Sequence[str]) -> str:
    """The steps that lead from a state to itself."""
    return "".join(
        f'<FONT COLOR="#888888" POINT-SIZE="8">stays: {escape(label)}</FONT><BR ALIGN="LEFT"/>'
        for label in labels
    )


def _state(program: Program, state: State) -> str:
    return _lines(equations(program, state))


def _lines(texts: Iterable[str]) -> str:
    return "".join(f'{escape(text)}<BR ALIGN="LEFT"/>' for text in texts)


def actions_dot(program: Program, enables: Mapping[tuple[int, int], int]) -> str:
    """An edge from an action to each action that it can enable, with the number of such steps."""
    lines = ["digraph actions {", _HEAD]
    lines += [f'  a{index} [label="{action.name}"];' for index, action in enumerate(program.actions)]
    for (source, target), count in enables.items():
        lines.append(f'  a{source} -> a{target} [label="{count}"];')
    return "\n".join([*lines, "}"]) + "\n"


def trace_dot(program: Program, trace: Trace) -> str:
    """A trace as a chain: the first state in full, then the changes of each step; a loop is a back edge."""
    lines = ["digraph trace {", _HEAD, f"  s0 [label=<{_state(program, trace.initial)}>];"]
    look = f'color="{_FOREVER}", fontcolor="{_FOREVER}", constraint=false'
    for number, before, step in trace.numbered:
        if number == len(trace.steps) and trace.loop is not None and trace.loop < number:
            label = f"{number}: {escape(str(step))}<BR/>forever"
            lines.append(f"  s{number - 1} -> s{trace.loop} [label=<{label}>, {look}];")
            break
        text = _lines(change.text("→") for change in changes(program, before, step.state))
        lines.append(f"  s{number} [label=<{text or 'nothing changes'}>];")
        lines.append(f"  s{number - 1} -> s{number} [label=<{number}: {escape(str(step))}>];")
    if trace.loop == len(trace.steps):
        lines.append(f"  s{trace.loop} -> s{trace.loop} [label=<rests forever>, {look}];")
    return "\n".join([*lines, "}"]) + "\n"
